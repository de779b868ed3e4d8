"""Keys: what a transcript file is known by, wherever it is found."""

import os
import re
from pathlib import Path

from shepherd_memory.errors import InvalidInput
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.ids import digest_of
from shepherd_memory.text.redaction import redact

SESSIONS, ARCHIVE = "sessions", "archived_sessions"
"""Where Codex writes sessions, in folders for each day, and where it moves them."""

MAX_KEY_CHARS = 400
"""Characters: keys are in indexes, and Postgres takes no more than 2,700 bytes there."""

_ROLLOUT = re.compile(r"rollout-(\d{4})-(\d\d)-(\d\d)T")


def file_key_of(path: Path, base: Path) -> str:
    """A file's key: its path from the folder that it was found under, the same on every system.

    One that is too long or holds a secret is cut or redacted, and told from others by a digest. A link that
    leads out of the folder counts by its own name; a file outside of it has no key there: InvalidInput.
    """
    key = canonical_text(_before_archiving(_relative(path, base), base).as_posix())
    clean = redact(key)
    if clean == key and len(key) <= MAX_KEY_CHARS:
        return key
    return f"{clean[:MAX_KEY_CHARS]}#{digest_of(key)[:16]}"


def _before_archiving(place: Path, base: Path) -> Path:
    """Where a session of Codex was before it was archived: it is the same file."""
    folder = Path(base.name, place).parent.name
    dated = _ROLLOUT.match(place.name) if folder == ARCHIVE else None
    if dated is None:
        return place
    by_day = Path(*dated.groups(), place.name)
    # Under a folder that has both, sessions of each day are beside the archive.
    return by_day if len(place.parts) == 1 else place.parents[1] / SESSIONS / by_day


def _relative(path: Path, base: Path) -> Path:
    for place in (os.path.realpath, os.path.abspath):
        found, folder = Path(place(path)), Path(place(base))
        if found.is_relative_to(folder):
            return found.relative_to(folder)
    raise InvalidInput(f"{path} is not under {base}, where its key should begin")
