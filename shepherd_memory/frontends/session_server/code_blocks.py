"""Fenced code in an answer, found as the answer comes in."""

import re
from dataclasses import dataclass

_OPENING = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^`\r\n]*)")


@dataclass(frozen=True)
class CodeBlock:
    """One block that was opened and closed; the language is what stands behind the opening fence."""

    language: str
    code: str


class CodeBlocks:
    """Reads an answer piece by piece."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._rest: list[str] = []
        self._fence = ""
        self._indent = ""
        self._language = ""
        self._lines: list[str] = []

    def feed(self, text: str) -> list[CodeBlock]:
        """Read on; the blocks that close in this piece."""
        *whole, rest = text.split("\n")
        found: list[CodeBlock] = []
        for line in whole:
            found += self._read("".join((*self._rest, line)))
            self._rest.clear()
        # Joined only once the line is whole: a long line comes in many pieces.
        self._rest.append(rest)
        return found

    def end(self) -> list[CodeBlock]:
        """The answer is over: its last line needs no line end to close a block. The next one begins anew."""
        found = self._read("".join(self._rest))
        self._begin()
        return found

    def _read(self, line: str) -> list[CodeBlock]:
        if not self._fence:
            self._open(line)
        elif _closes(line, self._fence):
            self._fence = ""
            return [CodeBlock(self._language, "".join(self._lines))]
        else:
            self._lines.append(line.removesuffix("\r").removeprefix(self._indent) + "\n")
        return []

    def _open(self, line: str) -> None:
        if opening := _OPENING.fullmatch(line.removesuffix("\r")):
            self._indent, self._fence, info = opening.groups()
            self._language = (info.split() or [""])[0]
            self._lines = []


def _closes(line: str, fence: str) -> bool:
    text = line.strip()
    return len(text) >= len(fence) and set(text) == {fence[0]}
