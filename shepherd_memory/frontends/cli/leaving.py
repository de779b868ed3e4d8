"""The end of a chat: it says what it waits for and how long, and Ctrl-C ends the wait."""

import shutil
import sys
import time
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import DatabaseError
from shepherd_memory.frontends.terminal.output import is_terminal, print_message
from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.terminal.tables import clip

if TYPE_CHECKING:
    from shepherd_memory.chat.flush import PendingWork
    from shepherd_memory.service import Service

SILENT_SECONDS = 1.0
"""Into a file or a pipe goes a line only about a wait that somebody may wonder about."""


def wait_for_memory(service: "Service", user_id: str, group: str) -> None:
    """Wait a little for what was said to be extracted; what is not goes on at the next start."""
    from shepherd_memory.chat.flush import wait_for_worker

    shown = _LineInPlace() if is_terminal(sys.stderr) else _LineOnce()
    try:
        left = wait_for_worker(service, user_id, group, shown.wait)
    except KeyboardInterrupt:
        left = "not everything is extracted yet"
    except DatabaseError as error:
        # What was said is stored, or was said not to be; how far extraction is, is not worth an error.
        left = f"how much waits for extraction cannot be seen ({escape_line(str(error))})"
    shown.end(left)


def _waiting_line(work: "PendingWork", seconds: float) -> str:
    return f"remembering … {work.doing}, {seconds:.0f} s at most (Ctrl-C leaves it for later)"


def _print_left(left: str) -> None:
    if left:
        print_message(f"{left}; it goes on at the next start")


class _LineInPlace:
    """For a terminal: one line that changes, and is gone when the wait is over."""

    def __init__(self) -> None:
        self._line = ""

    def wait(self, work: "PendingWork", seconds: float) -> None:
        line = clip(_waiting_line(work, seconds), shutil.get_terminal_size().columns - 1)
        if line != self._line:
            self._line = line
            click.echo(f"\r{line}\x1b[K", nl=False, err=True, color=True)

    def end(self, left: str) -> None:
        click.echo("\r\x1b[K", nl=False, err=True, color=True)
        _print_left(left)


class _LineOnce:
    """For a file or a pipe: a line that the wait has begun, and one about what is left."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._is_said = False

    def wait(self, work: "PendingWork", seconds: float) -> None:
        if not self._is_said and time.monotonic() - self._begun >= SILENT_SECONDS:
            self._is_said = True
            print_message(_waiting_line(work, seconds))

    def end(self, left: str) -> None:
        if self._is_said:
            _print_left(left)
