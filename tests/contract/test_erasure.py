"""Erasing a user: every row in every table, every byte in our files, and nobody else's."""

import pytest

from shepherd_memory.maintenance import legacy
from shepherd_memory.maintenance.erasure import user_tables
from shepherd_memory.storage.database import Database
from tests.consolidation_endpoint import ToolCall, agent, writes
from tests.contract.every_table import furnish, take_in
from tests.contract.given import ManualClock, everything_of, facts_of, memory, texts_of, user_says, work
from tests.contract.test_consolidation import consolidate, note_of
from tests.contract.test_phases import HOUR, noting
from tests.databases import DatabaseSource
from tests.endpoint import Body, ScriptedEndpoint

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


@pytest.mark.parametrize("at", ["the first round", "the last"])
def test_a_consolidation_that_runs_while_its_user_is_erased_brings_nothing_back(
    url: str, database_source: DatabaseSource, clock: ManualClock, endpoint: ScriptedEndpoint, at: str
) -> None:
    with noting(url, clock, endpoint) as service:
        endpoint.default = agent(writes(f"Ada is a {WORD}.", f"Ada, a {WORD}."))
        note_of(service, clock)
        consolidate(service, clock)
        service.add_memory_note("ada", f"Ask the {WORD}.", name=WORD)
        service.edit_memory_file("ada", "MEMORY.md", f"## {WORD}\n\nEdited.")
        assert WORD.encode() in database_source.dump(url)
        clock.advance(7 * HOUR)
        note_of(service, clock, "second")

        def script(body: Body) -> list[ToolCall]:
            reads = [("list_files", {})]
            if at == "the first round" or len(body["messages"]) > 2:
                service.erase("ada")
            return reads if len(body["messages"]) == 2 else list(writes(f"Ada is a {WORD}.")(body))

        endpoint.default = agent(script)
        assert [one.status for one in consolidate(service, clock)] == ["lost"]
        assert [table for table, rows in everything_of(service.database, "ada").items() if rows] == []
        assert WORD.encode() not in database_source.dump(url)
