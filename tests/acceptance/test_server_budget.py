"""Memory that is slow and connections that break off: the chat goes on, and what memory lost is counted."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from shepherd_memory.storage.database import Database
from tests.acceptance.combinations import BACKENDS, every_value, first_backend, one_backend
from tests.acceptance.processes import wait_until
from tests.acceptance.server_site import (
    BROKEN,
    CHAT,
    MESSAGES,
    PATIENCE_SECONDS,
    Server,
    Site,
    body_sent,
    chat_body,
    held_memory,
)
from tests.endpoint import Call, Step
from tests.provider import (
    CUT,
    RESET,
    anthropic_error,
    anthropic_stream,
    chat,
    gated,
    openai_error,
    openai_stream,
)

SAID = "My bicycle is called Rosinante."
BUDGET_SECONDS = 0.3


@pytest.fixture
def site(site: Site) -> Site:
    site.provider.default = chat("Understood.")
    return site


@pytest.fixture
def gate() -> threading.Event:
    """What the provider waits for."""
    return threading.Event()


def both_named(text: str, user: str, **more: object) -> dict[str, object]:
    """A body that either wire format takes."""
    return chat_body(text, user, metadata={"user_id": user}, max_tokens=9, **more)


@every_value(stream=[False, True], database_url=BACKENDS)
def test_a_chat_goes_through_while_somebody_else_holds_the_memory(stream: bool, site: Site) -> None:
    server = site.serve()
    server.chat(SAID, "steve")
    before = server.exchanges("spooled")
    site.settings.set(server_memory_timeout=BUDGET_SECONDS)
    with site.settings.service() as service, held_memory(service, "steve"):
        reply = server.chat("What is my bicycle called?", "steve", stream=stream)
        assert reply.status == 200
        assert reply.memory == "timeout"
        assert reply.body == body_sent(site.provider.exchanges[-1])
        assert site.provider.exchanges[-1].received.json["messages"] == [
            {"role": "user", "content": "What is my bicycle called?"}
        ]
        assert server.exchanges("spooled") == before + 1
    site.settings.set(server_memory_timeout=PATIENCE_SECONDS)
    wait_until(lambda: server.metric("shepherd_spool_records") == 0, "the spool is empty")
    assert server.chat("And what did I call my bicycle?", "steve", stream=stream).memory == "on"
    assert "Rosinante" in site.provider.exchanges[-1].received.body.decode()
    assert server.exchanges("spooled") == before + 1


def test_chats_at_once_with_keys_go_through_while_somebody_else_holds_the_memory(site: Site) -> None:
    """More of them than there are threads: those that wait for the memory must not keep the others out."""
    key = site.shepherd("apikey", "create", "steve").split()[0]
    headers = {"Authorization": f"Bearer {key}"}
    site.settings.set(server_threads=2)
    server = site.serve()
    server.chat(SAID, headers=headers)
    site.settings.set(server_memory_timeout=BUDGET_SECONDS)
    with (
        site.settings.service() as service,
        held_memory(service, "steve"),
        ThreadPoolExecutor(8) as pool,
    ):
        asked = [f"What is my bicycle called, for the {number}th time?" for number in range(16)]
        replies = list(pool.map(lambda text: server.chat(text, headers=headers), asked))
        assert {reply.status for reply in replies} == {200}
        assert server.ask("GET", "/health", headers=headers).status in (200, 503)


# SQLite has one writer for all users.
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_what_holds_one_user_does_not_hold_the_others_for_ever(site: Site) -> None:
    site.settings.set(server_threads=2)
    server = site.serve()
    server.chat(SAID, "steve")
    site.settings.set(server_memory_timeout=BUDGET_SECONDS)
    with site.settings.service() as service, held_memory(service, "steve"):
        for number in range(6):
            assert server.chat(f"What is my bicycle called, for the {number}th time?", "steve").status == 200
        wait_until(lambda: is_remembered(server, site, "carla"), "carla is remembered")


def is_remembered(server: Server, site: Site, user: str) -> bool:
    server.chat("My scooter is called Sancho.", user)
    return bool(site.said(user))


@one_backend
@pytest.mark.parametrize("stream", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_a_chat_goes_through_when_memory_fails_in_a_way_that_nobody_thought_of(
    stream: bool, site: Site
) -> None:
    site.settings.set(embedding_engine="onnx")
    server = site.serve()
    server.chat(SAID, "steve")
    with site.settings.service() as service:
        wait_until(lambda: service.unembedded("steve") == 0, "it is embedded")
        server.process.terminate()
        assert server.process.wait(60) == 0
        damage_vectors(service.database)
    server = site.serve()
    reply = server.chat("What is my bicycle called?", "steve", stream=stream)
    assert reply.status == 200, reply.body
    assert reply.memory == "failed"
    assert reply.body == body_sent(site.provider.exchanges[-1])


def damage_vectors(database: Database) -> None:
    """No longer a whole number of floats."""
    with database.write() as tx:
        tx.execute("update vectors set embedding = x'00'")


@dataclass(frozen=True)
class HalfABody:
    """Less of a body than was announced."""

    def perform(self, call: Call) -> None:
        call.handler.close_connection = True
        call.send_head(200, {"Content-Type": "application/json", "Content-Length": "1000"})
        call.handler.wfile.write(b'{"choices": [{"message": {"content": "Hel')


BREAKS: dict[str, tuple[str, Step]] = {
    "a reset": (CHAT, openai_stream("Hello ", RESET)),
    "an end in the middle": (CHAT, openai_stream("Hello ", "Steve", CUT)),
    "a reset in the other wire format": (MESSAGES, anthropic_stream("Hello ", RESET)),
    "an end in the middle of the other wire format": (MESSAGES, anthropic_stream("Hello ", "Steve", CUT)),
}


@one_backend
@pytest.mark.parametrize("name", BREAKS)
def test_a_provider_that_breaks_off_its_stream_breaks_off_ours(name: str, site: Site) -> None:
    path, step = BREAKS[name]
    server = site.serve()
    site.provider.script(step)
    with server.open("POST", path, both_named(SAID, "steve", stream=True)) as conversation:
        assert conversation.response().status == 200
        with pytest.raises(BROKEN):
            conversation.response().read()
    assert site.said("steve") == []
    assert server.ask("POST", path, both_named("Hello?", "steve")).memory == "on"


@one_backend
@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_a_provider_that_breaks_off_a_whole_answer_is_said_to_have_failed(path: str, site: Site) -> None:
    server = site.serve()
    site.provider.script(HalfABody())
    reply = server.ask("POST", path, both_named(SAID, "steve"))
    assert reply.status == 502
    assert reply.json["error"]["message"]
    assert site.said("steve") == []


@every_value(path=[CHAT, MESSAGES], database_url=BACKENDS)
def test_a_client_that_leaves_in_the_middle_ends_the_call_and_its_words_are_kept(
    path: str, site: Site, gate: threading.Event
) -> None:
    stream = openai_stream if path == CHAT else anthropic_stream
    site.provider.script(stream("Hello ", gate, "Steve."))
    server = site.serve()
    with server.open("POST", path, both_named(SAID, "steve", stream=True)) as conversation:
        conversation.read_until(b"Hello ")
    site.provider.wait_until_left()
    wait_until(lambda: site.said("steve"), "it is remembered")
    assert site.said("steve") == [("user", SAID)]
    wait_until(lambda: server.exchanges("remembered") == 1, "it is counted")


@first_backend
def test_a_client_that_leaves_before_the_answer_ends_the_call_and_its_words_are_kept(
    site: Site, gate: threading.Event
) -> None:
    site.provider.script(gated(gate, chat("Too late.")))
    server = site.serve()
    with server.open("POST", CHAT, chat_body(SAID, "steve")):
        site.provider.wait_for(1)
    site.provider.wait_until_left()
    wait_until(lambda: site.said("steve"), "it is remembered")
    assert site.said("steve") == [("user", SAID)]


@first_backend
def test_words_that_could_not_be_stored_when_a_client_left_are_spooled_and_counted(
    site: Site, gate: threading.Event
) -> None:
    site.provider.script(gated(gate, chat("Too late.")))
    server = site.serve()
    with site.settings.service() as service:
        with server.open("POST", CHAT, chat_body(SAID, "steve")):
            site.provider.wait_for(1)
            break_documents(service.database)
        site.provider.wait_until_left()
        wait_until(lambda: server.exchanges("spooled") == 1, "it is counted")
        assert server.exchanges("remembered") == 0


def break_documents(database: Database) -> None:
    """Nothing can be stored from now on."""
    with database.write() as tx:
        tx.execute_script("alter table documents rename to elsewhere")


ERRORS = (400, 401, 403, 404, 413, 422, 429, 500, 503, 529)


@every_value(path=[CHAT, MESSAGES], stream=[False, True], database_url=["sqlite"])
def test_an_error_of_the_provider_is_passed_on_and_nothing_is_remembered(
    stream: bool, path: str, site: Site
) -> None:
    server = site.serve()
    error = openai_error if path == CHAT else anthropic_error
    for code in ERRORS:
        site.provider.script(error(code, headers={"Retry-After": "7"}))
        reply = server.ask("POST", path, both_named(SAID, "steve", stream=stream))
        assert reply.status == code
        assert reply.body == body_sent(site.provider.exchanges[-1])
        assert reply.headers["retry-after"] == "7"
        assert len(site.provider.exchanges) == ERRORS.index(code) + 1
    assert site.said("steve") == []
    assert server.exchanges("unremembered") == 0


@one_backend
def test_an_error_in_the_middle_of_a_stream_is_passed_on_and_nothing_is_remembered(site: Site) -> None:
    server = site.serve()
    broken = {"error": {"message": "overloaded", "type": "server_error"}}
    site.provider.script(openai_stream("Hello ", f"data: {json.dumps(broken)}\n\n".encode()))
    reply = server.chat(SAID, "steve", stream=True)
    assert reply.body == body_sent(site.provider.exchanges[-1])
    assert site.said("steve") == []
