"""`shepherd mcp` in every group: no tool shows or changes what is not the group's."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.service import Service
from shepherd_memory.tools import ALL_TOOLS
from tests.fork_server import run
from tests.grouped_memory import (
    ALPHA,
    ASKED,
    KEY,
    QUESTION,
    SEEN,
    SESSION,
    USER,
    WORDS,
    as_shown,
    furnish,
    rows_by_group,
    words_in,
)
from tests.terminal.shell import COMMAND, with_service

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "claude-code", "version": "1"},
}


def calls(ids: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Every tool, aimed at what is alpha's; what removes most comes last."""
    return [
        ("recall", {"query": ASKED, "limit": 50, "min_confidence": 0}),
        ("list_facts", {}),
        ("search_memory", {"query": ASKED, "max_results": 50}),
        ("get_fact", {"key": KEY}),
        ("fact_history", {"key": KEY}),
        ("list_sessions", {}),
        ("search_sessions", {"query": "favourite animal"}),
        ("read_session", {"session_id": SESSION}),
        ("list_memory_files", {"path": "rollout_summaries"}),
        ("read_memory_file", {"path": "MEMORY.md"}),
        ("search_memory_files", {"queries": ["keeper", "animal"]}),
        ("add_memory_note", {"note": "none"}),
        ("rename_session", {"session_id": SESSION, "name": "none"}),
        ("resume_session", {"session_id": SESSION}),
        ("clear_session", {"name": "none"}),
        ("store_memory", {"question": QUESTION, "answer": "none"}),
        ("set_fact", {"key": KEY, "value": "none"}),
        ("clear_memory", {"question": QUESTION}),
        ("clear_fact", {"key": KEY}),
        *(("forget", {"kind": kind, "id": str(ids[kind])}) for kind in ("document", "context")),
        ("forget", {"kind": "session", "id": SESSION}),
    ]


ALL_SHOWN = ("recall", "list_facts", "list_sessions", "search_sessions")


def answers(group: str, ids: Mapping[str, Any]) -> list[str]:
    """What a process answers to each call, over its standard input and output."""
    asked = [{"id": 0, "method": "initialize", "params": HELLO}, {"method": "notifications/initialized"}]
    for number, (name, arguments) in enumerate(calls(ids), 1):
        params = {"name": name, "arguments": {**arguments, "group": ALPHA, "_group": ALPHA}}
        asked.append({"id": number, "method": "tools/call", "params": params})
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)
    command = [*COMMAND, "mcp", "--user", USER, "--group", group]
    done = run(command, input=lines, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = {
        answer["id"]: json.dumps(answer["result"]) for answer in map(json.loads, done.stdout.splitlines())
    }
    return [told[number] for number in range(1, len(calls(ids)) + 1)]


@pytest.fixture
def ids(tmp_path: Path, config_path: Path) -> dict[str, Any]:
    """What is alpha's; the conversations have come to their end, so that no worker moves them on."""
    config_path.write_text(config_path.read_text() + 'embedding_engine = "none"\n')

    def furnish_all(service: Service) -> Any:
        found = {group: furnish(service, group, tmp_path) for group in WORDS}
        service.transcripts.poll()
        return found[ALPHA]

    made: dict[str, Any] = with_service(furnish_all)
    return made


def test_every_tool_is_called(ids: dict[str, Any]) -> None:
    assert {name for name, _ in calls(ids)} == set(ALL_TOOLS)


@pytest.mark.parametrize("group", WORDS)
def test_each_group_is_shown_what_it_sees_and_changes_what_is_its_own(
    ids: dict[str, Any], group: str
) -> None:
    before = with_service(lambda service: rows_by_group(service.database))
    shown = with_service(lambda service: as_shown(service, group, ids))
    for (name, _), told in zip(calls(shown), answers(group, shown), strict=True):
        assert words_in(told) <= SEEN[group], name
        assert name not in ALL_SHOWN or words_in(told) == SEEN[group], name
        assert ALPHA in SEEN[group] or ALPHA not in told, name
    after = with_service(lambda service: rows_by_group(service.database))
    assert {name for name in after if after[name] != before[name]} == {group}
