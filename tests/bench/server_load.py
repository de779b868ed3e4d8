"""The load, in a process of its own: connections that each ask again as soon as they are answered.

It takes orders as lines of JSON on stdin and gives what it measured as lines of JSON on stdout. It shares the
cores with what it measures, so it writes prebuilt requests and looks only for the end of an answer.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import uvloop

from tests.bench.server_provider import CHAT, END_OF_HEAD, EVENTS_SENT, LAST_CHUNK, LENGTH

OK = b"HTTP/1.1 200"
INJECTED = b"x-shepherd-injected:"
WARM_UP = 1
MAX_SECONDS = 60
SETTLING_SECONDS = 0.3
SETTLED_CPU = 0.03
HELD_SECONDS = 3.0
CHAT_BYTES = len(CHAT.partition(END_OF_HEAD)[2])
STREAM_BYTES = sum(map(len, EVENTS_SENT))
WHO = "bench"
QUESTION = (
    "What did the team decide for service {number:08}, and which database do they use in Porto now? "
    "Please be brief."
)
numbers = count(1)


@dataclass(frozen=True)
class Order:
    """What to ask of whom; `pid` is the process whose cost is measured, if any is."""

    port: int
    pid: int = 0
    stream: bool = False
    model: str = "bench-model"
    concurrency: int = 1
    seconds: float = 1.0
    settle: bool = False
    provider_port: int = 0


@dataclass
class Sample:
    """What one order gave. CPU in seconds: in the time, of the main thread therein, and afterwards.

    `injected` counts the answers to requests that memory was in time for.
    """

    completed: int = 0
    elapsed: float = 0.0
    cpu: float = 0.0
    cpu_main_thread: float = 0.0
    cpu_afterwards: float = 0.0
    reads: int = 0
    injected: int = 0
    first_us: list[int] = field(default_factory=list)
    whole_us: list[int] = field(default_factory=list)
    rss_before: int = 0
    rss: int = 0


def request_bytes(stream: bool, model: str) -> tuple[bytes, bytes]:
    """A chat's bytes up to the number in its question, and from there on."""
    system = {"role": "system", "content": "You are a helpful assistant who answers in two sentences."}
    asked = {"role": "user", "content": QUESTION}
    fields: dict[str, Any] = {"model": model, "user": WHO, "messages": [system, asked]}
    if stream:
        fields["stream"] = True
    before, after = json.dumps(fields, separators=(",", ":")).encode().split(b"{number:08}")
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nUser-Agent: bench\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(before) + 8 + len(after)}\r\n\r\n"
    )
    return head.encode() + before, after


class Load:
    """The connections of one order: they warm up, then all begin together, and none begins anew too late."""

    def __init__(self, order: Order) -> None:
        self.sample = Sample()
        self.least_bytes = STREAM_BYTES if order.stream else CHAT_BYTES
        self._before, self._after = request_bytes(order.stream, order.model)
        self._busy = 0
        self._deadline = 0.0
        self._idle = asyncio.Event()
        self._failure: Exception | None = None
        self._left = 0 if order.settle else WARM_UP * order.concurrency

    def request(self) -> bytes:
        return b"%b%08d%b" % (self._before, next(numbers), self._after)

    async def warm_up(self, clients: "list[Client]") -> None:
        await self._ask_all(clients)
        self.sample = Sample()

    async def measure(self, clients: "list[Client]", seconds: float) -> None:
        began = time.perf_counter()
        self._deadline = began + seconds
        await self._ask_all(clients)
        self.sample.elapsed = time.perf_counter() - began

    async def _ask_all(self, clients: "list[Client]") -> None:
        self._busy = len(clients)
        self._idle.clear()
        for client in clients:
            client.ask()
        await asyncio.wait_for(self._idle.wait(), MAX_SECONDS)
        if self._failure:
            raise self._failure

    def done(self, client: "Client", first: float, whole: float) -> None:
        sample = self.sample
        sample.completed += 1
        sample.first_us.append(int(first * 1e6))
        sample.whole_us.append(int(whole * 1e6))
        self._left -= 1
        if self._left > 0 or time.perf_counter() < self._deadline:
            client.ask()
            return
        self._busy -= 1
        if not self._busy:
            self._idle.set()

    def fail(self, failure: Exception) -> None:
        self._failure = failure
        self._idle.set()


