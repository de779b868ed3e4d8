"""Messages as they come from chat programs, read into what is stored of them."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.intake.messages import Message, read_messages, text_of
from shepherd_memory.text.canonical import canonical_text

NOW = 1_800_000_000_000_000


def read(message: Any, session: str = "s") -> Message:
    (found,), skipped = read_messages([message], session, NOW)
    assert skipped == []
    return found


def test_a_plain_message_has_everything_in_its_columns() -> None:
    message = read({"role": "user", "content": "hello", "id": "m1", "speaker_name": "Ada"})
    assert message == Message("m1", "user", "hello", None, "Ada", "human", "", NOW)


def test_what_has_no_column_is_kept() -> None:
    message = read(
        {"role": "assistant", "content": "hi", "refusal": None, "logprobs": {"a": 1}, "name": "Max"}
    )
    assert message.extra is not None
    assert orjson.loads(message.extra) == {"logprobs": {"a": 1}, "name": "Max"}
    assert (message.speaker_name, message.speaker_type) == ("Max", "agent")


def test_what_a_message_without_an_id_says_depends_on_session_role_time_and_content() -> None:
    base = {"role": "user", "content": "hello"}
    variants = [
        read(base).message_id,
        read(base, "other").message_id,
        read({**base, "content": "bye"}).message_id,
        read({**base, "role": "assistant"}).message_id,
        read({**base, "created_at": "2026-01-01"}).message_id,
        read({**base, "more": 1}).message_id,
    ]
    assert len(set(variants)) == len(variants)
    assert read(base).message_id == read(dict(base)).message_id
    assert (read(base).is_unnamed, read({**base, "id": 7}).is_unnamed) == (True, False)


def test_a_derived_id_does_not_depend_on_when_the_message_is_handed_in() -> None:
    message = {"role": "user", "content": "hello"}
    early, late = (read_messages([message], "s", now)[0][0] for now in (NOW, NOW + 1))
    assert early.message_id == late.message_id


@pytest.mark.parametrize("given_id", [0, 7, 1.5, ["a"], {"a": 1}, "x" * 1000, "a\0b"])
def test_any_id_is_made_storable_and_stays_the_same(given_id: Any) -> None:
    message = {"role": "user", "content": "hello", "id": given_id}
    assert read(message).message_id == read(message).message_id
    assert 0 < len(read(message).message_id) <= 256
    assert canonical_text(read(message).message_id) == read(message).message_id


@pytest.mark.parametrize("empty", [None, ""])
def test_an_empty_id_is_none(empty: Any) -> None:
    assert len(read({"role": "user", "content": "hello", "id": empty}).message_id) == 32


def test_secrets_are_out_of_every_part() -> None:
    secret = "ghp_" + "aB3dE5fG7hI9" * 3
    call = {"function": {"name": secret, "arguments": secret}}
    message = read(
        {"role": "user", "content": secret, "id": secret, "name": secret, "tool_calls": [call], "x": [secret]}
    )
    assert secret not in repr(message)


def test_parts_are_joined_and_everything_but_text_is_left_to_extra() -> None:
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "u"}},
        "b",
        {"text": "c"},
    ]
    assert text_of(parts) == "a\nb\nc"
    message = read({"role": "user", "content": parts})
    assert message.extra is not None
    assert orjson.loads(message.extra)["content"] == parts


@given(st.lists(st.one_of(st.none(), st.integers(), st.text(), st.dictionaries(st.text(), st.none()))))
def test_what_is_no_message_is_skipped_by_its_index(messages: list[Any]) -> None:
    found, skipped = read_messages(messages, "s", NOW)
    assert found == []
    assert [entry.index for entry in skipped] == list(range(len(messages)))
