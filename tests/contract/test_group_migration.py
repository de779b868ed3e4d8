"""A database from before there were groups keeps all its rows, in the group main, or stays as it was."""

from contextlib import closing
from pathlib import Path

import pytest

from shepherd_memory.errors import DatabaseError
from shepherd_memory.memory import context, facts, rejections, sessions
from shepherd_memory.storage import tombstones
from shepherd_memory.storage.database import Database, connect, load_migrations, migrate, open_database
from shepherd_memory.work import jobs
from tests.contract.dying_migration import COMMIT, COMMITTED, RECORD, everything, kill_at, tables
from tests.contract.given import NOON, ManualClock, memory
from tests.contract.test_migrations import WithMigrations, copied_migrations, recorded

BEFORE = 10
GROUPS = "0011_groups"

ROWS = """
insert into users (user_id, seq, created_at) values ('ada', 100, 0);
insert into documents (user_id, id, group_name, session_id, message_id, type, category, role, speaker_type,
    speaker_name, text, source, created_at, stored_at)
    values ('ada', 1, 'main', 'chat', 'm1', 'message', 'transcript', 'user', 'human', '', 'My city is Oslo',
        'live', 7, 7),
    ('ada', 2, 'team', 'room', 'm1', 'message', 'transcript', 'user', 'human', '', 'My pet is Rex',
        'live', 8, 8);
insert into sessions (user_id, session_id, group_name, last_document, wanted_through, queued_through,
    created_at, updated_at)
    values ('ada', 'chat', 'main', 1, 1, 1, 7, 7), ('ada', 'room', 'team', 2, 2, 0, 8, 8);
insert into facts (user_id, id, key, value, stated_at, source, session_id, message_id, created_at, updated_at)
    values ('ada', 3, 'city', 'Oslo', 7, 'live', 'chat', 'm1', 7, 7);
insert into fact_history (user_id, id, key, value, stated_at, source)
    values ('ada', 4, 'city', 'Rome', 5, 'live');
insert into context (user_id, id, question, answer, digest, stated_at, source, created_at, updated_at)
    values ('ada', 5, 'Where?', 'Oslo', 'd', 7, 'live', 7, 7);
insert into tombstones (user_id, kind, session_id, key, deleted_at) values ('ada', 'fact', '', 'gone', 9),
    ('ada', 'document', 'chat', 'm9', 9);
insert into rejections (user_id, id, kind, name, content, reason, stated_at, source, created_at)
    values ('ada', 6, 'fact', 'pet', 'Tom', 'not said', 7, 'live', 7);
insert into jobs (user_id, id, kind, key, status, turn, tries_left, queued_at) values
    ('ada', 10, 'extract', 'chat', 'waiting', 0, 3, 1), ('ada', 11, 'extract', 'chat', 'running', 0, 3, 1),
    ('ada', 12, 'extract', 'chat', 'done', 0, 3, 1), ('ada', 13, 'extract', 'chat', 'failed', 0, 0, 1),
    ('ada', 14, 'extract', 'chat', 'dropped', 0, 3, 1);
"""


def make_old(url: str, folder: Path) -> None:
    """A database of the version before groups, with rows in every table that groups scope."""
    with closing(connect(url)) as database:
        older = copied_migrations(database, folder)
        for migration in load_migrations(database.migrations()):
            if migration.version > BEFORE:
                (older / f"{migration.version:04}_{migration.name}.sql").unlink()
        assert migrate(WithMigrations(database, older)) == BEFORE  # type: ignore[arg-type]
        with database.write() as tx:
            tx.execute_script(ROWS)


def check_rows(database: Database) -> None:
    with database.read() as connection:
        (fact,) = facts.listing(connection, "ada")
        assert (fact.key, fact.value, fact.group_name) == ("city", "Oslo", "main")
        assert [past.value for past in facts.history(connection, "ada", "city")] == ["Rome", "Oslo"]
        assert [pair.answer for pair in context.listing(connection, "ada")] == ["Oslo"]
        assert [refused.content for refused in rejections.listing(connection, "ada")] == ["Tom"]
        assert tombstones.exists(connection, "ada", tombstones.FACT, "gone", 8)
        buried = connection.rows("select kind, session_id, key, group_name from tombstones order by kind")
        assert {job.status for job in jobs.listing(connection, "ada", "extract")} == set(jobs.STATUSES)
        assert sessions.get(connection, "ada", "chat") is not None
        assert sessions.get(connection, "ada", "room") is not None, "what had another name is main's"
        groups = connection.rows("select text, group_name from documents order by id")
    assert buried == [("document", "chat", "m9", "main"), ("fact", "", "gone", "main")]
    assert groups == [("My city is Oslo", "main"), ("My pet is Rex", "main")]


@pytest.mark.every_scheme
def test_every_row_is_there_and_of_main(database_url: str, tmp_path: Path) -> None:
    make_old(database_url, tmp_path / "older")
    with closing(open_database(database_url)) as database:
        check_rows(database)
    with memory(database_url, ManualClock(NOON)) as service:
        assert service.recall("ada", "What is my pet?", threshold=0.0).hits
        assert service.recall("ada", "What is my pet?", threshold=0.0, group="team").abstained
        assert service.facts("ada", group="team") == []


@pytest.mark.every_scheme
def test_a_migration_that_breaks_off_leaves_what_was_there(database_url: str, tmp_path: Path) -> None:
    make_old(database_url, tmp_path / "older")
    with closing(connect(database_url)) as database:
        broken = copied_migrations(database, tmp_path / "broken")
        file = broken / f"{GROUPS}.sql"
        file.write_text(file.read_text() + "\nselect * from no_such_table;\n")
        with pytest.raises(DatabaseError):
            migrate(WithMigrations(database, broken))  # type: ignore[arg-type]
        assert recorded(database) == list(range(1, BEFORE + 1))
        with database.read() as connection:
            assert "group_name" not in database.tables(connection)["facts"]
            assert connection.row("select value from facts where key = 'city'") == ("Oslo",)
    with closing(open_database(database_url)) as database:
        check_rows(database)


@pytest.mark.every_scheme
def test_a_process_that_is_killed_in_the_migration_leaves_the_old_or_the_new(
    database_url: str, tmp_path: Path
) -> None:
    make_old(database_url, tmp_path / "older")
    with closing(connect(database_url)) as database:
        before = everything(database)
        (sql,) = (one.sql for one in load_migrations(database.migrations()) if one.version == BEFORE + 1)
        assert {"sessions", "documents", "facts", "tombstones", "api_keys"} <= set(tables(sql))
        for point in (*tables(sql), RECORD, COMMIT):
            kill_at(database_url, "groups", point)
            assert recorded(database) == list(range(1, BEFORE + 1)), point
            assert everything(database) == before, point
    kill_at(database_url, "groups", COMMITTED)
    with closing(connect(database_url)) as database:
        assert recorded(database) == [one.version for one in load_migrations(database.migrations())]
    with closing(open_database(database_url)) as database:
        check_rows(database)
