"""SQLite's files: what they may be, and that they keep nothing that was deleted."""

from pathlib import Path

import pytest

from shepherd_memory.errors import DatabaseRefused
from shepherd_memory.storage.database import open_database
from tests.contract.every_table import furnish
from tests.contract.given import ManualClock, memory, user_says
from tests.endpoint import ScriptedEndpoint

WORD = "Xylophonist"


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    file.write_bytes(b"just some text, and quite a lot of it" * 100)
    with pytest.raises(DatabaseRefused, match="not a usable SQLite database"):
        open_database(str(file))
    assert file.read_bytes() == b"just some text, and quite a lot of it" * 100


@pytest.mark.parametrize(
    "url", [":memory:", "sqlite://", "sqlite:///x.db?mode=ro", "sqlite:///x.db?synchronous=off"]
)
def test_a_sqlite_url_that_cannot_work_is_refused(url: str) -> None:
    with pytest.raises(DatabaseRefused):
        open_database(url)


def traces(folder: Path, *words: str) -> list[str]:
    return [
        f"{word} in {file.name}"
        for file in folder.iterdir()
        for word in words
        if word.encode() in file.read_bytes()
    ]


def test_no_byte_of_what_was_erased_is_left_in_the_files_of_sqlite(
    tmp_path: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    folder = tmp_path / "data"
    with memory(f"{folder}/memory.db", clock, endpoint.url) as service:
        furnish(service, clock, "ada the first", WORD)
        furnish(service, clock, "bob", "Drummer")
        assert traces(folder, WORD, "ada the first")
        service.erase("ada the first")
        assert traces(folder, WORD, "ada the first") == []
        assert traces(folder, "Drummer")
    assert traces(folder, WORD, "ada the first") == []


def test_no_byte_of_what_was_forgotten_is_left_after_the_file_is_closed(
    tmp_path: Path, clock: ManualClock
) -> None:
    folder = tmp_path / "data"
    with memory(f"{folder}/memory.db", clock) as service:
        service.remember("ada", [user_says(f"{WORD} is private")], "chat")
        service.forget("ada", session="chat")
    assert traces(folder, WORD) == []
