"""Databases of the original shepherd become ours: every row, redacted, once, on both databases."""

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.maintenance import legacy
from shepherd_memory.service import Service
from shepherd_memory.storage.database import Database, connect, migrate, open_database
from tests.contract.given import NOON, ManualClock, facts_of, memory, pairs_of

SECRET = "sk-ant-api03-" + "Zx9Yw8Vu7Ts6" * 7 + "-AA"
STAMP = 1_700_000_000
WHEN = datetime.fromtimestamp(STAMP, UTC)

CONTEXT = (
    "create table context (id integer primary key, user_message text not null,"
    " assistant_response text not null, timestamp integer not null, content_hash text unique,"
    " user_id text not null default 'local')"
)
CONVERSATIONS = (
    "create table conversations (id integer primary key, user_message text, assistant_response text,"
    " timestamp integer, content_hash text unique)"
)
FACTS = (
    "create table facts (user_id text not null default 'local', key text not null, value text,"
    " created_at integer, updated_at integer, primary key (user_id, key))"
)
OLD_FACTS = "create table facts (key text primary key, value text, created_at integer, updated_at integer)"
FULL_TEXT = """
create virtual table context_fts
  using fts5(user_message, assistant_response, content='context', content_rowid='id');
create trigger context_ai after insert on context begin
  insert into context_fts(rowid, user_message, assistant_response)
  values (new.id, new.user_message, new.assistant_response);
end;
create trigger context_ad after delete on context begin
  insert into context_fts(context_fts, rowid, user_message, assistant_response)
  values ('delete', old.id, old.user_message, old.assistant_response);
end;
"""


def build(url: str, *statements: str, rows: Sequence[tuple[str, Sequence[Any]]] = ()) -> None:
    """An old database: bare tables, written by no code of ours."""
    with closing(connect(url)) as database, database.write() as tx:
        for statement in statements:
            tx.execute_script(statement)
        for table, values in rows:
            marks = ", ".join(f":v{number}" for number in range(len(values)))
            tx.execute(
                f"insert into {table} values ({marks})",
                **{f"v{number}": value for number, value in enumerate(values)},
            )


def opened_service(url: str, check: Callable[[Service], None]) -> None:
    with memory(url, ManualClock(NOON)) as service:
        check(service)


def tables_of(url: str) -> set[str]:
    with closing(connect(url)) as database, database.read() as connection:
        return set(database.tables(connection))


def test_an_old_database_becomes_ours_under_its_users(database_url: str) -> None:
    build(
        database_url,
        CONTEXT,
        FACTS,
        rows=[
            ("context", (1, "Where do I live?", "In Bonn", STAMP, "h1", "ada")),
            ("context", (2, "What is my pet?", "Rex", STAMP + 1, "h2", "local")),
            ("facts", ("ada", "User Name", "Ada", STAMP, STAMP + 5)),
            ("facts", ("bob", "city", "Rome", STAMP, None)),
        ],
    )
    for _ in range(2):
        with memory(database_url, ManualClock(NOON)) as service:
            assert pairs_of(service, "ada") == [("Where do I live?", "In Bonn")]
            assert pairs_of(service, "local") == [("What is my pet?", "Rex")]
            assert facts_of(service, "ada") == {"name": "Ada"}
            assert facts_of(service, "bob") == {"city": "Rome"}
            (pair,) = service.context("ada")
            assert pair.stated_at == WHEN
            assert service.facts("bob")[0].stated_at == WHEN
            assert len(service.fact_history("ada", "name")) == 1
    assert not {name for name in tables_of(database_url) if name.startswith("legacy")}


def test_rows_from_before_there_were_users_become_those_of_local(database_url: str) -> None:
    build(
        database_url,
        CONVERSATIONS,
        OLD_FACTS,
        rows=[
            ("conversations", (1, "Where?", "In Bonn", STAMP, "h1")),
            ("facts", ("pet", "Rex", STAMP, STAMP)),
        ],
    )
    with memory(database_url, ManualClock(NOON)) as service:
        assert pairs_of(service, "local") == [("Where?", "In Bonn")]
        assert facts_of(service, "local") == {"pet": "Rex"}
    assert "conversations" not in tables_of(database_url)


def test_both_old_tables_at_once_are_joined_without_doubles(database_url: str) -> None:
    build(
        database_url,
        CONVERSATIONS,
        CONTEXT,
        rows=[
            ("conversations", (1, "Where?", "In Bonn", STAMP, "h1")),
            ("conversations", (2, "Why?", "Because", STAMP, "h2")),
            ("context", (1, "Where?", "In Bonn", STAMP, "h1", "local")),
            ("context", (2, "Where?", "In Bonn", STAMP, "h3", "ada")),
        ],
    )
    with memory(database_url, ManualClock(NOON)) as service:
        assert sorted(pairs_of(service, "local")) == [("Where?", "In Bonn"), ("Why?", "Because")]
        assert pairs_of(service, "ada") == [("Where?", "In Bonn")]


