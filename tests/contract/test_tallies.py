"""Numbers over all users: exact where there is little, at most a minute old where there is much."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from shepherd_memory.conversations.conversation import STATUSES
from shepherd_memory.extraction import queue
from shepherd_memory.maintenance.tallies import MAX_COUNTED, Numbers, Tallies
from shepherd_memory.storage.database import Database, open_database
from tests.contract.given import ManualClock, memory, user_says
from tests.large_database import fill

MANY = MAX_COUNTED + 500
NO_CONVERSATIONS = dict.fromkeys(STATUSES, 0)


def fill_with_many(database: Database, clock: ManualClock) -> None:
    fill(
        database,
        done=MANY,
        users=MANY,
        ledger_lines=MANY,
        conversations=MANY,
        kind=queue.KIND,
        now=clock(),
    )


@pytest.fixture
def large(url: str, clock: ManualClock) -> Iterator[Database]:
    with closing(open_database(url)) as database:
        fill_with_many(database, clock)
        yield database


def shown(numbers: Numbers) -> tuple[int, int, tuple[int, int]]:
    return numbers.users, numbers.items["done"], numbers.tokens["extraction"]


@pytest.mark.every_scheme
def test_large_numbers_are_counted_whole(large: Database, clock: ManualClock) -> None:
    counted = Tallies(large, clock).read()
    assert shown(counted) == (MANY, MANY, (MANY * 100, MANY * 10))
    assert counted.conversations == {**NO_CONVERSATIONS, "active": MANY // 10, "archived": MANY - MANY // 10}


@pytest.mark.every_scheme
def test_few_conversations_are_counted_at_once_by_state(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        for group in ("main", "a"):
            service.remember("ada", [user_says("I am Ada")], "chat", group=group)
        service.remember("ben", [user_says("I am Ben")], "chat")
        assert service.status().conversations == NO_CONVERSATIONS
        service.transcripts.poll()
        assert service.status().conversations == {**NO_CONVERSATIONS, "active": 3}
        assert service.conversation_counts("ada", group="a") == {**NO_CONVERSATIONS, "active": 1}
        assert service.conversation_counts("ada")["active"] == 2
        assert service.conversation_counts("nobody") == NO_CONVERSATIONS


def test_numbers_that_an_older_program_stored_are_read(large: Database, clock: ManualClock) -> None:
    tallies = Tallies(large, clock)
    tallies.read()
    with large.write() as tx:
        (stored,) = tx.row("select numbers from tallies") or ("",)
        older = {name: value for name, value in json.loads(stored).items() if name != "conversations"}
        tx.execute("update tallies set numbers = :numbers", numbers=json.dumps(older))
    assert tallies.read().users == MANY
    clock.advance(61)
    assert tallies.read().conversations["active"] == MANY // 10


@pytest.mark.every_scheme
def test_what_one_process_counted_another_reads_for_a_minute(large: Database, clock: ManualClock) -> None:
    here, there = Tallies(large, clock), Tallies(large, clock)
    here.read()
    fill(large, done=5, users=5, ledger_lines=5, kind=queue.KIND, now=clock(), first=MANY)
    clock.advance(60)
    assert shown(there.read()) == (MANY, MANY, (MANY * 100, MANY * 10))
    clock.advance(1)
    assert shown(there.read()) == (MANY + 5, MANY + 5, ((MANY + 5) * 100, (MANY + 5) * 10))
    assert shown(here.read())[0] == MANY + 5


@pytest.mark.every_scheme
def test_an_erased_user_is_gone_from_the_numbers_within_a_minute(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        fill_with_many(service.database, clock)
        assert service.status().users == MANY
        service.erase("user-7")
        clock.advance(61)
        found, totals = service.status(), service.totals()
        assert (found.users, found.items["done"]) == (MANY - 1, MANY - 1)
        assert totals.tokens == {"extraction": ((MANY - 1) * 100, (MANY - 1) * 10)}


def test_small_numbers_are_of_this_moment_beside_large_ones(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        fill_with_many(service.database, clock)
        assert service.status().items["waiting"] == 0
        with service.database.write() as tx:
            tx.execute("update jobs set status = 'waiting' where user_id = 'user-7'")
        assert service.status().items["waiting"] == 1
        assert service.item_counts("user-7")["waiting"] == 1
        assert service.item_counts("user-8")["waiting"] == 0


def test_a_clock_that_was_set_back_keeps_no_numbers_for_ever(large: Database, clock: ManualClock) -> None:
    Tallies(large, clock).read()
    clock.advance(-3600)
    fill(large, done=5, users=5, kind=queue.KIND, now=clock(), first=MANY)
    assert Tallies(large, clock).read().users == MANY + 5


def test_the_thread_counts_before_anybody_asks_and_ends_when_told(
    large: Database, clock: ManualClock
) -> None:
    tallies = Tallies(large, clock)
    counted = threading.Event()
    with tallies.counting():
        while not counted.wait(0.01):
            with large.read() as connection:
                if connection.row("select 1 from tallies"):
                    counted.set()
    assert "shepherd-tallies" not in {thread.name for thread in threading.enumerate()}


def test_little_is_counted_anew_each_time_and_never_stored(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        for number in range(3):
            service.set_fact(f"user-{number}", "pet", "Rex")
            assert service.status().users == number + 1
        with service.database.read() as connection:
            assert connection.row("select 1 from tallies") is None
