"""Blocks that were given to prompts are taken back once something that they tell is forgotten."""

import hashlib
from collections.abc import Collection, Iterable

from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import MAIN_GROUP

WITHDRAWN = ""
"""What is kept of a block that was taken back: its message gets another."""


def fact_marks(key: str, value: str, group: str = MAIN_GROUP) -> tuple[str, str]:
    """What stands for a fact in `told`: one mark for the key, one for the key with this value."""
    return key_mark(key, group), value_mark(key, value, group)


def key_mark(key: str, group: str = MAIN_GROUP) -> str:
    return f"k{_digest(_within(group, key))}"


def value_mark(key: str, value: str, group: str = MAIN_GROUP) -> str:
    return f"v{_digest(_within(group, f'{key}={value}'))}"


def _within(group: str, text: str) -> str:
    return text if group == MAIN_GROUP else f"{group}\0{text}"


def entry_mark(entry_id: int) -> str:
    """What stands for a pair or a document in `told`."""
    return str(entry_id)


def text_mark(text: str, group: str = MAIN_GROUP) -> str:
    """What stands in `told` for something said that a client handed in, and that is stored nowhere else."""
    return f"t{_digest(_within(group, text.strip()))}"


def global_mark(global_id: int) -> str:
    """What stands in `told` for the global memory, whatever it says."""
    return f"g{global_id}"


def note_mark(session_id: str, note: str, group: str = MAIN_GROUP) -> str:
    """What stands in `told` for the note of a conversation, whatever it says, in whichever document."""
    return f"n{_digest(_within(group, f'{session_id}/{note}'))}"


def joined(marks: Iterable[str]) -> str:
    """The column `told` of a block with these marks."""
    return " ".join(marks)


def withdraw(tx: Connection, user_id: str, marks: Collection[str]) -> None:
    """Empty the user's blocks that tell any of these; all others stay as they are."""
    wanted = frozenset(marks)
    if not wanted:
        return
    rows = tx.rows(
        "select group_name, key, told from prompt_blocks where user_id = :user_id and told <> ''",
        user_id=user_id,
    )
    tx.execute_many(
        "update prompt_blocks set kept = :kept, told = '' where user_id = :user_id"
        " and group_name = :group_name and key = :key",
        [
            {"kept": WITHDRAWN, "user_id": user_id, "group_name": group_name, "key": key}
            for group_name, key, told in rows
            if not wanted.isdisjoint(told.split())
        ],
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
