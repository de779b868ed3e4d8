"""Many texts at once are redacted as each is by itself."""

from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.text.redaction import redact, redact_each
from tests.unit.redaction_corpus import NEGATIVES, POSITIVES
from tests.unit.test_redaction import FRAGMENTS

TEXTS = [*(example.text for example in POSITIVES), *NEGATIVES]
PARTS = st.sampled_from([*FRAGMENTS, "Σ", "ΟΔΟΣ", "\r", "pass", "word", "gh", "p_"])


def test_every_known_text_gives_the_same_among_others_and_alone() -> None:
    assert redact_each(TEXTS) == [redact(text) for text in TEXTS]
    for text in TEXTS:
        assert redact_each([text]) == [redact(text)]


@given(st.lists(st.lists(PARTS, max_size=12).map("".join), max_size=6))
def test_any_texts_give_the_same_together_and_alone(texts: list[str]) -> None:
    assert redact_each(texts) == [redact(text) for text in texts]


@given(st.lists(st.text(max_size=40), max_size=4))
def test_any_letters_give_the_same_together_and_alone(texts: list[str]) -> None:
    assert redact_each(texts) == [redact(text) for text in texts]


def test_a_secret_that_only_a_reader_sees_is_found_among_others() -> None:
    hidden = "my pass\u200bword is hunter2"
    assert redact_each(["hello", hidden, "there"]) == ["hello", redact(hidden), "there"]
    assert "hunter2" not in redact(hidden)


def test_of_no_texts_nothing_is_left() -> None:
    assert redact_each([]) == []
    assert redact_each([""]) == [""]
