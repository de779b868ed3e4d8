"""Forgetting one thing: a fact, a context pair, a document, or all of a session."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from shepherd_memory.conversations import conversation
from shepherd_memory.extraction import queue
from shepherd_memory.intake.handed_in import read_transcript, without_texts
from shepherd_memory.intake.messages import MAX_QUERY_CHARS
from shepherd_memory.memory import (
    context,
    documents,
    entries,
    facts,
    rejections,
    responses,
    session_lives,
    sessions,
    threads,
    twins,
    unconfirmed,
)
from shepherd_memory.storage import prompt_blocks, tombstones, transcript_stops, users
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.tombstones import DOCUMENT, SESSION
from shepherd_memory.text.canonical import as_text
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.redaction import redact


@dataclass(frozen=True)
class Forgotten:
    """How many of each were deleted."""

    facts: int = 0
    context: int = 0
    documents: int = 0

    @property
    def total(self) -> int:
        return self.facts + self.context + self.documents


def forget_fact(database: Database, user_id: str, key: str, now: int, group: str = MAIN_GROUP) -> Forgotten:
    """Delete a fact with its history."""
    with database.write() as tx:
        if users.lock_existing(tx, user_id) is None:
            return Forgotten()
        name = facts.fact_key(key)
        unconfirmed.delete_named(tx, user_id, tombstones.FACT, name, group)
        return Forgotten(facts=int(facts.delete(tx, user_id, name, now, group)))


def forget_context(
    database: Database, user_id: str, context_id: int, now: int, group: str = MAIN_GROUP
) -> Forgotten:
    """Delete a question and its answer."""
    with database.write() as tx:
        if users.lock_existing(tx, user_id) is None:
            return Forgotten()
        return Forgotten(context=int(context.delete(tx, user_id, context_id, now, group)))


def forget_question(
    database: Database, user_id: str, question: str, now: int, group: str = MAIN_GROUP
) -> Forgotten:
    """Delete a question with every answer to it, by its exact words."""
    asked = redact(as_text(question)).strip()
    with database.write() as tx:
        if users.lock_existing(tx, user_id) is None:
            return Forgotten()
        rows = tx.rows(
            "select id from context where user_id = :user_id and group_name = :group"
            " and question = :question",
            user_id=user_id,
            group=group,
            question=asked,
        )
        unconfirmed.delete_named(tx, user_id, tombstones.CONTEXT, asked, group)
        return Forgotten(context=sum(context.delete(tx, user_id, row_id, now, group) for (row_id,) in rows))


def forget_document(
    database: Database, user_id: str, document_id: int, now: int, group: str = MAIN_GROUP
) -> Forgotten:
    """Delete a document; the same message handed in again stays out."""
    with database.write() as tx:
        if users.lock_existing(tx, user_id) is None:
            return Forgotten()
        gone = documents.delete(tx, user_id, document_id, group)
        if gone is None:
            return Forgotten()
        _bury_document(tx, user_id, gone, now)
        _lose_entries(tx, user_id, gone)
        _forget_prompts(tx, user_id, [gone], group)
        queue.remove_document(tx, user_id, gone.session_id, document_id, group)
        unconfirmed.delete_message(tx, user_id, gone.session_id, gone.message_id, group)
        users.bump_version(tx, user_id)
        return Forgotten(documents=1)


def forget_session(
    database: Database, user_id: str, session_id: str, now: int, group: str = MAIN_GROUP
) -> Forgotten:
    """Delete a session's documents and everything that was extracted from them."""
    with database.write() as tx:
        if users.lock_existing(tx, user_id) is None:
            return Forgotten()
        parts = threads.parts(tx, user_id, session_id, group)
        gone = [_forget_part(tx, user_id, part, now, group) for part in parts]
        users.bump_version(tx, user_id)
        return Forgotten(
            sum(one.facts for one in gone),
            sum(one.context for one in gone),
            sum(one.documents for one in gone),
        )


def _forget_part(tx: Connection, user_id: str, session_id: str, now: int, group: str) -> Forgotten:
    """Forget a session, or what came of it in one of two ways."""
    gone = documents.delete_session(tx, user_id, session_id, group)
    for document in gone:
        _bury_document(tx, user_id, document, now)
    _forget_prompts(tx, user_id, gone, group)
    pairs = context.of_session(tx, user_id, session_id, group)
    for context_id in pairs:
        context.delete(tx, user_id, context_id, now, group)
    rejections.delete_session(tx, user_id, session_id, group)
    unconfirmed.delete_session(tx, user_id, session_id, group)
    responses.delete_session(tx, user_id, session_id, group)
    session_lives.forget(tx, user_id, session_id, group)
    removed = facts.delete_session(tx, user_id, session_id, now, group)
    _delete_session(tx, user_id, session_id, group)
    # What was said in it and waits to be stored stays out too.
    tombstones.add(tx, user_id, SESSION, session_id, now, group=group)
    return Forgotten(removed, len(pairs), len(gone))


def _bury_document(tx: Connection, user_id: str, document: documents.Document, now: int) -> None:
    tombstones.add(tx, user_id, DOCUMENT, document.message_id, now, document.session_id, document.group_name)
    if document.text and threads.thread_of(document.session_id):
        twins.note_forgotten(tx, user_id, document, now)
    entries.remove(tx, user_id, document.id, document.text)


def _lose_entries(tx: Connection, user_id: str, gone: documents.Document) -> None:
    """The conversations that it was an entry of have one less."""
    session_id, group = gone.session_id, gone.group_name
    conversation.lose_entry(tx, user_id, session_id, gone.id, 0, group)
    for other, said_at in twins.of_stored(tx, user_id, session_id, gone.message_id, group):
        conversation.lose_entry(tx, user_id, other, 0, said_at, group)


def _forget_prompts(tx: Connection, user_id: str, gone: Sequence[documents.Document], group: str) -> None:
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
    for session_id, transcript in session_lives.all_handed_in(tx, user_id, group):
        left = without_texts(transcript, texts)
        if left != transcript:
            session_lives.set_handed_in(tx, user_id, session_id, left, group)


def _delete_session(tx: Connection, user_id: str, session_id: str, group: str) -> None:
    """Work on a forgotten session ends too; a running item loses its claim and stores nothing."""
    transcript = read_transcript(session_lives.handed_in(tx, user_id, session_id, group))
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
