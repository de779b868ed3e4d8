"""Forgetting one thing, and what hangs together with it, for good."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from shepherd_memory.conversations import conversation
from shepherd_memory.errors import InvalidInput
from shepherd_memory.extraction import queue
from shepherd_memory.intake.handed_in import read_transcript, without_texts
from shepherd_memory.intake.messages import MAX_QUERY_CHARS
from shepherd_memory.maintenance import related
from shepherd_memory.maintenance.related import Bundle, Forgettable, RelatedMemory
from shepherd_memory.maintenance.same_said import COMPARED, Near, find_same
from shepherd_memory.memory import (
    context,
    documents,
    entries,
    facts,
    responses,
    session_documents,
    session_lives,
    session_openings,
    sessions,
    set_aside,
    threads,
    twins,
    unconfirmed,
)
from shepherd_memory.memory.documents import PHASE2, Document
from shepherd_memory.phases import sections, withholding
from shepherd_memory.phases.sections import DOCUMENT_SESSION
from shepherd_memory.storage import prompt_blocks, tombstones, transcript_stops, users
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.tombstones import (
    CONTEXT,
    DOCUMENT,
    FACT,
    SESSION,
    SPARED,
    STATEMENT,
    VALUE,
    WORDS,
)
from shepherd_memory.text.groups import MAIN_GROUP

LISTED = 100
"""So many of each kind are shown of a session before it is forgotten."""

NO_LIMIT = 2**62


@dataclass(frozen=True)
class Forgotten:
    """How many of each were deleted."""

    facts: int = 0
    context: int = 0
    documents: int = 0

    @property
    def total(self) -> int:
        return self.facts + self.context + self.documents

    def __add__(self, other: "Forgotten") -> "Forgotten":
        return Forgotten(
            self.facts + other.facts, self.context + other.context, self.documents + other.documents
        )


@dataclass(frozen=True)
class ForgettingPlan:
    """What forgetting one thing would take, and what says the same elsewhere and stays, unless it is wanted.

    The numbers are of all that goes; of a session only the first of each kind are listed.
    """

    facts: int
    context: int
    documents: int
    goes: list[RelatedMemory]
    same: list[RelatedMemory]

    @property
    def total(self) -> int:
        return self.facts + self.context + self.documents


def plan(
    database: Database,
    user_id: str,
    target: Forgettable,
    group: str = MAIN_GROUP,
    only: bool = False,
    near: Near | None = None,
) -> ForgettingPlan:
    """What `forget` would take, and what it would leave although it says the same."""
    _check_target(target)
    with database.read() as connection:
        bundle = _bundle(connection, user_id, target, group, only)
        parts = threads.parts(connection, user_id, target.name, group) if target.kind == SESSION else ()
        sizes = [sessions.size(connection, user_id, part, group) for part in parts]
        goes = bundle.memories()
        same = [] if only else find_same(connection, user_id, bundle, group, near)
        with_same = related.gather(connection, user_id, [one.target for one in same], group).memories()
    known = {one.target for one in goes}
    # Of a session not all that goes is listed.
    further = [one for one in with_same if one.target not in known and one.session_id not in parts]
    held = (Forgotten(one.facts, one.pairs, one.documents) for one in sizes)
    gone = sum(held, Forgotten()) if parts else _size_of(bundle)
    return ForgettingPlan(gone.facts, gone.context, gone.documents, goes, further)


def _check_target(target: Forgettable) -> None:
    if target == Forgettable(SESSION, DOCUMENT_SESSION):
        raise InvalidInput(
            "memory files are no session: forget one of their documents, or reset them"
            " (shepherd memory files reset)"
        )


def _size_of(bundle: Bundle) -> Forgotten:
    return Forgotten(len(bundle.values()), len(bundle.pairs), len(bundle.documents))


def _bundle(connection: Connection, user_id: str, target: Forgettable, group: str, only: bool) -> Bundle:
    if target.kind == SESSION:
        return _of_session(connection, user_id, target.name, group)
    chosen = related.take if only else related.gather
    return chosen(connection, user_id, [target], group)


def _of_session(connection: Connection, user_id: str, session_id: str, group: str) -> Bundle:
    """The first of what a session holds: enough to show it, and to look for the same elsewhere."""
    bundle = Bundle(is_session=True)
    known = facts.listing(connection, user_id, group)
    for part in threads.parts(connection, user_id, session_id, group):
        made = [fact for fact in known if (fact.session_id, fact.group_name) == (part, group)]
        bundle.stated |= {fact.key: fact for fact in made[:LISTED]}
        ids = context.of_session(connection, user_id, part, group)[:LISTED]
        found = (context.get(connection, user_id, pair_id, group) for pair_id in ids)
        bundle.pairs |= {pair.id: pair for pair in found if pair is not None}
        said = session_documents.of_session(connection, user_id, part, LISTED, group=group)
        bundle.documents |= {document.id: document for document in said}
        bundle.statements |= {(part, document.message_id) for document in said[:COMPARED]}
        pinned = withholding.pinned_around(connection, user_id, said, group)
        edited = (documents.get(connection, user_id, one.id, group) for one in pinned)
        bundle.documents |= {one.id: one for one in edited if one is not None}
    return bundle


def forget(
    database: Database,
    user_id: str,
    target: Forgettable,
    now: int,
    group: str = MAIN_GROUP,
    only: bool = False,
    same: bool = False,
    near: Near | None = None,
) -> Forgotten:
    """Delete one thing of a group with all that hangs together with it, and bury the statements.

    `only`: the one row, and nothing more is made of what it rests on. `same`: also what says the same.
    """
    _check_target(target)
    with database.write() as tx:
        if users.lock_existing(tx, user_id) is None:
            return Forgotten()
        if only and target.kind != SESSION:
            return _forget_only(tx, user_id, related.take(tx, user_id, [target], group), now, group)
        bundle = _bundle(tx, user_id, target, group, only)
        alike = [] if bundle.is_empty else find_same(tx, user_id, bundle, group, near)
        further = [one.target for one in alike] if same else []
        if target.kind == SESSION:
            gone = _forget_session(tx, user_id, target.name, now, group)
            bundle = related.gather(tx, user_id, further, group)
        else:
            gone = Forgotten()
            bundle = related.gather(tx, user_id, [target, *further], group)
        if not same:
            _spare(tx, user_id, alike, now, group)
        return gone + _forget_bundle(tx, user_id, bundle, now, group)


def _spare(tx: Connection, user_id: str, alike: Iterable[RelatedMemory], now: int, group: str) -> None:
    """What has the same words and is not wanted gone stays, also when its file is read again."""
    found = (documents.get(tx, user_id, int(one.id), group) for one in alike if one.kind == DOCUMENT)
    kept = [(one.message_id, one.session_id, now) for one in found if one is not None]
    tombstones.add_all(tx, user_id, SPARED, kept, group)


def messages_to_go(
    database: Database,
    user_id: str,
    target: Forgettable,
    group: str = MAIN_GROUP,
    same: bool = False,
    near: Near | None = None,
) -> list[Document]:
    """The documents that `forget` would delete: a chat on this machine may have saved them."""
    with database.read() as connection:
        parts = threads.parts(connection, user_id, target.name, group) if target.kind == SESSION else ()
        said = [
            document
            for part in parts
            for document in session_documents.of_session(connection, user_id, part, NO_LIMIT, group=group)
        ]
        bundle = _bundle(connection, user_id, target, group, only=False)
        alike = find_same(connection, user_id, bundle, group, near) if same else []
        further = related.gather(connection, user_id, [one.target for one in alike], group)
    return [*said, *bundle.documents.values(), *further.documents.values()]


def _forget_only(tx: Connection, user_id: str, bundle: Bundle, now: int, group: str) -> Forgotten:
    gone = forget_rows(tx, user_id, bundle, now, group)
    spent = bundle.statements - {(one.session_id, one.message_id) for one in bundle.documents.values()}
    tombstones.add_all(tx, user_id, STATEMENT, _in_sessions(spent, now), group)
    return gone


def _forget_bundle(tx: Connection, user_id: str, bundle: Bundle, now: int, group: str) -> Forgotten:
    gone = forget_rows(tx, user_id, bundle, now, group)
    stated = 0
    for session_id, message_id in sorted(bundle.statements):
        stated += facts.delete_statement(tx, user_id, session_id, message_id, now, group)
        set_aside.delete_message(tx, user_id, session_id, message_id, group)
    # Those too of which there is no document: nothing may be made of them.
    tombstones.add_all(tx, user_id, DOCUMENT, _in_sessions(bundle.statements, now), group)
    return gone + Forgotten(facts=stated)


def _in_sessions(statements: Iterable[related.Statement], now: int) -> list[tuple[str, str, int]]:
    return [(message_id, session_id, now) for session_id, message_id in sorted(statements) if message_id]


def forget_rows(tx: Connection, user_id: str, bundle: Bundle, now: int, group: str) -> Forgotten:
    """Delete the facts with their history, the pairs and the documents themselves."""
    _withhold_notes(tx, user_id, bundle, now, group)
    _forget_unconfirmed(tx, user_id, bundle, group)
    keys = sum(facts.delete(tx, user_id, key, now, group) for key in sorted(bundle.keys))
    pairs = sum(context.delete(tx, user_id, pair_id, now, group) for pair_id in sorted(bundle.pairs))
    gone = [documents.delete(tx, user_id, row_id, group) for row_id in sorted(bundle.documents)]
    said = [document for document in gone if document is not None]
    if said:
        _bury(tx, user_id, said, now, group)
        for document in said:
            _lose_entries(tx, user_id, document)
            queue.remove_document(tx, user_id, document.session_id, document.id, group)
        users.bump_version(tx, user_id)
    return Forgotten(keys, pairs, len(said))


def _withhold_notes(tx: Connection, user_id: str, bundle: Bundle, now: int, group: str) -> None:
    """What was made of the conversations that these were said in waits until it is made without them."""
    stated = (
        session_documents.get_message(tx, user_id, session_id, message_id, group)
        for session_id, message_id in sorted(bundle.statements)
    )
    said = {one.id: one for one in (*bundle.documents.values(), *stated) if one is not None}
    withholding.withhold_messages(tx, user_id, said.values(), group)
    past = (one.value for key in sorted(bundle.keys) for one in facts.history(tx, user_id, key, group))
    for value in sorted({*past, *(one.value for one in bundle.values())}):
        if mark := tombstones.value_mark(value):
            tombstones.add(tx, user_id, VALUE, mark, now, group=group)
            withholding.withhold_value(tx, user_id, value, group)


def _forget_unconfirmed(tx: Connection, user_id: str, bundle: Bundle, group: str) -> None:
    """Delete what waits to be confirmed under the same keys and questions, or of the same messages."""
    for key in sorted(bundle.keys):
        unconfirmed.delete_named(tx, user_id, FACT, key, group)
    for pair in bundle.pairs.values():
        unconfirmed.delete_named(tx, user_id, CONTEXT, pair.question, group)
    for document in bundle.documents.values():
        waiting = (set_aside.UNCONFIRMED,)
        set_aside.delete_message(tx, user_id, document.session_id, document.message_id, group, waiting)


def _forget_session(tx: Connection, user_id: str, session_id: str, now: int, group: str) -> Forgotten:
    """Delete a session's documents and everything that was extracted from them."""
    parts = threads.parts(tx, user_id, session_id, group)
    gone = [forget_part(tx, user_id, part, now, group) for part in parts]
    users.bump_version(tx, user_id)
    return sum(gone, Forgotten())


