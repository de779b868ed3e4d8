"""What came into the tables without being indexed: an earlier version, an interruption, an old database."""

import threading
from contextlib import AbstractContextManager, closing

import pytest

from shepherd_memory.maintenance import forgetting, reindexing
from shepherd_memory.maintenance.related import Forgettable
from shepherd_memory.storage.database import (
    Connection,
    Database,
    connect,
    load_migrations,
    migrate,
    open_database,
)
from tests.contract.given import NOON, ManualClock, user_says
from tests.contract.recalling import check_indexes, hits, recalling

WORD = "xylophone"


def write_as_before(database: Database, rows: int = 5) -> None:
    """A database of the version that did not index, with rows of two users."""
    first = load_migrations(database.migrations())[0]
    with database.migrating() as tx:
        tx.execute_script(first.sql)
        tx.execute(
            "insert into schema_migrations (version, name, applied_at) values (1, :n, 0)", n=first.name
        )
        for user in ("ada", "bob"):
            tx.execute(
                "insert into users (user_id, seq, created_at) values (:user, :seq, 0)",
                user=user,
                seq=rows + 3,
            )
            for number in range(1, rows + 1):
                tx.execute(
                    "insert into documents (user_id, id, session_id, message_id, type, category, role,"
                    " speaker_type, speaker_name, text, source, created_at, stored_at) values (:user, :id,"
                    " 'chat', :message, 'message', 'transcript', 'user', 'human', '', :text, 'live',"
                    " :now, :now)",
                    user=user,
                    id=number,
                    message=str(number),
                    text=f"{WORD} {number} of {user}" if number % 5 else "",
                    now=NOON,
                )
            for key in ("instrument", "city"):
                tx.execute(
                    "insert into facts (user_id, key, value, stated_at, source, created_at, updated_at)"
                    " values (:user, :key, :value, :now, 'user', :now, :now)",
                    user=user,
                    key=key,
                    value=f"{WORD} as {key}",
                    now=NOON,
                )
            tx.execute(
                "insert into context (user_id, id, question, answer, digest, stated_at, source, created_at,"
                " updated_at) values (:user, :id, 'What?', :answer, 'd', :now, 'user', :now, :now)",
                user=user,
                id=rows + 1,
                answer=f"A {WORD}",
                now=NOON,
            )


@pytest.fixture
def old_url(database_url: str) -> str:
    with closing(connect(database_url)) as database:
        write_as_before(database)
    return database_url


@pytest.mark.every_scheme
def test_a_database_of_the_version_before_is_indexed_when_it_is_opened(
    old_url: str, clock: ManualClock
) -> None:
    with recalling(old_url, clock) as service:
        check_indexes(service.database)
        for user in ("ada", "bob"):
            kinds = [hit.kind for hit in hits(service, user, WORD)]
            assert sorted(kinds) == ["context", *["document"] * 4, "fact", "fact"]
        assert not reindexing.is_needed(service.database)
        assert [fact.value for fact in service.facts("ada")] == [f"{WORD} as city", f"{WORD} as instrument"]
        assert len({fact.id for fact in service.facts("ada")} - {0}) == 2
        clock.advance(1)
        service.set_fact("ada", "city", "Oslo")
        service.forget("ada", fact="instrument")
        service.remember("ada", [user_says("one more xylophone")], "chat")
        check_indexes(service.database)


def test_indexing_that_was_interrupted_goes_on(old_url: str, clock: ManualClock) -> None:
    with closing(open_database(old_url)) as database:
        assert reindexing.is_needed(database)
        assert reindexing.index_missing(database, "ada", NOON) == 7
        assert reindexing.is_needed(database), "bob's are still missing"
        with pytest.raises(AssertionError):
            check_indexes(database)
    with recalling(old_url, clock) as service:
        check_indexes(service.database)
        assert len(hits(service, "bob", WORD)) == 7
    with recalling(old_url, clock) as service:
        assert not reindexing.is_needed(service.database)


@pytest.mark.every_scheme
def test_two_processes_that_open_it_at_once_index_it_once(database_url: str) -> None:
    with closing(connect(database_url)) as database:
        write_as_before(database, rows=700)
    with closing(open_database(database_url)) as one, closing(open_database(database_url)) as two:
        failures: list[BaseException] = []

        def index(database: Database) -> None:
            try:
                reindexing.reindex_all_users(database, NOON)
            except BaseException as error:  # noqa: BLE001 - shown below
                failures.append(error)

        threads = [threading.Thread(target=index, args=(database,)) for database in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        check_indexes(one)


class Interrupted:
    """A database in which somebody deletes between the reading and the writing of an indexing."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._writes = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)

    def write(self) -> AbstractContextManager[Connection]:
        self._writes += 1
        # The first one numbers the facts.
        if self._writes == 2:
            assert forgetting.forget(self._database, "ada", Forgettable("document", "1"), NOON).documents == 1
        return self._database.write()


def test_what_is_deleted_while_it_is_indexed_stays_out(old_url: str, clock: ManualClock) -> None:
    with closing(open_database(old_url)) as database:
        reindexing.reindex_all_users(Interrupted(database), NOON)  # type: ignore[arg-type]
        check_indexes(database)
    with recalling(old_url, clock) as service:
        assert len(hits(service, "ada", WORD)) == 6


def test_migrating_does_not_index_so_that_opening_a_reader_is_quick(old_url: str) -> None:
    with closing(connect(old_url)) as database:
        assert migrate(database) == len(load_migrations(database.migrations()))
        assert reindexing.is_needed(database)
