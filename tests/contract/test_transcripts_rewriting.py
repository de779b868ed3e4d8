"""Files that are written anew, shrink, vanish or are read by two at once; what was deleted stays out."""

import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.errors import DatabaseUnavailable
from shepherd_memory.service import Service
from shepherd_memory.storage.database import Database, open_database
from shepherd_memory.transcripts import ingestion
from shepherd_memory.transcripts.ingestion import IngestOptions, IngestResult, ingest_file
from shepherd_memory.transcripts.library import Library
from tests.contract.given import ManualClock, config_for, memory, texts_of
from tests.contract.recalling import check_indexes
from tests.transcripts import agent_line, append, codex_lines, exchange, taken_in, user_line, write

ADA = "ada"
GAP_US = 3600 * 10**6
LEASE_SECONDS = 61.0


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock) as opened:
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "base" / "kettle" / "session.jsonl", exchange(10, 22))


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingestion, "BATCH_ENTRIES", 2)
    monkeypatch.setattr(ingestion, "PURGE_BATCH", 2)


def ingest(service: Service, path: Path, user_id: str = ADA, **options: Any) -> IngestResult:
    return service.transcripts.ingest(user_id, path, **options)


def touch(path: Path) -> None:
    """Another time of change, whatever the clock's grain."""
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))


def check_is_what_the_file_says(service: Service, path: Path) -> None:
    """Ada has what somebody has who never saw another version of the file."""
    ingest(service, path, "newcomer")
    mine, theirs = taken_in(service.database, ADA), taken_in(service.database, "newcomer")
    for table, rows in theirs.items():
        assert mine[table] == rows, table
    check_indexes(service.database)


@pytest.mark.every_scheme
@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(exchange(30, 42), id="same size"),
        pytest.param(exchange(50, 80), id="larger"),
        pytest.param(exchange(50, 54), id="smaller"),
        pytest.param(exchange(10, 15), id="shrunk"),
        pytest.param([], id="empty"),
    ],
)
def test_a_file_that_was_written_anew_is_read_anew(
    service: Service, path: Path, lines: list[dict[str, Any]]
) -> None:
    ingest(service, path)
    size = path.stat().st_size
    write(path, lines)
    touch(path)
    assert (path.stat().st_size == size) == (lines == exchange(30, 42))
    assert ingest(service, path).outcome == "rewritten"
    if lines:
        check_is_what_the_file_says(service, path)
    else:
        assert (texts_of(service, ADA), service.conversations(ADA)) == ([], [])
    assert ingest(service, path).outcome == "unchanged"


def test_a_file_that_vanishes_deletes_nothing_and_is_told_of(service: Service, path: Path) -> None:
    ingest(service, path)
    before = taken_in(service.database, ADA)
    content = path.read_bytes()
    path.unlink()
    assert ingest(service, path).outcome == "failed"
    after = taken_in(service.database, ADA)
    assert [after[name] for name in before if name != "files"] == [
        before[name] for name in before if name != "files"
    ]
    assert list(service.transcripts.health(ADA).errors) == ["kettle/session.jsonl"]
    path.write_bytes(content)
    assert ingest(service, path).outcome == "unchanged"
    assert service.transcripts.health(ADA).errors == {}


def test_the_same_key_under_another_base_is_the_same_file(
    service: Service, path: Path, tmp_path: Path
) -> None:
    ingest(service, path)
    backup = write(tmp_path / "backup" / "kettle" / "session.jsonl", exchange(10, 22))
    touch(backup)
    assert ingest(service, backup).outcome == "unchanged"
    append(path, exchange(22, 24))
    assert (ingest(service, path).outcome, len(service.transcripts.files(ADA))) == ("grown", 1)


def test_an_older_copy_in_a_backup_takes_nothing_away(service: Service, path: Path, tmp_path: Path) -> None:
    ingest(service, path)
    before = taken_in(service.database, ADA)
    backup = write(tmp_path / "backup" / "kettle" / "session.jsonl", exchange(10, 16))
    earlier = path.stat().st_mtime_ns - 10**9
    os.utime(backup, ns=(earlier, earlier))
    assert ingest(service, backup).outcome == "unchanged"
    assert taken_in(service.database, ADA) == before
    assert ingest(service, path).outcome == "unchanged"


def test_a_file_that_another_agent_writes_anew_is_read_as_that_agents(service: Service, path: Path) -> None:
    ingest(service, path)
    write(path, codex_lines(4))
    touch(path)
    found = ingest(service, path)
    assert (found.outcome, found.source) == ("rewritten", "codex")
    check_is_what_the_file_says(service, path)


