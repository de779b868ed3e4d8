"""From a key to the screen of `shepherd tui`: at rest, while an answer streams, while recall searches.

The program runs on a terminal of its own and its provider in another process. Letters that nothing else on
the screen has are typed one by one, and each is waited for in what the program writes. Everything is compared
in one run. The number of documents that recall searches can be given.

Where others use the machine as well, a key waits for them. How long the program's main thread was ready to
run and had no core is known on Linux: what is left without it, the program's own part, is told as well.
"""

import fcntl
import os
import pty
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import tomli_w

from shepherd_memory.config import load_config
from shepherd_memory.embedding import model_name
from shepherd_memory.service import open_service
from tests.bench.figures import ratio, write_line, write_table
from tests.endpoint import Call
from tests.provider import chat, openai_events

DOCUMENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
LETTERS = "αβγδεζηθικλμνξοπρστυφχψωабвгдежзийклмнопрстуфхцчшщъыьэюя"
KEYS = 50
PAUSE_SECONDS = 0.08
PACE_SECONDS = 0.004
CHARACTERS = 100_000
START_SECONDS = 60.0
BLINKING = 500
"""Bytes in a second."""
USER = "ann"

PARAGRAPH = (
    "## Section\n\nSome **bold** words, *others* and `code` in a [link](https://example.org) that wrap at the"
    " end of the line.\n\n- one item\n- another item, with more words in it\n\n"
    "```python\ndef f(x):\n    return x + 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
)


@dataclass(frozen=True)
class Paced:
    """A stream as a fast model sends it."""

    events: Sequence[bytes]

    def perform(self, call: Call) -> None:
        call.send_head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for event in self.events:
            call.handler.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            time.sleep(PACE_SECONDS)
        call.handler.wfile.write(b"0\r\n\r\n")


@dataclass(frozen=True)
class LongOrShort:
    """A hundred thousand characters for whoever asks for a long answer, else two."""

    events: Sequence[bytes]

    def perform(self, call: Call) -> None:
        messages = (call.received.json or {}).get("messages") or [{}]
        is_long = str(messages[-1].get("content", "")).startswith("long")
        (Paced(self.events) if is_long else chat("ok")).perform(call)


def _provide(tell: Connection) -> None:
    """The provider's process."""
    from tests.provider import ScriptedProvider

    text = PARAGRAPH * (CHARACTERS // len(PARAGRAPH) + 1)
    pieces = [text[at : at + 40] for at in range(0, CHARACTERS, 40)]
    events = [event for event in openai_events(pieces) if isinstance(event, bytes)]
    with ScriptedProvider() as provider:
        provider.default = LongOrShort(events)
        tell.send(provider.url)
        threading.Event().wait()


@contextmanager
def _provider() -> Iterator[str]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_provide, args=(theirs,))
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


@dataclass(frozen=True)
class Key:
    """From a key to the first sight of it; how much of that the program was ready to run and had no core."""

    seconds: float
    waited: float

    @property
    def own(self) -> float:
        return max(self.seconds - self.waited, 0.0)


