"""Storing a note: as the output of its conversation, and as a document that recall finds."""

from collections import Counter
from dataclasses import dataclass, field, replace

from shepherd_memory.conversations import conversation as conversations
from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.memory import documents, entries
from shepherd_memory.memory.documents import NewDocument
from shepherd_memory.phases import dirtiness, outputs
from shepherd_memory.phases.answer import NoteAnswer
from shepherd_memory.phases.outputs import FORGOTTEN, KEPT, NO_OUTPUT, SUCCEEDED, Output
from shepherd_memory.phases.refusal import REFUSED, says_deleted
from shepherd_memory.storage.clock import from_us, to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.work.kinds import SUMMARY

GONE = "the conversation is gone"


@dataclass(frozen=True)
class WrittenNote:
    """A note, storable, with the words that its summary is found by."""

    note: NoteAnswer = field(default_factory=NoteAnswer)
    model: str = ""
    terms: Counter[str] = field(default_factory=Counter)
    strategy: str = SUMMARY


def store_note(
    tx: Connection, user_id: str, conversation: Conversation, written: WrittenNote, note_id: int, now: int
) -> str:
    """Store what was made of a conversation, as its output and as a document; the outcome.

    Not if it says what the user has deleted, nor if there is an output that was made of more.
    """
    current = conversations.get(tx, user_id, conversation.id)
    if current is None or current.group_name != conversation.group_name:
        return f"skipped: {GONE}"
    before = outputs.get(tx, user_id, conversation.id, conversation.group_name, written.strategy)
    said = (written.note.raw_memory, written.note.summary, written.note.slug)
    ended_at = to_us(conversation.last_message_at)
    is_refused = says_deleted(tx, user_id, said, ended_at, conversation.group_name)
    kept = replace(written, note=NoteAnswer()) if is_refused else written
    output = _output(conversation, before, kept, now)
    if not outputs.put(tx, user_id, output, note_id):
        return "skipped: there is a newer one"
    had_output = before is not None and before.outcome == SUCCEEDED
    if written.strategy == SUMMARY and (output.outcome == SUCCEEDED or had_output):
        dirtiness.mark(tx, user_id, conversation.group_name, now, note_id)
    if before is not None:
        outputs.make_room(tx, user_id, before)
    if output.outcome == SUCCEEDED and not _store_document(
        tx, user_id, conversation, output, written, note_id, now
    ):
        outputs.set_aside(tx, user_id, output, FORGOTTEN)
        return f"{NO_OUTPUT}: {REFUSED}"
    return f"{NO_OUTPUT}: {REFUSED}" if is_refused else output.outcome


def _output(conversation: Conversation, before: Output | None, written: WrittenNote, now: int) -> Output:
    note = written.note
    kept = NoteAnswer() if note.is_empty else note
    return Output(
        conversation.group_name,
        conversation.id,
        conversation.session_id,
        conversation.last_document,
        conversation.last_message_at,
        kept.raw_memory,
        kept.summary,
        kept.slug,
        kept.task_outcome,
        NO_OUTPUT if note.is_empty else SUCCEEDED,
        KEPT,
        outputs.note_name(conversation, before, written.strategy),
        written.model,
        from_us(now),
        strategy=written.strategy,
    )


def _store_document(
    tx: Connection,
    user_id: str,
    conversation: Conversation,
    output: Output,
    written: WrittenNote,
    note_id: int,
    now: int,
) -> bool:
    """The summary as a document: dated as the conversation, and nobody's statement. Whether it was stored."""
    ended_at = to_us(conversation.last_message_at)
    document = NewDocument(
        conversation.session_id,
        output.note,
        output.summary,
        ended_at,
        type="learning",
        category="knowledge",
        role="assistant",
        speaker_type="agent",
        group_name=conversation.group_name,
        source=documents.PHASE1,
        cwd=conversation.cwd,
    )
    outputs.make_room(tx, user_id, output)
    if not documents.insert(tx, user_id, note_id, [document], now):
        return False
    entry = entries.Entry(
        note_id,
        entries.DOCUMENT,
        conversation.session_id,
        "assistant",
        "",
        ended_at,
        written.terms,
        conversation.group_name,
    )
    entries.add(tx, user_id, [entry], now)
    return True
