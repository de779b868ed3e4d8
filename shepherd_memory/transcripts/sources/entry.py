"""What one line of a transcript comes to: something that was said, or why nothing is kept of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from shepherd_memory.storage.clock import parse_us
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.ids import digest_of

USER, ASSISTANT = "user", "assistant"

MAX_NAME_CHARS = 256
"""Longer ids become their digest; longer names and versions are cut."""

MAX_PATH_CHARS = 4096


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """Something that the user or the assistant said.

    Agents may write one message several times while it grows. Such lines have the same `entry_id`: the
    later one stands for the earlier one, and its text begins with the earlier one's.
    """

    entry_id: str
    """Unique within its file, and the same whenever the file is read again."""

    role: str
    """USER or ASSISTANT."""

    text: str
    """Never empty; of the assistant also one line for each tool it used: "[Bash: Run the tests]"."""

    said_at: int | None
    """Microseconds UTC; None: the line has no usable time."""

    cwd: str = ""
    tool_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """A line of which nothing is kept, and why, as one of the words below."""

    reason: str


META = SkippedLine("meta")
"""Instructions and notices that an agent's program writes in the user's name."""

SIDECHAIN = SkippedLine("sidechain")
"""What was said between an agent and its sub-agent."""

TOOL_OUTPUT = SkippedLine("tool-output")
THINKING = SkippedLine("thinking")

SUMMARY = SkippedLine("summary")
"""What a machine wrote about the conversation: never the user's words."""

EMPTY = SkippedLine("empty")
BOOKKEEPING = SkippedLine("bookkeeping")
"""A known kind of line in which nobody says anything."""

UNKNOWN = SkippedLine("unknown")
"""A kind of line that this version does not know."""

BROKEN = SkippedLine("broken")
"""A known kind of line in a shape that cannot be used, or no JSON object."""

DUPLICATE = SkippedLine("duplicate")
"""Said by another line already."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What a file said about itself so far; what it has not said is empty."""

    session_id: str = ""
    originator: str = ""
    """The program that wrote it: "cli", "codex_vscode"…"""

    version: str = ""
    cwd: str = ""
    git_branch: str = ""
    agent_id: str = ""
    is_subagent: bool = False


def moment_of(value: object) -> int | None:
    """Microseconds UTC of an ISO 8601 string or of epoch seconds or milliseconds; None if it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= 10**11:
        # As seconds these would lie after the year 5138.
        return parse_us(value / 1000) if abs(value) < 10**15 else None
    return parse_us(value)


def text_in(value: object, longest: int = MAX_NAME_CHARS) -> str:
    """A name, path or version as it can be stored; "" for anything that is no text."""
    return canonical_text(value[:longest]) if isinstance(value, str) else ""


def id_in(value: object) -> str:
    """An id as it can be stored; "" for anything that is no text."""
    if not isinstance(value, str):
        return ""
    text = canonical_text(value)
    return text if len(text) <= MAX_NAME_CHARS else digest_of(text)


def is_whole(raw: bytes) -> bool:
    """Whether a line was written to its end; one that was not is parsed, and counted as broken."""
    return raw.endswith((b"}", b"}\n", b"}\r\n"))


def strongest(reasons: Sequence[SkippedLine]) -> SkippedLine:
    """The reason that says most about a message of which nothing is kept."""
    for reason in reasons:
        if reason is not EMPTY and reason is not BROKEN:
            return reason
    return BROKEN if BROKEN in reasons else EMPTY
