"""The embedder's thread when its model is away, and when it comes back."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from shepherd_memory import Config, open_service
from shepherd_memory.embedding.engine import model_name, what_is_missing

SAID = [{"role": "user", "content": "The vet wants Rex on a diet."}]


class Embeddings(BaseHTTPRequestHandler):
    """An `/v1/embeddings` endpoint with a model of two dimensions."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        vectors = [{"index": at, "embedding": [len(text), 1.0]} for at, text in enumerate(body["input"])]
        answer = json.dumps({"data": vectors}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def serving(port: int) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", port), Embeddings) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def test_an_endpoint_that_comes_back_is_used_without_a_restart(tmp_path: Path) -> None:
    port = free_port()
    config = Config(
        memory_database=str(tmp_path / "memory.db"),
        embedding_engine="openai",
        embedding_endpoint=f"http://127.0.0.1:{port}",
        embedding_model="m",
    )
    with open_service(config) as service:
        service.remember("ann", SAID)
        wait_for(lambda: service.status().embedding.problem != "")
        state = service.status().embedding
        assert state.problem.startswith("recall works by keyword only: ")
        assert (state.model, state.waiting, service.status().healthy) == ("m", 1, True)
        assert service.recall("ann", "the vet").hits, "by keyword"
        with serving(port):
            service.embedding.wake()
            wait_for(lambda: service.status().embedding.waiting == 0)
            wait_for(lambda: service.status().embedding.problem == "")
            assert service.row_counts("ann")["vectors"] == 1


def test_a_recall_in_a_process_without_a_worker_writes_nothing(tmp_path: Path) -> None:
    config = Config(memory_database=str(tmp_path / "memory.db"))
    with open_service(config, worker=False) as service:
        service.remember("ann", SAID)
        with service.database.write() as tx:
            tx.execute("delete from unembedded")
        assert service.recall("ann", "the vet").hits
        assert service.unembedded("ann") == 0


def test_what_is_missing_is_known_without_loading_anything() -> None:
    assert what_is_missing(Config()) == ""
    assert what_is_missing(Config(embedding_engine="none")) == ""
    assert "embedding_endpoint" in what_is_missing(Config(embedding_engine="openai", embedding_model="m"))


def test_the_name_of_a_model_is_known_without_loading_it() -> None:
    assert model_name(Config()) == "all-MiniLM-L6-v2"
    assert model_name(Config(embedding_engine="none")) == ""
    assert model_name(Config(embedding_engine="openai", embedding_model="org/m")) == "org/m"
