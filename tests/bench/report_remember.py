"""What `remember` costs for a typical exchange, and where: `python -m tests.bench.report_remember`."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from shepherd_memory.extraction import queue
from shepherd_memory.intake import store
from shepherd_memory.intake.messages import read_messages
from shepherd_memory.intake.store import IntakeOptions
from shepherd_memory.memory import documents, entries, sessions
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Database
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.redaction import redact
from tests.bench.figures import each_database, write_line, write_shares
from tests.bench.workload import START, exchange

EXCHANGES = 500
WARM_UP = 50
HOW = IntakeOptions(keep_documents=True, can_extract=True)


class Parts:
    """Processor seconds by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self.seconds[name] += time.process_time() - began


def remember_in_parts(database: Database, parts: Parts, number: int) -> None:
    """The steps of `intake.remember`, one by one."""
    session_id, now = f"session-{number}", START + number
    user_id = f"user{number % 50}"
    with parts.part("read messages: canonical text, redaction, ids"):
        messages, _ = read_messages(exchange(number), session_id, now)
        new = [store.document_of(message, session_id, MAIN_GROUP) for message in messages]
    with parts.part("its words, for the index"):
        terms = [entries.terms_of(document.text) for document in new]
    transaction = ExitStack()
    with parts.part("begin and commit"):
        tx = transaction.enter_context(database.write())
    with parts.part("the user's row"):
        first_id = users.lock(tx, user_id, now, rows=len(new) + 1)
    with parts.part("documents"):
        stored = documents.insert(tx, user_id, first_id, new, now)
    with parts.part("the index of its words"):
        found_by = [
            entries.Entry(first_id + at, entries.DOCUMENT, session_id, document.role, "", now, terms[at])
            for at, document in enumerate(new)
        ]
        entries.add(tx, user_id, found_by, now)
    with parts.part("work item"):
        queue.put(tx, user_id, first_id + len(new), session_id, max(stored), now)
    with parts.part("session"):
        sessions.extend(tx, user_id, session_id, max(stored), MAIN_GROUP, now, wanted=True, queued=True)
    with parts.part("begin and commit"):
        transaction.close()


def seconds_of_whole(database: Database) -> float:
    began = time.process_time()
    for number in range(EXCHANGES):
        store.remember(
            database,
            f"whole{number % 50}",
            exchange(number),
            f"s{number}",
            MAIN_GROUP,
            HOW,
            True,
            START + number,
        )
    return time.process_time() - began


def report_reading() -> None:
    """Reading alone, which is the same for every database."""
    parts = Parts()
    for number in range(EXCHANGES):
        for message in exchange(number):
            with parts.part("canonical text"):
                text = canonical_text(message["content"])
            with parts.part("redaction"):
                redact(text)
        whole = time.process_time()
        read_messages(exchange(number), "session", START)
        parts.seconds["whole"] += time.process_time() - whole
    whole = parts.seconds.pop("whole")
    parts.seconds["the rest: facets, ids"] = whole - sum(parts.seconds.values())
    write_shares("read messages (user 400 + assistant 1,500 characters)", parts.seconds, EXCHANGES)


def main() -> None:
    with each_database() as databases:
        for name, database in databases.items():
            for number in range(-WARM_UP, 0):
                remember_in_parts(database, Parts(), number)
            parts = Parts()
            for number in range(EXCHANGES):
                remember_in_parts(database, parts, number)
            write_shares(f"remember, {name} (our process only)", parts.seconds, EXCHANGES)
            whole = seconds_of_whole(database) / EXCHANGES * 1e6
            write_line(f"the whole in one call: {whole:.0f} µs")
    report_reading()


if __name__ == "__main__":
    main()
