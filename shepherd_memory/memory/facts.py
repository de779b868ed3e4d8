"""Facts: key → value, the newest statement in view and the older ones in history."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from shepherd_memory.errors import InvalidInput
from shepherd_memory.memory import entries, restatements
from shepherd_memory.memory.fact_keys import normalise_key
from shepherd_memory.memory.restatements import Restatement
from shepherd_memory.storage import prompt_blocks, tombstones
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.rows import Provenance, build
from shepherd_memory.storage.tombstones import FACT, add, after_deletion, exists
from shepherd_memory.storage.users import bump_version, lock
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.canonical import as_text
from shepherd_memory.text.groups import GLOBAL_GROUP, MAIN_GROUP, nearness

COLUMNS = (
    "id, key, value, stated_at, source, session_id, message_id, created_at, updated_at, use_count,"
    " last_used_at, group_name"
)
HISTORY_COLUMNS = "key, value, stated_at, source, session_id, message_id, group_name"

LOOKED_UP = 500
"""So many keys in one query: databases limit its parameters."""

STORED, UNCHANGED, OLDER, DELETED = "stored", "unchanged", "older", "deleted"


@dataclass(frozen=True)
class Fact:
    """The current value of a key; `id` is new with each new value."""

    id: StoredId
    key: str
    value: str
    stated_at: datetime
    source: str
    session_id: str
    message_id: str
    created_at: datetime
    updated_at: datetime
    use_count: int
    last_used_at: datetime | None
    group_name: str = MAIN_GROUP


@dataclass(frozen=True)
class PastFact:
    """A value that a key had from `stated_at` until `ended_at`; None: it still has it."""

    key: str
    value: str
    stated_at: datetime
    source: str
    session_id: str
    message_id: str
    group_name: str = MAIN_GROUP
    ended_at: datetime | None = None


def fact_key(raw: str) -> str:
    """`raw` as facts are keyed: snake_case without a `user_` prefix."""
    key = normalise_key(as_text(raw))
    if not key:
        raise InvalidInput(f"{raw!r} has no letters or digits to make a fact's key of")
    return key


def put_by_hand(
    tx: Connection, user_id: str, key: str, value: str, where: Provenance, now: int, row_id: int
) -> str:
    """Take in what the user sets or accepts now: it wins, whatever times the older statements bear."""
    current = get(tx, user_id, key, where.group_name)
    stated_at = after_deletion(tx, user_id, FACT, key, now, where.group_name)
    if current is not None:
        stated_at = max(stated_at, to_us(current.stated_at))
    return put(tx, user_id, key, value, replace(where, stated_at=stated_at), now, row_id)


def put(tx: Connection, user_id: str, key: str, value: str, where: Provenance, now: int, row_id: int) -> str:
    """Take in a statement: the newest *statement* wins, whenever it is written.

    Returns STORED, UNCHANGED, OLDER (it went to history) or DELETED (the user deleted the key later).
    """
    if exists(tx, user_id, FACT, key, where.stated_at, where.group_name):
        return DELETED
    current = get(tx, user_id, key, where.group_name)
    if current is None:
        _insert(tx, user_id, row_id, key, value, where, now)
        return STORED
    if where.stated_at < to_us(current.stated_at):
        if value == current.value:
            restatements.add(tx, user_id, row_id, FACT, key, value, where)
            return UNCHANGED
        _insert_past(tx, user_id, row_id, key, value, where)
        return OLDER
    return _replace(tx, user_id, current, value, where, now, row_id)


def _replace(
    tx: Connection, user_id: str, current: Fact, value: str, where: Provenance, now: int, row_id: int
) -> str:
    before = _provenance(current)
    if value != current.value:
        _insert_past(tx, user_id, row_id, current.key, current.value, before)
        _remove_entry(tx, user_id, current)
        _add_entry(tx, user_id, row_id, current.key, value, where, now)
    else:
        entries.restate(tx, user_id, current.id, where.stated_at)
        if (before.session_id, before.message_id) != (where.session_id, where.message_id):
            restatements.add(tx, user_id, row_id, FACT, current.key, value, before)
    tx.execute(
        "update facts set id = :id, value = :value, stated_at = :stated_at, source = :source,"
        " session_id = :session_id, message_id = :message_id, updated_at = :now"
        " where user_id = :user_id and group_name = :group_name and key = :key",
        user_id=user_id,
        key=current.key,
        id=row_id if value != current.value else current.id,
        value=value,
        now=now,
        **asdict(where),
    )
    return STORED if value != current.value else UNCHANGED


def _insert(
    tx: Connection, user_id: str, row_id: int, key: str, value: str, where: Provenance, now: int
) -> None:
    _add_entry(tx, user_id, row_id, key, value, where, now)
    tx.execute(
        "insert into facts (user_id, group_name, id, key, value, stated_at, source, session_id, message_id,"
        " created_at, updated_at) values (:user_id, :group_name, :id, :key, :value, :stated_at, :source,"
        " :session_id, :message_id, :now, :now)",
        user_id=user_id,
        id=row_id,
        key=key,
        value=value,
        now=now,
        **asdict(where),
    )


def _add_entry(
    tx: Connection, user_id: str, row_id: int, key: str, value: str, where: Provenance, now: int
) -> None:
    terms = entries.terms_of(entries.fact_text(key, value))
    entry = entries.Entry(
        row_id, entries.FACT, where.session_id, "user", "", where.stated_at, terms, where.group_name
    )
    entries.add(tx, user_id, [entry], now)


def _remove_entry(tx: Connection, user_id: str, fact: Fact) -> None:
    entries.remove(tx, user_id, fact.id, entries.fact_text(fact.key, fact.value))
    bump_version(tx, user_id)


def _insert_past(
    tx: Connection, user_id: str, history_id: int, key: str, value: str, where: Provenance
) -> None:
    """Once: the same value of the same statement is not put into history twice."""
    tx.execute(
        f"insert into fact_history (user_id, id, {HISTORY_COLUMNS})"
        " select :user_id, :id, :key, :value, :stated_at, :source, :session_id, :message_id, :group_name"
        " where not exists (select 1 from fact_history where user_id = :user_id"
        " and group_name = :group_name and key = :key"
        " and value = :value and stated_at = :stated_at)",
        user_id=user_id,
        id=history_id,
        key=key,
        value=value,
        **asdict(where),
    )


def get(connection: Connection, user_id: str, key: str, group: str = MAIN_GROUP) -> Fact | None:
    """The current value that a key has in a group."""
    row = connection.row(
        f"select {COLUMNS} from facts where user_id = :user_id and group_name = :group and key = :key",
        user_id=user_id,
        group=group,
        key=key,
    )
    return None if row is None else build(Fact, row)


def nearest(connection: Connection, user_id: str, key: str, group: str) -> Fact | None:
    """The current value of a key as a group sees it: its own, else that of `global`, else of another."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {COLUMNS} from facts where user_id = :user_id and key = :key{among}",
        user_id=user_id,
        key=key,
        **seen,
    )
    found = [build(Fact, row) for row in rows]
    return min(found, key=lambda fact: nearness(group, fact.group_name), default=None)


