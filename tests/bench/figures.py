"""Tables of figures, and the databases that the reports run on."""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from shepherd_memory.storage.database import Database, open_database
from tests.postgres import PostgresUnavailable, running_postgres


def write_table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table with a column of names and columns of figures."""
    lines = [list(map(str, line)) for line in [head, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sys.stdout.write(f"\n{title}\n")
    for name, *cells in lines:
        figures = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        sys.stdout.write("  ".join(["", name.ljust(widths[0]), *figures]) + "\n")


def write_line(text: str) -> None:
    sys.stdout.write(f"  {text}\n")


def write_shares(title: str, seconds: Mapping[str, float], number: int) -> None:
    """How a whole is made up of its parts, per one of `number`."""
    whole = sum(seconds.values())
    rows = [
        (part, f"{spent / number * 1e6:.0f} µs", f"{spent / whole:.0%}") for part, spent in seconds.items()
    ]
    write_table(
        title, ("part", "CPU", "share"), [*rows, ("together", f"{whole / number * 1e6:.0f} µs", "100%")]
    )


def ratio(figure: float, reference: float) -> str:
    return f"{figure / reference:.2f}x"


@contextmanager
def each_backend() -> Iterator[Mapping[str, str]]:
    """The URL of an empty database of each backend; without Postgres here, of SQLite alone."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        urls = {"sqlite": f"sqlite:///{folder}/memory.db"}
        try:
            server = stack.enter_context(running_postgres())
        except PostgresUnavailable as error:
            sys.stdout.write(f"without Postgres: {error}\n")
        else:
            name = f"shepherd_bench_{os.getpid()}"
            server.create_database(name)
            stack.callback(server.drop_database, name)
            urls["postgresql"] = server.dsn(name)
        yield urls


@contextmanager
def each_database() -> Iterator[Mapping[str, Database]]:
    """An empty database of each backend, open."""
    with each_backend() as urls, ExitStack() as stack:
        yield {name: stack.enter_context(closing(open_database(url))) for name, url in urls.items()}
