"""Outputs: what phase 1 made of a conversation, a row for each."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.memory import documents, entries, session_documents
from shepherd_memory.memory.documents import Document
from shepherd_memory.phases import dirtiness, sections
from shepherd_memory.storage import prompt_blocks, users
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.work.kinds import SUMMARY, strategy_kind

KEPT, WITHHELD, FORGOTTEN = "kept", "withheld", "forgotten"
SUCCEEDED, NO_OUTPUT = "succeeded", "succeeded_no_output"
OUTCOMES = (SUCCEEDED, NO_OUTPUT)
TASK_OUTCOMES = ("success", "partial", "fail", "uncertain")


@dataclass(frozen=True)
class Output:
    """What was made of a conversation through one of its documents; empty texts where nothing was worth it.

    `source_updated_at` is when the conversation ended, and `note` the id of the document in its session that
    says the summary.
    """

    group_name: str
    conversation_id: StoredId
    session_id: str
    source_through: StoredId
    source_updated_at: datetime
    raw_memory: str
    summary: str
    slug: str
    task_outcome: str
    outcome: str
    state: str
    note: str
    model: str
    generated_at: datetime
    use_count: int = 0
    last_used_at: datetime | None = None
    strategy: str = SUMMARY


COLUMNS = ", ".join(field.name for field in fields(Output))

_ONE = (
    "where user_id = :user_id and group_name = :group and conversation_id = :conversation_id"
    " and strategy = :strategy"
)


def get(
    connection: Connection, user_id: str, conversation_id: int, group: str, strategy: str = SUMMARY
) -> Output | None:
    """The output of one conversation of a group, whatever its state."""
    row = connection.row(
        f"select {COLUMNS} from conversation_outputs {_ONE}",
        user_id=user_id,
        group=group,
        conversation_id=conversation_id,
        strategy=strategy,
    )
    return None if row is None else build(Output, row)


def of_conversation(connection: Connection, user_id: str, conversation_id: int, group: str) -> list[Output]:
    """The outputs of one conversation of a group by all strategies, whatever their states."""
    rows = connection.rows(
        f"select {COLUMNS} from conversation_outputs where user_id = :user_id and group_name = :group"
        " and conversation_id = :conversation_id",
        user_id=user_id,
        group=group,
        conversation_id=conversation_id,
    )
    return [build(Output, row) for row in rows]


def listing(connection: Connection, user_id: str, limit: int = 1000, group: str = MAIN_GROUP) -> list[Output]:
    """The outputs that a group sees and that may be used, of the newest conversations first."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {COLUMNS} from conversation_outputs where user_id = :user_id and state = 'kept'"
        f" and outcome = 'succeeded'{among} order by source_updated_at desc, conversation_id desc"
        " limit :limit",
        user_id=user_id,
        limit=limit,
        **seen,
    )
    return [build(Output, row) for row in rows]


def of_conversations(
    connection: Connection, user_id: str, conversation_ids: Sequence[int], group: str = MAIN_GROUP
) -> list[Output]:
    """The outputs of these conversations that a group sees, as far as they are in use."""
    among, seen = seen_from(group)
    wanted = {f"id{place}": number for place, number in enumerate(conversation_ids)}
    if not wanted:
        return []
    rows = connection.rows(
        f"select {COLUMNS} from conversation_outputs where user_id = :user_id and state = 'kept'"
        f" and strategy = '{SUMMARY}'{among}"
        f" and conversation_id in ({', '.join(f':{name}' for name in wanted)})",
        user_id=user_id,
        **wanted,
        **seen,
    )
    return [build(Output, row) for row in rows]


def put(tx: Connection, user_id: str, output: Output, stored_as: int = 0) -> bool:
    """Store an output, unless there is one that was made of more; whether it was stored.

    How often it was used, and what was last consolidated of it, stay. `stored_as` is its place in the order
    of the user's writes.
    """
    values = {name: getattr(output, name) for name in COLUMNS.split(", ")}
    values |= {"stored_as": stored_as, "pruned_at": None}
    for moment in ("source_updated_at", "generated_at"):
        values[moment] = to_us(values[moment])
    made = [name for name in values if name not in ("use_count", "last_used_at")]
    changed = [name for name in made if name not in ("group_name", "conversation_id", "strategy")]
    row = tx.row(
        f"insert into conversation_outputs (user_id, {', '.join(made)})"
        f" values (:user_id, {', '.join(f':{name}' for name in made)})"
        " on conflict (user_id, group_name, conversation_id, strategy) do update set"
        f" {', '.join(f'{name} = excluded.{name}' for name in changed)}"
        " where conversation_outputs.source_through <= excluded.source_through"
        " or conversation_outputs.state = 'withheld' returning conversation_id",
        user_id=user_id,
        **{name: values[name] for name in made},
    )
    return row is not None


_EMPTIED = (
    "raw_memory = '', summary = '', slug = '', task_outcome = '', selected = 0,"
    " selected_source_updated_at = null"
)