def forget_part(tx: Connection, user_id: str, session_id: str, now: int, group: str) -> Forgotten:
    """Forget a session, or what came of it in one of two ways."""
    withholding.forget_session(tx, user_id, session_id, group)
    gone = session_documents.delete_session(tx, user_id, session_id, group)
    _bury(tx, user_id, gone, now, group)
    pairs = context.of_session(tx, user_id, session_id, group)
    for context_id in pairs:
        context.delete(tx, user_id, context_id, now, group)
    set_aside.delete_session(tx, user_id, session_id, group)
    responses.delete_session(tx, user_id, session_id, group)
    session_lives.forget(tx, user_id, session_id, group)
    removed = facts.delete_session(tx, user_id, session_id, now, group)
    _delete_session(tx, user_id, session_id, group)
    # What was said in it and waits to be stored stays out too.
    tombstones.add(tx, user_id, SESSION, session_id, now, group=group)
    return Forgotten(removed, len(pairs), len(gone))


def _lose_entries(tx: Connection, user_id: str, gone: Document) -> None:
    """The conversations that it was an entry of have one less."""
    session_id, group = gone.session_id, gone.group_name
    conversation.lose_entry(tx, user_id, session_id, gone.id, 0, group)
    for other, said_at in twins.of_stored(tx, user_id, session_id, gone.message_id, group):
        conversation.lose_entry(tx, user_id, other, 0, said_at, group)


