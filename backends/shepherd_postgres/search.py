"""Vector search in Postgres: by pgvector where the server has it, else an exact scan here."""

from collections.abc import Sequence

from shepherd_memory.database import Connection, Neighbour, nearest_by_scan


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


def nearest_by_pgvector(
    connection: Connection, user_id: str, model: str, vector: Sequence[float], limit: int
) -> list[Neighbour]:
    """The nearest of the user's vectors, exactly: an index over all users would miss those of small users."""
    rows = connection.rows(
        "select kind, row_id, 1 - (embedding <=> cast(:vector as vector)) from vectors"
        " where user_id = :user_id and model = :model"
        " order by embedding <=> cast(:vector as vector), kind, row_id limit :limit",
        user_id=user_id,
        model=model,
        vector=to_text(vector),
        limit=limit,
    )
    return [Neighbour(*row) for row in rows]


def nearest_by_scan_of_rows(
    connection: Connection, user_id: str, model: str, vector: Sequence[float], limit: int
) -> list[Neighbour]:
    """The same without pgvector."""
    import numpy as np

    rows = connection.rows(
        "select kind, row_id, embedding from vectors where user_id = :user_id and model = :model"
        " order by kind, row_id",
        user_id=user_id,
        model=model,
    )
    if not rows:
        return []
    matrix = np.asarray([row[2] for row in rows], dtype=np.float32)
    return nearest_by_scan([(kind, row_id) for kind, row_id, _ in rows], matrix, vector, limit)
