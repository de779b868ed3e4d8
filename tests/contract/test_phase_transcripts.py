"""Notes of transcripts: which of them get one, for which reasons others do not, and notes on demand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.errors import ConfigError, NotFound
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import DAY, SECOND
from tests.contract.given import ManualClock, user_says
from tests.contract.test_phases import (
    ADA,
    BOB,
    HOUR,
    bodies,
    make_notes,
    noting,
    outputs_of,
    reasons,
    say,
    settle,
)
from tests.endpoint import ScriptedEndpoint, user_text
from tests.transcripts import BEGAN, MINUTE, agent_line, user_line, write

THREAD = "0b5e6f0a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(BEGAN + 40 * DAY)


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with noting(url, clock, endpoint, memory_phase_providers="claude-code") as opened:
        yield opened


def lines(began: int, number: int = 6, **more: Any) -> list[dict[str, Any]]:
    """A session: the user's and the agent's messages in turn, one a minute."""
    said = (user_line, agent_line)
    return [said[at % 2](at, f"line {at}", began + at * MINUTE, **more) for at in range(number)]


def ingest(service: Service, folder: Path, name: str, content: list[dict[str, Any]], user: str = ADA) -> None:
    service.transcripts.ingest(user, write(folder / "base" / "kettle" / f"{name}.jsonl", content))


@pytest.mark.every_scheme
def test_of_a_dozen_transcripts_each_gets_its_note_or_its_reason(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    good, young, old = clock() - DAY, clock() - 5 * 3600 * SECOND, clock() - 35 * DAY
    for at in range(3):
        ingest(service, tmp_path, f"good{at}", lines(good))
        ingest(service, tmp_path, f"young{at}", lines(young))
    for at in range(2):
        ingest(service, tmp_path, f"old{at}", lines(old))
    ingest(service, tmp_path, "short", lines(good, 4))
    ingest(service, tmp_path, "off", lines(good))
    ingest(service, tmp_path, "helper", lines(good))
    ingest(service, tmp_path, "piped", lines(good, entrypoint="sdk-cli"))
    with service.database.write() as tx:
        tx.execute("update sessions set memory_mode = 'off' where session_id = 'off'")
        tx.execute("update transcript_files set subagent = 1 where session_id = 'helper'")
    service.transcripts.poll()
    expected = {
        **{f"good{at}": "" for at in range(3)},
        **{f"young{at}": "too young" for at in range(3)},
        **{f"old{at}": "too old" for at in range(2)},
        "short": "too short",
        "off": "memory off",
        "helper": "sub-agent",
        "piped": "not interactive",
    }
    assert reasons(service, clock) == expected
    make_notes(service, clock)
    assert sorted(one.session_id for one in outputs_of(service)) == ["good0", "good1", "good2"]
    assert len(bodies(endpoint)) == 3
    shown = {one.conversation.session_id: one for one in service.conversation_notes(ADA)}
    assert {name for name, one in shown.items() if one.output} == {"good0", "good1", "good2"}
    young_obstacle = shown["young0"].obstacle
    assert young_obstacle is not None
    assert young_obstacle.until is not None


def test_transcripts_and_programs_must_be_listed_by_name(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    with noting(url, clock, endpoint) as service:
        ingest(service, tmp_path, "one", lines(clock() - DAY, entrypoint="sdk-cli"))
        service.transcripts.poll()
        assert reasons(service, clock) == {"one": "not interactive"}
    with noting(url, clock, endpoint, memory_phase_originators="sdk-cli") as service:
        assert reasons(service, clock) == {"one": "other provider"}
        assert make_notes(service, clock) == []
    listed = {"memory_phase_originators": "other, sdk-cli", "memory_phase_providers": "lab,claude-code"}
    with noting(url, clock, endpoint, **listed) as service:
        assert len(make_notes(service, clock)) == 1
    assert len(bodies(endpoint)) == 1


def test_a_session_that_came_in_both_ways_is_read_whole(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    began = clock() - DAY
    now, clock.now = clock.now, began
    service.remember(ADA, [user_says("line 0")], THREAD)
    clock.now = now
    ingest(service, tmp_path, THREAD, lines(began))
    service.transcripts.poll()
    make_notes(service, clock)
    (sent,) = bodies(endpoint)
    assert [user_text(sent).count(f"line {at}\n") for at in range(6)] == [1] * 6
    live = next(one for one in service.documents(ADA) if one.text == "line 0")
    service.forget(ADA, document=live.id)
    assert outputs_of(service) == [], "what was heard live is in the file's conversation too"


@pytest.mark.parametrize("mode", ["read-only", "off"])
def test_nothing_is_read_of_the_transcript_of_a_session_whose_memory_is_not_on(
    service: Service, clock: ManualClock, tmp_path: Path, mode: str
) -> None:
    service.start_session(ADA, session_id=THREAD, memory_mode=mode)
    ingest(service, tmp_path, THREAD, lines(clock() - DAY))
    assert (service.documents(ADA), service.conversations(ADA)) == ([], [])
    assert service.transcripts.health(ADA).skipped == {"memory off": 6}
    ingest(service, tmp_path, THREAD, lines(clock() - DAY), user=BOB)
    assert len(service.documents(BOB)) == 6


def test_a_file_that_is_read_anew_leaves_one_note_of_its_conversation(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    ingest(service, tmp_path, "one", lines(clock() - DAY))
    service.transcripts.poll()
    make_notes(service, clock)
    path = tmp_path / "base" / "kettle" / "one.jsonl"
    service.transcripts.ingest(ADA, path, reimport=True)
    service.transcripts.poll()
    make_notes(service, clock)
    assert len(outputs_of(service)) == 1
    assert len(service.documents(ADA, type="learning")) == 1


def test_a_dry_run_tells_what_would_be_sent_and_sends_nothing(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    say(service)
    say(service, "cloudy", provider="cloud")
    settle(service, clock)
    (planned,) = service.process_conversations(ADA, dry_run=True)
    assert planned.conversation.session_id == "chat"
    assert (planned.host, planned.model) == (endpoint.url.removeprefix("http://"), "scripted")
    assert (planned.forecast.way, planned.forecast.calls) == ("whole", 1)
    assert (make_ready(service), bodies(endpoint)) == (0, [])
    assert len(service.process_conversations(ADA)) == 1
    assert make_ready(service) == 1
    make_notes(service, clock)
    (sent,) = bodies(endpoint)
    tokens = sum(len(one["content"]) for one in sent["messages"]) / 4
    assert 0.85 <= planned.forecast.prompt_tokens / tokens <= 1.15


def make_ready(service: Service) -> int:
    with service.database.read() as connection:
        return len(connection.rows("select 1 from jobs where kind = 'phase1' and status = 'waiting'"))


def test_a_conversation_that_is_named_gets_its_note_now_unless_it_may_not_be_sent(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    say(service, number=2)
    say(service, "cloudy", provider="cloud")
    settle(service, clock, hours=2)
    ids = {one.session_id: one.id for one in service.conversations(ADA)}
    assert service.process_conversations(ADA) == []
    assert service.process_conversations(ADA, conversation_id=ids["cloudy"]) == []
    assert len(service.process_conversations(ADA, conversation_id=ids["chat"])) == 1
    assert [one.detail for one in make_notes(service, clock)] == ["succeeded"]
    assert len(bodies(endpoint)) == 1
    assert len(service.process_conversations(ADA, conversation_id=ids["chat"])) == 1, "and again"
    assert [one.detail for one in make_notes(service, clock)] == ["succeeded"]
    assert len(outputs_of(service)) == 1


def test_old_conversations_are_taken_since_a_day_that_is_named(
    service: Service, clock: ManualClock, tmp_path: Path
) -> None:
    ingest(service, tmp_path, "old", lines(clock() - 35 * DAY))
    ingest(service, tmp_path, "older", lines(clock() - 60 * DAY))
    service.transcripts.poll()
    assert service.process_conversations(ADA) == []
    since = "2026-09-20T00:00:00Z"
    assert [one.conversation.session_id for one in service.process_conversations(ADA, since=since)] == ["old"]


def test_processing_reaches_no_other_user_or_group_and_says_what_is_not_set(
    url: str, service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    say(service, group="a")
    settle(service, clock)
    (conversation,) = service.conversations(ADA)
    for user, group in ((BOB, "main"), (ADA, "b"), (ADA, "global")):
        with pytest.raises(NotFound, match=f"there is no conversation {conversation.id}"):
            service.process_conversations(user, conversation_id=conversation.id, group=group)
        assert service.process_conversations(user, group=group) == []
        assert service.conversation_notes(user, group=group) == []
    assert service.conversation_notes("unknown") == []
    assert len(service.process_conversations(ADA, group="a")) == 1
    for settings, says in (
        ({"memory_phases": False}, "memory_phases is off"),
        ({"memory_generate": False}, "memory_generate is off"),
        ({"memory_documents": False}, "memory_documents is off"),
    ):
        with noting(url, clock, endpoint, **settings) as other, pytest.raises(ConfigError, match=says):
            other.process_conversations(ADA)
    clock.advance(HOUR)
