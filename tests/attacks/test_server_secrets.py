"""Keys and memories are in no log line, no traceback and no answer of the server's own, whatever fails."""

from typing import Any

import pytest

from shepherd_memory.storage.database import Database
from tests.acceptance.combinations import BACKENDS, every_value, first_backend
from tests.acceptance.processes import wait_until
from tests.acceptance.server_site import CHAT, MESSAGES, PROVIDER_KEY, Reply, Server, Site, held_memory
from tests.endpoint import ScriptedEndpoint, close, garbage, status
from tests.provider import (
    CUT,
    anthropic_error,
    anthropic_stream,
    chat,
    openai_error,
    openai_stream,
)

SENTENCE = "My quagga lives at seven Marzipan Lane"
ANSWER = "What a lovely Okapi answer"
PASSWORD = "pass-word-in-the-url"
EXTRACTION_KEY = "key-of-the-extraction-endpoint"
WAYS = {"lines": ((), ()), "debug": (("--debug",), ()), "json": (("--debug",), ("--json",))}
"""How the server is told to log: options before the command, and after."""


@pytest.fixture
def site(site: Site) -> Site:
    site.settings.set(memory_extraction_api_key=EXTRACTION_KEY)
    site.provider.default = chat(ANSWER)
    return site


class Visitor:
    """Holds a key of ours, and keeps all that it is answered with."""

    def __init__(self, site: Site) -> None:
        self.key = site.shepherd("apikey", "create", "steve").split()[0]
        self.site = site
        self.heard: list[Reply] = []
        # The command shows it, this once.
        for log in site.processes.folder.glob("*.log"):
            log.write_text("")

    def say(self, server: Server, path: str = CHAT, **more: Any) -> Reply:
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": SENTENCE}], **more}
        return self.ask(server, "POST", path, body)

    def ask(self, server: Server, method: str, path: str, body: Any = None) -> Reply:
        reply = server.ask(method, path, body, {"Authorization": f"Bearer {self.key}"})
        self.heard.append(reply)
        return reply

    def assert_nothing_seen(self) -> None:
        """In the logs, and in what was answered, heads included."""
        logs = self.site.processes.logs()
        assert "request" in logs
        # So asyncio begins what it says of a failure that nobody looked at: with the failure's own words.
        assert "never retrieved" not in logs
        for secret in (self.key, self.key[-43:], PROVIDER_KEY, PASSWORD, EXTRACTION_KEY):
            assert secret not in logs
            assert not any(secret in f"{reply.headers} {reply.body!r}" for reply in self.heard)
        for memory in ("quagga", "Marzipan", "Okapi"):
            assert memory not in logs
            failures = [reply for reply in self.heard if reply.status != 200]
            assert not any(memory in f"{reply.headers} {reply.body!r}" for reply in failures)


@pytest.fixture
def visitor(site: Site) -> Visitor:
    return Visitor(site)


@pytest.fixture
def server(request: pytest.FixtureRequest, visitor: Visitor) -> Server:
    before, options = WAYS[request.param]
    if request.param == "debug":  # With a model where most is logged.
        visitor.site.settings.set(embedding_engine="onnx")
    started = visitor.site.serve(*options, before=before)
    assert visitor.say(started).status == 200
    return started


@every_value(server=[*WAYS], database_url=BACKENDS)
def test_a_provider_that_cannot_be_reached(server: Server, visitor: Visitor) -> None:
    for base_url in (
        f"http://user:{PASSWORD}@127.0.0.1:1/v1",
        f"http://user:{PASSWORD}@nowhere.invalid",
        f"https://user:{PASSWORD}@127.0.0.1:{visitor.site.provider.port}",
        "http://127.0.0.1:1",
    ):
        visitor.site.set_provider(base_url=base_url)
        for path in (CHAT, MESSAGES, "/v1/embeddings"):
            assert visitor.say(server, path).status in (502, 504)
        assert visitor.ask(server, "GET", "/v1/models").status in (200, 502, 504)
    visitor.assert_nothing_seen()


@every_value(server=[*WAYS], database_url=BACKENDS)
def test_a_provider_that_refuses_or_breaks_off(server: Server, visitor: Visitor) -> None:
    provider = visitor.site.provider
    for code in (401, 403, 500):
        provider.script(openai_error(code), anthropic_error(code))
        assert visitor.say(server).status == visitor.say(server, MESSAGES).status == code
    provider.script(close(), close(), garbage(), garbage())
    for path in (CHAT, MESSAGES) * 2:
        visitor.say(server, path)
    provider.script(openai_stream("Oka", CUT), anthropic_stream("Oka", CUT))
    for path in (CHAT, MESSAGES):
        with server.open(
            "POST",
            path,
            {"model": "m", "stream": True, "messages": [{"role": "user", "content": SENTENCE}]},
            {"x-api-key": visitor.key},
        ) as conversation:
            conversation.read_until(b"Oka")
    visitor.assert_nothing_seen()


