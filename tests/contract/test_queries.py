"""Queries of one statement each: a page before a document, one message, what was made of it, counts."""

from collections.abc import Iterator

import pytest

from shepherd_memory.memory import context, facts, rejections
from shepherd_memory.memory.rejections import NewRejection
from shepherd_memory.memory.sessions import SessionSize
from shepherd_memory.service import Service
from shepherd_memory.storage import users
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.work import jobs, ledger
from shepherd_memory.work.jobs import FAILED, RUNNING, WAITING
from tests.contract.given import NOON, ManualClock, memory, user_says

DAY = 86_400_000_000
USERS = ("ada", "bob")


@pytest.fixture
def service(database_url: str) -> Iterator[Service]:
    with memory(database_url, ManualClock(NOON)) as opened:
        yield opened


def say(service: Service, user_id: str, session_id: str, number: int) -> None:
    """Messages m0, m1, … of a session."""
    messages = [user_says(f"{user_id} says {at}", id=f"m{at}") for at in range(number)]
    service.remember(user_id, messages, session_id, extract=False)


def test_pages_before_a_document_end_at_the_first(service: Service) -> None:
    for user_id in USERS:
        say(service, user_id, "chat", 5)
        say(service, user_id, "another", 2)
    newest = service.documents("ada", session_id="chat", limit=2, newest=True)
    older = service.documents("ada", session_id="chat", before_id=newest[0].id, limit=2, newest=True)
    oldest = service.documents("ada", session_id="chat", before_id=older[0].id, limit=2, newest=True)
    pages = [[document.message_id for document in page] for page in (newest, older, oldest)]
    assert pages == [["m3", "m4"], ["m1", "m2"], ["m0"]]
    assert service.documents("ada", session_id="chat", before_id=oldest[0].id, newest=True) == []


def test_the_documents_before_another_are_those_of_all_sessions(service: Service) -> None:
    say(service, "ada", "chat", 2)
    say(service, "ada", "another", 2)
    last = service.documents("ada")[-1]
    found = service.documents("ada", before_id=last.id, after_id=1)
    assert [(document.session_id, document.message_id) for document in found] == [
        ("chat", "m1"),
        ("another", "m0"),
    ]


def test_a_message_is_found_by_its_session_and_id(service: Service) -> None:
    for user_id in USERS:
        say(service, user_id, "chat", 3)
    found = service.get_message("ada", "chat", "m1")
    assert found is not None
    assert found.text == "ada says 1"
    assert service.get_message("ada", "chat", "m3") is None
    assert service.get_message("ada", "another", "m1") is None
    assert service.message_ids("ada", "chat") == {"m0", "m1", "m2"}
    assert service.message_ids("ada", "another") == set()


def state(service: Service, user_id: str, message_id: str) -> None:
    """What extraction makes of a message: a fact, a pair, and something refused."""
    where = Provenance(NOON, "extraction", "chat", message_id)
    with service.database.write() as tx:
        first = users.lock(tx, user_id, NOON, rows=3)
        facts.put(tx, user_id, f"city_{message_id}", user_id, where, NOON, first)
        context.put(tx, user_id, first + 1, f"Where in {message_id}?", user_id, where, NOON)
        refused = NewRejection("fact", "pet", "cat", "not said", "", where)
        rejections.insert(tx, user_id, first + 2, refused, NOON)


def test_what_was_made_of_a_message_is_what_was_stated_in_it(service: Service) -> None:
    for user_id in USERS:
        say(service, user_id, "chat", 2)
        state(service, user_id, "m0")
        state(service, user_id, "m1")
        service.set_fact(user_id, "mood", "good")
    stated, pairs = service.made_of("ada", "chat", "m1")
    assert [(fact.key, fact.value) for fact in stated] == [("city_m1", "ada")]
    assert [(pair.question, pair.answer) for pair in pairs] == [("Where in m1?", "ada")]
    assert service.get_context("ada", pairs[0].id) == pairs[0]
    assert service.made_of("ada", "another", "m1") == ([], [])
    assert service.get_context("ada", 9999) is None


def test_the_size_of_a_session_counts_nothing_of_others(service: Service) -> None:
    for user_id in USERS:
        say(service, user_id, "chat", 3)
        say(service, user_id, "another", 1)
        state(service, user_id, "m0")
        state(service, user_id, "m1")
        service.set_fact(user_id, "mood", "good")
    assert service.session_size("ada", "chat") == SessionSize(3, 2, 2, 2)
    assert service.session_size("ada", "another") == SessionSize(1, 0, 0, 0)
    assert service.session_size("eve", "chat") == SessionSize(0, 0, 0, 0)


def put_job(service: Service, user_id: str, key: str, status: str = WAITING, run_at: int = 0) -> None:
    with service.database.write() as tx:
        job_id = users.lock(tx, user_id, NOON)
        jobs.put(tx, user_id, job_id, "extract", key, NOON)
        tx.execute(
            "update jobs set status = :status, run_at = :run_at where user_id = :user_id and id = :id",
            status=status,
            run_at=run_at,
            user_id=user_id,
            id=job_id,
        )


def test_items_are_counted_by_state_and_by_whether_they_are_due(service: Service) -> None:
    for user_id in USERS:
        put_job(service, user_id, "due")
        put_job(service, user_id, "put off", run_at=NOON + DAY)
        put_job(service, user_id, "running", RUNNING, run_at=NOON + DAY)
        put_job(service, user_id, "failed", FAILED)
    assert service.count_items("ada", WAITING) == 2
    assert service.count_items("ada", WAITING, RUNNING) == 3
    assert service.count_items("ada", WAITING, RUNNING, due=True) == 2
    assert service.count_items("ada", FAILED) == 1
    assert service.item_counts("ada") == {"waiting": 2, "running": 1, "done": 0, "failed": 1, "dropped": 0}
    assert not any(service.item_counts("unknown").values())
    assert service.count_items("eve", WAITING, RUNNING, FAILED) == 0


def test_tokens_spent_today_are_those_of_extraction_and_of_today(service: Service) -> None:
    with service.database.write() as tx:
        for user_id in USERS:
            users.lock(tx, user_id, NOON)
            ledger.record(tx, user_id, ledger.EXTRACTION, ledger.TokenCost(1, 0, 5, 6), NOON)
            ledger.record(tx, user_id, ledger.EXTRACTION, ledger.TokenCost(1, 0, 50, 60), NOON - DAY)
            ledger.record(tx, user_id, "embedding", ledger.TokenCost(1, 0, 500, 600), NOON)
    assert service.tokens_spent_today("ada") == 11
    assert service.tokens_spent_today("eve") == 0
