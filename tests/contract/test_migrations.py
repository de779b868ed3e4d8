"""Migrations: whole or not at all, once, in step on both databases, and never on somebody else's tables."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from shepherd_memory.errors import DatabaseError, DatabaseRefused, DatabaseUnavailable
from shepherd_memory.storage.database import (
    Connection,
    Database,
    Migration,
    connect,
    load_migrations,
    migrate,
    open_database,
    schema_version,
)


@contextmanager
def opened(url: str) -> Iterator[Database]:
    with closing(open_database(url)) as database:
        yield database


def recorded(database: Database) -> list[int]:
    with database.read() as connection:
        return [row[0] for row in connection.rows("select version from schema_migrations order by version")]


def columns(database: Database) -> dict[str, frozenset[str]]:
    with database.read() as connection:
        return database.tables(connection)


class WithMigrations:
    """A database with migrations of the test's own behind the real ones."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._folder = folder

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)

    def migrations(self) -> Path:
        return self._folder


def copied_migrations(database: Database, folder: Path, **more: str) -> Path:
    folder.mkdir()
    for file in database.migrations().iterdir():
        if file.name.endswith(".sql"):
            (folder / file.name).write_text(file.read_text(encoding="utf-8"))
    for name, sql in more.items():
        (folder / f"{name.removeprefix('n')}.sql").write_text(sql)
    return folder


@pytest.mark.every_scheme
def test_a_fresh_database_gets_every_migration_once(database_url: str) -> None:
    with opened(database_url) as database:
        known = [migration.version for migration in load_migrations(database.migrations())]
        assert recorded(database) == known
        tables = columns(database)
    with opened(database_url) as database:
        assert recorded(database) == known
        assert migrate(database) == len(known)
        assert columns(database) == tables


@pytest.mark.every_scheme
def test_every_database_has_the_tables_and_columns_of_sqlite(database_url: str, tmp_path: Path) -> None:
    with opened(database_url) as database, opened(f"{tmp_path}/reference.db") as sqlite:
        assert columns(database) == columns(sqlite)
        names = [
            [(migration.version, migration.name) for migration in load_migrations(one.migrations())]
            for one in (database, sqlite)
        ]
        assert names[0] == names[1]


@pytest.mark.every_scheme
def test_threads_that_open_a_fresh_database_at_once_all_succeed(database_url: str) -> None:
    def open_and_look(_: int) -> list[int]:
        with opened(database_url) as database:
            return recorded(database)

    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(open_and_look, range(8)))
    assert all(found == versions[0] != [] for found in versions)


OPENING = """
import sys
from shepherd_memory.storage.database import open_database
sys.stdin.readline()
open_database(sys.argv[1]).close()
"""


def test_processes_that_open_a_fresh_database_at_once_all_succeed(database_url: str) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPENING, database_url],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(5)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    ends = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * 5, ends
    with opened(database_url) as database:
        assert recorded(database) == list(range(1, len(recorded(database)) + 1))


@pytest.mark.every_scheme
def test_a_migration_that_fails_leaves_nothing(database_url: str, tmp_path: Path) -> None:
    with closing(connect(database_url)) as database:
        broken = copied_migrations(
            database,
            tmp_path / "broken",
            n0900_x="create table half (a bigint);\ninsert into nowhere values (1);",
        )
        (broken / "0900_x.sql").rename(broken / f"{len(list(broken.iterdir())):04}_x.sql")
        with pytest.raises(DatabaseError, match="nowhere"):
            migrate(WithMigrations(database, broken))  # type: ignore[arg-type]
        assert columns(database) == {}
        assert migrate(database) >= 1


@pytest.mark.every_scheme
def test_an_update_applies_only_what_is_new(database_url: str, tmp_path: Path) -> None:
    with opened(database_url) as database:
        count = len(recorded(database))
        newer = copied_migrations(database, tmp_path / "newer")
        (newer / f"{count + 1:04}_more.sql").write_text("create table more (a bigint);")
        assert migrate(WithMigrations(database, newer)) == count + 1  # type: ignore[arg-type]
        assert recorded(database) == list(range(1, count + 2))
        assert "more" in columns(database)
        with pytest.raises(DatabaseRefused, match=r"newer version.*upgrade shepherd-memory"):
            migrate(database)
    with pytest.raises(DatabaseRefused, match="newer version"):
        open_database(database_url)


