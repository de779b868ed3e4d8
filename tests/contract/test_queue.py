"""The queue: what is put, how it grows, who gets it next, and what gives way when it is full."""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from shepherd_memory.config import LiveConfig
from shepherd_memory.extraction import queue
from shepherd_memory.extraction.extractor import extraction_client
from shepherd_memory.extraction.worker import Worker
from shepherd_memory.memory import sessions
from shepherd_memory.service import Service, open_service
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import DAY, SECOND
from shepherd_memory.storage.database import Database
from shepherd_memory.storage.lease_owner import new_owner
from shepherd_memory.work import claims, jobs, upkeep
from shepherd_memory.work.lane import KEEP_ENDED_DAYS
from tests.contract.given import (
    NOON,
    ManualClock,
    config_for,
    drain,
    facts_of,
    memory,
    service_with,
    texts_of,
    user_says,
    work,
)
from tests.endpoint import ScriptedEndpoint, status, user_text
from tests.lease_owners import ended_owner, owner_before_reboot, owner_elsewhere, owner_with_our_number

NOWHERE = "http://127.0.0.1:9"
"""An endpoint that is configured but never called: the tests' worker does not run."""


def session_of(service: Service, user_id: str, session_id: str) -> sessions.Session:
    with service.database.read() as connection:
        found = sessions.get(connection, user_id, session_id)
    assert found is not None
    return found


def put_items(database: Database, user_id: str, count: int, now: int, kind: str = queue.KIND) -> None:
    with database.write() as tx:
        first = users.lock(tx, user_id, now, rows=count)
        for number in range(count):
            jobs.put(tx, user_id, first + number, kind, f"{user_id} {number}", now + number)


@pytest.mark.every_scheme
def test_a_later_slice_of_a_session_extends_the_item_that_nobody_has_touched(
    url: str, clock: ManualClock
) -> None:
    with memory(url, clock, NOWHERE) as service:
        for number in range(5):
            assert service.remember("ada", [user_says(f"my pet{number} is Rex")], "chat").queued
        (item,) = service.items("ada")
        documents = service.documents("ada")
        assert (item.watermark_from, item.watermark_through) == (0, documents[-1].id)
        assert session_of(service, "ada", "chat").queued_through == documents[-1].id
        assert session_of(service, "ada", "chat").extracted_through == 0


