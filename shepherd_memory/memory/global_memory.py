"""The global memory: a text of the user's that every session begins with."""

from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.errors import InvalidInput
from shepherd_memory.storage import prompt_blocks, tombstones
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.tombstones import GLOBAL_MEMORY
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.groups import GLOBAL_GROUP
from shepherd_memory.text.redaction import redact

MAX_CHARS = 100_000


@dataclass(frozen=True)
class GlobalMemory:
    """The text, free of secrets, and when it was written last."""

    id: StoredId
    text: str
    updated_at: datetime


def storable_text(raw: object) -> str:
    """`raw` as the global memory can hold it, or InvalidInput."""
    if not isinstance(raw, str):
        raise InvalidInput(f"the global memory is text, not {type(raw).__name__}")
    # Before it is looked through, which takes its time.
    if len(raw) > MAX_CHARS:
        raise InvalidInput(
            f"the global memory has at most {MAX_CHARS:,} characters, this text has {len(raw):,}:"
            " shorten it to what every session needs"
        )
    if "\0" in raw:
        raise InvalidInput("the text has a NUL character in it: give plain text, not a binary file")
    if canonical_text(raw) != raw:
        raise InvalidInput("the text has half of a character in it (a lone surrogate): give valid Unicode")
    text = redact(raw).strip()
    if not text:
        raise InvalidInput("the text is empty: to have no global memory, delete it")
    return text


def get(connection: Connection, user_id: str) -> GlobalMemory | None:
    """What the user's sessions begin with, in every group."""
    row = connection.row(
        "select id, text, updated_at from global_memory where user_id = :user_id and group_name = :group",
        user_id=user_id,
        group=GLOBAL_GROUP,
    )
    return None if row is None else build(GlobalMemory, row)


def put(tx: Connection, user_id: str, row_id: int, text: str, now: int) -> None:
    """Write the text of a user whose row is held, in the place of the one before; what was told stays."""
    deleted = tombstones.deleted_at(tx, user_id, GLOBAL_MEMORY, "", GLOBAL_GROUP)
    tx.execute(
        "insert into global_memory (user_id, group_name, id, version, text, updated_at)"
        " values (:user_id, :group, :row_id, :row_id, :text, :now)"
        " on conflict (user_id, group_name) do update set version = excluded.version,"
        " text = excluded.text, updated_at = excluded.updated_at",
        user_id=user_id,
        group=GLOBAL_GROUP,
        row_id=row_id,
        text=text,
        now=max(now, deleted + 1),
    )


def delete(tx: Connection, user_id: str, now: int) -> bool:
    """Delete the text of a user whose row is held, and take it back from running conversations."""
    found = get(tx, user_id)
    if found is None:
        return False
    tx.execute(
        "delete from global_memory where user_id = :user_id and group_name = :group",
        user_id=user_id,
        group=GLOBAL_GROUP,
    )
    prompt_blocks.withdraw(tx, user_id, [prompt_blocks.global_mark(found.id)])
    tombstones.add(tx, user_id, GLOBAL_MEMORY, "", now, group=GLOBAL_GROUP)
    return True


def is_there(connection: Connection, user_id: str, global_id: int) -> bool:
    """Whether the text that had this id is not deleted since, whatever it says now."""
    found = get(connection, user_id)
    return found is not None and found.id == global_id
