"""What a new session is handed on: the session before it, and what is known, as far as is asked for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shepherd_memory.config import Config
from shepherd_memory.injection.previous_session import (
    ContextSection,
    PreviousSession,
    RecordedMessage,
    SessionRecord,
    tell_context,
    tell_session,
)
from shepherd_memory.intake.handed_in import HandedInMessage, read_transcript
from shepherd_memory.memory import session_lives
from shepherd_memory.memory.session_lives import SessionLife
from shepherd_memory.storage import prompt_blocks
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.block_seal import RECORD_NOTE
from shepherd_memory.text.groups import GLOBAL_GROUP
from shepherd_memory.text.tokens import estimate_tokens

ORDERED = 200
"""So many of the last messages stored are put into the order in which they were said, then as many before."""

READ_AT_ONCE = 16
"""Messages whose texts are read together: a session may hold hundreds of megabytes."""

CONTEXT_SHARE = 4
"""Each category takes at most a quarter of the budget."""

MAX_CONTEXT_DOCUMENTS = 50

WINDOW_SHARE = 4
"""All of it takes at most a quarter of the model's context window."""

CONTEXTS = {
    "none": (),
    "identity": ("identity",),
    "knowledge": ("knowledge",),
    "both": ("identity", "knowledge"),
}

_SAID = (
    "from documents where user_id = :user_id and group_name = :group and session_id = :session_id"
    " and type = 'message' and role in ('user', 'assistant')"
)


@dataclass(frozen=True)
class HandedOn:
    """What stands above the facts of a block: its text, the documents in it, and marks of what is none."""

    text: str = ""
    document_ids: tuple[int, ...] = ()
    shortened_ids: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()

    @property
    def whole_ids(self) -> frozenset[int]:
        """The documents of which nothing was left out."""
        return frozenset(self.document_ids).difference(self.shortened_ids)

    @property
    def tokens(self) -> int:
        return estimate_tokens(f"{self.text}\n") if self.text else 0


NOTHING = HandedOn()


@dataclass(frozen=True)
class HandingRules:
    """How much is handed on, what an agent is called who has no name, and which categories are asked for."""

    tokens: int
    agent_name: str = ""
    categories: tuple[str, ...] = ()


