"""The engine behind a URL: an OpenAI-compatible `/v1/embeddings` endpoint."""

import math
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shepherd_memory.embedding.engine import Refused, Unavailable
from shepherd_memory.errors import EndpointError, ItemRejected
from shepherd_memory.llm.cancellation import Call
from shepherd_memory.llm.completion import Reply, failure_of
from shepherd_memory.llm.completion_client import endpoint_url, place_of, timed_call

if TYPE_CHECKING:
    from shepherd_memory.embedding.engine import Vectors
    from shepherd_memory.llm.transport import Transport

BATCH = 64


class OpenAIEmbedder:
    """A model on a server. Nothing is sent before there is something to embed."""

    def __init__(self, base_url: str, model: str, api_key: str, timeout_seconds: float) -> None:
        if not base_url or not model:
            raise Unavailable("the openai engine needs embedding_endpoint and embedding_model")
        self.model = model
        self.dimensions = 0
        self._url = embeddings_url(base_url)
        self._key = api_key
        self._timeout_seconds = timeout_seconds
        self._idle: deque[Transport] = deque()
        self._running: set[Call] = set()
        self._closed = False
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> "Vectors":
        import numpy as np

        rows: list[list[float]] = []
        for at in range(0, len(texts), BATCH):
            rows.extend(self._ask(list(texts[at : at + BATCH])))
        vectors = np.asarray(rows, dtype=np.float32).reshape(len(rows), -1 if rows else self.dimensions)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        normalised: Vectors = vectors / np.maximum(lengths, 1e-12)
        return normalised

    def _ask(self, texts: list[str]) -> list[list[float]]:
        body = {"model": self.model, "input": texts, "encoding_format": "float"}
        try:
            with self._call() as (call, transport):
                reply = transport.post(call, self._url, place_of(self._url), self._key, body)
            failure = failure_of(reply)
            if failure is not None:
                raise failure.error(self._key.strip(), texts)
        except EndpointError as error:
            raise _as_ours(error) from error
        vectors = _read(reply, len(texts))
        self._check_dimensions(len(vectors[0]))
        return vectors

    def _check_dimensions(self, found: int) -> None:
        if self.dimensions not in (0, found):
            raise Unavailable(
                f"the embedding endpoint gave {found} dimensions after {self.dimensions}: is it one model?"
            )
        self.dimensions = found

    @contextmanager
    def _call(self) -> "Iterator[tuple[Call, Transport]]":
        """A call that `close` can cut, on connections that no other call uses meanwhile."""
        call = timed_call(self._timeout_seconds)
        with self._lock:
            if self._closed:
                raise Unavailable("the embedding engine is closed")
            self._running.add(call)
            transport = self._idle.pop() if self._idle else _transport()
        try:
            with call.limited():
                yield call, transport
        finally:
            self._end(call, transport)

    def _end(self, call: Call, transport: "Transport") -> None:
        with self._lock:
            self._running.discard(call)
            if not self._closed:
                self._idle.append(transport)
                return
        transport.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle = list(self._idle)
            self._idle.clear()
            for call in self._running:
                call.cut("the embedding engine was closed")
        for transport in idle:
            transport.close()


def _transport() -> "Transport":
    # Late: requests takes a fifth of a second to import.
    from shepherd_memory.llm.transport import Transport

    return Transport()


def embeddings_url(base: str) -> str:
    """The URL to post to, by the same rules as for chat completions."""
    return endpoint_url(base, "/embeddings")


def _as_ours(error: EndpointError) -> Unavailable:
    if isinstance(error, Unavailable):
        return error
    # The transport is that of extraction, whose settings have the same names behind another prefix.
    message = str(error).replace("memory_extraction_", "embedding_")
    return Refused(message) if isinstance(error, ItemRejected) else Unavailable(message)


def _read(reply: Reply, expected: int) -> list[list[float]]:
    try:
        entries = {int(entry["index"]): entry["embedding"] for entry in reply.payload()["data"]}
        vectors = [[float(number) for number in entries[place]] for place in range(expected)]
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise Unavailable(
            f"the embedding endpoint gave an answer that is no list of {expected} vectors"
        ) from error
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise Unavailable("the embedding endpoint gave vectors with numbers that are none")
    if len(entries) != expected or len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise Unavailable(
            f"the embedding endpoint gave {len(entries)} vectors for {expected} texts, or uneven ones"
        )
    return vectors
