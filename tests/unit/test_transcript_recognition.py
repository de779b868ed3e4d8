"""Which agent wrote a file is seen by what is in it, in every version, and however its beginning looks."""

import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.transcripts.changes import recognised
from shepherd_memory.transcripts.reading import read_line
from shepherd_memory.transcripts.sources import SOURCES, Source, TranscriptEntry
from tests.unit.test_transcript_sources import VALID, is_sound

NOON = "2026-03-04T12:00:00.250Z"
SESSION = {"sessionId": "s-1"}

CLAUDE_USER = {
    "parentUuid": None,
    "isSidechain": False,
    "userType": "external",
    "cwd": "/home/ada",
    **SESSION,
    "version": "2.1.0",
    "type": "user",
    "message": {"role": "user", "content": "Why?"},
    "uuid": "u-1",
    "timestamp": NOON,
}
CODEX_META = {"timestamp": NOON, "type": "session_meta", "payload": {"id": "c-1", "cwd": "/home/ada"}}
CODEX_USER = {"timestamp": NOON, "type": "event_msg", "payload": {"type": "user_message", "message": "Why?"}}
BARE_USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Why?"}]}
PI_HEADER = {"type": "session", "version": 3, "id": "p-1", "timestamp": NOON, "cwd": "/home/ada"}
PI_USER = {"type": "message", "id": "a1", "timestamp": NOON, "message": {"role": "user", "content": "Why?"}}
SUMMARY = {"type": "summary", "summary": "Fixing it", "leafUuid": "u-9"}

FILES: dict[str, tuple[str, list[Any]]] = {
    "claude code": ("claude-code", [CLAUDE_USER]),
    "claude code with summaries of others first": ("claude-code", [SUMMARY] * 200 + [CLAUDE_USER]),
    "claude code with a snapshot first": (
        "claude-code",
        [{"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}, CLAUDE_USER],
    ),
    "claude code with its queue first": (
        "claude-code",
        [{"type": "queue-operation", "operation": "dequeue", **SESSION}] * 60 + [CLAUDE_USER],
    ),
    "claude code with its settings first": (
        "claude-code",
        [
            {"type": "permission-mode", "permissionMode": "default", **SESSION},
            {"type": "mode", "mode": "normal", **SESSION},
            {"type": "custom-title", "customTitle": "x", **SESSION},
            {"type": "agent-name", "agentName": "x", **SESSION},
            {"type": "last-prompt", "lastPrompt": "x", **SESSION},
            {"type": "attachment", "attachment": {"type": "skill_listing"}, **SESSION},
            {"type": "system", "subtype": "turn_duration", **SESSION},
            {"type": "progress", "data": {"type": "hook_progress"}, **SESSION},
            CLAUDE_USER,
        ],
    ),
    "claude code that counted the cost": (
        "claude-code",
        [{**CLAUDE_USER, "costUSD": 0.1, "durationMs": 5, "version": "0.2.9"}],
    ),
    "a sub-agent of claude code": ("claude-code", [{**CLAUDE_USER, "isSidechain": True, "agentId": "a"}]),
    "claude code with a line of a later version first": (
        "claude-code",
        [{"type": "telepathy", **SESSION}, CLAUDE_USER],
    ),
    "codex": ("codex", [CODEX_META, CODEX_USER]),
    "codex with numbered lines": ("codex", [{"ordinal": 0, **CODEX_META}, {"ordinal": 1, **CODEX_USER}]),
    "codex without its head": ("codex", [CODEX_USER]),
    "codex of 2025": (
        "codex",
        [{"id": "c-1", "timestamp": NOON, "instructions": None}, {"record_type": "state"}, BARE_USER],
    ),
    "codex of 2025 with git": (
        "codex",
        [{"id": "c-1", "timestamp": NOON, "instructions": "x", "git": {"branch": "main"}}, BARE_USER],
    ),
    "pi": ("pi", [PI_HEADER, PI_USER]),
    "pi of version 2": ("pi", [{**PI_HEADER, "version": 2}, PI_USER]),
    "pi before it had versions": (
        "pi",
        [
            {"type": "session", "id": "p-1", "timestamp": NOON, "cwd": "/home/ada", "provider": "x"},
            {key: value for key, value in PI_USER.items() if key != "id"},
        ],
    ),
    "pi with a title first": ("pi", [{"type": "title", "title": "x"}, PI_HEADER, PI_USER]),
    "pi, converted": (
        "pi-converted",
        [
            {
                "type": "user",
                "message": {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
                "timestamp": NOON,
                "cwd": "/home/ada",
                **SESSION,
            }
        ],
    ),
}

DRESSES = {
    "plain": lambda lines: b"".join(line + b"\n" for line in lines),
    "byte order mark": lambda lines: b"\xef\xbb\xbf" + b"\n".join(lines),
    "blank lines": lambda lines: b"\n \n\r\n" + b"\n\n".join(lines) + b"\n\n",
    "other line ends": lambda lines: b"".join(line + b"\r\n" for line in lines),
    "a broken line first": lambda lines: b'{"type":"us\n\xff\xfe\n' + b"\n".join(lines),
    "a mark, blanks and other ends": lambda lines: b"\xef\xbb\xbf\r\n" + b"\r\n\r\n".join(lines) + b"\r\n",
}


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_recognised_and_read_however_it_begins(kind: str, dress: str) -> None:
    name, lines = FILES[kind]
    data = DRESSES[dress]([json.dumps(line, separators=(",", ":")).encode() for line in lines])
    found = recognised(BytesIO(data))
    assert found is not None
    source = found.source
    assert source.name == name
    reader = source.reader()
    read = [read_line(source, reader, raw) for raw in data.split(b"\n")]
    said = [one.text for one in read if isinstance(one, TranscriptEntry)]
    assert said == ([] if kind.startswith("a sub-agent") else ["Why?"])


@pytest.mark.parametrize(
    "lines",
    [
        [{"type": "started", "key": "v2:x", "agentId": "a"}, {"type": "result", "result": "Done."}],
        [{"id": "c-1", "thread_name": "x", "updated_at": NOON}],
        [{"session_id": "c-1", "ts": 1, "text": "Why?"}],
        [{"display": "Why?", "pastedContents": {}, "timestamp": 1, "project": "/home/ada"}],
        [{"type": "message", "role": "user", "content": "Why?"}],
        [{"type": "user", "message": "Why?"}],
        [{"type": ["session"], "id": "x", "cwd": "/"}],
    ],
)
def test_what_lies_beside_transcripts_is_none(lines: Sequence[object]) -> None:
    data = b"\n".join(json.dumps(line).encode() for line in lines)
    assert recognised(BytesIO(data)) is None


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """The bytes of a line, cut anywhere, or with others among them."""
    raw = json.dumps(draw(st.sampled_from(VALID)), separators=(",", ":")).encode()
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(raw)))
        stop = min(len(raw), start + draw(st.sampled_from([0, 0, 1, 5, 1000])))
        raw = raw[:start] + draw(DAMAGE) + raw[stop:]
    return raw


DAMAGE = st.binary(max_size=3) | st.sampled_from(
    [
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\\ud800",
        b"\\u0000",
        b"\0",
        b"null",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"9" * 5000,
        b"[" * 3000,
        b'{"a":' * 3000,
        b'"type":"user",',
        b"}",
        b"\r",
    ]
)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
@given(lines=st.lists(damaged(), max_size=6))
def test_bytes_that_were_damaged_never_fail_a_reader(source: Source, lines: list[bytes]) -> None:
    reader = source.reader()
    assert all(is_sound(read_line(source, reader, raw)) for raw in lines)
    json.dumps(reader.state())
