"""What comes in: exchanges and documents, stored and queued for extraction in one transaction."""

import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from shepherd_memory.extraction import queue
from shepherd_memory.extraction.queue import QueuedMessage
from shepherd_memory.intake.alignment import align
from shepherd_memory.intake.exchange import (
    GAP_SECONDS,
    AnsweredExchange,
    Exchange,
    repeated_id,
    storable_folder,
)
from shepherd_memory.intake.messages import (
    EMPTY,
    Message,
    Skipped,
    kept_as_extra,
    read_messages,
    storable_name,
)
from shepherd_memory.intake.tool_results import called_tools, unnamed_calls
from shepherd_memory.memory import (
    documents,
    entries,
    responses,
    session_documents,
    sessions,
    threads,
    twins,
)
from shepherd_memory.memory.documents import NewDocument
from shepherd_memory.memory.responses import StoredResponse
from shepherd_memory.memory.session_tail import read_live
from shepherd_memory.memory.sessions import NOWHERE, Place
from shepherd_memory.storage import erasures, tombstones, users
from shepherd_memory.storage.clock import SECOND, to_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.text.canonical import canonical_text, load_json
from shepherd_memory.text.ids import digest_of, storable_id
from shepherd_memory.text.redaction import redact

LOOKED_BACK = 20
"""Messages with calls of tools in which the one is looked for that a result is of."""


@dataclass(frozen=True)
class Remembered:
    """What became of messages handed to `remember`.

    `stored` counts the messages that are new, `known` those that were there already or were deleted by
    the user, `skipped` lists those that cannot be stored; `queued` says whether the user's statements wait
    for extraction. `reason` says why nothing was stored, when nothing was.
    """

    session_id: str
    stored: int = 0
    known: int = 0
    queued: bool = False
    message_ids: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class IntakeOptions:
    """How to take in: whether documents are kept, and whether an endpoint is there to extract.

    `rest_us`: queue only once the session has been silent for so long; where documents are not kept, at once.
    `agent_name`: who answers, in a session that has no name of its own for that.
    `place`: where it is chatted, as far as that is known.
    """

    keep_documents: bool
    can_extract: bool
    rest_us: int = 0
    place: Place = NOWHERE
    agent_name: str = ""

    @property
    def waits(self) -> bool:
        """Whether what comes in is stored now and queued later."""
        return self.keep_documents and self.rest_us > 0


def remember(
    database: Database,
    user_id: str,
    raw_messages: Sequence[object],
    session_id: str | None,
    group_name: str,
    how: IntakeOptions,
    extract: bool,
    now: int,
) -> Remembered:
    """Store messages once, and queue what the user said in them."""
    session = storable_id(session_id) if session_id else uuid.uuid4().hex
    calls = _earlier_calls(database, user_id, raw_messages, session, group_name)
    messages, skipped = read_messages(raw_messages, session, now, calls)
    result = store_messages(database, user_id, messages, session, group_name, how, extract, now)
    return replace(result, skipped=tuple(skipped))


def _earlier_calls(
    database: Database, user_id: str, raw_messages: Sequence[object], session_id: str, group: str
) -> dict[str, str]:
    """The tools behind results that come without their calls, which were stored before."""
    if not unnamed_calls(raw_messages, called_tools(raw_messages)):
        return {}
    with database.read() as connection:
        live = sessions.live_id(connection, user_id, session_id, group)
        asked = session_documents.last_calls(connection, user_id, live, LOOKED_BACK, group)
    return called_tools(load_json(extra) for extra in asked)


