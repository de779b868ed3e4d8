"""Phase 1: which conversations get a note, what is sent for it, and what is stored."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from shepherd_memory.config import Provider
from shepherd_memory.phases import candidates, outputs, usage
from shepherd_memory.phases.eligibility import why_not
from shepherd_memory.phases.outputs import Output
from shepherd_memory.phases.rules import phase_rules
from shepherd_memory.service import Service
from shepherd_memory.work.lane import UPKEEP_SECONDS, Outcome
from tests.contract.given import ManualClock, everything_of, facts_of, memory, texts_of, user_says, work
from tests.endpoint import ScriptedEndpoint, by_content, raw_reply, status, user_text
from tests.note_endpoint import facts_and_notes, note, requests_for_notes

ADA, BOB = "ada", "bob"
HOUR = 3600.0


@contextmanager
def noting(url: str, clock: ManualClock, endpoint: ScriptedEndpoint, **settings: Any) -> Iterator[Service]:
    """A service whose provider `lab` is at the address of the endpoint, and `cloud` is elsewhere."""
    providers = {
        "lab": Provider("lab", base_url=f"{endpoint.url}/v1"),
        "cloud": Provider("cloud", base_url="https://models.example"),
    }
    given = {
        "memory_phases": True,
        "memory_phase1_input_tokens": 8000,
        "providers": providers,
        **settings,
    }
    endpoint.default = facts_and_notes()
    with memory(url, clock, endpoint.url, **given) as service:
        yield service


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with noting(url, clock, endpoint) as opened:
        yield opened


def say(service: Service, session: str = "chat", user: str = ADA, number: int = 6, **more: Any) -> None:
    """One message each, at the clock's time, to the provider `lab`."""
    said = [
        {"role": ("user", "assistant")[at % 2], "content": f"{session} line {at}", "id": f"{session}-{at}"}
        for at in range(number)
    ]
    service.remember(user, said, session, **{"provider": "lab", "cwd": "/work/kettle", **more})


def settle(service: Service, clock: ManualClock, hours: float = 7.0) -> None:
    """Time passes, and conversations end."""
    work(service)
    service.transcripts.poll()
    clock.advance(hours * HOUR)
    service.transcripts.poll()


def make_notes(service: Service, clock: ManualClock) -> list[Outcome]:
    """Plan, and do what is due."""
    clock.advance(UPKEEP_SECONDS)
    for user_id in (ADA, BOB):
        service.phases.wake(user_id)
    (lane,) = service.phases.lanes
    return list(iter(lane.run_once, None))


def outputs_of(service: Service, user: str = ADA, group: str = "main") -> list[Output]:
    with service.database.read() as connection:
        return outputs.listing(connection, user, group=group)


def reasons(service: Service, clock: ManualClock, user: str = ADA, group: str = "main") -> dict[str, str]:
    """Why the conversation of each session gets no note; empty where it does."""
    with service.database.read() as connection:
        found = candidates.listing(connection, user, group=group)
    rules = phase_rules(service.config)
    why = {one.conversation.session_id: why_not(one, rules, clock()) for one in found}
    return {session: obstacle.reason if obstacle else "" for session, obstacle in why.items()}


def bodies(endpoint: ScriptedEndpoint) -> list[dict[str, Any]]:
    return requests_for_notes([received.json for received in endpoint.requests])


