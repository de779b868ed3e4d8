"""Databases of the original shepherd: their rows, set aside by the migration, become ours."""

from shepherd_memory.config.identity import is_known
from shepherd_memory.errors import InvalidInput
from shepherd_memory.memory import context, facts
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import parse_us
from shepherd_memory.storage.database import Connection, Database, Row
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.text.canonical import as_text
from shepherd_memory.text.ids import MAX_ID_LENGTH
from shepherd_memory.text.redaction import redact

SOURCE = "shepherd-2"
OLD_USER = "local"
"""Whose the rows are that were written before the original knew users."""

_PAIRS = ("legacy_conversations", "legacy_context")
_FACTS = "legacy_facts"


def import_legacy_tables(database: Database, now: int) -> int:
    """Take over what an old database held, all at once, redacted; how many rows. Safe to call again."""
    with database.read() as connection:
        if not any(database.has_table(connection, name) for name in (*_PAIRS, _FACTS)):
            return 0
    with database.migrating() as tx:
        # Read again under the lock: another process may have adopted them meanwhile.
        columns = _set_aside(database, tx)
        taken = sum(_adopt_table(tx, name, columns[name], now) for name in sorted(columns))
        for name in columns:
            tx.execute_script(f"drop table {name}")
    database.purge()
    return taken


def _set_aside(database: Database, connection: Connection) -> dict[str, frozenset[str]]:
    return {
        name: columns for name, columns in database.tables(connection).items() if name in (*_PAIRS, _FACTS)
    }


def _adopt_table(tx: Connection, name: str, columns: frozenset[str], now: int) -> int:
    user = "user_id" if "user_id" in columns else f"'{OLD_USER}'"
    if name == _FACTS:
        rows = tx.rows(f"select {user}, key, value, updated_at, created_at from {name} order by 1, 2")
        return sum(_adopt_fact(tx, row, now) for row in rows)
    rows = tx.rows(f"select {user}, user_message, assistant_response, timestamp from {name} order by 1, id")
    return sum(_adopt_pair(tx, row, now) for row in rows)


def _adopt_fact(tx: Connection, row: Row, now: int) -> bool:
    user_id, key, value, updated_at, created_at = row
    where = Provenance(min(_moment(updated_at) or _moment(created_at) or now, now), SOURCE)
    try:
        name = facts.fact_key(_text(key))
    except InvalidInput:
        return False
    if not _text(value):
        return False
    row_id = users.lock(tx, _user(user_id), now)
    return facts.put(tx, _user(user_id), name, _text(value), where, now, row_id) == facts.STORED


def _adopt_pair(tx: Connection, row: Row, now: int) -> bool:
    user_id, question, answer, timestamp = row
    where = Provenance(min(_moment(timestamp) or now, now), SOURCE)
    row_id = users.lock(tx, _user(user_id), now)
    result = context.put(tx, _user(user_id), row_id, _text(question), _text(answer), where, now)
    return result == context.STORED


def _user(user_id: object) -> str:
    name = _text(user_id)[:MAX_ID_LENGTH]
    return name if is_known(name) else OLD_USER


def _text(value: object) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return redact("" if value is None else as_text(value))


def _moment(stamp: object) -> int | None:
    """The original wrote seconds; as text or as a number, depending on its version."""
    try:
        return parse_us(float(str(stamp))) or None
    except ValueError:
        return parse_us(stamp)
