"""What the guard set aside, refused or unconfirmed: what the two tables have in common."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import MAIN_GROUP

if TYPE_CHECKING:
    from shepherd_memory.memory.rejections import NewRejection
    from shepherd_memory.memory.unconfirmed import NewUnconfirmed

REJECTIONS, UNCONFIRMED = "rejections", "unconfirmed"
TABLES = (REJECTIONS, UNCONFIRMED)

KEPT_PER_USER = 1000
"""In each group, of each table."""


def insert(
    tx: Connection, user_id: str, row_id: int, new: "NewRejection | NewUnconfirmed", now: int, table: str
) -> None:
    """Add a row to one of the tables; the oldest ones give way beyond a limit."""
    values = asdict(new)
    row = {"user_id": user_id, "id": row_id, **values.pop("where"), **values, "created_at": now}
    named = ", ".join(f":{column}" for column in row)
    tx.execute(f"insert into {table} ({', '.join(row)}) values ({named})", **row)
    tx.execute(
        f"delete from {table} where user_id = :user_id and group_name = :group and id <= (select id"
        f" from {table} where user_id = :user_id and group_name = :group"
        " order by id desc limit 1 offset :kept)",
        user_id=user_id,
        group=new.where.group_name,
        kept=KEPT_PER_USER,
    )


def delete_session(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> int:
    """Delete what was set aside of a session; how many."""
    return sum(
        tx.execute(
            f"delete from {table} where user_id = :user_id and group_name = :group"
            " and session_id = :session_id",
            user_id=user_id,
            group=group,
            session_id=session_id,
        )
        for table in TABLES
    )


def delete_message(
    tx: Connection,
    user_id: str,
    session_id: str,
    message_id: str,
    group: str = MAIN_GROUP,
    tables: Iterable[str] = TABLES,
) -> int:
    """Delete what was set aside of a message; how many."""
    return sum(
        tx.execute(
            f"delete from {table} where user_id = :user_id and group_name = :group"
            " and session_id = :session_id and message_id = :message_id",
            user_id=user_id,
            group=group,
            session_id=session_id,
            message_id=message_id,
        )
        for table in tables
    )
