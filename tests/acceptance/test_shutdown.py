"""Shutdown waits for nothing that the worker is waiting for, and gives its item back."""

import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psutil
import pytest

from shepherd_memory.config import load_config
from shepherd_memory.service import Service, open_service
from shepherd_memory.work.jobs import DONE, RUNNING, WAITING
from tests.acceptance.combinations import BACKENDS, every_value, first_backend
from tests.acceptance.processes import Processes, wait_until
from tests.acceptance.settings import SettingsFile
from tests.acceptance.statements import answering, assert_stored_once, drain, remember
from tests.endpoint import ScriptedEndpoint, Step, drip, hang, status

FAR_OFF_SECONDS = 600
"""How long the worker would wait by itself: longer than a test may take."""

STOP_SECONDS = 60

WAITS: dict[str, tuple[Step, str]] = {
    "a retry wait": (status(503), "unavailable"),
    "a long Retry-After": (status(429, retry_after=FAR_OFF_SECONDS), "unavailable"),
    "a pause": (status(401), "paused"),
}
CALLS: dict[str, Step] = {
    "an answer that does not begin": hang(),
    "an answer that stops after its headers": hang(after_headers=True),
    "an answer that drips": drip(),
    "headers that drip": drip(in_headers=True),
}
UNCONNECTED = "a connection that nobody accepts"
NOTHING = "nothing to do"
MANNERS = (*WAITS, *CALLS, UNCONNECTED, NOTHING)


@dataclass(frozen=True)
class Blackhole:
    """A port that answers no further connection: its queue of one is full, of connections of our own."""

    url: str
    own_ports: frozenset[int]

    def is_tried_by(self, pid: int) -> bool:
        connections = psutil.Process(pid).net_connections("tcp")
        return any(
            one.status == psutil.CONN_SYN_SENT and one.laddr.port not in self.own_ports for one in connections
        )


@contextmanager
def blackhole() -> Iterator[Blackhole]:
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting = [stack.enter_context(socket.socket()) for _ in range(2)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listening.getsockname())
        own_ports = frozenset(one.getsockname()[1] for one in waiting)
        yield Blackhole(f"http://127.0.0.1:{listening.getsockname()[1]}", own_ports)


class Stage:
    """Brings a worker into the state in which it is to be stopped."""

    def __init__(
        self, manner: str, settings: SettingsFile, endpoint: ScriptedEndpoint, hole: Blackhole
    ) -> None:
        self._manner = manner
        self._endpoint = endpoint
        self._hole = hole
        settings.set(memory_extraction_timeout=FAR_OFF_SECONDS)
        settings.set(memory_extraction_retry_interval=FAR_OFF_SECONDS)
        if manner == UNCONNECTED:
            settings.set(memory_extraction_endpoint=hole.url)
        elif manner in WAITS:
            endpoint.default = WAITS[manner][0]
        elif manner in CALLS:
            endpoint.default = CALLS[manner]
        else:
            endpoint.default = answering()

    def wait_for(self, service: Service, pid: int) -> None:
        if self._manner in WAITS:
            state = WAITS[self._manner][1]
            wait_until(lambda: service.status().endpoint.state == state, state)
        elif self._manner in CALLS:
            self._endpoint.wait_for(1)
        elif self._manner == UNCONNECTED:
            wait_until(lambda: self._hole.is_tried_by(pid), "a connection attempt")
        else:
            drain(service)


@pytest.fixture
def stage(
    request: pytest.FixtureRequest, settings: SettingsFile, endpoint: ScriptedEndpoint
) -> Iterator[Stage]:
    with blackhole() as hole:
        yield Stage(request.param, settings, endpoint, hole)


@every_value(stage=MANNERS, database_url=BACKENDS)
def test_the_service_ends_during(stage: Stage, settings: SettingsFile, endpoint: ScriptedEndpoint) -> None:
    with settings.service() as outside:
        with settings.service(worker=True) as service:
            remember(service, 0)
            stage.wait_for(outside, psutil.Process().pid)
        assert_given_back(outside)


@every_value(stage=MANNERS, database_url=BACKENDS[::-1])
def test_the_worker_process_ends_on_sigterm_during(
    stage: Stage, settings: SettingsFile, endpoint: ScriptedEndpoint, processes: Processes
) -> None:
    with settings.service() as outside:
        remember(outside, 0)
        process = processes.shepherd(settings.path, "worker")
        stage.wait_for(outside, process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0
        assert_given_back(outside)


def assert_given_back(service: Service) -> None:
    """The item is nobody's: the next worker need not wait for a lease."""
    items = service.status().items
    assert items[RUNNING] == 0
    assert items[WAITING] + items[DONE] == 1


@first_backend
def test_what_was_given_back_is_done_at_the_next_start_without_waiting_for_the_lease(
    settings: SettingsFile, endpoint: ScriptedEndpoint
) -> None:
    settings.set(memory_extraction_timeout=FAR_OFF_SECONDS, memory_extraction_lease=3600)
    endpoint.default = hang()
    with settings.service(worker=True) as service:
        remember(service, 0)
        endpoint.wait_for(1)
    endpoint.default = answering()
    with open_service(load_config(settings.path, {})) as service:
        drain(service)
        assert_stored_once(service, [0])
