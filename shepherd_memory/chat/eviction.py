"""What leaves a prompt that has become too long: the oldest turns first, the current one last."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shepherd_memory.text.tokens import estimate_tokens

Message = dict[str, Any]

PER_MESSAGE = 4
"""Tokens that a message takes besides its text."""


def tokens_of(message: Message) -> int:
    """At least as many tokens as a message usually has."""
    calls = message.get("tool_calls") or ()
    asked = (f"{call['function']['name']}{call['function']['arguments']}" for call in calls)
    return PER_MESSAGE + estimate_tokens(message.get("content") or "") + sum(map(estimate_tokens, asked))


def evict(
    messages: Sequence[Message], room: int, weigh: Callable[[Message], int] = tokens_of
) -> list[Message]:
    """The messages that fit into `room`, or as few as can be: complete turns go before parts of the last.

    The last thing that the user said always stays, and so does the last round of tools after it.
    """
    *earlier, current = _turns(messages) or [[]]
    size = sum(map(weigh, messages))
    gone = 0
    while gone < len(earlier) and size > room:
        size -= sum(map(weigh, earlier[gone]))
        gone += 1
    kept = [message for turn in earlier[gone:] for message in turn]
    return kept + _shortened(current, room - sum(map(weigh, kept)), weigh)


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    """From what the user says to the final answer; what got none is part of the turn that follows."""
    turns: list[list[Message]] = []
    is_answered = True
    for message in messages:
        if is_answered:
            turns.append([])
        turns[-1].append(message)
        is_answered = message["role"] == "assistant" and not message.get("tool_calls")
    return turns


def _shortened(turn: list[Message], room: int, weigh: Callable[[Message], int]) -> list[Message]:
    rounds = list(_rounds(turn))
    # What the user said may stand between rounds, where an answer failed: everything keeps its place.
    tools = [at for at, one in enumerate(rounds) if one[0]["role"] != "user"]
    size = sum(map(weigh, turn))
    gone = set()
    for at in tools[:-1]:
        if size > room:
            size -= sum(map(weigh, rounds[at]))
            gone.add(at)
    return [message for at, one in enumerate(rounds) if at not in gone for message in one]


def _rounds(turn: list[Message]) -> Iterator[list[Message]]:
    """A message with the tools' answers to it."""
    start = 0
    for at in range(1, len(turn) + 1):
        if at == len(turn) or turn[at]["role"] != "tool":
            yield turn[start:at]
            start = at
