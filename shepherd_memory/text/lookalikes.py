"""Text as a reader takes it: forms of plain characters, and what looks the same, made plain."""

import unicodedata
from bisect import bisect_right
from itertools import accumulate

from shepherd_memory.text.words import fold

MAX_KNOWN = 65_536
"""Characters whose plain form is kept."""

# Unicode knows full-width, bold, circled … letters as forms of the plain ones. These it does not: Cyrillic,
# Greek, Armenian and small capital letters, colons and bars that look the same in most fonts.
_SAME_SHAPE = {
    " ": "\u2800",
    ":": "\u02d0\u02d1\u02f8\u0589\u05c3\u0703\u0704\u1365\u16ec\u1804\u205a\u2236\ua4fd\ua789",
    "|": "\u01c0\u2223\u2758",
    "a": "\u0251\u03b1\u0430\u1d00",
    "d": "\u0501\u1d05",
    "e": "\u03b5\u0435\u0454\u1d07\u212e",
    "h": "\u029c\u04bb\u0570",
    "i": "\u0269\u026a\u03b9\u0456",
    "l": "\u029f\u04cf",
    "m": "\u043c\u1d0d",
    "n": "\u0274\u03b7\u0578",
    "o": "\u03bf\u043e\u0585\u1d0f",
    "p": "\u03c1\u0440\u1d18",
    "r": "\u0280\u0433",
    "s": "\u0455\ua731",
    "t": "\u03c4\u0442\u1d1b",
    "u": "\u03c5\u057d\u1d1c",
    "v": "\u03bd\u0475\u1d20",
    "y": "\u028f\u0443\u04af",
}
_SHAPES = {other: plain for plain, others in _SAME_SHAPE.items() for other in others}

_MARKS = ("Mn", "Me")
_ORDINARY = frozenset(",()")
"""Chinese and Japanese text is full of the wide forms of these, and no reader takes them for our own."""


class PlainText:
    """`text` with every character in its plain form: lower case, no accents, no marks."""

    def __init__(self, text: str) -> None:
        if text.isascii():
            self.text, self._ends = text.lower(), None
            return
        forms = list(map(_plain_forms.__getitem__, text))
        self.text = "".join(forms)
        self._ends = list(accumulate(map(len, forms)))

    def place(self, at: int) -> int:
        """Where the character stands in the original whose plain form is at `at`."""
        return at if self._ends is None else bisect_right(self._ends, at)


class _PlainForms(dict[str, str]):
    """The plain forms of characters that were met."""

    def __missing__(self, character: str) -> str:
        if len(self) >= MAX_KNOWN:
            self.clear()
        self[character] = form = _plain_form(character)
        return form


_plain_forms = _PlainForms()


def _plain_form(character: str) -> str:
    folded = fold(character)
    if not character.isascii() and not _ORDINARY.isdisjoint(folded):
        return character
    return "".join(_SHAPES.get(one, one) for one in folded if unicodedata.category(one) not in _MARKS)
