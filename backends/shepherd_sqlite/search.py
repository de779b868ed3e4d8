"""Vector search in SQLite: the user's own vectors, scanned exactly."""

from array import array
from collections.abc import Sequence

from shepherd_memory.database import Connection, Neighbour, nearest_by_scan


def to_blob(values: Sequence[float]) -> bytes:
    """A vector as it is stored: 32-bit floats in the machine's order."""
    return array("f", values).tobytes()


def nearest(
    connection: Connection, user_id: str, model: str, vector: Sequence[float], limit: int
) -> list[Neighbour]:
    """The nearest of the user's vectors."""
    import numpy as np

    rows = connection.rows(
        "select kind, row_id, embedding from vectors where user_id = :user_id and model = :model"
        " order by kind, row_id",
        user_id=user_id,
        model=model,
    )
    if not rows:
        return []
    matrix = np.frombuffer(b"".join(row[2] for row in rows), dtype=np.float32).reshape(len(rows), -1)
    return nearest_by_scan([(kind, row_id) for kind, row_id, _ in rows], matrix, vector, limit)
