"""The summary of a memory, by a rule: who the user is, what they prefer, what was talked about last."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.text.visible import visible_text

VERSION = "v1"
FILE_NAME = "memory_summary.md"
PROFILE, PREFERENCES, CONVERSATIONS = "Profile", "Preferences", "Recent conversations"
TITLE_CHARS = 100
NOTE_CHARS = 300

_PREFERENCE_WORDS = """
favorite favorites favourite favourites prefer prefers preferred preference preferences like likes liked
dislike dislikes love loves hate hates enjoy enjoys avoid avoids
"""
PREFERENCE_WORDS = frozenset(_PREFERENCE_WORDS.split())
"""What a fact's key has in it that says what the user prefers."""


@dataclass(frozen=True)
class SummarisedConversation:
    """A conversation by its title: a name that it was given, or how it opened, in the document `opening_id`.

    `note` is what a phase made of it, as the document `note_id`, which is called `note_name` in the session;
    empty where there is none.
    """

    session_id: str
    group_name: str
    last_message_at: datetime
    name: str
    opening: str
    opening_id: int
    note: str = ""
    note_id: int = 0
    note_name: str = ""


@dataclass(frozen=True)
class SummaryLine:
    """One line, and what it is made of: documents, of which those in `whole_ids` are told whole."""

    text: str
    document_ids: tuple[int, ...] = ()
    whole_ids: tuple[int, ...] = ()
    note: tuple[str, str, str] | None = None
    """The group and the session of the conversation whose note it tells, and the note's id there."""


@dataclass(frozen=True)
class SummarySection:
    """Lines under a heading; those of a project are for its sessions alone."""

    heading: str
    lines: tuple[SummaryLine, ...]
    project: str = ""


def profile_sections(facts: Iterable[tuple[str, str]]) -> list[SummarySection]:
    """What is known of the user, and apart from it what they prefer."""
    known: dict[str, list[SummaryLine]] = {PROFILE: [], PREFERENCES: []}
    for key, value in facts:
        heading = PREFERENCES if PREFERENCE_WORDS.intersection(key.split("_")) else PROFILE
        known[heading].append(SummaryLine(f"- {one_line(key.replace('_', ' '))}: {one_line(value)}"))
    return [SummarySection(heading, tuple(lines)) for heading, lines in known.items() if lines]


def conversation_section(
    conversations: Sequence[SummarisedConversation], project: str = ""
) -> list[SummarySection]:
    """Conversations, the newest first, in a section; none where there are none."""
    found = [line for line in map(_line, conversations) if line is not None]
    # One that came in through a server and as a transcript reads the same twice.
    lines = tuple({line.text: line for line in found}.values())
    heading = f"{CONVERSATIONS} in {one_line(project)}" if project else CONVERSATIONS
    return [SummarySection(heading, lines, project)] if lines else []


def written_section(heading: str, body: str, document_id: int, project: str = "") -> SummarySection:
    """A section that consolidation, or a person, wrote: a document that is told line by line."""
    lines = (visible_text(line).rstrip() for line in body.splitlines())
    told = tuple(SummaryLine(line, (document_id,)) for line in lines if line.strip())
    title = f"{one_line(heading)} in {one_line(project)}" if project else one_line(heading)
    return SummarySection(title, told, project)


def render(sections: Sequence[SummarySection]) -> str:
    """The file `memory_summary.md`; empty where nothing is known."""
    parts = [f"## {one.heading}\n\n" + "\n".join(line.text for line in one.lines) for one in sections]
    return "\n\n".join([VERSION, *parts]) + "\n" if parts else ""


def one_line(text: str) -> str:
    """`text` in one line of visible characters."""
    return " ".join(visible_text(text).split())


def _line(conversation: SummarisedConversation) -> SummaryLine | None:
    said = one_line(conversation.opening)
    title = _cut(one_line(conversation.name) or said, TITLE_CHARS)
    if not title:
        return None
    note = _cut(one_line(conversation.note), NOTE_CHARS)
    text = f"- {conversation.last_message_at:%Y-%m-%d} {title}" + (f": {note}" if note else "")
    told = {
        conversation.opening_id: (conversation.opening, title),
        conversation.note_id: (conversation.note, note),
    }
    documents = tuple(filter(None, told))
    whole = tuple(number for number in documents if told[number][0].strip() == told[number][1])
    place = (conversation.group_name, conversation.session_id, conversation.note_name) if note else None
    return SummaryLine(text, documents, whole, place)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
