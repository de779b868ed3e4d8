"""The engine for any other model, or a GPU: sentence-transformers."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shepherd_memory.embedding.engine import DEFAULT_MODEL, Unavailable, bare_name

if TYPE_CHECKING:
    from shepherd_memory.embedding.engine import Vectors


class SentenceTransformersEmbedder:
    """A model of sentence-transformers, by name or path."""

    def __init__(self, model: str = "", device: str = "") -> None:
        # What is fetched from a hub, where a model is named, does not say more than it must.
        os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise Unavailable(
                f"sentence-transformers cannot be loaded ({error}): pip install"
                " 'shepherd-memory[sentence-transformers]'"
            ) from error
        name = model or DEFAULT_MODEL
        try:
            self._model: Any = SentenceTransformer(name, device=device or None)
        except (OSError, ValueError, RuntimeError) as error:
            raise Unavailable(f"the embedding model {name!r} cannot be loaded: {error}") from error
        self.model = bare_name(name)
        self.dimensions = int(self.embed(["probe"]).shape[1])

    def embed(self, texts: Sequence[str]) -> "Vectors":
        model = self._model
        if model is None:
            raise Unavailable("the embedding model is closed")
        vectors: Vectors = model.encode(
            list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )
        return vectors.astype("float32")

    def close(self) -> None:
        self._model = None
