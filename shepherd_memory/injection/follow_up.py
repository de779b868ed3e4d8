"""The query of a turn: what the user typed, and for what means little alone also what it follows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shepherd_memory.injection.turns import UserTurn
from shepherd_memory.intake.messages import MAX_QUERY_CHARS, text_of
from shepherd_memory.text.reasoning import without_reasoning
from shepherd_memory.text.words import content_stems, words

MAX_ALONE = 1
"""With so many words of a meaning of their own, or fewer, a text means little without what came before it."""

MAX_POINTING = 3
"""The same for a text that points back, by its first word or a pronoun."""

MAX_WORDS = 3
"""The same for all words of a text: in most languages nobody told us which of them carry no meaning."""

MAX_TURNS = 3
MAX_CONTEXT_CHARS = 1000
MAX_ANSWER_CHARS = 200
"""Of the answer before, which says who he or she is: its beginning."""

_OPENINGS = """
and or but so then also und oder aber dann et ou mais puis y o pero e mas ed ma poi en of maar
"""
_PRONOUNS = """
he she it they him her them his hers its their theirs there this that these those one ones same
er ihn ihm ihr ihre sein seine dort davon dazu dieser diese dieses elle lui leur eux celui celle
ella ellos ellas suyo ese esa eso ele ela eles elas dele dela isso lei loro quello quella hij zij hem haar hun
"""
OPENINGS = frozenset(_OPENINGS.split())
PRONOUNS = frozenset(_PRONOUNS.split())


@dataclass(frozen=True)
class TurnQuery:
    """What is searched for; `in_context` is empty for what can stand alone."""

    text: str
    in_context: str = ""


def query_of(messages: Sequence[Any], turns: Sequence[UserTurn], turn: UserTurn) -> TurnQuery:
    """What memories are looked for by in one of the turns; the tail of it where it is very long."""
    text = turn.text.strip()[-MAX_QUERY_CHARS:]
    earlier = [one for one in turns if one.place < turn.place]
    if not earlier or not is_follow_up(text):
        return TurnQuery(text)
    before = _said_before(earlier)
    answer = _answer_before(messages, turn) if _has_pronoun(text) else ""
    context = " ".join(filter(None, [*before, answer]))
    return TurnQuery(text, f"{context} {text}" if context else "")


def is_follow_up(text: str) -> bool:
    """Whether a text means little without what came before it."""
    meanings = len(content_stems(text))
    if meanings <= MAX_ALONE or len(words(text)) <= MAX_WORDS:
        return True
    return meanings <= MAX_POINTING and _points_back(text)


def _points_back(text: str) -> bool:
    return not OPENINGS.isdisjoint(words(text)[:1]) or _has_pronoun(text)


def _has_pronoun(text: str) -> bool:
    return not PRONOUNS.isdisjoint(words(text))


def _said_before(earlier: Sequence[UserTurn]) -> list[str]:
    """What the user said before, back to what names something."""
    said: list[str] = []
    for turn in reversed(earlier[-MAX_TURNS:]):
        said.insert(0, turn.text.strip()[-MAX_CONTEXT_CHARS:])
        if content_stems(turn.text) and not _points_back(turn.text):
            break
    return said


def _answer_before(messages: Sequence[Any], turn: UserTurn) -> str:
    before = [message for message in messages[: turn.place] if _is_answer(message)]
    text = without_reasoning(text_of(before[-1].get("content"))) if before else ""
    return text.strip()[:MAX_ANSWER_CHARS]


def _is_answer(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("role") == "assistant"
