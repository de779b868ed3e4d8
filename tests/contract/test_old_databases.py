"""Databases of the original shepherd become ours: every row, redacted, once, on every database."""

from contextlib import closing
from typing import Any

import pytest

from shepherd_memory.errors import DatabaseRefused
from shepherd_memory.maintenance import legacy
from shepherd_memory.storage.database import Database, connect, migrate, open_database
from tests.contract.given import NOON, ManualClock, facts_of, memory, pairs_of, user_says
from tests.contract.old_database import (
    CONTEXT,
    CONVERSATIONS,
    FACTS,
    OLD_FACTS,
    SECRET,
    STAMP,
    WHEN,
    build,
    tables_of,
)


@pytest.mark.every_scheme
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
    with closing(connect(database_url)) as database, database.read() as connection:
        assert "user_message" not in database.tables(connection)["conversations"], "this one is ours"


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


@pytest.mark.every_scheme
def test_secrets_of_an_old_database_are_redacted(database_url: str) -> None:
    build(database_url, CONTEXT, rows=[("context", (1, f"My key is {SECRET}", "ok", STAMP, "h", "ada"))])
    with memory(database_url, ManualClock(NOON)) as service:
        assert SECRET not in repr(service.context("ada"))


@pytest.mark.every_scheme
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
    return legacy.import_legacy_tables(database, NOON)


def test_what_the_user_has_done_since_wins_over_what_is_moved_late(database_url: str) -> None:
    build(database_url, FACTS, rows=[("facts", ("ada", "city", "Bonn", STAMP, STAMP))])
    with closing(open_database(database_url)):
        pass
    with closing(open_database(database_url)) as database:
        from shepherd_memory.memory import facts
        from shepherd_memory.storage import users
        from shepherd_memory.storage.rows import Provenance

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
        service.remember("ada", [user_says("hello")], "chat")
        service.transcripts.poll()
        before = service.conversations("ada")
    with memory(database_url, ManualClock(NOON)) as service:
        assert facts_of(service, "ada") == {"pet": "Rex"}
        assert pairs_of(service, "ada") == [("Where?", "In Bonn")]
        assert service.conversations("ada") == before != []


@pytest.mark.every_scheme
def test_a_conversations_table_of_another_program_is_refused_and_left_alone(database_url: str) -> None:
    build(database_url, "create table conversations (id integer, title text)")
    with (
        pytest.raises(DatabaseRefused, match=r"another program \(conversations\).*one of its own"),
        memory(database_url, ManualClock(NOON)),
    ):
        pass
    assert tables_of(database_url) == {"conversations"}


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
