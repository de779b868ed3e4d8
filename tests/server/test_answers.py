"""Answers are read from the providers' bytes, however the network cuts them, and no bytes make it fail."""

import gzip
import tracemalloc
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shepherd_memory.llm.answer import MAX_TEXT_CHARS, TextBuffer
from shepherd_memory.llm.decoding import READABLE, decoder_for
from shepherd_memory.llm.request import ReadAnswer
from shepherd_memory.llm.wires import StreamReader, read_body

FINAL = {"is_final": True, "failed": False}
GOES_ON = {"is_final": False, "failed": False}
NOTHING = ReadAnswer("", is_final=True, failed=True)


def openai_stream(*chunks: object, done: bool = True, between: bytes = b"\n\n") -> bytes:
    lines = [b"data: " + orjson.dumps(chunk) for chunk in chunks]
    return between.join([*lines, *([b"data: [DONE]"] if done else []), b""])


def delta(content: Any = None, finish: str | None = None, **fields: object) -> dict[str, object]:
    said = fields if content is None else {"content": content, **fields}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [{"index": 0, "delta": said, "finish_reason": finish}],
    }


def completion(message: dict[str, object], finish: str = "stop") -> dict[str, object]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
    }


def anthropic_stream(*events: dict[str, Any]) -> bytes:
    return b"".join(b"event: %b\ndata: %b\n\n" % (e["type"].encode(), orjson.dumps(e)) for e in events)


def block(kind: str, index: int = 0, **fields: object) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def piece(kind: str, index: int = 0, **fields: object) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(reason: str) -> dict[str, Any]:
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 9},
    }


BEGIN = {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}}
PING = {"type": "ping"}
BLOCK_END = {"type": "content_block_stop", "index": 0}
END = {"type": "message_stop"}
USAGE = {"id": "chatcmpl-1", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ""}}
CALL_REST = {"index": 0, "function": {"arguments": '{"city":"Graz"}'}}