def handing_rules(config: Config, context_window: int = 0, max_tokens: int | None = None) -> HandingRules:
    """What the configuration says, for a model with such a window; 0: nobody says how large it is."""
    wanted = config.session_rehydration_tokens if max_tokens is None else max_tokens
    tokens = min(wanted, context_window // WINDOW_SHARE) if context_window else wanted
    return HandingRules(tokens, config.agent_name, CONTEXTS[config.session_rehydration_context])


def hand_on(connection: Connection, user_id: str, life: SessionLife, rules: HandingRules) -> HandedOn:
    """What a session that was started is told of what was before it, in its group."""
    group = life.group_name
    found = [
        _read_context(connection, user_id, category, rules.tokens // CONTEXT_SHARE, group)
        for category in rules.categories
    ]
    sections = [section for section in found if section is not None]
    left = rules.tokens - sum(estimate_tokens(f"{section.text}\n") for section in sections)
    previous = tell_previous(connection, user_id, life, left, rules.agent_name)
    return _joined(previous, sections)


def is_handed_in(
    connection: Connection, user_id: str, session_id: str, marks: Sequence[str], group: str
) -> bool:
    """Whether all that has these marks is still in the transcript that a session was started with."""
    if not marks:
        return True
    transcript = read_transcript(session_lives.handed_in(connection, user_id, session_id, group))
    return set(marks) <= {prompt_blocks.text_mark(message.text, group) for message in transcript}


@dataclass(frozen=True)
class PreviousRequest:
    """Which session is asked for: one by its id, or the one before `current`, perhaps of a project."""

    session_id: str = ""
    current: str = ""
    cwd: str = ""


def find_previous(
    connection: Connection, user_id: str, asked: PreviousRequest, rules: HandingRules, group: str
) -> PreviousSession | None:
    """The session that is asked for; None if the group has none, or nothing was said in it."""
    life = session_lives.get(connection, user_id, asked.current, group) if asked.current else None
    if not asked.session_id and life is not None and life.status != session_lives.UNSTARTED:
        return tell_previous(connection, user_id, life, rules.tokens, rules.agent_name)
    session_id = asked.session_id or session_lives.newest_other(
        connection, user_id, asked.current, group, asked.cwd
    )
    return tell_named(connection, user_id, session_id, rules.tokens, rules.agent_name, group)


def tell_previous(
    connection: Connection,
    user_id: str,
    life: SessionLife,
    max_tokens: int,
    agent_name: str,
) -> PreviousSession | None:
    """The transcript that was handed in, else the session that this one follows."""
    stored = session_lives.handed_in(connection, user_id, life.session_id, life.group_name)
    if transcript := read_transcript(stored):
        names = {"human": user_id, "agent": life.agent_name or agent_name}
        return tell_session(_read_handed_in(transcript, names, life.group_name), max_tokens)
    return tell_named(connection, user_id, life.previous_session, max_tokens, agent_name, life.group_name)


def tell_named(
    connection: Connection, user_id: str, session_id: str, max_tokens: int, agent_name: str, group: str
) -> PreviousSession | None:
    """One session of a group; None if there is none, or nothing was said in it, or there is no room."""
    life = session_lives.get(connection, user_id, session_id, group) if session_id else None
    if life is None or max_tokens <= 0:
        return None
    names = {"human": user_id, "agent": life.agent_name or agent_name}
    record = _read_session(connection, user_id, session_id, names, group)
    return None if record is None else tell_session(record, max_tokens)


def _joined(previous: PreviousSession | None, sections: Sequence[ContextSection]) -> HandedOn:
    texts = [section.text for section in sections]
    known = [number for section in sections for number in section.document_ids]
    if previous is None:
        return HandedOn("\n".join([RECORD_NOTE, *texts]), tuple(known)) if texts else NOTHING
    element = previous.text.removeprefix(f"{RECORD_NOTE}\n")
    return HandedOn(
        "\n".join([RECORD_NOTE, *texts, element]),
        tuple(dict.fromkeys((*known, *previous.document_ids))),
        previous.shortened_ids,
        previous.marks,
    )


def _read_session(
    connection: Connection, user_id: str, session_id: str, names: Mapping[str, str], group: str
) -> SessionRecord | None:
    """A session of a group, of which no more is read than is asked for; None if nothing was said in it.

    `names` are those of a human and of an agent who have none.
    """
    row = connection.row(f"select count(*) {_SAID}", user_id=user_id, group=group, session_id=session_id)
    order = _said_last(connection, user_id, session_id, group)
    if row is None or not order:
        return None
    messages = _newest_first(connection, user_id, session_id, names, group)
    return SessionRecord(session_id, from_us(order[0][0]), int(row[0]), messages)


def _read_handed_in(
    transcript: Sequence[HandedInMessage], names: Mapping[str, str], group: str
) -> SessionRecord:
    """A transcript that a client handed in; it has no session of ours."""
    said = [
        RecordedMessage(
            document_id=0,
            role=one.role,
            speaker_type=one.speaker_type,
            speaker_name=one.speaker_name or names[one.speaker_type],
            text=one.text,
            said_at=one.created_at,
            mark=prompt_blocks.text_mark(one.text, group),
        )
        for one in transcript
    ]
    newest_first = sorted(reversed(said), key=lambda message: -message.said_at)
    return SessionRecord("", from_us(newest_first[0].said_at), len(said), newest_first)


def _read_context(
    connection: Connection, user_id: str, category: str, max_tokens: int, group: str
) -> ContextSection | None:
    """The newest documents of a category in the group and in `global`."""
    rows = connection.rows(
        "select id, text from documents where user_id = :user_id and category = :category"
        " and group_name in (:group, :shared) order by created_at desc, id desc limit :limit",
        user_id=user_id,
        category=category,
        group=group,
        shared=GLOBAL_GROUP,
        limit=MAX_CONTEXT_DOCUMENTS,
    )
    return tell_context(category, rows, max_tokens)


def _newest_first(
    connection: Connection, user_id: str, session_id: str, names: Mapping[str, str], group: str
) -> Iterator[RecordedMessage]:
    before = None
    while order := _said_last(connection, user_id, session_id, group, before):
        for at in range(0, len(order), READ_AT_ONCE):
            ids = [number for _, number in order[at : at + READ_AT_ONCE]]
            yield from _texts(connection, user_id, ids, names)
        before = min(number for _, number in order)


def _said_last(
    connection: Connection, user_id: str, session_id: str, group: str, before: int | None = None
) -> list[tuple[int, int]]:
    """When the last messages were said that were stored, and their ids, the newest first."""
    rows = connection.rows(
        f"select created_at, id {_SAID}{' and id < :before' if before is not None else ''}"
        " order by id desc limit :limit",
        user_id=user_id,
        group=group,
        session_id=session_id,
        limit=ORDERED,
        **({"before": before} if before is not None else {}),
    )
    return sorted(((row[0], row[1]) for row in rows), reverse=True)


def _texts(
    connection: Connection, user_id: str, ids: Sequence[int], names: Mapping[str, str]
) -> Iterator[RecordedMessage]:
    wanted = {f"id{at}": number for at, number in enumerate(ids)}
    rows = connection.rows(
        "select id, role, speaker_type, speaker_name, text, created_at from documents"
        f" where user_id = :user_id and id in ({', '.join(f':{name}' for name in wanted)})",
        user_id=user_id,
        **wanted,
    )
    found = {row[0]: row for row in rows}
    for number in ids:
        if number in found:
            _, role, speaker_type, name, text, said_at = found[number]
            named = name or names["human" if role == "user" else "agent"]
            yield RecordedMessage(number, role, speaker_type, named, text, said_at)
