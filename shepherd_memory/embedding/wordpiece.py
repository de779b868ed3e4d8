"""WordPiece: text into the token ids of the MiniLM and BERT family (uncased)."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache

MAX_WORD_CHARS = 100
"""As in the original: a longer word is unknown."""

_CONTROLS = dict.fromkeys({*range(32), 127} - {9, 10, 13})
_ASCII_TOKEN = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    # Not 0x2B820: a slip of the original, which the model was trained with.
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """A vocabulary, and breaking words into its pieces."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self._unknown = vocabulary["[UNK]"]
        self._begin, self._end = vocabulary["[CLS]"], vocabulary["[SEP]"]
        self._pieces = lru_cache(maxsize=65_536)(self._break)

    def encode(self, text: str, limit: int) -> list[int]:
        """The token ids of `text`, at most `limit` with the two that mark its ends."""
        ids = [self._begin]
        for word in split_words(text):
            ids.extend(self._pieces(word))
            if len(ids) >= limit - 1:
                break
        return [*ids[: limit - 1], self._end]

    def _break(self, word: str) -> tuple[int, ...]:
        if len(word) > MAX_WORD_CHARS:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            found = self._longest_piece(word, start)
            if found is None:
                return (self._unknown,)
            piece, start = found
            pieces.append(piece)
        return tuple(pieces)

    def _longest_piece(self, word: str, start: int) -> tuple[int, int] | None:
        for end in range(len(word), start, -1):
            piece = self._vocabulary.get(word[start:end] if start == 0 else f"##{word[start:end]}")
            if piece is not None:
                return piece, end
        return None


def split_words(text: str) -> Iterator[str]:
    """Words, punctuation and CJK characters, lower-case and without accents."""
    if text.isascii():
        yield from _ASCII_TOKEN.findall(text.lower().translate(_CONTROLS))
        return
    word: list[str] = []
    # One letter at a time, in effect: the original does not know that a sigma looks different at the end.
    for character in unicodedata.normalize("NFD", text.replace("\u03a3", "\u03c3").lower()):
        what = _kind(character)
        if what == "letter":
            word.append(character)
        elif what != "nothing":
            if word:
                yield "".join(word)
                word = []
            if what == "alone":
                yield character
    if word:
        yield "".join(word)


@lru_cache(maxsize=8192)
def _kind(character: str) -> str:
    category = unicodedata.category(character)
    if character in "\t\n\r":
        return "space"
    if category == "Mn" or category[0] == "C" or character == "\ufffd":
        return "nothing"
    if character.isspace():
        return "space"
    code = ord(character)
    if category[0] == "P" or (code < 128 and not character.isalnum()) or _is_cjk(code):
        return "alone"
    return "letter"


def _is_cjk(code: int) -> bool:
    return any(first <= code <= last for first, last in _CJK)


def read_vocabulary(text: str) -> dict[str, int]:
    """A `vocab.txt`: one piece per line, its id the line's number."""
    return {line: number for number, line in enumerate(text.split("\n")) if line}