@pytest.mark.every_scheme
def test_a_conversation_that_is_over_becomes_an_output_and_a_document_once(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    say(service)
    ended_at = clock()
    settle(service, clock)
    assert [(one.status, one.detail) for one in make_notes(service, clock)] == [("done", "succeeded")]
    (made,) = outputs_of(service)
    assert (made.summary, made.slug, made.task_outcome) == ("They chose tea.", "tea_time", "success")
    assert (made.session_id, made.state, made.outcome) == ("chat", "kept", "succeeded")
    (document,) = service.documents(ADA, type="learning")
    assert (document.text, document.role, document.category) == (made.summary, "assistant", "knowledge")
    assert (document.session_id, document.cwd, document.source) == ("chat", "/work/kettle", "phase1")
    assert round(document.created_at.timestamp() * 1_000_000) == ended_at, "dated as the conversation"
    assert make_notes(service, clock) == []
    (sent,) = bodies(endpoint)
    assert [f"chat line {at}" in user_text(sent) for at in range(6)] == [True] * 6
    assert reasons(service, clock) == {"chat": "up to date"}
    (hit,) = [
        one for one in service.recall(ADA, "which tea did they choose").hits if one.text == made.summary
    ]
    assert (hit.role, hit.source, hit.created_at) == ("note", "phase1", document.created_at)


def test_a_note_is_no_message_and_never_a_source_of_facts(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = facts_and_notes(note("my wish is a boat.", "my wish is a boat."))
    say(service)
    settle(service, clock)
    make_notes(service, clock)
    before = service.read_session(ADA, "chat").total
    say(service, number=8)
    settle(service, clock)
    work(service)
    assert facts_of(service, ADA) == {}
    assert service.read_session(ADA, "chat").total == before + 2
    assert "boat" not in "".join(user_text(received.json) for received in endpoint.requests)
    assert sum(one.entries for one in service.conversations(ADA)) == 8


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, ""),
        ({"number": 4}, "too short"),
        ({"hours": 5.0}, "too young"),
        ({"hours": 31 * 24.0}, "too old"),
        ({"provider": "cloud"}, "other provider"),
        ({"provider": ""}, "other provider"),
        ({"mode": "off"}, "memory off"),
        ({"mode": "read-only"}, "memory off"),
        ({"active": True}, "running session"),
    ],
)
def test_each_conversation_that_gets_no_note_has_its_reason(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint, given: dict[str, Any], reason: str
) -> None:
    wanted = {name: given[name] for name in ("number", "provider") if name in given}
    say(service, **wanted)
    settle(service, clock, given.get("hours", 7.0))
    with service.database.write() as tx:
        tx.execute("update sessions set memory_mode = :mode", mode=given.get("mode", "on"))
        if "active" in given:
            tx.execute("update sessions set status = 'active'")
    assert reasons(service, clock) == {"chat": reason}
    make_notes(service, clock)
    assert len(bodies(endpoint)) == (0 if reason else 1)


