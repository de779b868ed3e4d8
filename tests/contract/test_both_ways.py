"""A session that came in both ways, through a server and as a transcript: each message is stored once."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.service import Service
from tests.contract.given import NOON, ManualClock, memory, user_says
from tests.endpoint import ScriptedEndpoint
from tests.transcripts import agent_line, user_line, write

ADA = "ada"
THREAD = "0b5e6f0a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"
ROLLOUT = f"rollout-2026-09-21T10-00-00-{THREAD}"


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with memory(url, clock, endpoint.url) as opened:
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "base" / "kettle" / f"{THREAD}.jsonl"


def turn(number: int) -> list[dict[str, Any]]:
    """A turn as Claude Code writes it: a prompt, a tool, an answer."""
    return [
        user_line(number, f"my wish_{number} is tea_{number}"),
        agent_line(number + 1, tool="Bash"),
        agent_line(number + 2, f"Answer {number}:\n\nthe kettle boils."),
    ]


def chat(service: Service, clock: ManualClock, *numbers: int, group: str = "main") -> None:
    """The same turns as a server hears them: all that was said so far, and the answer."""
    said: list[dict[str, Any]] = []
    for number in numbers:
        reminder = {"type": "text", "text": "<system-reminder>\nBe brief.\n</system-reminder>"}
        typed = {"type": "text", "text": f"my wish_{number} is tea_{number}\n"}
        said.append(user_says([reminder, typed]))
        answer = f"Answer {number}:\n\nthe kettle boils."
        service.remember_exchange(ADA, said, answer, THREAD, group=group)
        said.append({"role": "assistant", "content": answer})
    clock.now = max(clock.now, NOON)


def texts(service: Service, group: str = "main") -> Counter[str]:
    return Counter(" ".join(one.text.split()) for one in service.documents(ADA, group=group))


def once(*numbers: int, tools: bool = True) -> Counter[str]:
    found = Counter(
        text
        for number in numbers
        for text in (f"my wish_{number} is tea_{number}", f"Answer {number}: the kettle boils.")
    )
    return found + Counter(f"[Bash: boil --number {number + 1}]" for number in numbers if tools)


def read(service: Service, path: Path, *numbers: int) -> None:
    lines = [line for number in numbers for line in turn(number)]
    service.transcripts.ingest(ADA, write(path, lines))


Step = Callable[[Service, ManualClock, Path], None]
WAYS: dict[str, list[Step]] = {
    "live first": [lambda s, c, p: chat(s, c, 0, 4), lambda s, c, p: read(s, p, 0, 4)],
    "transcript first": [lambda s, c, p: read(s, p, 0, 4), lambda s, c, p: chat(s, c, 0, 4)],
    "in turns": [
        lambda s, c, p: chat(s, c, 0),
        lambda s, c, p: read(s, p, 0, 4),
        lambda s, c, p: chat(s, c, 0, 4),
    ],
}


@pytest.mark.every_scheme
@pytest.mark.parametrize("way", WAYS)
def test_each_message_is_stored_once_whichever_came_first(
    service: Service, clock: ManualClock, path: Path, way: str
) -> None:
    for step in WAYS[way]:
        step(service, clock, path)
    assert texts(service) == once(0, 4)
    for step in WAYS[way]:
        step(service, clock, path)
    service.transcripts.ingest(ADA, path, reimport=True)
    assert texts(service) == once(0, 4)
