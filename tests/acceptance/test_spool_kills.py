"""A server that is killed while the database takes nothing: whatever was delivered is stored by the next."""

import random
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from tests.acceptance.combinations import BACKENDS
from tests.acceptance.kills import KILLS, SEED
from tests.acceptance.outages import (
    Delivered,
    chats_at,
    count_stored,
    impatient,
    locked_documents,
    locked_file,
    patient,
    wait_for_more,
    wait_until_empty,
)
from tests.acceptance.processes import Processes, kill
from tests.acceptance.server_site import Server, Site
from tests.acceptance.settings import SettingsFile
from tests.provider import ScriptedProvider, chat

USERS = [f"user-{number}" for number in range(4)]


@pytest.fixture
def site(settings: SettingsFile, processes: Processes) -> Iterator[Site]:
    with ScriptedProvider() as provider:
        provider.default = chat("I see.")
        found = Site(settings, processes, provider)
        found.settings.set(memory_extraction_endpoint="")
        yield found


def held(database_url: str) -> AbstractContextManager[None]:
    """Nothing can be stored until the block ends."""
    is_sqlite = database_url.startswith("sqlite")
    return locked_file(database_url) if is_sqlite else locked_documents(database_url)


def chat_and_kill(server: Server, delivered: Delivered, chance: random.Random) -> None:
    """Kill the server at some moment in the middle of chats."""
    with chats_at(server, delivered, USERS, may_break=True):
        wait_for_more(delivered, chance.randint(1, 12), server)
        time.sleep(chance.uniform(0, 0.02))
        kill(server.process)


@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.parametrize("database_url", BACKENDS, indirect=True)
def test_what_was_delivered_is_stored_once_though_the_server_is_killed_while_it_is_spooled(
    site: Site, database_url: str
) -> None:
    sys.stdout.write(f"SHEPHERD_TEST_SEED={SEED}\n")
    chance, delivered = random.Random(SEED), Delivered()
    server = site.serve()
    delivered.chat(server, USERS[0])
    impatient(site)
    for _ in range(KILLS):
        with held(database_url):
            chat_and_kill(server, delivered, chance)
        # This one is killed while it stores what the last one has left.
        server = site.serve()
        chat_and_kill(server, delivered, chance)
        server = site.serve()
    patient(site)
    wait_until_empty(server)
    found = count_stored(site, delivered, USERS)
    sys.stdout.write(f"{len(delivered.texts)} delivered, {dict(delivered.remembered)}, {found.summary}\n")
    assert delivered.remembered["spooled"] > 0
    assert (found.lost, found.doubled) == ([], [])
    assert set(found.strange) <= delivered.broken