@pytest.mark.parametrize("broken", [False, True])
def test_the_old_full_text_table_goes_with_its_triggers(tmp_path: Path, broken: bool) -> None:
    file = tmp_path / "memory.db"
    with closing(sqlite3.connect(file)) as raw:
        raw.executescript(CONTEXT + ";" + FULL_TEXT)
        raw.execute("insert into context values (1, 'Where?', 'In Bonn', ?, 'h', 'ada')", (STAMP,))
        if broken:
            raw.execute("drop table context_fts")
        raw.commit()
    with memory(str(file), ManualClock(NOON)) as service:
        assert pairs_of(service, "ada") == [("Where?", "In Bonn")]
        service.add_context("ada", "Why?", "Because")
    assert not {name for name in tables_of(str(file)) if "fts" in name}


def test_the_full_text_table_of_the_old_conversations_goes_too(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with closing(sqlite3.connect(file)) as raw:
        raw.executescript((CONVERSATIONS + ";" + FULL_TEXT).replace("context", "conversations"))
        raw.execute("insert into conversations values (1, 'Where?', 'In Bonn', ?, 'h')", (STAMP,))
        raw.commit()
    with memory(str(file), ManualClock(NOON)) as service:
        assert pairs_of(service, "local") == [("Where?", "In Bonn")]
    assert not {name for name in tables_of(str(file)) if "fts" in name}


def test_bytes_that_are_no_text_do_not_stop_a_migration(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with closing(sqlite3.connect(file)) as raw:
        raw.executescript(CONTEXT + ";" + FACTS)
        raw.execute(
            "insert into context values (1, cast(x'5768657265ff3f' as text), cast(x'c328' as text), ?,"
            " 'h', 'ada')",
            (STAMP,),
        )
        raw.execute(
            "insert into facts values ('ada', 'pet', cast(x'526578ff' as text), ?, ?)", (STAMP, STAMP)
        )
        raw.execute("insert into facts values ('ada', 'blob', x'ff00', ?, ?)", (STAMP, STAMP))
        raw.commit()
    with memory(str(file), ManualClock(NOON)) as service:
        assert pairs_of(service, "ada") == [("Where\ufffd?", "\ufffd(")]
        assert facts_of(service, "ada")["pet"] == "Rex\ufffd"


ODD_TIMES: list[Any] = [None, 0, -5, 1_700_000_000_000, 10**17, 1_700_000_000_000_000_000]


@pytest.mark.parametrize("stamp", ODD_TIMES)
def test_an_odd_time_in_an_old_row_is_no_obstacle(database_url: str, stamp: int | None) -> None:
    build(
        database_url,
        CONVERSATIONS.replace("timestamp integer", "timestamp bigint"),
        OLD_FACTS.replace("integer", "bigint"),
        rows=[
            ("conversations", (1, "Where?", "In Bonn", stamp, "h")),
            ("facts", ("pet", "Rex", stamp, stamp)),
        ],
    )
    with memory(database_url, ManualClock(NOON)) as service:
        assert facts_of(service, "local") == {"pet": "Rex"}
        assert pairs_of(service, "local") == [("Where?", "In Bonn")]
        assert list(service.export("local"))


@pytest.mark.parametrize("stamp", ["2023-11-14 22:13:20", "1700000000", 1_700_000_000.0])
def test_times_are_read_in_each_form_that_the_original_wrote(tmp_path: Path, stamp: Any) -> None:
    file = str(tmp_path / "memory.db")
    build(file, CONVERSATIONS, rows=[("conversations", (1, "Where?", "In Bonn", stamp, "h"))])
    with memory(file, ManualClock(NOON)) as service:
        assert service.context("local")[0].stated_at == WHEN


def test_secrets_in_an_old_database_are_in_no_byte_of_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with closing(sqlite3.connect(file)) as raw:
        raw.executescript(CONTEXT + ";" + FACTS + ";" + FULL_TEXT)
        raw.execute(
            "insert into context values (1, ?, 'noted', ?, 'h', 'ada')", (f"My key is {SECRET}", STAMP)
        )
        raw.execute("insert into facts values ('ada', 'api_key', ?, ?, ?)", (SECRET, STAMP, STAMP))
        raw.commit()
    assert SECRET.encode() in file.read_bytes()
    with memory(str(file), ManualClock(NOON)) as service:
        assert "[redacted:" in pairs_of(service, "ada")[0][0]
        assert "[redacted:" in facts_of(service, "ada")["api_key"]
        for name in os.listdir(tmp_path):
            found = (tmp_path / name).read_bytes()
            assert SECRET.encode() not in found, name
            assert SECRET[20:60].encode() not in found, name


def test_secrets_of_an_old_database_are_redacted_on_postgres_too(postgres_url: str) -> None:
    build(postgres_url, CONTEXT, rows=[("context", (1, f"My key is {SECRET}", "ok", STAMP, "h", "ada"))])
    with memory(postgres_url, ManualClock(NOON)) as service:
        assert SECRET not in repr(service.context("ada"))


def test_an_interrupted_move_goes_on_at_the_next_start(database_url: str) -> None:
    build(database_url, CONTEXT, rows=[("context", (1, "Where?", "In Bonn", STAMP, "h1", "ada"))])
    with closing(open_database(database_url)):
        pass
    assert "legacy_context" in tables_of(database_url)
    with closing(open_database(database_url)) as database:
        assert _adopted(database) == 1
        assert _adopted(database) == 0
    with memory(database_url, ManualClock(NOON)) as service:
        assert pairs_of(service, "ada") == [("Where?", "In Bonn")]


def _adopted(database: Database) -> int:
    return legacy.adopt(database, NOON)


def test_what_the_user_has_done_since_wins_over_what_is_moved_late(database_url: str) -> None:
    build(database_url, FACTS, rows=[("facts", ("ada", "city", "Bonn", STAMP, STAMP))])
    with closing(open_database(database_url)):
        pass
    with closing(open_database(database_url)) as database:
        from shepherd_memory.memory import facts
        from shepherd_memory.storage import users
        from shepherd_memory.storage.provenance import Provenance

        with database.write() as tx:
            row_id = users.lock(tx, "ada", NOON)
            facts.put(tx, "ada", "city", "Rome", Provenance(NOON, "user"), NOON, row_id)
    with memory(database_url, ManualClock(NOON)) as service:
        assert facts_of(service, "ada") == {"city": "Rome"}
        assert [past.value for past in service.fact_history("ada", "city")] == ["Bonn", "Rome"]


def test_our_own_tables_are_never_mistaken_for_old_ones(database_url: str) -> None:
    with memory(database_url, ManualClock(NOON)) as service:
        service.set_fact("ada", "pet", "Rex")
        service.add_context("ada", "Where?", "In Bonn")
    with closing(connect(database_url)) as database, database.write() as tx:
        # As a later version of ours may have it.
        tx.execute_script(
            "create table conversations (user_id text, user_message text, assistant_response text)"
        )
        tx.execute("insert into conversations values ('ada', 'hello', 'hi')")
    with memory(database_url, ManualClock(NOON)) as service:
        assert facts_of(service, "ada") == {"pet": "Rex"}
        assert pairs_of(service, "ada") == [("Where?", "In Bonn")]
    assert "conversations" in tables_of(database_url)


def test_a_conversations_table_of_another_shape_is_left_alone(database_url: str) -> None:
    build(database_url, "create table conversations (id integer, title text)")
    with memory(database_url, ManualClock(NOON)) as service:
        assert service.context("local") == []
    assert "conversations" in tables_of(database_url)


def test_an_old_database_in_a_schema_of_postgres_moves_inside_it(postgres_url: str) -> None:
    url = f"{postgres_url}{'&' if '?' in postgres_url else '?'}schema=agents"
    with closing(connect(postgres_url)) as database, database.write() as tx:
        tx.execute_script("create schema agents")
    build(url, CONTEXT, FACTS, rows=[("context", (1, "Where?", "In Bonn", STAMP, "h1", "ada"))])
    with memory(url, ManualClock(NOON)) as service:
        assert pairs_of(service, "ada") == [("Where?", "In Bonn")]
    assert tables_of(postgres_url) == set()


def test_keys_that_mean_the_same_become_one_fact_with_a_history(database_url: str) -> None:
    build(
        database_url,
        FACTS,
        rows=[
            ("facts", ("ada", "user_name", "Ada L.", STAMP, STAMP)),
            ("facts", ("ada", "Name", "Ada", STAMP + 9, STAMP + 9)),
            ("facts", ("ada", "!!", "nothing", STAMP, STAMP)),
            ("facts", ("ada", "empty", None, STAMP, STAMP)),
        ],
    )
    with memory(database_url, ManualClock(NOON)) as service:
        assert facts_of(service, "ada")["name"] == "Ada"
        assert [past.value for past in service.fact_history("ada", "name")] == ["Ada L.", "Ada"]
        assert "empty" not in facts_of(service, "ada")


def test_an_old_database_that_cannot_be_moved_is_left_as_it_is(database_url: str) -> None:
    build(
        database_url,
        CONTEXT,
        "create table jobs (id integer)",
        rows=[("context", (1, "Where?", "In Bonn", STAMP, "h1", "ada"))],
    )
    with closing(connect(database_url)) as database:
        with pytest.raises(Exception, match="another program"):
            migrate(database)
        with database.read() as connection:
            assert connection.rows("select user_message from context") == [("Where?",)]