OPENAI_STREAMS = {
    "openai": (
        openai_stream(
            delta("", role="assistant", refusal=None),
            delta("Grüß"),
            delta(" dich, 日本 😀"),
            delta(finish="stop"),
            USAGE,
        ),
        ReadAnswer("Grüß dich, 日本 😀", **FINAL),
    ),
    "azure, whose first chunk has no choice": (
        openai_stream(
            {"id": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
            delta("", role="assistant"),
            delta("Yes."),
            delta(finish="stop"),
        ),
        ReadAnswer("Yes.", **FINAL),
    ),
    "llama.cpp": (
        b'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],'
        b'"created":1,"model":"q","object":"chat.completion.chunk"}\n\n'
        b'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hi"}}],"created":1}\n\n'
        b'data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"timings":{"prompt_ms":1.5}}\n\n'
        b"data: [DONE]\n\n",
        ReadAnswer("Hi", **FINAL),
    ),
    "llama.cpp, breaking off with a field of its own": (
        openai_stream(delta("Hi"), done=False) + b'error: {"code":500,"message":"out of slots"}\n\n',
        ReadAnswer("Hi", is_final=True, failed=True),
    ),
    "vllm, with reasoning and empty tool calls": (
        openai_stream(
            delta("", role="assistant"),
            delta(reasoning_content="They greet me."),
            delta("Hello", reasoning_content=None, tool_calls=[]),
            delta("", finish="stop", stop_reason=None),
        ),
        ReadAnswer("Hello", **FINAL),
    ),
    "vllm, with NaN among the logprobs": (
        b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},'
        b'"logprobs":{"content":[{"logprob":NaN}]}}]}\n\n'
        b"data: [DONE]\n\n",
        ReadAnswer("Hi", **FINAL),
    ),
    "ollama": (
        openai_stream(
            {
                "id": "chatcmpl-9",
                "model": "llama3",
                "choices": [
                    {"index": 0, "delta": {"role": "assistant", "content": "Hey"}, "finish_reason": None}
                ],
            },
            {
                "id": "chatcmpl-9",
                "choices": [
                    {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
                ],
            },
        ),
        ReadAnswer("Hey", **FINAL),
    ),
    "ollama, breaking off with a bare line": (
        openai_stream(delta("Hey"), done=False) + b'{"error":"model runner has stopped"}',
        ReadAnswer("Hey", is_final=True, failed=True),
    ),
    "openrouter, with comments and an error inside the choice": (
        b": OPENROUTER PROCESSING\n\n"
        + openai_stream({"choices": [{"index": 0, "delta": {"content": "He"}, "error": {"code": 502}}]}),
        ReadAnswer("He", is_final=True, failed=True),
    ),
    "a local model that thinks in its answer": (
        openai_stream(delta("<thi"), delta("nk>Hm."), delta("</think>\n\n"), delta("Yes.", finish="stop")),
        ReadAnswer("Yes.", **FINAL),
    ),
    "mistral, with parts": (
        openai_stream(
            delta([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]),
            delta([{"type": "text", "text": "Bon"}, {"type": "reference", "reference_ids": [1]}]),
            delta([{"type": "text", "text": "jour"}], finish="stop"),
        ),
        ReadAnswer("Bonjour", **FINAL),
    ),
    "tool calls": (
        openai_stream(
            delta("I will look.", role="assistant"),
            delta(tool_calls=[CALL]),
            delta(tool_calls=[CALL_REST]),
            delta(finish="tool_calls"),
        ),
        ReadAnswer("I will look.", **GOES_ON),
    ),
    "tool calls of a server that says stop": (
        openai_stream(delta(tool_calls=[CALL]), delta(finish="stop")),
        ReadAnswer("", **GOES_ON),
    ),
    "a function call of old": (
        openai_stream(delta(function_call={"name": "f"}), delta(finish="function_call")),
        ReadAnswer("", **GOES_ON),
    ),
    "a refusal": (
        openai_stream(delta(refusal="I can"), delta(refusal="not."), delta(finish="stop")),
        ReadAnswer("I cannot.", **FINAL),
    ),
    "several choices": (
        openai_stream(
            delta("one"),
            {"choices": [{"index": 1, "delta": {"content": "two"}, "finish_reason": "tool_calls"}]},
            delta(finish="stop"),
        ),
        ReadAnswer("one", **FINAL),
    ),
    "no end marker": (openai_stream(delta("Hi"), done=False), ReadAnswer("Hi", **FINAL)),
    "no end marker and no line end": (
        openai_stream(delta("Hi"), delta(" you"), done=False).rstrip(b"\n"),
        ReadAnswer("Hi you", **FINAL),
    ),
    "no line end after the end marker": (openai_stream(delta("Hi")).rstrip(b"\n"), ReadAnswer("Hi", **FINAL)),
    "an error in place of an answer": (
        openai_stream({"error": {"message": "overloaded", "type": "server_error"}}, done=False),
        NOTHING,
    ),
    "an error event": (
        b'event: error\ndata: {"message":"x"}\n\ndata: [DONE]\n\n',
        NOTHING,
    ),
    "an error that is null": (openai_stream({**delta("Hi"), "error": None}), ReadAnswer("Hi", **FINAL)),
    "no choices at all": (openai_stream({"choices": []}), NOTHING),
    "nothing": (b"", NOTHING),
    "only keep-alives": (b"\n\n: ping\n\ndata:\n\n", NOTHING),
    "an unreadable line": (
        b'data: {"choices":[{"index":0,"delta":{"con\n\n' + openai_stream(delta("Hi")),
        ReadAnswer("Hi", **FINAL),
    ),
    "an unreadable line in the same event": (
        b"data: nonsense\n" + openai_stream(delta("Hi"), between=b"\n"),
        ReadAnswer("Hi", **FINAL),
    ),
    "a surrogate pair cut in two": (
        b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n'
        b'data: {"choices":[{"delta":{"content":"\\ude00"}}]}\n\n'
        b"data: [DONE]\n\n",
        ReadAnswer("😀", **FINAL),
    ),
    "UTF-8 cut at a token's end": (
        b'data: {"choices":[{"delta":{"content":"a\xe6\x97"}}]}\n\ndata: [DONE]\n\n',
        ReadAnswer("a\ufffd", **FINAL),
    ),
}

ANTHROPIC_STREAMS = {
    "text": (
        anthropic_stream(
            BEGIN,
            block("text", text=""),
            PING,
            piece("text_delta", text="Grüß"),
            piece("text_delta", text=" dich 😀"),
            BLOCK_END,
            stop("end_turn"),
            END,
        ),
        ReadAnswer("Grüß dich 😀", **FINAL),
    ),
    "thinking, text and a tool": (
        anthropic_stream(
            BEGIN,
            block("thinking", thinking=""),
            piece("thinking_delta", thinking="They ask for the weather."),
            piece("signature_delta", signature="abc"),
            block("text", 1, text=""),
            piece("text_delta", 1, text="I will look."),
            block("tool_use", 2, id="toolu_1", name="weather", input={}),
            piece("input_json_delta", 2, partial_json='{"city":'),
            stop("tool_use"),
            END,
        ),
        ReadAnswer("I will look.", **GOES_ON),
    ),
    "a search with citations": (
        anthropic_stream(
            BEGIN,
            block("text", text=""),
            piece("text_delta", text="I will search."),
            block("server_tool_use", 1, id="srvtoolu_1", name="web_search", input={}),
            block("web_search_tool_result", 2, content=[]),
            block("text", 3, text=""),
            piece("text_delta", 3, text="The tower is "),
            block("text", 4, text=""),
            piece("citations_delta", 4, citation={"cited_text": "330 m"}),
            piece("text_delta", 4, text="330 m high"),
            block("text", 5, text=""),
            piece("text_delta", 5, text="."),
            stop("end_turn"),
            END,
        ),
        ReadAnswer("I will search.\n\nThe tower is 330 m high.", **FINAL),
    ),
    "a pause": (
        anthropic_stream(BEGIN, block("text", text="Searching"), stop("pause_turn"), END),
        ReadAnswer("Searching", **GOES_ON),
    ),
    "no words": (anthropic_stream(BEGIN, stop("end_turn"), END), ReadAnswer("", **FINAL)),
    "no end": (
        anthropic_stream(BEGIN, block("text", text=""), piece("text_delta", text="Hi")),
        ReadAnswer("Hi", **FINAL),
    ),
    "an error": (
        anthropic_stream(
            BEGIN,
            block("text", text="Hi"),
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ),
        ReadAnswer("Hi", is_final=True, failed=True),
    ),
    "only the beginning": (anthropic_stream(BEGIN), NOTHING),
    "no names of events": (
        b"".join(
            b"data: %b\n\n" % orjson.dumps(event)
            for event in (BEGIN, block("text", text="a message_stop "), piece("text_delta", text="b"), END)
        ),
        ReadAnswer("a message_stop b", **FINAL),
    ),
}

BODIES = {
    "openai": ("openai", completion({"content": "Hi", "refusal": None}), ReadAnswer("Hi", **FINAL)),
    "parts": ("openai", completion({"content": [{"type": "text", "text": "Hi"}]}), ReadAnswer("Hi", **FINAL)),
    "refusal": ("openai", completion({"content": None, "refusal": "No."}), ReadAnswer("No.", **FINAL)),
    "vllm": (
        "openai",
        completion({"content": "Hi", "reasoning_content": "Hm.", "tool_calls": [], "function_call": None}),
        ReadAnswer("Hi", **FINAL),
    ),
    "tools": (
        "openai",
        completion({"content": None, "tool_calls": [CALL]}, "tool_calls"),
        ReadAnswer("", **GOES_ON),
    ),
    "tools and stop": (
        "openai",
        completion({"content": "", "tool_calls": [CALL]}),
        ReadAnswer("", **GOES_ON),
    ),
    "function": ("openai", completion({"content": None}, "function_call"), ReadAnswer("", **GOES_ON)),
    "filtered": ("openai", completion({"content": ""}, "content_filter"), ReadAnswer("", **FINAL)),
    "error": ("openai", {"error": {"message": "no credit", "code": 402}}, NOTHING),
    "old error": ("openai", {"object": "error", "message": "no such model"}, NOTHING),
    "no choices": ("openai", {"choices": []}, NOTHING),
    "choices null": ("openai", {"choices": None}, NOTHING),
    "a list": ("openai", [], NOTHING),
    "anthropic": (
        "anthropic",
        {
            "type": "message",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "text", "text": "Hi"},
                {"type": "text", "text": " there"},
            ],
            "stop_reason": "end_turn",
        },
        ReadAnswer("Hi there", **FINAL),
    ),
    "anthropic tools": (
        "anthropic",
        {"type": "message", "content": [{"type": "tool_use", "name": "f"}], "stop_reason": "tool_use"},
        ReadAnswer("", **GOES_ON),
    ),
    "anthropic pause": ("anthropic", {"content": [], "stop_reason": "pause_turn"}, ReadAnswer("", **GOES_ON)),
    "anthropic error": ("anthropic", {"type": "error", "error": {"type": "api_error"}}, NOTHING),
    "anthropic empty": ("anthropic", {}, NOTHING),
}