def set_aside(tx: Connection, user_id: str, output: Output, state: str) -> None:
    """Take an output and its note out of use at once, without keeping its words."""
    empty(tx, user_id, output, state)
    remove_note_of(tx, user_id, output)


def empty(tx: Connection, user_id: str, output: Output, state: str) -> None:
    """The same for the output alone."""
    tx.execute(
        f"update conversation_outputs set {_EMPTIED}, state = :state {_ONE}",
        user_id=user_id,
        group=output.group_name,
        conversation_id=output.conversation_id,
        strategy=output.strategy,
        state=state,
    )
    _take_back(tx, user_id, output)
    sections.withhold_source(tx, user_id, output.conversation_id, output.group_name)
    dirtiness.mark_existing(tx, user_id, output.group_name)


def delete(tx: Connection, user_id: str, output: Output) -> None:
    """Remove an output and its note."""
    tx.execute(
        f"delete from conversation_outputs {_ONE}",
        user_id=user_id,
        group=output.group_name,
        conversation_id=output.conversation_id,
        strategy=output.strategy,
    )
    remove_note_of(tx, user_id, output)
    _take_back(tx, user_id, output)
    sections.lose_source(tx, user_id, output.conversation_id, output.group_name)
    dirtiness.mark_existing(tx, user_id, output.group_name)


def _take_back(tx: Connection, user_id: str, output: Output) -> None:
    """Out of prompts that were told the note, also as it was before it was made anew."""
    mark = prompt_blocks.note_mark(output.session_id, output.note, output.group_name)
    prompt_blocks.withdraw(tx, user_id, [mark])


def remove_note_of(tx: Connection, user_id: str, output: Output) -> None:
    """The same for the note of an output, if it has one."""
    note = _note_of(tx, user_id, output)
    if note is not None:
        remove_note(tx, user_id, note)


def _note_of(connection: Connection, user_id: str, output: Output) -> Document | None:
    place = (output.session_id, output.note, output.group_name)
    return session_documents.get_message(connection, user_id, *place) if output.note else None


def remove_note(tx: Connection, user_id: str, note: Document) -> None:
    """Delete the document that says a summary: it is found and told no more, and may be made again."""
    _delete_note(tx, user_id, note)
    marks = [prompt_blocks.entry_mark(note.id), prompt_blocks.text_mark(note.text, note.group_name)]
    prompt_blocks.withdraw(tx, user_id, marks)


def make_room(tx: Connection, user_id: str, output: Output) -> None:
    """Delete the document of a note that is made anew. Conversations that run keep what they were told."""
    note = _note_of(tx, user_id, output)
    if note is not None:
        _delete_note(tx, user_id, note)


def _delete_note(tx: Connection, user_id: str, note: Document) -> None:
    documents.delete(tx, user_id, note.id, note.group_name)
    entries.remove(tx, user_id, note.id, note.text)
    users.bump_version(tx, user_id)


def of_note(connection: Connection, user_id: str, session_id: str, note: str, group: str) -> Output | None:
    """The output whose note this document is."""
    row = connection.row(
        f"select {COLUMNS} from conversation_outputs where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and note = :note and note <> ''",
        user_id=user_id,
        group=group,
        session_id=session_id,
        note=note,
    )
    return None if row is None else build(Output, row)


def of_session(connection: Connection, user_id: str, session_id: str, group: str) -> list[Output]:
    """The outputs of all conversations of a session."""
    rows = connection.rows(
        f"select {COLUMNS} from conversation_outputs where user_id = :user_id and group_name = :group"
        " and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    return [build(Output, row) for row in rows]


def that_say(connection: Connection, user_id: str, words: str, group: str) -> list[Output]:
    """The outputs of a group in which these words stand, in any case."""
    like = words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    rows: list[Row] = connection.rows(
        f"select {COLUMNS} from conversation_outputs where user_id = :user_id and group_name = :group"
        " and (raw_memory || ' ' || summary || ' ' || slug like :like escape '\\'"
        " or lower(raw_memory || ' ' || summary || ' ' || slug) like :lower escape '\\')",
        user_id=user_id,
        group=group,
        like=f"%{like}%",
        lower=f"%{like.lower()}%",
    )
    return [build(Output, row) for row in rows]


def orphans(connection: Connection, user_id: str) -> list[Output]:
    """The outputs of conversations that are no longer there: their file was read anew."""
    rows = connection.rows(
        f"select {COLUMNS} from conversation_outputs o where user_id = :user_id and not exists"
        " (select 1 from conversations c where c.user_id = o.user_id and c.id = o.conversation_id)",
        user_id=user_id,
    )
    return [build(Output, row) for row in rows]


def drop_orphans(tx: Connection, user_id: str) -> None:
    """Remove them, with their notes."""
    if users.lock_existing(tx, user_id) is not None:
        for output in orphans(tx, user_id):
            delete(tx, user_id, output)


def note_name(conversation: Conversation, before: Output | None, strategy: str = SUMMARY) -> str:
    """What the document is called in its session: the same in every database that has the conversation."""
    begun = to_us(conversation.first_message_at)
    return before.note if before is not None and before.note else f"{strategy_kind(strategy)}:{begun}"
