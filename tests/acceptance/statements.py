"""Numbered statements: what is said under a number, and whether all of it was stored exactly once."""

import re
import secrets
import threading
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from shepherd_memory.service import Service
from shepherd_memory.work.jobs import RUNNING, WAITING
from tests.acceptance.processes import wait_until
from tests.endpoint import Body, Step, by_content, garbage, reply, user_text

USERS = 7
SAID = re.compile(r"\bcode_(\d+) is zebra_\1\b")


@dataclass(frozen=True)
class Statement:
    """What is handed to `remember` under one number."""

    user_id: str
    session_id: str
    messages: list[dict[str, Any]]


def statement(number: int) -> Statement:
    """Three quarters have a session of their own; the others share one long session of their user."""
    said: dict[str, Any] = {"role": "user", "content": f"My code_{number} is zebra_{number}."}
    if number % 2:
        said["id"] = f"message-{number}"
    session_id = f"session-{number}" if number % 4 else "long-session"
    return Statement(
        owner(number), session_id, [said, {"role": "assistant", "content": f"I see, number {number}."}]
    )


def owner(number: int) -> str:
    return f"user-{number % USERS}"


def remember(service: Service, number: int) -> None:
    one = statement(number)
    service.remember(one.user_id, one.messages, one.session_id)


def is_drained(service: Service) -> bool:
    items = service.status().items
    return items[WAITING] + items[RUNNING] == 0


def drain(service: Service, seconds: float = 180.0) -> None:
    """Wait for the worker processes to be done with all there is, without taking much of their cores."""
    wait_until(lambda: is_drained(service), "nothing waits", seconds, every=0.05)


def numbers_in(body: Body | None) -> list[int]:
    """The statements that a request carries; a client that was killed while it sent carries none."""
    return [] if body is None else [int(number) for number in SAID.findall(user_text(body))]


def bewitched(numbers: Collection[int], released: threading.Event) -> Step:
    """As `answering`, but what holds one of `numbers` gets garbage until it is `released`."""

    def choose(body: Body) -> Step:
        said = numbers_in(body)
        spoilt = not released.is_set() and not set(numbers).isdisjoint(said)
        return garbage() if spoilt else answer_to(said)

    return by_content(choose)


def answering() -> Step:
    """Each statement's fact, and a pair whose question is another one in each call.

    The guard merges equal pairs, so only this shows an item that was stored twice. Nobody asked that: the
    pair waits to be confirmed, stored in the same transaction as the fact.
    """
    return by_content(lambda body: answer_to(numbers_in(body)))


def answer_to(numbers: Iterable[int]) -> Step:
    said = list(numbers)
    facts = {f"code_{number}": f"zebra_{number}" for number in said}
    return reply(facts, [(_fresh_question(), f"zebra_{number}") for number in said])


def _fresh_question() -> str:
    """One word that nobody has said, and no number.

    It has no "o" in it: `one` and `other` are keys of the endpoint, which are taken out of its answers.
    """
    return secrets.token_hex(16).translate(str.maketrans("0123456789", "ghijkmpqrs")) + "?"


def assert_stored_once(service: Service, numbers: Iterable[int]) -> None:
    """Facts, context and documents are exactly those of `numbers`, each under its user, each once."""
    expected = list(numbers)
    for user_id in sorted({owner(number) for number in range(USERS)}):
        mine = [number for number in expected if owner(number) == user_id]
        facts = Counter((fact.key, fact.value) for fact in service.facts(user_id))
        assert facts == Counter((f"code_{number}", f"zebra_{number}") for number in mine)
        assert answers_of(service, user_id) == Counter(f"zebra_{number}" for number in mine)
        texts = Counter((one.session_id, one.text) for one in service.documents(user_id))
        assert texts == _documents_of(mine)
        assert service.rejected(user_id) == []
        assert [key for key, _ in facts if len(service.fact_history(user_id, key)) != 1] == []


def answers_of(service: Service, user_id: str) -> Counter[str]:
    """The answers of the pairs that were stored for a user: those that wait to be confirmed."""
    return Counter(one.content for one in service.unconfirmed(user_id) if one.kind == "context")


def _documents_of(numbers: Iterable[int]) -> Counter[tuple[str, str]]:
    said = [statement(number) for number in numbers]
    return Counter((one.session_id, message["content"]) for one in said for message in one.messages)
