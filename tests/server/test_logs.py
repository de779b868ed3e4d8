"""What the server writes down of a request: enough to run it, and nothing of anybody's memory or keys."""

import http.client
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.errors import DatabaseError
from shepherd_memory.frontends.api.app import api_application
from shepherd_memory.frontends.cli.logs import JsonLogFormatter, LogFormatter
from shepherd_memory.frontends.web.process import running
from shepherd_memory.service import Service
from tests.acceptance.processes import Processes, wait_until
from tests.endpoint import close
from tests.provider import RESET, ScriptedProvider, openai_stream
from tests.server.calling import CHATS, JSON, bearer, call, call_json, error_of, new_key, say
from tests.server.serving import OPENAI, PROVIDER_KEY, Running, StartServer, write_config

SECRET = "quokka"
"""In everything that the user says, stores or asks for."""

FIELDS = {"method", "route", "status", "ms"}


class Lines(logging.Handler):
    """Keeps what is logged, and how both forms write it."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.written: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.written += [form(debug=False).format(record) for form in (LogFormatter, JsonLogFormatter)]

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The fields of the lines about requests."""
        return [record.fields for record in self.records if hasattr(record, "fields")]

    @property
    def text(self) -> str:
        return "\n".join(self.written)


@pytest.fixture
def log() -> Iterator[Lines]:
    """All that is logged at the level of a server that runs, by us and by others."""
    lines = Lines()
    package, root = logging.getLogger("shepherd_memory"), logging.getLogger()
    level = package.level
    package.setLevel(logging.INFO)
    root.addHandler(lines)
    yield lines
    root.removeHandler(lines)
    package.setLevel(level)


@pytest.fixture
def start(server: StartServer, provider: ScriptedProvider) -> Callable[..., Running]:
    def started(**options: Any) -> Running:
        claude = {"type": "anthropic", "base_url": provider.url, "api_key": PROVIDER_KEY, "memory": True}
        return server(OPENAI, others={"claude": claude}, **{"embedding_engine": "none", **options})

    return started


Start = Callable[..., Running]


def wait_for(log: Lines, count: int) -> list[dict[str, Any]]:
    """The lines about so many requests; one is written after its answer was sent."""
    wait_until(lambda: len(log.requests) >= count, f"{count} requests are logged")
    return log.requests


def test_each_request_is_one_line_with_its_fields(start: Start, log: Lines) -> None:
    server = start()
    asked = [
        ("GET", "/health", "/health", 200),
        ("GET", "/v1/memory/facts?user=steve", "/v1/memory/facts", 200),
        ("GET", "/v1/memory/facts/name?user=steve", "/v1/memory/facts/{key}", 404),
        ("DELETE", "/v1/memory/sessions/s1?user=steve", "/v1/memory/sessions/{session_id:path}", 404),
        ("PATCH", "/v1/memory/facts", "/v1/memory/facts", 405),
        ("POST", "/v1/chat/completions", "/v1/chat/completions", 400),
        ("GET", "/v1/files/file-1?x=y", "other", 200),
        ("GET", "/nowhere", "other", 404),
    ]
    for method, target, _, status in asked:
        assert call(server.url, method, target).status == status
    lines = wait_for(log, len(asked))
    assert all(set(line) >= FIELDS for line in lines)
    told = [(line["method"], line["route"], line["status"]) for line in lines]
    assert told == [(method, route, status) for method, _, route, status in asked]
    assert all(isinstance(line["ms"], int | float) and line["ms"] >= 0 for line in lines)


def test_the_json_form_is_json_and_the_other_is_one_line(start: Start, log: Lines) -> None:
    server = start()
    say(server.url, SECRET, user="steve")
    call(server.url, "GET", "/v1/x%0A%1B[31m%22")
    wait_for(log, 2)
    plain, as_json = log.written[::2], log.written[1::2]
    assert all("\n" not in line and "\x1b" not in line for line in log.written)
    assert any(" method=POST route=/v1/chat/completions status=200 ms=" in line for line in plain)
    entries = [json.loads(line) for line in as_json]
    assert [entry["status"] for entry in entries if entry["message"] == "request"] == [200, 200]
    assert all({"time", "level", "name", "message"} <= set(entry) for entry in entries)


