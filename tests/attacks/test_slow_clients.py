"""Clients that take a connection and say little: half a head, a body byte by byte."""

import resource
import selectors
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from tests.acceptance.combinations import one_backend
from tests.acceptance.processes import wait_until
from tests.acceptance.server_site import CHAT, CLIENT_SECONDS, Server, Site
from tests.provider import chat

DESCRIPTORS = 256
HEADS = 300
BODIES = 40
HALF_A_HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Half: "
BODY_BEGUN = (
    f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Content-Length: 1000000\r\n\r\n{"
).encode()

pytestmark = [
    one_backend,
    pytest.mark.skipif(sys.platform != "linux", reason="sets the descriptors of another process"),
]


@contextmanager
def holding(server: Server, begun: bytes, count: int) -> Iterator[list[socket.socket]]:
    """So many connections on which this much was sent, and nothing more."""
    where = urlsplit(server.url)
    with ExitStack() as stack:
        held = []
        for _ in range(count):
            one = socket.create_connection((where.hostname or "", where.port or 0), CLIENT_SECONDS)
            stack.enter_context(one)
            with suppress(ConnectionError):
                # It may be closed already to make room.
                one.sendall(begun)
            held.append(one)
        yield held


def ended(held: list[socket.socket]) -> int:
    """How many of them the server has said something to, or closed."""
    with selectors.DefaultSelector() as selector:
        for one in held:
            selector.register(one, selectors.EVENT_READ)
        return len(selector.select(0))


def trickled(held: list[socket.socket]) -> bool:
    """Send one more byte on each; whether the server has given all of them up."""
    for one in held:
        try:
            one.sendall(b" ")
        except OSError:
            continue
    return ended(held) == len(held)


@pytest.mark.parametrize("begun", [HALF_A_HEAD, b""], ids=["half a head", "nothing"])
def test_more_half_sent_heads_than_descriptors_lock_nobody_out(site: Site, begun: bytes) -> None:
    site.settings.set(server_head_timeout=3600)
    site.provider.default = chat("Hello.")
    server = site.serve()
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    with holding(server, begun, HEADS) as held:
        assert server.health() == 200
        assert server.chat("Hello?", "bystander").status == 200
        assert ended(held) > HEADS - DESCRIPTORS
        wait_until(lambda: "waited longest when there were too many" in site.processes.logs(), "it says so")


def test_heads_that_do_not_come_to_an_end_are_given_up(site: Site) -> None:
    site.settings.set(server_head_timeout=0.5)
    server = site.serve()
    with holding(server, HALF_A_HEAD, 50) as held:
        wait_until(lambda: ended(held) == 50, "all are answered")
        wait_until(lambda: "sent no whole request head" in site.processes.logs(), "it says so")
    assert server.health() == 200


def test_bodies_that_trickle_lose_their_slots(site: Site) -> None:
    site.settings.set(server_body_timeout=0.5, server_max_requests=BODIES)
    site.provider.default = chat("Hello.")
    server = site.serve()
    with holding(server, BODY_BEGUN, BODIES) as held:
        wait_until(lambda: trickled(held), "all are given up", every=0.05)
        assert server.chat("Hello?", "bystander").status == 200
    assert len(site.provider.requests) == 1
