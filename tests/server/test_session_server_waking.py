"""A session that is started with `wake` greets first: its stream begins with the id of the session."""

import threading

import pytest

from shepherd_memory.text.program_text import WAKE_UP
from tests.provider import ScriptedProvider, openai_error, openai_stream
from tests.server.calling import call_json
from tests.server.shared_session import USER, Sharing, StartSharing, watching

BIKE = "My bike is a Brompton"
WAKE = {"wake": True}


@pytest.fixture
def shared(share: StartSharing) -> Sharing:
    sharing = share()
    sharing.service.remember(USER, [{"role": "user", "content": BIKE}], "before")
    return sharing


def prompt(provider: ScriptedProvider) -> str:
    return str(provider.requests[-1].json["messages"][0]["content"])


def test_the_stream_begins_with_the_id_and_has_the_greeting(
    shared: Sharing, provider: ScriptedProvider
) -> None:
    provider.script(openai_stream("Hello ", "again."), openai_stream("Yes."))
    with watching(shared.url, "/session/start", WAKE) as stream:
        stream.wait_until_over()
        session_id = stream.response.headers["x-shepherd-session"]
    assert stream.names()[0] == "session_started"
    assert stream.names()[-1] == "response_complete"
    assert stream.told[0].fields["session_id"] == session_id == shared.show()["session_id"]
    assert stream.text() == "Hello again."
    assert prompt(provider).startswith(WAKE_UP)
    assert BIKE in prompt(provider)
    assert shared.contents() == ["Hello again."]
    before = prompt(provider)
    assert shared.ask("Is it green?").status == 200
    assert prompt(provider) == before
    assert [text for _, text in shared.said(USER)] == [BIKE, "Hello again.", "Is it green?", "Yes."]


def test_a_start_that_is_refused_wakes_nobody(shared: Sharing, provider: ScriptedProvider) -> None:
    running = shared.post("/session/start").json["session_id"]
    asked = len(provider.requests)
    refused = shared.post("/session/start", WAKE)
    assert (refused.status, refused.json["error"]["code"]) == (409, "session_active")
    assert refused.header("x-shepherd-session") == running
    assert len(provider.requests) == asked


def test_a_greeting_that_fails_is_told_and_the_session_goes_on(
    shared: Sharing, provider: ScriptedProvider
) -> None:
    provider.script(openai_error(400), openai_stream("Hello."))
    with watching(shared.url, "/session/start", WAKE) as stream:
        stream.wait_until_over()
    assert (stream.names()[0], stream.names()[-1]) == ("session_started", "error")
    assert shared.ask("hello").json["session_id"] == stream.told[0].fields["session_id"]
    assert prompt(provider).startswith("hello\n\n")
    assert BIKE in prompt(provider)


def test_a_greeting_can_be_cancelled(shared: Sharing, provider: ScriptedProvider) -> None:
    gate = threading.Event()
    provider.script(openai_stream("Hello ", gate, "again."))
    with watching(shared.url, "/session/start", WAKE) as stream:
        stream.wait_for("delta")
        assert call_json(shared.url, "POST", "/cancel", {}).json["cancelled"]
        gate.set()
        assert stream.wait_for("response_complete").fields["cancelled"]


def test_who_leaves_is_greeted_all_the_same(shared: Sharing, provider: ScriptedProvider) -> None:
    gate = threading.Event()
    provider.script(openai_stream("Hello ", gate, "again."))
    with watching(shared.url) as updates:
        with watching(shared.url, "/session/start", WAKE) as stream:
            stream.wait_for("session_started")
            stream.leave()
        gate.set()
        updates.wait_for("response_complete")
    assert shared.contents() == ["Hello again."]
