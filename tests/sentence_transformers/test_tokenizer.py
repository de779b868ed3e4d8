"""Our WordPiece gives the ids of the reference tokenizer."""

import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from shepherd_memory.embedding.onnx import MAX_TOKENS, _vocabulary
from shepherd_memory.embedding.wordpiece import WordPiece, read_vocabulary
from tests.sentence_transformers.test_engine import TEXTS, packaged_model
from tests.unit.test_wordpiece import EXPECTED

OURS = WordPiece(read_vocabulary(_vocabulary()))


@pytest.fixture(scope="module")
def reference() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(packaged_model() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def is_known_to_both(character: str) -> bool:
    """The reference has an older Unicode: what was added or moved since is nothing to compare."""
    then = unicodedata.ucd_3_2_0.category(character)
    return then == unicodedata.category(character) and then not in ("Cn", "Cs")


def ids(reference: Tokenizer, text: str) -> list[int]:
    found: list[int] = reference.encode(text).ids
    return found


def test_the_vocabulary_is_the_models(reference: Tokenizer) -> None:
    assert (packaged_model() / "vocab.txt").read_text(encoding="utf-8") == _vocabulary()
    assert read_vocabulary(_vocabulary()) == reference.get_vocab()


def test_every_character_is_taken_alike(reference: Tokenizer) -> None:
    characters = [chr(code) for code in range(sys.maxunicode + 1) if is_known_to_both(chr(code))]
    assert len(characters) > 90_000
    texts = [f"a{character}b" for character in characters]
    encoded = reference.encode_batch(texts)
    different = [text for text, one in zip(texts, encoded, strict=True) if OURS.encode(text, 99) != one.ids]
    assert different == []


@settings(max_examples=1000, deadline=None)
@given(text=st.text(st.characters(codec="utf-8").filter(is_known_to_both), max_size=60))
def test_random_text_is_taken_alike(reference: Tokenizer, text: str) -> None:
    assert OURS.encode(text, 10**6) == ids(reference, text)


@settings(max_examples=300, deadline=None)
@given(
    words=st.lists(st.sampled_from(" ".join(TEXTS).split()), max_size=40), seam=st.sampled_from(" \n\t-_'.,")
)
def test_real_words_are_taken_alike(reference: Tokenizer, words: list[str], seam: str) -> None:
    text = seam.join(words)
    assert OURS.encode(text, 10**6) == ids(reference, text)


def test_long_texts_are_cut_alike(reference: Tokenizer) -> None:
    cut = Tokenizer.from_str(reference.to_str())
    cut.enable_truncation(MAX_TOKENS)
    for text in (*TEXTS, "unbelievably " * 400, "x" * 101, "x" * 100):
        assert OURS.encode(text, MAX_TOKENS) == ids(cut, text)


@pytest.mark.parametrize("text", EXPECTED)
def test_what_the_unit_test_expects_is_the_references(reference: Tokenizer, text: str) -> None:
    assert ids(reference, text) == EXPECTED[text]


def test_the_names_of_special_tokens_are_plain_words_here(reference: Tokenizer) -> None:
    """What a user types must not act on the model: there we differ on purpose."""
    assert 103 in ids(reference, "[MASK]")
    assert 103 not in OURS.encode("[MASK]", 99)
