"""A model that consolidates without thinking: it reads for two rounds, writes sections and finishes."""

import json
import re
from typing import Any

READ_AT_ONCE = 15
SECTIONS = 20
_LINE = re.compile(r"^\[(?:added|retained)\] conversation (\d+): (\S+)", re.MULTILINE)

Tool = tuple[str, dict[str, Any]]


def answer_round(body: dict[str, Any]) -> bytes:
    """The completion for a request, by how far the run has come."""
    messages = body["messages"]
    found = _LINE.findall(messages[1]["content"])
    rounds = sum(one["role"] == "assistant" for one in messages)
    calls = _reading(found, rounds) if rounds < 2 else _writing([int(number) for number, _ in found])
    made = [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for at, (name, given) in enumerate(calls)
    ]
    choice = {
        "message": {"role": "assistant", "content": None, "tool_calls": made},
        "finish_reason": "tool_calls",
    }
    usage = {"prompt_tokens": 20_000, "completion_tokens": 2_000}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


def _reading(found: list[tuple[str, str]], rounds: int) -> list[Tool]:
    shown = found[rounds * READ_AT_ONCE :][:READ_AT_ONCE]
    reading: list[Tool] = [("read_file", {"path": path}) for _, path in shown]
    return [("list_files", {}), ("search_files", {"queries": ["parser", "test"]}), *reading]


def _writing(numbers: list[int]) -> list[Tool]:
    body = "- 2026-10-20: the parser is tested with make test; it failed where a line had no end.\n" * 12
    sections = [
        {"path": "MEMORY.md", "heading": f"Topic {at}", "text": body, "sources": numbers[at::SECTIONS]}
        for at in range(min(SECTIONS, len(numbers)))
    ]
    summary = {
        "path": "memory_summary.md",
        "heading": "Who",
        "text": "Mends parsers.",
        "sources": numbers[:1],
    }
    return [*(("write_section", one) for one in (*sections, summary)), ("finish", {"note": "topics"})]
