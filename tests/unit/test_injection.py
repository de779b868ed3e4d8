"""Taking our own block off a message: exactly that, and never what a user typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.injection import strip_injection

FACTS = "[facts: name=Steve, city=Bonn]"
CONTEXT = "[context: (2026-02-14) User: where? Assistant: there]"


@pytest.mark.parametrize("block", [FACTS, CONTEXT, f"{FACTS}\n{CONTEXT}"])
def test_the_block_at_the_end_is_taken_off(block: str) -> None:
    assert strip_injection(f"my text\n\n{block}") == "my text"
    assert strip_injection(f"my text\nof two lines\n\n{block}") == "my text\nof two lines"


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "",
        "a [facts: x=y] b",
        f"my text\n{FACTS}",
        f"my text\n\n{FACTS}\nand more",
        f"my text\n\n{FACTS}\n\nand more",
        "my text\n\n[factual: x]",
        "my text\n\n[facts: never closed",
    ],
)
def test_what_only_looks_like_a_block_stays(text: str) -> None:
    assert strip_injection(text) == text


@given(st.text())
def test_text_without_the_words_of_a_block_is_never_changed(text: str) -> None:
    if "[facts: " not in text and "[context: " not in text:
        assert strip_injection(text) == text


@given(st.text(), st.sampled_from([FACTS, CONTEXT, f"{FACTS}\n{CONTEXT}"]))
def test_a_block_after_any_text_leaves_that_text(text: str, block: str) -> None:
    if "[facts: " not in text and "[context: " not in text:
        assert strip_injection(f"{text}\n\n{block}") == text


def test_a_long_text_is_looked_through_in_no_time() -> None:
    assert len(strip_injection("\n\n[facts: " * 20_000)) == 200_000
