"""Nobody gets in while the database is away, nor in the moment in which it is back."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.memory import api_keys
from shepherd_memory.storage.clock import now_us
from tests.acceptance.processes import wait_until
from tests.acceptance.server_site import CHAT, Reply, Server, Site, chat_body
from tests.postgres import PostgresServer, running_postgres
from tests.provider import chat
from tests.server.calling import send_raw, status_of

SECRET = "zebra-4711"
FACTS = "/v1/memory/facts?user=victim"
CLIENTS = 8


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    if os.environ.get("SHEPHERD_TEST_POSTGRES"):
        pytest.skip("somebody else's server is not ours to close")
    with running_postgres() as running:
        yield running


class CutOff:
    """A database that Postgres keeps from our servers, and from nobody else."""

    def __init__(self, postgres: PostgresServer) -> None:
        self.name = f"auth_{os.urandom(6).hex()}"
        self._postgres = postgres
        self._execute(f"create role {self.name} login superuser")
        postgres.create_database(self.name)
        self.url = replace(postgres, parameters={**postgres.parameters, "user": self.name}).dsn(self.name)
        self.url_of_others = postgres.dsn(self.name)

    def shut(self) -> None:
        self._execute(f"alter role {self.name} nologin")
        self._execute(f"select pg_terminate_backend(pid) from pg_stat_activity where usename = '{self.name}'")

    def open(self) -> None:
        self._execute(f"alter role {self.name} login")

    def remove(self) -> None:
        self._postgres.drop_database(self.name)
        self._execute(f"drop role {self.name}")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self._postgres.dsn("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[CutOff]:
    made = CutOff(postgres)
    yield made
    made.remove()


@pytest.fixture
def database_url(database: CutOff) -> str:
    return database.url


@pytest.fixture
def site(site: Site) -> Site:
    site.provider.default = chat("Understood.")
    # Less than Postgres is waited for, so that a look may also end by taking too long.
    site.settings.set(server_memory_timeout=2, memory_extraction_endpoint="")
    return site


def make_key(site: Site, database: CutOff) -> dict[str, str]:
    """The headers with a key of the victim, who has a memory."""
    config = replace(load_config(site.settings.path, {}), memory_database=database.url_of_others)
    with open_service(config, worker=False) as service:
        key = api_keys.create(service.database, "victim", now=now_us())[1]
        service.set_fact("victim", "code_word", SECRET)
    return {"Authorization": f"Bearer {key}"}


def ask_without_key(server: Server) -> list[Reply]:
    """Of every kind as many at once as might slip through together."""
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_facts"}}
    kinds = [
        ("GET", FACTS, None, {}),
        ("GET", "/v1/memory/recall?user=victim&query=code+word", None, {}),
        ("POST", "/mcp", rpc, {"X-Shepherd-User": "victim", "Accept": "application/json"}),
        ("POST", CHAT, chat_body("What is my code word?", "victim"), {}),
        ("GET", "/status", None, {}),
    ]
    with ThreadPoolExecutor(CLIENTS) as clients:
        return list(clients.map(lambda kind: server.ask(*kind), kinds * 3))


def refused_at_last(server: Server) -> list[Reply]:
    """Everything that was answered until all that has no key is refused for good."""
    replies = ask_without_key(server)
    last = replies
    while {reply.status for reply in last} != {401}:
        last = ask_without_key(server)
        replies += last
    return replies


def assert_nothing_was_told(site: Site, replies: list[Reply]) -> None:
    assert all(SECRET.encode() not in reply.body for reply in replies)
    assert all(SECRET not in exchange.received.body.decode() for exchange in site.provider.exchanges)


def test_when_postgres_dies_before_the_first_request_nobody_is_let_in(site: Site, database: CutOff) -> None:
    key = make_key(site, database)
    server = site.serve()
    database.shut()
    away = ask_without_key(server)
    assert {reply.status for reply in away} <= {401, 503}
    assert server.chat("Hello", headers=key).status == 503
    assert server.ask("GET", "/health").json == {"status": "failing"}
    database.open()
    replies = refused_at_last(server)
    assert {reply.status for reply in replies} <= {401, 503}
    assert_nothing_was_told(site, away + replies)
    assert site.provider.exchanges == []
    wait_until(lambda: server.ask("GET", FACTS, headers=key).status == 200, "the key is good again")


def test_a_key_made_while_the_server_is_cut_off_closes_it_before_anybody_reads(
    site: Site, database: CutOff
) -> None:
    server = site.serve()
    assert server.chat("I like tea.", "victim").memory == "on"
    database.shut()
    wait_until(lambda: server.ask("GET", FACTS).status == 503, "it notices")
    reply = server.chat("I like tea.", "victim")
    assert (reply.status, reply.headers["x-shepherd-remembered"]) == (200, "spooled")
    assert server.ask("GET", "/v1/tools").status == 503
    make_key(site, database)
    database.open()
    replies = refused_at_last(server)
    # A chat may pass until the key is seen: without anything of the memory.
    assert {reply.status for reply in replies if "x-shepherd-memory" not in reply.headers} <= {401, 503}
    assert_nothing_was_told(site, replies)


def test_a_page_of_another_site_and_a_doubled_header_get_nothing(site: Site) -> None:
    with site.settings.service() as service:
        service.set_fact("victim", "code_word", SECRET)
    server = site.serve()
    as_image = server.ask("GET", FACTS, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})
    assert as_image.status == 403
    assert SECRET.encode() not in as_image.body
    for name in ("Authorization", "x-api-key", "X-Shepherd-User"):
        lines = [f"GET {FACTS} HTTP/1.1", "Host: localhost", "Connection: close", f"{name}: a", f"{name}: b"]
        answer = send_raw(server.url, "\r\n".join([*lines, "", ""]).encode())
        assert status_of(answer) == 400
