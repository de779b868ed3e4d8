"""Whatever happens to the database: what was delivered is stored, once, and under its user."""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shepherd_memory.config import state_folder
from tests.acceptance.combinations import BACKENDS, one_backend
from tests.acceptance.kills import OUTAGES
from tests.acceptance.outages import (
    Delivered,
    chats_at,
    count_stored,
    cut_connections,
    end_postgres,
    impatient,
    locked_documents,
    locked_file,
    patient,
    wait_for_more,
    wait_until_empty,
)
from tests.acceptance.processes import Processes, wait_until
from tests.acceptance.server_site import Server, Site
from tests.acceptance.settings import SettingsFile
from tests.postgres import PostgresServer, running_postgres
from tests.provider import ScriptedProvider, chat

USERS = [f"user-{number}" for number in range(4)]
FEW = 8
AT_ONCE = 100 if OUTAGES == 1 else 500
CUTS = 30 * OUTAGES
NOTHING = "0 lost, 0 doubled, 0 strange"


@pytest.fixture
def site(settings: SettingsFile, processes: Processes) -> Iterator[Site]:
    with ScriptedProvider() as provider:
        provider.default = chat("I see.")
        found = Site(settings, processes, provider)
        found.settings.set(memory_extraction_endpoint="")
        yield found


@pytest.fixture
def delivered() -> Delivered:
    return Delivered()


@pytest.fixture
def server(site: Site, delivered: Delivered) -> Server:
    """A server that has remembered something of everybody."""
    server = site.serve()
    for user in USERS:
        delivered.chat(server, user)
    impatient(site)
    return server


def assert_nothing_is_lost(site: Site, server: Server, delivered: Delivered) -> None:
    patient(site)
    wait_until_empty(server)
    found = count_stored(site, delivered, USERS)
    sys.stdout.write(f"{len(delivered.texts)} delivered, {dict(delivered.remembered)}, {found.summary}\n")
    assert found.summary == NOTHING
    assert delivered.remembered["false"] == 0


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    if os.environ.get("SHEPHERD_TEST_POSTGRES"):
        pytest.skip("somebody else's server is not ours to end")
    with running_postgres(durable=True) as running:
        yield running


@pytest.fixture
def ours(postgres: PostgresServer) -> Iterator[str]:
    """A database on a server that may be ended."""
    name = f"outage_{os.urandom(6).hex()}"
    postgres.create_database(name)
    yield postgres.dsn(name)
    postgres.drop_database(name)


@pytest.fixture
def on_ours(settings: SettingsFile, ours: str) -> None:
    settings.set(memory_database=ours)


@one_backend
@pytest.mark.usefixtures("on_ours")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_postgres_is_ended_and_started_again(
    number: signal.Signals,
    site: Site,
    delivered: Delivered,
    postgres: PostgresServer,
    server: Server,
) -> None:
    with chats_at(server, delivered, USERS):
        for _ in range(OUTAGES):
            end_postgres(postgres, number)
            wait_for_more(delivered, FEW, server)
            postgres.started_again()
            wait_for_more(delivered, FEW, server)
    assert_nothing_is_lost(site, server, delivered)


@one_backend
@pytest.mark.usefixtures("on_ours")
def test_all_connections_to_postgres_are_cut(
    site: Site, delivered: Delivered, postgres: PostgresServer, ours: str, server: Server
) -> None:
    with chats_at(server, delivered, USERS):
        for _ in range(CUTS):
            cut_connections(postgres, ours)
            wait_for_more(delivered, 2, server)
            if server.exchanges("spooled") > FEW * OUTAGES:
                break
    assert_nothing_is_lost(site, server, delivered)


@one_backend
@pytest.mark.usefixtures("on_ours")
def test_a_table_of_postgres_is_locked(site: Site, delivered: Delivered, ours: str, server: Server) -> None:
    with chats_at(server, delivered, USERS):
        for _ in range(OUTAGES):
            with locked_documents(ours):
                wait_for_more(delivered, 2 * FEW, server)
            wait_for_more(delivered, FEW, server)
    assert_nothing_is_lost(site, server, delivered)


@one_backend
def test_another_process_writes_to_the_file_for_long(
    site: Site, delivered: Delivered, database_url: str, server: Server
) -> None:
    with chats_at(server, delivered, USERS):
        for _ in range(OUTAGES):
            with locked_file(database_url):
                wait_for_more(delivered, 2 * FEW, server)
            wait_for_more(delivered, FEW, server)
    assert_nothing_is_lost(site, server, delivered)


@pytest.mark.parametrize("database_url", BACKENDS, indirect=True)
def test_more_chats_come_at_once_than_the_memory_has_time_for(
    site: Site, delivered: Delivered, server: Server
) -> None:
    site.settings.set(server_memory_timeout=0.02)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda number: delivered.chat(server, USERS[number % 4]), range(AT_ONCE)))
    assert_nothing_is_lost(site, server, delivered)


@one_backend
def test_a_spool_that_is_full_lets_chats_go_on_and_says_what_it_does_not_take(
    site: Site, delivered: Delivered, database_url: str, server: Server
) -> None:
    site.settings.set(server_spool_mb=1)
    notes = "My notes are: " + "lorem ipsum dolor " * 20_000
    with locked_file(database_url):
        replies = [server.chat(f"{number}. {notes}", USERS[0]) for number in range(4)]
        assert [reply.headers["x-shepherd-remembered"] for reply in replies] == [
            *["spooled"] * 2,
            *["false"] * 2,
        ]
        assert "the spool is full" in server.problems()
        assert server.ask("GET", "/health").json["spool"]["records"] == 2
        assert server.exchanges("unremembered") == 2
    patient(site)
    wait_until_empty(server)
    assert sum(notes in text for _, text in site.said(USERS[0])) == 2
    wait_until(lambda: server.health() == 200, "health is green")


@one_backend
def test_no_secret_is_in_the_files_of_the_spool(site: Site, database_url: str, server: Server) -> None:
    site.provider.default = chat("So your password is hunter2.")
    folder = state_folder() / "spool"
    with locked_file(database_url):
        reply = server.chat(
            "my password is hunter2",
            USERS[0],
            headers={"X-Shepherd-Session": "sk-proj-abcdefghijklmnopqrstuvwxyz123456"},
        )
        assert reply.headers["x-shepherd-remembered"] == "spooled"
        written = b"".join(file.read_bytes() for file in folder.iterdir())
        assert b"my password is" in written
        assert b"hunter2" not in written
        assert b"sk-proj" not in written
        assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
        assert folder.stat().st_mode & 0o777 == 0o700


@one_backend
@pytest.mark.parametrize("is_replaced", [False, True])
def test_the_file_is_taken_away_under_the_server(
    is_replaced: bool, site: Site, delivered: Delivered, tmp_path: Path, server: Server
) -> None:
    """What was stored before is in the file that was taken away; what is said from then on is not lost."""
    path, aside = tmp_path / "memory.db", tmp_path / "aside.db"
    path.rename(aside)
    if is_replaced:
        path.touch(mode=0o600)
    before = dict(delivered.texts)
    for user in USERS * 2:
        delivered.chat(server, user)
    if not is_replaced:
        assert "is gone" in server.problems()
        assert delivered.remembered["spooled"] > 0
        aside.rename(path)
    else:
        for text in before:
            del delivered.texts[text]
    patient(site)
    wait_until_empty(server)
    found = count_stored(site, delivered, USERS)
    assert found.summary == NOTHING
    assert delivered.remembered["false"] == 0
