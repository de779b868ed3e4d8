"""From the provider's first words to the terminal: `python -m tests.bench.report_chat`.

`shepherd chat`, with memory and without, against a bare loop over `requests` that prints to the same kind of
terminal. Server and terminal are this process, so both ends are measured by one clock.
"""

import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from tests.bench.figures import ratio, write_line, write_table
from tests.endpoint import Call
from tests.provider import EVENT_STREAM, ScriptedProvider, openai_events
from tests.terminal.chat_site import CHAT, ChatSite

ROUNDS = 5
"""The programs take turns, so that a busy moment of the machine meets all of them."""

ANSWERS = 40
WARMING = 5
AIM_MILLISECONDS = 50
SECONDS = 60.0
IMPORTS = 5
NEXT_PROMPT = b"\x1b[?2004h"
NEXT_LINE = b"ready>"

BARE = f"""
import json, requests, sys
session = requests.Session()
sys.stdout.write("{NEXT_LINE.decode()}"), sys.stdout.flush()
for line in sys.stdin:
    asked = {{"model": "m", "stream": True, "messages": [{{"role": "user", "content": line}}]}}
    with session.post(sys.argv[1] + "/v1/chat/completions", json=asked, stream=True) as answer:
        for event in answer.iter_lines(chunk_size=1):
            if event.startswith(b"data: {{"):
                for choice in json.loads(event[6:])["choices"]:
                    sys.stdout.write(choice["delta"].get("content") or "")
                    sys.stdout.flush()
    sys.stdout.write("\\n{NEXT_LINE.decode()}"), sys.stdout.flush()
"""


class Stamped:
    """A streamed answer, whose first words are a number, and when they were sent."""

    def __init__(self) -> None:
        self.sent: list[float] = []

    def perform(self, call: Call) -> None:
        call.send_head(200, {"Content-Type": EVENT_STREAM, "Transfer-Encoding": "chunked"})
        head, first, *rest = openai_events([mark(len(self.sent)), *(["more words "] * 20)])
        self._write(call, head)
        self.sent.append(time.perf_counter())
        self._write(call, first)
        for event in rest:
            self._write(call, event)
        call.handler.wfile.write(b"0\r\n\r\n")

    def _write(self, call: Call, event: object) -> None:
        assert isinstance(event, bytes)
        call.handler.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))


def mark(number: int) -> str:
    return f"<{number}>"


class Terminal:
    """The raw bytes of a terminal, read as soon as they are there."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._seen = b""

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def wait_for(self, text: bytes) -> float:
        """When it came; what stood before it is forgotten."""
        while text not in self._seen:
            readable, _, _ = select.select([self._descriptor], [], [], SECONDS)
            assert readable, f"no {text!r} after {self._seen[-300:]!r}"
            self._seen += os.read(self._descriptor, 65536)
        at = time.perf_counter()
        self._seen = self._seen.partition(text)[2]
        return at


@contextmanager
def on_terminal(command: list[str], environment: dict[str, str]) -> Iterator[Terminal]:
    ours, theirs = os.openpty()
    variables = {**os.environ, **environment, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables)
    os.close(theirs)
    try:
        yield Terminal(ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def measured(screen: Terminal, ready: bytes, answer: Stamped) -> list[float]:
    """Milliseconds from the provider's first words to the terminal, for each answer but the first few."""
    spent = []
    for number in range(ANSWERS + WARMING):
        screen.wait_for(ready)
        screen.type(f"question {number}\r")
        at = screen.wait_for(mark(number).encode())
        spent.append(1000 * (at - answer.sent[number]))
    return spent[WARMING:]


def report_latency(folder: Path) -> None:
    runs: dict[str, Callable[[ChatSite], tuple[list[str], bytes]]] = {
        "a bare requests loop": lambda site: ([sys.executable, "-c", BARE, site.provider.url], NEXT_LINE),
        "shepherd chat --nomemory": lambda site: ([*CHAT, "--nomemory"], NEXT_PROMPT),
        "shepherd chat": lambda site: ([*CHAT], NEXT_PROMPT),
    }
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for turn, (name, choose) in product(range(ROUNDS), runs.items()):
        place = folder / f"{turn} {name}"
        place.mkdir()
        with ScriptedProvider() as provider:
            site = ChatSite(place, provider)
            site.configure(memory=True)
            provider.default = answer = Stamped()
            command, ready = choose(site)
            with on_terminal(command, site.variables()) as screen:
                spent[name] += measured(screen, ready, answer)
    write_latency(spent)


def write_latency(spent: dict[str, list[float]]) -> None:
    medians = {name: statistics.median(one) for name, one in spent.items()}
    bare = next(iter(medians.values()))
    rows = [
        (
            name,
            f"{medians[name]:.2f} ms",
            f"{statistics.quantiles(one, n=20)[-1]:.2f} ms",
            f"{max(one):.2f} ms",
            ratio(medians[name], bare),
        )
        for name, one in spent.items()
    ]
    head = ("", "median", "p95", "most", "against the bare loop")
    write_table(f"provider's first words to the terminal, {ROUNDS} rounds of {ANSWERS} answers", head, rows)
    write_line(f"aim: below {AIM_MILLISECONDS} ms")


def report_start(folder: Path) -> None:
    site = ChatSite(folder / "start", ScriptedProvider())
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "shepherd chat --help": [*CHAT, "--help"],
        "import what a one-shot chat needs": [
            sys.executable,
            "-c",
            "import shepherd_memory.chat.session, shepherd_memory.frontends.repl.loop",
        ],
        "import what a typed chat needs": [
            sys.executable,
            "-c",
            "import shepherd_memory.chat.session, shepherd_memory.frontends.repl.loop,"
            " shepherd_memory.frontends.repl.line_editor",
        ],
    }
    spent: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(IMPORTS):
        for name, command in commands.items():
            begun = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=site.variables())
            spent[name].append(1000 * (time.perf_counter() - begun))
    least = min(spent["python -c pass"])
    rows = [
        (name, f"{min(runs):.0f} ms", f"{statistics.median(runs):.0f} ms", ratio(min(runs), least))
        for name, runs in spent.items()
    ]
    write_table(f"to start, {IMPORTS} runs", ("", "least", "median", "against python -c pass"), rows)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report_latency(Path(folder))
        (Path(folder) / "start").mkdir()
        report_start(Path(folder))


if __name__ == "__main__":
    main()
