"""Claims on the backlog: each entry is embedded by one process at a time, and none is lost."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from shepherd_memory.embedding import backlog, claims
from shepherd_memory.embedding.claims import BATCH, LEASE_SECONDS
from shepherd_memory.embedding.engine import Unavailable, UnembeddableText
from shepherd_memory.service import Service
from shepherd_memory.storage.lease_owner import new_owner
from tests.contract.given import ManualClock, user_says
from tests.contract.recalling import TinyEmbedder, check_indexes, embed_all, recalling
from tests.lease_owners import ended_owner, owner_before_reboot, owner_elsewhere


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with recalling(url, clock) as opened:
        yield opened


def say(service: Service, number: int, users: Sequence[str] = ("ada",)) -> None:
    for user_id in users:
        said = [user_says(f"{user_id} has violin {at}") for at in range(number)]
        service.remember(user_id, said, "chat")


def held_by(service: Service, owner: str) -> None:
    """Leave all entries as a process of that name left them when it was killed at its work."""
    with service.database.write() as tx:
        tx.execute(
            "update unembedded set token = :owner, lease_until = :until",
            owner=owner,
            until=service._clock() + round(LEASE_SECONDS * 1_000_000),
        )


@pytest.mark.every_scheme
def test_what_one_has_taken_is_not_taken_by_another(service: Service) -> None:
    say(service, 50, ("ada", "bob"))
    first = claims.take(service.database, service._clock())
    second = claims.take(service.database, service._clock())
    assert len(first.entries) == BATCH
    assert len(second.entries) == 100 - BATCH
    assert not set(map(repr, first.entries)) & set(map(repr, second.entries))
    assert not claims.take(service.database, service._clock()).entries
    first.release()
    # All were stored in one moment: which of them comes first is left to the database.
    again = claims.take(service.database, service._clock())
    assert sorted(map(repr, again.entries)) == sorted(map(repr, first.entries))


@pytest.mark.every_scheme
def test_one_users_entries_are_embedded_without_touching_those_of_others(service: Service) -> None:
    say(service, 3, ("ada", "bob"))
    done = backlog.embed_batch(service.database, TinyEmbedder(), service._clock(), only_user="bob")
    assert (done, service.unembedded("ada"), service.unembedded("bob")) == (3, 3, 0)
    assert backlog.embed_batch(service.database, TinyEmbedder(), service._clock(), only_user="nobody") == 0


@pytest.mark.every_scheme
def test_what_a_killed_process_of_this_machine_had_taken_is_taken_at_once(service: Service) -> None:
    say(service, 3)
    held_by(service, ended_owner())
    assert backlog.embed_batch(service.database, TinyEmbedder(), service._clock()) == 3
    assert service.unembedded("ada") == 0


@pytest.mark.parametrize("owner", [new_owner, owner_elsewhere, owner_before_reboot])
def test_what_another_may_be_at_waits_for_one_lease(
    service: Service, clock: ManualClock, owner: Callable[[], str]
) -> None:
    say(service, 3)
    held_by(service, owner())
    clock.advance(LEASE_SECONDS - 1)
    assert backlog.embed_batch(service.database, TinyEmbedder(), clock()) == 0
    clock.advance(2)
    assert backlog.embed_batch(service.database, TinyEmbedder(), clock()) == 3


def test_a_lease_from_before_the_clock_was_set_back_holds_nobody_up(
    service: Service, clock: ManualClock
) -> None:
    say(service, 3)
    held_by(service, new_owner())
    clock.advance(-86_400)
    assert backlog.embed_batch(service.database, TinyEmbedder(), clock()) == 3


@pytest.mark.every_scheme
def test_whoever_stops_lets_go_of_what_it_has_taken(service: Service) -> None:
    say(service, 3)
    assert backlog.embed_batch(service.database, TinyEmbedder(), service._clock(), lambda: True) == 0
    assert backlog.embed_batch(service.database, TinyEmbedder(), service._clock()) == 3


class Failing(TinyEmbedder):
    def embed(self, texts: Sequence[str]) -> Any:
        raise Unavailable("it is away")


def test_whose_model_is_away_lets_go_of_what_it_has_taken(service: Service) -> None:
    say(service, 3)
    with pytest.raises(Unavailable):
        backlog.embed_batch(service.database, Failing(), service._clock())
    assert backlog.embed_batch(service.database, TinyEmbedder(), service._clock()) == 3


class Picky(TinyEmbedder):
    def embed(self, texts: Sequence[str]) -> Any:
        if any("violin 1" in text for text in texts):
            raise UnembeddableText("not this one")
        return super().embed(texts)


@pytest.mark.every_scheme
def test_a_text_that_cannot_be_embedded_holds_up_no_other(service: Service) -> None:
    say(service, 3)
    assert backlog.embed_batch(service.database, Picky(), service._clock()) == 3
    assert service.unembedded("ada") == 0
    assert service.row_counts("ada")["vectors"] == 2


@pytest.mark.every_scheme
def test_who_was_too_slow_stores_nothing_of_what_another_has_taken_since(
    service: Service, clock: ManualClock
) -> None:
    say(service, 2)
    slow, quick = TinyEmbedder("slow"), TinyEmbedder("quick")
    slow.gate = threading.Event()
    thread = threading.Thread(target=backlog.embed_batch, args=(service.database, slow, clock()))
    thread.start()
    assert slow.before.wait(60)
    clock.advance(LEASE_SECONDS + 1)
    embed_all(service, quick)
    slow.gate.set()
    thread.join()
    with service.database.read() as connection:
        assert connection.rows("select distinct model from vectors") == [("quick",)]
    assert service.row_counts("ada")["vectors"] == 2
    check_indexes(service.database)


@pytest.mark.every_scheme
def test_a_slow_model_keeps_what_it_has_taken(service: Service, clock: ManualClock) -> None:
    say(service, 2, ("ada", "bob"))
    passed = iter([0.0, LEASE_SECONDS])
    taken = claims.take(service.database, clock(), lambda: next(passed))
    taken.keep()
    clock.advance(LEASE_SECONDS + 1)
    assert not claims.take(service.database, clock()).entries
    clock.advance(LEASE_SECONDS)
    assert len(claims.take(service.database, clock()).entries) == 4