def _bury(tx: Connection, user_id: str, gone: Collection[Document], now: int, group: str) -> None:
    """Keep deleted documents from coming back, under their ids or in their words, and out of prompts."""
    for document in gone:
        entries.remove(tx, user_id, document.id, document.text)
        if document.text and threads.thread_of(document.session_id):
            twins.note_forgotten(tx, user_id, document, now)
    ids = [(one.message_id, one.session_id, now) for one in gone if one.source != PHASE2]
    tombstones.add_all(tx, user_id, DOCUMENT, ids, group)
    # A section goes by its file and its heading, as its document begins: its number is of this database.
    written = ((one.source_file, one.text.partition("\n")[0]) for one in gone if one.source == PHASE2)
    sections.bury(tx, user_id, written, now, group)
    marks = ((tombstones.words_mark(one.text), max(now, to_us(one.created_at))) for one in gone)
    tombstones.add_all(tx, user_id, WORDS, [(mark, "", when) for mark, when in marks if mark], group)
    _forget_prompts(tx, user_id, gone, group)


def _forget_prompts(tx: Connection, user_id: str, gone: Collection[Document], group: str) -> None:
    """Take back the blocks that tell of these, and drop the log of what these themselves asked for."""
    texts = {document.text.strip() for document in gone}
    marks = [prompt_blocks.entry_mark(document.id) for document in gone]
    prompt_blocks.withdraw(tx, user_id, [*marks, *(prompt_blocks.text_mark(text, group) for text in texts)])
    _forget_handed_in(tx, user_id, texts, group)
    said = {document.text.strip()[-MAX_QUERY_CHARS:] for document in gone}
    rows = tx.rows(
        "select id, query from injections where user_id = :user_id and group_name = :group",
        user_id=user_id,
        group=group,
    )
    tx.execute_many(
        "delete from injections where user_id = :user_id and id = :id",
        [{"user_id": user_id, "id": row_id} for row_id, query in rows if query in said],
    )


