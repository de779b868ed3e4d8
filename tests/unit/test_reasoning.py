"""Reasoning at the head of an answer is told from it however both are cut."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.text.reasoning import ReasoningPiece, ReasoningSplitter, without_reasoning

ANSWERS = [
    ("<think>Hm, 1 < 2.</think>\n\nYes.", "Hm, 1 < 2.", "Yes."),
    ("\n <think>\nHm.\n</think>Yes.", "Hm.\n", "Yes."),
    ("<think>\n\n</think>\n\nYes.\n", "", "Yes.\n"),
    ("<think></think>", "", ""),
    ("<think>Hm </thin</think> Yes </think>", "Hm </thin", "Yes </think>"),
    ("<think>a<think>b</think>c", "a<think>b", "c"),
    ("<think>cut </th", "cut </th", ""),
    ("Yes. <think>Hm.</think>", "", "Yes. <think>Hm.</think>"),
    ("`<think>` is a tag", "", "`<think>` is a tag"),
    ("  Yes", "", "  Yes"),
    ("<thi", "", "<thi"),
    ("<thinner> paper", "", "<thinner> paper"),
    (" \n", "", " \n"),
    (" " * 300 + "<think>", "", " " * 300 + "<think>"),
    ("", "", ""),
]


def read(pieces: Sequence[str]) -> list[ReasoningPiece]:
    thoughts = ReasoningSplitter()
    return [*(piece for text in pieces for piece in thoughts.take(text)), *thoughts.rest()]


def joined(pieces: Sequence[ReasoningPiece], is_reasoning: bool) -> str:
    return "".join(piece.text for piece in pieces if piece.is_reasoning == is_reasoning)


@pytest.mark.parametrize(("text", "thought", "answer"), ANSWERS)
def test_thoughts_and_answer_are_the_same_in_one_piece_and_character_by_character(
    text: str, thought: str, answer: str
) -> None:
    for pieces in ([text], list(text)):
        found = read(pieces)
        assert (joined(found, True), joined(found, False)) == (thought, answer)
    assert without_reasoning(text) == answer


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "<", "/", "think>", "Hm", " ", "\n", "</th"]), max_size=12
    ),
    st.lists(st.integers(1, 5), max_size=12),
)
def test_however_an_answer_is_cut_it_is_the_same(words: list[str], sizes: list[int]) -> None:
    text, pieces = "".join(words), []
    for size in sizes:
        pieces.append(text[:size])
        text = text[size:]
    pieces.append(text)
    whole, cut = read(["".join(words)]), read(pieces)
    for is_reasoning in (True, False):
        assert joined(cut, is_reasoning) == joined(whole, is_reasoning)
    if not "".join(words).lstrip().startswith("<think>"):
        assert joined(cut, False) == "".join(words)


def test_what_cannot_be_a_tag_any_more_is_not_held_back() -> None:
    thoughts = ReasoningSplitter()
    assert thoughts.take("<t") == []
    assert thoughts.take("able>") == [ReasoningPiece("<table>", False)]
    assert thoughts.take(" <think>") == [ReasoningPiece(" <think>", False)]
    assert thoughts.rest() == []
