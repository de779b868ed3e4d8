"""Both wire formats: what is sent, and the parts that are read however the network cuts them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.llm.answer import MAX_TEXT_CHARS, AnswerTooLong, PartBuffer
from shepherd_memory.llm.context_window import window_of
from shepherd_memory.llm.dialect import Dialect
from shepherd_memory.llm.request import End, ModelRequest, Part, Reasoning, Text, ToolRequest
from shepherd_memory.llm.sse import EventReader
from shepherd_memory.llm.wires import wire_of
from shepherd_memory.text.canonical import canonical_text
from tests.chatting import WIRES, as_part, calls, cut_up, events, is_whole, said, thought, thoughts
from tests.provider import ToolCall

WEATHER = ToolCall("call_1", "weather", '{"city": "Tromsø", "days": 2}')
CLOCK = ToolCall("call_2", "clock", "{}")
TOOL = {
    "type": "function",
    "function": {"name": "clock", "description": "The time.", "parameters": {"type": "object"}},
}


class Reading:
    """A parser of one wire, and the parts that it has found."""

    def __init__(self, wire: str) -> None:
        kind = wire_of(wire).parser
        self._buffer = PartBuffer(kind.reasons_in_text)
        self.parser = kind(self._buffer)

    def taken(self) -> list[Part]:
        return self._buffer.take()

    def end(self, is_announced: bool) -> list[Part]:
        return self._buffer.end(self.parser) if self.parser.is_complete(is_announced) else []


def read(wire: str, pieces: Sequence[bytes]) -> list[Part]:
    """The parts of a stream, fed piece by piece."""
    reading = Reading(wire)
    reader = EventReader(reading.parser)
    parts: list[Part] = []
    for piece in pieces:
        reader.feed(piece)
        parts += reading.taken()
    reader.finish()
    assert reading.parser.problem is None
    return [*parts, *reading.taken(), *reading.end(reader.ended)]


def joined(wire: str, *pieces: Any) -> bytes:
    return b"".join(event for event in events(wire, *pieces) if isinstance(event, bytes))


def chunk(**delta: Any) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


def finished(reason: str = "tool_calls") -> bytes:
    choice = {"index": 0, "delta": {}, "finish_reason": reason}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\ndata: [DONE]\n\n"


def fragment(**fields: Any) -> bytes:
    return chunk(tool_calls=[fields])


@pytest.mark.parametrize("wire", WIRES)
@given(
    words=st.lists(st.text(min_size=1, max_size=12), max_size=6),
    at=st.lists(st.integers(0, 5_000), max_size=30),
)
def test_an_answer_is_the_same_however_it_is_cut(wire: str, words: list[str], at: list[int]) -> None:
    data = joined(wire, thought(wire, "Hm, ø."), *words, WEATHER, CLOCK)
    parts = read(wire, list(cut_up(data, at)))
    assert said(parts) == canonical_text("".join(words))
    assert thoughts(parts) == "Hm, ø."
    assert calls(parts) == [as_part(WEATHER), as_part(CLOCK)]
    assert is_whole(parts)


def test_thoughts_in_the_content_of_a_local_models_answer_are_thoughts() -> None:
    for words in (["<think>Hm.</think>\n\nYes."], ["<thi", "nk>", "Hm.<", "/think>\n", "\nYes", "."]):
        parts = read("openai", [joined("openai", *words, WEATHER)])
        assert (thoughts(parts), said(parts), calls(parts)) == ("Hm.", "Yes.", [as_part(WEATHER)])
    held = read("openai", [joined("openai", "<", WEATHER)])
    assert (said(held), calls(held)) == ("<", [as_part(WEATHER)])


@pytest.mark.parametrize("wire", WIRES)
def test_every_event_gives_its_parts_at_once(wire: str) -> None:
    reading = Reading(wire)
    reader = EventReader(reading.parser)
    came = []
    for event in events(wire, "One ", "two ", "three."):
        assert isinstance(event, bytes)
        reader.feed(event)
        came += [[part.text for part in reading.taken() if isinstance(part, Text)]]
    assert [texts for texts in came if texts] == [["One "], ["two "], ["three."]]


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_stops_early_has_no_end(wire: str) -> None:
    whole = events(wire, "Hello", " there")
    for stop in range(1, len(whole) - 3):
        assert not any(
            isinstance(part, End) for part in read(wire, [e for e in whole[:stop] if isinstance(e, bytes)])
        )


def test_a_completion_is_complete_without_done_if_it_says_why_it_ended() -> None:
    data = chunk(content="Hi") + finished("stop").removesuffix(b"data: [DONE]\n\n")
    assert read("openai", [data]) == [Text("Hi"), End("stop")]


@pytest.mark.parametrize("wire", WIRES)
def test_events_of_unknown_kinds_are_passed_over(wire: str) -> None:
    odd = b': hm\n\nevent: new_thing\ndata: {"type": "new_thing", "x": [1]}\n\ndata: [1]\n\nretry: 10\n\n'
    assert said(read(wire, [joined(wire, "Hel", odd, "lo")])) == "Hello"


def test_half_a_character_waits_for_its_other_half() -> None:
    data = [chunk(content="a\ud83d"), chunk(content="\ude00b"), chunk(content="\ud83d"), finished("stop")]
    parts = read("openai", data)
    assert [part.text for part in parts if isinstance(part, Text)] == ["a", "😀b", "�"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_thinking(field: str) -> None:
    parts = read("openai", [chunk(**{field: "Hm."}), chunk(content="Yes."), finished("stop")])
    assert parts == [Reasoning("Hm."), Text("Yes."), End("stop")]


def test_content_in_parts_is_text_and_thinking() -> None:
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Yes."},
    ]
    parts = read("openai", [chunk(content=content), finished("stop")])
    assert parts == [Reasoning("Hm."), Text("Yes."), End("stop")]


@pytest.mark.parametrize(
    "fragments",
    [
        [
            fragment(id="call_1", function={"name": "weather", "arguments": ""}),
            fragment(function={"arguments": '{"a":'}),
            fragment(function={"arguments": "1}"}),
            fragment(id="call_2", function={"name": "clock", "arguments": "{}"}),
        ],
        [
            fragment(index=0, id="call_1", function={"name": "weather", "arguments": '{"a":1}'}),
            fragment(index=0, id="call_2", function={"name": "clock", "arguments": "{}"}),
        ],
        [
            fragment(index=1, id="call_1", function={"name": "weather", "arguments": {"a": 1}}),
            fragment(index=2, id="call_2", function={"name": "clock", "arguments": None}),
        ],
        [
            fragment(index=0, id="call_1", function={"name": "weather", "arguments": '{"a"'}),
            fragment(index=1, id="call_2", function={"name": "clock"}),
            fragment(index=0, id="call_1", function={"name": "weather", "arguments": ":1}"}),
        ],
    ],
    ids=["no index", "one index for all", "arguments as an object", "interleaved"],
)
def test_tool_calls_are_put_together_from_any_fragments(fragments: list[bytes]) -> None:
    parts = read("openai", [*fragments, finished()])
    assert parts == [
        ToolRequest("call_1", "weather", '{"a":1}'),
        ToolRequest("call_2", "clock", "{}"),
        End("tool_calls"),
    ]


@pytest.mark.parametrize("ids", [{}, {"id": ""}, {"id": None}, {"id": "same"}], ids=repr)
def test_every_call_has_an_id_of_its_own(ids: dict[str, Any]) -> None:
    data = [fragment(index=i, **ids, function={"name": "clock", "arguments": "{}"}) for i in range(3)]
    made = [call.id for call in calls(read("openai", [*data, finished()]))]
    assert len(set(made)) == 3
    assert all(made)


def test_a_call_without_a_name_is_none() -> None:
    assert read("openai", [fragment(index=0, id="x", function={"arguments": "{}"}), finished()]) == [
        End("tool_calls")
    ]


def test_usage_is_counted_wherever_it_stands() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 3}
    last = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
    assert read("openai", [chunk(content="x"), last, finished("stop")])[-1] == End("stop", 5, 3)
    odd = last.replace(b"5", b"-5").replace(b": 3", b": 1e99")
    assert read("openai", [chunk(content="x"), odd, finished("stop")])[-1] == End("stop")


def test_tokens_from_the_cache_are_of_the_prompt() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}
    start = {"type": "message_start", "message": {"usage": {**usage, "output_tokens": 1}}}
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
    data = b"".join(
        b"data: " + json.dumps(e).encode() + b"\n\n" for e in (start, delta, {"type": "message_stop"})
    )
    assert read("anthropic", [data]) == [End("end_turn", 125, 9)]


def whole(wire: str, body: dict[str, Any]) -> list[Part]:
    reading = Reading(wire)
    reading.parser.take_body(body)
    return [*reading.taken(), *reading.end(True)]


def test_a_tool_call_of_anthropic_in_one_piece_has_its_input_in_the_block() -> None:
    blocks = [
        {"type": "text", "text": "Look."},
        {"type": "tool_use", "id": "t1", "name": "clock", "input": {"zone": "utc"}},
        {"type": "text", "text": "So."},
    ]
    assert whole("anthropic", {"content": blocks, "stop_reason": "tool_use"}) == [
        Text("Look."),
        ToolRequest("t1", "clock", '{"zone":"utc"}'),
        Text("\n\n"),
        Text("So."),
        End("tool_use"),
    ]


NAMES = "choices delta message content tool_calls function id index type text usage error content_block"
ODDITIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES.split(" ")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(event=ODDITIES)
def test_no_event_breaks_a_reading(event: Any) -> None:
    kinds = ("message_start", "content_block_start", "content_block_delta", "message_delta", None)
    for wire in WIRES:
        for kind in kinds:
            reading = Reading(wire)
            message = event if isinstance(event, dict) else {"choices": [{"delta": event}], "content": event}
            reading.parser.take_event({**message, **({"type": kind} if kind else {})})
            reading.parser.take_body(message)
            reading.taken()
            reading.end(True)


def take_all(reading: Reading, events: Iterable[dict[str, Any]]) -> None:
    for event in events:
        reading.parser.take_event(event)
        reading.taken()


@pytest.mark.parametrize(
    ("wire", "event"),
    [
        ("openai", {"choices": [{"delta": {"content": "x" * 1_000_000}}]}),
        ("openai", {"choices": [{"delta": {"reasoning": "x" * 1_000_000}}]}),
        ("openai", {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": "x" * 1_000_000}}]}}]}),
        (
            "anthropic",
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x" * 1_000_000}},
        ),
    ],
    ids=["text", "thinking", "arguments", "anthropic"],
)
def test_there_is_an_end_to_what_is_read(wire: str, event: dict[str, Any]) -> None:
    with pytest.raises(AnswerTooLong):
        take_all(Reading(wire), [event] * (MAX_TEXT_CHARS // 1_000_000 + 1))


def test_calls_without_words_are_bounded_too() -> None:
    events = ({"choices": [{"delta": {"tool_calls": [{"index": i}]}}]} for i in range(MAX_TEXT_CHARS))
    with pytest.raises(AnswerTooLong):
        take_all(Reading("openai"), events)


def test_parts_are_taken_once() -> None:
    buffer = PartBuffer()
    buffer.say("a")
    assert buffer.take() == [Text("a")]
    assert buffer.take() == []


def body(wire: str, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return wire_of(wire).body("tiny", ModelRequest(messages, **fields), Dialect(), streams=True)


def test_only_what_the_wire_knows_of_a_message_is_sent() -> None:
    said = {"role": "user", "content": "Hi", "name": "Steve", "id": "m1", "created_at": "now", "x": 1}
    assert body("openai", said)["messages"] == [{"role": "user", "content": "Hi", "name": "Steve"}]
    assert body("anthropic", said)["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    ]


def test_a_completion_is_asked_for_as_the_request_says() -> None:
    asked = body("openai", {"role": "user", "content": "Hi"}, tools=[TOOL], max_tokens=9)
    assert asked == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [TOOL],
        "max_tokens": 9,
    }
    assert not {"tools", "max_tokens"} & set(body("openai", {"role": "user", "content": "Hi"}))


def called(id: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_conversation_becomes_messages_of_anthropic() -> None:
    asked = body(
        "anthropic",
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "What time is it,"},
        {"role": "user", "content": "and how is the weather?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [called("c.1", "clock", "{}"), called("c2", "weather", '{"a": 1}')],
        },
        {"role": "tool", "tool_call_id": "c.1", "content": "noon"},
        {"role": "tool", "tool_call_id": "c2", "content": "rain"},
        {"role": "user", "content": "Well?"},
        {"role": "system", "content": "Be brief."},
        tools=[TOOL],
    )
    assert asked["system"] == "Be kind.\n\nBe brief."
    assert asked["max_tokens"] == 4096
    assert asked["tools"] == [
        {"name": "clock", "description": "The time.", "input_schema": {"type": "object"}}
    ]
    assert asked["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What time is it,"},
                {"type": "text", "text": "and how is the weather?"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c_1", "name": "clock", "input": {}},
                {"type": "tool_use", "id": "c2", "name": "weather", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c_1", "content": "noon"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "rain"},
                {"type": "text", "text": "Well?"},
            ],
        },
    ]


@pytest.mark.parametrize(
    "arguments", ['{"a":', "[1]", "", None, "nonsense", "[" * 100_000], ids=lambda a: repr(a)[:12]
)
def test_arguments_that_are_no_object_do_not_break_the_conversation(arguments: Any) -> None:
    said = {"role": "assistant", "content": "Hm.", "tool_calls": [called("c1", "clock", arguments)]}
    messages = body("anthropic", {"role": "user", "content": "Hi"}, said)["messages"]
    assert messages[1]["content"][1]["input"] == {}


def test_messages_without_words_are_left_out_and_the_user_begins() -> None:
    asked = body(
        "anthropic",
        {"role": "assistant", "content": "As I said."},
        {"role": "user", "content": "  "},
        {"role": "assistant", "content": "Go on."},
        {"role": "user", "content": "Yes."},
    )
    assert [message["role"] for message in asked["messages"]] == ["user", "assistant", "user"]
    assert "system" not in asked


@pytest.mark.parametrize(
    ("described", "window"),
    [
        ({"max_model_len": 4096}, 4096),
        ({"context_length": 8192}, 8192),
        ({"meta": {"n_ctx_train": 131072}}, 131072),
        ({"meta": {"n_ctx_train": 131072, "n_ctx": 2048}}, 2048),
        ({"loaded_context_length": 2048, "max_context_length": 4096}, 2048),
        ({"max_input_tokens": 200000}, 200000),
        ({"context_length": "8192"}, 0),
        ({"context_length": True, "meta": []}, 0),
        ({}, 0),
    ],
)
def test_the_window_is_found_under_any_of_its_names(described: dict[str, Any], window: int) -> None:
    assert window_of(described) == window
