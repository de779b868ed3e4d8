"""Tools for memory files: which there are, what they say, and a note to add to them."""

import re
from typing import TYPE_CHECKING

from shepherd_memory.consolidation.file_reading import (
    ANY,
    FOLDER,
    MATCH_MODES,
    MAX_CONTEXT_LINES,
    MAX_FOUND,
    MAX_LISTED,
    MAX_QUERIES,
    MAX_QUERY_CHARS,
    MAX_WINDOW_LINES,
    FileEntry,
    FileMatch,
)
from shepherd_memory.tools.tool import (
    Arguments,
    Effect,
    Tool,
    ToolOutput,
    count,
    counted,
    flag,
    many,
    taking,
    text,
)

if TYPE_CHECKING:
    from shepherd_memory.service import Service

DEFAULT_LISTED, DEFAULT_FOUND, DEFAULT_RUN = 200, 50, 5
MAX_LINES = 2**31 - 1
_STAMPED = re.compile(r"^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-")

PATH = "A path as list_memory_files shows it, such as: MEMORY.md"
CURSOR = text("Where the last answer ended, as it says; else the beginning.", default="")


def list_memory_files(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    found = service.memory_files(
        user_id,
        path=given.text_or_nothing("path"),
        cursor=given.text_or_nothing("cursor"),
        max_results=given.count("max_results", DEFAULT_LISTED, MAX_LISTED),
        group=given.group,
    )
    if not found.entries:
        return ToolOutput("There are no memory files yet.")
    place = f", in {found.path}" if found.path else ""
    heading = f"{counted(len(found.entries), 'entry', 'entries')} in the memory files{place}:"
    more = [f"More with cursor {found.next_cursor}"] if found.next_cursor else []
    return ToolOutput("\n".join([heading, *map(_entry, found.entries), *more]))


def _entry(entry: FileEntry) -> str:
    return f"- {entry.path}{'/' if entry.type == FOLDER else ''}"


def read_memory_file(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    found = service.memory_file(
        user_id,
        given.text("path"),
        line_offset=given.count("line_offset", 1, MAX_LINES),
        max_lines=given.count("max_lines", 0, MAX_LINES, least=0),
        group=given.group,
    )
    service.note_file_reading(user_id, [found.path], group=given.group)
    if not found.line_count:
        return ToolOutput(f"The memory file {found.path} is empty.")
    last = (found.next_line or found.line_count + 1) - 1
    heading = f"Lines {found.start_line} to {last} of {found.line_count} in the memory file {found.path}:"
    more = f"\nMore from line_offset {found.next_line} on." if found.next_line else ""
    return ToolOutput(f"{heading}\n{found.text.rstrip()}{more}")


def search_memory_files(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    queries = given.texts("queries")
    found = service.search_memory_files(
        user_id,
        queries,
        match_mode=given.choice("match_mode", MATCH_MODES) if given.has("match_mode") else ANY,
        path=given.text_or_nothing("path"),
        cursor=given.text_or_nothing("cursor"),
        context_lines=given.count("context_lines", 0, MAX_CONTEXT_LINES, least=0),
        case_sensitive=given.flag("case_sensitive"),
        normalized=given.flag("normalized"),
        max_results=given.count("max_results", DEFAULT_FOUND, MAX_FOUND),
        line_count=given.count("line_count", DEFAULT_RUN, MAX_WINDOW_LINES),
        group=given.group,
    )
    service.note_file_reading(user_id, [one.path for one in found.matches], group=given.group)
    if not found.matches:
        return ToolOutput("Nothing in the memory files matches: try other or fewer words.")
    heading = f"Found {counted(len(found.matches), 'match', 'matches')} in the memory files:"
    more = [f"More with cursor {found.next_cursor}"] if found.next_cursor else []
    return ToolOutput("\n".join([heading, *map(_match, found.matches), *more]))


def _match(match: FileMatch) -> str:
    lines = match.text.rstrip("\n").split("\n")
    return "\n".join(f"{match.path}:{number}: {line}" for number, line in enumerate(lines, match.start_line))


def add_memory_note(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    name = given.text("name", "filename") if given.has("name") or given.has("filename") else ""
    subject = _STAMPED.sub("", name).removesuffix(".md")
    path = service.add_memory_note(user_id, given.text("note"), name=subject, group=given.group)
    return ToolOutput(f"Added the memory note {path}")


FILE_TOOLS = (
    Tool(
        "list_memory_files",
        "List memory files",
        Effect.READS,
        "List the files of consolidated memory: MEMORY.md and memory_summary.md, skills, notes, and a "
        "summary of each earlier conversation. Only these tools "
        "read them: they are no files of the computer.",
        taking(
            path=text("A folder, such as: rollout_summaries; empty: all.", default=""),
            cursor=CURSOR,
            max_results=count("At most so many entries.", DEFAULT_LISTED, MAX_LISTED),
        ),
        list_memory_files,
    ),
    Tool(
        "read_memory_file",
        "Read a memory file",
        Effect.READS,
        "Read a file of consolidated memory, as many lines as fit.",
        taking(
            path=text(PATH),
            line_offset=count("The first line to read, counted from 1.", 1, MAX_LINES),
            max_lines=count("At most so many lines; 0: all that fit.", 0, MAX_LINES, least=0),
        ),
        read_memory_file,
    ),
    Tool(
        "search_memory_files",
        "Search memory files",
        Effect.READS,
        "Find the lines of the memory files that hold some words literally, as grep does. To search by "
        "meaning use search_memory.",
        taking(
            queries={
                **many(text(maxLength=MAX_QUERY_CHARS)),
                "description": "Words or parts of lines.",
                "minItems": 1,
                "maxItems": MAX_QUERIES,
            },
            match_mode=text(
                "Lines with any of them, with all, or runs of lines with all.",
                enum=list(MATCH_MODES),
                default=ANY,
            ),
            path=text("Only in this file or folder; empty: all.", default=""),
            cursor=CURSOR,
            context_lines=count("Lines to show around a match.", 0, MAX_CONTEXT_LINES, least=0),
            case_sensitive=flag("Whether capitals make a difference."),
            normalized=flag("Look at letters and digits alone."),
            max_results=count("At most so many matches.", DEFAULT_FOUND, MAX_FOUND),
            line_count=count("The longest run of lines.", DEFAULT_RUN, MAX_WINDOW_LINES),
        ),
        search_memory_files,
    ),
    Tool(
        "add_memory_note",
        "Add a memory note",
        Effect.WRITES,
        "Add a note to the memory files, when the user asks to keep a longer text: how something is done, or "
        "what was decided. For what a sentence says use store_memory.",
        taking(
            note=text("The note, complete in itself, as markdown."),
            name=text("What it is about, in a few words: its file is called so.", default=""),
        ),
        add_memory_note,
    ),
)
