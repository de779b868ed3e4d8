"""A model's thoughts at the head of its answer, as local models write them: `<think>…</think>`."""

from collections.abc import Callable
from dataclasses import dataclass

OPENING, CLOSING = "<think>", "</think>"
_LONGEST_MARGIN = 100
"""Blanks before the tag; an answer of nothing else is not held back for ever."""


@dataclass(frozen=True)
class Piece:
    """More of what a model says, or of what it thinks."""

    text: str
    is_thought: bool


class Thoughts:
    """Tells the thoughts from the answer while both arrive in pieces, cut anywhere, even inside a tag.

    Only at the very beginning: further on a tag is what the model writes about. Thoughts without an end are
    those of an answer that was cut.
    """

    def __init__(self) -> None:
        self._held = ""
        self._has_thought = False
        self._step: Callable[[str], list[Piece]] = self._begin

    def take(self, text: str) -> list[Piece]:
        """What is certain with this piece."""
        text, self._held = self._held + text, ""
        return self._step(text)

    def rest(self) -> list[Piece]:
        """What was held back, now that nothing follows."""
        held, self._held = self._held, ""
        return _pieces(held, is_thought=self._step == self._think)

    def _begin(self, text: str) -> list[Piece]:
        begun = text.lstrip()
        if len(text) - len(begun) <= _LONGEST_MARGIN:
            if begun.startswith(OPENING):
                self._step = self._think
                return self._think(begun.removeprefix(OPENING))
            if OPENING.startswith(begun):
                self._held = text
                return []
        self._step = self._say
        return self._say(text)

    def _think(self, text: str) -> list[Piece]:
        thought, tag, answer = text.partition(CLOSING)
        if tag:
            self._step = self._part
            return [*self._thought(thought), *self._part(answer)]
        certain = len(text) - _begun_tag(text)
        self._held = text[certain:]
        return self._thought(text[:certain])

    def _thought(self, text: str) -> list[Piece]:
        text = text if self._has_thought else text.lstrip()
        self._has_thought = self._has_thought or bool(text)
        return _pieces(text, is_thought=True)

    def _part(self, text: str) -> list[Piece]:
        """The blank lines between thoughts and answer belong to neither."""
        answer = text.lstrip()
        if answer:
            self._step = self._say
        return _pieces(answer, is_thought=False)

    def _say(self, text: str) -> list[Piece]:
        return _pieces(text, is_thought=False)


def without_thoughts(text: str) -> str:
    """The answer alone."""
    if OPENING not in text:
        return text
    thoughts = Thoughts()
    return "".join(piece.text for piece in [*thoughts.take(text), *thoughts.rest()] if not piece.is_thought)


def _begun_tag(text: str) -> int:
    """How many characters at its end may be the beginning of the closing tag."""
    return next(size for size in range(len(CLOSING) - 1, -1, -1) if text.endswith(CLOSING[:size]))


def _pieces(text: str, is_thought: bool) -> list[Piece]:
    return [Piece(text, is_thought)] if text else []
