"""A session as markdown: its title, when it was archived, and who said what."""

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shepherd_memory.archives.catalog import ArchivedSession
from shepherd_memory.memory.documents import IS_SAID
from shepherd_memory.memory.session_messages import without_calls
from shepherd_memory.storage import erasures
from shepherd_memory.storage.database import Database
from shepherd_memory.text.ids import digest_of
from shepherd_memory.text.visible import visible_text

FORMAT = 1
MAX_MESSAGE_CHARS = 2000
MAX_TITLE_CHARS = 200
OPENING_CHARS = 60
MAX_LABEL_CHARS = 100
READ_AT_ONCE = 16
"""Messages whose texts are read together: each may have megabytes, and a session hundreds of them."""

USER_LABEL, AGENT_LABEL = "User", "Assistant"
RULE = "---"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_MARKER = re.compile(
    r"<!-- shepherd-memory archive (?P<format>[0-9]+), replaced when the memory changes:"
    r" user=(?P<user>[0-9a-f]{64}) session=(?P<session>[0-9a-f]{32}) state=(?P<state>[0-9a-f]{16}) -->"
)

_ENDS_A_NAME = re.compile(r"[*:\\]")
"""In a name this would end it, and begin what somebody else said."""


@dataclass(frozen=True)
class Marker:
    """The line that tells a file of ours: whose session it is of, as digests, and in which state."""

    user: str
    session: str
    state: str

    def __str__(self) -> str:
        return (
            f"<!-- shepherd-memory archive {FORMAT}, replaced when the memory changes:"
            f" user={self.user} session={self.session} state={self.state} -->"
        )


@dataclass(frozen=True)
class ArchiveStyle:
    """How archives are written: with whole messages or cut ones, and who answers where nobody has a name."""

    whole: bool = False
    agent_name: str = ""


DEFAULT_STYLE = ArchiveStyle()


def marker_of(user_id: str, session: ArchivedSession, style: ArchiveStyle) -> Marker:
    """The marker of a session's archive as it would be written now."""
    state = session.state(FORMAT, style.whole, style.agent_name)
    return Marker(erasures.digest_of_user(user_id), session_digest(session), state)


def session_digest(session: ArchivedSession) -> str:
    """What a file names its session by."""
    return digest_of(f"{session.group_name}\0{session.session_id}")


def read_marker(head: str) -> Marker | None:
    """The marker at the beginning of a file; None if the file is not ours. What is said comes after it."""
    for line in head.splitlines():
        if line == RULE:
            return None
        if found := _MARKER.fullmatch(line):
            return Marker(found["user"], found["session"], found["state"])
    return None


def render(
    database: Database, user_id: str, session: ArchivedSession, style: ArchiveStyle = DEFAULT_STYLE
) -> Iterator[str]:
    """The archive of a session, piece by piece: no more than some messages are in memory at a time."""
    said = SaidInOrder(database, user_id, session)
    yield f"# {_title(session, said)}\n\nArchived: {_moment(session.archived_at)}\n"
    yield f"\n{marker_of(user_id, session, style)}\n\n{RULE}\n"
    agent = session.agent_name or style.agent_name
    for message in said.messages():
        yield f"\n**{_label(message, agent)}**: {_body(message.text, style.whole)}\n"


@dataclass(frozen=True)
class ArchivedMessage:
    """Something that was said."""

    role: str
    speaker_name: str
    text: str


class SaidInOrder:
    """What was said in a session, in the order in which it was said."""

    def __init__(self, database: Database, user_id: str, session: ArchivedSession) -> None:
        self._database = database
        self._values = {"user_id": user_id, "group": session.group_name}
        self._parts = {f"part{number}": part for number, part in enumerate(session.parts)}
        self._among = (
            "from documents where user_id = :user_id and group_name = :group"
            f" and session_id in ({', '.join(f':{name}' for name in self._parts)}) and {IS_SAID}"
        )

    def opening(self) -> str:
        """The beginning of the first thing that the user said."""
        with self._database.read() as connection:
            row = connection.row(
                f"select substr(text, 1, {10 * OPENING_CHARS}) {self._among} and role = 'user'"
                " and text <> '' order by created_at, id limit 1",
                **self._values,
                **self._parts,
            )
        return "" if row is None else str(row[0])

    def messages(self) -> Iterator[ArchivedMessage]:
        """One after the other; each page is read by itself, so that no reader holds the database up."""
        with self._database.read() as connection:
            rows = connection.rows(
                f"select id {self._among} order by created_at, id", **self._values, **self._parts
            )
        ids = array("q", (row[0] for row in rows))
        del rows
        for at in range(0, len(ids), READ_AT_ONCE):
            yield from self._page(ids[at : at + READ_AT_ONCE])

    def _page(self, ids: Sequence[int]) -> list[ArchivedMessage]:
        wanted = {f"id{place}": number for place, number in enumerate(ids)}
        with self._database.read() as connection:
            rows = connection.rows(
                "select id, role, speaker_name, text, tool_names from documents"
                " where user_id = :user_id and group_name = :group"
                f" and id in ({', '.join(f':{name}' for name in wanted)})",
                **self._values,
                **wanted,
            )
        found = {row[0]: ArchivedMessage(row[1], row[2], without_calls(row[3], row[4])) for row in rows}
        return [found[number] for number in ids if number in found]


def _title(session: ArchivedSession, said: SaidInOrder) -> str:
    if name := _one_line(session.name, MAX_TITLE_CHARS):
        return name
    return _one_line(said.opening(), OPENING_CHARS) or f"Conversation of {session.begun_at:%Y-%m-%d}"


def _one_line(text: str, max_chars: int) -> str:
    line = " ".join(visible_text(text).split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"


def _moment(moment: datetime) -> str:
    """As people write it: `Feb 21, 2026, 3:39 AM UTC`, whatever the language of this machine."""
    utc = moment.astimezone(UTC)
    half = "AM" if utc.hour < 12 else "PM"
    return f"{MONTHS[utc.month - 1]} {utc.day}, {utc.year}, {utc.hour % 12 or 12}:{utc:%M} {half} UTC"


def _label(message: ArchivedMessage, agent_name: str) -> str:
    if message.role == "user":
        return USER_LABEL
    name = _ENDS_A_NAME.sub(" ", message.speaker_name or agent_name)
    return _one_line(name, MAX_LABEL_CHARS) or AGENT_LABEL


def _body(text: str, whole: bool) -> str:
    """What was said; its lines after the first are indented, so that none looks like another speaker's."""
    shown = visible_text(text).strip()
    if not whole and len(shown) > MAX_MESSAGE_CHARS:
        left_out = len(shown) - MAX_MESSAGE_CHARS
        shown = f"{shown[:MAX_MESSAGE_CHARS].rstrip()}… [{left_out:,} characters left out]"
    first, *rest = shown.splitlines() or [""]
    return "\n".join([first, *(f"  {line}" if line.strip() else "" for line in rest)])
