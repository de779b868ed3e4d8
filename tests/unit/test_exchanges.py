"""Which exchange a chat request carries, and that the same one is known again."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.intake.exchange import read_exchange, storable_answer

Messages = list[dict[str, Any]]


def said(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answered(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def told_to(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


NOW = 1_800_000_000_000_000
CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "clock"}}]}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "noon"}


def ids(messages: Messages, answer: str | None = None, session: str = "s") -> list[str]:
    exchange = read_exchange(messages)
    assert exchange is not None
    return [message.message_id for message in exchange.messages(session, answer, NOW)]


def test_it_is_what_the_user_said_last_and_the_answer() -> None:
    exchange = read_exchange([said("one"), answered("two"), said("three")])
    assert exchange is not None
    pair = exchange.messages("s", "four", NOW)
    assert [(message.role, message.text) for message in pair] == [
        ("user", "three"),
        ("assistant", "four"),
    ]


def test_the_rounds_of_a_tool_loop_are_one_exchange() -> None:
    asked = [said("What time is it?")]
    assert ids(asked) == ids([*asked, CALL, RESULT])
    anthropic = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "noon"}]}
    assert ids(asked) == ids([*asked, answered("let me see"), anthropic])


def test_instructions_that_change_make_no_other_exchange() -> None:
    assert (
        ids([told_to("It is 9:00."), said("hi")])
        == ids([told_to("It is 9:01."), said("hi")])
        == ids([said("hi")])
    )
    opening = {read_exchange([told_to(text), said("hi")]).opening for text in ("a", "b")}  # type: ignore[union-attr]
    assert len(opening) == 1


def test_the_same_words_later_in_a_conversation_are_another_message() -> None:
    assert ids([said("yes")]) != ids([said("yes"), answered("sure?"), said("yes")])


def test_requests_of_one_conversation_have_one_opening() -> None:
    first = read_exchange([said("Hello, I'm Ada")])
    later = read_exchange([said("Hello, I'm Ada"), answered("hi"), said("Where do I live?")])
    other = read_exchange([said("Hello, I'm Bob")])
    assert first is not None
    assert later is not None
    assert other is not None
    assert first.opening == later.opening != other.opening


def test_another_answer_is_another_message() -> None:
    assert ids([said("hi")], "a")[0] == ids([said("hi")], "b")[0]
    assert ids([said("hi")], "a")[1] != ids([said("hi")], "b")[1]


def test_of_an_image_only_its_text_is_kept() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    exchange = read_exchange([said([{"type": "text", "text": "my dog"}, image])])
    assert exchange is not None
    assert exchange.messages("s", None, NOW)[0].text == "my dog"
    assert read_exchange([said([image])]) is None


def test_a_secret_is_in_neither_text_nor_id() -> None:
    exchange = read_exchange([said("my password is hunter2")])
    assert exchange is not None
    said_again = exchange.messages("s", storable_answer("so your password is hunter2"), NOW)
    assert "hunter2" not in str(said_again)
    assert ids([said("my password is hunter2")]) == ids([said("my password is swordfish")])


def test_nothing_said_is_no_exchange() -> None:
    for messages in (
        [],
        [told_to("be brief")],
        [answered("hi")],
        [said("")],
        [said(None)],
        [said([])],
        [RESULT],
    ):
        assert read_exchange(messages) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(
        JSON | st.fixed_dictionaries({"role": st.sampled_from(["user", "system", "tool"]), "content": JSON})
    )
)
def test_any_list_is_read_without_an_error(messages: list[Any]) -> None:
    exchange = read_exchange(messages)
    assert exchange is None or exchange.messages("s", "a", NOW)[0].text
