"""SQLite's files: what they may be, and that they keep nothing that was deleted."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from shepherd_memory.errors import DatabaseRefused, DatabaseUnavailable
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Database, open_database
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


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(str(tmp_path / "memory.db"))) as database:
        yield database


def put(database: Database, user_id: str) -> None:
    with database.write() as tx:
        users.lock(tx, user_id, 1)


def users_in(database: Database) -> list[str]:
    with database.read() as connection:
        return [row[0] for row in connection.rows("select user_id from users order by user_id")]


def test_a_file_that_was_taken_away_is_noticed_until_it_is_back(opened: Database, tmp_path: Path) -> None:
    path, aside = tmp_path / "memory.db", tmp_path / "aside.db"
    put(opened, "ada")
    path.rename(aside)
    with pytest.raises(DatabaseUnavailable, match="is gone"):
        put(opened, "bob")
    with pytest.raises(DatabaseUnavailable, match="is gone"):
        users_in(opened)
    assert not path.exists(), "whoever took it away may be about to put another in its place"
    aside.rename(path)
    put(opened, "carla")
    assert users_in(opened) == ["ada", "carla"]


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_file_that_was_replaced_is_opened_again_with_its_tables(
    is_empty: bool, opened: Database, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    with closing(open_database(str(other))) as database:
        put(database, "bob")
    for number in range(50):
        put(opened, f"ada {number}")
    if is_empty:
        other.write_bytes(b"")
    # As it is done by hand, leaving the old write-ahead log behind.
    other.rename(tmp_path / "memory.db")
    put(opened, "carla")
    assert users_in(opened) == (["carla"] if is_empty else ["bob", "carla"])
    with closing(open_database(str(tmp_path / "memory.db"))) as database:
        assert users_in(database) == users_in(opened)
        with database.read() as connection:
            assert connection.rows("pragma integrity_check") == [("ok",)]


def test_a_file_that_is_replaced_while_it_is_written_to_is_noticed(opened: Database, tmp_path: Path) -> None:
    def put_while_it_is_replaced() -> None:
        with opened.write() as tx:
            users.lock(tx, "ada", 1)
            (tmp_path / "memory.db").unlink()
            (tmp_path / "memory.db").touch()

    with pytest.raises(DatabaseUnavailable, match="replaced while"):
        put_while_it_is_replaced()
    put(opened, "bob")
    assert users_in(opened) == ["bob"]
