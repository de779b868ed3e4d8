"""The Postgres backend: for when one machine is no longer enough."""

from shepherd_postgres.database import connect

__all__ = ["connect"]