def ids_told(connection: Connection, user_id: str, keys: Sequence[str], group: str) -> list[int]:
    """The facts that a group's prompts are told under some keys: its own, else those of `global`."""
    found: dict[str, tuple[int, int]] = {}
    for at in range(0, len(keys), LOOKED_UP):
        names = {f"key{number}": key for number, key in enumerate(keys[at : at + LOOKED_UP])}
        among = ", ".join(f":{name}" for name in names)
        rows = connection.rows(
            "select key, case when group_name = :group then 0 else 1 end, id from facts"
            f" where user_id = :user_id and group_name in (:group, '{GLOBAL_GROUP}')"
            f" and key in ({among})",
            user_id=user_id,
            group=group,
            **names,
        )
        for key, distance, fact_id in rows:
            found[key] = min(found.get(key, (distance, fact_id)), (distance, fact_id))
    return [found[key][1] for key in keys if key in found]


def listing(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> list[Fact]:
    """All current facts that a group sees, by key, and of one key the nearest first."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {COLUMNS} from facts where user_id = :user_id{among} order by key", user_id=user_id, **seen
    )
    found = [build(Fact, row) for row in rows]
    return sorted(found, key=lambda fact: (fact.key, nearness(group, fact.group_name)))


def profile(connection: Connection, user_id: str, group: str) -> list[Fact]:
    """What a group's prompts are told: its own facts by key, then those of `global` that it has not."""
    rows = connection.rows(
        f"select {COLUMNS} from facts where user_id = :user_id and group_name in (:group, '{GLOBAL_GROUP}')"
        " order by key",
        user_id=user_id,
        group=group,
    )
    found = [build(Fact, row) for row in rows]
    own = [fact for fact in found if fact.group_name == group]
    keys = {fact.key for fact in own}
    return [*own, *(fact for fact in found if fact.group_name != group and fact.key not in keys)]


def of_message(
    connection: Connection, user_id: str, session_id: str, message_id: str, group: str = MAIN_GROUP
) -> list[Fact]:
    """The current facts that were stated in a message, by key."""
    rows = connection.rows(
        f"select {COLUMNS} from facts where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and message_id = :message_id order by key",
        user_id=user_id,
        group=group,
        session_id=session_id,
        message_id=message_id,
    )
    return [build(Fact, row) for row in rows]


def past_of_message(
    connection: Connection, user_id: str, session_id: str, message_id: str, group: str = MAIN_GROUP
) -> list[PastFact]:
    """The values of before that were stated in a message."""
    rows = connection.rows(
        f"select {HISTORY_COLUMNS} from fact_history where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and message_id = :message_id order by key, id",
        user_id=user_id,
        group=group,
        session_id=session_id,
        message_id=message_id,
    )
    return [build(PastFact, row) for row in rows]


def history(connection: Connection, user_id: str, key: str, group: str = MAIN_GROUP) -> list[PastFact]:
    """The timeline of a key in a group, oldest first; the current value is the last, with no end."""
    rows = connection.rows(
        f"select {HISTORY_COLUMNS} from fact_history where user_id = :user_id and group_name = :group"
        " and key = :key order by stated_at, id",
        user_id=user_id,
        group=group,
        key=key,
    )
    timeline = [build(PastFact, row) for row in rows]
    current = get(connection, user_id, key, group)
    if current is not None:
        timeline.append(_as_past(current))
    ends = [entry.stated_at for entry in timeline[1:]]
    return [replace(entry, ended_at=end) for entry, end in zip(timeline, [*ends, None], strict=False)]


def stated(connection: Connection, user_id: str, keys: Sequence[str]) -> set[tuple[str, str, str]]:
    """The keys with every value that they have or had, and the group that says so."""
    names = {f"key{number}": key for number, key in enumerate(keys)}
    if not names:
        return set()
    chosen = f"where user_id = :user_id and key in ({', '.join(f':{name}' for name in names)})"
    rows = connection.rows(
        f"select key, value, group_name from facts {chosen}"
        f" union select key, value, group_name from fact_history {chosen}",
        user_id=user_id,
        **names,
    )
    return {(key, value, group) for key, value, group in rows}


def nearest_history(connection: Connection, user_id: str, key: str, group: str) -> list[PastFact]:
    """The timeline of a key in the nearest of the groups that a group sees and that know the key."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select group_name from facts where user_id = :user_id and key = :key{among}"
        f" union select group_name from fact_history where user_id = :user_id and key = :key{among}",
        user_id=user_id,
        key=key,
        **seen,
    )
    knowing = min((name for (name,) in rows), key=lambda name: nearness(group, name), default=group)
    return history(connection, user_id, key, knowing)


def _as_past(fact: Fact) -> PastFact:
    return PastFact(
        fact.key,
        fact.value,
        fact.stated_at,
        fact.source,
        fact.session_id,
        fact.message_id,
        fact.group_name,
    )


def _provenance(fact: Fact | PastFact | Restatement) -> Provenance:
    return Provenance(to_us(fact.stated_at), fact.source, fact.session_id, fact.message_id, fact.group_name)


def statements_of(
    connection: Connection, user_id: str, key: str, group: str = MAIN_GROUP
) -> list[Provenance]:
    """Every statement that a fact rests on: of its value and of those before it, oldest first."""
    past: list[PastFact | Restatement] = [*history(connection, user_id, key, group)]
    found = map(_provenance, [*past, *restatements.of_key(connection, user_id, FACT, key, group)])
    return sorted((where for where in found if where.message_id), key=lambda where: where.stated_at)


def delete(tx: Connection, user_id: str, key: str, now: int, group: str = MAIN_GROUP) -> bool:
    """Delete a fact and its history; older statements will not bring it back."""
    found = get(tx, user_id, key, group)
    if found is not None:
        _remove_entry(tx, user_id, found)
    where = "where user_id = :user_id and group_name = :group and key = :key"
    tx.execute(f"delete from facts {where}", user_id=user_id, group=group, key=key)
    past = tx.execute(f"delete from fact_history {where}", user_id=user_id, group=group, key=key)
    restatements.delete_key(tx, user_id, FACT, key, group)
    prompt_blocks.withdraw(tx, user_id, [prompt_blocks.key_mark(key, group)])
    add(tx, user_id, FACT, key, max(now, to_us(found.stated_at)) if found else now, group=group)
    bump_version(tx, user_id)
    return bool(found or past)


def delete_session(tx: Connection, user_id: str, session_id: str, now: int, group: str = MAIN_GROUP) -> int:
    """Delete the values, current and past, that were stated in a session; how many.

    A key that had another value before, or that was said elsewhere too, has that one again.
    """
    return _delete_stated(tx, user_id, session_id, None, now, group)


def delete_statement(
    tx: Connection, user_id: str, session_id: str, message_id: str, now: int, group: str = MAIN_GROUP
) -> int:
    """The same for one message of a session."""
    return _delete_stated(tx, user_id, session_id, message_id, now, group)


def _delete_stated(
    tx: Connection, user_id: str, session_id: str, message_id: str | None, now: int, group: str
) -> int:
    stated = (
        " where user_id = :user_id and group_name = :group and session_id = :session_id"
        " and message_id = coalesce(:message_id, message_id)"
    )
    names = {"user_id": user_id, "group": group, "session_id": session_id, "message_id": message_id}
    past = tx.rows(f"delete from fact_history{stated} returning key, value", **names)
    prompt_blocks.withdraw(tx, user_id, [prompt_blocks.value_mark(key, value, group) for key, value in past])
    restatements.delete_statements(tx, user_id, session_id, message_id, group)
    rows = tx.rows(f"select key, value from facts{stated}", **names)
    gone = [key for key, value in rows if _step_back(tx, user_id, key, now, group) != value]
    return len(past) + len(gone)


def _step_back(tx: Connection, user_id: str, key: str, now: int, group: str) -> str | None:
    """Delete the current value of a key; the newest of its other statements takes its place, and says it."""
    earlier: list[PastFact | Restatement] = [*history(tx, user_id, key, group)[:-1]]
    earlier += restatements.of_key(tx, user_id, FACT, key, group)
    earlier.sort(key=lambda one: one.stated_at)
    deleted = tombstones.deleted_at(tx, user_id, FACT, key, group)
    delete(tx, user_id, key, now, group)
    if earlier:
        tombstones.take_back(tx, user_id, FACT, key, deleted, group)
    for past in earlier:
        put(tx, user_id, key, past.value, _provenance(past), now, lock(tx, user_id, now))
    return earlier[-1].value if earlier else None
