"""Indexing what came into the tables by another way: imports, old databases, an earlier version."""

from collections.abc import Iterator

from shepherd_memory.memory import entries
from shepherd_memory.memory.entries import CONTEXT, DOCUMENT, FACT, Entry, context_text, fact_text, terms_of
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection, Database, Row

BATCH = 200


def is_needed(database: Database) -> bool:
    """Whether the database comes from a version that did not index, or its indexing was interrupted."""
    with database.read() as connection:
        return database.has_table(connection, "unindexed")


def reindex_all_users(database: Database, now: int) -> int:
    """Index what is missing for every user, if anything is; how many entries."""
    with database.read() as connection:
        names = [row[0] for row in connection.rows("select user_id from users order by user_id")]
    done = sum(index_missing(database, user_id, now) for user_id in names)
    with database.write() as tx:
        tx.execute_script("drop table if exists unindexed")
    return done


def index_missing(database: Database, user_id: str, now: int) -> int:
    """Make findable what a user has that is not, in bounded batches; how many entries."""
    done = 0
    while found := _index_batch(database, user_id, now):
        done += found
    return done


def _index_batch(database: Database, user_id: str, now: int) -> int:
    """Index some of what is missing; how many were missing, 0 once nothing is."""
    _number_facts(database, user_id, now)
    with database.read() as connection:
        epoch = _epoch(connection, user_id)
        missing = list(_missing(connection, user_id))
    if not missing:
        return 0
    with database.write() as tx:
        # A deletion, or another process that indexes, raises the epoch: then all is looked at again.
        if users.lock_existing(tx, user_id) is not None and _epoch(tx, user_id) == epoch:
            entries.add(tx, user_id, missing, now)
            # Their ids may be lower than what caches have seen.
            users.bump_version(tx, user_id)
    return len(missing)


def _epoch(connection: Connection, user_id: str) -> tuple[int, ...] | None:
    return connection.row("select number, epoch from users where user_id = :user_id", user_id=user_id)


def _number_facts(database: Database, user_id: str, now: int) -> None:
    """Facts that were inserted without an id get one."""
    with database.read() as connection:
        rows = connection.rows(
            "select key, group_name from facts where user_id = :user_id and id = 0 limit :limit",
            user_id=user_id,
            limit=BATCH,
        )
    if not rows:
        return
    with database.write() as tx:
        first_id = users.lock_existing(tx, user_id, len(rows))
        if first_id is None:
            return
        tx.execute_many(
            "update facts set id = :id where user_id = :user_id and group_name = :group and key = :key"
            " and id = 0",
            [
                {"user_id": user_id, "group": group, "key": key, "id": first_id + at}
                for at, (key, group) in enumerate(rows)
            ],
        )


def _missing(connection: Connection, user_id: str) -> Iterator[Entry]:
    about = "t.group_name, t.session_id, t.stated_at"
    facts = _rows(connection, user_id, "facts", f"{about}, t.key, t.value", " and t.id <> 0")
    for row_id, group, session_id, stated_at, key, value in facts:
        terms = terms_of(fact_text(key, value))
        yield Entry(row_id, FACT, session_id, "user", "", stated_at, terms, group)
    pairs = _rows(connection, user_id, "context", f"{about}, t.question, t.answer")
    for row_id, group, session_id, stated_at, question, answer in pairs:
        terms = terms_of(context_text(question, answer))
        yield Entry(row_id, CONTEXT, session_id, "user", "", stated_at, terms, group)
    columns = "t.group_name, t.session_id, t.created_at, t.text, t.role, t.speaker_name"
    for row_id, group, session_id, said_at, text, role, speaker in _rows(
        connection, user_id, "documents", columns, " and t.text <> ''"
    ):
        yield Entry(row_id, DOCUMENT, session_id, role, speaker, said_at, terms_of(text), group)


def _rows(connection: Connection, user_id: str, table: str, columns: str, condition: str = "") -> list[Row]:
    return connection.rows(
        f"select t.id, {columns} from {table} t left join entries e on e.user_id = t.user_id and e.id = t.id"
        f" where t.user_id = :user_id and e.id is null{condition} order by t.id limit :limit",
        user_id=user_id,
        limit=BATCH,
    )
