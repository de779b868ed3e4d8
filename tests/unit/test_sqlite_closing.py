"""A SQLite database that is closed while somebody reads from it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from shepherd_memory.errors import DatabaseError
from shepherd_memory.storage.database import open_database


def test_who_reads_while_it_is_closed_reads_to_the_end(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'memory.db'}")
    with closing(database):
        with database.read() as first, database.read() as second:
            database.close()
            assert first.row("select 1") == second.row("select 1") == (1,)
            raw = first.raw  # type: ignore[attr-defined]
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            raw.execute("select 1")
        with pytest.raises(DatabaseError, match="is closed"), database.read():
            pass
        with pytest.raises(DatabaseError, match="is closed"), database.write():
            pass
