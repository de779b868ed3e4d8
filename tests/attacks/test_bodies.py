"""Bodies that are small to send and large to parse, and more of them than there is memory for."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.acceptance.combinations import one_backend
from tests.acceptance.server_site import CHAT, CLIENT_SECONDS, Server, Site
from tests.provider import chat, gated

MB = 1_000_000
BODY_BYTES = 30 * MB
MAX_RSS_BYTES = 700 * MB
MAX_CPU_SECONDS = 2.0
"""For each body: to move 30 MB takes a tenth of a second, to parse what is in them ten."""

HEADERS = {"Content-Type": "application/json"}
HOSTILE = {
    "objects": b'{"model":"m","messages":[' + b"{}," * (BODY_BYTES // 3) + b"{}]}",
    "keys": b'{"model":"m",' + b",".join(b'"%x":1' % at for at in range(2_500_000)) + b"}",
    "numbers": b'{"model":"m","messages":[' + b"1," * (BODY_BYTES // 2) + b"1]}",
    "brackets": b'{"model":"m","messages":' + b"[" * BODY_BYTES,
}

pytestmark = [
    one_backend,
    pytest.mark.skipif(sys.platform != "linux", reason="reads peaks of memory from /proc"),
]


def peak_rss(server: Server) -> int:
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def cpu_seconds(server: Server) -> float:
    times = psutil.Process(server.process.pid).cpu_times()
    return times.user + times.system


def status_for(server: Server, body: bytes) -> int:
    """The answer to a body; one that is refused midway is read as soon as it is there."""
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=CLIENT_SECONDS)
    try:
        connection.request("POST", CHAT, body, HEADERS)
        return connection.getresponse().status
    finally:
        connection.close()


@contextmanager
def at_once(server: Server, bodies: list[bytes]) -> Iterator[list[int]]:
    """All these bodies on their way while the block runs; what they were answered once it is over."""
    statuses: list[int] = []
    with ThreadPoolExecutor(len(bodies)) as pool:
        sent = [pool.submit(status_for, server, body) for body in bodies]
        yield statuses
        statuses += [one.result() for one in sent]


@pytest.mark.parametrize("memory", ["on", "off"])
def test_bodies_of_millions_of_values_are_refused_before_they_are_parsed(site: Site, memory: str) -> None:
    site.set_provider(base_url=site.provider.url, memory=memory == "on")
    site.provider.default = chat("Hello.")
    server = site.serve()
    assert server.chat("Hello?", "bystander").status == 200
    before = cpu_seconds(server)
    for kind, body in HOSTILE.items():
        with at_once(server, [body] * 4) as statuses:
            assert server.chat("Hello?", "bystander").status == 200
        assert statuses == [413] * 4, kind
    assert cpu_seconds(server) - before < MAX_CPU_SECONDS * 4 * len(HOSTILE)
    assert peak_rss(server) < MAX_RSS_BYTES
    assert len(site.provider.requests) == 2 + len(HOSTILE) - 1


def test_more_bodies_than_there_is_memory_for_are_told_to_come_back(site: Site) -> None:
    gate = threading.Event()
    site.set_provider(base_url=site.provider.url, memory=False)
    site.provider.default = gated(gate, chat("Hello."))
    server = site.serve()
    body = (
        b'{"model":"m","messages":[{"role":"user","content":"'
        + b"Hello, you. " * (BODY_BYTES // 12)
        + b'"}]}'
    )
    with at_once(server, [body] * 20) as statuses:
        site.provider.wait_for(8)
        assert server.health() == 200
        gate.set()
    assert statuses.count(200) + statuses.count(503) == 20
    assert statuses.count(200) >= 8
    assert peak_rss(server) < MAX_RSS_BYTES
    site.provider.default = chat("Hello.")
    assert status_for(server, body) == 200
