"""Outputs of conversations as lines of an export, and back: each named by its session and a time in it."""

from typing import Any

from shepherd_memory.errors import InvalidInput
from shepherd_memory.maintenance.line_columns import MOMENT, MOMENT_OR_NONE, NUMBER, TEXT
from shepherd_memory.memory import session_documents
from shepherd_memory.memory.documents import PHASE1, Document
from shepherd_memory.phases import dirtiness
from shepherd_memory.phases.outputs import KEPT, NO_OUTPUT, OUTCOMES, TASK_OUTCOMES
from shepherd_memory.phases.refusal import says_deleted
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.visibility import seen_from

OUTPUT = "output"
OUTPUT_COLUMNS = {
    "group_name": TEXT,
    "session_id": TEXT,
    "strategy": TEXT,
    "source_message": TEXT,
    "source_updated_at": MOMENT,
    "raw_memory": TEXT,
    "summary": TEXT,
    "slug": TEXT,
    "task_outcome": TEXT,
    "outcome": TEXT,
    "note": TEXT,
    "model": TEXT,
    "generated_at": MOMENT,
    "use_count": NUMBER,
    "last_used_at": MOMENT_OR_NONE,
    "selected": NUMBER,
    "selected_source_updated_at": MOMENT_OR_NONE,
    "pruned_at": MOMENT_OR_NONE,
}

_LAST_MESSAGE = (
    "select message_id from documents d where d.user_id = o.user_id and d.group_name = o.group_name"
    " and d.session_id = o.session_id and d.id <= o.source_through order by d.id desc limit 1"
)


def output_rows(connection: Connection, user_id: str, group: str) -> list[Row]:
    """The outputs that a group sees and that are in use: what is withheld or forgotten stays out."""
    among, seen = seen_from(group)
    columns = (
        f"coalesce(({_LAST_MESSAGE}), '')" if name == "source_message" else name for name in OUTPUT_COLUMNS
    )
    return connection.rows(
        f"select {', '.join(columns)} from conversation_outputs o where user_id = :user_id{among}"
        " and state = 'kept' order by source_updated_at, conversation_id, strategy",
        user_id=user_id,
        **seen,
    )


def check_output(values: dict[str, Any]) -> None:
    """Refuse an output that none of ours could be."""
    if values["outcome"] not in OUTCOMES:
        raise InvalidInput(f"the outcome of an output is one of {', '.join(OUTCOMES)}")
    if values["task_outcome"] not in ("", *TASK_OUTCOMES):
        raise InvalidInput(f"a task_outcome is empty, or one of {', '.join(TASK_OUTCOMES)}")
    if (values["outcome"] == NO_OUTPUT) != (not values["summary"]):
        raise InvalidInput(f"an output has a summary, unless its outcome is {NO_OUTPUT}")


def insert_output(tx: Connection, user_id: str, values: dict[str, Any]) -> None:
    """Store the output of a conversation that is there and has none; not if its note was forgotten here.

    It is new to a group that is consolidated here, and so is one from before there was consolidation; where
    the file has the state of its group, that follows.
    """
    conversation = _conversation_of(tx, user_id, values)
    group, session = values["group_name"], values["session_id"]
    has_note = bool(values["note"]) and _message(tx, user_id, values, "note") is not None
    said = (values["raw_memory"], values["summary"], values["slug"])
    if conversation is None or (values["summary"] and values["note"] and not has_note):
        return
    if says_deleted(tx, user_id, said, values["source_updated_at"], group) or lost_a_message(
        tx, user_id, group, session, values["generated_at"]
    ):
        return
    made_of = _message(tx, user_id, values, "source_message")
    columns = [name for name in OUTPUT_COLUMNS if name != "source_message"]
    stored = tx.execute(
        "insert into conversation_outputs (user_id, conversation_id, source_through, state,"
        f" {', '.join(columns)}) values (:user_id, :conversation_id, :through, '{KEPT}',"
        f" {', '.join(f':{name}' for name in columns)})"
        " on conflict (user_id, group_name, conversation_id, strategy) do nothing",
        user_id=user_id,
        conversation_id=conversation[0],
        through=conversation[1] if made_of is None else made_of.id,
        **{name: values[name] for name in columns},
    )
    if stored and (values["is_older"] or dirtiness.is_known(tx, user_id, group)):
        dirtiness.mark(tx, user_id, group, values["now"])


def _message(tx: Connection, user_id: str, values: dict[str, Any], column: str) -> Document | None:
    place = (values["session_id"], values[column], values["group_name"])
    return session_documents.get_message(tx, user_id, *place)


def is_forgotten_note(tx: Connection, user_id: str, document: dict[str, Any]) -> bool:
    """Whether a document is a note of a conversation, and its user has deleted since what it may tell of."""
    if document["source"] != PHASE1:
        return False
    group, session, made_at = document["group_name"], document["session_id"], document["stored_at"]
    is_deleted = says_deleted(tx, user_id, [document["text"]], document["created_at"], group)
    return is_deleted or lost_a_message(tx, user_id, group, session, made_at)


def lost_a_message(tx: Connection, user_id: str, group: str, session_id: str, since: int) -> bool:
    """Whether any message of a session was deleted since then."""
    row = tx.row(
        "select 1 from tombstones where user_id = :user_id and group_name = :group and deleted_at >= :since"
        " and (kind in ('document', 'statement') and session_id = :session_id"
        " or kind = 'session' and session_id = '' and key = :session_id) limit 1",
        user_id=user_id,
        group=group,
        session_id=session_id,
        since=since,
    )
    return row is not None


def _conversation_of(tx: Connection, user_id: str, values: dict[str, Any]) -> Row | None:
    return tx.row(
        "select id, last_document from conversations where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and first_message_at <= :moment and last_message_at >= :moment"
        " order by id limit 1",
        user_id=user_id,
        group=values["group_name"],
        session_id=values["session_id"],
        moment=values["source_updated_at"],
    )
