"""The kinds of line that an export has: which table each is a row of, and which rows an import takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shepherd_memory.maintenance.line_columns import JSON, MOMENT, MOMENT_OR_NONE, NUMBER, TEXT
from shepherd_memory.memory.documents import PHASE2
from shepherd_memory.storage import tombstones
from shepherd_memory.text.groups import GLOBAL_GROUP

FORMAT = "shepherd-memory"
VERSION = 4
WITHOUT_GROUPS = 1
"""The version before rows had a group: all of them are of `main`."""

WITHOUT_CONVERSATIONS = 2
"""The version before conversations, and what a session says about them."""

WITHOUT_SECTIONS = 3
"""The version before conversations were consolidated."""

READABLE = (WITHOUT_GROUPS, WITHOUT_CONVERSATIONS, WITHOUT_SECTIONS, VERSION)

Line = dict[str, Any]

_WHERE = {"source": TEXT, "session_id": TEXT, "message_id": TEXT, "group_name": TEXT}
_USE = {"use_count": NUMBER, "last_used_at": MOMENT_OR_NONE}


@dataclass(frozen=True)
class Kind:
    """One kind of line: the table it is a row of, its columns, and the order in which they are written."""

    table: str
    columns: Mapping[str, str]
    order: str
    insert: str
    """A `where` and perhaps an `on conflict`: what keeps out a row that is there, or was deleted."""

    has_id: bool = False
    written: str = ""
    """Which rows are lines, as the end of a condition; empty: all."""


def _not_buried(kind: str, key: str, session: str = "''") -> str:
    return (
        f"where not exists (select 1 from tombstones where user_id = :user_id and group_name = :group_name"
        f" and kind = '{kind}'"
        f" and session_id = {session} and key = :{key}"
        f"{'' if kind == 'document' else ' and deleted_at >= :stated_at'})"
    )


def _statement_not_buried(message: str = "message_id", said_at: str = "stated_at") -> str:
    """That the statement of a row is not deleted, or was when the row was exported: then it was kept."""
    return (
        " and not exists (select 1 from tombstones where user_id = :user_id and group_name = :group_name"
        f" and (kind in ('document', 'statement') and session_id = :session_id and key = :{message}"
        " and deleted_at > :buried_at"
        f" or kind = 'session' and session_id = '' and key = :session_id and deleted_at >= :{said_at}))"
    )


KINDS: dict[str, Kind] = {
    "tombstone": Kind(
        "tombstones",
        {"group_name": TEXT, "kind": TEXT, "session_id": TEXT, "key": TEXT, "deleted_at": MOMENT},
        "group_name, kind, session_id, key",
        "where true on conflict (user_id, group_name, kind, session_id, key) do update"
        " set deleted_at = excluded.deleted_at where excluded.deleted_at > tombstones.deleted_at",
    ),
    "file": Kind(
        "transcript_files",
        {
            "group_name": TEXT,
            "file_key": TEXT,
            "session_id": TEXT,
            "thread": TEXT,
            "source": TEXT,
            "originator": TEXT,
            "cwd": TEXT,
            "status": TEXT,
            "created_at": MOMENT,
            "updated_at": MOMENT,
        },
        "file_key",
        "where not exists (select 1 from transcript_files where user_id = :user_id"
        " and group_name = :group_name and session_id = :session_id)"
        " on conflict (user_id, file_key) do nothing",
    ),
    "past_fact": Kind(
        "fact_history",
        {"key": TEXT, "value": TEXT, "stated_at": MOMENT, **_WHERE},
        "id",
        _not_buried("fact", "key")
        + _statement_not_buried()
        + " and not exists (select 1 from fact_history where user_id = :user_id"
        " and group_name = :group_name and key = :key and value = :value and stated_at = :stated_at)",
        has_id=True,
    ),
    "fact": Kind(
        "facts",
        {
            "key": TEXT,
            "value": TEXT,
            "stated_at": MOMENT,
            **_WHERE,
            "created_at": MOMENT,
            "updated_at": MOMENT,
            **_USE,
        },
        "group_name, key",
        _not_buried("fact", "key") + _statement_not_buried(),
    ),
    "restatement": Kind(
        "restatements",
        {"kind": TEXT, "key": TEXT, "value": TEXT, "stated_at": MOMENT, **_WHERE},
        "id",
        "where true"
        + _statement_not_buried()
        + " and not exists (select 1 from restatements where user_id = :user_id"
        " and group_name = :group_name and kind = :kind and key = :key and value = :value"
        " and session_id = :session_id and message_id = :message_id)",
        has_id=True,
    ),
    "context": Kind(
        "context",
        {
            "question": TEXT,
            "answer": TEXT,
            "digest": TEXT,
            "stated_at": MOMENT,
            **_WHERE,
            "created_at": MOMENT,
            "updated_at": MOMENT,
            **_USE,
        },
        "id",
        _not_buried("context", "digest")
        + _statement_not_buried()
        + " on conflict (user_id, group_name, digest) do nothing",
        has_id=True,
    ),
    "document": Kind(
        "documents",
        {
            "group_name": TEXT,
            "session_id": TEXT,
            "message_id": TEXT,
            "type": TEXT,
            "category": TEXT,
            "role": TEXT,
            "speaker_type": TEXT,
            "speaker_name": TEXT,
            "text": TEXT,
            "extra": JSON,
            "source": TEXT,
            "source_file": TEXT,
            "tool_names": TEXT,
            "cwd": TEXT,
            "created_at": MOMENT,
            "stored_at": MOMENT,
            **_USE,
            "made_of": TEXT,
        },
        "id",
        _not_buried("document", "message_id", ":session_id")
        + _statement_not_buried("made_of", "created_at")
        + " and (exists (select 1 from tombstones where user_id = :user_id and group_name = :group_name"
        " and kind = 'spared' and session_id = :session_id and key = :message_id)"
        " or not exists (select 1 from tombstones where user_id = :user_id and group_name = :group_name"
        " and kind = 'words' and session_id = '' and key = :words and deleted_at >= :created_at))"
        " on conflict (user_id, group_name, session_id, message_id) do nothing",
        has_id=True,
        # Those of sections are made of their lines.
        written=f" and source <> '{PHASE2}'",
    ),
    "rejection": Kind(
        "rejections",
        {
            "kind": TEXT,
            "name": TEXT,
            "content": TEXT,
            "reason": TEXT,
            "detail": TEXT,
            "stated_at": MOMENT,
            **_WHERE,
            "created_at": MOMENT,
        },
        "id",
        "where true"
        + _statement_not_buried()
        + " and not exists (select 1 from rejections where user_id = :user_id and group_name = :group_name"
        " and kind = :kind"
        " and name = :name and content = :content and stated_at = :stated_at)",
        has_id=True,
    ),
    "stop": Kind(
        "forgotten_transcripts",
        {"file_key": TEXT, "group_name": TEXT, "read_through": NUMBER},
        "file_key",
        "where true on conflict (user_id, file_key) do update set read_through = excluded.read_through"
        " where excluded.read_through > forgotten_transcripts.read_through",
    ),
    "unconfirmed": Kind(
        "unconfirmed",
        {
            "kind": TEXT,
            "name": TEXT,
            "content": TEXT,
            "reason": TEXT,
            "detail": TEXT,
            "quote": TEXT,
            "subject": TEXT,
            "stated_at": MOMENT,
            **_WHERE,
            "created_at": MOMENT,
        },
        "id",
        "where not exists (select 1 from tombstones where user_id = :user_id and group_name = :group_name"
        " and kind = 'fact' and :kind = 'fact' and session_id = '' and key = :name"
        " and deleted_at >= :stated_at)"
        + _statement_not_buried()
        + " and not exists (select 1 from unconfirmed where user_id = :user_id and group_name = :group_name"
        " and kind = :kind"
        " and name = :name and content = :content and stated_at = :stated_at)",
        has_id=True,
    ),
    "twin": Kind(
        "twins",
        {
            "group_name": TEXT,
            "session_id": TEXT,
            "message_id": TEXT,
            "stored_session": TEXT,
            "stored_message": TEXT,
            "is_part": NUMBER,
            "said_at": MOMENT,
        },
        "group_name, session_id, message_id, stored_session, stored_message",
        "where true on conflict (user_id, group_name, session_id, message_id, stored_session, stored_message)"
        " do nothing",
    ),
    "saved_session": Kind(
        "session_history",
        {
            "group_name": TEXT,
            "session_id": TEXT,
            "name": TEXT,
            "created_at": MOMENT,
            "archived_at": MOMENT,
        },
        "id",
        "where not exists (select 1 from session_history where user_id = :user_id"
        " and group_name = :group_name and session_id = :session_id and name = :name"
        " and archived_at = :archived_at)",
        has_id=True,
    ),
    "global_memory": Kind(
        "global_memory",
        {"group_name": TEXT, "text": TEXT, "updated_at": MOMENT},
        "id",
        # From a group that only reads it, it stays out.
        f"where :group_name = '{GLOBAL_GROUP}' and not exists (select 1 from tombstones"
        f" where user_id = :user_id and group_name = :group_name and kind = '{tombstones.GLOBAL_MEMORY}'"
        " and deleted_at >= :updated_at) on conflict (user_id, group_name) do nothing",
        has_id=True,
    ),
    "usage": Kind(
        "token_usage",
        {
            "day": TEXT,
            "purpose": TEXT,
            "calls": NUMBER,
            "estimated_calls": NUMBER,
            "prompt_tokens": NUMBER,
            "completion_tokens": NUMBER,
        },
        "day, purpose",
        "where true on conflict (user_id, day, purpose) do nothing",
    ),
}
"""Tombstones come first, and a fact's past before its present.

Of a file there is its name: whoever takes it in elsewhere reads it from its beginning, and knows its entries.
"""

ERASED_FILE = "erased_file"
ERASED_FILE_COLUMNS = {"file_key": TEXT, "group_name": TEXT, "read_through": NUMBER}
"""How far a file had been read when its user was erased; here there is only a digest of that."""
