"""Text and JSON at the boundary: always storable, the same when done twice."""

import math
from datetime import UTC, date, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.text.canonical import (
    MAX_DEPTH,
    REPLACEMENT,
    as_text,
    canonical_json,
    canonical_text,
    dump_json,
    load_json,
)

ANY_TEXT = st.text(st.characters(codec=None))
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary() | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT | st.integers(), inner) | st.tuples(inner),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("given_text", "canonical"),
    [
        ("plain", "plain"),
        ("", ""),
        ("a\0b", f"a{REPLACEMENT}b"),
        ("\ud800", REPLACEMENT),
        ("a\udc00b", f"a{REPLACEMENT}b"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", REPLACEMENT * 2),
        ("\ufeffbom", "\ufeffbom"),
        ("日本\r\n\t", "日本\r\n\t"),
    ],
)
def test_text_is_made_storable_and_otherwise_left_alone(given_text: str, canonical: str) -> None:
    assert canonical_text(given_text) == canonical


@given(ANY_TEXT)
def test_canonical_text_can_be_stored_everywhere_and_stays_as_it_is(text: str) -> None:
    canonical = canonical_text(text)
    assert "\0" not in canonical
    canonical.encode()
    assert canonical_text(canonical) == canonical
    assert len(canonical) <= len(text)


@given(st.text())
def test_ordinary_text_without_nul_is_verbatim(text: str) -> None:
    assert canonical_text(text.replace("\0", "")) == text.replace("\0", "")


@given(ANYTHING)
def test_anything_becomes_json_that_comes_back_the_same(value: Any) -> None:
    dumped = dump_json(value)
    loaded = load_json(dumped)
    assert dump_json(loaded) == dumped
    assert loaded == orjson.loads(dumped)


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        (math.nan, None),
        (-math.inf, None),
        (2**63 - 1, 2**63 - 1),
        (2**63, "9223372036854775808"),
        (-(2**63) - 1, "-9223372036854775809"),
        (True, True),
        pytest.param(10**5000, REPLACEMENT, id="more digits than Python writes"),
        pytest.param({10**5000: 1}, {REPLACEMENT: 1}, id="as a key"),
        ({1: 2, None: 3}, {"1": 2, "None": 3}),
        ({"b": 1, "a": 2}, {"b": 1, "a": 2}),
        (b"\xffok", f"{REPLACEMENT}ok"),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (frozenset({7}), [7]),
    ],
)
def test_each_odd_value_has_a_defined_form(value: Any, canonical: Any) -> None:
    assert canonical_json(value) == canonical
    assert type(canonical_json(value)) is type(canonical)


def test_the_order_of_keys_is_kept() -> None:
    assert dump_json({"z": 1, "a": 2}) == '{"z":1,"a":2}'


def test_what_is_nested_too_deeply_ends_in_a_mark() -> None:
    loop: list[Any] = []
    loop.append(loop)
    dumped = dump_json(loop)
    assert dumped == "[" * MAX_DEPTH + f'"{REPLACEMENT}"' + "]" * MAX_DEPTH


def test_nothing_stays_nothing() -> None:
    assert load_json(None) is None
    assert as_text(None) == "None"
