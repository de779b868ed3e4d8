"""An agent whose chat comes through the server and whose transcript is read: each message is stored once."""

from pathlib import Path
from typing import Any

import pytest

from tests.provider import ScriptedProvider, chat
from tests.server import test_agent_requests as claude_code
from tests.server import test_codex_requests as codex
from tests.server.calling import CHATS, call_json
from tests.server.serving import ANTHROPIC, OPENAI, Running, StartServer
from tests.transcripts import agent_line, append, user_line, write

ANSWER = "Noted."


def claude_lines(text: str, number: int) -> list[dict[str, Any]]:
    """What Claude Code writes of the same turn."""
    return [user_line(number, text), agent_line(number + 1, ANSWER)]


def codex_turn(text: str, number: int) -> list[dict[str, Any]]:
    """What Codex writes of the same turn."""
    at = f"2026-09-21T10:0{number}:00.000Z"
    said = {"type": "user_message", "message": text}
    answer = codex.item("assistant", ANSWER) | {"id": f"msg_a{number}"}
    return [
        {"timestamp": at, "type": "event_msg", "payload": said},
        {"timestamp": at, "type": "response_item", "payload": answer},
    ]


def codex_head() -> dict[str, Any]:
    meta = {
        "id": codex.THREAD,
        "timestamp": "2026-09-21T10:00:00.000Z",
        "cwd": "/work",
        "originator": "codex",
    }
    return {"timestamp": "2026-09-21T10:00:00.000Z", "type": "session_meta", "payload": meta}


def stored(server: Running) -> list[tuple[str, str]]:
    return sorted((one.role, one.text) for one in server.service.documents("steve"))


@pytest.mark.parametrize("file_first", [True, False])
def test_claude_code_while_its_transcript_grows(
    server: StartServer, provider: ScriptedProvider, tmp_path: Path, file_first: bool
) -> None:
    provider.default = chat(ANSWER)
    running = server(ANTHROPIC, user_id="steve", embedding_engine="none")
    path = write(tmp_path / "projects" / "shop" / f"{claude_code.SESSION}.jsonl", [])
    installation = claude_code.INSTALLATIONS["as JSON"]
    messages: list[dict[str, Any]] = []
    typed = ["My bike is green.", "My boat is blue."]

    def hear(text: str) -> None:
        messages.append(claude_code.said(text))
        asked = claude_code.request(installation, *messages)
        assert call_json(running.url, "POST", CHATS["anthropic"], asked).status == 200
        messages.append({"role": "assistant", "content": ANSWER})

    def read(text: str) -> None:
        append(path, claude_lines(text, 2 * typed.index(text)))
        running.service.transcripts.ingest("steve", path)

    for text in typed:
        for step in (read, hear) if file_first else (hear, read):
            step(text)
    assert stored(running) == [("assistant", ANSWER)] * 2 + [("user", text) for text in typed]
    running.service.transcripts.poll()
    (one,) = running.service.conversations("steve")
    assert (one.source, one.entries) == ("claude-code", 4)


@pytest.mark.parametrize("file_first", [True, False])
def test_codex_whose_file_has_a_longer_name(
    server: StartServer, provider: ScriptedProvider, tmp_path: Path, file_first: bool
) -> None:
    provider.default = chat(ANSWER)
    running = server(OPENAI, user_id="steve", embedding_engine="none")
    name = f"rollout-2026-09-21T10-00-00-{codex.THREAD}.jsonl"
    path = write(tmp_path / "sessions" / "21" / name, [codex_head()])

    def hear() -> None:
        asked = codex.request(codex.item("user", codex.TYPED))
        reply = call_json(running.url, "POST", CHATS["responses"], asked, codex.headers())
        assert reply.status == 200

    def read() -> None:
        append(path, codex_turn(codex.TYPED, 1))
        running.service.transcripts.ingest("steve", path)

    for step in (read, hear) if file_first else (hear, read):
        step()
    assert stored(running) == [("assistant", ANSWER), ("user", codex.TYPED)]
    with running.service.database.read() as connection:
        rows = connection.rows("select provider from sessions where session_id = :id", id=codex.THREAD)
    assert rows == ([] if file_first else [(OPENAI,)])
