"""Erasing a user: every row in every table, every byte in our files, and nobody else's."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from shepherd_memory.extraction import ledger
from shepherd_memory.maintenance import legacy
from shepherd_memory.maintenance.erasure import user_tables
from shepherd_memory.memory import rejections
from shepherd_memory.service import Service
from shepherd_memory.storage import tombstones, users
from shepherd_memory.storage.database import Database
from shepherd_memory.storage.provenance import Provenance
from tests.contract.given import ManualClock, everything_of, facts_of, memory, texts_of, user_says, work
from tests.endpoint import ScriptedEndpoint

WORD = "Xylophonist"


def furnish(service: Service, clock: ManualClock, user_id: str, word: str) -> None:
    """A row in every table that has users."""
    service.remember(user_id, [user_says(f"my job is {word}")], "chat")
    work(service)
    for value in (f"{word} one", f"{word} two"):
        clock.advance(1)
        service.set_fact(user_id, "motto", value)
    service.set_fact(user_id, "gone", word)
    service.forget(user_id, fact="gone")
    service.remember(user_id, [user_says(f"{word} {number} " * 50) for number in range(40)], "long")
    with service.database.write() as tx:
        row_id = users.lock(tx, user_id, clock())
        where = Provenance(clock(), "live")
        rejections.insert(
            tx, user_id, row_id, rejections.Refused("fact", "a", word, "no", "", where), clock()
        )
        ledger.record(tx, user_id, ledger.EXTRACTION, ledger.Spent(1, 1, 1, 1), clock())
        tombstones.bury(tx, user_id, tombstones.CONTEXT, word, clock())
        tx.execute(
            "insert into vectors (user_id, id, part, model, seq, embedding)"
            " values (:user_id, 1, 0, :w, 1, :v)",
            user_id=user_id,
            w=word,
            v=service.database.vector([1.0, 2.0]),
        )
    assert service.inject(user_id, [user_says(f"Who said {word}?")]).block is not None
    take_in(service, user_id, word)


def take_in(service: Service, user_id: str, word: str) -> str:
    """A transcript of the user, on disk only until it is read; how that went."""
    line = {
        "type": "user",
        "uuid": f"said-{word}",
        "sessionId": "s",
        "timestamp": "2026-01-01T10:00:00Z",
        "message": {"role": "user", "content": f"{word} in a transcript"},
    }
    with TemporaryDirectory() as folder:
        path = Path(folder, "project", "s.jsonl")
        path.parent.mkdir()
        path.write_text(json.dumps(line) + "\n")
        return service.transcripts.ingest(user_id, path).outcome


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
        "postings",
        "unindexed",
        "api_keys",
        "transcript_stops",
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
    assert legacy.adopt(database, 0) == 0
