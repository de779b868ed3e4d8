"""Scripted answers of a model that consolidates: tool calls by round, recognised by the tools it is given."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.endpoint import Body, Step, by_content, close, json_reply, raw_reply
from tests.note_endpoint import facts_and_notes, schema_of

ToolCall = tuple[str, Any]
Script = Callable[[Body], Sequence[ToolCall]]

_LINE = re.compile(r"^\[(added|retained|removed)\] conversation (\d+): (\S+)", re.MULTILINE)


def is_for_agent(body: Body) -> bool:
    names = {one["function"]["name"] for one in body.get("tools", [])}
    has_none = "You have no tools in this run" in str(body.get("messages"))
    return "write_section" in names or schema_of(body) == "memory_consolidation" or has_none


def has_tools(body: Body) -> bool:
    return bool(body.get("tools"))


def opening(body: Body) -> str:
    return str(body["messages"][1]["content"])


def labelled(body: Body) -> dict[str, list[int]]:
    """The conversations that a run is told of, by what became of them."""
    found: dict[str, list[int]] = {"added": [], "retained": [], "removed": []}
    for label, number, _ in _LINE.findall(opening(body)):
        found[label].append(int(number))
    return found


def results(body: Body) -> list[str]:
    """What the tools have answered so far."""
    return [one["content"] for one in body["messages"] if one["role"] == "tool"]


def calls(*made: ToolCall) -> Step:
    """An answer that calls tools; arguments that are text are sent as they are."""
    listed = [
        {
            "id": f"call-{number}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": given if isinstance(given, str) else json.dumps(given),
            },
        }
        for number, (name, given) in enumerate(made)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": listed}
    return json_reply({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})


def section(body: Body, text: str, heading: str = "Tea", path: str = "MEMORY.md", **more: Any) -> ToolCall:
    """A section that rests on all conversations of the run."""
    now = labelled(body)
    given = {"path": path, "heading": heading, "text": text, "sources": now["added"] + now["retained"]}
    return "write_section", given | more


def writes(memory: str = "Ada drinks tea.", summary: str = "Ada, who drinks tea.") -> Script:
    """One round that writes a section of each file, and finishes."""

    def script(body: Body) -> list[ToolCall]:
        return [
            section(body, memory),
            section(body, summary, "Who", "memory_summary.md"),
            ("finish", {"note": "tea"}),
        ]

    return script


def agent(script: Script, other: Step | None = None) -> Step:
    """The agent's calls as a script says, for each request of it, and notes and facts for all others."""
    elsewhere = other or facts_and_notes()

    def choose(body: Body | None) -> Step:
        if body is None:
            return close()
        return calls(*script(body)) if is_for_agent(body) and has_tools(body) else elsewhere

    return by_content(choose)


def in_one_answer(answer: Callable[[Body], Any], refusal: Step) -> Step:
    """A model without tools: it refuses them, and answers the whole result as JSON."""

    def choose(body: Body | None) -> Step:
        if body is None:
            return close()
        if not is_for_agent(body):
            return facts_and_notes()
        return refusal if has_tools(body) else raw_reply(json.dumps(answer(body)))

    return by_content(choose)


def runs(bodies: Sequence[Body]) -> list[Body]:
    """The first request of each run."""
    asked = [body for body in bodies if body is not None and is_for_agent(body)]
    return [body for body in asked if len(body["messages"]) == 2 and has_tools(body)]
