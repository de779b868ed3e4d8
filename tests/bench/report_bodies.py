"""What somebody else waits while four clients send large bodies without a pause, against a quiet server."""

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import psutil

from tests.bench.server_processes import listening

BODY_BYTES = 30_000_000
SENDERS = 4
SAMPLES = 400
HEADERS = {"Content-Type": "application/json"}
KINDS = {
    "objects": b'{"model":"m","messages":[' + b"{}," * (BODY_BYTES // 3) + b"{}]}",
    "keys": b'{"model":"m",' + b",".join(b'"%x":1' % at for at in range(2_500_000)) + b"}",
    "one text": b'{"model":"m","messages":["' + b"Hello, you. " * (BODY_BYTES // 12) + b'"]}',
}


def ask(port: int, method: str, path: str, body: bytes | None = None) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    # A body that is refused midway may end its connection.
    with suppress(OSError, HTTPException):
        connection.request(method, path, body, HEADERS)
        connection.getresponse().read()
    connection.close()


def waits_ms(port: int) -> list[float]:
    """How long each request of a bystander took."""
    waits = []
    for _ in range(SAMPLES):
        begun = time.perf_counter()
        ask(port, "GET", "/v1/memory/facts?user=bystander")
        waits.append((time.perf_counter() - begun) * 1000)
    return waits


def during(port: int, body: bytes, measured: Callable[[], list[float]]) -> list[float]:
    """What is measured while so many clients send this body again and again."""
    over = threading.Event()

    def send() -> None:
        while not over.is_set():
            ask(port, "POST", "/v1/chat/completions", body)

    senders = [threading.Thread(target=send) for _ in range(SENDERS)]
    for sender in senders:
        sender.start()
    try:
        return measured()
    finally:
        over.set()
        for sender in senders:
            sender.join()


def show(name: str, waits: list[float], quiet: float, pid: int) -> float:
    p99 = statistics.quantiles(waits, n=100)[98]
    ratio = f"{p99 / quiet:5.1f} x quiet" if quiet else ""
    rss = psutil.Process(pid).memory_info().rss / 1_000_000
    p50 = statistics.median(waits)
    sys.stdout.write(f"{name:10} p50 {p50:7.1f} ms   p99 {p99:7.1f} ms   {ratio:14} RSS {rss:5.0f} MB\n")
    return p99


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.toml"
        config.write_text(f'memory_database = "sqlite:///{folder}/memory.db"\nembedding_engine = "none"\n')
        arguments = ("--config", str(config), "serve", "--port", "0")
        with listening("shepherd_memory", *arguments) as (pid, port):
            ask(port, "GET", "/health")
            quiet = show("quiet", waits_ms(port), 0.0, pid)
            for name, body in KINDS.items():
                show(name, during(port, body, lambda: waits_ms(port)), quiet, pid)


if __name__ == "__main__":
    main()
