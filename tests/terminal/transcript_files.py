"""Transcripts as agents leave them, written by tests."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

BEGUN = datetime(2026, 2, 12, 14, 0, tzinfo=UTC)
PROJECT = "/home/ann/work/boat"

TALK = (
    "Please make the tests of the parser pass.",
    "They fail because a comma is missing.",
    "Then put the comma in.",
    "Done: the comma is in grammar.py now.",
    "I have two kittens at home, Minka and Tom.",
    "Both are in grammar.py as samples.",
)
"""What user and assistant say in turn."""


def said(
    number: int, text: str, at: datetime, *, role: str = "", cwd: str = PROJECT, session: str = "s"
) -> dict[str, Any]:
    """A line of Claude Code in which somebody says something; by default in turn."""
    role = role or ("user", "assistant")[number % 2]
    content: Any = text if role == "user" else [{"type": "text", "text": text}]
    return {
        "type": role,
        "uuid": f"{session}-{number}",
        "timestamp": at.isoformat().replace("+00:00", "Z"),
        "sessionId": session,
        "cwd": cwd,
        "message": {"role": role, "content": content, "id": f"m-{session}-{number}"},
    }


def talk(
    texts: Sequence[str] = TALK,
    *,
    session: str = "s",
    cwd: str = PROJECT,
    begun: datetime = BEGUN,
    first: int = 0,
) -> list[dict[str, Any]]:
    """A conversation: a minute between two lines."""
    return [
        said(first + place, text, begun + timedelta(minutes=place), cwd=cwd, session=session)
        for place, text in enumerate(texts)
    ]


def write(path: Path, lines: Iterable[dict[str, Any] | str], *, more: bool = False) -> Path:
    """A file of such lines; a text stands there as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a" if more else "w", encoding="utf-8") as file:
        for line in lines:
            file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
    return path


def session_file(folder: Path, name: str = "s", project: str = "-home-ann-work-boat", **how: Any) -> Path:
    """The file of one session, in the folder of its project."""
    return write(folder / project / f"{name}.jsonl", talk(session=name, **how))


def codex_rollout(path: Path, texts: Sequence[str], cwd: str = PROJECT) -> Path:
    """A session of Codex in which the user says these."""
    at = "2026-02-20T10:00:00.000Z"
    meta = {"id": "c", "timestamp": at, "cwd": cwd, "originator": "codex_cli_rs", "cli_version": "0.104.0"}
    lines: list[dict[str, Any]] = [{"timestamp": at, "type": "session_meta", "payload": meta}]
    for text in texts:
        message = {"type": "user_message", "message": text, "images": []}
        lines.append({"timestamp": at, "type": "event_msg", "payload": message})
    return write(path, lines)
