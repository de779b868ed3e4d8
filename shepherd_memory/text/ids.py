"""Ids that callers choose, made storable: canonical, free of secrets, short enough for an index."""

import hashlib
from functools import lru_cache

from shepherd_memory.errors import InvalidInput
from shepherd_memory.text.canonical import as_text, canonical_text

MAX_ID_LENGTH = 256
"""Ids are parts of index entries, which Postgres limits to 2,700 bytes."""


DIGEST_CHARS = 32


def storable_id(raw: object) -> str:
    """`raw` as a session's or message's id; one that is too long or holds a secret becomes its digest."""
    text = as_text(raw)
    return text if len(text) <= MAX_ID_LENGTH and _is_free_of_secrets(text) else digest_of(text)


@lru_cache(maxsize=256)
def _is_free_of_secrets(text: str) -> bool:
    """A session's id comes with each of its messages."""
    from shepherd_memory.text.redaction import redact  # 25 ms that a program which only checks a user saves

    return redact(text) == text


def checked_user_id(raw: object) -> str:
    """`raw` as a user's id, or InvalidInput: a user's id is never changed into another."""
    if not isinstance(raw, str):
        raise InvalidInput(f"user_id takes text, not {type(raw).__name__}")
    if canonical_text(raw) != raw:
        raise InvalidInput("user_id has a NUL or half of a surrogate pair in it")
    if len(raw) > MAX_ID_LENGTH:
        raise InvalidInput(f"user_id is longer than {MAX_ID_LENGTH} characters")
    return raw


def fits_header(user_id: str) -> bool:
    """Whether an HTTP header carries this id as it is: no control characters, no spaces around it."""
    return user_id == user_id.strip() and not any(ord(c) < 32 or ord(c) == 127 for c in user_id)


def digest_of(text: str) -> str:
    """A short name for `text` that tells nothing about it."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]
