"""An archive over HTTP: markdown as it is read, of the sessions that the caller sees."""

from typing import Any

import pytest

from tests.server.calling import Reply, call
from tests.server.serving import Running, StartServer

QUIET: dict[str, Any] = {"user_id": "ada", "embedding_engine": "none"}


@pytest.fixture
def running(server: StartServer) -> Running:
    return server(**QUIET)


def archive(running: Running, session_id: str, query: str = "") -> Reply:
    path = f"/v1/memory/sessions/{session_id}/archive.md{query}"
    return call(running.url, "GET", path)


def test_a_session_is_sent_as_markdown_cut_or_whole(running: Running) -> None:
    said = [{"role": "user", "content": f"My bike is {'very ' * 1000}green"}]
    running.service.remember("ada", said, "a/b")
    reply = archive(running, "a/b")
    assert (reply.status, reply.header("content-type")) == (200, "text/markdown; charset=utf-8")
    assert reply.body.decode().startswith("# My bike is very")
    assert "characters left out]" in reply.body.decode()
    whole = archive(running, "a/b", "?whole=true").body.decode()
    assert whole.endswith("very green\n")
    assert whole.encode() == b"".join(running.service.archive("ada", "a/b", whole=True))


def test_a_session_that_the_caller_does_not_see_is_not_found(running: Running) -> None:
    running.service.remember("ada", [{"role": "user", "content": "My bike is green"}], "s", group="work")
    assert archive(running, "s").status == 200
    assert archive(running, "s", "?group=home").status == 404
    assert archive(running, "other").status == 404
    assert archive(running, "s", "?user=bob").status == 404
