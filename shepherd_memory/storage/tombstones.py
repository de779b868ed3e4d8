"""Tombstones: what a user deleted does not come back from anything said before."""

from collections.abc import Iterable, Mapping, Sequence

from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.ids import digest_of
from shepherd_memory.text.words import content_stems, words

FACT, CONTEXT, DOCUMENT, SESSION = "fact", "context", "document", "session"

SAID = "said"
"""The digest of a forgotten message, for one that may come in another way, under another id."""

STATEMENT = "statement"
"""A message that stays, and of which nothing more is made: its session and id."""

WORDS = "words"
"""The words of a message that was deleted, as a digest: another copy of it, wherever it comes from."""

SPARED = "spared"
"""A message that has the words of a deleted one, and stays: its session and id."""

GLOBAL_MEMORY = "global_memory"
"""The text that every session began with."""

VALUE = "value"
"""A value of a fact that was deleted, as the number of its words and their digest: wherever it is said."""

SECTION = "section"
"""A section of the memory files that was deleted or forgotten, as a digest of its file and its heading."""

KINDS = (FACT, CONTEXT, DOCUMENT, SESSION, SAID, STATEMENT, WORDS, SPARED, GLOBAL_MEMORY, VALUE, SECTION)

MIN_VALUE_CHARS = 3
"""A shorter value says nothing by itself."""

LOOKED_UP = 40
"""Digests that are looked for in one query."""


def add(
    tx: Connection,
    user_id: str,
    kind: str,
    key: str,
    now: int,
    session_id: str = "",
    group: str = MAIN_GROUP,
) -> None:
    """Remember that this was deleted now."""
    add_all(tx, user_id, kind, [(key, session_id, now)], group)


def add_all(
    tx: Connection, user_id: str, kind: str, rows: Iterable[tuple[str, str, int]], group: str = MAIN_GROUP
) -> None:
    """The same for many of a kind: (key, session, when)."""
    tx.execute_many(
        "insert into tombstones (user_id, group_name, kind, session_id, key, deleted_at)"
        " values (:user_id, :group, :kind, :session_id, :key, :now)"
        " on conflict (user_id, group_name, kind, session_id, key) do update set deleted_at ="
        " case when excluded.deleted_at > tombstones.deleted_at then excluded.deleted_at"
        " else tombstones.deleted_at end",
        [
            {
                "user_id": user_id,
                "group": group,
                "kind": kind,
                "session_id": session_id,
                "key": key,
                "now": now,
            }
            for key, session_id, now in rows
        ],
    )


def after_deletion(
    connection: Connection, user_id: str, kind: str, key: str, now: int, group: str = MAIN_GROUP
) -> int:
    """When the user says it now by hand: later than its deletion, even one in the same instant."""
    return max(now, deleted_at(connection, user_id, kind, key, group)) + 1


def deleted_at(connection: Connection, user_id: str, kind: str, key: str, group: str = MAIN_GROUP) -> int:
    """When this was deleted last; -1 if it never was."""
    row = connection.row(
        "select deleted_at from tombstones where user_id = :user_id and group_name = :group"
        " and kind = :kind and session_id = '' and key = :key",
        user_id=user_id,
        group=group,
        kind=kind,
        key=key,
    )
    return -1 if row is None else int(row[0])


def exists(
    connection: Connection, user_id: str, kind: str, key: str, stated_at: int, group: str = MAIN_GROUP
) -> bool:
    """Whether this was deleted after it was stated."""
    deleted = deleted_at(connection, user_id, kind, key, group)
    return deleted >= max(stated_at, 0)


def take_back(
    tx: Connection, user_id: str, kind: str, key: str, before: int, group: str = MAIN_GROUP
) -> None:
    """Undo a deletion: of this there is again only the one that was on record before; -1: none."""
    tx.execute(
        "delete from tombstones where user_id = :user_id and group_name = :group and kind = :kind"
        " and session_id = '' and key = :key",
        user_id=user_id,
        group=group,
        kind=kind,
        key=key,
    )
    if before >= 0:
        add(tx, user_id, kind, key, before, group=group)


