"""Phase 2: when a group is consolidated, what the agent may do, and what is stored of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from shepherd_memory.phases import dirtiness, sections
from shepherd_memory.phases.sections import MemorySection
from shepherd_memory.service import Service
from shepherd_memory.work.lane import UPKEEP_SECONDS, Outcome
from tests.consolidation_endpoint import (
    ToolCall,
    agent,
    in_one_answer,
    is_for_agent,
    labelled,
    runs,
    section,
    writes,
)
from tests.contract.given import ManualClock
from tests.contract.test_phases import ADA, BOB, HOUR, make_notes, noting, say, settle
from tests.endpoint import Body, ScriptedEndpoint, raw_reply, status

DAY = 24 * HOUR


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with noting(url, clock, endpoint, memory_phase1_max_age_days=365) as opened:
        endpoint.default = agent(writes())
        yield opened


def consolidate(service: Service, clock: ManualClock) -> list[Outcome]:
    """Plan, and do what is due."""
    clock.advance(UPKEEP_SECONDS)
    return list(iter(service.consolidation.lane.run_once, None))


def note_of(service: Service, clock: ManualClock, session: str = "chat", **more: Any) -> None:
    """A conversation that is over and has its note."""
    say(service, session, **more)
    settle(service, clock)
    make_notes(service, clock)


def stored(service: Service, user: str = ADA, group: str = "main") -> list[MemorySection]:
    with service.database.read() as connection:
        return sections.current(connection, user, group)


def state(service: Service, user: str = ADA, group: str = "main") -> dirtiness.Consolidation:
    with service.database.read() as connection:
        return dirtiness.get(connection, user, group)


def asked(endpoint: ScriptedEndpoint) -> list[Body]:
    return [one.json for one in endpoint.requests if one.json is not None and is_for_agent(one.json)]


@pytest.mark.every_scheme
def test_notes_become_sections_with_their_sources_once(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    assert [(one.status, one.detail) for one in consolidate(service, clock)] == [("done", "succeeded")]
    (memory, summary) = stored(service)
    assert (memory.file, memory.heading, memory.body) == ("MEMORY.md", "Tea", "Ada drinks tea.")
    assert (summary.file, summary.heading) == ("memory_summary.md", "Who")
    (output,) = service.conversation_outputs(ADA)
    assert memory.sources == summary.sources == (output.conversation_id,)
    assert state(service).version == 1
    assert not state(service).is_dirty
    assert consolidate(service, clock) == []
    assert len(runs(asked(endpoint))) == 1
    hits = service.recall(ADA, "what does Ada drink, tea?").hits
    assert [one.role for one in hits if one.source == "phase2"] == ["note"] * 2
    assert service.consolidation_states(BOB) == []


def test_a_group_cools_down_and_is_dirty_only_by_what_is_new(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    consolidate(service, clock)
    say(service, "second")
    service.transcripts.poll()
    clock.advance(5 * HOUR)
    assert consolidate(service, clock) == [], "nothing is new"
    clock.advance(2 * HOUR)
    service.transcripts.poll()
    make_notes(service, clock)
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]
    note_of(service, clock, "third")
    with_now = labelled(runs(asked(endpoint))[-1])
    assert (len(with_now["added"]), len(with_now["retained"])) == (1, 1)
    assert state(service).version == 2


def test_without_any_note_left_a_run_succeeds_without_an_agent(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    clock.advance(40 * DAY)
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded_no_input"]
    assert asked(endpoint) == []
    assert not state(service).is_dirty


def test_a_model_that_never_finishes_ends_at_its_bound_and_stores_nothing(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with noting(url, clock, endpoint, memory_phase2_max_rounds=5) as service:
        endpoint.default = agent(lambda body: [section(body, "again and again")])
        note_of(service, clock)
        (outcome,) = consolidate(service, clock)
        assert (outcome.status, outcome.detail) == ("waiting", "the model did not finish within 5 rounds")
        assert len(asked(endpoint)) == 5
        assert stored(service) == []
        assert service.recall(ADA, "again and again").hits == ()


@pytest.mark.every_scheme
def test_what_is_forgotten_while_the_agent_runs_discards_its_work(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    note_of(service, clock, "kept")
    gone = False

    def script(body: Body) -> list[ToolCall]:
        nonlocal gone
        if not gone:
            gone = True
            service.forget(ADA, session="chat")
        return list(writes("made of what is left")(body))

    endpoint.default = agent(script)
    outcomes = consolidate(service, clock)
    assert outcomes[0].status == "lost"
    assert [one.detail for one in outcomes[1:]] == ["succeeded"]
    (kept,) = service.conversation_outputs(ADA)
    assert {one.sources for one in stored(service)} == {(kept.conversation_id,)}


@pytest.mark.every_scheme
def test_a_section_is_withheld_when_a_source_loses_something_and_goes_with_its_last(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    note_of(service, clock, "other")
    consolidate(service, clock)
    assert len(stored(service)) == 2
    service.forget(ADA, session="chat")
    assert [(one.state, one.heading, one.body) for one in stored(service)] == [("withheld", "", "")] * 2
    assert "tea" not in " ".join(
        hit.text for hit in service.recall(ADA, "tea").hits if hit.source == "phase2"
    )
    clock.advance(7 * HOUR)
    endpoint.default = agent(writes("Only the other one."))
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]
    assert [one.state for one in stored(service)] == ["kept"] * 2
    service.forget(ADA, session="other")
    assert stored(service) == []


def test_a_model_without_tools_answers_once_as_json(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    def answer(body: Body) -> Any:
        sources = labelled(body)["added"]
        listed = [
            {"path": path, "heading": "H", "text": "Tea.", "sources": sources, "project": ""}
            for path in ("MEMORY.md", "memory_summary.md")
        ]
        return {"sections": listed, "skills": [], "deleted": []}

    endpoint.default = in_one_answer(
        answer, status(400, body={"error": {"message": "tools are not supported"}})
    )
    note_of(service, clock)
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]
    assert [one.body for one in stored(service)] == ["Tea.", "Tea."]
    (request,) = [one for one in asked(endpoint) if not one.get("tools")]
    assert "They chose tea." in str(request["messages"])


def test_a_secret_in_an_answer_is_not_stored(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    secret = "sk-proj-" + "a1B2c3D4" * 6
    endpoint.default = agent(writes(f"The key is {secret}.", f"Key {secret}"))
    note_of(service, clock)
    consolidate(service, clock)
    assert len(stored(service)) == 2
    assert secret not in str(stored(service))
    assert secret not in str(service.documents(ADA))


def test_switched_off_nothing_is_sent(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> None:
    with noting(url, clock, endpoint, memory_phase2=False) as service:
        endpoint.default = agent(writes())
        note_of(service, clock)
        assert consolidate(service, clock) == []
        assert asked(endpoint) == []
        assert "memory_phase2 is off" in service.why_no_consolidation()


def test_what_was_said_to_another_provider_is_not_sent(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with ScriptedEndpoint() as elsewhere:
        elsewhere.default = agent(writes())
        settings = {"memory_phase2_endpoint": elsewhere.url, "memory_phase2_model": "m"}
        with noting(url, clock, endpoint, **settings) as service:
            note_of(service, clock)
            assert [one.detail for one in consolidate(service, clock)] == ["succeeded_no_input"]
            assert elsewhere.requests == []


def test_an_unusable_model_is_tried_again_later_and_its_error_is_told(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = in_one_answer(lambda body: "no", raw_reply("I would rather not."))
    note_of(service, clock)
    (outcome,) = consolidate(service, clock)
    assert outcome.status == "waiting"
    (told,) = service.consolidation_states(ADA)
    assert (told.reason, told.version) == ("retry at", 0)
    assert "no JSON object" in told.detail


@pytest.mark.every_scheme
def test_a_conversation_begins_with_the_consolidated_summary_and_keeps_it(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    endpoint.default = agent(writes("long", "Drinks green tea."))
    consolidate(service, clock)
    assert "Drinks green tea." in service.memory_summary(ADA).text
    assert service.memory_summary(ADA).text.startswith("v1\n")
    first = [{"role": "user", "content": "hello there"}]
    told = service.inject(ADA, first).messages[0]["content"]
    assert "Drinks green tea." in told
    assert "Drinks green tea." not in service.inject(BOB, first).messages[0]["content"]

    endpoint.default = agent(writes("longer", "Drinks black tea now."))
    note_of(service, clock, "second")
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]
    second = [*first, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "and now?"}]
    assert service.inject(ADA, second).messages[0]["content"] == told, "what was told stays"
    fresh = service.inject(ADA, [{"role": "user", "content": "something else"}]).messages[0]["content"]
    assert "Drinks black tea now." in fresh

    service.forget(ADA, session="chat")
    again = service.inject(ADA, second).messages[0]["content"]
    assert "tea" not in again
    assert "tea" not in service.memory_summary(ADA).text


def test_a_summary_of_a_project_is_told_there_alone(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    def script(body: Body) -> list[ToolCall]:
        summary = "memory_summary.md"
        kettle = section(body, "Boil first.", "Kettle", summary, project="/home/ada/kettle")
        return [
            section(body, "all"),
            section(body, "Everywhere.", "General", summary),
            kettle,
            ("finish", {}),
        ]

    endpoint.default = agent(script)
    note_of(service, clock)
    consolidate(service, clock)
    inside = service.memory_summary(ADA, project="/home/ada/kettle/lid").text
    outside = service.memory_summary(ADA, project="/home/ada/kettles").text
    assert "Boil first." in inside
    assert "Everywhere." in inside
    assert "Everywhere." in outside
    assert "Boil first." not in outside
