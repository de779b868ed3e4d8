"""A model's reasoning at the head of its answer, as local models write it: `<think>…</think>`."""

import re
from collections.abc import Callable
from dataclasses import dataclass

OPENING, CLOSING = "<think>", "</think>"
_REASONING = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_UNOPENED_REASONING = re.compile(r"\A.*?</think(?:ing)?>", re.DOTALL)
_MAX_MARGIN_CHARS = 100
"""Blanks before the tag; an answer of nothing else is not held back for ever."""


@dataclass(frozen=True)
class ReasoningPiece:
    """More of what a model says, or of what it thinks."""

    text: str
    is_reasoning: bool


class ReasoningSplitter:
    """Separates a model's reasoning from its answer while both arrive in pieces, cut anywhere, even in a tag.

    Only at the very beginning: further on a tag is what the model writes about. Reasoning without an end is
    that of an answer that was cut.
    """

    def __init__(self) -> None:
        self._held = ""
        self._has_reasoned = False
        self._step: Callable[[str], list[ReasoningPiece]] = self._begin

    def take(self, text: str) -> list[ReasoningPiece]:
        """What is certain with this piece."""
        text, self._held = self._held + text, ""
        return self._step(text)

    def rest(self) -> list[ReasoningPiece]:
        """What was held back, now that nothing follows."""
        held, self._held = self._held, ""
        return _pieces(held, is_reasoning=self._step == self._think)

    def _begin(self, text: str) -> list[ReasoningPiece]:
        begun = text.lstrip()
        if len(text) - len(begun) <= _MAX_MARGIN_CHARS:
            if begun.startswith(OPENING):
                self._step = self._think
                return self._think(begun.removeprefix(OPENING))
            if OPENING.startswith(begun):
                self._held = text
                return []
        self._step = self._say
        return self._say(text)

    def _think(self, text: str) -> list[ReasoningPiece]:
        thought, tag, answer = text.partition(CLOSING)
        if tag:
            self._step = self._part
            return [*self._thought(thought), *self._part(answer)]
        certain = len(text) - _begun_tag(text)
        self._held = text[certain:]
        return self._thought(text[:certain])

    def _thought(self, text: str) -> list[ReasoningPiece]:
        text = text if self._has_reasoned else text.lstrip()
        self._has_reasoned = self._has_reasoned or bool(text)
        return _pieces(text, is_reasoning=True)

    def _part(self, text: str) -> list[ReasoningPiece]:
        """The blank lines between thoughts and answer belong to neither."""
        answer = text.lstrip()
        if answer:
            self._step = self._say
        return _pieces(answer, is_reasoning=False)

    def _say(self, text: str) -> list[ReasoningPiece]:
        return _pieces(text, is_reasoning=False)


def without_reasoning(text: str) -> str:
    """The answer alone."""
    if OPENING not in text:
        return text
    thoughts = ReasoningSplitter()
    return "".join(piece.text for piece in [*thoughts.take(text), *thoughts.rest()] if not piece.is_reasoning)


def without_all_reasoning(text: str) -> str:
    """An answer of JSON alone, by any of the tags in use.

    Some chat templates open the reasoning in the prompt, so that only its end is in the text. In an answer
    that has begun, the same tags are the user's own words.
    """
    rest = text.strip()
    position = 0
    while reasoning := _REASONING.match(rest, position):
        position = reasoning.end()
    rest = rest[position:].lstrip()
    return rest if rest.startswith(("{", "[", "```")) else _UNOPENED_REASONING.sub("", rest).strip()


def _begun_tag(text: str) -> int:
    """How many characters at its end may be the beginning of the closing tag."""
    return next(size for size in range(len(CLOSING) - 1, -1, -1) if text.endswith(CLOSING[:size]))


def _pieces(text: str, is_reasoning: bool) -> list[ReasoningPiece]:
    return [ReasoningPiece(text, is_reasoning)] if text else []
