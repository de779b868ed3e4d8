"""Imports that end in the middle: nothing is taken for whole, and whoever comes next goes on."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.service import Service
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.lease_owner import new_owner
from shepherd_memory.transcripts import ingestion
from shepherd_memory.transcripts.ingestion import IngestResult
from tests.contract.given import ManualClock, memory, texts_of
from tests.contract.recalling import check_indexes
from tests.lease_owners import ended_owner, owner_before_reboot, owner_elsewhere
from tests.transcripts import append, exchange, taken_in, write

ADA = "ada"
LEASE_SECONDS, ABANDONED_SECONDS = 61.0, 3661.0


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock) as opened:
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "base" / "kettle" / "session.jsonl", exchange(10, 22))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingestion, "BATCH_ENTRIES", 6)
    monkeypatch.setattr(ingestion, "PURGE_BATCH", 6)


def ingest(service: Service, path: Path, user_id: str = ADA, **options: Any) -> IngestResult:
    return service.transcripts.ingest(user_id, path, **options)


def stop_in_the_middle(service: Service, path: Path) -> None:
    assert ingest(service, path, should_stop=lambda: True).outcome == "stopped"


def polled(service: Service) -> list[str]:
    service.transcripts.recover()
    service.transcripts.poll()
    return [one.status for one in service.conversations(ADA)]


def check_is_what_the_file_says(service: Service, path: Path) -> None:
    ingest(service, path, "newcomer")
    mine, theirs = taken_in(service.database, ADA), taken_in(service.database, "newcomer")
    for table, rows in theirs.items():
        assert mine[table] == rows, table
    check_indexes(service.database)


def test_half_a_conversation_is_not_taken_for_ended_until_it_is_read_on(
    service: Service, path: Path, clock: ManualClock
) -> None:
    stop_in_the_middle(service, path)
    assert (polled(service), service.transcripts.health(ADA).ingesting) == (["active"], 0)
    clock.advance(LEASE_SECONDS)
    assert polled(service) == ["active"]
    assert ingest(service, path).outcome == "grown"
    assert polled(service) == ["ready"]
    assert service.conversations(ADA)[0].entries == 12


@pytest.mark.every_scheme
def test_half_a_conversation_of_a_reader_that_was_killed_waits_too(
    service: Service, path: Path, clock: ManualClock
) -> None:
    def killed() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(service, path, should_stop=killed)
    clock.advance(LEASE_SECONDS)
    assert polled(service) == ["active"]
    ingest(service, path)
    assert polled(service) == ["ready"]


def be_read_by(service: Service, path: Path, owner: str) -> None:
    """Leave the file as a reader of that name left it when it was killed in the middle."""
    stop_in_the_middle(service, path)
    with service.database.write() as tx:
        tx.execute(
            "update transcript_files set token = :owner, lease_until = :until where user_id = :user_id",
            owner=owner,
            until=service._clock() + 60 * SECOND,
            user_id=ADA,
        )


@pytest.mark.every_scheme
def test_a_file_whose_reader_was_killed_on_this_machine_is_read_on_at_once(
    service: Service, path: Path
) -> None:
    be_read_by(service, path, ended_owner())
    assert service.transcripts.health(ADA).ingesting == 0
    assert ingest(service, path).outcome == "grown"
    assert polled(service) == ["ready"]


def test_a_file_whose_reader_was_killed_on_this_machine_is_let_go_at_once(
    service: Service, path: Path
) -> None:
    be_read_by(service, path, ended_owner())
    assert service.transcripts.recover() == 1
    assert service.transcripts.recover() == 0


@pytest.mark.parametrize("owner", [new_owner, owner_elsewhere, owner_before_reboot])
def test_a_file_whose_reader_may_be_alive_is_left_to_it_for_its_lease(
    service: Service, path: Path, clock: ManualClock, owner: Callable[[], str]
) -> None:
    be_read_by(service, path, owner())
    assert service.transcripts.health(ADA).ingesting == 1
    assert service.transcripts.recover() == 0
    assert ingest(service, path).outcome == "busy"
    clock.advance(LEASE_SECONDS)
    assert ingest(service, path).outcome == "grown"


def test_a_file_that_vanished_in_the_middle_holds_its_conversation_for_an_hour(
    service: Service, path: Path, clock: ManualClock
) -> None:
    stop_in_the_middle(service, path)
    path.unlink()
    assert ingest(service, path).outcome == "failed"
    assert polled(service) == ["active"]
    clock.advance(ABANDONED_SECONDS)
    assert polled(service) == ["ready"]


def test_a_reader_that_was_stopped_at_the_very_end_holds_nothing_once_that_is_seen(
    service: Service, path: Path
) -> None:
    write(path, exchange(10, 16))
    stop_in_the_middle(service, path)
    assert ingest(service, path).entries == 0
    assert polled(service) == ["ready"]
    assert ingest(service, path).outcome == "unchanged"


def test_removing_what_was_read_before_can_be_stopped(service: Service, path: Path) -> None:
    ingest(service, path)
    before = taken_in(service.database, ADA)
    assert ingest(service, path, reimport=True, should_stop=lambda: True).outcome == "stopped"
    assert len(texts_of(service, ADA)) == 6
    assert ingest(service, path).outcome == "rewritten"
    assert taken_in(service.database, ADA) == before


def test_a_file_that_is_cut_while_it_is_read_is_judged_anew(service: Service, path: Path) -> None:
    def cut() -> bool:
        write(path, exchange(50, 53))
        return False

    assert ingest(service, path, should_stop=cut).outcome == "busy"
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    assert ingest(service, path).outcome == "rewritten"
    check_is_what_the_file_says(service, path)


def once(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, before: Any = None, after: Any = None
) -> None:
    """Let something happen before or after the first call of a function."""
    real = getattr(where, name)

    def first(*arguments: Any) -> Any:
        monkeypatch.setattr(where, name, real)
        if before is not None:
            before()
        found = real(*arguments)
        if after is not None:
            after()
        return found

    monkeypatch.setattr(where, name, first)


def test_a_file_that_grows_while_two_read_it_is_not_taken_for_rewritten(
    service: Service, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(service, path)

    def another() -> None:
        append(path, exchange(22, 24))
        assert ingest(service, path).outcome == "grown"

    once(monkeypatch, ingestion.files, "get", before=another)
    assert ingest(service, path).outcome == "unchanged"
    check_is_what_the_file_says(service, path)


@pytest.mark.parametrize("options", [{}, {"reimport": True}])
def test_what_another_has_read_on_meanwhile_is_judged_anew(
    service: Service, path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    ingest(service, path)
    append(path, exchange(22, 24))
    once(monkeypatch, ingestion, "judge", after=lambda: ingest(service, path))
    assert ingest(service, path, **options).outcome == "busy"
    check_is_what_the_file_says(service, path)


def test_a_pipe_is_refused_and_not_waited_for(service: Service, path: Path) -> None:
    os.mkfifo(path.with_name("pipe.jsonl"))
    found = ingest(service, path.with_name("pipe.jsonl"))
    assert (found.outcome, found.problem) == ("failed", "cannot be read: not a regular file")


def test_a_file_outside_of_its_base_fails_alone(service: Service, path: Path, tmp_path: Path) -> None:
    found = ingest(service, path, base=tmp_path / "elsewhere")
    assert (found.outcome, "is not under" in found.problem) == ("failed", True)
    assert service.transcripts.files(ADA) == []
