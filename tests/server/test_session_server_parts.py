"""The pure parts of a shared session: code in an answer, and the updates that are kept."""

import asyncio
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import Route

from shepherd_memory.chat import events
from shepherd_memory.chat.event_json import event_to_json
from shepherd_memory.frontends.session_server.routes import ROUTES
from shepherd_memory.frontends.session_server.shared_session import PromptRequest
from shepherd_memory.frontends.session_server.streams import observe
from shepherd_memory.frontends.session_server.update_log import UpdateLog
from shepherd_memory.frontends.session_server.updates import (
    CLEARED,
    RESUMED,
    STATUSES,
    CodeBlock,
    CodeBlocks,
    Update,
)
from shepherd_memory.injection.prompting import Injected


def blocks_in(*pieces: str) -> list[CodeBlock]:
    blocks = CodeBlocks()
    return [block for piece in pieces for block in blocks.feed(piece)] + blocks.end()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no code", []),
        ("```python\nprint(1)\n```\n", [CodeBlock("python", "print(1)\n")]),
        ("```python title=x\nprint(1)\n```", [CodeBlock("python", "print(1)\n")]),
        ("a\n```\nb\n```\nc\n~~~sh\nls\n~~~\n", [CodeBlock("", "b\n"), CodeBlock("sh", "ls\n")]),
        ("````\n```\ninner\n```\n````\n", [CodeBlock("", "```\ninner\n```\n")]),
        ("- item\n  ```js\n  f()\n    g()\n  ```\n", [CodeBlock("js", "f()\n  g()\n")]),
        ("```\r\na\r\n```\r\n", [CodeBlock("", "a\n")]),
        ("```\n```", [CodeBlock("", "")]),
        ("```python\nnever closed\n", []),
        ("```inline``` code\n", []),
        ("``` not `a` fence\n```\n", []),
    ],
)
def test_blocks_of_code_are_found(text: str, found: list[CodeBlock]) -> None:
    assert blocks_in(text) == found
    assert blocks_in(*text) == found


@given(st.lists(st.sampled_from(["```", "~~~", "`", "py", "\n", " ", "x", "\r\n", "````"]), max_size=40))
def test_how_an_answer_is_cut_makes_no_difference(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert blocks_in(*pieces) == blocks_in(text) == blocks_in(*text)


def test_a_block_is_told_with_the_piece_that_closes_it_and_once() -> None:
    blocks = CodeBlocks()
    assert blocks.feed("```\na\n``") == []
    assert blocks.feed("`\n") == [CodeBlock("", "a\n")]
    assert blocks.end() == []


def filled(number: int, **bounds: int) -> UpdateLog:
    updates = UpdateLog(**bounds)
    for at in range(1, number + 1):
        updates.add(Update("delta", {"number": at}))
    return updates


def test_of_many_updates_the_latest_are_kept() -> None:
    updates = filled(100, most=10)
    assert (updates.last, updates.missed(0), updates.missed(90), updates.missed(95)) == (100, 90, 0, 0)
    kept = updates.after(90)
    assert [b'"number":%d}' % number in one for one, number in zip(kept, range(91, 101), strict=True)] == [
        True
    ] * 10
    assert updates.after(100) == []


def test_large_updates_leave_room_for_few_but_the_last_is_always_there() -> None:
    updates = UpdateLog(most_bytes=1000)
    for _ in range(3):
        updates.add(Update("delta", {"text": "x" * 5000}))
    assert updates.missed(0) == 2
    assert len(updates.after(2)) == 1


def test_a_write_takes_only_so_much() -> None:
    updates = UpdateLog()
    for _ in range(20):
        updates.add(Update("delta", {"text": "x" * 20_000}))
    assert len(updates.after(0)) == 4


@pytest.mark.parametrize(
    "id", ["", "1", "-", "x-1", "-1", "{run}-", "{run}-x", "{run}-4", "{run}-²", "{run}--1"]
)
def test_only_ids_of_this_run_can_be_gone_on_from(id: str) -> None:
    updates = filled(3)
    run = updates.id_of(0).partition("-")[0]
    assert updates.number_of(id.format(run=run)) is None
    assert updates.number_of(f"{run}-3") == 3
    assert updates.number_of(f"{run}-{'9' * 5000}") is None


def test_who_waits_is_woken_by_the_next_update_and_by_the_end() -> None:
    async def waits() -> None:
        updates = filled(1)
        waiting = asyncio.create_task(updates.wait(1))
        await asyncio.sleep(0)
        assert not waiting.done()
        updates.add(Update("delta", {}))
        await waiting
        again = asyncio.create_task(updates.wait(2))
        await asyncio.sleep(0)
        updates.close()
        await again

    asyncio.run(waits())


def test_an_observer_that_falls_behind_again_and_again_is_told_each_time() -> None:
    async def observed() -> list[bytes]:
        async def check() -> None:
            pass

        updates = filled(100, most=10)
        stream = observe(updates, updates.id_of(0), {}, check)
        parts = [await anext(stream), await anext(stream)]
        for number in range(50):
            updates.add(Update("delta", {"number": number}))
        parts += [await anext(stream), await anext(stream)]
        await stream.aclose()  # type: ignore[attr-defined]
        return parts

    connected, first, second, batch = asyncio.run(observed())
    assert b'"resumed":true' in connected
    assert b'"updates":90' in first
    assert b'"updates":50' in second
    assert batch.count(b"event: delta") == 10


def section_of_the_reference() -> str:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text("utf-8")
    return page.partition("\n## Shared session\n")[2].partition("\n## ")[0]


def test_the_reference_has_every_route_error_and_event_of_a_shared_session() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", section_of_the_reference(), re.MULTILINE)
    routes = {
        f"{method} {route.path}"
        for route in ROUTES
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    told = {event_to_json(event)[0] for event in EVENTS} | {
        "connected",
        "queued",
        "skipped",
        "codeblock",
        CLEARED,
        RESUMED,
    }
    fields = {field.encode_name for field in msgspec.structs.fields(PromptRequest)}
    assert sorted(rows) == sorted([*routes, *told, *fields, *STATUSES, "queue_full"])


EVENTS: list[events.Event] = [
    events.MessageAdded({"role": "user"}),
    events.MemoryInjected(Injected([])),
    events.TextDelta(""),
    events.ReasoningDelta(""),
    events.ToolCalled("", "", ""),
    events.ToolFinished("", "", ""),
    events.MessagesEvicted(1),
    events.Notice(""),
    events.TurnCompleted("", 0, 0),
    events.TurnCancelled(""),
    events.TurnFailed(""),
]
