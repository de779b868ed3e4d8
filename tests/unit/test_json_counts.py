"""What is in a JSON text, counted before it is parsed."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.text import json_counts
from shepherd_memory.text.json_counts import MAX_DEPTH, MAX_MESSAGES, MAX_VALUES, JsonCounter, exceeded_limit

TEXT = st.text(alphabet='ab,"\\[]{}:é\n', max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=30,
)


def values_in(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(values_in, inside))


def depth_of(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(depth_of, value.values() if isinstance(value, dict) else value), default=0)


def name_of(text: bytes) -> str:
    limit = exceeded_limit(text)
    return limit.name if limit else ""


def fed(text: bytes, size: int) -> str:
    """The limit that is exceeded by the time that all has come, in pieces of this size."""
    counter = JsonCounter()
    limits = [counter.feed(text[at : at + size]) for at in range(0, len(text), size)]
    return next((limit.name for limit in limits if limit), "")


@given(st.dictionaries(TEXT, JSON, max_size=4), st.integers(1, 9))
def test_a_text_is_refused_exactly_when_it_has_one_value_or_level_too_many(value: Any, size: int) -> None:
    text = orjson.dumps(value)
    with pytest.MonkeyPatch.context() as patch:
        # An empty object or list counts one more: what it holds is not looked at.
        patch.setattr(json_counts, "MAX_VALUES", values_in(value) + text.count(b"[]") + text.count(b"{}"))
        patch.setattr(json_counts, "MAX_DEPTH", depth_of(value))
        assert fed(text, size) == ""
        patch.setattr(json_counts, "MAX_DEPTH", depth_of(value) - 1)
        assert fed(text, size) == "max_depth"
        patch.setattr(json_counts, "MAX_DEPTH", depth_of(value))
        patch.setattr(json_counts, "MAX_VALUES", values_in(value) - 1)
        assert fed(text, size) == "max_values"


@given(st.lists(JSON, min_size=1, max_size=9), st.integers(1, 9))
def test_messages_are_counted_whatever_is_in_them(content: list[Any], size: int) -> None:
    messages = [{"role": "user", "content": one} for one in content]
    text = orjson.dumps({"model": "m", "messages": messages, "stop": ["a"], "user": "steve"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_counts, "MAX_MESSAGES", len(messages))
        assert fed(text, size) == ""
        patch.setattr(json_counts, "MAX_MESSAGES", len(messages) - 1)
        assert fed(text, size) == "max_messages"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b'{"messages":[' + b"{}," * MAX_MESSAGES + b"{}]}", "max_messages"),
        (b'{"messages":[' + b"1," * MAX_VALUES + b"1]}", "max_values"),
        (b"{" + b'"k":1,' * MAX_VALUES + b'"k":1}', "max_values"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "max_depth"),
        (b"[" + b'"' * (5 * MAX_VALUES), "max_values"),
        (b'{"messages":[{"content":"' + b"a, [b], {c} " * 100_000 + b'"}]}', ""),
        (b'{"messages":[{"content":"' + b'\\"a\\\\", "b":"\\\\\\\\' * 10_000 + b'"}]}', ""),
        (b'{"messages":[' + b"{}," * (MAX_MESSAGES - 1) + b"{}]}", ""),
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, ""),
        (b"A long text, with commas. " * 50_000, ""),
        (b"", ""),
        (b" ", ""),
    ],
)
def test_a_body_of_many_things_is_refused_and_a_long_text_is_not(text: bytes, name: str) -> None:
    assert name_of(text) == name