@pytest.mark.every_scheme
def test_a_failing_update_leaves_the_old_version_usable(database_url: str, tmp_path: Path) -> None:
    with opened(database_url) as database:
        count, before = len(recorded(database)), columns(database)
        newer = copied_migrations(database, tmp_path / "newer")
        (newer / f"{count + 1:04}_half.sql").write_text(
            "create table half (a bigint);\ninsert into half (nothing) values (1);"
        )
        with pytest.raises(DatabaseError):
            migrate(WithMigrations(database, newer))  # type: ignore[arg-type]
        assert columns(database) == before
        assert migrate(database) == count


@pytest.mark.parametrize(
    "names", [["0001_a.sql", "0003_c.sql"], ["0002_b.sql"], ["0001_a.sql", "0001_b.sql"], ["first.sql"]]
)
def test_migrations_with_a_gap_or_a_stray_name_are_refused(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("select 1;")
    with pytest.raises(DatabaseRefused, match=r"gapless|stray|number"):
        load_migrations(tmp_path)


def test_migrations_are_read_in_their_order_and_other_files_are_left_alone(tmp_path: Path) -> None:
    for number in (2, 1, 3):
        (tmp_path / f"{number:04}_step_{number}.sql").write_text(f"select {number};")
    (tmp_path / "__init__.py").write_text("")
    assert load_migrations(tmp_path) == [
        Migration(number, f"step_{number}", f"select {number};") for number in (1, 2, 3)
    ]


@pytest.mark.parametrize("table", ["users", "documents", "facts", "jobs", "context", "sessions"])
def test_a_database_with_another_programs_tables_is_refused_and_left_as_it_is(
    database_url: str, table: str
) -> None:
    with closing(connect(database_url)) as database:
        with database.write() as tx:
            tx.execute_script(f"create table {table} (id bigint, note text)")
            tx.execute(f"insert into {table} values (1, 'theirs')")
        with pytest.raises(DatabaseRefused, match=f"another program.*{table}"):
            migrate(database)
        assert columns(database) == {table: frozenset({"id", "note"})}
        with database.read() as connection:
            assert connection.rows(f"select * from {table}") == [(1, "theirs")]


def test_other_peoples_tables_under_other_names_do_not_matter(database_url: str) -> None:
    with closing(connect(database_url)) as database, database.write() as tx:
        tx.execute_script("create table invoices (id bigint)")
    with opened(database_url) as database:
        assert "invoices" in columns(database)


def _count(database: Database) -> int:
    with database.read() as connection:
        row = connection.row("select count(*) from endpoints")
    assert row is not None
    return int(row[0])


@pytest.mark.every_scheme
def test_a_transaction_that_raises_changes_nothing(database: Database) -> None:
    def insert_and_raise(tx: Connection) -> None:
        tx.execute("insert into endpoints (name, state, changed_at) values ('x', 'ok', 0)")
        raise LookupError

    for _ in range(30):
        with pytest.raises(LookupError), database.write() as tx:
            insert_and_raise(tx)
    assert _count(database) == 0
    with database.read() as connection:
        assert schema_version(connection) >= 1


@pytest.mark.every_scheme
def test_a_statement_that_fails_in_the_middle_rolls_back_the_whole_transaction(database: Database) -> None:
    insert = "insert into endpoints (name, state, changed_at) values (:name, :state, 0)"
    entries = [{"name": "x", "state": "ok"}, {"name": "y", "state": "wrong"}]
    with pytest.raises(DatabaseError), database.write() as tx:
        tx.execute_many(insert, entries)
    assert _count(database) == 0


@pytest.mark.every_scheme
def test_a_reader_sees_one_state_however_long_it_looks(database: Database) -> None:
    with database.read() as connection:
        before = connection.rows("select count(*) from endpoints")
        with database.write() as tx:
            tx.execute("insert into endpoints (name, state, changed_at) values ('x', 'ok', 0)")
        assert connection.rows("select count(*) from endpoints") == before
    assert _count(database) == 1


@pytest.mark.every_scheme
def test_nothing_works_on_a_closed_database(database_url: str) -> None:
    database = open_database(database_url)
    database.close()
    for use in (database.read, database.write):
        with pytest.raises(DatabaseUnavailable), use():
            pass
    database.close()
