"""Withholding: what was made of a conversation is out of use as soon as something in it is forgotten."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from shepherd_memory.conversations import conversation as conversations
from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.memory import twins
from shepherd_memory.memory.documents import PHASE2, Document
from shepherd_memory.phases import dirtiness, outputs, sections
from shepherd_memory.phases.candidates import MAX_LOOKED_AT, job_key
from shepherd_memory.phases.dirtiness import CONSOLIDATION, consolidation_key
from shepherd_memory.phases.outputs import FORGOTTEN, WITHHELD
from shepherd_memory.phases.sections import MemorySection
from shepherd_memory.storage import tombstones
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.work import jobs
from shepherd_memory.work.kinds import OF_CONVERSATIONS


def withhold_messages(
    tx: Connection, user_id: str, forgotten: Iterable[Document], group: str = MAIN_GROUP
) -> None:
    """Withhold what was made of the conversations that these messages are in; a call that runs is in vain.

    A note among them is forgotten itself: it is not made again. Its document is the caller's to delete.
    """
    break_off_consolidation(tx, user_id, group)
    said = list(forgotten)
    for document in said:
        if document.source == PHASE2:
            sections.forget_document(tx, user_id, document.id, group)
    sections.withhold(tx, user_id, sections.that_repeat(tx, user_id, (one.text for one in said), group))
    of_session = cache(lambda session_id: conversations.of_session(tx, user_id, session_id, group))
    for document in said:
        if document.source == PHASE2:
            continue
        note = outputs.of_note(tx, user_id, document.session_id, document.message_id, group)
        if note is not None:
            outputs.empty(tx, user_id, note, FORGOTTEN)
            continue
        heard = twins.of_stored(tx, user_id, document.session_id, document.message_id, group)
        for one in _around(document, heard, of_session):
            _withhold(tx, user_id, one)


def pinned_around(
    connection: Connection, user_id: str, said: Iterable[Document], group: str = MAIN_GROUP
) -> list[MemorySection]:
    """The sections that a person edited and that go as soon as one of these messages is forgotten."""
    of_session = cache(lambda session_id: conversations.of_session(connection, user_id, session_id, group))
    held: set[int] = set()
    for document in said:
        heard = twins.of_stored(connection, user_id, document.session_id, document.message_id, group)
        held |= {one.id for one in _around(document, heard, of_session)}
        note = outputs.of_note(connection, user_id, document.session_id, document.message_id, group)
        held |= {note.conversation_id} if note is not None else set()
    written = (one for one in sections.in_use(connection, user_id, group) if one.is_pinned)
    return [one for one in written if held & set(one.sources)]


def _around(
    document: Document,
    heard: Iterable[tuple[str, int]],
    of_session: Callable[[str], Sequence[Conversation]],
) -> list[Conversation]:
    """The conversations that a message is an entry of, whichever way it came in."""
    said_at = to_us(document.created_at)
    own = of_session(document.session_id)
    found = [one for one in own if one.first_document <= document.id <= one.last_document]
    for session_id, heard_at in heard:
        others = of_session(session_id)
        found += [one for one in others if _spans(one, heard_at) or _spans(one, said_at)]
    return found


def _spans(conversation: Conversation, moment: int) -> bool:
    return to_us(conversation.first_message_at) <= moment <= to_us(conversation.last_message_at)


def _withhold(tx: Connection, user_id: str, conversation: Conversation) -> None:
    _break_off(tx, user_id, conversation)
    sections.withhold_source(tx, user_id, conversation.id, conversation.group_name)
    for output in outputs.of_conversation(tx, user_id, conversation.id, conversation.group_name):
        if output.state != FORGOTTEN:
            outputs.set_aside(tx, user_id, output, WITHHELD)


def _break_off(tx: Connection, user_id: str, conversation: Conversation) -> None:
    """Have what runs for a conversation begin anew."""
    key = job_key(conversation)
    for of_kind in OF_CONVERSATIONS:
        running = tx.rows(
            f"select distinct kind from jobs where user_id = :user_id and {of_kind} and key = :key"
            " and status = 'running'",
            user_id=user_id,
            key=key,
        )
        for (kind,) in running:
            jobs.requeue(tx, user_id, kind, key)


def break_off_consolidation(tx: Connection, user_id: str, group: str) -> None:
    """Have a consolidation of the group that runs begin anew: it may have read what is forgotten.

    What earlier ones noted of their changes goes too.
    """
    dirtiness.forget_notes(tx, user_id, group)
    jobs.requeue(tx, user_id, CONSOLIDATION, consolidation_key(group))


def call_off(tx: Connection, user_id: str, session_ids: Iterable[str], group: str = MAIN_GROUP) -> None:
    """The memory of sessions is no longer added to: a call that runs for a note of one is in vain."""
    for session_id in session_ids:
        for one in conversations.of_session(tx, user_id, session_id, group):
            _break_off(tx, user_id, one)


def withhold_value(tx: Connection, user_id: str, value: str, group: str = MAIN_GROUP) -> None:
    """Withhold every output that says the value of a fact that is forgotten, wherever it was said."""
    break_off_consolidation(tx, user_id, group)
    sections.withhold(tx, user_id, sections.that_say(tx, user_id, value, group))
    for output in outputs.that_say(tx, user_id, value, group):
        outputs.set_aside(tx, user_id, output, WITHHELD)


def withhold_marked(tx: Connection, user_id: str, mark: str, when: int, group: str = MAIN_GROUP) -> None:
    """The same for a value that only its mark is known of; not where it was said after it was deleted."""
    marks = frozenset({mark})
    break_off_consolidation(tx, user_id, group)
    sections.withhold(tx, user_id, sections.marked(tx, user_id, marks, when, group))
    for output in outputs.listing(tx, user_id, MAX_LOOKED_AT, group):
        said = f"{output.raw_memory}\n{output.summary}\n{output.slug}"
        is_older = output.group_name == group and to_us(output.source_updated_at) <= when
        if is_older and tombstones.has_value(said, marks):
            outputs.set_aside(tx, user_id, output, WITHHELD)


def forget_session(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> None:
    """A session is forgotten: nothing that was made of it is left, and nothing is being made."""
    break_off_consolidation(tx, user_id, group)
    for one in conversations.of_session(tx, user_id, session_id, group):
        sections.lose_source(tx, user_id, one.id, group)
        for of_kind in OF_CONVERSATIONS:
            tx.execute(
                f"delete from jobs where user_id = :user_id and {of_kind} and key = :key",
                user_id=user_id,
                key=job_key(one),
            )
    for output in outputs.of_session(tx, user_id, session_id, group):
        outputs.delete(tx, user_id, output)
