"""Vectors in SQLite: blobs of 32-bit floats, scanned exactly."""

from array import array
from collections.abc import Sequence
from typing import Any

from shepherd_memory.storage.database import Connection, Neighbour, nearest_by_scan


def to_blob(values: Sequence[float]) -> bytes:
    """A vector as it is stored: 32-bit floats in the machine's order."""
    return array("f", values).tobytes()


def vectors_since(connection: Connection, user_id: str, model: str, seq: int) -> tuple[Any, Any]:
    """The ids and vectors stored after `seq`."""
    import numpy as np

    rows = connection.rows(
        "select id, embedding from vectors where user_id = :user_id and model = :model and seq > :seq"
        " order by seq, id, part",
        user_id=user_id,
        model=model,
        seq=seq,
    )
    # A server may have had another model under the same name: only those like the newest can be compared.
    rows = [row for row in rows if len(row[1]) == len(rows[-1][1])]
    ids = np.asarray([row[0] for row in rows], dtype=np.int64)
    joined = np.frombuffer(b"".join(row[1] for row in rows), dtype=np.float32)
    return ids, joined.reshape(len(rows), -1) if rows else joined.reshape(0, 0)


def nearest(
    connection: Connection, user_id: str, model: str, vector: Sequence[float], limit: int
) -> list[Neighbour]:
    """The nearest of the user's vectors."""
    return nearest_by_scan(*vectors_since(connection, user_id, model, 0), vector, limit)
