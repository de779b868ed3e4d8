"""Embedding in the background: nothing is lost or comes back, models never mix, it stops in time."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.config import Config
from shepherd_memory.embedding import backlog
from shepherd_memory.embedding.onnx import OnnxEmbedder
from shepherd_memory.embedding.thread import EmbeddingThread, choice_of
from shepherd_memory.memory import context
from shepherd_memory.service import Service, open_service
from shepherd_memory.storage import users
from shepherd_memory.storage.rows import Provenance
from tests.contract.given import ManualClock, config_for, memory, user_says
from tests.contract.recalling import TinyEmbedder, check_indexes, embed_all, hits, recalling
from tests.endpoint import Body, ScriptedEndpoint, Step, by_content, hang, json_reply, status
from tests.stopwatch import seconds_of

KEY = "sk-not-to-be-shown-1234567890"


def wait_for(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def waiting(service: Service) -> int:
    return service.status().embedding.waiting


def stored_models(service: Service) -> set[str]:
    with service.database.read() as connection:
        return {row[0] for row in connection.rows("select distinct model from vectors")}


@pytest.mark.every_scheme
def test_the_real_model_finds_by_meaning_what_shares_no_word(url: str) -> None:
    with open_service(config_for(url, embedding_engine="onnx")) as service:
        said = ["My daughter plays the violin", "The car needs new tyres", "We had soup for lunch"]
        service.remember("ada", [user_says(text) for text in said], "chat")
        assert service.recall("ada", "violin", threshold=0).hits[0].text == said[0], "by keyword at once"
        assert service.flush(60)
        assert waiting(service) == 0
        for query, text in (
            ("musical instruments", said[0]),
            ("vehicle repair", said[1]),
            ("meals", said[2]),
        ):
            assert service.recall("ada", query, threshold=0).hits[0].text == text
        check_indexes(service.database)


def test_evidence_at_the_end_of_a_long_message_is_found_by_vector(url: str, clock: ManualClock) -> None:
    embedder = OnnxEmbedder()
    filler = " ".join(f"Invoice {number} was paid and filed in the usual folder." for number in range(130))
    long = f"{filler} At night our puppy sleeps beside the fireplace."
    assert len(long) > 6_000
    with recalling(url, clock, embedder) as service:
        service.remember("ada", [user_says(long, id="long"), user_says(filler[:3000], id="filler")], "a")
        service.remember("ada", [user_says("Taxes are due in spring")], "b")
        embed_all(service, embedder)
        best = hits(service, "ada", "Where does the young dog rest?", explain=True)[0]
        assert best.message_id == "long"
        assert best.parts is not None
        assert best.parts["vector"] > 0.5
        with service.database.read() as connection:
            parts = connection.row("select count(*), max(part) from vectors where id = :id", id=best.id)
        assert parts is not None
        assert parts[0] == parts[1] + 1 > 6


def test_backlog_and_lag_are_counted(url: str, clock: ManualClock) -> None:
    with memory(url, clock, embedding_engine="onnx") as service:
        state = service.status().embedding
        assert (state.waiting, state.lag_seconds) == (0, 0.0)
        service.remember("ada", [user_says("one"), user_says("two")], "chat")
        clock.advance(30)
        service.set_fact("bob", "city", "Oslo")
        clock.advance(12)
        state = service.status().embedding
        assert (state.waiting, state.lag_seconds) == (3, 42.0)
        assert (service.unembedded("ada"), service.unembedded("bob"), service.unembedded("eve")) == (2, 1, 0)
        embed_all(service, TinyEmbedder())
        state = service.status().embedding
        assert (state.waiting, state.lag_seconds) == (0, 0.0)


def test_without_an_engine_rows_wait_and_flush_does_not(url: str) -> None:
    with open_service(config_for(url, embedding_engine="none")) as service:
        service.remember("ada", [user_says("the violin")], "chat")
        assert service.flush(60)
        assert waiting(service) == 1
        assert service.recall("ada", "violin", threshold=0).hits
        assert service.status().embedding.problem == ""
    with open_service(config_for(url, embedding_engine="onnx")) as service:
        assert service.flush(60), "and are embedded once there is one"
        assert waiting(service) == 0


def embed_in_thread(service: Service, embedder: TinyEmbedder) -> threading.Thread:
    embedder.gate = threading.Event()
    thread = threading.Thread(target=backlog.embed_batch, args=(service.database, embedder, service._clock()))
    thread.start()
    assert embedder.before.wait(60)
    return thread


MEANWHILE: dict[str, Callable[[Service], object]] = {
    "the document is forgotten": lambda service: service.forget("ada", document=1),
    "the session is forgotten": lambda service: service.forget("ada", session="chat"),
    "the user is erased": lambda service: service.erase("ada"),
}


@pytest.mark.every_scheme
@pytest.mark.parametrize("what", MEANWHILE)
def test_what_is_deleted_while_it_is_embedded_stays_deleted(url: str, clock: ManualClock, what: str) -> None:
    embedder = TinyEmbedder()
    with recalling(url, clock, embedder) as service:
        service.remember("ada", [user_says("the violin")], "chat")
        service.remember("bob", [user_says("the violin")], "chat")
        thread = embed_in_thread(service, embedder)
        MEANWHILE[what](service)
        assert embedder.gate is not None
        embedder.gate.set()
        thread.join()
        check_indexes(service.database)
        counts = service.row_counts("ada")
        assert counts["vectors"] == 0
        if what == "the user is erased":
            assert sum(counts.values()) == 0, "not even the user's own row comes back"
        assert service.row_counts("bob")["vectors"] == 1


def test_a_pair_that_says_something_else_meanwhile_gets_no_vector_of_the_old_words(
    url: str, clock: ManualClock
) -> None:
    embedder = TinyEmbedder()
    with recalling(url, clock, embedder) as service:
        service.add_context("ada", "What do you play?", "The violin at home")
        (pair,) = service.context("ada")
        thread = embed_in_thread(service, embedder)
        clock.advance(1)
        with service.database.write() as tx:
            where = Provenance(clock(), "test")
            row_id = users.lock(tx, "ada", clock())
            context.put(tx, "ada", row_id, "What do you play?", "The drums at home", where, clock(), pair.id)
        assert embedder.gate is not None
        embedder.gate.set()
        thread.join()
        assert service.row_counts("ada")["vectors"] == 0
        assert service.unembedded("ada") == 1
        embed_all(service, embedder)
        check_indexes(service.database)


@pytest.mark.every_scheme
def test_two_embedders_of_the_same_backlog_store_each_vector_once(url: str, clock: ManualClock) -> None:
    with recalling(url, clock) as one, recalling(url, clock) as two:
        one.remember("ada", [user_says(f"violin {number}") for number in range(150)], "chat")
        threads = [threading.Thread(target=embed_all, args=(s, TinyEmbedder())) for s in (one, two, one)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert one.row_counts("ada")["vectors"] == 150
        check_indexes(one.database)


KILLED = """
import os, signal, sys
from shepherd_memory.config import Config
from shepherd_memory.embedding import backlog
from shepherd_memory.service import open_service
from tests.contract.recalling import TinyEmbedder

