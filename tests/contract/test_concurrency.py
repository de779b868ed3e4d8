"""Many threads at once: nothing locked, nothing lost, ids in the order of commits."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from shepherd_memory.memory import documents
from shepherd_memory.memory.documents import Facets
from shepherd_memory.service import Service, open_service
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Database
from tests.contract.given import NOON, config_for, facts_of, user_says
from tests.endpoint import ScriptedEndpoint, echo, flapping

THREADS, USERS, EACH = 16, 8, 12


@pytest.mark.every_scheme
def test_threads_that_remember_while_a_worker_drains_lose_nothing(
    url: str, endpoint: ScriptedEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    with open_service(config_for(url, endpoint.url)) as service:

        def remember(thread: int) -> None:
            user = f"user{thread % USERS}"
            for number in range(EACH):
                said = user_says(f"my plan{thread}x{number} is V{number}")
                assert service.remember(user, [said], f"chat{thread}").stored == 1
                if number % 4 == 0:
                    service.set_fact(user, f"own{thread}x{number}", "x")

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(remember, range(THREADS)))
        assert service.flush(60)
        per_user = THREADS // USERS * EACH
        for number in range(USERS):
            user = f"user{number}"
            assert len(service.documents(user)) == per_user
            facts = facts_of(service, user)
            assert sum(key.startswith("plan") for key in facts) == per_user
            assert sum(key.startswith("own") for key in facts) == THREADS // USERS * 3
        assert service.status().items["failed"] == 0
    assert "locked" not in caplog.text
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


@pytest.mark.every_scheme
def test_whoever_looks_sees_ids_grow_and_none_appear_behind(url: str, database: Database) -> None:
    """A reader that remembers the last id it saw never misses a row: ids follow the order of commits."""
    done = threading.Event()
    missed: list[int] = []

    def write(thread: int) -> None:
        for number in range(25):
            with database.write() as tx:
                first = users.lock(tx, "ada", NOON)
                new = documents.NewDocument("chat", f"{thread}-{number}", "text", NOON)
                documents.insert(tx, "ada", first, [new], NOON)

    def follow() -> set[int]:
        seen: set[int] = set()
        finished = False
        while not finished:
            finished = done.is_set()
            with database.read() as connection:
                after = documents.select(connection, "ada", Facets(), after_id=max(seen, default=0))
                everything = documents.select(connection, "ada", Facets())
            seen.update(document.id for document in after)
            missed.extend(document.id for document in everything if document.id not in seen)
        return seen

    with ThreadPoolExecutor(8) as pool:
        follower = pool.submit(follow)
        list(pool.map(write, range(6)))
        done.set()
        seen = follower.result()
    assert missed == []
    assert len(seen) == 150


@pytest.mark.every_scheme
def test_writes_of_many_users_in_several_processes_worth_of_connections_all_arrive(url: str) -> None:
    with (
        open_service(config_for(url), worker=False) as one,
        open_service(config_for(url), worker=False) as two,
    ):

        def remember(number: int) -> int:
            service = one if number % 2 else two
            return service.remember("ada", [user_says(f"text {number}", id=str(number % 50))], "chat").stored

        with ThreadPoolExecutor(8) as pool:
            stored = sum(pool.map(remember, range(100)))
        assert stored == 50, "each id once, whoever came first"
        assert len(one.documents("ada")) == 50


@pytest.mark.every_scheme
def test_the_same_fact_set_by_many_at_once_keeps_every_value_in_its_history(url: str) -> None:
    with open_service(config_for(url), worker=False) as service:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: service.set_fact("ada", "city", f"City{number}"), range(40)))
        history = service.fact_history("ada", "city")
        assert {past.value for past in history} == {f"City{number}" for number in range(40)}
        assert history[-1].value == facts_of(service, "ada")["city"]


@pytest.mark.every_scheme
def test_erasing_while_others_write_leaves_a_user_whole_or_gone(url: str) -> None:
    with open_service(config_for(url), worker=False) as service:
        stop = threading.Event()

        def write(thread: int) -> int:
            count = 0
            while not (count and stop.is_set()):
                service.remember("ada", [user_says(f"{thread} {count}")], f"chat{thread}")
                service.set_fact("bob", "count", str(count))
                count += 1
            return count

        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(write, thread) for thread in range(3)]
            receipts = [service.erase("ada") for _ in range(4)]
            stop.set()
            assert all(writer.result() > 0 for writer in writers)
        assert len(receipts) == 4
        final = service.erase("ada")
        assert final.left == {}
        assert sum(service.row_counts("ada").values()) == 0
        assert facts_of(service, "bob")


def test_everything_at_once_ends_without_an_error_or_an_orphan(url: str, endpoint: ScriptedEndpoint) -> None:
    endpoint.default = flapping(7, echo())
    config = config_for(
        url,
        endpoint.url,
        memory_extraction_retry_interval=0.05,
        memory_extraction_lease=0.2,
        memory_extraction_queue_limit=40,
        memory_extraction_max_turns=2,
    )
    with open_service(config) as one, open_service(config) as two:

        def use(thread: int) -> None:
            chance = random.Random(thread)
            for _ in range(60):
                chance.choice(USES)(chance.choice([one, two]), f"user{chance.randrange(4)}", chance)

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(use, range(6)))
        for user in range(4):
            assert orphans_of(one.database, f"user{user}") == []


def _any_item(service: Service, user: str, chance: random.Random) -> int:
    items = service.items(user)
    return chance.choice(items).id if items else 0


def _any_document(service: Service, user: str, chance: random.Random) -> int:
    found = service.documents(user)
    return chance.choice(found).id if found else 0


USES: list[Callable[[Service, str, random.Random], object]] = [
    *[
        lambda service, user, chance: service.remember(
            user,
            [user_says(f"my plan{chance.randrange(30)} is V{n}") for n in range(3)],
            f"chat{chance.randrange(5)}",
        )
    ]
    * 3,
    lambda service, user, chance: service.set_fact(user, f"plan{chance.randrange(30)}", "x"),
    lambda service, user, chance: service.drop(user, _any_item(service, user, chance)),
    lambda service, user, chance: service.retry(user, _any_item(service, user, chance)),
    lambda service, user, chance: service.forget(user, session=f"chat{chance.randrange(5)}"),
    lambda service, user, chance: service.forget(user, document=_any_document(service, user, chance)),
    lambda service, user, chance: service.erase(user) if chance.random() < 0.2 else None,
    lambda service, user, chance: (service.status(), service.facts(user), service.context(user)),
]


def orphans_of(database: Database, user_id: str) -> list[str]:
    """Tables in which a user has rows though there is no such user, or ids that will be given again."""
    with database.read() as connection:
        tables = database.tables(connection)
        row = connection.row("select seq from users where user_id = :user_id", user_id=user_id)
        last = int(row[0]) if row else 0
        return [
            name
            for name, columns in tables.items()
            if {"user_id", "id"} <= columns
            and connection.row(
                f"select 1 from {name} where user_id = :user_id and id > :last", user_id=user_id, last=last
            )
        ]
