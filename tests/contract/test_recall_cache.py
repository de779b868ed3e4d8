"""The cache of indexes: bounded, never behind, the same scores with and without it, any number of threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from shepherd_memory.embedding import backlog
from shepherd_memory.recall.keywords import fetch_postings
from shepherd_memory.service import Service, open_service
from shepherd_memory.storage.clock import now_us
from shepherd_memory.text.words import content_stems
from tests.contract.given import ManualClock, config_for, memory, user_says
from tests.contract.recalling import (
    TinyEmbedder,
    check_indexes,
    embed_all,
    hits,
    recalling,
    texts_found,
    use,
)

WORD = "xylophone"
STEMS = content_stems(WORD)
WRITES = 12
"""Messages of each thread that writes while others read."""
PAUSE_SECONDS = 0.02
"""Between two reads of a thread: without it, readers take all the time that writers need."""


@pytest.mark.every_scheme
def test_what_another_process_writes_is_found_by_the_next_recall(url: str, clock: ManualClock) -> None:
    embedder = TinyEmbedder()
    with recalling(url, clock, embedder) as here, recalling(url, clock, TinyEmbedder()) as there:
        here.remember("ada", [user_says("the first xylophone")], "chat")
        for number in range(5):
            assert len(hits(here, "ada", WORD)) == 1 + number * 3
            there.remember("ada", [user_says(f"xylophone number {number} of many")], f"chat{number % 2}")
            assert len(hits(here, "ada", WORD)) == 2 + number * 3
            there.set_fact("ada", f"key{number}", f"xylophone in fact {number}")
            there.add_context("ada", f"Which one, {number}?", f"Xylophone answer {number}")
            assert len(hits(here, "ada", WORD)) == 4 + number * 3
            embed_all(there, embedder)
            assert hits(here, "ada", WORD, explain=True)[0].parts["vector"] > 0  # type: ignore[index]
        assert hits(here, "ada", WORD, explain=True) == uncached(here, embedder)


def furnish(service: Service, user: str, rows: int = 40) -> None:
    said = [user_says(f"{WORD} {number} of {user}", id=str(number)) for number in range(rows)]
    service.remember(user, said, "chat")


@pytest.mark.parametrize("most_bytes", [0, 1, 20_000, 60_000])
def test_users_who_do_not_fit_come_back_with_the_same_scores(
    url: str, clock: ManualClock, most_bytes: int
) -> None:
    embedder = TinyEmbedder()
    users = [f"user{number}" for number in range(6)]
    with recalling(url, clock, embedder) as service:
        for user in users:
            furnish(service, user)
        embed_all(service, embedder)
        expected = {user: hits(service, user, WORD, explain=True) for user in users}
        assert all(expected.values())
        cache = use(service, embedder, most_bytes)
        for _ in range(2):
            for user in users:
                assert hits(service, user, WORD, explain=True) == expected[user]
                assert cache.bytes <= most_bytes
        if not most_bytes:
            assert cache.last_seen(users[-1], embedder.model) is None
        if most_bytes == 60_000:
            assert cache.last_seen(users[-1], embedder.model) is not None


def test_the_setting_bounds_the_cache_as_it_changes(url: str, clock: ManualClock) -> None:
    with memory(url, clock, recall_cache_mb=0) as service:
        furnish(service, "ada")
        assert hits(service, "ada", WORD) == hits(service, "ada", WORD)
        assert service._recall._cache.bytes == 0
        assert service._recall._cache._slots == {}


def test_a_user_who_is_erased_leaves_the_cache(url: str, clock: ManualClock) -> None:
    embedder = TinyEmbedder()
    with recalling(url, clock, embedder) as service:
        cache = use(service, embedder)
        furnish(service, "ada")
        hits(service, "ada", WORD)
        assert cache.bytes > 0
        service.erase("ada")
        assert hits(service, "ada", WORD) == ()
        assert cache.bytes == 0


@pytest.mark.every_scheme
def test_a_slow_recall_does_not_hide_what_was_written_since(url: str, clock: ManualClock) -> None:
    """It finds an index that is newer than its transaction, and must not pass for having seen all of it."""
    embedder = TinyEmbedder()
    with recalling(url, clock, embedder) as service:
        cache = use(service, embedder)
        furnish(service, "ada", 3)
        with service.database.read() as old:
            old.row("select seq from users")
            service.remember("ada", [user_says("a new xylophone")], "chat")
            hits(service, "ada", "other words")
            view = cache.view(service.database, old, "ada", embedder.model)
            assert view is not None
            assert view.index.size == 4
            cache.postings(old, view, STEMS, fetch_postings)
        assert hits(service, "ada", WORD, explain=True) == uncached(service, embedder)


def test_a_slow_recall_does_not_bring_back_what_was_deleted_since(url: str, clock: ManualClock) -> None:
    embedder = TinyEmbedder()
    with recalling(url, clock, embedder) as service:
        cache = use(service, embedder)
        furnish(service, "ada", 3)
        service.remember("ada", [user_says("something else"), user_says("and more")], "chat")
        with service.database.read() as old:
            view = cache.view(service.database, old, "ada", embedder.model)
            assert view is not None
            service.forget("ada", document=service.documents("ada")[0].id)
            hits(service, "ada", "other words")
            assert len(cache.postings(old, view, STEMS, fetch_postings)[STEMS[0]][0]) == 3
        assert hits(service, "ada", WORD, explain=True) == uncached(service, embedder)
        with service.database.read() as connection:
            now = cache.view(service.database, connection, "ada", embedder.model)
            assert now is not None
            assert len(cache.postings(connection, now, STEMS, fetch_postings)[STEMS[0]][0]) == 2


def uncached(service: Service, embedder: TinyEmbedder) -> Any:
    before = vars(service)["_recall"]
    use(service, embedder, 0)
    found = hits(service, "ada", WORD, explain=True)
    vars(service)["_recall"] = before
    return found


def test_32_threads_recall_for_32_users_at_once(url: str, clock: ManualClock) -> None:
    embedder = TinyEmbedder()
    with recalling(url, clock, embedder) as service:
        users = [f"user{number}" for number in range(32)]
        for user in users:
            furnish(service, user, 10)
        embed_all(service, embedder)
        expected = {user: hits(service, user, WORD) for user in users}
        use(service, embedder, 100_000)

        def recall(user: str) -> bool:
            return all(hits(service, user, WORD) == expected[user] for _ in range(10))

        with ThreadPoolExecutor(32) as pool:
            assert all(pool.map(recall, users))


def test_32_threads_load_the_real_model_once(url: str, clock: ManualClock) -> None:
    with memory(url, clock, embedding_engine="onnx") as service:
        furnish(service, "ada", 3)
        with ThreadPoolExecutor(32) as pool:
            results = list(pool.map(lambda _: hits(service, "ada", WORD), range(32)))
        assert all(len(result) == 3 for result in results)


class Load:
    """Threads that read and embed until others have written all their messages."""

    def __init__(self, service: Service, embedder: TinyEmbedder) -> None:
        self.service = service
        self.embedder = embedder
        self.users = [f"user{number}" for number in range(4)]
        self.written = threading.Event()

    def write(self, thread: int) -> None:
        user = self.users[thread % len(self.users)]
        for count in range(WRITES):
            said = user_says(f"{WORD} {thread} {count}", id=f"{thread}-{count}")
            assert self.service.remember(user, [said], f"chat{thread}").stored == 1
            if count % 5 == 0:
                self.service.set_fact(user, f"key{thread}", f"{WORD} {count}")

    def read(self, thread: int) -> None:
        user, seen, over = self.users[thread % len(self.users)], 0, False
        while not over:
            over = self.written.wait(PAUSE_SECONDS)
            found = self.service.recall(user, WORD, 5, 0.0).hits
            assert all(WORD in hit.text for hit in found)
            assert len(found) >= seen, "what was found before is still there"
            seen = len(found)
        assert seen == 5

    def embed(self) -> int:
        done, over = 0, False
        while not over:
            over = self.written.wait(PAUSE_SECONDS)
            done += backlog.embed_batch(self.service.database, self.embedder, now_us())
        return done

    def run(self) -> dict[str, int]:
        """How many messages were written for whom."""
        with ThreadPoolExecutor(33) as pool:
            writers = [pool.submit(self.write, thread) for thread in range(16)]
            readers = [pool.submit(self.read, thread) for thread in range(16)]
            embedding = pool.submit(self.embed)
            try:
                for writer in writers:
                    writer.result()
            finally:
                self.written.set()
            for reader in readers:
                reader.result()
            assert embedding.result() > 0
        return dict.fromkeys(self.users, WRITES * len(writers) // len(self.users))


@pytest.mark.slow
def test_writers_and_readers_at_once_lock_nothing_and_lose_nothing(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    embedder, now = TinyEmbedder(), datetime.now(UTC)
    with open_service(config_for(url), worker=False) as service:
        use(service, embedder, 200_000)
        written = Load(service, embedder).run()
        for user, count in written.items():
            assert len(service.documents(user)) == count
            found = texts_found(service, user, WORD, limit=10**6, kinds=["document"])
            assert len(found) == count, "no row is missing from the index that was built meanwhile"
        embed_all(service, embedder)
        check_indexes(service.database)
        for user in written:
            warm = hits(service, user, f"{WORD} 3 1", limit=200, now=now)
            use(service, embedder)
            assert hits(service, user, f"{WORD} 3 1", limit=200, now=now) == warm
    assert "locked" not in caplog.text


@pytest.mark.every_scheme
def test_readers_do_not_wait_for_a_writer(url: str, clock: ManualClock) -> None:
    with recalling(url, clock) as service:
        furnish(service, "ada", 3)
        writing, done = threading.Event(), threading.Event()
        was_held: list[bool] = []

        def hold() -> None:
            with service.database.write() as tx:
                tx.execute("update users set seq = seq + 1 where user_id = 'ada'")
                writing.set()
                was_held.append(done.wait(60))

        holder = threading.Thread(target=hold)
        holder.start()
        try:
            assert writing.wait(60)
            assert len(hits(service, "ada", WORD)) == 3
        finally:
            done.set()
            holder.join()
        assert was_held == [True], "until the reader was done"
