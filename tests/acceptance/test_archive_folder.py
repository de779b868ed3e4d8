"""A folder of a thousand archives, whose writers are killed, says in the end what an export says."""

import signal
from pathlib import Path

from shepherd_memory.archives.mirror import LOCK, UNFINISHED
from shepherd_memory.config import Config
from shepherd_memory.service import Service, open_service
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import SECOND, now_us
from tests.acceptance.combinations import first_backend
from tests.acceptance.processes import Processes, wait_until

SESSIONS = 1000
BEGUN = 1_771_645_140 * SECOND
"""Early on 21 February 2026."""

NAMES = ("Tax return", "税金", "../../x", "", "n" * 200, "🚲 ride", "tax RETURN")
MINE = "2026-02-21-tax-return.md"


def hold_sessions(service: Service) -> None:
    """A thousand sessions that have ended, of two messages each."""
    lives, said = [], []
    with service.database.write() as tx:
        first = users.lock(tx, "ada", now_us(), rows=2 * SESSIONS)
        for number in range(SESSIONS):
            at, name = BEGUN + number * 60 * SECOND, f"s{number:04}"
            title, last = NAMES[number % len(NAMES)], first + 2 * number + 1
            lives.append(("ada", name, "main", last, at, at, "ended", title, at, at, at))
            for place, role in enumerate(("user", "assistant")):
                text = f"{role} of {name}"
                row = ("ada", last - 1 + place, "main", name, f"{name}-{place}", "message", "transcript")
                said.append((*row, role, "human", "", text, "live", at + place, at))
        columns = "user_id session_id group_name last_document created_at updated_at status name"
        tx.insert_many("sessions", (*columns.split(), "started_at", "ended_at", "last_seen_at"), lives)
        columns = "user_id id group_name session_id message_id type category role speaker_type speaker_name"
        tx.insert_many("documents", (*columns.split(), "text", "source", "created_at", "stored_at"), said)


def rename(service: Service, session_id: str, name: str) -> None:
    with service.database.write() as tx:
        users.lock_existing(tx, "ada")
        tx.execute(
            "update sessions set name = :name where user_id = 'ada' and session_id = :id",
            name=name,
            id=session_id,
        )


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != LOCK
    }


@first_backend
def test_a_folder_of_a_thousand_sessions_equals_an_export_after_kills_renames_and_forgets(
    database_url: str, processes: Processes, tmp_path: Path
) -> None:
    root = tmp_path / "archives"
    place = root / "ada" / "main"
    place.mkdir(parents=True)
    (place / MINE).write_text("my own notes")
    settings = {"memory_database": database_url, "embedding_engine": "none", "archive_folder": str(root)}

    def die(point: str, times: int) -> None:
        dying = processes.python(
            "tests.acceptance.dying_archives", database_url, str(root), point, str(times)
        )
        assert dying.wait(120) == -signal.SIGKILL

    with open_service(Config(**settings), worker=False) as service:
        hold_sessions(service)
        die("writing", 150)
        assert (place / UNFINISHED).exists()
        die("replaced", 400)
        for number in range(0, SESSIONS, 100):
            rename(service, f"s{number:04}", f"renamed {number}")
        die("written", 7)
        # In the call itself, whatever a killed process left.
        service.forget("ada", session="s0007")
        said = service.documents("ada", session_id="s0014")
        service.forget("ada", document=said[0].id, only=True)
        left = "".join(contents(root).values())
        assert "user of s0007" not in left
        assert "user of s0014" not in left
    with open_service(Config(**settings)) as service:
        exported = tmp_path / "export"
        (exported / "main").mkdir(parents=True)
        (exported / "main" / MINE).write_text("my own notes")
        assert service.export_archives("ada", exported).archives == SESSIONS - 1
        wait_until(lambda: contents(root / "ada") == contents(exported), "the files agree")
    assert (place / MINE).read_text() == "my own notes"
    assert "user of s0000" in (place / "2026-02-21-renamed-0.md").read_text()