def item(text: str = "", kind: str = "message", **fields: object) -> dict[str, Any]:
    if kind != "message":
        return {"type": kind, "id": "x_1", **fields}
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": kind, "id": "msg_1", "role": "assistant", "content": [part], **fields}


def done(item: dict[str, Any], at: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": at, "item": item}


def said(text: object, at: object = 0, kind: str = "output_text") -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": at, "item_id": "msg_1", "delta": text}


def response(*output: dict[str, Any], status: str = "completed", **fields: object) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": status, "output": list(output), **fields}


def last(status: str = "completed", *output: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": response(*output, status=status, **fields)}


CREATED = {"type": "response.created", "response": response(status="in_progress")}
LOOKED_UP = {"kind": "function_call", "call_id": "1", "name": "weather", "arguments": "{}"}
CUT_SHORT = {"incomplete_details": {"reason": "max_output_tokens"}}
RESPONSES_ENDS = (
    last(),
    last("completed", item("Hi")),
    last("completed", item("I will look."), item(**LOOKED_UP)),
    last("incomplete", **CUT_SHORT),
    last("failed", error={"code": "server_error", "message": "no"}),
    {"type": "response.failed"},
    {"type": "response.completed", "response": [5]},
)
WITH_ID = {"response_id": "resp_1"}
BROKEN = {"is_final": True, "failed": True}
RESPONSES_STREAMS = {
    "text": (
        anthropic_stream(
            CREATED, said("Grüß "), said("dich 😀"), done(item("Grüß dich 😀")), RESPONSES_ENDS[0]
        ),
        ReadAnswer("Grüß dich 😀", **FINAL, **WITH_ID),
    ),
    "text in the items only": (
        anthropic_stream(CREATED, done(item("Hi")), RESPONSES_ENDS[1]),
        ReadAnswer("Hi", **FINAL, **WITH_ID),
    ),
    "text in the last event only": (
        anthropic_stream(CREATED, RESPONSES_ENDS[1]),
        ReadAnswer("Hi", **FINAL, **WITH_ID),
    ),
    "the last event alone": (anthropic_stream(RESPONSES_ENDS[1]), ReadAnswer("Hi", **FINAL, **WITH_ID)),
    "a tool call": (
        anthropic_stream(
            CREATED,
            said("I will look."),
            done(item("I will look.")),
            done(item(**LOOKED_UP), 1),
            RESPONSES_ENDS[2],
        ),
        ReadAnswer("I will look.", **GOES_ON, **WITH_ID),
    ),
    "a tool call in the last event only": (
        anthropic_stream(CREATED, RESPONSES_ENDS[2]),
        ReadAnswer("I will look.", **GOES_ON, **WITH_ID),
    ),
    "a search between two messages": (
        anthropic_stream(
            *(CREATED, said("I will search."), done(item("I will search."))),
            *(done(item(kind="web_search_call"), 1), said("It is ", 2), said("330 m.", 2)),
            *(done(item("It is 330 m."), 2), RESPONSES_ENDS[0]),
        ),
        ReadAnswer("I will search.\n\nIt is 330 m.", **FINAL, **WITH_ID),
    ),
    "thoughts": (
        anthropic_stream(
            *(CREATED, {"type": "response.reasoning_text.delta", "delta": "Hm"}),
            *(
                done(item(kind="reasoning", content=[{"type": "reasoning_text", "text": "Hm"}])),
                said("Hi", 1),
            ),
            RESPONSES_ENDS[0],
        ),
        ReadAnswer("Hi", **FINAL, **WITH_ID),
    ),
    "thoughts in the text": (
        anthropic_stream(CREATED, said("<think>Hm</think>Hi"), RESPONSES_ENDS[0]),
        ReadAnswer("Hi", **FINAL, **WITH_ID),
    ),
    "a refusal": (
        anthropic_stream(
            CREATED, said("I can", kind="refusal"), said("not.", kind="refusal"), RESPONSES_ENDS[0]
        ),
        ReadAnswer("I cannot.", **FINAL, **WITH_ID),
    ),
    "cut short": (
        anthropic_stream(CREATED, said("Hi"), RESPONSES_ENDS[3]),
        ReadAnswer("Hi", **FINAL, **WITH_ID),
    ),
    "failed": (
        anthropic_stream(CREATED, said("Hi"), RESPONSES_ENDS[4]),
        ReadAnswer("Hi", **BROKEN, **WITH_ID),
    ),
    "failed without a word": (
        anthropic_stream(CREATED, RESPONSES_ENDS[5]),
        ReadAnswer("", **BROKEN, **WITH_ID),
    ),
    "an error": (
        anthropic_stream(CREATED, said("Hi"), {"type": "error", "code": "x", "message": "no"}),
        ReadAnswer("Hi", **BROKEN, **WITH_ID),
    ),
    "an end of another kind": (
        anthropic_stream(CREATED, said("Hi"), RESPONSES_ENDS[6]),
        ReadAnswer("Hi", **FINAL, **WITH_ID),
    ),
    "no end": (anthropic_stream(CREATED, said("Hi")), ReadAnswer("Hi", **FINAL, **WITH_ID)),
    "events without names": (
        openai_stream(CREATED, said("Hi"), RESPONSES_ENDS[0], done=False),
        ReadAnswer("Hi", **FINAL, **WITH_ID),
    ),
    "a surrogate pair cut in two": (
        b'data: {"type":"response.output_text.delta","delta":"\\ud83d"}\n\n'
        b'data: {"type":"response.output_text.delta","delta":"\\ude00"}\n\n',
        ReadAnswer("😀", **FINAL),
    ),
    "text that looks like the end": (
        anthropic_stream(CREATED, said('data: {"type":"response.completed"}'), RESPONSES_ENDS[0]),
        ReadAnswer('data: {"type":"response.completed"}', **FINAL, **WITH_ID),
    ),
    "nothing yet": (anthropic_stream(CREATED), ReadAnswer("", **BROKEN, **WITH_ID)),
}
RESPONSES_BODIES = {
    "text": (response(item("Hi")), ReadAnswer("Hi", **FINAL, **WITH_ID)),
    "messages": (
        response(item("One"), item(kind="reasoning"), item("Two")),
        ReadAnswer("One\n\nTwo", **FINAL, **WITH_ID),
    ),
    "refusal": (
        response({**item(), "content": [{"type": "refusal", "refusal": "No."}]}),
        ReadAnswer("No.", **FINAL, **WITH_ID),
    ),
    "function": (response(item("Hm"), item(**LOOKED_UP)), ReadAnswer("Hm", **GOES_ON, **WITH_ID)),
    **{
        kind: (response(item(kind=kind)), ReadAnswer("", **GOES_ON, **WITH_ID))
        for kind in ("custom_tool_call", "local_shell_call", "computer_call", "mcp_approval_request")
    },
    **{
        f"{kind} of the provider": (
            response(item(kind=kind), item("Hi")),
            ReadAnswer("Hi", **FINAL, **WITH_ID),
        )
        for kind in ("web_search_call", "file_search_call", "code_interpreter_call", "mcp_call")
    },
    "a shell of the provider": (
        response(item(kind="shell_call"), item(kind="shell_call_output"), item("Hi")),
        ReadAnswer("Hi", **FINAL, **WITH_ID),
    ),
    "incomplete": (
        response(item("Hi"), status="incomplete", **CUT_SHORT),
        ReadAnswer("Hi", **FINAL, **WITH_ID),
    ),
    "failed": (
        response(status="failed", error={"code": "server_error"}),
        ReadAnswer("", **BROKEN, **WITH_ID),
    ),
    "cancelled": (response(item("Hi"), status="cancelled"), ReadAnswer("Hi", **BROKEN, **WITH_ID)),
    "queued": (response(status="queued"), ReadAnswer("", **BROKEN, **WITH_ID)),
    "error": ({"error": {"message": "no"}}, NOTHING),
    "empty": ({}, NOTHING),
    "an id of another kind": (
        {**response(item("Hi")), "id": {"a": 1}},
        ReadAnswer("Hi", **FINAL),
    ),
    "an id without end": ({**response(item("Hi")), "id": "r" * 5_000}, ReadAnswer("Hi", **FINAL)),
}
BODIES |= {
    f"responses {name}": ("responses", body, answer) for name, (body, answer) in RESPONSES_BODIES.items()
}

STREAMS = [
    pytest.param(wire, stream, answer, id=f"{wire}: {name}")
    for wire, streams in (
        ("openai", OPENAI_STREAMS),
        ("anthropic", ANTHROPIC_STREAMS),
        ("responses", RESPONSES_STREAMS),
    )
    for name, (stream, answer) in streams.items()
]
RECORDED = st.sampled_from([(str(p.values[0]), p.values[1], p.values[2]) for p in STREAMS])
LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
MARKERS = {
    "openai": (b"data: [DONE]",),
    "anthropic": (b"event: message_stop", b'data: {"type":"message_stop"}'),
    "responses": tuple(b"data: " + orjson.dumps(event) for event in RESPONSES_ENDS),
}
WIRES = list(MARKERS)


def cut(stream: bytes, places: Sequence[int]) -> Iterator[bytes]:
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return (stream[start:end] for start, end in pairwise(edges))


def released(reader: StreamReader, chunks: Iterator[bytes]) -> tuple[bytes, bytes]:
    """What goes out before the end is seen, and what is held back or comes after it."""
    before, after = b"", b""
    for chunk in chunks:
        count = 0 if reader.ended else reader.feed(chunk)
        before, after = before + chunk[:count], after + chunk[count:]
    return before, after


@pytest.mark.parametrize(("wire", "stream", "answer"), STREAMS)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_stream_is_read_as_what_the_assistant_said(
    wire: str, stream: bytes, answer: ReadAnswer, size: int
) -> None:
    reader = StreamReader(wire)
    for start in range(0, len(stream), size):
        reader.feed(stream[start : start + size])
    assert reader.answer() == answer
    assert reader.answer() == answer


@pytest.mark.parametrize(("wire", "body", "answer"), BODIES.values(), ids=BODIES)
def test_a_body_is_read_as_what_the_assistant_said(wire: str, body: object, answer: ReadAnswer) -> None:
    assert read_body(wire, orjson.dumps(body)) == answer
    assert read_body(wire, b"\xef\xbb\xbf" + orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n") == answer


@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b'{"choices":[{"mess', b"null", b"\xff"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_body_that_is_no_answer_has_failed(wire: str, body: bytes) -> None:
    assert read_body(wire, body) == NOTHING


@given(RECORDED, LINE_ENDS, st.booleans(), st.lists(st.integers(0)))
def test_the_answer_is_the_same_however_the_stream_is_cut(
    recorded: tuple[str, bytes, ReadAnswer], line_end: bytes, marked: bool, places: list[int]
) -> None:
    wire, stream, answer = recorded
    reader = StreamReader(wire)
    for chunk in cut(b"\xef\xbb\xbf" * marked + stream.replace(b"\n", line_end), places):
        reader.feed(chunk)
    assert reader.answer() == answer


@given(RECORDED, LINE_ENDS, st.lists(st.integers(0)))
def test_the_end_is_held_back_and_nothing_else_is(
    recorded: tuple[str, bytes, ReadAnswer], line_end: bytes, places: list[int]
) -> None:
    wire, stream, _ = recorded
    stream = stream.replace(b"\n", line_end)
    reader = StreamReader(wire)
    before, after = released(reader, cut(stream, places))
    assert before + after == stream
    assert reader.ended == any(marker in stream for marker in MARKERS[wire])
    assert not any(marker in before for marker in MARKERS[wire])
    if not reader.ended:
        assert before == stream


@pytest.mark.parametrize(
    ("wire", "chunks", "counts"),
    [
        ("openai", [b"data: {}\n\ndata: [DONE]\n\n"], [10]),
        ("openai", [b"data: {}\n\n", b"data: [DONE]\n\n"], [10, 0]),
        ("openai", [b"data: {}\n\ndata: [DO", b"NE]\n\n"], [19, 0]),
        ("openai", [b"data: {}\n\ndata: [DONE]"], [10]),
        ("openai", [b"data:[DONE]\r\n\r\n"], [0]),
        ("openai", [b"data: {}\r", b"\n\r\ndata: [DONE]\r\n"], [9, 3]),
        ("openai", [b"data: [DONE]\n", b"\n"], [0, 1]),
        ("anthropic", [b"data: {}\n\nevent: message_stop\ndata: {}\n\n"], [10]),
        ("anthropic", [b"data: {}\n\nevent: mess", b"age_stop\n", b"data: {}\n\n"], [21, 0, 10]),
        ("anthropic", [b'data: {"type":"ping"}\n\ndata: {"type": "message_stop"}\n\n'], [23]),
        ("anthropic", [b'data: {"type":"message_stop"', b"}"], [28, 0]),
        (
            "responses",
            [b'data: {}\n\nevent: response.completed\ndata: {"type":"response.completed"}\n\n'],
            [36],
        ),
        ("responses", [b"event: response.failed\n", b'data: {"type":"response.failed"}\n\n'], [23, 0]),
        ("responses", [b'data: {"type":"response.incomplete"', b"}"], [35, 0]),
    ],
)
def test_the_bytes_before_the_end_are_counted(wire: str, chunks: list[bytes], counts: list[int]) -> None:
    reader = StreamReader(wire)
    assert [reader.feed(chunk) for chunk in chunks] == counts
    assert reader.ended


@pytest.mark.parametrize(
    "stream",
    [
        b'data:{"choices":[{"delta":{"content":"Hi"}}]}\n\n',
        b'id: 7\nretry: 10\nevent: message\ndata: {"choices":[{"delta":{"content":"Hi"}}]}\n\n',
        b'data: {"choices":\ndata: [{"delta":\n: between\ndata: {"content":"Hi"}}]}\n\n',
        b'data: {"choices":\ndata:\ndata: [{"delta":{"content":"Hi"}}]}',
        b'data: \t{"choices":[{"delta":{"content":"Hi"}}]} \n',
        b'data\n\ndata: [1]\n\ndata: {"choices":[{"delta":{"content":"Hi"}}]}\n\n',
    ],
)
@given(LINE_ENDS, st.lists(st.integers(0)))
def test_every_way_of_writing_an_event_is_read(stream: bytes, line_end: bytes, places: list[int]) -> None:
    reader = StreamReader("openai")
    for chunk in cut(stream.replace(b"\n", line_end), places):
        assert reader.feed(chunk) == len(chunk)
    assert reader.answer() == ReadAnswer("Hi", **FINAL)


def test_an_answer_asked_for_in_mid_stream_leaves_the_rest_readable() -> None:
    stream = openai_stream(delta("one "), delta("two "), delta("three"))
    whole = StreamReader("openai")
    for position in range(len(stream)):
        whole.feed(stream[position : position + 1])
        assert "one two three".startswith(whole.answer().text)
    assert whole.answer().text == "one two three"


ALMOST = st.lists(
    st.sampled_from(
        [
            *(b"data:", b"event:", b" ", b"\n", b"\r", b"[DONE]", b"error", b"message_stop", b"\xef\xbb\xbf"),
            *(
                b'{"choices":',
                b"[",
                b"]",
                b"{",
                b"}",
                b'"delta":',
                b'"content":',
                b"null",
                b"5",
                b'"x"',
                b",",
            ),
            *(
                b'"response.completed"',
                b'"response.output_text.delta"',
                b'"response":',
                b'"output":',
                b'"item":',
            ),
            *(b'"type":', b'"content_block_delta"', b'"text"', b'"index":', b'"error":', b"NaN", b"\xff"),
        ]
    )
).map(b"".join)


@given(st.sampled_from(WIRES), st.binary() | ALMOST, st.lists(st.integers(0)))
@example("openai", b"data: " + b"[" * 100_000 + b"}\n\n", [])
@example("openai", b'data: {"a":' + b"9" * 10_000 + b"}\n\n", [])
@example("openai", b"\xef\xbb\xbf" * 10_000 + b"\n", [])
def test_no_bytes_make_a_reader_fail(wire: str, stream: bytes, places: list[int]) -> None:
    reader = StreamReader(wire)
    before, after = released(reader, cut(stream, places))
    assert before + after == stream
    assert isinstance(reader.answer(), ReadAnswer)
    assert isinstance(read_body(wire, stream), ReadAnswer)


WRONG = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["text", "text_delta", "error", "", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "choices", "delta", "message", "content", "text", "error", "index"])
            | st.sampled_from(["finish_reason", "stop_reason", "tool_calls", "refusal", "content_block"])
            | st.sampled_from(["output", "response", "item", "output_index", "status", "id", "usage"]),
            inner,
        )
    ),
)
KINDS = st.sampled_from(
    [
        *("content_block_delta", "content_block_start", "message_delta", "message", "error"),
        *("response.created", "response.output_item.done", "response.output_text.delta"),
        *("response.refusal.delta", "response.completed", "response.incomplete", "response.failed"),
    ]
)