def test_what_is_listed_is_sent_too(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> None:
    with noting(url, clock, endpoint, memory_phase_providers="cloud, live") as service:
        for session, provider in (("a", "cloud"), ("b", ""), ("c", "other"), ("d", "lab")):
            say(service, session, provider=provider)
        settle(service, clock)
        assert reasons(service, clock) == {"a": "", "b": "", "c": "other provider", "d": ""}
        make_notes(service, clock)
        assert len(bodies(endpoint)) == 3


def test_a_job_that_waits_is_not_sent_where_it_may_no_longer_go(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with noting(url, clock, endpoint, memory_phase_providers="cloud", memory_phase1_claims=1) as service:
        say(service, "a", provider="cloud")
        settle(service, clock)
        endpoint.script(status(503))
        assert [one.status for one in make_notes(service, clock)] == ["waiting"]
    sent = len(bodies(endpoint))
    with noting(url, clock, endpoint, memory_phase_retry=1.0) as service:
        clock.advance(2 * HOUR)
        assert [one.detail for one in make_notes(service, clock)] == ["skipped: other provider"]
        assert len(bodies(endpoint)) == sent


def test_no_more_than_the_newest_so_many_are_taken_in_an_hour(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with noting(url, clock, endpoint, memory_phase1_claims=2) as service:
        for at in range(5):
            say(service, f"s{at}")
            clock.advance(60)
        settle(service, clock)
        assert len(make_notes(service, clock)) == 2
        assert [one.session_id for one in outputs_of(service)] == ["s4", "s3"]
        clock.advance(0.9 * HOUR)
        assert make_notes(service, clock) == []
        clock.advance(0.2 * HOUR)
        assert len(make_notes(service, clock)) == 2
        assert [one.session_id for one in outputs_of(service)] == ["s4", "s3", "s2", "s1"]


def test_without_phases_or_generating_nothing_is_sent(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    for off in ({"memory_phases": False}, {"memory_generate": False}, {"memory_documents": False}):
        with noting(url, clock, endpoint, **off) as service:
            say(service)
            settle(service, clock)
            assert make_notes(service, clock) == []
    assert bodies(endpoint) == []


def test_a_client_that_sends_its_messages_again_after_the_note_doubles_none(
    service: Service, clock: ManualClock
) -> None:
    said = [user_says(f"tea {at}") for at in range(6)]
    service.remember(ADA, said, "chat", provider="lab")
    settle(service, clock)
    make_notes(service, clock)
    assert service.remember(ADA, [*said, user_says("and more")], "chat", provider="lab").stored == 1
    assert len(list(service.transcripts.read(ADA, "chat"))) == 7, "the note is no part of what was said"


def test_a_note_is_not_handed_on_to_the_next_session(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with noting(url, clock, endpoint, session_rehydration_context="both") as service:
        say(service)
        settle(service, clock)
        make_notes(service, clock)
        told = service.previous_session(ADA)
        assert told is not None
        assert "chat line 5" in told.text
        assert "They chose tea." not in told.text
        archived = "".join(map(str, service.archive(ADA, "chat")))
        assert "They chose tea." not in archived


def test_a_prompt_is_told_of_one_note_beside_what_was_said(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    # Without the summary, which has them all.
    settings = {"rag_relevance_threshold": 0.0, "rag_max_results": 9, "memory_use": False}
    with noting(url, clock, endpoint, **settings) as service:
        for at in range(3):
            said = [user_says(f"samovar {at} leaks"), *(user_says(f"tea {line}") for line in range(5))]
            service.remember(ADA, said, f"s{at}", provider="lab")
        settle(service, clock)
        written = iter(range(3))
        endpoint.default = by_content(lambda body: note(f"Note {next(written)}: a samovar leaks.", "- leaks"))
        assert len(make_notes(service, clock)) == 3
        told = service.inject(ADA, [user_says("Which samovar leaks?")])
        assert told.block is not None
        assert told.block.text.count(": a samovar leaks") == 1
        assert told.block.text.count("samovar") == 4


def test_a_failing_note_is_tried_three_times_and_again_when_the_conversation_grew(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = facts_and_notes(raw_reply("I would rather not."))
    say(service)
    settle(service, clock)
    for tries in range(3):
        (outcome,) = make_notes(service, clock)
        assert outcome.status == ("failed" if tries == 2 else "waiting")
        if tries < 2:
            assert reasons(service, clock) == {"chat": "retry at"}
            assert make_notes(service, clock) == []
            clock.advance(HOUR)
    assert reasons(service, clock) == {"chat": "tries used up"}
    assert make_notes(service, clock) == []
    with service.database.write() as tx:
        tx.execute("update conversations set last_document = last_document + 1")
    assert reasons(service, clock) == {"chat": ""}
    endpoint.default = facts_and_notes()
    assert [one.detail for one in make_notes(service, clock)] == ["succeeded"]


def test_an_empty_answer_is_no_output_and_takes_an_old_one_away(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    say(service)
    settle(service, clock)
    make_notes(service, clock)
    assert texts_of(service, ADA, type="learning") == ["They chose tea."]
    with service.database.write() as tx:
        tx.execute("update conversations set last_document = last_document + 1")
    endpoint.default = facts_and_notes(note("", "something"))
    assert [one.detail for one in make_notes(service, clock)] == ["succeeded_no_output"]
    assert (outputs_of(service), texts_of(service, ADA, type="learning")) == ([], [])
    assert reasons(service, clock) == {"chat": "up to date"}


def test_an_output_is_replaced_only_by_one_that_was_made_of_as_much(
    service: Service, clock: ManualClock
) -> None:
    say(service)
    settle(service, clock)
    make_notes(service, clock)
    (made,) = outputs_of(service)
    with service.database.write() as tx:
        usage.count_notes(tx, ADA, [(made.session_id, made.note)], clock(), "main")
        for through, summary in ((-1, "older"), (0, "same"), (1, "newer"), (0, "older again")):
            newer = replace(made, source_through=made.source_through + through, summary=summary)
            assert outputs.put(tx, ADA, newer) == (not summary.startswith("older"))
    (kept,) = outputs_of(service)
    assert (kept.summary, kept.use_count) == ("newer", 1)
    assert kept.last_used_at is not None


def test_users_and_groups_see_their_own_notes_only(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    for user in (ADA, BOB):
        for group in ("main", "a", "b"):
            say(service, f"{user}-{group}", user, group=group)
    settle(service, clock)
    endpoint.default = facts_and_notes()
    assert len(make_notes(service, clock)) == 6
    seen = {
        (user, group): {one.session_id for one in outputs_of(service, user, group)}
        for user in (ADA, BOB)
        for group in ("main", "a", "b", "c")
    }
    for user in (ADA, BOB):
        assert seen[user, "main"] == {f"{user}-{group}" for group in ("main", "a", "b")}
        assert (seen[user, "a"], seen[user, "b"]) == ({f"{user}-a"}, {f"{user}-b"})
        assert seen[user, "c"] == set()
    for sent in bodies(endpoint):
        text = user_text(sent)
        assert sum(f"{user}-{group} line" in text for user in (ADA, BOB) for group in ("main", "a", "b")) == 1


def forgetting(service: Service, clock: ManualClock) -> None:
    """A conversation in which something is told that will be forgotten, and its note."""
    said = [
        user_says("my pet is a walrus called Ole", id="pet"),
        *(user_says(f"tea {at}") for at in range(6)),
    ]
    service.remember(ADA, said, "chat", provider="lab")
    settle(service, clock)
    make_notes(service, clock)


@pytest.mark.parametrize("target", ["fact", "document", "only"])
def test_what_is_forgotten_in_a_conversation_withholds_its_note_until_it_is_made_anew(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint, target: str
) -> None:
    endpoint.default = facts_and_notes(note("They keep a walrus.", "- a walrus called Ole", slug="walrus"))
    forgetting(service, clock)
    assert texts_of(service, ADA, type="learning") == ["They keep a walrus."]
    (document,) = [one for one in service.documents(ADA) if one.message_id == "pet"]
    what = {"document": document.id} if target == "document" else {"fact": "pet"}
    service.forget(ADA, **what, only=target == "only")
    assert (outputs_of(service), texts_of(service, ADA, type="learning")) == ([], [])
    if target != "only":
        # Else the message itself stays, with what was extracted from it.
        assert "walrus" not in everything_but_messages(service)
        assert "walrus" not in b"".join(service.export(ADA)).decode()
    assert "walrus" not in repr(everything_of(service.database, ADA)["conversation_outputs"])
    assert reasons(service, clock) == {"chat": ""}
    endpoint.default = facts_and_notes()
    assert [one.detail for one in make_notes(service, clock)] == ["succeeded"]
    assert "walrus" not in user_text(bodies(endpoint)[-1])
    assert texts_of(service, ADA, type="learning") == ["They chose tea."]


def test_a_withheld_note_leaves_running_conversations_and_recall_at_once(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with noting(url, clock, endpoint, rag_relevance_threshold=0.0, rag_max_results=9) as service:
        endpoint.default = facts_and_notes(note("The samovar is from Tula.", "- Tula"))
        say(service)
        settle(service, clock)
        make_notes(service, clock)
        asked = [user_says("Where is the samovar from?")]
        for is_told in (True, False):
            told = service.inject(ADA, asked)
            assert ("Tula" in repr(told.messages)) == is_told
            assert ("Tula" in repr(service.recall(ADA, "samovar"))) == is_told
            first = next((one for one in service.documents(ADA) if one.message_id == "chat-0"), None)
            if first is not None:
                service.forget(ADA, document=first.id)


def everything_but_messages(service: Service) -> str:
    rows = everything_of(service.database, ADA)
    kept = [row for row in rows["documents"] if "message" not in row]
    return repr({**rows, "documents": kept})


def test_a_note_that_says_the_value_of_a_deleted_fact_is_refused(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = facts_and_notes(note("They keep a walrus called Ole.", "- walrus"))
    service.set_fact(ADA, "pet", "a walrus called Ole")
    say(service)
    settle(service, clock)
    service.forget(ADA, fact="pet")
    assert [one.detail for one in make_notes(service, clock)] == ["succeeded_no_output: deleted by the user"]
    assert (outputs_of(service), texts_of(service, ADA, type="learning")) == ([], [])
    assert "walrus" not in everything_but_messages(service).lower()
    say(service, "later")
    settle(service, clock)
    assert [one.detail for one in make_notes(service, clock)] == ["succeeded"], "said again after that"


def test_a_note_of_another_conversation_that_says_it_is_withheld_too(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = facts_and_notes(note("Walrus 100% OLE was fed.", "- fed"))
    say(service)
    settle(service, clock)
    make_notes(service, clock)
    service.set_fact(ADA, "pet", "walrus 100% Ole")
    service.forget(ADA, fact="pet")
    assert (outputs_of(service), texts_of(service, ADA, type="learning")) == ([], [])


def test_a_note_that_is_forgotten_itself_is_not_made_again(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    say(service)
    settle(service, clock)
    make_notes(service, clock)
    (document,) = service.documents(ADA, type="learning")
    assert service.forget(ADA, document=document.id).documents == 1
    assert (outputs_of(service), reasons(service, clock)) == ([], {"chat": "its note was forgotten"})
    assert make_notes(service, clock) == []


def test_a_forgotten_session_leaves_nothing_of_its_notes(service: Service, clock: ManualClock) -> None:
    say(service)
    say(service, "other")
    settle(service, clock)
    make_notes(service, clock)
    service.forget(ADA, session="chat")
    rows = everything_of(service.database, ADA)
    assert [one.session_id for one in outputs_of(service)] == ["other"]
    assert len(rows["conversation_outputs"]) == 1
    assert [row for row in rows["jobs"] if "phase1" in row and "done" in row] != []
    assert len(texts_of(service, ADA, type="learning")) == 1


@pytest.mark.every_scheme
@pytest.mark.parametrize("target", ["document", "session"])
def test_forgetting_while_a_call_runs_discards_its_result(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint, target: str
) -> None:
    say(service)
    settle(service, clock)
    document = next(one for one in service.documents(ADA) if one.message_id == "chat-0")
    what: dict[str, Any] = {"session": "chat"} if target == "session" else {"document": document.id}

    def forget(body: Any) -> Any:
        if len(bodies(endpoint)) == 1:
            service.forget(ADA, **what)
        return note("They said chat line 0.")

    endpoint.default = by_content(forget)
    first, *more = make_notes(service, clock)
    assert first.status == "lost"
    if target == "session":
        assert (more, outputs_of(service)) == ([], [])
    else:
        assert [one.detail for one in more] == ["succeeded"], "made anew without it"
        assert "chat line 0" not in user_text(bodies(endpoint)[-1])


def test_deletions_that_are_imported_withhold_notes_too(service: Service, clock: ManualClock) -> None:
    """Two copies of a memory: what is forgotten in one, with `only` or by hand, is told to the other."""
    said = [user_says("my pet is Tula", id="pet"), *(user_says(f"tea {at}") for at in range(6))]
    service.remember(ADA, said, "chat", provider="lab")
    service.set_fact(ADA, "town", "They chose tea")
    settle(service, clock)
    make_notes(service, clock)
    exported = b"".join(service.export(ADA))
    for at, forgotten in enumerate(({"fact": "pet", "only": True}, {"fact": "town"})):
        other, copy = f"other{at}", f"copy{at}"
        for user in (other, copy):
            service.import_lines(user, io.BytesIO(exported))
        service.forget(other, **forgotten)
        assert len(outputs_of(service, copy)) == 1
        service.import_lines(copy, io.BytesIO(b"".join(service.export(other))))
        assert outputs_of(service, copy) == []
        assert texts_of(service, copy, type="learning") == []


@pytest.mark.every_scheme
def test_outputs_come_back_from_an_export_and_an_erased_user_leaves_none(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    say(service)
    say(service, "later", group="a")
    settle(service, clock)
    make_notes(service, clock)
    exported = b"".join(service.export(ADA))
    before = outputs_of(service)
    service.import_lines(BOB, io.BytesIO(exported))
    assert b"".join(service.export(BOB)).partition(b"\n")[2] == exported.partition(b"\n")[2]
    taken = outputs_of(service, BOB)
    assert [(one.summary, one.note, one.group_name) for one in taken] == [
        (one.summary, one.note, one.group_name) for one in before
    ]
    assert set(reasons(service, clock, BOB).values()) == {"up to date"}
    assert service.erase(BOB).left == {}
    assert everything_of(service.database, BOB)["conversation_outputs"] == []
    service.forget(ADA, document=next(one.id for one in service.documents(ADA) if one.message_id == "chat-0"))
    service.import_lines(ADA, io.BytesIO(exported))
    assert [one.session_id for one in outputs_of(service)] == ["later"], "what was forgotten stays so"
    assert len(texts_of(service, ADA, type="learning")) == 1
