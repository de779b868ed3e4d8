"""JSON as language models write it: trailing commas, Python literals, bare keys, comments, a missing end."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import nan

MAX_DEPTH = 32

# A container this deep that lacks its end is one entry of an answer, and half an entry is worse than none.
ENTRY_DEPTH = 2

Value = str | bool | float | None | list["Value"] | dict[str, "Value"]

_BLANK = re.compile(r"(?:\s++|//[^\n]*+)*+")
_QUOTED = {
    '"': re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]++|\\.)*+)'", re.DOTALL),
}
_ESCAPE = re.compile(r'\\(u[0-9a-fA-F]{4}|["\\/bfnrt])|\\(.)|"', re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?")
_WORD = re.compile(r"[+-]?[^\W\d]\w*+")
_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None, "none": None, "undefined": None}
_NOT_NUMBERS = {"nan", "infinity", "inf"}


class ParseError(Exception):
    """This is no JSON, however loosely read."""


class _CutOff(Exception):
    """The text ended in the middle of a value."""


@dataclass(frozen=True)
class ParsedValue:
    """A value and where it ended; `cut_off` when the text ended before the value did."""

    value: Value
    end: int
    cut_off: bool


def parse(text: str, start: int = 0) -> ParsedValue:
    """Read the value that begins at `start`, keeping the complete entries of one that is cut off.

    Numbers come back as they were written, text; NaN and infinities as the float nan.
    """
    reader = _Reader(text, start)
    try:
        value = reader.value(0)
    except _CutOff as error:
        raise ParseError("cut off") from error
    return ParsedValue(value, reader.at, reader.cut_off)


_OPENING = re.compile(r"[{\[]")
_MAX_ATTEMPTS = 50


def values_in(text: str) -> Iterator[ParsedValue]:
    """The objects and lists that stand in a text, one after the other."""
    start = _OPENING.search(text)
    for _ in range(_MAX_ATTEMPTS):
        if start is None:
            return
        end = start.end()
        try:
            found = parse(text, start.start())
        except ParseError:
            pass
        else:
            yield found
            end = found.end
        start = _OPENING.search(text, end)


class _Reader:
    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.at = start
        self.cut_off = False

    def value(self, depth: int) -> Value:
        if depth > MAX_DEPTH:
            raise ParseError("nested too deeply")
        match self.peek():
            case "{":
                return self.container(depth, {}, "}")
            case "[":
                return self.container(depth, [], "]")
            case '"' | "'":
                return self.string()
            case _:
                return self.bare()

    def peek(self) -> str:
        """The next character that is neither blank nor comment."""
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        if self.at >= len(self.text):
            raise _CutOff
        return self.text[self.at]

    def container(self, depth: int, into: list[Value] | dict[str, Value], end: str) -> Value:
        self.at += 1
        try:
            self.entries(depth, into, end)
        except _CutOff:
            self.cut_off = True
            self.at = len(self.text)
            if depth >= ENTRY_DEPTH:
                raise
        return into

    def entries(self, depth: int, into: list[Value] | dict[str, Value], end: str) -> None:
        while self.peek() != end:
            if isinstance(into, dict):
                key = self.key()
                into[key] = self.value(depth + 1)
            else:
                into.append(self.value(depth + 1))
            if self.peek() == ",":
                self.at += 1
            elif self.text[self.at] != end:
                raise ParseError(f"expected a comma at character {self.at}")
        self.at += 1

    def key(self) -> str:
        key = self.string() if self.peek() in "\"'" else self.bare_key()
        if self.peek() != ":":
            raise ParseError(f"expected a colon at character {self.at}")
        self.at += 1
        return key

    def bare_key(self) -> str:
        return self.matched(_NUMBER) or self.matched(_WORD) or self.refuse()

    def string(self) -> str:
        found = _QUOTED[self.text[self.at]].match(self.text, self.at)
        if found is None:
            raise _CutOff
        self.at = found.end()
        decoded: str = json.loads(f'"{_ESCAPE.sub(_valid_escape, found[1])}"', strict=False)
        return decoded

    def bare(self) -> Value:
        if number := self.matched(_NUMBER):
            return number
        word = (self.matched(_WORD) or self.refuse()).lower()
        if word.lstrip("+-") in _NOT_NUMBERS:
            return nan
        return _WORDS[word] if word in _WORDS else self.refuse()

    def matched(self, pattern: re.Pattern[str]) -> str:
        """What the pattern finds here; at the very end of the text there might have been more of it."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        if found.end() == len(self.text):
            raise _CutOff
        self.at = found.end()
        return found[0]

    def refuse(self) -> str:
        raise ParseError(f"expected a value at character {self.at}")


def _valid_escape(found: re.Match[str]) -> str:
    """An escape as JSON knows it: paths and patterns come with backslashes that escape nothing."""
    if found[1]:
        return found[0]
    if found[2] is None:
        return '\\"'
    return "'" if found[2] == "'" else f"\\\\{found[2]}"
