"""Text is made storable once, at the boundary: how often one exchange has that done."""

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.redaction import redact
from tests.contract.given import ManualClock, memory, user_says

ANSWER = "All of them."
REQUEST = [
    {"role": "system", "content": "Be brief."},
    user_says("I live in Lisbon"),
    {"role": "assistant", "content": "A fine city."},
    user_says("Which trams of Lisbon do I like?"),
]


def calls_during(run: Callable[[], Any]) -> Counter[str]:
    """How often each of the two functions is called, by whatever name a module has imported it."""
    counted = {function.__code__: function.__name__ for function in (canonical_text, redact)}
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code in counted:
            calls[counted[frame.f_code]] += 1

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


def test_storing_an_exchange_cleans_each_of_its_texts_once(database_url: str) -> None:
    with memory(database_url, ManualClock()) as service:
        calls = calls_during(lambda: service.remember_exchange("ada", REQUEST, ANSWER, "chat"))
    # The user's id, the session's, the first and the last message, the answer, and `name` with its value.
    assert calls["canonical_text"] <= 7
    assert calls["redact"] <= 6


def test_an_exchange_with_memories_cleans_nothing_that_is_stored_already(database_url: str) -> None:
    def exchange() -> None:
        assert service.inject("ada", REQUEST, session_id="chat").block is not None
        service.remember_exchange("ada", REQUEST, ANSWER, "chat")

    with memory(database_url, ManualClock()) as service:
        service.set_fact("ada", "city", "Lisbon")
        service.set_fact("ada", "pet", "cat")
        for number in range(4):
            said = user_says(f"I like the trams of Lisbon, number {number}")
            service.remember("ada", [said], f"earlier {number}")
        calls = calls_during(exchange)
    # Keys and values of the four messages are 16 of these, the lines of the block 13.
    assert calls["canonical_text"] <= 43
    # Two are for the keys by which the user's turns are known.
    assert calls["redact"] <= 10
