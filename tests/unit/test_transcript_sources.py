"""All sources together: nothing makes them fail, and real files come to what another way of counting says."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.errors import InvalidInput
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.transcripts.sources import (
    SOURCES,
    SkippedLine,
    Source,
    TranscriptEntry,
    source_named,
    source_of,
)
from tests.real_transcripts import EDGE_CASES, FOLDER, REAL_FILES, RealFile

REASONS = {
    "meta",
    "sidechain",
    "tool-output",
    "thinking",
    "summary",
    "empty",
    "bookkeeping",
    "unknown",
    "broken",
    "duplicate",
}

of_each_source = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
of_each_file = pytest.mark.parametrize("file", REAL_FILES, ids=lambda file: Path(file.name).name[:30])

VALID: list[dict[str, Any]] = [
    {
        "isSidechain": False,
        "cwd": "/a",
        "sessionId": "s",
        "type": "user",
        "message": {
            "role": "user",
            "content": [{"type": "text", "text": "<command-name>/x</command-name>"}, {"type": "tool_result"}],
        },
        "uuid": "u",
        "timestamp": "2026-03-04T12:00:00Z",
        "isMeta": False,
    },
    {
        "type": "assistant",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look. [Used tools: bash]"},
                {
                    "type": "tool_use",
                    "id": "t",
                    "name": "Bash",
                    "input": {"command": "ls", "description": "x"},
                },
                {"type": "thinking", "thinking": "hm"},
            ],
        },
    },
    {
        "timestamp": 1_772_625_600_250,
        "type": "event_msg",
        "payload": {"type": "user_message", "message": "Hi"},
    },
    {
        "timestamp": "2026-03-04T12:00:00Z",
        "type": "response_item",
        "payload": {
            "type": "function_call",
            "name": "shell",
            "arguments": '{"command":["ls"]}',
            "call_id": "c",
        },
    },
    {
        "type": "session_meta",
        "payload": {"id": "i", "cwd": "/a", "source": {"subagent": "review"}, "git": {"branch": "b"}},
    },
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
    {"type": "session", "version": 3, "id": "p", "cwd": "/a"},
    {
        "type": "message",
        "id": "e",
        "timestamp": 1_772_625_600,
        "message": {
            "role": "assistant",
            "content": [{"type": "toolCall", "name": "bash", "arguments": {"command": ["ls"]}}],
        },
    },
    {"isSidechain": False, "cwd": "/a", "type": "progress", "data": {"type": "hook_progress"}},
    {
        "isSidechain": False,
        "type": "user",
        "message": {"role": "user", "content": [{"type": "tool_result", "content": "42"}]},
        "isMeta": True,
    },
    {"timestamp": "2026-03-04", "type": "event_msg", "payload": {"type": "token_count", "info": None}},
    {"type": "response_item", "payload": {"type": "function_call_output", "output": "42"}},
    {"type": "queue-operation", "operation": "enqueue", "content": "also this", "sessionId": "s"},
    {"type": "queue-operation", "operation": "remove", "sessionId": "s", "timestamp": "2026-03-04T12:00:00Z"},
    {"type": "queue-operation", "operation": "dequeue", "sessionId": "s", "reason": "absorbed_mid_turn"},
    {
        "type": "attachment",
        "uuid": "q",
        "isSidechain": False,
        "sessionId": "s",
        "timestamp": "2026-03-04T12:00:00Z",
        "attachment": {
            "type": "queued_command",
            "prompt": [{"type": "text", "text": "also that"}],
            "commandMode": "prompt",
            "origin": {"kind": "human"},
            "source_uuid": "u",
            "isMeta": False,
        },
    },
    {
        "timestamp": "2026-03-04T12:00:00Z",
        "type": "event_msg",
        "payload": {
            "type": "item_completed",
            "item": {"type": "UserMessage", "id": "i", "content": [{"type": "text", "text": "Hi"}]},
        },
    },
    {
        "type": "message",
        "id": "f",
        "timestamp": "2026-03-04T12:00:00+01:00",
        "message": {"role": "user", "content": '<skill name="x" location="/x">\nBody\n</skill>\n\nso'},
    },
    {
        "type": "message",
        "message": {"role": "bashExecution", "command": "ls", "timestamp": 1_772_625_600_250},
    },
    {"line": "fact", "key": "home_city"},
    {"format": "shepherd-memory", "version": 1},
    {
        "line": "document",
        "type": "message",
        "role": "user",
        "text": "Hi",
        "message_id": "m",
        "session_id": "s",
        "tool_names": "a,b",
        "created_at": "2026-03-04T12:00:00Z",
    },
]

WORDS = st.sampled_from(
    [
        *(
            "user",
            "assistant",
            "message",
            "text",
            "tool_use",
            "tool_result",
            "summary",
            "progress",
            "session",
        ),
        *(
            "response_item",
            "event_msg",
            "user_message",
            "function_call",
            "document",
            "type",
            "content",
            "role",
        ),
        *(
            "<system-reminder>",
            "</system-reminder>",
            "<bash-input>",
            "[Used tools: ]",
            "*** Begin Patch",
            "\0",
        ),
        *("queued_command", "enqueue", "remove", "UserMessage", '<file name="', "</file>", "attachment"),
        *("0000-00-00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "human", "origin"),
        *("[Request interrupted by user]", "2026-03-04T12:00:00Z", "{", "x" * 100_000, "\n" * 2000, "\ud800"),
    ]
)
ANY_TEXT = WORDS | st.text(st.characters(codec=None), max_size=20)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.just(10**400) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


def nested(depth: int) -> Any:
    line: Any = "bottom"
    for _ in range(depth):
        line = {"message": [line], "content": line} if depth < 20 else [line]
    return line


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a line, by the keys that lead to it."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (*path, key)
        yield from places(value[key], (*path, key))


@st.composite
def mutations(draw: st.DrawFn) -> Any:
    """A valid line with a few places removed, or with something else in them."""
    line = json.loads(json.dumps(draw(st.sampled_from(VALID))))
    for _ in range(draw(st.integers(0, 3))):
        where = list(places(line))
        if not where:
            break
        *path, last = draw(st.sampled_from(where))
        parent = line
        for key in path:
            parent = parent[key]
        if draw(st.booleans()):
            del parent[last]
        else:
            parent[last] = draw(ANY_JSON)
    return line


LINES = st.lists(mutations() | ANY_JSON | st.sampled_from(VALID), max_size=8)


def is_sound(read: TranscriptEntry | SkippedLine) -> bool:
    if isinstance(read, SkippedLine):
        return read.reason in REASONS
    texts = (read.entry_id, read.text, read.cwd, *read.tool_names)
    return (
        read.role in ("user", "assistant")
        and read.text.strip() != ""
        and 0 < len(read.entry_id) <= 256
        and all(canonical_text(text) == text for text in texts)
        and all(read.tool_names)
    )


@of_each_source
@given(lines=LINES)
def test_any_json_comes_to_an_entry_or_a_reason(source: Source, lines: list[Any]) -> None:
    reader = source.reader()
    source.recognises(lines)
    assert all(is_sound(reader.read(line)) for line in lines)
    assert canonical_text(reader.about().session_id) == reader.about().session_id


@of_each_source
@pytest.mark.parametrize("depth", [10, 900])
def test_deep_lines_do_no_harm(source: Source, depth: int) -> None:
    for line in (nested(depth), {"type": "user", "message": {"role": "user", "content": nested(depth)}}):
        assert isinstance(source.reader().read(line), SkippedLine)


@of_each_source
@given(lines=LINES, data=st.data())
def test_a_reader_that_goes_on_with_the_state_of_another_reads_the_same(
    source: Source, lines: list[Any], data: st.DataObject
) -> None:
    whole = source.reader()
    first = source.reader()
    cut = data.draw(st.integers(0, len(lines)))
    expected = [whole.read(line) for line in lines]
    found = [first.read(line) for line in lines[:cut]]
    second = source.reader(json.loads(orjson.dumps(first.state())))
    assert found + [second.read(line) for line in lines[cut:]] == expected
    assert second.about() == whole.about()
    assert second.state() == whole.state()


@of_each_source
@given(line=mutations())
def test_what_is_skipped_unread_has_the_reason_that_reading_it_gives(source: Source, line: Any) -> None:
    raw = json.dumps(line, separators=(",", ":")).encode()
    skipped = source.can_skip(raw)
    assert skipped is None or skipped == source.reader().read(line)


def test_a_source_is_found_by_its_name() -> None:
    assert [source_named(source.name) for source in SOURCES] == list(SOURCES)
    with pytest.raises(InvalidInput, match="use one of shepherd, codex, pi, pi-converted, claude-code"):
        source_named("telepathy")


@pytest.mark.parametrize("lines", [[], [42, "x", None], [{"silly": "this"}], [{"type": "unheard-of"}]])
def test_a_file_that_nobody_knows_is_not_guessed_at(lines: list[Any]) -> None:
    assert source_of(lines) is None


def parsed(path: Path) -> list[tuple[bytes, Any]]:
    return [(raw, json.loads(raw)) for raw in path.read_bytes().splitlines() if raw.strip()]


def texts_in(content: Any) -> list[str]:
    """The texts of a message, as reference 000 takes them."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return [block["text"] for block in blocks]


