"""Secrets found in text and replaced by a marker that names their kind."""

from shepherd_memory.text.redaction.search import Finding, find_secrets, redact, redact_each, redact_json

__all__ = ["Finding", "find_secrets", "redact", "redact_each", "redact_json"]
