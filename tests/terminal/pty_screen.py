"""A program on a real terminal: keys go in, and what a person would see comes out.

    with terminal("shepherd", "chat") as screen:
        screen.wait_for("> ")
        screen.type("Hello\\r")

The program is a job in the foreground of a small shell, as it is for a person: Ctrl-C reaches it alone, and
its terminal can be looked at after it has ended.
"""

import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pyte
from pyte.modes import LNM

from tests.fork_server import Popen

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 180.0

UP, DOWN, RIGHT, LEFT = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
ESCAPE, TAB, ENTER, ALT_ENTER = "\x1b", "\t", "\r", "\x1b\r"
BACKSPACE = "\x7f"
DEAF_TO_HANGUPS = ("sh", "-c", 'trap "" HUP; exec "$@"', "sh")
"""Before a command: it is not told when its window is closed."""

_BRACKETED_PASTE = 2004 << 5
"""As pyte counts private modes."""


def ctrl(letter: str) -> str:
    """The character that a key gives with Ctrl held down."""
    return chr(ord(letter.upper()) & 0x1F)


class _Emulator(pyte.Screen):
    """Answers what programs ask a terminal, and lets modern questions pass."""

    def __init__(self, columns: int, lines: int, answer: Callable[[str], None]) -> None:
        super().__init__(columns, lines)
        self._answer = answer
        # A line feed goes down only: the terminal driver adds the carriage return.
        self.reset_mode(LNM)

    def write_process_input(self, data: str) -> None:
        self._answer(data)

    def select_graphic_rendition(self, *attributes: int, **private: Any) -> None:
        # With a `>` it is a setting of the keyboard, which pyte takes for colours.
        if not private.get("private"):
            super().select_graphic_rendition(*attributes)


