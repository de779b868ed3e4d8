"""Twins: messages that came in both ways, each of which is stored once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shepherd_memory.memory import documents
from shepherd_memory.memory.documents import Document, NewDocument
from shepherd_memory.storage import tombstones
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.ids import digest_of

MAX_COMPARED = 2000
"""Of a session only so many of the last messages that have no twin are compared with what comes in."""

COMPARED_LIVE = 200
"""The same while somebody waits: what is chatted now stands at the end of its transcript."""

MAX_NAME = 200

Lines = tuple[str, ...]


@dataclass
class _Stored:
    """A message of the other way that has no twin yet.

    Of a forgotten one there is only a digest; nothing that was said after `forgotten_at` is its twin.
    """

    session_id: str
    message_id: str
    role: str
    lines: Lines
    digest: str
    forgotten_at: int | None = None
    is_taken: bool = False

    def may_be(self, document: NewDocument) -> bool:
        if self.is_taken:
            return False
        if self.forgotten_at is not None:
            return document.created_at <= self.forgotten_at
        return self.role == document.role


def spoken_lines(text: str) -> Lines:
    """What two ways of the same words have in common: the lines, however they are spaced."""
    return tuple(line for line in (" ".join(raw.split()) for raw in text.splitlines()) if line)


def digest_of_said(role: str, text: str) -> str:
    """What is kept of a message that was forgotten, to know it by if it comes in the other way."""
    return digest_of("\n".join((role, *spoken_lines(text))))


def set_apart(
    tx: Connection,
    user_id: str,
    new: Sequence[NewDocument],
    others: Sequence[str],
    compared: int = MAX_COMPARED,
    group: str = MAIN_GROUP,
) -> dict[int, bool]:
    """Which of the messages are stored, or were forgotten, in these other sessions; that is written down.

    Their places in `new`, which are messages of one session that are not stored themselves, and whether they
    are there and that was not known before. Each message has one twin: what was said twice is stored twice.
    """
    if not new or not others:
        return {}
    noted = _noted(tx, user_id, new, group)
    comparison = _Comparison(_stored(tx, user_id, others, compared, group))
    rows: list[dict[str, object]] = []
    apart: dict[int, bool] = {}
    for place, document in enumerate(new):
        if document.message_id in noted:
            apart[place] = False
        elif found := comparison.twins_of(document):
            apart[place] = found[0][0].forgotten_at is None
            rows += (_row(user_id, document, one, is_part) for one, is_part in found)
    _note(tx, rows)
    return apart


def _note(tx: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    tx.execute_many(
        "insert into twins (user_id, group_name, session_id, message_id, stored_session, stored_message,"
        " is_part, said_at) values (:user_id, :group, :session_id, :message_id, :stored_session,"
        " :stored_message, :is_part, :said_at) on conflict (user_id, group_name, session_id, message_id,"
        " stored_session, stored_message) do nothing",
        rows,
    )


class _Comparison:
    """What comes in, compared with what is there of the other way."""

    def __init__(self, stored: Sequence[_Stored]) -> None:
        self._stored = stored

    def twins_of(self, document: NewDocument) -> list[tuple[_Stored, bool]]:
        """The messages that hold its words, and whether they hold more than that."""
        lines = spoken_lines(document.text)
        if not lines or document.tool_names:
            return []
        digest = digest_of_said(document.role, document.text)
        open_ones = [one for one in self._stored if one.may_be(document)]
        if same := next((one for one in open_ones if one.digest == digest), None):
            same.is_taken = True
            return [(same, False)]
        # An answer of several blocks is one message for a server, and as many lines in a file.
        return _blocks_of(lines, open_ones) if document.role == "assistant" else []


def _blocks_of(lines: Lines, stored: Sequence[_Stored]) -> list[tuple[_Stored, bool]]:
    """The one message that an answer is a block of, or those that are its blocks."""
    if whole := next((one for one in stored if _holds(one.lines, lines)), None):
        return [(whole, True)]
    for first in range(len(stored)):
        blocks = list(_leading(lines, stored[first:]))
        if blocks:
            for one in blocks:
                one.is_taken = True
            return [(one, False) for one in blocks]
    return []


def _holds(whole: Lines, part: Lines) -> bool:
    last = len(whole) - len(part)
    return last > 0 and any(whole[at : at + len(part)] == part for at in range(last + 1))


def _leading(lines: Lines, stored: Sequence[_Stored]) -> Iterator[_Stored]:
    """The first of these messages, if they come to just these lines; nothing if they do not."""
    found: list[_Stored] = []
    rest = lines
    for one in stored:
        if not rest or not one.lines or rest[: len(one.lines)] != one.lines:
            break
        found.append(one)
        rest = rest[len(one.lines) :]
    return iter(found if not rest else ())


def cut_read_blocks(
    tx: Connection,
    user_id: str,
    new: Sequence[NewDocument],
    transcript: str,
    places: Sequence[int],
    group: str = MAIN_GROUP,
) -> dict[int, str]:
    """What is left of answers of which a transcript has the first blocks, because it was read meanwhile.

    They are among these `places` of `new`, which are messages of one live session. Such blocks stand at the
    transcript's end, behind what the user said before the answer; that they are known is written down.
    """
    answers = [place for place in places if _has_blocks(new[place])]
    asked, blocks = _last_turn(tx, user_id, transcript, group) if answers else ("", [])
    for place in answers if blocks else ():
        before = [one for one in new[:place] if one.role == "user" and one.text]
        if before and digest_of_said("user", before[-1].text) != asked:
            continue
        if read := _read_of(spoken_lines(new[place].text), blocks):
            _note(tx, [_row(user_id, new[place], one, False) for one in read])
            return {place: _without_lines(new[place].text, sum(len(one.lines) for one in read))}
    return {}


def _has_blocks(document: NewDocument) -> bool:
    """Whether it may be an answer of several blocks: each has a line at least."""
    return document.role == "assistant" and not document.tool_names and "\n" in document.text.strip()


def _last_turn(tx: Connection, user_id: str, session_id: str, group: str) -> tuple[str, list[_Stored]]:
    """What the user said last in a transcript, as a digest, and what was answered that has no twin."""
    rows = tx.rows(
        f"select message_id, role, text, case when {_HAS_NO_TWIN} then 0 else 1 end from documents d"
        " where user_id = :user_id and group_name = :group and session_id = :session_id"
        " and type = 'message' and tool_names = '' and text <> '' order by id desc limit :limit",
        user_id=user_id,
        group=group,
        session_id=session_id,
        limit=COMPARED_LIVE,
    )
    answers: list[_Stored] = []
    for message_id, role, text, has_twin in rows:
        said = digest_of_said(role, text)
        if role == "user":
            return said, answers[::-1]
        if not has_twin:
            answers.append(_Stored(session_id, message_id, role, spoken_lines(text), said))
    return "", answers[::-1]


def _read_of(lines: Lines, blocks: Sequence[_Stored]) -> Sequence[_Stored]:
    """The last of these blocks, as many as an answer of these lines begins with; it has more than them."""
    for first in range(len(blocks)):
        read = tuple(line for one in blocks[first:] for line in one.lines)
        if len(read) < len(lines) and lines[: len(read)] == read:
            return blocks[first:]
    return ()


def _without_lines(text: str, number: int) -> str:
    """A text without its first lines, of which empty ones do not count."""
    lines = text.splitlines(keepends=True)
    spoken = [at for at, line in enumerate(lines) if line.split()]
    return "".join(lines[spoken[number] :])


def _noted(tx: Connection, user_id: str, new: Sequence[NewDocument], group: str) -> set[str]:
    """Those that came before, and were found to be twins then."""
    session_id, names = new[0].session_id, [document.message_id for document in new]
    found: set[str] = set()
    for at in range(0, len(names), documents.LOOKED_UP):
        page = {f"m{number}": name for number, name in enumerate(names[at : at + documents.LOOKED_UP])}
        rows = tx.rows(
            "select message_id from twins where user_id = :user_id and group_name = :group"
            f" and session_id = :session_id and message_id in ({', '.join(f':{name}' for name in page)})",
            user_id=user_id,
            group=group,
            session_id=session_id,
            **page,
        )
        found |= {row[0] for row in rows}
    return found


_HAS_NO_TWIN = (
    "not exists (select 1 from twins t where t.user_id = d.user_id and t.group_name = d.group_name"
    " and t.stored_session = d.session_id and t.stored_message = d.message_id and t.is_part = 0)"
)


def _stored(tx: Connection, user_id: str, others: Sequence[str], compared: int, group: str) -> list[_Stored]:
    """What the other sessions have that has no twin, in their order; what was forgotten of them last."""
    return [
        *(one for session_id in others for one in _messages(tx, user_id, session_id, compared, group)),
        *(one for session_id in others for one in _forgotten(tx, user_id, session_id, group)),
    ]


def _messages(tx: Connection, user_id: str, session_id: str, compared: int, group: str) -> list[_Stored]:
    rows = tx.rows(
        "select message_id, role, text from documents d where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and type = 'message' and tool_names = '' and text <> ''"
        f" and {_HAS_NO_TWIN} order by id desc limit :limit",
        user_id=user_id,
        group=group,
        session_id=session_id,
        limit=compared,
    )
    return [
        _Stored(session_id, message_id, role, spoken_lines(text), digest_of_said(role, text))
        for message_id, role, text in reversed(rows)
    ]


def _forgotten(tx: Connection, user_id: str, session_id: str, group: str) -> list[_Stored]:
    rows = tx.rows(
        "select key, deleted_at from tombstones where user_id = :user_id and group_name = :group"
        " and kind = :said and session_id = :session_id order by key limit :limit",
        user_id=user_id,
        group=group,
        said=tombstones.SAID,
        session_id=session_id,
        limit=MAX_COMPARED,
    )
    named = [(*key.partition(":")[::2], int(deleted_at)) for key, deleted_at in rows]
    taken = _taken(tx, user_id, session_id, group) if named else set()
    return [
        _Stored(session_id, message_id, "", (), digest, deleted_at)
        for digest, message_id, deleted_at in named
        if message_id not in taken
    ]


def _taken(tx: Connection, user_id: str, session_id: str, group: str) -> set[str]:
    rows = tx.rows(
        "select stored_message from twins where user_id = :user_id and group_name = :group"
        " and stored_session = :session_id and is_part = 0",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    return {row[0] for row in rows}


def _row(user_id: str, document: NewDocument, stored: _Stored, is_part: bool) -> dict[str, object]:
    return {
        "user_id": user_id,
        "group": document.group_name,
        "session_id": document.session_id,
        "message_id": document.message_id,
        "stored_session": stored.session_id,
        "stored_message": stored.message_id,
        "is_part": int(is_part),
        "said_at": document.created_at,
    }


def note_forgotten(tx: Connection, user_id: str, document: Document, now: int) -> None:
    """A message is forgotten: it stays out also if it comes in the other way."""
    key = f"{digest_of_said(document.role, document.text)}:{document.message_id[:MAX_NAME]}"
    tombstones.add(tx, user_id, tombstones.SAID, key, now, document.session_id, document.group_name)


def of_stored(
    connection: Connection, user_id: str, session_id: str, message_id: str, group: str = MAIN_GROUP
) -> list[tuple[str, int]]:
    """The sessions in which a stored message counts, too, and when it was said there."""
    rows = connection.rows(
        "select session_id, said_at from twins where user_id = :user_id and group_name = :group"
        " and stored_session = :session_id and stored_message = :message_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
        message_id=message_id,
    )
    return [(session, int(said_at)) for session, said_at in rows]


def delete_session(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> None:
    """A session is forgotten, or read anew: none of its messages has been compared."""
    tx.execute(
        "delete from twins where user_id = :user_id and group_name = :group and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
