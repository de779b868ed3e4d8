"""Health turns red when something is wrong and green when it is over, and chats go through all the while."""

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.acceptance.combinations import BACKENDS, every_value, first_backend, one_backend
from tests.acceptance.processes import Processes, wait_until
from tests.acceptance.server_site import CHAT, MESSAGES, PATIENCE_SECONDS, Server, Site, body_sent, chat_body
from tests.acceptance.settings import SettingsFile
from tests.acceptance.statements import answering
from tests.acceptance.test_postgres_away import Door
from tests.endpoint import ScriptedEndpoint, hang, status
from tests.postgres import PostgresServer, running_postgres
from tests.provider import ScriptedProvider, chat

BLOCK_BYTES = 64 * 1024


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as running:
        running.default = chat("Understood.")
        yield running


@pytest.fixture
def site(settings: SettingsFile, processes: Processes, provider: ScriptedProvider) -> Site:
    return Site(settings, processes, provider)


def assert_chats_go_through(site: Site, server: Server, *expected: str) -> None:
    """In both wire formats, streamed and whole: the provider's bytes, and memory is one of `expected`."""
    for path in (CHAT, MESSAGES):
        for stream in (False, True):
            body = chat_body("Hello?", "steve", stream=stream, metadata={"user_id": "steve"}, max_tokens=9)
            reply = server.ask("POST", path, body)
            assert reply.status == 200, reply.body
            assert reply.body == body_sent(site.provider.exchanges[-1])
            assert reply.memory in expected


def turns_red(server: Server, because: str) -> None:
    """In one look: while the worker tries again, nothing waits for a moment."""
    wait_until(lambda: because in server.problems(), f"health is red: {because}")


def turns_green(server: Server) -> None:
    def is_green() -> bool:
        return (
            server.ask("GET", "/health").json == {"status": "ok"} and server.metric("shepherd_healthy") == 1
        )

    wait_until(is_green, "health is green")


@first_backend
def test_a_server_with_nothing_to_complain_about_is_green(site: Site, endpoint: ScriptedEndpoint) -> None:
    endpoint.default = answering()
    server = site.serve()
    turns_green(server)
    assert_chats_go_through(site, server, "on")
    turns_green(server)
    assert server.exchanges("remembered") == 4
    assert server.exchanges("unremembered") == 0


@first_backend
def test_an_endpoint_that_refuses_our_key_turns_it_red(site: Site, endpoint: ScriptedEndpoint) -> None:
    endpoint.default = status(401)
    server = site.serve()
    server.chat("My code_1 is zebra_1.", "steve")
    turns_red(server, "extraction is paused")
    wait_until(lambda: server.metric("shepherd_healthy") == 0, "the metric is red too")
    assert {server.ask("GET", f"/health/{what}").status for what in ("live", "ready")} == {200}
    assert_chats_go_through(site, server, "on")
    assert server.exchanges("unremembered") == 0
    endpoint.default = answering()
    turns_green(server)


@every_value(trouble=["unreachable", "silent"], database_url=BACKENDS)
def test_a_queue_that_does_not_drain_turns_it_red(
    trouble: str, site: Site, endpoint: ScriptedEndpoint
) -> None:
    site.settings.set(memory_health_max_lag=0.5)
    if trouble == "silent":
        endpoint.default = hang()
    else:
        endpoint.stop()
    server = site.serve()
    server.chat("My code_1 is zebra_1.", "steve")
    turns_red(server, "nothing moves")
    wait_until(lambda: server.metric("shepherd_oldest_waiting_seconds") > 0, "the oldest item has an age")
    assert_chats_go_through(site, server, "on")
    assert server.exchanges("unremembered") == 0
    endpoint.default = answering()
    if trouble == "silent":
        endpoint.stop()
    endpoint.start()
    turns_green(server)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, with more room than what counts as full."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root can mount a small file system; the other form of this test needs none")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> Path:
    """Use up all of its space."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(BLOCK_BYTES)) == BLOCK_BYTES:
                pass
        except OSError:
            return ballast
    return ballast


@one_backend
def test_a_full_disk_turns_it_red(site: Site, small_disk: Path, endpoint: ScriptedEndpoint) -> None:
    endpoint.default = answering()
    site.settings.set(memory_database=f"sqlite:///{small_disk}/memory.db")
    server = site.serve()
    server.chat("My code_1 is zebra_1.", "steve")
    turns_green(server)
    ballast = fill(small_disk)
    turns_red(server, "disk is full")
    assert_chats_go_through(site, server, "on", "failed")
    wait_until(lambda: fails_to_remember(server), "there is no page left in its log")
    assert_chats_go_through(site, server, "on", "failed")
    ballast.unlink()
    turns_green(server)
    assert_works_again(site, server)


def fails_to_remember(server: Server) -> bool:
    """What is longer than the room that is left."""
    server.chat("My notes are: " + "lorem ipsum dolor " * 10_000, "steve")
    return server.exchanges("spooled") + server.exchanges("unremembered") > 0


def assert_works_again(site: Site, server: Server) -> None:
    before = server.exchanges("unremembered")
    assert server.chat("My bicycle is called Rosinante.", "carla").memory == "on"
    assert server.exchanges("unremembered") == before
    assert site.said("carla") == [("user", "My bicycle is called Rosinante."), ("assistant", "Understood.")]


@one_backend
def test_a_file_that_must_not_grow_turns_it_red_until_it_may_again(
    site: Site, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    endpoint.default = answering()
    server = site.serve()
    server.chat("My code_1 is zebra_1.", "steve")
    turns_green(server)
    process = psutil.Process(server.process.pid)
    size = (tmp_path / "memory.db-wal").stat().st_size
    process.rlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    wait_until(lambda: fails_to_remember(server), "it may not write")
    turns_red(server, "could not be stored")
    assert_chats_go_through(site, server, "on", "failed")
    process.rlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    # Without another chat: a load balancer sends none to a server that is red.
    turns_green(server)
    assert_works_again(site, server)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    if os.environ.get("SHEPHERD_TEST_POSTGRES"):
        pytest.skip("somebody else's server is not ours to close")
    with running_postgres() as running:
        yield running


@pytest.fixture
def away_url(postgres: PostgresServer) -> Iterator[str]:
    name = f"away_{os.urandom(6).hex()}"
    postgres.create_database(name)
    yield postgres.dsn(name)
    postgres.drop_database(name)


@pytest.fixture
def door(postgres: PostgresServer, away_url: str) -> Iterator[Door]:
    found = Door(postgres, away_url)
    yield found
    found.open()


@one_backend
def test_a_database_that_goes_away_turns_it_red_until_it_is_back(
    site: Site, away_url: str, door: Door, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = answering()
    site.settings.set(memory_database=away_url)
    server = site.serve()
    server.chat("My code_1 is zebra_1.", "steve")
    turns_green(server)
    site.settings.set(server_memory_timeout=1)
    door.shut()
    wait_until(lambda: server.health() == 503, "health is red")
    assert_chats_go_through(site, server, "failed", "timeout")
    assert server.exchanges("spooled") == 4
    assert "cannot be used" in server.problems()
    door.open()
    site.settings.set(server_memory_timeout=PATIENCE_SECONDS)
    turns_green(server)
    assert_works_again(site, server)