@given(st.sampled_from(WIRES), KINDS, st.dictionaries(st.just("choices"), WRONG), WRONG)
def test_no_json_makes_a_reader_fail(wire: str, kind: str, choices: dict[str, Any], value: Any) -> None:
    event = {"type": kind, "delta": value, "content_block": value, "content": value, **choices}
    event |= {"response": value, "item": value, "output": [value], "output_index": value}
    reader = StreamReader(wire)
    for data in (value, event, {"choices": [event, value]}, {"choices": value}):
        reader.feed(b"data: " + orjson.dumps(data) + b"\n\n")
        assert isinstance(read_body(wire, orjson.dumps(data)), ReadAnswer)
    assert isinstance(reader.answer(), ReadAnswer)


@given(st.integers(1, 200), st.lists(st.integers(0)))
def test_a_line_that_is_too_long_is_left_out_however_it_is_cut(longest: int, places: list[int]) -> None:
    events = [delta("x" * size) for size in (0, 5, 60, 200)]
    fitting = [e for e in events if len(b"data: " + orjson.dumps(e)) <= longest]
    reader = StreamReader("openai", longest)
    before, _ = released(reader, cut(openai_stream(*events), places))
    assert reader.ended == (longest >= len(b"data: [DONE]"))
    assert reader.answer().text == "".join(e["choices"][0]["delta"]["content"] for e in fitting)  # type: ignore[index]
    assert b"[DONE]" not in before or not reader.ended