class Client(asyncio.Protocol):
    """One connection that is kept alive."""

    def __init__(self, load: Load) -> None:
        self._load = load

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def ask(self) -> None:
        self._head = self._tail = b""
        self._awaited: int | None = None
        self._read = 0
        self._first = 0.0
        self._asked = time.perf_counter()
        self.transport.write(self._load.request())

    def data_received(self, data: bytes) -> None:
        load = self._load
        load.sample.reads += 1
        if not self._first:
            self._first = time.perf_counter() - self._asked
        if not self._read:
            data = self._without_head(data)
        self._read += len(data)
        if self._awaited is not None:
            ended = self._read >= self._awaited
        else:
            self._tail = (self._tail + data)[-len(LAST_CHUNK) :]
            ended = self._tail == LAST_CHUNK
        if ended and self._read < load.least_bytes:
            load.fail(ValueError(f"not a whole answer: {self._head[:500]!r}"))
        elif ended:
            load.sample.injected += self._injected
            load.done(self, self._first, time.perf_counter() - self._asked)

    def _without_head(self, data: bytes) -> bytes:
        self._head += data
        end = self._head.find(END_OF_HEAD)
        if end < 0:
            return b""
        if not self._head.startswith(OK):
            self._load.fail(ValueError(f"refused: {self._head[:500]!r}"))
        head = self._head[:end].lower()
        self._injected = INJECTED in head
        length = head.partition(LENGTH)[2].partition(b"\r\n")[0]
        self._awaited = int(length) if length else None
        return self._head[end + len(END_OF_HEAD) :]

    def connection_lost(self, error: Exception | None) -> None:
        self._load.fail(error or ConnectionError("the connection was closed"))


@contextmanager
def counted_cpu(pid: int, load: Load) -> Iterator[None]:
    """Note what the process has used meanwhile."""
    if not pid:
        yield
        return
    process = psutil.Process(pid)
    whole, main = _cpu(process), _cpu_main_thread(process)
    yield
    load.sample.cpu = _cpu(process) - whole
    load.sample.cpu_main_thread = _cpu_main_thread(process) - main


def _cpu(process: psutil.Process) -> float:
    if sys.platform == "linux":
        # The process's own clock counts nanoseconds, cpu_times hundredths of a second.
        return time.clock_gettime(~process.pid << 3 | 2)
    times = process.cpu_times()
    return times.user + times.system


def _cpu_main_thread(process: psutil.Process) -> float:
    if sys.platform == "linux":
        pid = process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9
    main = next(thread for thread in process.threads() if thread.id == process.pid)
    return main.user_time + main.system_time


async def settled(pid: int) -> float:
    """Wait until the process has nothing left to do; what that cost it."""
    process = psutil.Process(pid)
    began = before = _cpu(process)
    for _ in range(int(MAX_SECONDS / SETTLING_SECONDS)):
        await asyncio.sleep(SETTLING_SECONDS)
        now = _cpu(process)
        if now - before < SETTLED_CPU:
            break
        before = now
    return now - began


async def run(order: Order) -> Sample:
    """Load for a time, and what it cost."""
    load, loop = Load(order), asyncio.get_running_loop()
    clients = [
        (await loop.create_connection(lambda: Client(load), "127.0.0.1", order.port))[1]
        for _ in range(order.concurrency)
    ]
    if not order.settle:
        await load.warm_up(clients)
    with counted_cpu(order.pid, load):
        await load.measure(clients, order.seconds)
    if order.settle:
        load.sample.cpu_afterwards = await settled(order.pid)
    for client in clients:
        client.transport.abort()
    return load.sample


async def hold(order: Order) -> Sample:
    """Streams that are open and silent, what memory the process has then, and that each of them goes on."""
    process = psutil.Process(order.pid)
    sample = Sample(rss_before=process.memory_info().rss)
    before, after = request_bytes(True, order.model)
    streams = []
    for number in range(order.concurrency):
        reader, writer = await asyncio.open_connection("127.0.0.1", order.port)
        writer.write(b"%b%08d%b" % (before, number, after))
        streams.append((reader, writer))
    async with asyncio.timeout(MAX_SECONDS):
        for reader, _ in streams:
            status = await reader.readline()
            assert status.startswith(OK), status
            await reader.readuntil(b"data: ")
        await asyncio.sleep(HELD_SECONDS)
        sample.rss = process.memory_info().rss
        await _release(order.provider_port)
        ended = await asyncio.gather(*(reader.readuntil(LAST_CHUNK) for reader, _ in streams))
    sample.completed = sum(b"data: [DONE]" in answer for answer in ended)
    for _, writer in streams:
        writer.transport.abort()
    return sample


async def _release(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /release HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
    await reader.readuntil(END_OF_HEAD)
    writer.close()


def main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for line in sys.stdin:
            order = Order(**json.loads(line))
            sample = runner.run(hold(order) if order.provider_port else run(order))
            sys.stdout.write(json.dumps(asdict(sample)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
