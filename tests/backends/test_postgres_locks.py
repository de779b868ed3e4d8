"""Rows that somebody is changing: whoever changes many users' rows holds those of one at a time."""

import threading
from pathlib import Path

from shepherd_memory.conversations import conversation
from shepherd_memory.storage import users
from tests.contract.given import ManualClock, memory
from tests.transcripts import exchange, write

ADA = "ada"


def test_a_poll_goes_on_when_whoever_changes_the_users_rows_has_ended(
    postgres_url: str, tmp_path: Path, clock: ManualClock
) -> None:
    path = write(tmp_path / "base" / "kettle" / "session.jsonl", [*exchange(0, 6), *exchange(100, 106)])
    with memory(postgres_url, clock) as service:
        service.transcripts.ingest(ADA, path)
        first, second = (one.id for one in service.conversations(ADA))
        moved: list[int] = []
        poll = threading.Thread(target=lambda: moved.append(service.transcripts.poll()))
        with service.database.write() as tx:
            users.lock_existing(tx, ADA)
            # In either order: the poll holds nothing that this transaction wants.
            conversation.set_status(tx, ADA, second, "active", "active", clock())
            poll.start()
            conversation.set_status(tx, ADA, first, "active", "active", clock())
        poll.join()
        assert moved == [2]
        assert [one.status for one in service.conversations(ADA)] == ["ready", "ready"]
