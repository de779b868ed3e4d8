"""Transcripts that the tests make: lines as Claude Code and Codex write them, and what became of them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from shepherd_memory.memory.entries import number_of
from shepherd_memory.storage.clock import SECOND, iso
from shepherd_memory.storage.database import Connection, Database

BEGAN = 1_790_000_000 * SECOND
"""When the first of the lines was written, in 2026."""

MINUTE = 60 * SECOND
CWD = "/work/kettle"


def user_line(number: int, text: str = "", at: int | None = None, **more: Any) -> dict[str, Any]:
    """What a user typed, as Claude Code writes it: one a minute."""
    message = {"role": "user", "content": text or f"my wish_{number} is tea_{number}"}
    return {**_line("user", number, at), "message": message, "uuid": f"user-{number}", **more}


def agent_line(
    number: int, text: str = "", at: int | None = None, tool: str = "", **more: Any
) -> dict[str, Any]:
    """What the assistant said, or the tool that it used."""
    block: dict[str, Any] = {"type": "text", "text": text or f"Answer {number}: the kettle boils."}
    if tool:
        called = {"command": text or f"boil --number {number}"}
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": called}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [block]}
    return {**_line("assistant", number, at), "message": message, "uuid": f"agent-{number}", **more}


def output_line(number: int, text: str = "done") -> dict[str, Any]:
    """What a tool gave back: nobody's words."""
    block = {"tool_use_id": f"toolu_{number}", "type": "tool_result", "content": text}
    message = {"role": "user", "content": [block]}
    return {**_line("user", number, None), "message": message, "uuid": f"output-{number}"}


def _line(kind: str, number: int, at: int | None) -> dict[str, Any]:
    return {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": CWD,
        "sessionId": "0b5e",
        "version": "2.1.0",
        "gitBranch": "main",
        "type": kind,
        "timestamp": iso(BEGAN + number * MINUTE if at is None else at),
    }


def exchange(first: int, last: int) -> list[dict[str, Any]]:
    """So many minutes of talk: the user's turn at every even number."""
    return [agent_line(number) if number % 2 else user_line(number) for number in range(first, last)]


def codex_lines(count: int, cwd: str = CWD) -> list[dict[str, Any]]:
    """A rollout of Codex: its head, then turns of a user, an answer and a call."""
    head = {"id": "019c", "timestamp": iso(BEGAN), "cwd": cwd, "originator": "codex_cli", "cli_version": "1"}
    found = [_codex(0, "session_meta", head)]
    for number in range(count):
        asked = {"type": "user_message", "message": f"my pot_{number} is blue_{number}"}
        answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}
        call = {"type": "function_call", "name": "shell", "call_id": f"call_{number}", "arguments": "{}"}
        found += [
            _codex(number, "event_msg", asked),
            _codex(number, "response_item", {**answer, "id": f"a{number}"}),
        ]
        found.append(_codex(number, "response_item", call))
    return found


def _codex(number: int, kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"timestamp": iso(BEGAN + number * MINUTE), "type": kind, "payload": payload}


def joined(lines: Iterable[object]) -> bytes:
    """The lines as a file holds them."""
    return b"".join(orjson.dumps(line) + b"\n" for line in lines)


def write(path: Path, lines: Iterable[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(joined(lines))
    return path


def append(path: Path, lines: Iterable[object]) -> None:
    with path.open("ab") as file:
        file.write(joined(lines))


def taken_in(database: Database, user_id: str) -> dict[str, Any]:
    """All that the transcripts of a user have become, by order instead of ids, and without times of storing.

    Two users, or two databases, that took in the same have the same.
    """
    with database.read() as connection:
        ids = connection.rows(
            "select id from documents where user_id = :user_id order by id", user_id=user_id
        )
        places = {row[0]: place for place, row in enumerate(ids)}
        return {
            "documents": _documents(connection, user_id),
            "entries": _by_place(connection, user_id, places),
            "postings": _postings(connection, user_id, places),
            "conversations": _conversations(connection, user_id, places),
            "files": _files(connection, user_id),
        }


def _documents(connection: Connection, user_id: str) -> list[Any]:
    return connection.rows(
        "select session_id, message_id, type, category, role, speaker_type, text, source, source_file,"
        " tool_names, cwd, created_at from documents where user_id = :user_id order by id",
        user_id=user_id,
    )


def _by_place(connection: Connection, user_id: str, places: Mapping[int, int]) -> list[Any]:
    rows = connection.rows(
        "select id, kind, session_id, role, stated_at, length from entries where user_id = :user_id",
        user_id=user_id,
    )
    return sorted((places[row[0]], *row[1:]) for row in rows)


def _postings(connection: Connection, user_id: str, places: Mapping[int, int]) -> list[Any]:
    rows = connection.rows(
        "select id, term, count from postings where user_number = :number",
        number=number_of(connection, user_id),
    )
    return sorted((places[row[0]], *row[1:]) for row in rows)


def _conversations(connection: Connection, user_id: str, places: Mapping[int, int]) -> list[Any]:
    rows = connection.rows(
        "select first_document, last_document, file_key, session_id, first_message_at, last_message_at,"
        " entries, status from conversations where user_id = :user_id order by first_document",
        user_id=user_id,
    )
    return [(places.get(row[0]), places.get(row[1]), *row[2:]) for row in rows]


def _files(connection: Connection, user_id: str) -> list[Any]:
    return connection.rows(
        "select file_key, session_id, source, originator, cwd, subagent, status, purging, read_through,"
        " read_check, reader, last_entry_at, entries, skipped, problem from transcript_files"
        " where user_id = :user_id order by file_key",
        user_id=user_id,
    )