def use_everything(server: Running, key: dict[str, str], provider: ScriptedProvider) -> None:
    """Good and bad requests to all kinds of routes, with the secret in each of them."""
    url, memory = server.url, "/v1/memory"
    for wire in CHATS:
        say(url, f"My {SECRET} is ill.", key, wire=wire)
        say(url, f"My {SECRET} is ill.", key, wire=wire, **{"user": SECRET, "metadata": {"user_id": SECRET}})
        call(url, "POST", CHATS[wire], f'{{"{SECRET}'.encode(), {**JSON, **key})
    say(url, f"My {SECRET} is ill.", key, model=f"claude/{SECRET}")
    for method, target, body in (
        ("PUT", f"facts/{SECRET}", {"value": SECRET}),
        ("PUT", f"facts/{SECRET}", {"value": SECRET, SECRET: 1}),
        ("PUT", f"facts/{SECRET}", {"value": "  "}),
        ("POST", "recall", {"query": SECRET}),
        ("POST", "recall", {"query": SECRET, "kinds": [SECRET]}),
        ("POST", "context", {"question": SECRET, "answer": SECRET}),
        ("POST", "documents", {"text": SECRET, "type": SECRET}),
        ("POST", "documents", {"text": SECRET, "extra": {SECRET: SECRET}}),
        ("POST", "remember", {"messages": [{"role": "user", "content": SECRET}], "session_id": SECRET}),
        ("POST", "rejected/77/accept", {}),
    ):
        call_json(url, method, f"{memory}/{target}", body, key)
    for method, target in (
        ("GET", f"facts/{SECRET}"),
        ("GET", f"facts/no-{SECRET}"),
        ("GET", f"facts/no-{SECRET}/history"),
        ("DELETE", f"facts/no-{SECRET}"),
        ("DELETE", f"sessions/no-{SECRET}"),
        ("GET", f"recall?query={SECRET}"),
        ("GET", f"recall?{SECRET}=1"),
        ("GET", f"documents/{SECRET}"),
        ("GET", f"documents?since={SECRET}"),
        ("GET", f"why?request={SECRET}"),
        ("GET", f"facts?user={SECRET}"),
        ("GET", SECRET),
        ("GET", "export"),
    ):
        call(url, method, f"{memory}/{target}", None, key)
    lines = f'{{"format":"shepherd-memory","version":1}}\n{{"kind":"{SECRET}"}}\n'
    call(url, "POST", f"{memory}/import", lines.encode(), {"Content-Type": "application/x-ndjson", **key})
    for name in ("search_memory", "get_fact", SECRET):
        arguments = {"query": SECRET, "key": f"no-{SECRET}"}
        call_json(url, "POST", "/v1/tools/execute", {"name": name, "arguments": arguments}, key)
    call(url, "GET", f"/v1/models/{SECRET}", None, key)
    call(url, "GET", f"/v1/files/{SECRET}?{SECRET}", None, {**key, "X-Note": SECRET})
    call(url, "GET", "/status", None, {**key, "Host": f"{SECRET}.example"})
    call(url, "GET", "/status", None, {**key, "Origin": f"http://{SECRET}.example"})
    provider.script(close(), openai_stream(SECRET, RESET))
    for _ in range(2):
        with suppress(http.client.HTTPException, ConnectionError):
            say(url, f"My {SECRET} is ill.", key)


def test_no_line_holds_a_memory_a_query_or_a_key(
    start: Start, provider: ScriptedProvider, log: Lines
) -> None:
    server = start()
    key = new_key(server.service, "steve")
    use_everything(server, bearer(key), provider)
    call(server.url, "GET", "/status", None, bearer(key + "x"))
    wait_until(lambda: log.requests[-1]["status"] == 401, "the last request is logged")
    assert len(log.requests) > 40
    assert [line for line in log.written if SECRET in line.lower()] == []
    for hidden in (key, key.split("_", 2)[2], PROVIDER_KEY, "Bearer"):
        assert hidden not in log.text


