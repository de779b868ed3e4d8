"""Plain text is split in a quicker way than other text, into the same words."""

from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.text import words
from shepherd_memory.text.words import STOP_WORDS, content_stems, stem

PARTS = st.sampled_from(
    [*"aZ09_-'\"/ \n\t\0\x1c", "'s", "c++", "c#", "F#", "1,000", "3.14", "v2.", ", ", "the"]
)
TEXTS = st.lists(PARTS, max_size=15).map("".join)


@given(TEXTS)
def test_it_gives_the_words_that_the_pattern_gives(text: str) -> None:
    folded = words._POSSESSIVE.sub("", text.lower())
    assert words.words(text) == [word.replace(",", "") for word in words._ASCII_WORD.findall(folded)]


@given(TEXTS)
def test_words_without_a_meaning_of_their_own_are_left_out(text: str) -> None:
    assert content_stems(text) == [stem(word) for word in words.words(text) if word not in STOP_WORDS]