def _forget_handed_in(tx: Connection, user_id: str, texts: Collection[str], group: str) -> None:
    """Take these texts out of the transcripts that sessions were started with."""
    for session_id, transcript in session_openings.all_handed_in(tx, user_id, group):
        left = without_texts(transcript, texts)
        if left != transcript:
            session_openings.set_handed_in(tx, user_id, session_id, left, group)


def _delete_session(tx: Connection, user_id: str, session_id: str, group: str) -> None:
    """Work on a forgotten session ends too; a running item loses its claim and stores nothing."""
    transcript = read_transcript(session_openings.handed_in(tx, user_id, session_id, group))
    prompt_blocks.withdraw(
        tx, user_id, [prompt_blocks.text_mark(message.text, group) for message in transcript]
    )
    tx.execute(
        "delete from injections where user_id = :user_id and group_name = :group"
        " and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    tx.execute(
        "delete from sessions where user_id = :user_id and group_name = :group and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    conversation.delete_session(tx, user_id, session_id, group)
    transcript_stops.forget_session(tx, user_id, session_id, group)
    # A reader loses its claim on the file; the next one starts after the size that was last seen.
    tx.execute(
        "update transcript_files set token = '', status = 'idle', purging = 0, read_check = '',"
        " read_through = case when size > read_through then size else read_through end"
        " where user_id = :user_id and group_name = :group and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    tx.execute(
        "delete from jobs where user_id = :user_id and kind = 'extract' and key = :key",
        user_id=user_id,
        key=sessions.work_key(session_id, group),
    )