class Deadly(TinyEmbedder):
    def embed(self, texts):
        vectors = super().embed(texts)
        if self.calls == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return vectors

with open_service(Config(memory_database=sys.argv[1], embedding_engine="none"), worker=False) as service:
    while backlog.embed_batch(service.database, Deadly(), 0):
        pass
"""


@pytest.mark.parametrize("call", ["1", "3"])
def test_a_kill_between_embedding_and_storing_loses_nothing(url: str, clock: ManualClock, call: str) -> None:
    with recalling(url, clock) as service:
        service.remember("ada", [user_says(f"violin {number}") for number in range(100)], "chat")
        ran = subprocess.run(
            [sys.executable, "-c", KILLED, url, call], cwd=Path(__file__).parents[2], timeout=60
        )
        assert ran.returncode == -signal.SIGKILL
        assert service.unembedded("ada") == 100
        check_indexes(service.database)
        embed_all(service, TinyEmbedder())
        assert service.row_counts("ada")["vectors"] == 100


def vectors_for(body: Body) -> Step:
    texts = body["input"]
    tiny = TinyEmbedder(body["model"], 16)
    rows = [{"index": at, "embedding": [float(x) for x in v]} for at, v in enumerate(tiny.embed(texts))]
    return json_reply({"data": rows})


@pytest.fixture
def server() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as endpoint:
        endpoint.default = by_content(vectors_for)
        yield endpoint


def remote(url: str, server: ScriptedEndpoint, **more: Any) -> Config:
    settings = {"embedding_model": "m1", "embedding_api_key": KEY, "embedding_timeout": 30.0, **more}
    return config_for(url, embedding_engine="openai", embedding_endpoint=server.url, **settings)


def test_a_server_gets_nothing_that_is_secret(url: str, server: ScriptedEndpoint) -> None:
    secret = "ghp_" + "aB3dE5fG7hI9" * 3
    with open_service(remote(url, server)) as service:
        service.remember("ada", [user_says(f"my token is {secret} and I play the violin")], "chat")
        service.set_fact("ada", "token", secret)
        assert service.flush(60)
        assert service.recall("ada", f"what is {secret}? violin", threshold=0).hits
        assert service.inject("ada", [user_says(f"violin {secret}")]).block is not None
        assert [injection.query for injection in service.why("ada")]
        assert all(secret not in injection.query for injection in service.why("ada"))
    assert len(server.requests) >= 3
    assert all(secret.encode() not in request.body for request in server.requests)


def test_a_server_that_fails_leaves_keywords_and_is_used_again_once_it_works(
    url: str, server: ScriptedEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    server.default = status(401, body={"error": {"message": f"bad key {KEY}"}})
    with open_service(remote(url, server)) as service:
        service.remember("ada", [user_says("the violin")], "chat")
        wait_for(lambda: service.status().embedding.problem != "")
        assert service.recall("ada", "violin", threshold=0).hits
        problem = service.status().embedding.problem
        assert "embedding_api_key" in problem
        assert service.status().healthy
        assert KEY not in problem + caplog.text
        server.default = by_content(vectors_for)
        wait_for(lambda: waiting(service) == 0)
        wait_for(lambda: service.status().embedding.problem == "")


def test_a_server_that_hangs_slows_one_recall_and_not_the_next(url: str, server: ScriptedEndpoint) -> None:
    server.default = hang()
    with open_service(remote(url, server, embedding_timeout=0.5), worker=False) as service:
        service.remember("ada", [user_says("the violin")], "chat")
        for _ in range(5):
            assert service.recall("ada", "violin", threshold=0).hits
        assert len(server.requests) == 1, "the next ones do not ask it"


def test_one_text_that_a_server_refuses_does_not_hold_up_the_others(
    url: str, server: ScriptedEndpoint
) -> None:
    def choose(body: Body) -> Step:
        return status(400) if any("poison" in text for text in body["input"]) else vectors_for(body)

    server.default = by_content(choose)
    with open_service(remote(url, server)) as service:
        said = [user_says(text) for text in ("the violin", "poison here", "the drums")]
        service.remember("ada", said, "chat")
        assert service.flush(60)
        assert service.row_counts("ada")["vectors"] == 2
        assert service.recall("ada", "poison", threshold=0).hits[0].text == "poison here"


def test_another_model_takes_over_while_the_service_runs(
    url: str, server: ScriptedEndpoint, tmp_path: Path
) -> None:
    path = tmp_path / "config.toml"

    def configure(model: str) -> None:
        path.write_text(
            f'memory_database = "{url}"\nembedding_engine = "openai"\nembedding_endpoint = "{server.url}"\n'
            f'embedding_model = "{model}"\n'
        )
        os.utime(path, (time.time() + 5, time.time() + 5))

    gate = threading.Event()

    def choose(body: Body) -> Step:
        if body["model"] == "m2" and len(body["input"]) > 1:
            gate.wait(60)
        return vectors_for(body)

    server.default = by_content(choose)
    with open_service(remote(url, server), config_path=path) as service:
        service.remember("ada", [user_says(f"violin {number}") for number in range(100)], "chat")
        assert service.flush(60)
        assert stored_models(service) == {"m1"}
        configure("m2")
        found = service.recall("ada", "violin", threshold=0, explain=True)
        assert len(found.hits) == 10, "by keyword at once"
        assert all(hit.parts and hit.parts["vector"] == 0 for hit in found.hits), "nothing of m1 is mixed in"
        gate.set()
        wait_for(lambda: stored_models(service) == {"m2"} and waiting(service) == 0)
        check_indexes(service.database)
        found = service.recall("ada", "violin 7", threshold=0, explain=True)
        assert found.hits[0].text == "violin 7"
        assert any(hit.parts and hit.parts["vector"] > 0 for hit in found.hits)


def test_a_change_of_model_before_the_start_is_noticed_with_nothing_waiting(
    url: str, clock: ManualClock
) -> None:
    with recalling(url, clock) as service:
        service.remember("ada", [user_says("the violin")], "chat")
        service.set_fact("bob", "city", "Oslo")
        embed_all(service, TinyEmbedder("an older model"))
    with open_service(config_for(url, embedding_engine="onnx")) as service:
        wait_for(lambda: stored_models(service) == {"all-MiniLM-L6-v2"} and waiting(service) == 0)
        assert service.reembed() == 0
        check_indexes(service.database)


@contextmanager
def embedding_thread(service: Service, config: Config) -> Iterator[EmbeddingThread]:
    thread = EmbeddingThread(service.database, lambda: config, service._clock)
    try:
        yield thread
    finally:
        assert seconds_of(thread.stop) < 2


def test_a_thread_that_never_started_stops(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        with embedding_thread(service, config_for(url)):
            pass
        with embedding_thread(service, config_for(url, embedding_engine="onnx")) as thread:
            assert thread.embedder() is not None


class OneBatchAtATime(OnnxEmbedder):
    """The real model, whose first batch is done when the model has been closed meanwhile."""

    def __init__(self) -> None:
        self.begun: threading.Event | None = None
        super().__init__()  # which tries the model
        self.begun, self.closed = threading.Event(), threading.Event()
        self.batches = 0

    def _embed_batch(self, texts: Sequence[str]) -> Any:
        if self.begun is None:
            return super()._embed_batch(texts)
        self.batches += 1
        vectors = super()._embed_batch(texts)
        self.begun.set()
        assert self.closed.wait(60)
        return vectors

    def close(self) -> None:
        super().close()
        self.closed.set()


def test_it_stops_after_one_batch_in_the_middle_of_long_texts(url: str, clock: ManualClock) -> None:
    long = " ".join(f"Sentence number {number} says something or other." for number in range(400))
    embedder = OneBatchAtATime()
    with memory(url, clock) as service:
        service.remember("ada", [user_says(f"{number} {long}") for number in range(16)], "chat")
        config = config_for(url, embedding_engine="onnx")
        thread = EmbeddingThread(service.database, lambda: config, service._clock)
        thread._loaded, thread._loaded_for = embedder, choice_of(config)
        thread.start()
        try:
            assert embedder.begun is not None
            assert embedder.begun.wait(60)
        finally:
            thread.stop()
        assert embedder.batches <= 2, "the one that was under way, and one that was refused"
        check_indexes(service.database)
        assert service.unembedded("ada") > 0


def test_it_stops_in_time_while_a_server_hangs(
    url: str, clock: ManualClock, server: ScriptedEndpoint
) -> None:
    server.default = hang()
    with memory(url, clock) as service:
        service.remember("ada", [user_says("the violin")], "chat")
        with embedding_thread(service, remote(url, server, embedding_timeout=60.0)) as thread:
            thread.start()
            server.wait_for(1)


def test_it_stops_in_time_while_it_waits_to_try_again(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        service.remember("ada", [user_says("the violin")], "chat")
        for _ in range(10):
            with embedding_thread(service, config_for(url, embedding_engine="none")) as thread:
                thread.start()


def test_a_follow_up_is_told_what_it_asks_for_and_small_talk_nothing(url: str) -> None:
    with open_service(config_for(url, embedding_engine="onnx"), worker=False) as service:
        for number, text in enumerate(
            ["I bought a Brompton folding bike", "My bike is racing green", "Our dog is afraid of thunder"]
        ):
            service.remember("ada", [user_says(text)], f"session {number}")
        while service.embed():
            pass
        asked = [user_says("Which folding bike did I buy?")]
        first = service.inject("ada", asked)
        assert "Brompton" in repr(first.messages)
        follow_up = [*asked, {"role": "assistant", "content": "A Brompton."}, user_says("and the colour?")]
        told = service.inject("ada", follow_up)
        assert "racing green" in repr(told.messages)
        assert "thunder" not in repr(told.messages)
        elsewhere = [user_says("How do I reverse a list in Python?")]
        small_talk = [
            *elsewhere,
            {"role": "assistant", "content": "Use reversed."},
            user_says("and in place?"),
        ]
        assert service.inject("ada", small_talk).blocks == {}
