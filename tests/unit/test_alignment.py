"""How long the beginning of a list is that a session ends with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.intake.alignment import overlap, said_by


@pytest.mark.parametrize(
    ("tail", "listed", "known"),
    [
        ("", "a", 0),
        ("a", "", 0),
        ("b", "b", 1),
        ("br", "b", 0),
        ("ab", "abc", 2),
        ("abcd", "cde", 2),
        ("aab", "aaab", 0),
        ("aaa", "aaab", 3),
        ("abab", "ababc", 4),
        ("xabab", "abc", 2),
    ],
)
def test_the_longest_stored_end_that_begins_the_list_is_known(tail: str, listed: str, known: int) -> None:
    assert overlap(tail, listed) == known


@given(st.text("ab", max_size=12), st.text("ab", max_size=12))
def test_it_is_what_trying_every_length_finds(tail: str, listed: str) -> None:
    lengths = range(min(len(tail), len(listed)) + 1)
    assert overlap(tail, listed) == max(n for n in lengths if tail.endswith(listed[:n]))


def test_a_long_list_of_the_same_takes_one_pass() -> None:
    assert overlap("a" * 100_000 + "b", "a" * 100_000) == 0


def test_an_id_of_ours_says_the_same_whatever_its_place_and_one_of_the_callers_is_left_alone() -> None:
    digest = "0123456789abcdef" * 2
    assert said_by(f"{digest}.1f") == said_by(f"{digest}.2") == digest
    assert said_by("version.2") == "version.2"
    assert said_by(f"{digest}.x") == f"{digest}.x"