NOT_TYPED = ("Caveat: ", "<local-command-", "<task-notification>", "[Request interrupted")


def counted_in_claude_code(lines: list[Any]) -> Counter[str]:
    """Entries by reference 000's table: user's text, assistant's text or tools; no meta, no sidechains."""
    counts: Counter[str] = Counter()
    for line in lines:
        if isinstance(line, dict) and line.get("type") == "attachment":
            counts["user"] += line["attachment"].get("commandMode") == "prompt"
        if not isinstance(line, dict) or line.get("type") not in ("user", "assistant"):
            continue
        message = line["message"]
        is_aside = line.get("isMeta") or line.get("isSidechain") or line.get("isCompactSummary")
        if is_aside or not isinstance(message, dict):
            continue
        said = "".join(texts_in(message.get("content"))).strip()
        if line["type"] == "user":
            counts["user"] += bool(said) and not said.startswith(NOT_TYPED)
        else:
            counts["assistant"] += bool(said) or '"tool_use"' in json.dumps(message["content"])
    return +counts


def counted_in_codex(lines: list[Any]) -> Counter[str]:
    kinds = Counter(
        (line["type"], line["payload"].get("type"), line["payload"].get("role")) for line in lines
    )
    answers = ("response_item", "message", "assistant"), ("response_item", "function_call", None)
    typed = kinds["event_msg", "user_message", None]
    return +Counter(user=typed, assistant=sum(kinds[answer] for answer in answers))