def test_what_breaks_off_is_logged_as_such(start: Start, provider: ScriptedProvider, log: Lines) -> None:
    server = start()
    provider.script(close(), openai_stream("Hel", RESET))
    for _ in range(2):
        with suppress(http.client.HTTPException, ConnectionError):
            say(server.url, "Hello", user="steve")
    assert [line["status"] for line in wait_for(log, 2)] == [502, 502]
    assert [record for record in log.records if record.name.startswith("shepherd") and record.exc_info] == []


class Failing(Service):
    """A service with a mistake in it."""

    error: type[Exception] = ZeroDivisionError

    def facts(self, user_id: str, **_: Any) -> list[Any]:
        raise self.error(f"Key (value)=({SECRET}) already exists")

    def _find(self, *_: Any, **__: Any) -> Any:
        raise self.error(f"Key (value)=({SECRET}) already exists")


@pytest.fixture
def failing(provider: ScriptedProvider, tmp_path: Path) -> Iterator[tuple[str, Service]]:
    """A server on a service that fails."""
    path = tmp_path / "config.toml"
    claude = {"type": "anthropic", "base_url": provider.url, "memory": True}
    write_config(path, provider.url, OPENAI, others={"claude": claude}, embedding_engine="none")
    with open_service(load_config(path, {}), config_path=path) as service:
        service.__class__ = Failing
        with running(service, api_application(service, "127.0.0.1")) as server:
            yield server.url, service


def test_an_unexpected_error_is_logged_and_not_told(failing: tuple[str, Service], log: Lines) -> None:
    url, _ = failing
    reply = call(url, "GET", "/v1/memory/facts?user=steve")
    assert reply.status == 500
    assert error_of(reply)["type"] == "server_error"
    assert SECRET.encode() not in reply.everything
    assert b"ZeroDivision" not in reply.everything
    (record,) = [record for record in log.records if record.exc_info]
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    assert wait_for(log, 1)[-1]["status"] == 500
    assert SECRET not in log.text


@pytest.mark.parametrize("wire", CHATS)
def test_a_mistake_in_the_memory_does_not_stop_a_chat(
    failing: tuple[str, Service], log: Lines, wire: str
) -> None:
    url, _ = failing
    named: dict[str, Any] = {"metadata": {"user_id": "steve"}} if wire == "anthropic" else {"user": "steve"}
    reply = say(url, "Hello", wire=wire, **named)
    assert reply.status == 200
    assert reply.header("x-shepherd-memory") == "failed"
    assert SECRET not in log.text


def test_an_error_of_the_database_is_told_without_its_text(
    failing: tuple[str, Service], log: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _ = failing
    monkeypatch.setattr(Failing, "error", DatabaseError)
    reply = call(url, "GET", "/v1/memory/facts?user=steve")
    assert reply.status == 500
    assert SECRET.encode() not in reply.everything
    assert say(url, "Hello", user="steve").status == 200
    wait_for(log, 2)
    assert SECRET not in log.text


def test_the_command_writes_json_lines_to_stderr(provider: ScriptedProvider, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = tmp_path / "config.toml"
    write_config(path, provider.url, embedding_engine="none")
    processes = Processes(folder)
    try:
        processes.shepherd(path, "serve", "--port", 0, "--json")
        log = folder / "000-shepherd_memory.log"
        url = wait_until(lambda: announced(log.read_text()), "the server listens", 60)
        assert say(url, f"My {SECRET} is ill.", user="steve").status == 200
        assert call(url, "GET", f"/v1/memory/facts/{SECRET}?user=steve").status == 404
        wait_until(lambda: log.read_text().count('"request"') == 2, "both requests are logged")
        written = log.read_text()
    finally:
        processes.end()
    entries = [json.loads(line) for line in written.splitlines() if line.startswith("{")]
    assert [entry["route"] for entry in entries if entry["message"] == "request"] == [
        "/v1/chat/completions",
        "/v1/memory/facts/{key}",
    ]
    assert SECRET not in written
    assert PROVIDER_KEY not in written


def announced(written: str) -> str:
    _, _, rest = written.partition("listening on ")
    return rest.split()[0] if rest else ""