class Terminal:
    """A terminal with one program on it."""

    def __init__(self, ours: int, shell: "subprocess.Popen[bytes]", reports: socket.socket) -> None:
        self._ours = ours
        self._shell = shell
        self._reports = reports
        self._lines = reports.makefile("r")
        self._changed = threading.Condition()
        self._is_open = True
        self._wake, self._woken = socket.socketpair()
        self._emulator = _Emulator(80, 24, self._answer)
        self._stream = pyte.ByteStream(self._emulator)
        self.raw = b""
        """Everything that the program has written."""
        self.settings_before = self.settings()
        """Of the terminal driver, before the program has changed them."""
        told = self._lines.readline()
        assert told, f"the shell did not start: {os.read(ours, 65536)!r}"
        self.pid = int(told)
        self._reader = threading.Thread(target=self._read, name="test-terminal")

    def start(self, columns: int, lines: int) -> None:
        self._emulator.resize(lines, columns)
        self._reader.start()

    def type(self, keys: str | bytes) -> None:
        """Press these keys."""
        data = keys if isinstance(keys, bytes) else keys.encode()
        while data:
            data = data[os.write(self._ours, data) :]

    def paste(self, text: str) -> None:
        """Paste as a terminal does it: in brackets, if the program has asked for them."""
        with self._changed:
            in_brackets = _BRACKETED_PASTE in self._emulator.mode
        data = text.replace("\n", "\r")
        self.type(f"\x1b[200~{data}\x1b[201~" if in_brackets else data)

    def resize(self, columns: int, lines: int) -> None:
        """Make the window another size; the program is told."""
        with self._changed:
            self._emulator.resize(lines, columns)
        set_size(self._ours, columns, lines)

    def lines(self) -> list[str]:
        """What is on the screen now, without trailing blanks."""
        with self._changed:
            return self._shown()

    def text(self) -> str:
        """The same in one piece, without the empty lines at the end."""
        return "\n".join(self.lines()).rstrip("\n")

    def _shown(self) -> list[str]:
        return [line.rstrip() for line in self._emulator.display]

    def cursor(self) -> tuple[int, int]:
        """Column and line, from 0."""
        with self._changed:
            return self._emulator.cursor.x, self._emulator.cursor.y

    def line(self) -> str:
        """The line that the cursor is in."""
        with self._changed:
            return self._shown()[self._emulator.cursor.y]

    def colours(self) -> set[str]:
        """The colours that text on the screen has, but for the usual one."""
        with self._changed:
            rows = [dict(row) for row in self._emulator.buffer.values()]
        return {cell.fg for row in rows for cell in row.values()} - {"default"}

    def wait_for(self, *texts: str, gone: str = "") -> str:
        """Wait until all of these are on the screen, and `gone` is not; the screen."""

        def is_there() -> bool:
            shown = "\n".join(self._shown())
            return all(text in shown for text in texts) and not (gone and gone in shown)

        self._wait(is_there, f"{texts} on the screen" + (f" without {gone!r}" if gone else ""))
        return self.text()

    def wait_for_line(self, text: str) -> None:
        """Wait until the cursor is in a line that is this, trailing blanks aside."""
        self._wait(lambda: self._shown()[self._emulator.cursor.y] == text.rstrip(), f"line {text!r}")

    def wait_until(self, condition: Callable[[list[str]], object], what: str) -> None:
        """Wait for something to be true of the lines on the screen."""
        self._wait(lambda: bool(condition(self._shown())), what)

    def _wait(self, is_there: Callable[[], bool], what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(is_there, PATIENCE_SECONDS):
                raise AssertionError(f"no {what}:\n" + "\n".join(self._shown()) + f"\n{self.raw[-500:]!r}")

    def settings(self) -> list[Any]:
        """How the terminal driver is set: echo, line mode, special characters."""
        return termios.tcgetattr(self._ours)

    def set(self, settings: list[Any]) -> None:
        """Set it so, as a shell does for a job that goes on."""
        termios.tcsetattr(self._ours, termios.TCSANOW, settings)

    def is_raw(self) -> bool:
        """Whether the program reads each key by itself, Ctrl-C among them."""
        return not self.settings()[3] & termios.ISIG

    def wait_until_raw(self, is_raw: bool = True) -> None:
        """Wait until the program reads each key by itself, or does so no longer."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.is_raw() != is_raw:
            assert time.monotonic() < deadline, f"raw is still {not is_raw}:\n{self.text()}"
            time.sleep(0.01)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the program itself."""
        os.kill(self.pid, number)

    def hang_up(self) -> None:
        """Close the window."""
        if self._is_open:
            self._is_open = False
            # A terminal that somebody reads from stays open, whatever is closed.
            self._wake.close()
            self._reader.join(PATIENCE_SECONDS)
            os.close(self._ours)

    def exit_code(self) -> int:
        """Wait until the program has ended; negative is the signal that killed it."""
        self._reports.settimeout(PATIENCE_SECONDS)
        try:
            return int(json.loads(self._lines.readline())["exit"])
        except TimeoutError as error:
            raise AssertionError(f"the program does not end:\n{self.text()}") from error

    def left_behind(self) -> list[psutil.Process]:
        """Processes that the program has started and that are still there."""
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self._shell.pid).children(recursive=True)
        return []

    def close(self) -> None:
        """End everything that is on the terminal."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._lines.close()
        self._reports.close()
        self._shell.wait(PATIENCE_SECONDS)
        self.hang_up()

    def _answer(self, data: str) -> None:
        with suppress(OSError):
            self.type(data)

    def _may_read(self) -> bool:
        woken = self._woken.fileno()
        return woken not in select.select([self._ours, woken], [], [])[0]

    def _read(self) -> None:
        # EIO: nobody has the other end any more.
        with suppress(OSError), self._woken:
            while self._may_read() and (piece := os.read(self._ours, 65536)):
                with self._changed:
                    self.raw += piece
                    self._stream.feed(piece)
                    self._changed.notify_all()


@contextmanager
def terminal(
    *command: object,
    columns: int = 80,
    lines: int = 24,
    cwd: Path | str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Terminal]:
    """Start a command on a terminal of its own, and end it."""
    ours, theirs = os.openpty()
    set_size(ours, columns, lines)
    reports, told = socket.socketpair()
    variables = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **(environment or {})}
    for name in ("COLUMNS", "LINES"):
        variables.pop(name, None)
    with told:
        shell = Popen[bytes](
            [sys.executable, "-m", "tests.terminal.pty_job", str(told.fileno()), *map(str, command)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            pass_fds=[told.fileno()],
            cwd=cwd,
            env=variables,
        )
        os.close(theirs)
    screen = Terminal(ours, shell, reports)
    screen.start(columns, lines)
    try:
        yield screen
    finally:
        screen.close()


def set_size(descriptor: int, columns: int, lines: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
