"""The engine behind a URL: an OpenAI-compatible `/v1/embeddings` endpoint."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shepherd_memory.embedding.engine import Unavailable, UnembeddableText
from shepherd_memory.errors import EndpointError, ItemRejected
from shepherd_memory.llm.client import Client
from shepherd_memory.llm.target import EMBEDDING, Target

if TYPE_CHECKING:
    from shepherd_memory.embedding.engine import Vectors

PATH = "/embeddings"
BATCH = 64


class OpenAIEmbedder:
    """A model on a server. Nothing is sent before there is something to embed."""

    def __init__(self, base_url: str, model: str, api_key: str, timeout_seconds: float) -> None:
        if not base_url or not model:
            raise Unavailable("the openai engine needs embedding_endpoint and embedding_model")
        self.model = model
        self.dimensions = 0
        self._target = Target(EMBEDDING, base_url, model, api_key)
        self._timeout_seconds = timeout_seconds
        self._client = Client("the embedding engine")

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
            answer = self._client.post_json(self._target, PATH, body, self._timeout_seconds, quoted=texts)
        except ItemRejected as error:
            raise UnembeddableText(str(error)) from error
        except EndpointError as error:
            raise Unavailable(str(error)) from error
        vectors = _read(answer, len(texts))
        self._check_dimensions(len(vectors[0]))
        return vectors

    def _check_dimensions(self, found: int) -> None:
        if self.dimensions not in (0, found):
            raise Unavailable(
                f"the embedding endpoint gave {found} dimensions after {self.dimensions}: is it one model?"
            )
        self.dimensions = found

    def close(self) -> None:
        self._client.close("the embedding engine was closed")


def _read(answer: Any, expected: int) -> list[list[float]]:
    try:
        entries = {int(entry["index"]): entry["embedding"] for entry in answer["data"]}
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
