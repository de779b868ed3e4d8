"""Rows that somebody is changing: Postgres locks these alone, and others go past them."""

from pathlib import Path

from shepherd_memory.transcripts import conversations
from tests.contract.given import ManualClock, memory
from tests.transcripts import exchange, write

ADA = "ada"


def test_a_conversation_that_somebody_is_changing_is_left_for_the_next_poll(
    postgres_url: str, tmp_path: Path, clock: ManualClock
) -> None:
    path = write(tmp_path / "base" / "kettle" / "session.jsonl", [*exchange(0, 6), *exchange(100, 106)])
    with memory(postgres_url, clock) as service:
        service.transcripts.ingest(ADA, path)
        held = service.transcripts.conversations(ADA)[0].id
        with service.database.write() as tx:
            conversations.set_status(tx, ADA, held, "active", "active", clock())
            assert service.transcripts.poll() == 1
        assert [one.status for one in service.transcripts.conversations(ADA)] == ["active", "ready"]
        assert service.transcripts.poll() == 1
