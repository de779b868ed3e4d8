"""Deletions that an import brings along: what they take here, and what their file has in spite of them."""

from collections.abc import Callable, Mapping

from shepherd_memory.maintenance import forgetting
from shepherd_memory.maintenance.line_kinds import KINDS, Line
from shepherd_memory.maintenance.related import Bundle
from shepherd_memory.memory import context, facts, global_memory, session_documents
from shepherd_memory.phases import sections, withholding
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.tombstones import (
    CONTEXT,
    DOCUMENT,
    FACT,
    GLOBAL_MEMORY,
    SECTION,
    SESSION,
    STATEMENT,
    VALUE,
)
from shepherd_memory.text.groups import GLOBAL_GROUP

TOMBSTONE = "tombstone"
NEVER = -1


class FileDeletions:
    """When the file's own user deleted each statement.

    A row of the file that rests on one was kept on purpose: only a later deletion keeps it out.
    """

    def __init__(self) -> None:
        self._buried: dict[tuple[str, str, str], int] = {}

    def read(self, name: str, values: Line) -> Line:
        """A line with `buried_at`, when the statement that it rests on was deleted there; -1: it was not."""
        if name == TOMBSTONE and values["kind"] in (DOCUMENT, STATEMENT):
            statement = (values["group_name"], values["session_id"], values["key"])
            self._buried[statement] = max(values["deleted_at"], self._buried.get(statement, NEVER))
        if name not in KINDS:
            return values
        return {**values, "buried_at": self._buried.get(_statement_of(values), NEVER)}


def _statement_of(values: Line) -> tuple[str, str, str]:
    message_id = values.get("made_of") or values.get("message_id", "")
    return values.get("group_name", ""), values.get("session_id", ""), message_id


def carry_out(tx: Connection, user_id: str, deletion: Line) -> None:
    """Delete what is here of a thing that was deleted there, unless it was said after that."""
    take = _TAKEN.get(deletion["kind"])
    if take is not None:
        take(tx, user_id, deletion)


def _delete_fact(tx: Connection, user_id: str, deletion: Line) -> None:
    key, group, when = deletion["key"], deletion["group_name"], deletion["deleted_at"]
    found = facts.get(tx, user_id, key, group)
    if found is not None and to_us(found.stated_at) <= when:
        forgetting.forget_rows(tx, user_id, Bundle(keys={key}), when, group)


def _delete_pair(tx: Connection, user_id: str, deletion: Line) -> None:
    group, when = deletion["group_name"], deletion["deleted_at"]
    found = context.of_digest(tx, user_id, deletion["key"], group)
    if found is not None and to_us(found.stated_at) <= when:
        forgetting.forget_rows(tx, user_id, Bundle(pairs={found.id: found}), when, group)


def _delete_document(tx: Connection, user_id: str, deletion: Line) -> None:
    group = deletion["group_name"]
    found = session_documents.get_message(tx, user_id, deletion["session_id"], deletion["key"], group)
    if found is not None:
        bundle = Bundle(documents={found.id: found})
        forgetting.forget_rows(tx, user_id, bundle, deletion["deleted_at"], group)


def _delete_session(tx: Connection, user_id: str, deletion: Line) -> None:
    """Its messages are deleted one by one; if nothing was said in it since, the rest goes too."""
    session_id, group = deletion["key"], deletion["group_name"]
    if not session_documents.message_ids(tx, user_id, session_id, group):
        forgetting.forget_part(tx, user_id, session_id, deletion["deleted_at"], group)


def _delete_global_memory(tx: Connection, user_id: str, deletion: Line) -> None:
    found = global_memory.get(tx, user_id) if deletion["group_name"] == GLOBAL_GROUP else None
    if found is not None and to_us(found.updated_at) <= deletion["deleted_at"]:
        global_memory.delete(tx, user_id, deletion["deleted_at"])


def _withhold_note(tx: Connection, user_id: str, deletion: Line) -> None:
    """Nothing more is made of a message: what was made of its conversation is made anew."""
    group = deletion["group_name"]
    found = session_documents.get_message(tx, user_id, deletion["session_id"], deletion["key"], group)
    if found is not None:
        withholding.withhold_messages(tx, user_id, [found], group)


def _withhold_notes_with(tx: Connection, user_id: str, deletion: Line) -> None:
    mark, when, group = deletion["key"], deletion["deleted_at"], deletion["group_name"]
    withholding.withhold_marked(tx, user_id, mark, when, group)


def _forget_section(tx: Connection, user_id: str, deletion: Line) -> None:
    mark, when, group = deletion["key"], deletion["deleted_at"], deletion["group_name"]
    withholding.break_off_consolidation(tx, user_id, group)
    sections.forget_buried(tx, user_id, mark, when, group)


_TAKEN: Mapping[str, Callable[[Connection, str, Line], None]] = {
    FACT: _delete_fact,
    CONTEXT: _delete_pair,
    DOCUMENT: _delete_document,
    SESSION: _delete_session,
    GLOBAL_MEMORY: _delete_global_memory,
    STATEMENT: _withhold_note,
    VALUE: _withhold_notes_with,
    SECTION: _forget_section,
}
