"""Erasing a user: every row in every table, every byte in our files, and nobody else's."""

import pytest

from shepherd_memory.maintenance import legacy
from shepherd_memory.maintenance.erasure import user_tables
from shepherd_memory.storage.database import Database
from tests.contract.every_table import furnish, take_in
from tests.contract.given import ManualClock, everything_of, facts_of, memory, texts_of, user_says, work
from tests.endpoint import ScriptedEndpoint

pytestmark = pytest.mark.every_scheme

WORD = "Xylophonist"


def test_every_row_in_every_table_is_gone_and_the_receipt_says_so(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        furnish(service, clock, "ada", WORD)
        furnish(service, clock, "bob", "Drummer")
        others = everything_of(service.database, "bob")
        counts = service.row_counts("ada")
        assert all(counts.values()), f"the test must fill every table: {counts}"
        receipt = service.erase("ada")
        assert receipt.rows == counts
        assert receipt.left == {}
        assert "backups" in receipt.note
        assert sum(service.row_counts("ada").values()) == 0
        assert everything_of(service.database, "bob") == others
        assert facts_of(service, "ada") == {}
        assert texts_of(service, "ada") == []


def test_tables_with_users_are_found_in_the_database_itself(database: Database) -> None:
    with database.read() as connection:
        tables = database.tables(connection)
        found = set(user_tables(database, connection))
    assert set(tables) - found <= {
        "schema_migrations",
        "endpoints",
        "job_kinds",
        "postings",
        "unindexed",
        "api_keys",
        "transcript_stops",
        "erasures",
        "tallies",
    }


def test_a_scan_does_not_bring_back_the_transcripts_of_an_erased_user(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        assert take_in(service, "ada", WORD) == "new"
        service.erase("ada")
        take_in(service, "ada", WORD)
        assert texts_of(service, "ada") == []
        assert take_in(service, "bob", WORD) == "new"
        assert texts_of(service, "bob") == [f"{WORD} in a transcript"]


def test_an_erased_user_can_begin_again(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> None:
    with memory(url, clock, endpoint.url) as service:
        furnish(service, clock, "ada", WORD)
        service.erase("ada")
        assert service.remember("ada", [user_says(f"my job is {WORD}")], "chat").stored == 1
        work(service)
        assert facts_of(service, "ada") == {"job": WORD}, "no tombstone is left either"


def test_erasing_somebody_who_is_not_there_removes_nothing(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        service.set_fact("bob", "pet", "Rex")
        receipt = service.erase("nobody")
        assert (receipt.rows, receipt.left) == ({}, {})
        assert facts_of(service, "bob") == {"pet": "Rex"}


def test_an_erasure_also_covers_old_rows_that_are_not_moved_yet(database: Database) -> None:
    with database.write() as tx:
        tx.execute_script("create table legacy_facts (user_id text, key text, value text)")
        tx.execute("insert into legacy_facts values ('ada', 'pet', 'Rex'), ('bob', 'pet', 'Fido')")
    try:
        with database.read() as connection:
            assert "legacy_facts" in user_tables(database, connection)
    finally:
        with database.write() as tx:
            tx.execute_script("drop table legacy_facts")
    assert legacy.import_legacy_tables(database, 0) == 0
