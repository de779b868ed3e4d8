"""`shepherd chat --server` asks a shared session as it would ask a chat of its own."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory import open_service
from shepherd_memory.chat import events
from shepherd_memory.chat.remote import RemoteSession, open_remote
from shepherd_memory.config import load_config
from shepherd_memory.errors import EndpointMisconfigured, EndpointUnavailable, InvalidInput
from shepherd_memory.frontends.api.app import api_application
from shepherd_memory.frontends.web.process import running
from tests.acceptance.processes import wait_until
from tests.endpoint import ScriptedEndpoint, json_reply
from tests.provider import RESET, ScriptedProvider, Stream, ToolCall, chat, gated, openai_stream
from tests.server.calling import new_key
from tests.server.serving import write_config
from tests.server.shared_session import StartSharing


class Heard(list[events.Event]):
    """What a client was told, by its kind."""

    def texts(self) -> str:
        return "".join(one.text for one in self if isinstance(one, events.TextDelta))

    def kinds(self) -> list[str]:
        return [type(one).__name__ for one in self]


@contextmanager
def asking(session: RemoteSession, text: str, **options: Any) -> Iterator[Heard]:
    """Ask in a thread; at the end of the block it must have come to its end."""
    heard = Heard()
    thread = threading.Thread(target=session.ask, args=(text, heard.append), kwargs=options, name="asking")
    thread.start()
    try:
        yield heard
    finally:
        thread.join(60)
        assert not thread.is_alive()


def ask(session: RemoteSession, text: str, **options: Any) -> Heard:
    with asking(session, text, **options) as heard:
        pass
    return heard


def test_it_tells_the_events_of_a_chat(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.default = openai_stream({"reasoning_content": "Hm."}, "Hello ", "Steve.")
    shared = share()
    with open_remote(shared.url) as session:
        assert (session.user_id, session.messages) == ("steve", [])
        heard = ask(session, "Hi")
        assert heard.kinds() == [
            "MessageAdded",
            "ReasoningDelta",
            "TextDelta",
            "TextDelta",
            "MessageAdded",
            "TurnCompleted",
        ]
        assert heard[-1] == events.TurnCompleted("Hello Steve.", 11, 7)
        assert [message["content"] for message in session.messages] == ["Hi", "Hello Steve."]
        assert session.messages == [
            event.message for event in heard if isinstance(event, events.MessageAdded)
        ]
    assert shared.contents() == ["Hi", "Hello Steve."]


def test_tools_are_told_too(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.script(openai_stream(ToolCall("1", "get_fact", '{"key": "dog"}')), openai_stream("No idea."))
    with open_remote(share(memtools=True).url) as session:
        heard = ask(session, "Who is my dog?")
    assert events.ToolCalled("1", "get_fact", '{"key": "dog"}') in heard
    assert "ToolFinished" in heard.kinds()


def test_it_neither_injects_nor_remembers_by_itself(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.default = chat("Noted.")
    shared = share()
    shared.service.set_fact("steve", "dog", "Rex")
    with open_remote(shared.url) as session:
        ask(session, "Who is my dog?", max_tokens=5)
        ask(session, "This is nobody's business.", memory=False)
    first, second = (request.json["messages"][-1]["content"] for request in provider.requests)
    assert first.count("[facts:") == 1
    assert second == "This is nobody's business."
    assert [text for _, text in shared.said("steve")] == ["Who is my dog?", "Noted."]


def test_who_comes_later_sees_what_was_said(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.default = chat("Noted.")
    shared = share()
    with open_remote(shared.url) as first, open_remote(shared.url) as second:
        ask(first, "From one")
        ask(second, "From the other")
        first.refresh()
        contents = [message["content"] for message in first.messages]
    assert contents == ["From one", "Noted.", "From the other", "Noted."]


def test_a_request_that_waits_says_so(share: StartSharing, provider: ScriptedProvider) -> None:
    gate = threading.Event()
    provider.script(gated(gate, chat("first")))
    shared = share()
    with open_remote(shared.url) as one, open_remote(shared.url) as other, asking(one, "First"):
        shared.wait_until_running()
        with asking(other, "Second") as heard:
            wait_until(lambda: heard, "it is told something")
            assert heard[0] == events.Notice("requests before this one: 1")
            gate.set()
    assert isinstance(heard[-1], events.TurnCompleted)


def test_cancelling_stops_the_answer_at_the_server(share: StartSharing, provider: ScriptedProvider) -> None:
    gate = threading.Event()
    provider.script(openai_stream("Half an ", gate))
    provider.default = chat("whole")
    shared = share()
    with open_remote(shared.url) as session:
        session.cancel()
        with asking(session, "Hello") as heard:
            wait_until(lambda: heard.texts(), "words come")
            session.cancel()
        assert heard[-1] == events.TurnCancelled("Half an ")
        session.cancel()
        assert ask(session, "Again")[-1] == events.TurnCompleted("whole", 11, 7)
    provider.wait_until_left(0)
    assert shared.contents() == ["Hello", "Half an ", "Again", "whole"]


def test_cancelling_takes_only_ones_own_request_out_of_the_line(
    share: StartSharing, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    provider.script(gated(gate, chat("first")))
    shared = share()
    with open_remote(shared.url) as one, open_remote(shared.url) as other, asking(one, "First") as first:
        shared.wait_until_running()
        with asking(other, "Second") as second:
            wait_until(lambda: second, "it waits")
            other.cancel()
        assert second[-1] == events.TurnCancelled("")
        gate.set()
    assert first[-1] == events.TurnCompleted("first", 11, 7)
    assert shared.contents() == ["First", "first"]


def test_cancelling_twice_stops_listening(provider: ScriptedProvider) -> None:
    """A server that does not answer at all cannot be told either."""
    session = RemoteSession(provider.url)
    provider.default = gated(threading.Event(), chat("never"))
    with asking(session, "Hello") as heard:
        wait_until(lambda: provider.requests, "the server is asked")
        session.cancel()
        session.cancel()
    assert heard == [events.TurnCancelled("")]
    session.close()


def test_clear_begins_a_new_session(share: StartSharing, provider: ScriptedProvider) -> None:
    shared = share()
    with open_remote(shared.url) as session:
        before = session.session_id
        ask(session, "Hello")
        session.clear()
        assert session.messages == []
        assert session.session_id == shared.show()["session_id"] != before


def test_a_client_is_told_how_old_the_session_is_and_that_it_was_ended_elsewhere(share: StartSharing) -> None:
    shared = share()
    with open_remote(shared.url) as session:
        assert session.life() == (None, "")
        begun = shared.post("/session/start").json
        session.refresh()
        assert session.life() == (datetime.fromisoformat(begun["started_at"]), "active")
        shared.post("/session/end")
        session.refresh()
        assert session.life()[1] == "ended (client)"
        shared.post("/session/start")
        shared.service.start_session(shared.show()["user_id"], takeover=True)
        session.refresh()
        assert session.life()[1] == "ended elsewhere"


def test_a_problem_of_the_provider_is_told_as_one(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("Half ", RESET))
    with open_remote(share().url) as session:
        last = ask(session, "Hello")[-1]
    assert isinstance(last, events.TurnFailed)
    assert last.code == events.PROVIDER_FAILED


def test_a_wrong_key_is_told_with_what_to_do(share: StartSharing) -> None:
    shared = share()
    key, other = new_key(shared.service, "steve"), new_key(shared.service, "mallory")
    for wrong in ("", "sk-nonsense", other):
        with (
            pytest.raises(EndpointMisconfigured, match="--key or SHEPHERD_KEY"),
            open_remote(shared.url, wrong),
        ):
            pass
    with open_remote(shared.url, f" {key} ") as session:
        assert isinstance(ask(session, "Hello")[-1], events.TurnCompleted)


def test_nobody_listening_there_is_told_with_what_to_do() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        port = server.server_port
    with pytest.raises(EndpointUnavailable, match="cli-server"), open_remote(f"http://127.0.0.1:{port}"):
        pass


def test_another_server_is_not_taken_for_a_session(provider: ScriptedProvider, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    write_config(path, provider.url, embedding_engine="none")
    with (
        open_service(load_config(path, {})) as service,
        running(service, api_application(service, "127.0.0.1")) as api,
    ):
        for url in (api.url, provider.url):
            with pytest.raises(EndpointMisconfigured, match="no shared session"), open_remote(url):
                pass


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"session_id": "1", "user_id": "u"},
        {"session_id": "1", "user_id": "u", "messages": 3},
        {"session_id": "1", "user_id": "u", "messages": [[]]},
        {"session_id": "1", "user_id": "u", "messages": [{"content": "Hi"}]},
    ],
)
def test_a_page_that_is_none_of_a_session_is_told(page: dict[str, Any]) -> None:
    with ScriptedEndpoint() as endpoint:
        endpoint.default = json_reply(page)
        with pytest.raises(EndpointMisconfigured, match="no shared session"), open_remote(endpoint.url):
            pass


@pytest.mark.parametrize(
    ("stream", "says"),
    [
        ((b'event: queued\ndata: {"request": "1"}\n\n',), "restarted"),
        ((b'event: delta\ndata: {"text": "Hel"}\n\nevent: del',), "restarted"),
        ((b'event: delta\ndata: {"text": "Hel"}\n\n', RESET), ""),
        ((b'event: delta\ndata: {"no_text": 1}\n\n',), "no shared session"),
        ((b'event: delta\ndata: {"text": 5}\n\n',), "no shared session"),
        ((b'event: message_added\ndata: {"message": ["role"]}\n\n',), "no shared session"),
        ((b'event: queued\ndata: {"queue_position": "many"}\n\n',), "no shared session"),
        ((b'event: tool_call\ndata: {"id": "1", "name": {}, "arguments": ""}\n\n',), "no shared session"),
        ((b'event: response_complete\ndata: {"response": {}}\n\n',), "no shared session"),
        ((b'event: response_complete\ndata: {"tokens": [1]}\n\n',), "no shared session"),
        ((b'event: response_complete\ndata: {"tokens": {"prompt": "x"}}\n\n',), "no shared session"),
        ((b'event: error\ndata: {"message": 1, "code": 2}\n\n',), "no shared session"),
        ((b"event: delta\ndata: nonsense\n\n: comment\n\n\xff\n\n",), "restarted"),
    ],
)
def test_a_server_that_goes_away_or_talks_nonsense_is_told(
    provider: ScriptedProvider, stream: tuple[Any, ...], says: str
) -> None:
    provider.script(Stream(stream))
    session = RemoteSession(provider.url)
    last = ask(session, "Hello")[-1]
    assert isinstance(last, events.TurnFailed)
    assert says in last.problem
    session.close()


@pytest.mark.parametrize(
    "url", ["", "ftp://host", "http://", "http://[", "file:///etc/passwd", "http://h/?q"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="cli-server"):
        RemoteSession(url)


def test_a_key_that_no_header_can_carry_is_refused() -> None:
    with pytest.raises(InvalidInput, match="key"):
        RemoteSession("http://127.0.0.1:1", "ä\n")


def test_an_address_needs_no_scheme_and_hides_its_password(share: StartSharing) -> None:
    shared = share()
    with open_remote(shared.url.removeprefix("http://") + "/") as session:
        assert session.user_id == "steve"
        assert session.place == shared.url
    with open_remote(shared.url.replace("://", "://me:geheim@")) as session:
        assert session.place == shared.url
    with pytest.raises(EndpointUnavailable) as told, open_remote("http://me:geheim@127.0.0.1:1"):
        pass
    assert "geheim" not in str(told.value)
