"""The SQLite backend: one file, no server."""

from shepherd_sqlite.database import connect

__all__ = ["connect"]
