"""What a turn is searched for by: alone if it means something alone, else with what it follows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.injection.follow_up import MAX_ANSWER_CHARS, TurnQuery, is_follow_up, query_of
from shepherd_memory.injection.turns import user_turns
from shepherd_memory.intake.messages import MAX_QUERY_CHARS


def query(*said: str) -> TurnQuery:
    """The query of the last of these, which the user and the assistant said in turn."""
    roles = ["user", "assistant"] * len(said)
    messages = [{"role": role, "content": text} for role, text in zip(roles, said, strict=False)]
    turns = user_turns(messages, "")
    return query_of(messages, turns, turns[-1])


FOLLOW_UPS = [
    "and the colour?",
    "why?",
    "how much is it?",
    "thanks",
    "",
    "und die Farbe?",
    "为什么?",
    "¿por qué?",
]
STANDING = [
    "What is my dog called?",
    "Which bike did I buy last spring in Lisbon?",
    "And which hotel did I book in Oslo for the conference?",
    "Wie heißt der Hund meiner Schwester?",
]


@pytest.mark.parametrize("text", FOLLOW_UPS)
def test_what_means_little_alone_is_a_follow_up(text: str) -> None:
    assert is_follow_up(text)


@pytest.mark.parametrize("text", STANDING)
def test_what_means_something_alone_is_none(text: str) -> None:
    assert not is_follow_up(text)
    assert query("What bike do I have?", "A Brompton.", text) == TurnQuery(text)


def test_a_follow_up_is_searched_with_what_it_follows() -> None:
    found = query("What bike do I have?", "A Brompton.", "and the colour?")
    assert found == TurnQuery("and the colour?", "What bike do I have? and the colour?")


def test_the_answer_says_who_is_meant() -> None:
    found = query("Who is my sister married to?", "To Erik. " + "x" * 1000, "Where does he work?")
    assert found.in_context.startswith("Who is my sister married to? To Erik. xxx")
    assert found.in_context.endswith("x Where does he work?")
    assert len(found.in_context) < 100 + MAX_ANSWER_CHARS


def test_a_follow_up_of_a_follow_up_goes_back_to_what_stands_alone() -> None:
    before = [
        "My car is blue today.",
        "Fine.",
        "What bike do I have?",
        "A Brompton.",
        "and the colour?",
        "Green.",
    ]
    found = query(*before, "why?")
    assert found.in_context == "What bike do I have? and the colour? why?"


def test_the_first_words_follow_nothing() -> None:
    assert query("why?") == TurnQuery("why?")


@given(st.lists(st.text(max_size=30), min_size=1, max_size=7))
def test_any_conversation_has_a_query(said: list[str]) -> None:
    found = query(*said)
    assert not found.in_context or found.in_context.endswith(found.text)


def test_very_long_words_are_searched_by_their_tail() -> None:
    long = "word " * 10_000
    assert len(query(long).text) <= MAX_QUERY_CHARS
    assert len(query(long, "I see.", "why?").in_context) < MAX_QUERY_CHARS


def test_messages_of_any_shape_are_passed_over() -> None:
    odd: list[Any] = [None, {"role": "assistant"}, {"role": "assistant", "content": 7}, "text"]
    messages = [{"role": "user", "content": "Who is it?"}, *odd, {"role": "user", "content": "where is he?"}]
    turns = user_turns(messages, "")
    assert query_of(messages, turns, turns[-1]).in_context == "Who is it? 7 where is he?"
