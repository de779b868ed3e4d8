"""What was read from a file as it is stored: free of secrets, and with the facets of a document."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from shepherd_memory.memory.documents import NewDocument
from shepherd_memory.storage.clock import to_us
from shepherd_memory.text.citations import without_citation
from shepherd_memory.text.ids import storable_id
from shepherd_memory.text.redaction import redact, redact_each
from shepherd_memory.transcripts.files import File
from shepherd_memory.transcripts.sources import TranscriptEntry

_PLAIN_ID = re.compile(
    r"(?:(?:msg|toolu)_[0-9A-Za-z]{1,40}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})"
    r"(?::(?:toolu_[0-9A-Za-z]{1,40}|[0-9a-f]{32}))?"
)
"""Ids as agents make them, in which no secret is looked for: that would be a quarter of all the work."""


def clean(read: Sequence[TranscriptEntry]) -> list[TranscriptEntry]:
    """As they are stored: redacted, before anything is written, and answers without their citations."""
    texts = redact_each([_said(entry) for entry in read])
    return [_with_text(entry, text) for entry, text in zip(read, texts, strict=True)]


def _said(entry: TranscriptEntry) -> str:
    return (without_citation(entry.text) or entry.text) if entry.role == "assistant" else entry.text


def _with_text(entry: TranscriptEntry, text: str) -> TranscriptEntry:
    return TranscriptEntry(
        entry.entry_id if _PLAIN_ID.fullmatch(entry.entry_id) else storable_id(entry.entry_id),
        entry.role,
        text,
        entry.said_at,
        _redacted_name(entry.cwd),
        tuple(map(_redacted_name, entry.tool_names)),
    )


def clean_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """A reader's state as it is stored: what a file says about itself may hold secrets."""
    return {name: _redacted_within(value) for name, value in state.items()}


def _redacted_within(value: Any) -> Any:
    if isinstance(value, str):
        return value if _PLAIN_ID.fullmatch(value) else _redacted_name(value)
    if isinstance(value, list):
        return [_redacted_within(one) for one in value]
    if isinstance(value, dict):
        return {_redacted_within(name): _redacted_within(one) for name, one in value.items()}
    return value


@lru_cache(maxsize=1024)
def _redacted_name(name: str) -> str:
    """Kept, because the same few folders and tools stand in every line."""
    return redact(name)


def documents_of(read: Sequence[TranscriptEntry], state: File, now: int) -> list[NewDocument]:
    """Entries of a file, clean already, as the documents that they become."""
    times = (entry.said_at for entry in read if entry.said_at is not None)
    said_at = to_us(state.last_entry_at) or min(next(times, to_us(state.modified_at)), now)
    found = []
    for entry in read:
        # Nothing was said in the future; a line without a time was written right after the one before it.
        said_at = said_at if entry.said_at is None else min(entry.said_at, now)
        found.append(
            NewDocument(
                session_id=state.session_id,
                group_name=state.group_name,
                message_id=entry.entry_id,
                text=entry.text,
                created_at=said_at,
                role=entry.role,
                speaker_type="human" if entry.role == "user" else "agent",
                source=state.source,
                source_file=state.file_key,
                tool_names=",".join(entry.tool_names),
                cwd=entry.cwd,
            )
        )
    return found
