"""The engine for any other model, or a GPU: sentence-transformers."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shepherd_memory.embedding.engine import DEFAULT_MODEL, Unavailable, bare_name

if TYPE_CHECKING:
    from shepherd_memory.embedding.engine import Vectors


class SentenceTransformersEmbedder:
    """A model of sentence-transformers, by name or path, from this machine's disk."""

    def __init__(self, model: str = "", device: str = "") -> None:
        name = model or DEFAULT_MODEL
        try:
            self._model: Any = _load(name, device)
        except (OSError, ValueError, RuntimeError) as error:
            raise Unavailable(
                f"the embedding model {name!r} cannot be loaded from this machine's disk;"
                f" `shepherd memory reembed --download` fetches it: {error}"
            ) from error
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


def download(model: str = "") -> None:
    """Fetch a model from its hub to this machine's disk, or see that it is there."""
    name = model or DEFAULT_MODEL
    try:
        _load(name, "cpu", local_files_only=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise Unavailable(f"the embedding model {name!r} cannot be downloaded: {error}") from error


def _load(name: str, device: str, local_files_only: bool = True) -> Any:
    # What is fetched from a hub does not say more than it must.
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    try:
        from huggingface_hub.utils import disable_progress_bars
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar
    except ImportError as error:
        raise Unavailable(
            f"sentence-transformers cannot be loaded ({error}): pip install"
            " 'shepherd-memory[sentence-transformers]'"
        ) from error
    # Bars of theirs would go to the standard error of a server, and into a terminal that we draw on.
    disable_progress_bars()
    disable_progress_bar()
    return SentenceTransformer(name, device=device or None, local_files_only=local_files_only)
