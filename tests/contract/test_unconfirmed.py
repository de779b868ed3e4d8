"""What the guard cannot vouch for is kept, never told, and stored once it is confirmed."""

import io
import json

import pytest

from shepherd_memory.memory.unconfirmed import KEPT_DAYS
from shepherd_memory.service import Service
from tests.contract.given import ManualClock, memory, user_says, work
from tests.endpoint import ScriptedEndpoint, raw_reply

DAY = 24 * 60 * 60
SAID = "Soy enfermera en Sevilla"


def propose(endpoint: ScriptedEndpoint, value: str = "nurse", **more: object) -> None:
    """Have the model propose a fact, with a quote of what was said."""
    fact = {"key": "occupation", "value": value, "n": 1, "quote": SAID, "subject": "self", **more}
    endpoint.default = raw_reply(json.dumps({"facts": [fact], "context": []}))


def say(service: Service, session: str = "chat", text: str = SAID) -> str:
    """Say something and have it extracted; the item's outcome."""
    service.remember("ada", [user_says(text)], session)
    return [outcome.detail for outcome in work(service)][-1]


def values(service: Service) -> list[str]:
    return [fact.value for fact in service.facts("ada")]


def waiting(service: Service) -> list[str]:
    return [one.content for one in service.unconfirmed("ada")]


@pytest.mark.every_scheme
def test_a_translated_value_waits_and_is_not_injected(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    propose(endpoint)
    with memory(url, clock, endpoint.url) as service:
        assert say(service) == "1 unconfirmed"
        (kept,) = service.unconfirmed("ada")
        assert (kept.name, kept.content, kept.subject) == ("occupation", "nurse", "self")
        assert (kept.reason, kept.detail, kept.quote) == ("reworded", "nurse", SAID.lower())
        assert values(service) == []
        block = service.inject("ada", [user_says("Where is the enfermera?")]).block
        assert block is not None
        assert "nurse" not in block.text
        assert SAID in block.text


@pytest.mark.every_scheme
def test_a_second_mention_on_another_day_confirms(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    propose(endpoint)
    with memory(url, clock, endpoint.url) as service:
        say(service, "monday")
        assert say(service, "monday again") == "1 unconfirmed"
        assert (waiting(service), values(service)) == (["nurse"], [])
        clock.advance(DAY)
        assert say(service, "tuesday") == "1 stored"
        assert (waiting(service), values(service)) == ([], ["nurse"])


def test_what_the_user_calls_the_assistant_waits_and_what_it_calls_itself_is_refused(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    told = "From now on your name is Juno"
    propose(endpoint, "Juno", key="assistant_name", quote=told, subject="assistant")
    with memory(url, clock, endpoint.url) as service:
        assert say(service, text=told) == "1 unconfirmed"
        propose(endpoint, "friendly", key="assistant_tone", quote=told, subject="assistant")
        assert say(service, "another", told) == "1 refused"
        assert (waiting(service), values(service)) == (["Juno"], [])


def test_another_value_on_another_day_confirms_nothing(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        propose(endpoint)
        say(service, "monday")
        clock.advance(DAY)
        propose(endpoint, "care worker")
        assert say(service, "tuesday") == "1 unconfirmed"
        assert waiting(service) == ["nurse", "care worker"]


def test_what_is_said_in_the_users_own_words_ends_the_wait(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        propose(endpoint)
        say(service)
        propose(endpoint, quote="I'm a nurse")
        assert say(service, "english", "I'm a nurse") == "1 stored"
        assert waiting(service) == []


def test_a_person_confirms_or_refuses(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> None:
    with memory(url, clock, endpoint.url) as service:
        propose(endpoint)
        say(service)
        service.confirm("ada", service.unconfirmed("ada")[0].id)
        assert (waiting(service), values(service)) == ([], ["nurse"])
        propose(endpoint, "doctor")
        say(service, "later")
        service.refuse("ada", service.unconfirmed("ada")[0].id)
        assert (waiting(service), values(service)) == ([], ["nurse"])
        assert [one.reason for one in service.rejected("ada")] == ["refused by hand"]


@pytest.mark.every_scheme
def test_what_nobody_confirms_is_forgotten_after_90_days(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    propose(endpoint)
    with memory(url, clock, endpoint.url) as service:
        say(service)
        clock.advance(KEPT_DAYS * DAY - 1)
        assert waiting(service) == ["nurse"]
        clock.advance(2)
        assert waiting(service) == []
        work(service)
        assert service.row_counts("ada").get("unconfirmed", 0) == 0


def test_a_deleted_fact_does_not_come_back_by_waiting(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    propose(endpoint)
    with memory(url, clock, endpoint.url) as service:
        service.remember("ada", [user_says(SAID)], "chat")
        clock.advance(1)
        service.set_fact("ada", "occupation", "nurse")
        service.forget("ada", fact="occupation")
        assert [outcome.detail for outcome in work(service)] == ["1 refused"]
        assert waiting(service) == []


def test_forgetting_takes_what_waits_too(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> None:
    propose(endpoint)
    with memory(url, clock, endpoint.url) as service:
        say(service, "one")
        service.forget("ada", session="one")
        assert waiting(service) == []
        clock.advance(60)
        say(service, "two")
        (document,) = service.documents("ada", session_id="two")
        service.forget("ada", document=document.id)
        assert waiting(service) == []
        clock.advance(60)
        say(service, "three")
        service.set_fact("ada", "occupation", "pilot")
        service.forget("ada", fact="occupation")
        assert waiting(service) == []


@pytest.mark.every_scheme
def test_what_waits_is_exported_and_imported(
    url: str, other_url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    propose(endpoint)
    with memory(url, clock, endpoint.url) as service:
        say(service)
        exported = b"".join(service.export("ada"))
        (before,) = service.unconfirmed("ada")
    with memory(other_url, clock, endpoint.url) as service:
        for _ in range(2):
            service.import_lines("ada", io.BytesIO(exported))
        (after,) = service.unconfirmed("ada")
        assert (after.name, after.content, after.quote) == (before.name, before.content, before.quote)
        assert (after.stated_at, after.created_at) == (before.stated_at, before.created_at)


@pytest.mark.every_scheme
@pytest.mark.parametrize("by", ["document", "session", "fact"])
def test_an_older_export_does_not_bring_back_what_waited_and_was_forgotten(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, by: str
) -> None:
    propose(endpoint)
    with memory(url, clock, endpoint.url) as service:
        say(service)
        exported = b"".join(service.export("ada"))
        (document,) = service.documents("ada")
        clock.advance(60)
        service.set_fact("ada", "occupation", "pilot")
        targets = {"document": document.id, "session": "chat", "fact": "occupation"}
        service.forget("ada", **{by: targets[by]})
        service.import_lines("ada", io.BytesIO(exported))
        assert waiting(service) == []