class Screen:
    """The program on a terminal, and what it has written."""

    def __init__(self, config: Path, columns: int = 120, lines: int = 40) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        command = [sys.executable, "-m", "shepherd_memory", "--config", str(config), "tui"]
        variables = {**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": str(config.parent / "state")}
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, start_new_session=True
        )
        os.close(theirs)
        self._changed = threading.Condition()
        self._written = bytearray()
        threading.Thread(target=self._read, name="bench-screen", daemon=True).start()

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def wait_for(self, text: str, start: int = 0, seconds: float = START_SECONDS) -> None:
        wanted = text.encode()
        with self._changed:
            if not self._changed.wait_for(lambda: self._written.find(wanted, start) >= 0, seconds):
                raise RuntimeError(f"no {text!r} on the screen")

    def paste(self, text: str) -> None:
        self.type(f"\x1b[200~{text}\x1b[201~\r")

    def wait_for_rest(self) -> None:
        """Until no more is written than a cursor that blinks."""
        while True:
            before = self.mark()
            time.sleep(1)
            if self.mark() - before < BLINKING:
                return

    def mark(self) -> int:
        with self._changed:
            return len(self._written)

    def press(self, letter: str) -> Key:
        place, waited, start = self.mark(), self._waited(), time.perf_counter()
        self.type(letter)
        self.wait_for(letter, place)
        return Key(time.perf_counter() - start, self._waited() - waited)

    def _waited(self) -> float:
        """How long the main thread was ready and had no core, so far."""
        try:
            return int(Path(f"/proc/{self._process.pid}/schedstat").read_text().split()[1]) / 1e9
        except OSError:
            return 0.0

    def close(self) -> None:
        self.type("\x15\x1b")
        self.type("\x11")
        self._process.wait(START_SECONDS)
        os.close(self._ours)

    def _read(self) -> None:
        with suppress(OSError):
            while piece := os.read(self._ours, 65_536):
                with self._changed:
                    self._written += piece
                    self._changed.notify_all()


def _typed(screen: Screen, number: int = KEYS) -> list[Key]:
    screen.press("Ω")
    found = []
    for at in range(number):
        found.append(screen.press(LETTERS[at % len(LETTERS)]))
        if at % 20 == 19:
            screen.type("\x15")
        time.sleep(PAUSE_SECONDS)
    screen.type("\x15")
    return found


def _asking(screen: Screen, questions: int) -> list[Key]:
    """Go on typing as soon as a question is sent: recall searches meanwhile."""
    found = []
    for at in range(questions):
        screen.paste(f"word50 word300 word1000 word5 word{at}")
        for letter in LETTERS[:4] if questions > 1 else LETTERS[:20]:
            found.append(screen.press(letter))
            time.sleep(0.02)
        screen.type("\x15")
        screen.wait_for_rest()
    return found


def _fill(config: Path) -> None:
    sys.argv = sys.argv[:1]
    from tests.bench import report_recall

    with open_service(load_config(config, {}), worker=False) as service:
        report_recall._fill(service.database, USER, DOCUMENTS)
        with service.database.write() as tx:
            tx.execute("update vectors set model = :model", model=model_name(service.config))


def _row(name: str, found: list[Key], rest: list[Key]) -> list[str]:
    whole, own = _figures([key.seconds for key in found]), _figures([key.own for key in found])
    at_rest = statistics.median(key.seconds for key in rest)
    return [name, *(f"{figure * 1e3:.0f} ms" for figure in (*whole, *own)), ratio(whole[0], at_rest)]


def _figures(seconds: list[float]) -> tuple[float, float, float]:
    ordered = sorted(seconds)
    return statistics.median(ordered), ordered[int(len(ordered) * 0.95)], ordered[-1]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, _provider() as url:
        config = Path(folder) / "config.toml"
        lab: dict[str, Any] = {"base_url": url, "model": "m", "memory": True, "context_window": 1_000_000}
        general = {"user_id": USER, "memory_database": f"{folder}/memory.db", "provider": "lab"}
        config.write_text(tomli_w.dumps({**general, "providers": {"lab": lab}}))
        _fill(config)
        screen = Screen(config)
        screen.wait_for("Hello.")
        rest = _typed(screen)
        rows = [_row("at rest", rest, rest)]
        for name, questions in (("while recall reads everything", 1), ("while recall searches", 25)):
            rows.append(_row(name, _asking(screen, questions), rest))
        screen.paste("long")
        screen.wait_for("Section", screen.mark())
        rows.append(_row("while an answer streams", _typed(screen, 2 * KEYS), rest))
        screen.wait_for_rest()
        rows.append(_row("at rest again", _typed(screen), rest))
        screen.close()
    write_table(
        f"from a key to the screen ({DOCUMENTS:,} documents, {CHARACTERS:,} characters)",
        ("", "median", "95 %", "worst", "own median", "95 %", "worst", "median to rest"),
        rows,
    )
    write_line("aimed at: under 50 ms")


if __name__ == "__main__":
    main()