@pytest.mark.every_scheme
def test_an_item_that_was_claimed_is_not_extended_and_nothing_overlaps(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        service.remember("ada", [user_says("my pet is Rex")], "chat")
        held = claims.claim(service.database, queue.KIND, "elsewhere", clock(), clock() + 30 * SECOND)
        assert held is not None
        service.remember("ada", [user_says("my city is Bonn")], "chat")
        service.remember("ada", [user_says("my car is red")], "chat")
        first, second = service.items("ada")
        assert first.watermark_through == second.watermark_from
        with service.database.write() as tx:
            claims.release(tx, held, clock(), "", None)
        work(service)
        assert facts_of(service, "ada") == {"pet": "Rex", "city": "Bonn", "car": "red"}
        asked = [user_text(request.json) for request in endpoint.requests]
        assert sum("Rex" in text for text in asked) == 1
        assert sum("Bonn" in text for text in asked) == 1


def test_both_watermarks_reach_the_last_message_when_all_is_extracted(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_extraction_max_turns=2) as service:
        service.remember("ada", [user_says(f"my pet{n} is Rex") for n in range(5)], "chat")
        ids = [document.id for document in service.documents("ada")]
        marks = []
        while service.worker.run_once():
            marks.append(session_of(service, "ada", "chat").extracted_through)
        assert marks == [ids[1], ids[3], ids[4]]
        assert session_of(service, "ada", "chat").queued_through == ids[4]


def test_the_extracted_watermark_stops_before_the_first_item_that_is_still_open(
    url: str, clock: ManualClock
) -> None:
    with memory(url, clock, NOWHERE) as service:
        service.remember("ada", [user_says("my pet is Rex")], "chat")
        assert claims.claim(service.database, queue.KIND, "w", clock(), clock() + 30 * SECOND)
        service.remember("ada", [user_says("my city is Bonn")], "chat")
        _first, second = service.items("ada")
        service.drop("ada", second.id)
        assert session_of(service, "ada", "chat").extracted_through == 0


def test_above_its_limit_the_queue_drops_the_oldest_and_says_so(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    endpoint.stop()
    with memory(url, clock, endpoint.url, memory_extraction_queue_limit=100) as service:
        for number in range(250):
            clock.advance(0.01)
            service.remember("ada", [user_says(f"my plan{number} is Value{number}")], f"chat{number}")
            if number % 50 == 0:
                service.worker.run_once()
        items = service.status().items
        assert (items["waiting"], items["dropped"]) == (100, 150)
        waiting = service.items("ada", jobs.WAITING)
        assert {item.key for item in waiting} == {f"chat{number}" for number in range(150, 250)}
        assert len(service.documents("ada")) == 250
        assert "dropped" in caplog.text
        for item in service.items("ada", jobs.DROPPED):
            assert "100" in item.outcome
            session = session_of(service, "ada", item.key)
            assert session.extracted_through == session.queued_through == session.last_document
        endpoint.start()
        drain(service, clock, seconds=5)
        assert len(facts_of(service, "ada")) == 100
        (again, *_) = service.items("ada", jobs.DROPPED)
        assert service.retry("ada", again.id), "what was dropped can be brought back by hand"
        drain(service, clock)
        assert len(facts_of(service, "ada")) == 101


@pytest.mark.every_scheme
def test_above_its_limit_the_queue_drops_the_oldest_of_who_has_most(url: str, clock: ManualClock) -> None:
    with memory(url, clock, NOWHERE, memory_extraction_queue_limit=4) as service:
        service.remember("bob", [user_says("my city is Bonn")], "only")
        for number in range(5):
            clock.advance(1)
            service.remember("ada", [user_says("hello")], f"chat{number}")
        assert [item.key for item in service.items("ada", jobs.WAITING)] == ["chat2", "chat3", "chat4"]
        assert [item.key for item in service.items("bob", jobs.WAITING)] == ["only"]
        for user_id in ("bob", "eve"):
            clock.advance(1)
            service.remember(user_id, [user_says("hello")], "another")
        waiting = {user: len(service.items(user, jobs.WAITING)) for user in ("ada", "bob", "eve")}
        assert waiting == {"ada": 2, "bob": 1, "eve": 1}, "of those who had as many, the oldest went"


@pytest.mark.every_scheme
def test_a_limit_that_is_made_smaller_leaves_each_user_about_as_many(url: str, database: Database) -> None:
    for user_id, number in (("ada", 12), ("bob", 5), ("eve", 1)):
        put_items(database, user_id, number, NOON)
    assert queue.trim(database, 7, NOON) == 11
    with database.read() as connection:
        left = {user_id: number for user_id, number, _ in jobs.waiting_by_user(connection, queue.KIND)}
    assert (sorted(left.values()), left["eve"]) == ([1, 3, 3], 1)
    assert queue.trim(database, 7, NOON) == 0


@pytest.mark.every_scheme
def test_processes_that_trim_at_the_same_moment_drop_no_more_than_is_too_much(
    url: str, clock: ManualClock
) -> None:
    limit = 20

    def add_and_trim(number: int) -> None:
        with memory(url, clock, NOWHERE, memory_extraction_queue_limit=limit) as service:
            start.wait(60)
            for at in range(40):
                user_id = f"user{(number + at) % 5}"
                service.remember(user_id, [user_says(f"My code is {number} {at}")], f"session {number} {at}")
                assert at < limit or service.status().items["waiting"] >= limit

    start = threading.Barrier(4)
    with ThreadPoolExecutor(4) as threads:
        for future in [threads.submit(add_and_trim, number) for number in range(4)]:
            future.result()
    with memory(url, clock, NOWHERE) as service:
        assert service.status().items["waiting"] == limit


def test_a_limit_of_zero_drops_nothing(url: str, clock: ManualClock) -> None:
    with memory(url, clock, NOWHERE) as service:
        for number in range(30):
            service.remember("ada", [user_says("hello")], f"chat{number}")
        assert service.status().items["waiting"] == 30


def test_what_was_wanted_without_an_endpoint_is_caught_up_once_there_is_one(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock) as service:
        for number in range(120):
            result = service.remember("ada", [user_says(f"my plan{number} is Value{number}")], f"c{number}")
            assert not result.queued
        service.remember("ada", [user_says("my secretplan is Hidden")], "private", extract=False)
        assert service.status().items["waiting"] == 0
    with memory(url, clock, endpoint.url) as service:
        drain(service, clock)
        assert len(facts_of(service, "ada")) == 120
        assert "secretplan" not in facts_of(service, "ada")
        session = session_of(service, "ada", "private")
        assert session.queued_through == 0
        assert service.extract("ada", "private")
        assert not service.extract("ada", "private"), "nothing is new any more"
        drain(service, clock)
        assert facts_of(service, "ada")["secretplan"] == "Hidden"


def test_extraction_by_hand_needs_something_new_and_an_endpoint(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        service.remember("ada", [user_says("hello")], "chat", extract=False)
        assert not service.extract("ada", "chat")
    with memory(url, clock, NOWHERE) as service:
        assert not service.extract("ada", "no such session")
        assert not service.extract("bob", "chat")
        assert service.extract("ada", "chat")
        service.remember("ada", [{"role": "assistant", "content": "hi"}], "chat")
        assert not service.extract("ada", "chat"), "the assistant alone said something new"
        assert session_of(service, "ada", "chat").extracted_through == 0


def test_one_users_thousand_items_do_not_delay_anothers_one(
    url: str, database: Database, clock: ManualClock
) -> None:
    put_items(database, "busy", 1000, NOON - SECOND)
    put_items(database, "ada", 1, NOON)
    order = [_claimed(database) for _ in range(4)]
    assert order.index("ada") <= 1
    put_items(database, "bob", 1, NOON)
    put_items(database, "eve", 2, NOON)
    order = [_claimed(database) for _ in range(6)]
    assert order.index("bob") <= 2
    assert order.index("eve") <= 2
    assert Counter(order)["eve"] == 2


def _claimed(database: Database) -> str:
    job = claims.claim(database, queue.KIND, "w", NOON + DAY, NOON + 2 * DAY)
    assert job is not None
    return job.user_id


def test_one_users_endless_session_does_not_delay_anothers_item(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_extraction_max_turns=1) as service:
        service.remember("busy", [user_says(f"my plan{n} is Value{n}") for n in range(30)], "chat")
        service.worker.run_once()
        clock.advance(1)
        service.remember("ada", [user_says("my pet is Rex")], "chat")
        done = [service.worker.run_once() for _ in range(3)]
        assert "ada" in [outcome.user_id for outcome in done if outcome]


def test_one_users_failures_do_not_send_anothers_item_to_the_end(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        for number in range(40):
            clock.advance(0.001)
            service.remember("busy", [user_says(f"my plan{number} is Value{number}")], f"chat{number}")
        service.remember("ada", [user_says("my pet is Rex")], "chat")
        endpoint.script(*[status(500)] * 6)
        while len(endpoint.requests) < 6:
            service.worker.run_once()
            clock.advance(3)
        clock.advance(6)
        done = [service.worker.run_once() for _ in range(8)]
        assert "ada" in [outcome.user_id for outcome in done if outcome]


@pytest.mark.every_scheme
@pytest.mark.parametrize("claimers", [8])
def test_many_claimers_never_get_the_same_item(url: str, database: Database, claimers: int) -> None:
    for number in range(6):
        put_items(database, f"user{number}", 25, NOON)
    ready = threading.Barrier(claimers)

    def claim_all(worker: int) -> list[tuple[str, int]]:
        ready.wait()
        now, until = NOON + SECOND, NOON + 60 * SECOND
        found = iter(lambda: claims.claim(database, queue.KIND, str(worker), now, until), None)
        return [(job.user_id, job.id) for job in found if job]

    with ThreadPoolExecutor(claimers) as pool:
        claimed = [job for batch in pool.map(claim_all, range(claimers)) for job in batch]
    assert len(claimed) == len(set(claimed)) == 150


@pytest.mark.every_scheme
def test_a_lease_can_be_renewed_until_it_is_lost(url: str, database: Database) -> None:
    put_items(database, "ada", 1, NOON)
    job = claims.claim(database, queue.KIND, "w", NOON, NOON + 30 * SECOND)
    assert job is not None
    assert claims.renew(database, job, NOON + 60 * SECOND)
    assert upkeep.expire_leases(database, queue.KIND, NOON + 59 * SECOND, 0) == 0
    assert upkeep.expire_leases(database, queue.KIND, NOON + 61 * SECOND, 0) == 1
    assert not claims.renew(database, job, NOON + 90 * SECOND)
    other = claims.claim(database, queue.KIND, "v", NOON + 62 * SECOND, NOON + 92 * SECOND)
    assert other is not None
    assert other.token != job.token
    with database.write() as tx:
        assert not claims.finish(tx, job, "late", NOON + 63 * SECOND)
        assert claims.finish(tx, other, "in time", NOON + 63 * SECOND)


@pytest.mark.every_scheme
def test_what_a_killed_process_of_this_machine_held_is_free_at_once(url: str, database: Database) -> None:
    put_items(database, "ada", 1, NOON)
    later = NOON + SECOND
    assert claims.claim(database, queue.KIND, ended_owner(), NOON, NOON + 30 * SECOND)
    assert upkeep.expire_leases(database, queue.KIND, later, 0) == 1
    assert claims.claim(database, queue.KIND, owner_with_our_number(), later, NOON + 30 * SECOND)
    assert upkeep.expire_leases(database, queue.KIND, later, 0) == 1


@pytest.mark.every_scheme
@pytest.mark.parametrize("owner", [new_owner, owner_elsewhere, owner_before_reboot])
def test_what_may_be_alive_is_left_its_lease(url: str, database: Database, owner: Callable[[], str]) -> None:
    put_items(database, "ada", 1, NOON)
    assert claims.claim(database, queue.KIND, owner(), NOON, NOON + 30 * SECOND)
    assert upkeep.expire_leases(database, queue.KIND, NOON + 29 * SECOND, 0) == 0
    assert upkeep.expire_leases(database, queue.KIND, NOON + 31 * SECOND, 0) == 1


def test_an_item_that_keeps_killing_its_worker_waits_longer_each_time(url: str, database: Database) -> None:
    put_items(database, "ada", 1, NOON)
    now, waits = NOON, []
    for _ in range(4):
        job = claims.claim(database, queue.KIND, "w", now, now + SECOND)
        assert job is not None
        now += 2 * SECOND
        upkeep.expire_leases(database, queue.KIND, now, 5 * SECOND)
        with database.read() as connection:
            found = jobs.get(connection, "ada", job.id)
        assert found is not None
        wait = round(found.run_at.timestamp() * SECOND) - now
        waits.append(wait // SECOND)
        now += wait
    assert waits == [0, 5, 10, 15]


@pytest.mark.every_scheme
def test_jobs_that_ended_long_ago_are_forgotten_and_failed_ones_are_kept(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        for name in ("done", "dropped", "failed"):
            service.remember(name, [user_says("my pet is Rex")], "chat")
        (dropped,) = service.items("dropped")
        service.drop("dropped", dropped.id)
        held = claims.claim(service.database, queue.KIND, "w", clock(), clock() + SECOND)
        assert held is not None
        with service.database.write() as tx:
            claims.hold(tx, held, "no", clock())
        work(service)
        endpoint.default = status(422)
        clock.advance((KEEP_ENDED_DAYS - 1) * 86_400)
        work(service)
        assert service.status().items == {"waiting": 0, "running": 0, "done": 1, "failed": 1, "dropped": 1}
        clock.advance(2 * 86_400)
        work(service)
        assert service.status().items == {"waiting": 0, "running": 0, "done": 0, "failed": 1, "dropped": 0}


@pytest.mark.every_scheme
def test_the_items_of_killed_workers_are_taken_up_again(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        service.remember("ada", [user_says("my pet is Rex")], "chat")
        assert claims.claim(service.database, queue.KIND, "killed", clock(), clock() + 30 * SECOND)
        work(service)
        assert facts_of(service, "ada") == {}
        clock.advance(31)
        work(service)
        assert facts_of(service, "ada") == {"pet": "Rex"}


@pytest.mark.every_scheme
def test_two_workers_on_one_database_share_the_items_and_store_each_once(
    url: str, endpoint: ScriptedEndpoint
) -> None:
    config = config_for(url, endpoint.url)
    with open_service(config) as one, open_service(config) as two:
        for number in range(40):
            service = one if number % 2 else two
            service.remember(f"user{number % 5}", [user_says(f"my plan{number} is V{number}")], f"c{number}")
        assert one.flush(60)
        for user in range(5):
            assert len(facts_of(one, f"user{user}")) == 8
            assert len(one.context(f"user{user}")) == 8
        assert len(endpoint.requests) == 40


def test_a_document_that_is_forgotten_is_not_carried_on_in_the_queue(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_documents=False) as service:
        service.remember("ada", [user_says("my pet is Rex"), user_says("my city is Bonn")], "chat")
        service.forget("ada", document=service.documents("ada")[0].id)
        (item,) = service.items("ada")
        assert "Rex" not in item.payload
        work(service)
        assert facts_of(service, "ada") == {"city": "Bonn"}


def test_a_document_that_is_forgotten_while_its_item_runs_leaves_no_fact(
    url: str, database: Database, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    live = LiveConfig(config_for(url, endpoint.url))
    client = extraction_client()
    forgotten: list[int] = []

    def forget(point: str) -> None:
        if point == "answered" and not forgotten:
            forgotten.append(service.documents("ada")[0].id)
            service.forget("ada", document=forgotten[0])

    service = service_with(database, live, Worker(database, live.current, clock, client, forget), clock)
    service.remember("ada", [user_says("my pet is Rex"), user_says("my city is Bonn")], "chat")
    work(service)
    client.close()
    assert facts_of(service, "ada") == {"city": "Bonn"}


def test_an_item_that_is_put_is_a_copy_of_what_the_caller_holds(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    for keep in (True, False):
        with memory(url, clock, endpoint.url, memory_documents=keep) as service:
            messages = [
                user_says("my pet is Rex"),
                {"role": "user", "content": [{"type": "text", "text": "x"}]},
            ]
            service.remember(f"ada{keep}", messages, "chat")
            messages[0]["content"] = "my pet is Fido"
            messages[1]["content"][0]["text"] = "my city is Bonn"
            messages.clear()
            work(service)
            assert facts_of(service, f"ada{keep}") == {"pet": "Rex"}


def test_without_documents_only_what_extraction_made_of_them_is_kept(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, memory_documents=False) as service:
        result = service.remember("ada", [user_says("my pet is Rex")], "chat")
        assert (result.stored, result.queued) == (0, False)
        assert "memory_documents" in result.reason
        assert service.documents("ada") == []
    with memory(url, clock, endpoint.url, memory_documents=False) as service:
        assert not service.remember("ada", [user_says("my pet is Rex")], "chat", extract=False).stored
        message = user_says("my pet is Rex", id="m1", mood="glad")
        assert service.remember("ada", [message], "chat").stored == 1
        assert service.remember("ada", [message], "chat").known == 1
        (item,) = service.items("ada")
        assert "Rex" in item.payload
        service.remember("ada", [user_says("my city is Bonn", id="m2")], "chat")
        work(service)
        assert facts_of(service, "ada") == {"pet": "Rex", "city": "Bonn"}
        assert texts_of(service, "ada") == ["", ""]
        assert all(document.extra is None for document in service.documents("ada"))
        assert [found.payload for found in service.items("ada")] == [""]
