# ruff: noqa: RUF001 - look-alikes are what the tokenizer must see through.
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.text.words import (
    content_stems,
    fold,
    has_words,
    stems,
    unbroken_words,
    word_spans,
    words,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm Steve's friend", ["i", "m", "steve", "friend"]),
        ("I’m at Steve’s", ["i", "m", "at", "steve"]),
        ("3.5 of 1,000 or 1,234,567.5", ["3.5", "of", "1000", "or", "1234567.5"]),
        ("1,2,3 and 10k", ["1", "2", "3", "and", "10k"]),
        ("C++, C# and C", ["c++", "c#", "and", "c"]),
        ("snake_case and kebab-case", ["snake", "case", "and", "kebab", "case"]),
        ("Café Müße ŁÓDŹ Ærø İstanbul", ["cafe", "musse", "lodz", "aero", "istanbul"]),
        ("Ελλάδα Ёлка йод", ["ελλαδα", "елка", "йод"]),
        ("ﬁne ３．５", ["fine", "3.5"]),
        ("٣٤", ["34"]),
        ("🦄 !", []),
    ],
)
def test_words_are_folded_and_numbers_stay_whole(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京都", ["東京", "京都"]),
        ("猫", ["猫"]),
        ("ガギ ｶﾞｷﾞ", ["ガギ", "ガギ"]),
        ("サン・フラン", ["サン", "フラ", "ラン"]),
        ("約1,000円", ["約", "1000", "円"]),
        ("서울에", ["서울", "울에"]),
        ("ผมชื่อ", ["ผม", "มช", "ชื", "ื่", "่อ"]),
        ("iPhone用ケース", ["iphone", "用ケ", "ケー", "ース"]),
    ],
)
def test_text_without_spaces_becomes_pairs_of_characters(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize("word", ["हिन्दी", "नमस्ते", "தமிழ்", "кий", "كِتَاب", "བོད"])
def test_other_scripts_keep_their_vowels_and_marks(word: str) -> None:
    assert words(word) == [word]


def test_stems_join_inflections_of_latin_words_only() -> None:
    assert stems("Running dogs runs Anna 3.5 猫") == ["run", "dog", "run", "anna", "3.5", "猫"]


def test_content_stems_leave_out_stop_words() -> None:
    assert content_stems("I am at the keybindings of my editor") == ["keybind", "editor"]


def test_unbroken_words_keep_runs_in_one_piece() -> None:
    assert unbroken_words("My 東京都 house's key") == ["my", "東京都", "house", "key"]


@given(st.text())
def test_any_text_has_words_that_are_words(text: str) -> None:
    found = words(text)
    assert all(found)
    assert words(" ".join(found)) == found


@given(st.text())
def test_folding_twice_changes_nothing_that_words_see(text: str) -> None:
    assert words(fold(text)) == words(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hi, I live in Łódź!", ["Hi", "I", "live", "in", "Łódź"]),
        ("snake_case costs 1,000.50", ["snake", "case", "costs", "1,000.50"]),
        ("C++ in 東京都 x", ["C++", "in", "東京", "京都", "x"]),
        ("猫", ["猫"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("İstanbul and more", ["İstanbul", "and", "more"]),
    ],
)
def test_words_are_found_where_they_stand(text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in word_spans(text)] == found


@given(st.text())
def test_spans_are_in_order_and_inside_of_the_text(text: str) -> None:
    spans = list(word_spans(text))
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans)


@given(
    st.text(st.characters(codec="utf-8")) | st.text(st.sampled_from("ab1 ,.'s+#")),
    st.integers(0, 20),
    st.integers(1, 5),
)
def test_a_text_has_the_words_that_it_is_made_of(text: str, first: int, length: int) -> None:
    said = words(text)[first : first + length]
    assert has_words(text, said) == bool(said)
    assert not has_words(text, [*said, "neverthere"])