def test_a_reimport_comes_to_the_same_and_touches_nothing_else_of_the_session(
    service: Service, path: Path
) -> None:
    ingest(service, path)
    before = taken_in(service.database, ADA)
    assert ingest(service, path, reimport=True).outcome == "rewritten"
    assert taken_in(service.database, ADA) == before
    service.add_document(ADA, "a note of mine", session_id="session", message_id="note")
    ingest(service, path, reimport=True)
    assert texts_of(service, ADA).count("a note of mine") == 1
    check_indexes(service.database)


class Halted(Exception):
    """What a test raises in the middle, where a process would have been killed."""


def die_after(patched: pytest.MonkeyPatch, batches: int, part: str) -> None:
    """Let a reader die after so many batches of a part of its work, with all that it holds."""
    left = batches
    module = ingestion.session_documents if part == "of_file" else ingestion.documents
    real = getattr(module, part)

    def dying(*arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise Halted
        return real(*arguments)

    patched.setattr(module, part, dying)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("batches", range(0, 6, 2))
@pytest.mark.parametrize("part", ["of_file", "insert"])
def test_a_reimport_that_was_killed_is_gone_on_with_when_its_lease_has_ended(
    service: Service,
    path: Path,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    batches: int,
    part: str,
) -> None:
    ingest(service, path)
    before = taken_in(service.database, ADA)
    with monkeypatch.context() as patched:
        die_after(patched, batches, part)
        with pytest.raises(Halted):
            ingest(service, path, reimport=True)
    assert ingest(service, path).outcome == "busy"
    assert service.transcripts.health(ADA).ingesting == 1
    assert service.transcripts.recover() == 0
    clock.advance(LEASE_SECONDS)
    assert service.transcripts.recover() == 1
    ingest(service, path)
    assert taken_in(service.database, ADA) == before
    check_indexes(service.database)


@pytest.mark.every_scheme
@pytest.mark.usefixtures("small_batches")
def test_a_reader_that_lost_its_lease_stores_nothing_more(
    service: Service, path: Path, clock: ManualClock
) -> None:
    def overtaken() -> bool:
        clock.advance(LEASE_SECONDS)
        assert ingest(service, path).outcome in ("grown", "unchanged")
        return False

    found = ingest(service, path, should_stop=overtaken)
    assert (found.outcome, found.problem) == ("busy", "another process reads it now")
    check_is_what_the_file_says(service, path)


@pytest.mark.usefixtures("small_batches")
def test_an_import_that_is_stopped_goes_on_later(service: Service, path: Path) -> None:
    stopped = ingest(service, path, should_stop=lambda: True)
    assert (stopped.outcome, stopped.entries) == ("stopped", 2)
    assert ingest(service, path).outcome == "grown"
    check_is_what_the_file_says(service, path)


@pytest.mark.usefixtures("small_batches")
def test_a_reimport_that_is_stopped_keeps_what_was_archived(
    service: Service, path: Path, clock: ManualClock
) -> None:
    ingest(service, path)
    archive_all(service)
    ingest(service, path, reimport=True, should_stop=lambda: True)
    ingest(service, path)
    service.transcripts.poll()
    assert statuses(service) == ["archived"]


def archive_all(service: Service) -> None:
    service.transcripts.poll()
    with service.database.write() as tx:
        tx.execute("update conversations set status = 'archived'")


def statuses(service: Service) -> list[str]:
    return sorted(one.status for one in service.conversations(ADA))


def test_a_deleted_document_stays_out_when_the_file_is_read_again(service: Service, path: Path) -> None:
    ingest(service, path)
    gone = service.documents(ADA)[4]
    service.forget(ADA, document=gone.id)
    append(path, [user_line(90)])
    for options in ({}, {"reimport": True}):
        ingest(service, path, **options)
        assert gone.text not in texts_of(service, ADA)
        assert len(texts_of(service, ADA)) == 12


@pytest.mark.every_scheme
def test_a_deleted_session_stays_out_and_has_no_conversation_left(service: Service, path: Path) -> None:
    ingest(service, path)
    service.forget(ADA, session="session")
    for options in ({}, {"reimport": True}):
        ingest(service, path, **options)
        assert (texts_of(service, ADA), service.conversations(ADA)) == ([], [])
    append(path, [user_line(90)])
    ingest(service, path)
    assert len(texts_of(service, ADA)) == 1


def test_an_erased_user_stays_out_until_they_ask_for_the_file(service: Service, path: Path) -> None:
    ingest(service, path)
    service.erase(ADA)
    assert ingest(service, path).entries == 0
    append(path, [user_line(90, "a new word")])
    assert ingest(service, path).entries == 1
    assert texts_of(service, ADA) == ["a new word"]
    assert ingest(service, path, reimport=True).entries == 13
    check_is_what_the_file_says(service, path)


def test_an_erased_user_who_asks_at_once_gets_the_file_back(service: Service, path: Path) -> None:
    ingest(service, path)
    service.erase(ADA)
    assert ingest(service, path, reimport=True).entries == 12


@pytest.mark.parametrize("last", [33, 42])
def test_what_was_erased_stays_out_when_the_file_is_written_anew(
    service: Service, path: Path, last: int
) -> None:
    ingest(service, path)
    service.erase(ADA)
    ingest(service, path)
    write(path, exchange(30, last))
    touch(path)
    ingest(service, path)
    assert (texts_of(service, ADA), ingest(service, path).outcome) == ([], "unchanged")
    # Nor when they are erased once more, while it is short.
    service.erase(ADA)
    write(path, [*exchange(10, 22), user_line(90, "a new word")])
    ingest(service, path)
    assert texts_of(service, ADA) == ["a new word"]
    assert ingest(service, path, reimport=True).entries == 13
    check_is_what_the_file_says(service, path)


@pytest.mark.every_scheme
def test_two_that_take_in_the_same_file_at_once_double_nothing(
    url: str, clock: ManualClock, service: Service, tmp_path: Path, small_batches: None
) -> None:
    path = write(tmp_path / "base" / "kettle" / "session.jsonl", exchange(0, 60))
    outcomes: list[str] = []

    def take_in() -> None:
        with closing(open_database(url)) as database:
            how = IngestOptions(GAP_US)
            outcomes.append(ingest_file(database, ADA, path, path.parent.parent, how, clock).outcome)

    threads = [threading.Thread(target=take_in, name=f"reader {number}") for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("new") >= 1
    assert set(outcomes) <= {"new", "busy", "unchanged", "grown"}
    ingest(service, path)
    check_is_what_the_file_says(service, path)


class Failing:
    """A database that refuses writes from the nth on, as one that is full or locked does."""

    def __init__(self, database: Database, after: int, times: int) -> None:
        self._database = database
        self._failing = range(after, after + times)
        self._writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @contextmanager
    def write(self) -> Iterator[Any]:
        self._writes += 1
        with self._database.write() as tx:
            yield tx
            if self._writes - 1 in self._failing:
                raise DatabaseUnavailable("the disk is full")


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(
    ("after", "times", "is_noted"), [(0, 9, False), (1, 9, False), (2, 1, True), (4, 1, True)]
)
def test_a_database_that_refuses_in_the_middle_loses_nothing(
    service: Service, url: str, path: Path, clock: ManualClock, after: int, times: int, is_noted: bool
) -> None:
    failing: Any = Failing(service.database, after, times)
    library = Library(failing, lambda: config_for(url), clock, lambda: None)
    with pytest.raises(DatabaseUnavailable):
        library.ingest(ADA, path)
    assert bool(service.transcripts.health(ADA).errors) == is_noted
    if not is_noted:
        # Not even the lease could be given back.
        clock.advance(LEASE_SECONDS)
    ingest(service, path)
    assert service.transcripts.health(ADA).errors == {}
    check_is_what_the_file_says(service, path)


def test_a_file_of_nobody_knows_what_is_left_alone(service: Service, tmp_path: Path) -> None:
    path = write(tmp_path / "base" / "kettle" / "log.jsonl", [{"level": "info"}, 7, "text"])
    assert ingest(service, path).outcome == "unrecognised"
    assert service.transcripts.files(ADA) == []


def test_conversations_that_were_handed_on_keep_their_state_when_a_file_is_written_anew(
    service: Service, path: Path
) -> None:
    append(path, exchange(200, 208))
    ingest(service, path)
    with service.database.write() as tx:
        tx.execute("update conversations set status = 'archived' where entries = 12")
    write(path, [*exchange(10, 22), *exchange(200, 208), agent_line(300), *exchange(400, 406)])
    assert ingest(service, path).outcome in ("grown", "rewritten")
    ingest(service, path, reimport=True)
    assert statuses(service) == ["active", "active", "active", "archived"]
    check_indexes(service.database)