ODD_MESSAGES: list[Any] = [
    None,
    SENTENCE,
    [SENTENCE],
    [None, 7, {"role": "user", "content": SENTENCE}],
    [{"role": "user", "content": {"text": SENTENCE}}],
    [{"role": "user", "content": [SENTENCE, None, {"type": "text", "text": [SENTENCE]}]}],
    [{"role": [SENTENCE], "content": SENTENCE}],
    [{"role": "user", "content": SENTENCE, "name": {SENTENCE: SENTENCE}}],
    [{"role": "user", "content": SENTENCE + "\ud800\0"}],
    [{"role": "assistant", "tool_calls": SENTENCE}, {"role": "user", "content": SENTENCE}],
]


@every_value(server=[*WAYS], database_url=BACKENDS)
def test_requests_that_are_not_what_they_should_be(server: Server, visitor: Visitor) -> None:
    for messages in ODD_MESSAGES:
        for path in (CHAT, MESSAGES):
            assert visitor.say(server, path, messages=messages).status == 200
            assert visitor.say(server, path, messages=messages, stream=True).status == 200
    for user in ("carla", "a\0b", "x" * 300, 7, {"a": SENTENCE}):
        assert visitor.say(server, user=user).status in (400, 403)
    for path in ("/v1/memory/recall?query=Marzipan&limit=x", "/v1/memory/documents/x", "/v1/../v1/models"):
        visitor.ask(server, "GET", path)
    visitor.ask(server, "POST", "/v1/memory/remember", {"messages": SENTENCE, "nonsense": SENTENCE})
    visitor.ask(server, "PUT", "/v1/memory/facts/home", {"value": ""})
    visitor.assert_nothing_seen()


@every_value(server=[*WAYS], database_url=BACKENDS)
def test_a_memory_that_fails(server: Server, visitor: Visitor, endpoint: ScriptedEndpoint) -> None:
    site = visitor.site
    quoting = {"error": {"message": f"what does {SENTENCE} mean, {EXTRACTION_KEY}?"}}
    endpoint.script(status(500, body=quoting), status(401, body=quoting), garbage())
    site.settings.set(server_memory_timeout=0.3)
    with site.settings.service() as service:
        with held_memory(service, "steve"):
            assert visitor.say(server).status == 200
        site.settings.set(server_memory_timeout=5)
        break_everything(service.database)
        assert visitor.say(server).status == 200
        assert visitor.say(server, stream=True).status == 200
        for path in ("/v1/memory/documents", "/v1/memory/recall?query=quagga", "/health", "/status"):
            visitor.ask(server, "GET", path)
        visitor.ask(
            server, "POST", "/v1/memory/remember", {"messages": [{"role": "user", "content": SENTENCE}]}
        )
    wait_until(lambda: "the spool waits for the database" in site.processes.logs(), "it says so")
    visitor.assert_nothing_seen()


def break_everything(database: Database) -> None:
    """Whatever asks for documents or entries fails from now on."""
    with database.write() as tx:
        for table in ("documents", "entries"):
            tx.execute_script(f"alter table {table} rename to {table}_elsewhere")


@every_value(server=[*WAYS], database_url=BACKENDS)
def test_wrong_keys_are_not_repeated(server: Server, visitor: Visitor) -> None:
    wrong = f"{visitor.key[:-4]}AAAA"
    for headers in (
        {"Authorization": f"Bearer {wrong}"},
        {"x-api-key": wrong},
        {"Authorization": f"Basic {visitor.key}"},
        {},
    ):
        for path in (CHAT, MESSAGES, "/v1/memory/facts", f"/v1/models/some-{visitor.key}", "/health"):
            reply = server.ask("GET", path, headers=headers)
            assert reply.status == (200 if path == "/health" else 401)
            visitor.heard.append(reply)
    assert wrong not in visitor.site.processes.logs()
    visitor.assert_nothing_seen()


@first_backend
def test_our_own_key_never_reaches_a_provider(visitor: Visitor) -> None:
    site = visitor.site
    for api_key in (PROVIDER_KEY, ""):
        site.set_provider(base_url=site.provider.url, api_key=api_key)
        server = site.serve("--no-auth")
        ours = {"Authorization": f"Bearer {visitor.key}"}, {"x-api-key": visitor.key}
        beside_theirs = {"Authorization": "Bearer sk-theirs", "x-api-key": visitor.key}
        for headers in (*ours, beside_theirs):
            for path in (CHAT, MESSAGES, "/v1/embeddings"):
                server.ask("POST", path, {"model": "m", "messages": []}, headers)
    assert site.provider.exchanges
    for exchange in site.provider.exchanges:
        assert visitor.key not in f"{exchange.received.header_lines} {exchange.received.body!r}"
