"""The previous session as a new one is told of it: a line for each message, within a budget."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from shepherd_memory.injection.block import MIN_UNITS, escape_label
from shepherd_memory.injection.xml_text import INDENT, LIGHTEST, escape_attribute, escape_xml, lines_of
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.text.block_seal import RECORD_NOTE
from shepherd_memory.text.excerpt import GAP, shorten_middle
from shepherd_memory.text.tokens import UNITS, weigh

LONG_SHARE = 4
"""A message may take a quarter of the budget, and more only if the others leave it."""

_SPEAKER_TYPES = {"user": "human", "assistant": "agent"}


@dataclass(frozen=True)
class RecordedMessage:
    """Something that was said: a document, or what is none (its id is 0) and has a mark instead."""

    document_id: int
    role: str
    speaker_type: str
    speaker_name: str
    text: str
    said_at: int = 0
    mark: str = ""


@dataclass(frozen=True)
class SessionRecord:
    """A session that is over. Of its `total` messages no more are read than there is room for."""

    session_id: str
    ended: datetime
    total: int
    newest_first: Iterable[RecordedMessage]


@dataclass(frozen=True)
class PreviousSession:
    """What a new session is told of another one: `text`, made of these documents, of which some are cut.

    `marks` are those of messages that are no documents.
    """

    session_id: str
    ended: datetime
    message_count: int
    total_count: int
    text: str
    document_ids: tuple[StoredId, ...] = ()
    shortened_ids: tuple[StoredId, ...] = ()
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContextSection:
    """Documents of one category, or a summary, as a new session is told of them; some of them are cut.

    `notes` are those of conversations in it, by group, session and their id there.
    """

    text: str
    document_ids: tuple[int, ...]
    shortened_ids: tuple[int, ...] = ()
    notes: tuple[tuple[str, str, str], ...] = ()


@dataclass
class _Entry:
    """A message escaped, and how much of the room it takes."""

    document_id: int
    label: str
    said: str
    is_cut: bool = False
    said_at: int = 0
    mark: str = ""
    room: int = 0

    @property
    def need(self) -> int:
        return weigh(self.label + self.said)

    @property
    def least(self) -> int:
        return min(self.need, weigh(self.label) + MIN_UNITS)

    @property
    def is_whole(self) -> bool:
        return not self.is_cut and self.room >= self.need

    @property
    def line(self) -> str:
        return self.label + shorten_middle(self.said, self.room - weigh(self.label))


def tell_session(record: SessionRecord, max_tokens: int) -> PreviousSession | None:
    """What `max_tokens` have room for of a session, the newest messages first to be taken; None if for none.

    An XML parser can read the element; each of its lines that is not indented is a message, but for the note
    of what was left out.
    """
    total = record.total
    around = f"{RECORD_NOTE}\n{_opening(record, total, total)}\n{_note(total)}</previous-session>"
    entries = _entries(record.newest_first, max_tokens * UNITS - weigh(around))
    taken = sorted((entry for entry in reversed(entries) if entry.room), key=lambda entry: entry.said_at)
    if not taken:
        return None
    total = max(total - sum(not entry.said for entry in entries), len(taken))
    lines = "".join(f"{entry.line}\n" for entry in taken)
    opening = _opening(record, len(taken), total)
    text = f"{RECORD_NOTE}\n{opening}\n{_note(total - len(taken))}{lines}</previous-session>"
    return PreviousSession(
        record.session_id,
        record.ended,
        len(taken),
        total,
        text,
        tuple(entry.document_id for entry in taken if entry.document_id),
        tuple(entry.document_id for entry in taken if entry.document_id and not entry.is_whole),
        tuple(entry.mark for entry in taken if entry.mark),
    )


def tell_context(
    category: str, documents: Iterable[tuple[int, str]], max_tokens: int
) -> ContextSection | None:
    """As many documents of a category as `max_tokens` have room for, each with a dash before it."""
    found = list(documents)
    around = f"{_context_opening(category, len(found))}\n</context>"
    room = max_tokens * UNITS - weigh(around)
    entries = [_entry(number, "- ", text, room) for number, text in found]
    taken = [entry for entry in _with_room(entries, room) if entry.room]
    if not taken:
        return None
    lines = "".join(f"{entry.line}\n" for entry in taken)
    text = f"{_context_opening(category, len(taken))}\n{lines}</context>"
    shortened = tuple(entry.document_id for entry in taken if not entry.is_whole)
    return ContextSection(text, tuple(entry.document_id for entry in taken), shortened)


def _opening(record: SessionRecord, count: int, total: int) -> str:
    ended = record.ended.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        f'<previous-session category="transcript" session-id="{escape_attribute(record.session_id)}"'
        f' message-count="{count}" total-count="{total}" ended="{ended}">'
    )


def _context_opening(category: str, count: int) -> str:
    return f'<context category="{escape_attribute(category)}" document-count="{count}">'


def _note(left_out: int) -> str:
    if left_out <= 0:
        return ""
    return f"[… {left_out} earlier {'message' if left_out == 1 else 'messages'} left out …]\n"


def _entries(newest_first: Iterable[RecordedMessage], room: int) -> list[_Entry]:
    """The messages as far back as there is room for, those without text among them."""
    return _with_room((_of_message(message, room) for message in newest_first), room)


def _of_message(message: RecordedMessage, room: int) -> _Entry:
    entry = _entry(message.document_id, _label(message), message.text, room)
    entry.said_at, entry.mark = message.said_at, message.mark
    return entry


def _entry(document_id: int, label: str, text: str, room: int) -> _Entry:
    """A text escaped, all lines but the first indented; of a very long one what may fit."""
    most = max(room, 0) // LIGHTEST
    is_cut = len(text) > 2 * most
    looked_at = text[:most] + GAP + text[len(text) - most :] if is_cut else text
    return _Entry(document_id, label, f"\n{INDENT}".join(map(escape_xml, lines_of(looked_at))), is_cut)


def _with_room(drafts: Iterable[_Entry], room: int) -> list[_Entry]:
    """The first of these, each given its room: a long one a share of it, and what the others leave."""
    entries = list(_filled(drafts, room))
    left = room - sum(_with_break(entry.room) for entry in entries if entry.room)
    for entry in entries:
        if entry.room:
            more = min(left, entry.need - entry.room)
            entry.room, left = entry.room + more, left - more
    return entries


def _filled(drafts: Iterable[_Entry], room: int) -> Iterator[_Entry]:
    most = max(room // LONG_SHARE, 0)
    for entry in drafts:
        if not entry.said:
            yield entry
            continue
        wanted = max(entry.least, min(entry.need, most))
        entry.room = min(wanted, room - weigh("\n"))
        if entry.room < entry.least:
            return
        room -= _with_break(entry.room)
        yield entry
        if entry.room < wanted:
            return


def _with_break(room: int) -> int:
    return room + weigh("\n")


def _label(message: RecordedMessage) -> str:
    # Clients write anything into the type.
    is_known = message.speaker_type in _SPEAKER_TYPES.values()
    kind = message.speaker_type if is_known else _SPEAKER_TYPES.get(message.role, "agent")
    name = escape_xml(escape_label(message.speaker_name))
    return f"[{kind} — {name}]: " if name else f"[{kind}]: "
