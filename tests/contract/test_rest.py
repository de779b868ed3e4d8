"""What a chat says rests until more is said, or nothing: queued later, by whichever process there is."""

from contextlib import closing
from pathlib import Path

import pytest

from shepherd_memory.extraction import queue
from shepherd_memory.memory import sessions
from shepherd_memory.memory.sessions import Session
from shepherd_memory.service import Service
from shepherd_memory.storage.database import connect, load_migrations, migrate, open_database
from tests.contract.given import NOON, ManualClock, drain, facts_of, memory, texts_of, user_says, work
from tests.contract.test_migrations import WithMigrations, copied_migrations
from tests.endpoint import ScriptedEndpoint, user_text

REST = 300.0
UPKEEP = 5.0


def say(service: Service, text: str, session: str = "chat", **more: object) -> bool:
    return service.remember("ada", [user_says(text)], session, **{"rest_seconds": REST, **more}).queued  # type: ignore[arg-type]


def session_of(service: Service, session_id: str = "chat") -> Session:
    with service.database.read() as connection:
        found = sessions.get(connection, "ada", session_id)
    assert found is not None
    return found


def asked(endpoint: ScriptedEndpoint) -> str:
    return "\n".join(user_text(request.json) for request in endpoint.requests)


def test_what_rests_is_stored_at_once_and_queued_by_nobody_before_its_time(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        assert not say(service, "my pet is Rex")
        assert texts_of(service, "ada") == ["my pet is Rex"]
        for _ in range(59):
            clock.advance(UPKEEP)
            assert work(service) == []
        assert service.items("ada") == []
        assert endpoint.requests == []


def test_extract_queues_what_rests_at_once(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> None:
    with memory(url, clock, endpoint.url) as service:
        say(service, "my pet is Rex")
        say(service, "my city is Bonn")
        assert service.extract("ada", "chat")
        assert not service.extract("ada", "chat")
        work(service)
        assert facts_of(service, "ada") == {"pet": "Rex", "city": "Bonn"}
        clock.advance(2 * REST)
        assert work(service) == []
        assert len(endpoint.requests) == 1


@pytest.mark.every_scheme
def test_silence_queues_what_rests_even_one_turn(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        say(service, "my pet is Rex")
        clock.advance(REST)
        work(service)
        assert facts_of(service, "ada") == {"pet": "Rex"}
        session = session_of(service)
        assert session.extracted_through == session.queued_through == session.last_document


def test_whatever_is_said_meanwhile_makes_it_rest_longer(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        say(service, "my pet is Rex")
        clock.advance(REST - 1)
        service.remember("ada", [{"role": "assistant", "content": "A dog?"}], "chat", rest_seconds=REST)
        clock.advance(REST - 1)
        assert work(service) == []
        clock.advance(UPKEEP)
        work(service)
        assert facts_of(service, "ada") == {"pet": "Rex"}


def test_an_answer_alone_is_nothing_to_extract(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        service.remember("ada", [{"role": "assistant", "content": "Hello"}], "chat", rest_seconds=REST)
        assert not service.extract("ada", "chat")
        clock.advance(2 * REST)
        assert work(service) == []


def test_what_a_killed_chat_has_said_is_queued_by_any_later_worker(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        say(service, "my pet is Rex")
    clock.advance(REST)
    with memory(url, clock, endpoint.url) as another:
        drain(another, clock)
        another.worker.run_once()
        assert facts_of(another, "ada") == {"pet": "Rex"}


def test_without_an_endpoint_it_is_wanted_and_caught_up_later(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock) as service:
        say(service, "my pet is Rex")
        assert not service.extract("ada", "chat")
        session = session_of(service)
        assert session.wanted_through == session.last_document > session.queued_through
    with memory(url, clock, endpoint.url) as service:
        assert work(service) == []
        clock.advance(REST)
        work(service)
        assert facts_of(service, "ada") == {"pet": "Rex"}


def test_where_documents_are_not_kept_nothing_can_rest(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_documents=False) as service:
        assert say(service, "my pet is Rex")
        work(service)
        assert facts_of(service, "ada") == {"pet": "Rex"}
        assert texts_of(service, "ada") in ([], [""])


def test_what_rests_goes_along_with_what_is_said_without_rest(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        say(service, "my pet is Rex")
        assert say(service, "my city is Bonn", rest_seconds=0.0)
        work(service)
        assert facts_of(service, "ada") == {"pet": "Rex", "city": "Bonn"}
        clock.advance(2 * REST)
        assert work(service) == []
        assert asked(endpoint).count("Rex") == 1


def test_documents_that_are_turned_off_meanwhile_lose_nothing(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        say(service, "my pet is Rex")
    with memory(url, clock, endpoint.url, memory_documents=False) as service:
        assert say(service, "my city is Bonn")
        work(service)
        assert facts_of(service, "ada") == {"pet": "Rex", "city": "Bonn"}
        assert asked(endpoint).count("Rex") == 1


def test_what_was_stored_without_asking_for_extraction_stays_so(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        say(service, "my pet is Rex", extract=False)
        clock.advance(2 * REST)
        assert work(service) == []


@pytest.mark.every_scheme
def test_each_session_and_user_rests_alone(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> None:
    with memory(url, clock, endpoint.url) as service:
        say(service, "my pet is Rex", "first")
        service.remember("bob", [user_says("my pet is Tom")], "first", rest_seconds=REST)
        clock.advance(REST / 2)
        say(service, "my city is Bonn", "second")
        assert service.extract("bob", "first")
        work(service)
        assert (facts_of(service, "ada"), facts_of(service, "bob")) == ({}, {"pet": "Tom"})
        clock.advance(REST / 2)
        work(service)
        assert facts_of(service, "ada") == {"pet": "Rex"}
        assert service.items("ada", "waiting") == []


@pytest.mark.every_scheme
@pytest.mark.parametrize("forgotten", ["session", "user"])
def test_what_is_deleted_while_it_rests_is_never_extracted(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, forgotten: str
) -> None:
    with memory(url, clock, endpoint.url) as service:
        say(service, "my pet is Rex")
        if forgotten == "session":
            service.forget("ada", session="chat")
        else:
            service.erase("ada")
        clock.advance(2 * REST)
        work(service)
        assert endpoint.requests == []


@pytest.mark.every_scheme
def test_a_database_of_version_four_keeps_its_sessions(
    database_url: str, tmp_path: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with closing(connect(database_url)) as database:
        older = copied_migrations(database, tmp_path / "older")
        for migration in load_migrations(database.migrations()):
            if migration.version > 4:
                (older / f"{migration.version:04}_{migration.name}.sql").unlink()
        assert migrate(WithMigrations(database, older)) == 4  # type: ignore[arg-type]
        with database.write() as tx:
            tx.execute("insert into users (user_id, seq, created_at) values ('ada', 9, 0)")
            tx.execute(
                "insert into sessions (user_id, session_id, group_name, last_document, wanted_through,"
                " queued_through, created_at, updated_at)"
                " values ('ada', 'chat', 'main', 5, 5, 0, :now, :now)",
                now=NOON,
            )
    with closing(open_database(database_url)) as database, database.read() as connection:
        found = sessions.get(connection, "ada", "chat")
        assert found is not None
        assert (found.last_document, found.wanted_through, found.queued_through) == (5, 5, 0)
        assert sessions.to_catch_up(connection, NOON, 10) == [("ada", "chat", "main")], "it rests no longer"
    with memory(database_url, clock, endpoint.url) as service:
        assert queue.catch_up(service.database, clock()) == 1
        say(service, "my pet is Rex")
        clock.advance(REST)
        work(service)
        assert facts_of(service, "ada") == {"pet": "Rex"}
