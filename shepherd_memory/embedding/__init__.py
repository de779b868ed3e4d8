"""Embedding: text into vectors, by one of several engines behind one small protocol."""

from shepherd_memory.embedding.engine import Embedder, Unavailable, download_model, model_name, open_embedder

__all__ = ["Embedder", "Unavailable", "download_model", "model_name", "open_embedder"]