COUNTED = {"claude-code": counted_in_claude_code, "codex": counted_in_codex}


@of_each_file
def test_real_files_have_as_many_entries_as_another_count_says(file: RealFile) -> None:
    lines = [line for _, line in parsed(file.path())]
    source = source_of(lines)
    assert source is not None
    reader = source.reader()
    read = [reader.read(line) for line in lines]
    entries = [one for one in read if isinstance(one, TranscriptEntry)]
    assert source.name == file.source
    assert Counter(one.role for one in entries) == COUNTED[source.name](lines)
    assert len({one.entry_id for one in entries}) == len(entries)
    assert all(map(is_sound, read))
    assert all(one.said_at is not None for one in entries)
    assert reader.about().is_subagent == ("/subagents/" in file.name)


@of_each_file
def test_lines_of_real_files_that_are_skipped_unread_have_the_right_reason(file: RealFile) -> None:
    lines = parsed(file.path())
    source = source_of([line for _, line in islice(lines, 50)])
    assert source is not None
    assert read_with_skips(source, lines) == read_whole(source, lines)


def read_whole(
    source: Source, lines: list[tuple[bytes, Any]]
) -> tuple[list[TranscriptEntry | SkippedLine], object]:
    reader = source.reader()
    return [reader.read(line) for _, line in lines], reader.about()


def read_with_skips(
    source: Source, lines: list[tuple[bytes, Any]]
) -> tuple[list[TranscriptEntry | SkippedLine], object]:
    reader = source.reader()
    return [source.can_skip(raw) or reader.read(line) for raw, line in lines], reader.about()


def parsed_as_far_as_possible(path: Path) -> list[tuple[bytes, Any]]:
    found = []
    for raw in path.read_bytes().splitlines():
        try:
            found.append((raw, orjson.loads(raw)))
        except orjson.JSONDecodeError:
            continue
    return found


def test_any_real_file_comes_to_entries_and_reasons() -> None:
    """Files come and go in that folder; what is not counted above must still hold for each that is known."""
    paths = sorted(FOLDER.rglob("*.jsonl"))
    if not paths:
        pytest.skip(f"no transcripts under {FOLDER}")
    for path in paths:
        lines = parsed_as_far_as_possible(path)
        source = source_of([line for _, line in lines])
        if source is None:
            continue
        whole = read_whole(source, lines)
        assert all(map(is_sound, whole[0])), path
        assert read_with_skips(source, lines) == whole, path


def test_the_edge_cases_are_counted_and_not_silently_dropped() -> None:
    reader = source_named("claude-code").reader()
    read = [reader.read(line) for _, line in parsed(EDGE_CASES.path())]
    reasons = Counter(one.reason for one in read if isinstance(one, SkippedLine))
    assert reasons == {"broken": 6, "tool-output": 2, "meta": 1, "unknown": 1, "summary": 1}
