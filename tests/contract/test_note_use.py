"""Notes of conversations in the summary: told, counted as used, and gone once something is forgotten."""

from collections.abc import Iterator
from typing import Any

import pytest

from shepherd_memory import tools
from shepherd_memory.phases.outputs import Output
from shepherd_memory.service import Service
from tests.contract.given import ManualClock, memory, user_says
from tests.contract.test_memory_summary import answers, first, told
from tests.contract.test_phases import make_notes, noting, say, settle
from tests.endpoint import ScriptedEndpoint
from tests.note_endpoint import facts_and_notes, note

TEA = "They chose oolong tea for the kettle."


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with noting(url, clock, endpoint) as opened:
        endpoint.default = facts_and_notes(note(TEA))
        yield opened


def noted(service: Service, clock: ManualClock, **more: Any) -> Output:
    """A conversation of Ada's that has its note."""
    say(service, **{"cwd": "", **more})
    settle(service, clock)
    assert make_notes(service, clock)
    return output_of(service)


def output_of(service: Service) -> Output:
    (found,) = service.conversation_outputs("ada")
    return found


def cited(*ids: object) -> dict[str, str]:
    listed = "\n".join(map(str, ids))
    return {"role": "assistant", "content": f"Tea.\n<memory-citation>\n{listed}\n</memory-citation>"}


@pytest.mark.every_scheme
def test_a_note_is_told_in_the_summary_and_counts_as_used(service: Service, clock: ManualClock) -> None:
    output = noted(service, clock)
    assert (output.use_count, output.last_used_at) == (0, None)
    injected = first(service, "hello")
    assert told(injected) == ["## Recent conversations", f"- 2027-01-15 chat line 0: {TEA}"]
    used = output_of(service)
    assert (used.use_count, used.last_used_at is None) == (1, False)
    service.inject("ada", [user_says("hello"), answers("Hello."), user_says("more")])
    assert output_of(service).use_count == 1
    assert TEA in service.memory_summary("ada").text


def test_what_is_found_or_read_by_a_tool_counts_too(service: Service, clock: ManualClock) -> None:
    noted(service, clock, cwd="/work/kettle")
    assert told(first(service, "hello")) == []
    assert TEA in first(service, "Which oolong tea for the kettle?").messages[0]["content"]
    assert output_of(service).use_count == 1
    for name in ("search_memory", "recall"):
        assert TEA in str(tools.answer(service, "ada", name, {"query": "oolong tea kettle"}))
    assert output_of(service).use_count == 3
    tools.answer(service, "bob", "search_memory", {"query": "oolong tea kettle"})
    tools.answer(service, "ada", "search_memory", {"query": "oolong tea kettle"}, group="club")
    assert output_of(service).use_count == 3


@pytest.mark.every_scheme
def test_what_is_cited_counts_once_and_only_for_its_user_and_group(
    service: Service, clock: ManualClock
) -> None:
    number = noted(service, clock).conversation_id
    service.remember("ada", [cited(number, "chat", number)], "later")
    assert output_of(service).use_count == 1
    asked = [user_says("Which tea?")]
    for _ in range(2):
        service.remember_exchange("ada", asked, cited("chat")["content"], "later")
    assert output_of(service).use_count == 2
    service.remember("bob", [cited(number, "chat")], "later")
    service.remember("ada", [cited(number, "chat")], "later", group="club")
    service.remember("ada", [cited("nobody's", 10**30, -1)], "later")
    assert output_of(service).use_count == 2
    assert not any("citation" in one.text for one in service.documents("ada", session_id="later"))


@pytest.mark.every_scheme
def test_a_note_that_is_made_anew_changes_no_conversation_and_one_that_is_withheld_leaves_all(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    noted(service, clock)
    asked = "Which oolong tea for the kettle?"
    later = [user_says("hello"), answers("Hello."), user_says("and now?")]
    found = [user_says(asked), answers("Tea."), user_says("and now?")]
    first(service, "hello")
    first(service, asked)
    before = [service.inject("ada", messages).messages for messages in (later, found)]
    endpoint.default = facts_and_notes(note("They chose coffee instead."))
    with service.database.write() as tx:
        tx.execute("update conversations set last_document = last_document + 1")
    assert make_notes(service, clock)
    assert output_of(service).summary == "They chose coffee instead."
    assert [service.inject("ada", messages).messages for messages in (later, found)] == before
    assert "coffee" in told(first(service, "a new one"))[-1]
    last = service.documents("ada", session_id="chat", role="user")[-1]
    service.forget("ada", document=last.id, only=True)
    for messages in (later, found, [user_says("a new one")]):
        assert "They chose" not in str(service.inject("ada", messages).messages)
    assert "They chose" not in service.memory_summary("ada").text


def test_without_the_use_of_memory_notes_are_not_told(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, service: Service
) -> None:
    noted(service, clock)
    with memory(url, clock, endpoint.url, memory_use=False) as other:
        assert told(other.inject("ada", [user_says("hello")])) == []
    assert output_of(service).use_count == 0
