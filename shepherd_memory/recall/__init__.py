"""Recall: finding what a user's query is about among that user's facts, context and documents."""

from shepherd_memory.recall.hits import Hit, Recalled

__all__ = ["Hit", "Recalled"]
