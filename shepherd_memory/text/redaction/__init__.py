"""Secrets found in text and replaced by a marker that names their kind."""

from shepherd_memory.text.redaction.findings import Finding
from shepherd_memory.text.redaction.json_walk import redact_json
from shepherd_memory.text.redaction.search import find_secrets, redact, redact_each

__all__ = ["Finding", "find_secrets", "redact", "redact_each", "redact_json"]
