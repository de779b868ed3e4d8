"""Live chats in conversations: grouped by the poll, by the same gap, with a status that is true."""

import io
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from shepherd_memory.conversations import live
from shepherd_memory.errors import InvalidInput
from shepherd_memory.memory import sessions
from shepherd_memory.service import Service
from tests.contract.given import ManualClock, drain, memory, user_says
from tests.endpoint import ScriptedEndpoint, user_text

ADA = "ada"
HOUR = 3600.0


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with memory(url, clock, endpoint.url) as opened:
        yield opened


def say(service: Service, first: int, last: int, session: str = "chat", user: str = ADA, **more: Any) -> None:
    """One message each, at the clock's time."""
    said = [user_says(f"my wish_{number} is tea_{number}", id=f"m{number}") for number in range(first, last)]
    service.remember(user, said, session, **more)


def statuses(service: Service, user: str = ADA, **filters: Any) -> list[tuple[str, int]]:
    return [(one.status, one.entries) for one in reversed(service.conversations(user, **filters))]


@pytest.mark.every_scheme
def test_a_live_conversation_goes_through_its_states_and_is_extracted_once(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    say(service, 0, 6, provider="lab", cwd="/work/kettle")
    assert service.conversations(ADA) == [], "storing does not group"
    service.transcripts.poll()
    (one,) = service.conversations(ADA)
    assert (one.status, one.entries, one.source, one.file_key) == ("active", 6, "live", "")
    assert (one.provider, one.cwd, one.session_id) == ("lab", "/work/kettle", "chat")
    clock.advance(HOUR + 1)
    service.transcripts.poll()
    assert statuses(service) == [("processing", 6)], "its item waits"
    drain(service, clock)
    service.transcripts.poll()
    assert statuses(service) == [("archived", 6)]
    say(service, 6, 7)
    drain(service, clock)
    service.transcripts.poll()
    assert statuses(service) == [("archived", 6), ("active", 1)]
    clock.advance(HOUR + 1)
    service.transcripts.poll()
    assert statuses(service) == [("archived", 6), ("skipped", 1)]
    asked = "\n".join(user_text(received.json) for received in endpoint.requests)
    assert [asked.count(f"wish_{number} is") for number in range(7)] == [1] * 7
    assert service.transcripts.poll() == 0


def test_a_gap_cuts_a_live_session_and_a_short_silence_does_not(service: Service, clock: ManualClock) -> None:
    for first, pause in ((0, 0.5 * HOUR), (3, 1.5 * HOUR), (6, 0.9 * HOUR), (9, 0.0)):
        say(service, first, first + 3)
        clock.advance(pause)
    service.transcripts.poll()
    assert statuses(service) == [("processing", 6), ("active", 6)]


def test_without_an_endpoint_a_live_conversation_stays_ready_until_there_is_one(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock) as service:
        say(service, 0, 6)
        clock.advance(HOUR + 1)
        service.transcripts.poll()
        assert statuses(service) == [("ready", 6)]
        assert service.transcripts.poll() == 0
    with memory(url, clock, endpoint.url) as service:
        for _ in range(2):
            drain(service, clock)
            service.transcripts.poll()
        assert statuses(service) == [("archived", 6)]


def test_what_nobody_wants_extracted_is_archived_without_an_item(
    service: Service, clock: ManualClock
) -> None:
    say(service, 0, 6, extract=False)
    clock.advance(HOUR + 1)
    service.transcripts.poll()
    assert (statuses(service), service.items(ADA)) == ([("archived", 6)], [])


def test_a_failed_item_keeps_its_live_conversation_in_process(service: Service, clock: ManualClock) -> None:
    say(service, 0, 6)
    with service.database.write() as tx:
        tx.execute("update jobs set status = 'failed'")
    clock.advance(HOUR + 1)
    for _ in range(2):
        service.transcripts.poll()
    assert statuses(service) == [("processing", 6)]


@pytest.mark.every_scheme
def test_a_group_and_a_user_see_their_own_conversations_only(service: Service, clock: ManualClock) -> None:
    for group in ("main", "a", "b", "global"):
        say(service, 0, 5, group=group)
    say(service, 0, 2, user="bob")
    service.transcripts.poll()
    seen = {
        group: {one.group_name for one in service.conversations(ADA, group=group)}
        for group in ("main", "a", "b", "global")
    }
    assert seen == {
        "main": {"main", "a", "b", "global"},
        "a": {"a", "global"},
        "b": {"b", "global"},
        "global": {"global"},
    }
    assert statuses(service, "bob") == [("active", 2)]
    clock.advance(HOUR + 1)
    for _ in range(2):
        drain(service, clock)
        service.transcripts.poll()
    assert statuses(service, group="a", status="archived") == [("archived", 5), ("archived", 5)]
    service.forget(ADA, session="chat", group="a")
    assert len(service.conversations(ADA)) == 3
    assert service.conversations("unknown") == []


def test_a_forgotten_message_is_no_longer_counted_and_the_last_takes_its_conversation_along(
    service: Service, clock: ManualClock
) -> None:
    say(service, 0, 2)
    service.transcripts.poll()
    for left in ([("active", 1)], []):
        document = service.documents(ADA, limit=1)[0]
        service.forget(ADA, document=document.id)
        service.transcripts.poll()
        assert statuses(service) == left


def test_more_sessions_and_messages_than_one_poll_groups_have_their_turn(
    service: Service, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SESSIONS_AT_ONCE", 2)
    monkeypatch.setattr(live, "PAGE", 2)
    for number in range(5):
        say(service, 0, 5, f"chat{number}")
        clock.advance(1)
    for _ in range(3):
        service.transcripts.poll()
    assert statuses(service) == [("active", 5)] * 5
    with service.database.read() as connection:
        assert sessions.to_group(connection, 10) == []


def test_the_provider_and_folder_of_a_session_stay_known_when_they_are_not_said_again(
    service: Service, clock: ManualClock
) -> None:
    service.remember_exchange(ADA, [user_says("hello")], "hi", "chat", provider="lab")
    say(service, 0, 1, cwd="/work/kettle")
    say(service, 1, 2)
    with service.database.read() as connection:
        session = sessions.get(connection, ADA, "chat")
    assert session is not None
    assert (session.provider, session.cwd) == ("lab", "/work/kettle")


def test_a_status_that_is_none_is_refused(service: Service) -> None:
    with pytest.raises(InvalidInput, match="status takes active, ready"):
        service.conversations(ADA, status="asleep")


@pytest.mark.every_scheme
def test_conversations_travel_with_their_user(service: Service, clock: ManualClock, other_url: str) -> None:
    say(service, 0, 6, provider="lab")
    say(service, 0, 2, "short", group="team")
    clock.advance(HOUR + 1)
    for _ in range(2):
        drain(service, clock)
        service.transcripts.poll()
    lines = b"".join(service.export(ADA))
    with memory(other_url, clock) as other:
        for _ in range(2):
            other.import_lines(ADA, io.BytesIO(lines))
            other.transcripts.poll()
        # Both ended at the same moment.
        assert sorted(statuses(other)) == sorted(statuses(service)) == [("archived", 6), ("skipped", 2)]
        assert b"".join(other.export(ADA)).splitlines()[1:] == lines.splitlines()[1:]
        assert other.erase(ADA).rows["conversations"] == 2
        other.import_lines(ADA, io.BytesIO(lines), group="alone")
        assert {one.group_name for one in other.conversations(ADA)} == {"alone"}


def test_an_export_of_before_is_taken_in_and_its_live_chats_are_grouped(
    service: Service, clock: ManualClock
) -> None:
    say(service, 0, 6)
    lines = [orjson.loads(line) for line in b"".join(service.export(ADA)).splitlines()]
    lines[0]["version"] = 2
    for line in lines[1:]:
        for name in ("grouped_through", "provider", "cwd") if line["line"] == "session" else ():
            del line[name]
    service.import_lines("bob", io.BytesIO(b"\n".join(map(orjson.dumps, lines))))
    service.transcripts.poll()
    assert statuses(service, "bob") == [("active", 6)]
