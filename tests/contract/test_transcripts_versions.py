"""Files as different versions of an agent write them: what was typed is stored once, and each file once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.service import Service
from shepherd_memory.storage.clock import iso
from tests.contract.given import ManualClock, memory
from tests.transcripts import BEGAN, CWD, agent_line, append, codex_lines, taken_in, user_line, write

pytestmark = pytest.mark.every_scheme

ADA = "ada"
ROLLOUT = "rollout-2026-09-21T15-33-20-019c8a4d-8f45-7010-8b5d-7fad920aa6f9.jsonl"


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock) as opened:
        yield opened


def queue(operation: str, number: int, content: str = "") -> dict[str, Any]:
    line = {"type": "queue-operation", "operation": operation, "timestamp": iso(BEGAN + number)}
    return {**line, "sessionId": "0b5e", "content": content} if content else {**line, "sessionId": "0b5e"}


def attached(prompt: str, number: int, source_uuid: str) -> dict[str, Any]:
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"}
    return {
        "type": "attachment",
        "isSidechain": False,
        "cwd": CWD,
        "uuid": f"attached-{number}",
        "timestamp": iso(BEGAN + number),
        "attachment": {**attachment, "source_uuid": source_uuid},
    }


def said_to(service: Service, user_id: str = ADA) -> list[str]:
    return [document.text for document in service.documents(user_id, limit=100)]


BUSY = [
    user_line(1, "boil water"),
    {"type": "attachment", "attachment": {"type": "skill_listing"}, "sessionId": "0b5e"},
    agent_line(2, "It boils."),
    queue("enqueue", 3, "green tea, please"),
    queue("remove", 4, "green tea, please"),
    attached("green tea, please", 5, "queued-1"),
    queue("enqueue", 6, "without sugar"),
    attached("without sugar", 7, "user-8"),
    queue("dequeue", 8),
    user_line(8, "without sugar"),
    agent_line(9, "So it is."),
]


def test_what_was_typed_while_the_agent_was_busy_is_stored_once_however_the_file_grows(
    service: Service, tmp_path: Path
) -> None:
    whole = write(tmp_path / "whole" / "p" / "session.jsonl", BUSY)
    growing = write(tmp_path / "growing" / "p" / "session.jsonl", [])
    service.transcripts.ingest("whole", whole)
    for line in BUSY:
        append(growing, [line])
        service.transcripts.ingest(ADA, growing)
    typed = ["boil water", "green tea, please", "without sugar"]
    assert sorted(said_to(service)) == sorted([*typed, "It boils.", "So it is."])
    mine, theirs = taken_in(service.database, ADA), taken_in(service.database, "whole")
    assert mine["documents"] == theirs["documents"]
    service.transcripts.ingest(ADA, growing, reimport=True)
    assert taken_in(service.database, ADA)["documents"] == theirs["documents"]


def test_a_session_that_codex_archives_is_not_stored_again(service: Service, tmp_path: Path) -> None:
    sessions, archive = tmp_path / "sessions", tmp_path / "archived_sessions"
    live = write(sessions / "2026" / "09" / "21" / ROLLOUT, codex_lines(3))
    service.transcripts.ingest(ADA, live, sessions)
    before = taken_in(service.database, ADA)
    archive.mkdir()
    archived = live.rename(archive / ROLLOUT)
    assert service.transcripts.ingest(ADA, archived, archive).outcome == "unchanged"
    assert taken_in(service.database, ADA) == before
    append(archived, codex_lines(4)[-3:])
    assert service.transcripts.ingest(ADA, archived, archive).entries == 3
    assert len(service.transcripts.files(ADA)) == 1
