"""The server is told to stop: streams come to their end, the queue is kept, and twice means at once."""

import json
import signal
import threading
from collections.abc import Callable

import pytest

from shepherd_memory.work.jobs import DONE, RUNNING, WAITING
from tests.acceptance.combinations import BACKENDS, every_value, first_backend
from tests.acceptance.processes import wait_until
from tests.acceptance.server_site import (
    BROKEN,
    CHAT,
    MESSAGES,
    RESPONSES,
    Conversation,
    Server,
    Site,
    body_sent,
    chat_body,
    held_memory,
)
from tests.acceptance.statements import answering, drain
from tests.endpoint import ScriptedEndpoint, Step, hang
from tests.provider import anthropic_stream, chat, openai_stream, responses_stream

SAID = "My code_1 is zebra_1."
WIRES: dict[str, Callable[..., Step]] = {
    CHAT: openai_stream,
    RESPONSES: responses_stream,
    MESSAGES: anthropic_stream,
}
SIGNALS = (signal.SIGTERM, signal.SIGINT)
STOP_SECONDS = 60


@pytest.fixture
def gate() -> threading.Event:
    """What a stream waits for."""
    return threading.Event()


def begin_stream(server: Server, path: str = CHAT) -> Conversation:
    """A stream of which the first words have come."""
    named = {"metadata": {"user_id": "steve"}}
    body = chat_body(SAID, "steve", input=SAID, stream=True, max_tokens=9, **named)
    conversation = server.open("POST", path, body)
    conversation.read_until(b"Hello ")
    return conversation


def refuses_connections(server: Server) -> bool:
    try:
        server.ask("GET", "/health")
    except BROKEN:
        return True
    return False


@every_value(path=[*WIRES], number=SIGNALS, database_url=BACKENDS)
def test_a_stream_is_finished_and_remembered_first(
    path: str, number: int, site: Site, gate: threading.Event
) -> None:
    site.settings.set(server_shutdown_timeout=STOP_SECONDS)
    site.provider.script(WIRES[path]("Hello ", gate, "Steve."))
    server = site.serve()
    with begin_stream(server, path) as conversation:
        server.process.send_signal(number)
        wait_until(lambda: refuses_connections(server), "it takes no more requests")
        assert server.process.poll() is None
        gate.set()
        rest = conversation.response().read()
    assert server.process.wait(STOP_SECONDS) == 0
    assert body_sent(site.provider.exchanges[-1]).endswith(rest)
    assert b"Steve." in rest
    assert site.said("steve") == [("user", SAID), ("assistant", "Hello Steve.")]


@first_backend
def test_what_waits_for_extraction_is_still_there_at_the_next_start(
    site: Site, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = hang()
    site.settings.set(memory_extraction_timeout=120, memory_extraction_lease=3600)
    server = site.serve()
    for user in range(3):
        assert server.chat(SAID, f"user-{user}").status == 200
    endpoint.wait_for(1)
    server.process.terminate()
    assert server.process.wait(STOP_SECONDS) == 0
    with site.settings.service() as service:
        assert service.status().items[WAITING] == 3
        assert service.status().items[RUNNING] == 0
        endpoint.default = answering()
        site.serve()
        drain(service)
        assert service.status().items[DONE] == 3
        assert [fact.value for fact in service.facts("user-1")] == ["zebra_1"]


@every_value(second=SIGNALS, database_url=BACKENDS)
def test_a_second_signal_ends_it_at_once(second: int, site: Site, gate: threading.Event) -> None:
    site.settings.set(server_shutdown_timeout=10 * STOP_SECONDS)
    site.provider.script(openai_stream("Hello ", gate, "Steve."))
    server = site.serve()
    with begin_stream(server) as conversation:
        server.process.terminate()
        wait_until(lambda: refuses_connections(server), "it takes no more requests")
        server.process.send_signal(second)
        server.process.wait(STOP_SECONDS)
        with pytest.raises(BROKEN):
            conversation.response().read()


@first_backend
def test_a_provider_that_says_nothing_more_is_given_up_when_the_time_is_over(
    site: Site, gate: threading.Event
) -> None:
    site.settings.set(server_shutdown_timeout=1)
    site.provider.script(openai_stream("Hello ", gate, "Steve."))
    server = site.serve()
    with begin_stream(server) as conversation:
        server.process.terminate()
        assert server.process.wait(STOP_SECONDS) == 0
        with pytest.raises(BROKEN):
            conversation.response().read()
    site.provider.wait_until_left()
    assert site.said("steve") == [("user", SAID)]


@every_value(path=[*WIRES], database_url=BACKENDS)
def test_a_provider_that_never_answers_is_given_up_when_the_time_is_over(path: str, site: Site) -> None:
    site.settings.set(server_shutdown_timeout=1)
    site.provider.default = hang()
    server = site.serve()
    body = chat_body(SAID, "steve", input=SAID, metadata={"user_id": "steve"})
    with server.open("POST", path, body) as conversation:
        site.provider.wait_for(1)
        server.process.terminate()
        assert server.process.wait(STOP_SECONDS) == 0
        response = conversation.response()
        # What the official clients try again.
        assert response.status == 503
        assert response.headers["Retry-After"]
        assert "message" in json.loads(response.read())["error"]
    assert site.said("steve") == [("user", SAID)]


@first_backend
def test_an_idle_client_keeps_nobody_waiting(site: Site) -> None:
    site.settings.set(server_shutdown_timeout=10 * STOP_SECONDS)
    site.provider.default = chat("Hello.")
    server = site.serve()
    with server.open("POST", CHAT, chat_body(SAID, "steve")) as conversation:
        assert conversation.response().read()
        server.process.terminate()
        assert server.process.wait(STOP_SECONDS) == 0


@first_backend
def test_a_signal_while_it_starts_is_not_lost(site: Site) -> None:
    site.settings.set(server_shutdown_timeout=1)
    database = site.settings.path.with_name("memory.db")
    database.unlink(missing_ok=True)
    process = site.processes.shepherd(site.settings.path, "serve", "--port", 0)
    # Made by opening the database, which is before it listens.
    wait_until(lambda: database.exists() or "listening" in site.processes.logs(), "it starts")
    process.terminate()
    assert process.wait(STOP_SECONDS) in (0, -signal.SIGTERM)


def test_a_memory_that_somebody_else_holds_does_not_delay_the_end(site: Site) -> None:
    site.settings.set(server_shutdown_timeout=1)
    site.provider.default = chat("Hello.")
    server = site.serve()
    wait_until(lambda: server.chat("Hello?", "steve").memory == "on", "it is warm")
    site.settings.set(server_memory_timeout=0.3)
    with site.settings.service() as service, held_memory(service, "steve"):
        assert server.chat(SAID, "steve").status == 200
        server.process.terminate()
        assert server.process.wait(STOP_SECONDS) == 0
