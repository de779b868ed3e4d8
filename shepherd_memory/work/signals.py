"""Signals between processes: numbers that rise, and that are cheap to look at."""

from shepherd_memory.storage.database import Connection


def send(tx: Connection, name: str) -> None:
    """Raise a signal; others who do so wait until the transaction ends."""
    tx.execute(
        "insert into job_kinds (kind, claims) values (:name, 1)"
        " on conflict (kind) do update set claims = job_kinds.claims + 1",
        name=name,
    )


def seen(connection: Connection, name: str) -> int:
    """How often it was raised: more than last time means that something happened since."""
    row = connection.row("select claims from job_kinds where kind = :name", name=name)
    return 0 if row is None else int(row[0])
