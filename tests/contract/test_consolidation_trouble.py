"""Phase 2 when things go wrong: nothing is stored, sent or spent in vain, and all else goes on."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shepherd_memory.consolidation.prompt import AGAIN
from shepherd_memory.service import Service
from shepherd_memory.work import endpoint_state, jobs, ledger
from shepherd_memory.work.jobs import Job
from tests.consolidation_endpoint import (
    ToolCall,
    agent,
    has_tools,
    in_one_answer,
    is_for_agent,
    labelled,
    results,
    runs,
    section,
    writes,
)
from tests.contract.given import ManualClock, facts_of, memory, user_says, work
from tests.contract.test_consolidation import asked, consolidate, note_of, state, stored
from tests.contract.test_phase_trouble import HUGE
from tests.contract.test_phases import ADA, HOUR, make_notes, noting, outputs_of, say, settle
from tests.endpoint import Body, ScriptedEndpoint, Step, by_content, close, garbage, hang, raw_reply, status
from tests.note_endpoint import facts_and_notes

EDITED = "# Memory\n\n## Tea\n\nGreen tea, and nothing else.\n"


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with noting(url, clock, endpoint, memory_phase1_max_age_days=365, memory_phase2_timeout=0.5) as opened:
        endpoint.default = agent(writes())
        yield opened


def troubled(step: Step) -> Step:
    """A step for the agent, and notes and facts for everybody else."""

    def choose(body: Body | None) -> Step:
        if body is None:
            return close()
        return step if is_for_agent(body) else facts_and_notes()

    return by_content(choose)


def the_job(service: Service, user: str = ADA) -> Job:
    with service.database.read() as connection:
        return jobs.listing(connection, user, "phase2")[-1]


def spent(service: Service, clock: ManualClock, user: str = ADA) -> int:
    with service.database.read() as connection:
        return ledger.spent_on(connection, user, ledger.PHASE2, clock())


@pytest.mark.parametrize(
    ("step", "of_endpoint", "tries", "says"),
    [
        (status(401), "paused", 3, "memory_extraction_api_key"),
        (status(402), "paused", 3, "402"),
        (status(404), "paused", 3, "404"),
        (status(500), "unavailable", 3, "500"),
        (status(429, retry_after=7200), "unavailable", 3, "429"),
        (hang(), "unavailable", 3, "no answer within"),
        (garbage(), "ok", 2, ""),
        (HUGE, "ok", 2, ""),
        (raw_reply(""), "ok", 2, "no JSON object"),
        (status(400), "ok", 2, "400"),
    ],
    ids=["401", "402", "404", "500", "429", "hang", "garbage", "40 MB", "empty", "refuses everything"],
)
def test_an_endpoint_in_trouble_keeps_the_consolidation_waiting_and_all_else_goes_on(
    service: Service,
    clock: ManualClock,
    endpoint: ScriptedEndpoint,
    step: Step,
    of_endpoint: str,
    tries: int,
    says: str,
) -> None:
    note_of(service, clock)
    endpoint.default = troubled(step)
    (outcome,) = consolidate(service, clock)
    assert outcome.status == "waiting"
    assert says in outcome.detail
    assert the_job(service).tries_left == tries
    assert stored(service) == []
    service.remember(ADA, [user_says("my pet is Ole")], "another", provider="lab")
    work(service)
    assert facts_of(service, ADA) == {"pet": "Ole"}
    with service.database.read() as connection:
        assert endpoint_state.get(connection, endpoint_state.PHASE2).state == of_endpoint
        assert endpoint_state.get(connection, endpoint_state.EXTRACTION).state == "ok"
        assert endpoint_state.get(connection, endpoint_state.PHASE1).state == "ok"
    endpoint.default = agent(writes())
    clock.advance(3 * HOUR)
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]
    assert state(service).version == 1


def test_a_model_that_calls_too_many_tools_at_once_is_told_which_were_left_out(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)

    def script(body: Body) -> list[ToolCall]:
        if results(body):
            about_user = section(body, "Ada, who drinks tea.", "Who", "memory_summary.md")
            return [section(body, "Green.", "Tea 33"), about_user, ("finish", {})]
        wanted = [section(body, "Green.", f"Tea {number}") for number in range(1, 34)]
        return [*wanted, ("finish", {})]

    endpoint.default = agent(script)
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]
    last = asked(endpoint)[-1]["messages"]
    assert (last[-1]["role"], len(results(asked(endpoint)[-1]))) == ("user", 32)
    assert "the first 32 of your 34 calls" in last[-1]["content"]
    assert len(stored(service)) == 34


def test_a_model_that_is_no_use_fails_after_three_tries_and_something_new_gives_them_back(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    endpoint.default = troubled(raw_reply("I would rather not."))
    statuses: list[str] = []
    for _ in range(3):
        statuses += [one.status for one in consolidate(service, clock)]
        clock.advance(HOUR)
    assert statuses == ["waiting", "waiting", "failed"]
    (told,) = service.consolidation_states(ADA)
    assert (told.reason, told.version) == ("tries used up", 0)
    assert "no JSON object" in told.detail
    assert consolidate(service, clock) == []
    note_of(service, clock, "new")
    assert [one.status for one in consolidate(service, clock)] == ["waiting"]
    assert the_job(service).tries_left == 2


def test_what_comes_while_a_group_is_consolidated_cools_down_before_it_is_consolidated_again(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    is_first = True

    def script(body: Body) -> list[ToolCall]:
        nonlocal is_first
        if is_first:
            is_first = False
            note_of(service, clock, "late")
            # What another process's worker does meanwhile.
            assert not service.consolidation.lane._kind.upkeep(clock())
            assert service.consolidate(ADA) is not None
        return list(writes()(body))

    endpoint.default = agent(script)
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]
    (told,) = service.consolidation_states(ADA)
    assert told.reason == "cool-down"
    clock.advance(7 * HOUR)
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]
    assert [len(labelled(one)["added"]) for one in runs(asked(endpoint))] == [1, 1]


def test_a_note_of_an_old_conversation_that_comes_during_a_run_is_kept_for_the_next(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    say(service, "old")
    service.transcripts.poll()
    clock.advance(60 * 24 * HOUR)
    for number in range(20):
        say(service, f"new{number}")
    note_of(service, clock)
    is_first = True

    def script(body: Body) -> list[ToolCall]:
        nonlocal is_first
        if is_first:
            is_first = False
            make_notes(service, clock)
            clock.advance(HOUR)
            make_notes(service, clock)
        return list(writes()(body))

    endpoint.default = agent(script)
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]
    notes = {one.session_id: one.summary for one in outputs_of(service)}
    assert notes["old"], "its text is there"


def change_memory(service: Service, how: str) -> None:
    if how == "edited":
        service.edit_memory_file(ADA, "MEMORY.md", EDITED)
    elif how == "deleted":
        service.delete_memory_file(ADA, "MEMORY.md")
    else:
        service.reset_memory_files(ADA)


@pytest.mark.parametrize("how", ["edited", "deleted", "reset"])
def test_a_run_begins_anew_when_somebody_changes_the_files_meanwhile(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint, how: str
) -> None:
    note_of(service, clock)
    consolidate(service, clock)
    note_of(service, clock, "second")
    has_changed = False

    def script(body: Body) -> list[ToolCall]:
        nonlocal has_changed
        if not has_changed:
            has_changed = True
            change_memory(service, how)
        return [section(body, "Black tea."), section(body, "Black.", "Who", "memory_summary.md")]

    def finishing(body: Body) -> list[ToolCall]:
        return [("finish", {})] if results(body) else script(body)

    endpoint.default = agent(finishing)
    outcomes = consolidate(service, clock)
    assert [one.detail for one in outcomes] == [
        "discarded: something was forgotten, or edited by hand, meanwhile",
        "succeeded",
    ]
    memory = [(one.heading, one.body) for one in stored(service) if one.file == "MEMORY.md"]
    kept = "Green tea, and nothing else." if how == "edited" else "Black tea."
    assert memory == [("Tea", kept)]


def test_a_run_that_is_in_vain_asks_no_more_and_is_paid_for(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    note_of(service, clock, "kept")
    asked_before: list[int] = []

    def script(body: Body) -> list[ToolCall]:
        if not asked_before:
            asked_before.append(len(asked(endpoint)))
            service.forget(ADA, session="chat")
        return list(writes()(body))[len(results(body)) :][:1]

    endpoint.default = agent(script)
    assert [one.status for one in consolidate(service, clock)] == ["lost", "done"]
    first, *later = asked(endpoint)
    assert [len(one["messages"]) for one in later] == [2, 4, 6]
    (used,) = [line for line in service.usage(ADA) if line.purpose == "phase2"]
    assert used.calls == 4, "that of the run that was in vain too"
    with service.database.read() as connection:
        assert endpoint_state.get(connection, endpoint_state.PHASE2).state == "ok"
    assert "chat line" not in str(later)
    assert labelled(first)["added"] != labelled(later[0])["added"]


def test_who_is_erased_while_the_agent_runs_stays_erased(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)

    def script(body: Body) -> list[ToolCall]:
        service.erase(ADA)
        return [section(body, "again and again")]

    endpoint.default = agent(script)
    assert [one.status for one in consolidate(service, clock)] == ["lost"]
    assert len(asked(endpoint)) == 1
    assert service.usage(ADA) == []
    assert stored(service) == []
    assert service.status().users == 0


def rounds(number: int) -> Callable[[Body], list[ToolCall]]:
    """So many rounds that write, and one that finishes."""

    def script(body: Body) -> list[ToolCall]:
        written = [section(body, "Tea."), section(body, "Tea.", "Who", "memory_summary.md")]
        return [("finish", {})] if len(results(body)) >= 2 * number else written

    return script


def test_a_run_ends_with_the_tokens_of_the_day_and_is_not_at_fault(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    settings = {"memory_phase1_max_age_days": 365, "memory_phase2_cooldown_hours": 0}
    with noting(url, clock, endpoint, **settings) as service:
        endpoint.default = agent(rounds(2))
        note_of(service, clock)
        assert [one.status for one in consolidate(service, clock)] == ["done"]
        enough = spent(service, clock) * 4 // 3
    with noting(url, clock, endpoint, **settings, memory_phase_daily_tokens=enough) as service:
        endpoint.default = agent(rounds(2))
        service.add_memory_note(ADA, "Remember the kettle.")
        assert [(one.status, one.detail) for one in consolidate(service, clock)] == [
            ("waiting", f"waits for tomorrow: {enough} tokens are spent today")
        ]
        assert enough <= spent(service, clock)
        assert the_job(service, ADA).tries_left == 3
        with service.database.read() as connection:
            assert endpoint_state.get(connection, endpoint_state.PHASE2).state == "ok"
        clock.advance(24 * HOUR)
        assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]


def test_a_cap_that_is_too_small_for_any_run_is_told(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with noting(url, clock, endpoint, memory_phase_daily_tokens=20) as service:
        endpoint.default = agent(rounds(1))
        note_of(service, clock)
        (first,) = consolidate(service, clock)
        assert (first.status, the_job(service).tries_left) == ("waiting", 2)
        assert "memory_phase_daily_tokens" in first.detail
        clock.advance(2 * HOUR)
        assert [one.detail for one in consolidate(service, clock)] == [
            "waits for tomorrow: 20 tokens are spent today"
        ]


def test_an_answer_that_has_to_be_mended_begins_with_the_memory_as_it_was(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    consolidate(service, clock)
    note_of(service, clock, "second")

    def answer(body: Body) -> Any:
        sources = labelled(body)["added"]
        is_second = AGAIN in str(body["messages"][-1]["content"])
        made_of = sources if is_second else [10**9]
        written = {"path": "MEMORY.md", "heading": "Coffee", "text": "C.", "sources": made_of, "project": ""}
        deleted = [{"path": "MEMORY.md", "heading": "Tea"}]
        return {"sections": [written], "skills": [], "deleted": deleted}

    endpoint.default = in_one_answer(answer, status(400))
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]
    assert [one.heading for one in stored(service)] == ["Coffee", "Who"]


def test_what_cannot_be_read_of_a_call_is_not_sent_back(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    secret = "sk-proj-" + "a1B2c3D4" * 6

    def script(body: Body) -> list[ToolCall]:
        strange = [
            ("write_section", "{not json"),
            ("write_section", {"path": "MEMORY.md", "text": f"key {secret}"}),
            (secret, {secret: secret}),
        ]
        return list(writes()(body)) if results(body) else strange

    endpoint.default = agent(script)
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]
    last = [one for one in asked(endpoint) if has_tools(one)][-1]
    sent_back = [call["function"] for one in last["messages"] for call in one.get("tool_calls", [])]
    assert sent_back[0]["arguments"] == "{}"
    assert secret not in str(last)


def test_a_secret_in_the_note_of_a_version_or_the_name_of_a_skill_is_not_stored(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    secret, name = "sk-proj-" + "a1B2c3D4" * 6, "glpat-" + "a1b2c3d4e5" * 2

    def script(body: Body) -> list[ToolCall]:
        skill = ("write_skill", {"name": name, "text": "Boil.", "sources": labelled(body)["added"]})
        *written, _ = writes()(body)
        return [*written, skill, ("finish", {"note": f"now with {secret}"})]

    endpoint.default = agent(script)
    consolidate(service, clock)
    (version,) = service.memory_file_history(ADA)
    assert version.note.startswith("now with [redacted:")
    assert name not in str(stored(service))


def test_a_clock_that_was_set_back_does_not_keep_a_group_from_being_consolidated(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    clock.advance(300 * HOUR)
    consolidate(service, clock)
    clock.advance(-200 * HOUR)
    note_of(service, clock, "second")
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]


def test_of_two_conversations_only_what_its_endpoint_may_have_is_sent(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with ScriptedEndpoint() as elsewhere:
        elsewhere.default = agent(writes())
        settings = {
            "memory_phase2_endpoint": elsewhere.url,
            "memory_phase2_model": "m",
            "memory_phase_providers": "cloud",
        }
        with noting(url, clock, endpoint, **settings) as service:
            endpoint.default = facts_and_notes()
            note_of(service, clock, "with-the-lab", cwd="/home/ada/lab")
            note_of(service, clock, "with-the-cloud", provider="cloud", cwd="/home/ada/cloud")
            assert len(outputs_of(service)) == 2
            assert [one.detail for one in consolidate(service, clock)] == ["succeeded"]
            sent = str(asked(elsewhere))
            assert "/home/ada/cloud" in sent
            assert "lab" not in sent
            assert asked(endpoint) == []
            lab = next(one for one in outputs_of(service) if one.session_id == "with-the-lab")
            assert all(lab.conversation_id not in one.sources for one in stored(service))


def test_without_an_endpoint_the_summary_is_that_of_the_rule_and_all_is_well(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, "", memory_phases=True, memory_phase_providers="*") as service:
        service.set_fact(ADA, "drink", "tea")
        say(service)
        settle(service, clock)
        assert make_notes(service, clock) == consolidate(service, clock) == []
        assert service.memory_summary(ADA).text.startswith("v1\n\n## Profile\n\n- drink: tea\n")
        assert service.memory_file(ADA, "memory_summary.md").text.startswith("v1\n")
        assert service.status().healthy
        assert "memory_phase1_model" in service.why_no_consolidation()
        assert endpoint.requests == []
