"""`shepherd memory export` and `import`: a user's memory as a file."""

import json
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import click

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.cli.opening import group_option, open_for_writing, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import (
    emit_json,
    emit_result,
    is_terminal,
    json_option,
    print_note,
)
from shepherd_memory.frontends.terminal.safe_text import safe_json
from shepherd_memory.storage.rows import as_json as plain

if TYPE_CHECKING:
    from shepherd_memory.service import Service

STDOUT = "-"


@click.command()
@click.argument("target", metavar="[FILE]", default=STDOUT)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@user_option
@group_option
@json_option
@pass_invocation
def export(
    invocation: Invocation, target: str, force: bool, user: str | None, group: str, as_json: bool
) -> None:
    """Write everything of a user as JSON lines.

    They go to FILE, or to stdout with `-` or none. With --json and FILE the number of lines is printed.
    """
    with open_for_writing(invocation, user) as (service, user_id):
        if target == STDOUT:
            number = _write(service.export(user_id, group=group), _to_stdout())
        else:
            with replacing(Path(target), force) as file:
                number = _write(_watched(service, user_id, group), file.write)
    if as_json and target != STDOUT:
        emit_json({"file": target, "lines": number})
    else:
        print_note(f"exported {number} lines of {user_id}")


@click.command("import")
@click.argument("source", metavar="FILE", type=click.File("rb"))
@user_option
@group_option
@json_option
@pass_invocation
def import_(invocation: Invocation, source: BinaryIO, user: str | None, group: str, as_json: bool) -> None:
    """Take in what export wrote.

    It comes from FILE, or from stdin with `-`. What is there already stays.
    """
    with open_for_writing(invocation, user) as (service, user_id), _progress(source) as progress:
        taken = service.import_lines(user_id, source, progress, group=group)
    kinds = ", ".join(f"{number} {kind}" for kind, number in taken.lines.items()) or "nothing in it"
    emit_result(as_json, plain(taken), f"imported for {user_id}: {kinds}")


def _write(lines: Generator[bytes, None, None], write: Callable[[bytes], object]) -> int:
    number = 0
    # Closed before the database, also when whoever reads stdout has left.
    with closing(lines):
        for line in lines:
            write(line)
            number += 1
    return number


def _to_stdout() -> Callable[[bytes], object]:
    """With what a terminal might obey escaped, which is the same JSON."""
    return lambda line: sys.stdout.buffer.write(safe_json(line.decode()).encode())


def _watched(service: "Service", user_id: str, group: str) -> Generator[bytes, None, None]:
    """The lines of an export, with a progress bar if somebody is watching."""
    with closing(service.export(user_id, group=group)) as lines:
        if not is_terminal(sys.stderr):
            yield from lines
            return
        expected = sum(service.row_counts(user_id, group=group).values())
        with click.progressbar(lines, length=expected, label="exporting", file=sys.stderr) as bar:
            yield from bar


@contextmanager
def _progress(source: BinaryIO) -> Iterator[Callable[[int], None]]:
    """Takes the sizes of what was read; draws a bar if somebody is watching and the end is known."""
    size = _size(source)
    if size and sys.stderr.isatty():
        with click.progressbar(length=size, label="importing", file=sys.stderr) as bar:
            yield bar.update
            bar.update(size - bar.pos)
    else:
        yield lambda read: None


def _size(source: BinaryIO) -> int:
    try:
        status = os.fstat(source.fileno())
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


@contextmanager
def replacing(path: Path, force: bool) -> Iterator[IO[bytes]]:
    """A private file that takes the place of `path` once it is whole, and disappears if it never is."""
    from tempfile import NamedTemporaryFile

    target = Path(os.path.realpath(path))
    _check_target(target, force)
    try:
        with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            try:
                yield file.file
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from error


def write_snapshot(path: Path, found: Any) -> None:
    """JSON for programs without the database, in a private file: whole, or as it was before."""
    with replacing(path, force=True) as file:
        file.write(safe_json(json.dumps(found, ensure_ascii=False, indent=2)).encode() + b"\n")


def _check_target(target: Path, force: bool) -> None:
    if not target.exists():
        return
    if not target.is_file():
        raise InvalidInput(f"{target} is not a regular file; print to stdout, and redirect that")
    if not force:
        raise InvalidInput(f"{target} exists; --force overwrites it")