def remember_exchange(
    database: Database,
    user_id: str,
    answered: AnsweredExchange,
    how: IntakeOptions,
    now: int,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Remembered:
    """Store what the user said last and the answer to it, once, and queue the former.

    Nothing is stored if its user was erased, or its session forgotten, after it was said. `is_wanted` is
    asked when the transaction has begun: whoever wanted it stored may not have waited for that.
    """
    session, exchange, block_key = _located(database, user_id, answered)
    if not session:
        return Remembered("", reason="what the user said before is not known here")
    how = replace(how, place=Place(storable_name(answered.provider), answered.cwd))
    again = _is_said_again(database, user_id, session, exchange, answered)
    both = exchange.messages(session, answered.answer, answered.said_at, again)
    kept = [message for message in both if not message.is_empty]
    skipped = [Skipped(index, EMPTY) for index, message in enumerate(both) if message.is_empty]

    def check(tx: Connection) -> None:
        _check_wanted(tx, user_id, session, answered, is_wanted)

    def note(tx: Connection, live: str) -> None:
        if answered.link.response:
            response = StoredResponse(live, exchange.place + 2, block_key)
            responses.put(tx, user_id, answered.link.response, response, now, answered.group)

    try:
        if not kept:
            return _noted_only(database, user_id, session, check, note)
        result = store_messages(
            database, user_id, kept, session, answered.group, how, True, now, answered.said_at, check, note
        )
    except _LeftOut as reason:
        return Remembered(session, reason=str(reason))
    return replace(result, skipped=tuple(skipped))


def _check_wanted(
    tx: Connection,
    user_id: str,
    session_id: str,
    answered: AnsweredExchange,
    is_wanted: Callable[[], bool],
) -> None:
    said_at, group = answered.said_at, answered.group
    if not is_wanted():
        raise _LeftOut("nobody waits for it any more")
    if erasures.is_erased_since(tx, user_id, said_at):
        raise _LeftOut("the user was erased after it was said")
    if tombstones.exists(tx, user_id, tombstones.SESSION, session_id, said_at, group):
        raise _LeftOut("its session was forgotten after it was said")


def _located(database: Database, user_id: str, answered: AnsweredExchange) -> tuple[str, Exchange, str]:
    """The session of an exchange, the exchange where it stands in it, and the key of its last turn.

    It stands behind what it goes on from; where the user says nothing, the last turn is that of before. Of a
    response that is not known here, or is another user's, nothing is known but its id: what goes on from it
    is a session of its own, and no session if the user says nothing.
    """
    link, exchange = answered.link, answered.exchange
    if not link.previous:
        return answered.session_id or _session_of(database, user_id, answered), exchange, link.block_key
    with database.read() as connection:
        previous = responses.find(connection, user_id, link.previous, answered.said_at, answered.group)
    if previous is None:
        session = (answered.session_id or digest_of(link.previous)) if exchange.has_words else ""
        return session, exchange, link.block_key
    behind = replace(exchange, place=exchange.place + previous.messages)
    return answered.session_id or previous.session_id, behind, link.block_key or previous.block_key


def _is_said_again(
    database: Database, user_id: str, session_id: str, exchange: Exchange, answered: AnsweredExchange
) -> bool:
    """Whether what seems to be a request that comes again is a statement that does.

    Clients that repeat the whole conversation say it at another place. Those that send only the last message,
    or a window, say everything at the same place: what was said last stands at it, too.
    """
    if not (exchange.is_last and exchange.has_words):
        return False
    said_at, group = answered.said_at, answered.group
    with database.read() as connection:
        live = sessions.live_id(connection, user_id, session_id, group)
        known = session_documents.get_message(
            connection, user_id, live, exchange.message_id(session_id), group
        )
        last = session_documents.last_said(connection, user_id, live, group) if known else None
    if known is None or last is None or last.text == known.text or to_us(known.created_at) == said_at:
        return False
    at_same_place = exchange.message_id(session_id, last.text)
    return last.message_id in (at_same_place, repeated_id(at_same_place, to_us(last.created_at)))


def _session_of(database: Database, user_id: str, answered: AnsweredExchange) -> str:
    gap = GAP_SECONDS * SECOND
    since, until = answered.said_at - gap, answered.said_at + gap
    with database.read() as connection:
        return sessions.continued(
            connection, user_id, answered.exchange.opening, since, until, answered.group
        )


def _noted_only(
    database: Database,
    user_id: str,
    session_id: str,
    check: Callable[[Connection], None],
    note: Callable[[Connection, str], None],
) -> Remembered:
    """Of a round of a tool loop that says nothing there is only its response to note."""
    with database.write() as tx:
        if users.lock_existing(tx, user_id) is not None:
            check(tx)
            note(tx, session_id)
    return Remembered(session_id, reason="there is nothing to store in these messages")


class _LeftOut(Exception):
    """What is not to be stored after all: raised in its transaction, which it rolls back."""


def store_messages(
    database: Database,
    user_id: str,
    messages: Sequence[Message],
    session_id: str,
    group_name: str,
    how: IntakeOptions,
    extract: bool,
    now: int,
    said_at: int | None = None,
    check: Callable[[Connection], None] = lambda tx: None,
    note: Callable[[Connection, str], None] = lambda tx, session_id: None,
) -> Remembered:
    """Store messages that are storable as they are, and queue what the user said in them.

    `said_at`: when, if it was not now. `check` may raise when the user's row is held: nothing is stored then.
    `note` is given the session that they are stored in, to write down with them what else there is of it.
    """
    nothing = Remembered(session_id, message_ids=tuple(message.message_id for message in messages))
    if not messages:
        return replace(nothing, reason="there is nothing to store in these messages")
    if not how.keep_documents and not (extract and how.can_extract):
        return replace(nothing, reason="memory_documents is off, and no extraction will read these messages")
    terms = [entries.terms_of(message.text) if how.keep_documents else Counter() for message in messages]
    with database.write() as tx:
        first_id = users.lock(tx, user_id, now, rows=len(messages) + 1)
        check(tx)
        session = read_live(tx, user_id, session_id, group_name)
        if session.memory_mode != sessions.ON:
            return replace(nothing, reason=f"the memory of this session is {session.memory_mode}")
        live = session.id
        # Who says what, where a message does not say it itself.
        speakers = {"user": user_id, "assistant": session.agent_name or how.agent_name}
        note(tx, live)
        ids = align(tx, user_id, live, messages, first_id, group_name)
        whole = [
            _document_of(message, message_id, live, group_name, speakers)
            for message, message_id in zip(messages, ids, strict=True)
        ]
        new, apart = _without_twins(tx, user_id, whole, live, group_name)
        terms = _counted_again(whole, new, terms)
        stored, queued = _store(
            tx, user_id, first_id, new, terms, how, extract, now, now if said_at is None else said_at, apart
        )
    return Remembered(live, stored, len(new) - stored, queued, message_ids=tuple(ids))


def _without_twins(
    tx: Connection, user_id: str, new: list[NewDocument], session_id: str, group: str
) -> tuple[list[NewDocument], set[int]]:
    """The messages, and the places of those that are stored already: a transcript of the session has them.

    Of an answer whose first blocks were read there before it came, the rest.
    """
    others = threads.transcripts_of_live(tx, user_id, session_id, group)
    if not others:
        return new, set()
    known = documents.find_known(tx, user_id, new)
    places = [
        place for place, document in enumerate(new) if (group, session_id, document.message_id) not in known
    ]
    found = twins.set_apart(tx, user_id, [new[place] for place in places], others, twins.COMPARED_LIVE, group)
    apart = {places[number] for number in found}
    unknown = [place for place in places if place not in apart]
    rest = {
        place: text
        for transcript in others
        for place, text in twins.cut_read_blocks(tx, user_id, new, transcript, unknown, group).items()
    }
    return ([replace(one, text=rest.get(n, one.text)) for n, one in enumerate(new)] if rest else new), apart


def _counted_again(
    before: Sequence[NewDocument], after: Sequence[NewDocument], terms: list[Counter[str]]
) -> list[Counter[str]]:
    """The words of messages that were cut; those of the others are counted already."""
    return [
        counted if was.text == is_now.text or not counted else entries.terms_of(is_now.text)
        for was, is_now, counted in zip(before, after, terms, strict=True)
    ]


def _document_of(
    message: Message, message_id: str, session_id: str, group_name: str, speakers: Mapping[str, str]
) -> NewDocument:
    """A live message as a document; `speakers`: who has which role, where a message does not say it."""
    return NewDocument(
        session_id=session_id,
        message_id=message_id,
        text=message.text,
        created_at=message.created_at,
        role=message.role,
        speaker_type=message.speaker_type,
        speaker_name=message.speaker_name or speakers.get(message.role, ""),
        extra=message.extra,
        group_name=group_name,
        tool_names=message.tool_names,
    )


def _store(
    tx: Connection,
    user_id: str,
    first_id: int,
    new: list[NewDocument],
    terms: list[Counter[str]],
    how: IntakeOptions,
    extract: bool,
    now: int,
    said_at: int,
    apart: set[int],
) -> tuple[int, bool]:
    """Documents, work item and watermarks; how many documents are new, and whether something was queued."""
    kept = new if how.keep_documents else [replace(document, text="", extra=None) for document in new]
    stored = documents.insert(tx, user_id, first_id, kept, now, apart)
    if not stored:
        return 0, False
    if how.keep_documents:
        index(tx, user_id, first_id, new, terms, stored, now)
    said = [
        QueuedMessage(document_id, document.message_id, min(document.created_at, now), document.text)
        for document_id, document in enumerate(new, first_id)
        if document_id in stored and document.role == "user" and document.text
    ]
    session_id, last = new[0].session_id, max(stored)
    queueing = extract and how.can_extract and bool(said) and not how.waits
    if queueing:
        carried = () if how.keep_documents else said
        queue.put(tx, user_id, first_id + len(new), session_id, last, now, carried, new[0].group_name)
    sessions.extend(
        tx,
        user_id,
        session_id,
        last,
        new[0].group_name,
        said_at,
        wanted=extract and bool(said),
        queued=queueing,
        extract_after=now + how.rest_us if how.waits else 0,
        place=how.place,
    )
    return len(stored), queueing


def index(
    tx: Connection,
    user_id: str,
    first_id: int,
    new: Sequence[NewDocument],
    terms: Sequence[Counter[str]],
    stored: set[int],
    now: int,
) -> None:
    """Make those of the new documents findable that were stored, by the words that were counted in them."""
    found_by = [
        entry_of(document_id, document, counted)
        for document_id, (document, counted) in enumerate(zip(new, terms, strict=True), first_id)
        if document_id in stored and document.text
    ]
    entries.add(tx, user_id, found_by, now)


def entry_of(document_id: int, document: NewDocument, terms: Counter[str]) -> entries.Entry:
    """What a document is found by."""
    return entries.Entry(
        document_id,
        entries.DOCUMENT,
        document.session_id,
        document.role,
        document.speaker_name,
        document.created_at,
        terms,
        document.group_name,
    )


def add_document(
    database: Database, user_id: str, document: NewDocument, extra: object, now: int
) -> tuple[int, bool]:
    """Store one document with its facets; its id, and whether it is new."""
    clean = _clean(document, extra)
    terms = entries.terms_of(clean.text)
    with database.write() as tx:
        document_id = users.lock(tx, user_id, now)
        stored = documents.insert(tx, user_id, document_id, [clean], now)
        if stored:
            index(tx, user_id, document_id, [clean], [terms], stored, now)
            return document_id, True
        row = tx.row(
            "select id from documents where user_id = :user_id and group_name = :group"
            " and session_id = :session_id and message_id = :message_id",
            user_id=user_id,
            group=clean.group_name,
            session_id=clean.session_id,
            message_id=clean.message_id,
        )
        return (row[0] if row else 0), False


def storable_place(provider: str, cwd: str = "") -> Place:
    """Where something is chatted, canonical and free of secrets."""
    return Place(storable_name(provider), storable_folder(cwd) if cwd else "")


def _clean(document: NewDocument, extra: object) -> NewDocument:
    def text(value: str) -> str:
        return redact(canonical_text(value))

    return replace(
        document,
        session_id=storable_id(document.session_id),
        message_id=storable_id(document.message_id) if document.message_id else uuid.uuid4().hex,
        text=text(document.text),
        role=text(document.role),
        speaker_name=text(document.speaker_name),
        source=text(document.source),
        source_file=text(document.source_file),
        tool_names=text(document.tool_names),
        cwd=text(document.cwd),
        made_of=storable_id(document.made_of) if document.made_of else "",
        extra=None if extra is None else kept_as_extra(extra),
    )