@pytest.mark.parametrize("chunk", [b"data: " + b"x" * 500, b"data: [\n", b"data: " + b"x" * 5_000 + b"\n"])
def test_lines_and_events_without_end_are_not_kept(chunk: bytes) -> None:
    reader = StreamReader("openai", max_line_bytes=1_000)
    tracemalloc.start()
    for _ in range(10_000):
        assert reader.feed(chunk) == len(chunk)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 100_000
    reader.feed(b"\n\n" + openai_stream(delta("Hi")))
    assert reader.answer() == ReadAnswer("Hi", **FINAL)


def test_a_text_buffer_keeps_only_so_much_text() -> None:
    buffer = TextBuffer(max_chars=5)
    for text in ("ab", "", "cdef", "g"):
        buffer.add(text)
    assert buffer.text() == "abcde"


def test_text_beyond_the_limit_is_not_kept() -> None:
    reader = StreamReader("openai")
    for _ in range(9):
        reader.feed(openai_stream(delta("x" * (MAX_TEXT_CHARS // 8)), done=False))
    assert reader.answer() == ReadAnswer("x" * MAX_TEXT_CHARS, **FINAL)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def gzip_members(data: bytes) -> bytes:
    return gzip.compress(data[:10]) + gzip.compress(b"") + gzip.compress(data[10:])


CODED = [
    ("", bytes),
    ("identity", bytes),
    ("gzip", gzip.compress),
    ("GZIP", gzip_members),
    ("x-gzip", gzip.compress),
    ("gzip", lambda data: gzip.compress(data) + b"\0" * 40),
    ("gzip", lambda data: gzip.compress(data) + b"junk that clients ignore"),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("gzip, identity", gzip.compress),
    ("deflate , gzip", lambda data: gzip.compress(zlib.compress(data))),
    ("gzip,gzip", lambda data: gzip.compress(gzip.compress(data))),
]


@given(st.sampled_from(CODED), st.binary(), st.lists(st.integers(0)))
def test_encoded_bytes_are_read_however_they_are_cut(
    coded: tuple[str, Any], plain: bytes, places: list[int]
) -> None:
    encoding, encode = coded
    decoder = decoder_for(encoding)
    assert decoder is not None
    assert b"".join(decoder.feed(chunk) for chunk in cut(encode(plain), places)) == plain
    assert not decoder.broken
    assert not decoder.exhausted


def test_a_compressed_stream_gives_each_event_when_it_comes() -> None:
    packer = zlib.compressobj(wbits=31)
    decoder = decoder_for("gzip")
    assert decoder is not None
    for event in (b"data: 1\n\n", b"data: 2\n\n", b"data: [DONE]\n\n"):
        assert decoder.feed(packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH)) == event


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "compress", "aws-chunked", "gzip," * 6])
def test_there_is_no_decoder_for_what_cannot_be_read(encoding: str) -> None:
    assert decoder_for(encoding) is None


def test_every_readable_coding_has_a_decoder() -> None:
    assert all(decoder_for(name) is not None for name in READABLE)


@pytest.mark.parametrize(("encoding", "encode"), CODED[2:])
def test_a_decompression_bomb_stops_at_the_limit(encoding: str, encode: Any) -> None:
    decoder = decoder_for(encoding, max_output_bytes=1_000)
    assert decoder is not None
    assert len(decoder.feed(encode(b"x" * 1_000_000))) <= 1_000
    assert decoder.exhausted
    assert decoder.feed(encode(b"x")) == b""


def test_output_up_to_the_limit_is_no_bomb() -> None:
    decoder = decoder_for("gzip", max_output_bytes=1_000)
    assert decoder is not None
    assert decoder.feed(gzip.compress(b"x" * 1_000)) == b"x" * 1_000
    assert not decoder.exhausted
    assert decoder.feed(gzip.compress(b"x")) == b""
    assert decoder.exhausted


@given(st.sampled_from(["gzip", "deflate", "gzip, deflate"]), st.lists(st.binary()))
def test_broken_data_breaks_the_decoder_and_raises_nothing(encoding: str, chunks: list[bytes]) -> None:
    decoder = decoder_for(encoding)
    assert decoder is not None
    for chunk in chunks:
        was_broken = decoder.broken
        plain = decoder.feed(chunk)
        assert not (was_broken and plain)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_data_of_another_coding_is_broken(encoding: str) -> None:
    decoder = decoder_for(encoding)
    assert decoder is not None
    assert decoder.feed(b'\xff{"choices": []}') == b""
    assert decoder.broken
    assert decoder.feed(gzip.compress(b"x")) == b""
