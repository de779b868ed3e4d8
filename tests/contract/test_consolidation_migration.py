"""A database from before consolidation keeps every output, and what may be used of them is consolidated."""

from contextlib import closing
from pathlib import Path

import pytest

from shepherd_memory.phases import dirtiness, outputs, sections
from shepherd_memory.storage.database import Database, connect, load_migrations, migrate, open_database
from tests.contract.dying_migration import COMMIT, COMMITTED, RECORD, everything, kill_at, tables
from tests.contract.test_migrations import WithMigrations, copied_migrations, recorded

BEFORE = 18

ROWS = """
insert into users (user_id, seq, created_at) values ('ada', 100, 0), ('bob', 100, 0);
insert into conversation_outputs (user_id, group_name, conversation_id, strategy, session_id, source_through,
    source_updated_at, raw_memory, summary, slug, task_outcome, outcome, state, note, model, generated_at,
    use_count, last_used_at, selected, selected_source_updated_at) values
    ('ada', 'main', 1, 'summary', 's1', 5, 10, 'raw', 'tea', 'tea', 'success', 'succeeded', 'kept', 'n1', 'm',
        20, 3, 15, 0, null),
    ('ada', 'main', 2, 'summary', 's2', 6, 11, 'raw', 'boat', '', '', 'succeeded', 'kept', 'n2', 'm', 21,
        0, null, 1, 11),
    ('ada', 'main', 3, 'summary', 's3', 7, 12, '', '', '', '', 'succeeded', 'withheld', 'n3', 'm', 22,
        0, null, 0, null),
    ('ada', 'main', 4, 'summary', 's4', 8, 13, '', '', '', '', 'succeeded', 'forgotten', 'n4', 'm', 23,
        0, null, 0, null),
    ('ada', 'main', 5, 'summary', 's5', 9, 14, '', '', '', '', 'succeeded_no_output', 'kept', '', 'm', 24,
        0, null, 0, null),
    ('ada', 'team', 6, 'summary', 's6', 9, 14, '', '', '', '', 'succeeded', 'withheld', 'n6', 'm', 25,
        0, null, 0, null),
    ('ada', 'team', 6, 'other', 's6', 9, 14, 'raw', 'cup', '', '', 'succeeded', 'kept', 'n7', 'm', 26,
        0, null, 0, null),
    ('bob', 'team', 1, 'summary', 's1', 5, 10, 'raw', 'ink', '', '', 'succeeded', 'kept', 'n1', 'm', 27,
        0, null, 0, null);
"""


def make_old(url: str, folder: Path) -> None:
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
        found = connection.rows(
            f"select user_id, {outputs.COLUMNS}, selected, selected_source_updated_at, stored_as, pruned_at"
            " from conversation_outputs order by user_id, conversation_id, strategy"
        )
        kept = [one.conversation_id for one in outputs.listing(connection, "ada", group="main")]
        dirty = {
            (user, group): dirtiness.get(connection, user, group)
            for user in ("ada", "bob")
            for group in ("main", "team")
        }
        assert sections.current(connection, "ada", "main") == []
    states = [(row[0], row[2], row[11]) for row in found]
    assert states == [
        ("ada", 1, "kept"),
        ("ada", 2, "kept"),
        ("ada", 3, "withheld"),
        ("ada", 4, "forgotten"),
        ("ada", 5, "kept"),
        ("ada", 6, "kept"),
        ("ada", 6, "withheld"),
        ("bob", 1, "kept"),
    ]
    assert found[0][1:-4] == (
        "main", 1, "s1", 5, 10, "raw", "tea", "tea", "success", "succeeded", "kept", "n1", "m", 20, 3, 15,
        "summary",
    )  # fmt: skip
    assert [tuple(row[-4:]) for row in found[:2]] == [(0, None, 0, None), (1, 11, 0, None)]
    assert kept[-2:] == [2, 1]
    assert {place for place, state in dirty.items() if state.is_dirty} == {("ada", "main"), ("bob", "team")}
    assert (dirty["ada", "main"].version, dirty["ada", "main"].consolidated_at) == (0, None)
    assert dirty["ada", "main"].dirty_since == 21, "since the newest note that may be used"


@pytest.mark.every_scheme
def test_a_process_that_is_killed_in_the_migration_leaves_the_old_or_the_new(
    database_url: str, tmp_path: Path
) -> None:
    make_old(database_url, tmp_path / "older")
    with closing(connect(database_url)) as database:
        before = everything(database)
        (sql,) = (one.sql for one in load_migrations(database.migrations()) if one.version == BEFORE + 1)
        points = tables(sql)
        assert {"consolidations", "memory_sections", "section_sources", "conversation_outputs"} <= set(points)
        for point in (*points, RECORD, COMMIT):
            kill_at(database_url, "consolidation", point)
            assert recorded(database) == list(range(1, BEFORE + 1)), point
            assert everything(database) == before, point
    kill_at(database_url, "consolidation", COMMITTED)
    with closing(connect(database_url)) as database:
        assert recorded(database) == [one.version for one in load_migrations(database.migrations())]
        check_rows(database)
    with closing(open_database(database_url)) as database:
        check_rows(database)
