"""What a user typed while Claude Code was busy: kept once, however the version at hand writes it down."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from shepherd_memory.transcripts.sources import SkippedLine, TranscriptEntry
from shepherd_memory.transcripts.sources.claude_code import CLAUDE_CODE

NOON = "2026-03-04T12:00:00.250Z"
NOON_US = 1_772_625_600_250_000
COMMON = {"sessionId": "s-1", "timestamp": NOON}
NOTICE = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"


def queue(operation: str, content: object = None, **fields: object) -> dict[str, Any]:
    line = {"type": "queue-operation", "operation": operation, **COMMON, **fields}
    return line if content is None else {**line, "content": content}


def attached(prompt: object, uuid: str = "q-1", **fields: object) -> dict[str, Any]:
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", **fields}
    return {
        "type": "attachment",
        "isSidechain": False,
        "cwd": "/home/ada/engine",
        "uuid": uuid,
        "attachment": attachment,
        **COMMON,
    }


def typed(text: str, **fields: object) -> dict[str, Any]:
    message = {"role": "user", "content": text}
    return (
        {"type": "user", "cwd": "/home/ada/engine", "uuid": f"u-{text}", "message": message} | COMMON | fields
    )


def entries_of(lines: Sequence[object]) -> list[TranscriptEntry]:
    """What the lines come to; the same whether one reader reads them, or each goes on where another was."""
    reader = CLAUDE_CODE.reader()
    read = [reader.read(line) for line in lines]
    state: dict[str, Any] | None = None
    for line, expected in zip(lines, read, strict=True):
        reader = CLAUDE_CODE.reader(state)
        assert reader.read(line) == expected
        state = json.loads(json.dumps(reader.state()))
    return [one for one in read if isinstance(one, TranscriptEntry)]


def texts_of(lines: Sequence[object]) -> list[str]:
    return [one.text for one in entries_of(lines)]


def reason(line: object) -> str:
    found = CLAUDE_CODE.reader().read(line)
    assert isinstance(found, SkippedLine), found
    return found.reason


def test_a_prompt_that_was_attached_is_the_users_word() -> None:
    [found] = entries_of([attached("and the tests too", origin={"kind": "human"})])
    assert found == TranscriptEntry("q-1", "user", "and the tests too", NOON_US, "/home/ada/engine")


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ([{"type": "text", "text": "see this"}, {"type": "image", "source": {}}], "see this"),
        ("fix <system-reminder>be brief</system-reminder>it", "fix it"),
        ("a\0b \ud83d", "a\ufffdb \ufffd"),
    ],
)
def test_an_attached_prompt_is_read_like_any_other(prompt: object, said: str) -> None:
    assert texts_of([attached(prompt)]) == [said]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({**attached("x"), "attachment": {"type": "task_reminder", "content": []}}, "bookkeeping"),
        ({**attached("x"), "attachment": "x"}, "bookkeeping"),
        ({**attached("x"), "isSidechain": True}, "sidechain"),
        (attached(NOTICE, commandMode="task-notification"), "meta"),
        (attached(NOTICE), "meta"),
        (attached("go on", commandMode=["prompt"]), "meta"),
        (attached("go on", isMeta=True), "meta"),
        (attached("go on", origin={"kind": "peer", "from": "b"}), "meta"),
        (attached("go on", origin={"kind": "auto-continuation"}), "meta"),
        (attached(""), "empty"),
        (attached([{"type": "image"}]), "empty"),
        (attached(None), "broken"),
        (attached({"text": "x"}), "empty"),
        (queue("enqueue", "x"), "bookkeeping"),
        (queue("remove"), "bookkeeping"),
        (queue("levitate", "x"), "bookkeeping"),
        (queue("remove", {"x": 1}, reason=[]), "bookkeeping"),
    ],
)
def test_what_nobody_typed_is_not_taken_out_of_the_queue(line: object, why: str) -> None:
    assert reason(line) == why


def test_where_prompts_are_attached_the_queue_is_not_counted_again() -> None:
    for order in ((0, 1), (1, 0)):
        handed = [attached("and the tests"), queue("remove", "and the tests", reason="absorbed_mid_turn")]
        lines = [
            {**attached("x"), "attachment": {"type": "skill_listing"}},
            queue("enqueue", "and the tests"),
            *(handed[place] for place in order),
        ]
        assert texts_of(lines) == ["and the tests"]


def test_a_prompt_that_is_attached_and_sent_later_has_one_id() -> None:
    lines = [attached("and the tests", source_uuid="u-and the tests"), typed("and the tests")]
    assert len({one.entry_id for one in entries_of(lines)}) == 1


def test_earlier_versions_say_only_that_a_prompt_left_the_queue_as_for_what_was_taken_back() -> None:
    lines = [typed("build it"), queue("enqueue", "and quickly"), queue("remove"), queue("popAll")]
    assert texts_of(lines) == ["build it"]
