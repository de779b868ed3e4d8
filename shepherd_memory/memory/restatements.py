"""Restatements: the statements that said a fact or a pair besides the one that its row names."""

from dataclasses import asdict, dataclass
from datetime import datetime

from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.rows import Provenance, build
from shepherd_memory.text.groups import MAIN_GROUP

COLUMNS = "kind, key, value, stated_at, source, session_id, message_id, group_name"


@dataclass(frozen=True)
class Restatement:
    """One more statement of a fact (`key`, `value`) or of a pair (`key` is its digest)."""

    kind: str
    key: str
    value: str
    stated_at: datetime
    source: str
    session_id: str
    message_id: str
    group_name: str = MAIN_GROUP


def add(
    tx: Connection, user_id: str, row_id: int, kind: str, key: str, value: str, where: Provenance
) -> None:
    """Note that a statement says this too: once, and only one that is a message of a session."""
    if not where.message_id:
        return
    tx.execute(
        f"insert into restatements (user_id, id, {COLUMNS})"
        " select :user_id, :id, :kind, :key, :value, :stated_at, :source, :session_id, :message_id,"
        " :group_name where not exists (select 1 from restatements where user_id = :user_id"
        " and group_name = :group_name and kind = :kind and key = :key and value = :value"
        " and session_id = :session_id and message_id = :message_id)",
        user_id=user_id,
        id=row_id,
        kind=kind,
        key=key,
        value=value,
        **asdict(where),
    )


def of_key(
    connection: Connection, user_id: str, kind: str, key: str, group: str = MAIN_GROUP
) -> list[Restatement]:
    """The other statements of a fact or pair, oldest first."""
    rows = connection.rows(
        f"select {COLUMNS} from restatements where user_id = :user_id and group_name = :group"
        " and kind = :kind and key = :key order by stated_at, id",
        user_id=user_id,
        group=group,
        kind=kind,
        key=key,
    )
    return [build(Restatement, row) for row in rows]


def of_message(
    connection: Connection, user_id: str, session_id: str, message_id: str, group: str = MAIN_GROUP
) -> list[Restatement]:
    """What a message says that rests on another one as well."""
    rows = connection.rows(
        f"select {COLUMNS} from restatements where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and message_id = :message_id order by id",
        user_id=user_id,
        group=group,
        session_id=session_id,
        message_id=message_id,
    )
    return [build(Restatement, row) for row in rows]


def rename(tx: Connection, user_id: str, kind: str, key: str, to: str, group: str = MAIN_GROUP) -> None:
    """A pair has other words now: those who said it before go with it."""
    tx.execute(
        "update restatements set key = :to where user_id = :user_id and group_name = :group"
        " and kind = :kind and key = :key",
        user_id=user_id,
        group=group,
        kind=kind,
        key=key,
        to=to,
    )


def delete_key(tx: Connection, user_id: str, kind: str, key: str, group: str = MAIN_GROUP) -> None:
    """The fact or pair is deleted."""
    tx.execute(
        "delete from restatements where user_id = :user_id and group_name = :group"
        " and kind = :kind and key = :key",
        user_id=user_id,
        group=group,
        kind=kind,
        key=key,
    )


def delete_statements(
    tx: Connection, user_id: str, session_id: str, message_id: str | None = None, group: str = MAIN_GROUP
) -> None:
    """A session is deleted, or one message of it."""
    tx.execute(
        "delete from restatements where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and message_id = coalesce(:message_id, message_id)",
        user_id=user_id,
        group=group,
        session_id=session_id,
        message_id=message_id,
    )