def is_buried(connection: Connection, user_id: str, where: Provenance) -> bool:
    """Whether nothing may be made of a statement: it was deleted, or its session after it was said."""
    row = connection.row(
        "select 1 from tombstones where user_id = :user_id and group_name = :group_name and"
        " (kind in ('document', 'statement') and session_id = :session_id and key = :message_id"
        " or kind = 'session' and session_id = '' and key = :session_id and deleted_at >= :stated_at)",
        user_id=user_id,
        group_name=where.group_name,
        session_id=where.session_id,
        message_id=where.message_id,
        stated_at=where.stated_at,
    )
    return row is not None


def buried_messages(
    connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP
) -> set[str]:
    """The ids of the messages of a session of which nothing may be made."""
    both = (_messages(connection, user_id, kind, session_id, group) for kind in (DOCUMENT, STATEMENT))
    return set().union(*both)


def spared_messages(
    connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP
) -> set[str]:
    """The ids of the messages of a session that stay although others in the same words were deleted."""
    return _messages(connection, user_id, SPARED, session_id, group)


def _messages(connection: Connection, user_id: str, kind: str, session_id: str, group: str) -> set[str]:
    rows = connection.rows(
        "select key from tombstones where user_id = :user_id and group_name = :group"
        " and kind = :kind and session_id = :session_id",
        user_id=user_id,
        group=group,
        kind=kind,
        session_id=session_id,
    )
    return {key for (key,) in rows}


def words_mark(text: str) -> str:
    """What stands for the words of a message, whatever its case and punctuation; "" if it says nothing."""
    return digest_of(" ".join(words(text))) if text and content_stems(text) else ""


def value_mark(value: str) -> str:
    """What stands for a value: how many words it has, and their digest; "" if it says nothing by itself."""
    said = words(value)
    tells = sum(map(len, said)) >= MIN_VALUE_CHARS and content_stems(value)
    return f"{len(said)}:{digest_of(' '.join(said))}" if tells else ""


def deleted_values(
    connection: Connection, user_id: str, since: int, group: str = MAIN_GROUP
) -> frozenset[str]:
    """The marks of the values of facts that were deleted since then."""
    rows = connection.rows(
        "select key from tombstones where user_id = :user_id and group_name = :group"
        " and kind = 'value' and session_id = '' and deleted_at >= :since",
        user_id=user_id,
        group=group,
        since=since,
    )
    return frozenset(key for (key,) in rows)


def has_value(text: str, marks: frozenset[str]) -> bool:
    """Whether one of the values with these marks stands anywhere in a text."""
    said = words(text)
    return any(
        f"{length}:{digest_of(' '.join(said[at : at + length]))}" in marks
        for length in {
            int(length) for length in (mark.partition(":")[0] for mark in marks) if length.isdigit()
        }
        for at in range(len(said) - length + 1)
    )


def buried_words(
    connection: Connection, user_id: str, marks: Iterable[str], group: str = MAIN_GROUP
) -> Mapping[str, int]:
    """Which of these words were deleted, and when."""
    wanted = sorted(set(marks) - {""})
    pieces = (wanted[at : at + LOOKED_UP] for at in range(0, len(wanted), LOOKED_UP))
    return {mark: when for piece in pieces for mark, when in _deleted(connection, user_id, piece, group)}


def _deleted(connection: Connection, user_id: str, marks: Sequence[str], group: str) -> list[tuple[str, int]]:
    names = {f"w{at}": mark for at, mark in enumerate(marks)}
    rows = connection.rows(
        "select key, deleted_at from tombstones where user_id = :user_id and group_name = :group"
        f" and kind = 'words' and session_id = '' and key in ({', '.join(f':{name}' for name in names)})",
        user_id=user_id,
        group=group,
        **names,
    )
    return [(mark, int(when)) for mark, when in rows]
