"""A folder of memory files, whose writers are killed, says in the end what an export says."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from shepherd_memory.config import Config
from shepherd_memory.mirrors.manifest import NAME
from shepherd_memory.mirrors.memory_files import LOCK, UNFINISHED
from shepherd_memory.phases import dirtiness, sections
from shepherd_memory.phases.sections import NewSection
from shepherd_memory.service import Service, open_service
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import now_us
from tests.acceptance.combinations import first_backend
from tests.acceptance.processes import Processes, wait_until

SKILLS = 150
MINE = "skills/s007/mine.md"


def write_skills(service: Service, word: str) -> None:
    """Skills as a consolidation writes them, in place of those before."""
    with service.database.write() as tx:
        now, first = now_us(), users.lock(tx, "ada", now_us(), rows=SKILLS)
        version = dirtiness.next_version(tx, "ada", "main", "agent", word, now)
        for before in sections.current(tx, "ada", "main"):
            sections.end(tx, "ada", before, version)
        for number in range(SKILLS):
            path = f"skills/s{number:03}/SKILL.md"
            new = NewSection(path, f"s{number:03}", f"{word} {number}", now)
            sections.add(tx, "ada", "main", first + number, new, version, now)


def contents(folder: Path) -> dict[str, str]:
    """What is in the files of a folder, which may change meanwhile."""
    found = {}
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in names if name not in (LOCK, NAME)):
            with suppress(FileNotFoundError):
                found[str(path.relative_to(folder))] = path.read_text()
    return found


@first_backend
def test_a_folder_of_memory_files_equals_an_export_after_kills_changes_and_forgets(
    database_url: str, processes: Processes, tmp_path: Path
) -> None:
    root = tmp_path / "files"
    place = root / "ada" / "main"
    (place / MINE).parent.mkdir(parents=True)
    (place / MINE).write_text("my own")
    settings = {
        "memory_database": database_url,
        "embedding_engine": "none",
        "memory_files_folder": str(root),
    }

    def die(point: str, times: int) -> None:
        dying = processes.python(
            "tests.acceptance.dying_memory_files", database_url, str(root), point, str(times)
        )
        assert dying.wait(120) == -signal.SIGKILL
        skills = [text for path, text in contents(place).items() if path.endswith("SKILL.md")]
        assert all(text.endswith("\n") and text.startswith("# s") for text in skills), "whole or not there"

    with open_service(Config(**settings), worker=False) as service:
        write_skills(service, "first")
        die("listed", 2)
        die("writing", 30)
        assert (place / UNFINISHED).exists()
        write_skills(service, "second")
        die("replaced", 70)
        # In the call itself, whatever killed processes left.
        service.delete_memory_file("ada", "skills/s003/SKILL.md")
        left = contents(place)
        assert "skills/s003/SKILL.md" not in left
        assert not [path for path, text in left.items() if "first" in text]
        service.edit_memory_file("ada", "skills/s004/SKILL.md", "# s004\n\nby hand\n")
    with open_service(Config(**settings)) as service:
        exported = tmp_path / "export"
        assert service.export_memory_files("ada", exported).files == SKILLS - 1
        wait_until(lambda: contents(place) == {**contents(exported), MINE: "my own"}, "the files agree")
        assert "by hand" in contents(place)["skills/s004/SKILL.md"]
        # Another process forgets, and the one that keeps the folder follows.
        with open_service(Config(memory_database=database_url), worker=False) as elsewhere:
            elsewhere.reset_memory_files("ada", everything=True)
        wait_until(lambda: contents(root) == {f"ada/main/{MINE}": "my own"}, "the files are gone")
