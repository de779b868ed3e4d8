"""An agent's event is read as it comes; whatever else comes is refused, and not quoted."""

import json
from pathlib import Path

import pytest

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.hooks.event import HookEvent, read_event


def test_an_event_is_what_claude_code_says_of_it() -> None:
    told = {
        "session_id": "a-1",
        "transcript_path": "/home/ann/.claude/projects/-boat/a-1.jsonl",
        "cwd": "/boat",
        "prompt_id": "p",
        "hook_event_name": "PreCompact",
        "trigger": "manual",
        "custom_instructions": None,
    }
    path = Path("/home/ann/.claude/projects/-boat/a-1.jsonl")
    assert read_event(json.dumps(told).encode()) == HookEvent("PreCompact", "a-1", path, "/boat")


@pytest.mark.parametrize("value", [None, 7, [], {}, "a\0b", ""])
def test_what_is_no_text_is_left_out(value: object) -> None:
    told = {"hook_event_name": "SessionEnd", "session_id": value, "transcript_path": value, "cwd": value}
    assert read_event(json.dumps(told).encode()) == HookEvent("SessionEnd", "", None, "")


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"{",
        b"secret",
        b"\x00\xff",
        b"[" * 100_000,
        b"[1]",
        b"null",
        b"{}",
        b'{"hook_event_name": "secret"}',
        b'{"hook_event_name": ["SessionStart"]}',
    ],
)
def test_what_is_no_event_of_ours_is_refused_and_not_quoted(told: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_event(told)
    assert "secret" not in str(refused.value)
