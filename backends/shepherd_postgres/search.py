"""Vector search in Postgres: by pgvector where the server has it, else an exact scan here."""

from collections.abc import Sequence
from typing import Any

from shepherd_memory.storage.database import Connection, Neighbour, nearest_by_scan


def prepare(tx: Connection) -> bool:
    """Use pgvector if it can be had; whether it is in use. Vectors stored without it are converted."""
    if not may_use_pgvector(tx):
        return False
    tx.execute_script("create extension if not exists vector with schema public")
    if not uses_pgvector(tx):
        tx.execute_script("alter table vectors alter column embedding type vector using embedding::vector")
    return True


def uses_pgvector(connection: Connection) -> bool:
    """Whether vectors are stored as pgvector's."""
    column = connection.row(
        "select udt_name from information_schema.columns where table_schema = current_schema()"
        " and table_name = 'vectors' and column_name = 'embedding'"
    )
    return column is not None and column[0] == "vector"


def may_use_pgvector(connection: Connection) -> bool:
    """Whether the extension is there, or can be made; asked, because a refusal would end the transaction."""
    found = connection.row(
        "select 1 from pg_extension where extname = 'vector' union all"
        " select 1 from pg_available_extension_versions v join pg_roles r on r.rolname = current_user"
        " where v.name = 'vector' and (r.rolsuper"
        " or v.trusted and has_database_privilege(current_database(), 'create')) limit 1"
    )
    return found is not None


def to_text(values: Sequence[float]) -> str:
    """A vector as pgvector reads it."""
    return "[" + ",".join(map(repr, map(float, values))) + "]"


def vectors_since(
    connection: Connection, user_id: str, model: str, seq: int, has_pgvector: bool
) -> tuple[Any, Any]:
    """The ids and vectors stored after `seq`, taken over in the server's binary form."""
    import numpy as np

    send = "vector_send" if has_pgvector else "array_send"
    rows = connection.rows(
        f"select id, {send}(embedding) from vectors where user_id = :user_id and model = :model"
        " and seq > :seq order by seq, id, part",
        user_id=user_id,
        model=model,
        seq=seq,
    )
    # A server may have had another model under the same name: only those like the newest can be compared.
    rows = [row for row in rows if len(row[1]) == len(rows[-1][1])]
    ids = np.asarray([row[0] for row in rows], dtype=np.int64)
    read = _read_vector if has_pgvector else _read_array
    if not rows:
        return ids, np.zeros((0, 0), dtype=np.float32)
    return ids, np.stack([read(row[1]) for row in rows]).astype(np.float32)


def _read_vector(sent: bytes) -> Any:
    """pgvector's form: the dimensions and a spare number in two bytes each, then big-endian floats."""
    import numpy as np

    return np.frombuffer(sent, dtype=">f4", offset=4)


def _read_array(sent: bytes) -> Any:
    """An array's form: 20 bytes of header, then each float behind its length."""
    import numpy as np

    return np.frombuffer(sent, dtype=[("length", ">i4"), ("value", ">f4")], offset=20)["value"]


def nearest_by_pgvector(
    connection: Connection, user_id: str, model: str, vector: Sequence[float], limit: int
) -> list[Neighbour]:
    """The nearest of the user's vectors, exactly: an index over all users would miss those of small users."""
    rows = connection.rows(
        "select id, 1 - (embedding <=> cast(:vector as vector)) from vectors"
        " where user_id = :user_id and model = :model"
        " order by embedding <=> cast(:vector as vector), id limit :limit",
        user_id=user_id,
        model=model,
        vector=to_text(vector),
        limit=limit,
    )
    return [Neighbour(*row) for row in rows]


def nearest_by_reading(
    connection: Connection, user_id: str, model: str, vector: Sequence[float], limit: int
) -> list[Neighbour]:
    """The same without pgvector."""
    return nearest_by_scan(*vectors_since(connection, user_id, model, 0, False), vector, limit)
