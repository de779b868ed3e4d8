"""What the consolidation agent is asked: our instructions, what has changed, and the tools that it has."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from shepherd_memory.consolidation.files import path_of
from shepherd_memory.consolidation.selection import Selection, Snapshot
from shepherd_memory.consolidation.workspace import Workspace
from shepherd_memory.phases.sections import MEMORY_FILE, SUMMARY_FILE
from shepherd_memory.text.tokens import estimate_mean_tokens

SCHEMA_NAME = "memory_consolidation"
MAX_LINE_CHARS = 300
NOTHING_LEFT = "nothing is left of it"

_TEXT = {"type": "string"}
_NUMBERS = {"type": "array", "items": {"type": "integer"}}


def _object(required: tuple[str, ...], **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _tool(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


TOOLS = (
    _tool(
        "list_files",
        "List the files of a folder.",
        _object((), path=_TEXT, cursor=_TEXT, max_results={"type": "integer"}),
    ),
    _tool(
        "read_file",
        "Read a file, from a line on.",
        _object(("path",), path=_TEXT, line_offset={"type": "integer"}, max_lines={"type": "integer"}),
    ),
    _tool(
        "search_files",
        "Find lines that have any of the queries in them.",
        _object(
            ("queries",),
            queries={"type": "array", "items": _TEXT},
            match_mode={"type": "string", "enum": ["any", "all_on_same_line", "all_within_lines"]},
            path=_TEXT,
            context_lines={"type": "integer"},
        ),
    ),
    _tool(
        "write_section",
        f"Write a section of {MEMORY_FILE} or {SUMMARY_FILE}; one with the same heading is replaced.",
        _object(
            ("path", "heading", "text", "sources"),
            path={"type": "string", "enum": [MEMORY_FILE, SUMMARY_FILE]},
            heading=_TEXT,
            text=_TEXT,
            sources=_NUMBERS,
            project=_TEXT,
        ),
    ),
    _tool(
        "delete_section",
        "Delete a section of a file, or a skill by its name.",
        _object(("path", "heading"), path=_TEXT, heading=_TEXT),
    ),
    _tool(
        "write_skill",
        "Write a skill; one with the same name is replaced.",
        _object(("name", "text", "sources"), name=_TEXT, text=_TEXT, sources=_NUMBERS),
    ),
    _tool(
        "finish", "End when the memory is right; note says in a line what changed.", _object((), note=_TEXT)
    ),
)

SCHEMA: dict[str, Any] = _object(
    ("sections", "skills", "deleted"),
    sections={
        "type": "array",
        "items": _object(
            ("path", "heading", "text", "sources", "project"),
            path={"type": "string", "enum": [MEMORY_FILE, SUMMARY_FILE]},
            heading=_TEXT,
            text=_TEXT,
            sources=_NUMBERS,
            project=_TEXT,
        ),
    },
    skills={
        "type": "array",
        "items": _object(("name", "text", "sources"), name=_TEXT, text=_TEXT, sources=_NUMBERS),
    },
    deleted={"type": "array", "items": _object(("path", "heading"), path=_TEXT, heading=_TEXT)},
)


@cache
def instructions() -> str:
    """The prompt that comes with the package."""
    return resources.files(__package__).joinpath("consolidate.txt").read_text(encoding="utf-8").strip()


def opening(workspace: Workspace) -> str:
    """What is to be done in this run: how the notes differ from those of the last one, a line for each."""
    chosen = workspace.selection
    mode = "INCREMENTAL: the memory is there" if workspace.shown else "INIT: there is no memory yet"
    counts = f"added {len(chosen.added)}, retained {len(chosen.retained)}, removed {len(chosen.removed)}"
    labelled = (("added", chosen.added), ("retained", chosen.retained), ("removed", chosen.removed))
    lines = [_line(label, one) for label, found in labelled for one in found]
    lost = [
        f"[lost] a section of {one.file}{f' for {one.project}' if one.project else ''}, which rested on"
        f" {', '.join(map(str, one.sources)) or 'nothing that is left'}"
        for one in workspace.withheld
    ]
    most = workspace.summary_tokens
    fits = f"Each part of {SUMMARY_FILE}, general or of a project, has at most {most} tokens."
    return "\n".join([f"Mode {mode}.", fits, f"Conversations since the last run: {counts}.", *lines, *lost])


def _line(label: str, one: Snapshot) -> str:
    day = f"{one.output.source_updated_at:%Y-%m-%d}"
    where = f", in {' '.join(one.cwd.split())}" if one.cwd else ""
    what = path_of(one.output) if one.has_words else NOTHING_LEFT
    return f"[{label}] conversation {one.conversation_id}: {what} ({day}{where})"[:MAX_LINE_CHARS]


def inline(files: Mapping[str, str]) -> str:
    """Files as data, for a model that has no tools to read them."""
    return "\n".join(f'<file path="{path}">\n{_escaped(text)}\n</file>' for path, text in files.items())


def _escaped(text: str) -> str:
    return text.replace("</file", "\u2039/file").replace("<file", "\u2039file")


def forecast_tokens(selection: Selection) -> int:
    """About how many tokens the notes that a run reads have, with the instructions."""
    notes = (f"{one.output.raw_memory}\n{one.output.summary}" for one in selection.readable)
    return sum(map(estimate_mean_tokens, notes)) + estimate_mean_tokens(instructions())


ANSWER = (
    "You have no tools in this run. Answer with one JSON object of three lists and nothing else: sections"
    " (path, heading, text, sources, project), skills (name, text, sources), deleted (path, heading)."
    " Sections that you leave out stay as they are."
)
AGAIN = "Answer again, and mend this:"
REMINDER = "Use the tools to read and write the memory, and call finish when it is right."
TOO_MANY_CALLS = (
    "Only the first {} of your {} calls were made: make the others again, if they are still needed."
)
