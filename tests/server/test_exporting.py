"""An export is of one moment, goes out while it is read, and waits for no client that takes nothing."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests
from starlette.types import Message

from shepherd_memory.errors import DatabaseUnavailable
from shepherd_memory.frontends.api.exporting import AT_ONCE, CHUNK_BYTES, ExportResponse
from shepherd_memory.frontends.web.limits import ClientGone
from shepherd_memory.frontends.web.threads import ThreadPool
from shepherd_memory.memory import documents
from shepherd_memory.memory.documents import NewDocument
from shepherd_memory.storage import users
from tests.acceptance.processes import wait_until
from tests.provider import ScriptedProvider
from tests.server.serving import Running, serving, write_config

DOCUMENTS, TEXT = 1600, "word " * 2000
"""More than the buffers between server and client hold."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("exporting") / "config.toml"
    with ScriptedProvider() as provider:
        write_config(path, provider.url, embedding_engine="none")
        with serving(path) as server:
            # Past the intake, which would look through all of it for secrets.
            new = [NewDocument("chat", f"m{number}", TEXT, 0) for number in range(DOCUMENTS)]
            with server.service.database.write() as tx:
                documents.insert(tx, "ada", users.lock(tx, "ada", 0, rows=DOCUMENTS), new, 0)
            yield server


def begun(running: Running, stack: ExitStack) -> requests.Response:
    """An export of which the client has read the first line only."""
    answer = requests.get(f"{running.url}/v1/memory/export?user=ada", stream=True, timeout=60)
    stack.enter_context(answer)
    assert answer.status_code == 200
    assert answer.raw.readline().startswith(b'{"format"')
    return answer


def test_an_export_is_of_one_moment_whatever_is_stored_meanwhile(running: Running) -> None:
    with ExitStack() as stack:
        answer = begun(running, stack)
        running.service.remember("ada", [{"role": "user", "content": "said later", "id": "later"}], "chat")
        rest = answer.raw.read()
    assert rest.count(b'"line":"document"') == DOCUMENTS
    assert b"said later" not in rest


def test_more_exports_than_may_run_at_once_are_refused_until_a_client_leaves(running: Running) -> None:
    url = f"{running.url}/v1/memory/export?user=ada"
    with ExitStack() as stack:
        for _ in range(AT_ONCE):
            begun(running, stack)
        refused = requests.get(url, timeout=60)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert wait_until(
        lambda: requests.get(url, timeout=60).status_code == 200, "the clients that left made room"
    )


def test_an_export_that_fails_before_its_first_line_is_an_error_in_good_form(tmp_path: Path) -> None:
    with ScriptedProvider() as provider:
        path = tmp_path / "config.toml"
        write_config(path, provider.url, embedding_engine="none")
        with serving(path) as server:
            server.service.database.close()
            answer = requests.get(f"{server.url}/v1/memory/export?user=ada", timeout=60)
    assert answer.status_code == 503


class Lines:
    """Endless lines that know when they were ended."""

    def __init__(self) -> None:
        self.ended = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        try:
            while True:
                yield b"x" * CHUNK_BYTES
        finally:
            self.ended.set()


async def _never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


def respond(lines: Iterator[bytes], send: object, receive: object = _never, stall: float = 0.05) -> None:
    threads = ThreadPool(1)
    response = ExportResponse(threads, lines, stall_seconds=stall)
    scope = {"type": "http", "asgi": {"spec_version": "2.3"}}
    try:
        asyncio.run(response(scope, receive, send))  # type: ignore[arg-type]
    finally:
        threads.close()


def test_a_client_that_takes_nothing_is_given_up() -> None:
    async def stalled(message: Message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    lines = Lines()
    with pytest.raises(ClientGone):
        respond(iter(lines), stalled)
    assert lines.ended.is_set()


def test_a_client_that_leaves_ends_the_reading() -> None:
    async def taken(message: Message) -> None:
        await asyncio.sleep(0)

    async def left() -> Message:
        await asyncio.sleep(0.05)
        return {"type": "http.disconnect"}

    lines = Lines()
    respond(iter(lines), taken, left, stall=30)
    assert lines.ended.is_set()


def test_lines_that_break_off_in_the_middle_break_the_answer_off() -> None:
    def broken() -> Iterator[bytes]:
        yield b"x" * CHUNK_BYTES
        raise DatabaseUnavailable("gone")

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    with pytest.raises(DatabaseUnavailable):
        respond(broken(), send)
    assert sent[-1]["more_body"]
