"""Names of archives and their folders: any text becomes one, and none leads out of its folder."""

import hashlib
import re
import unicodedata
from collections.abc import Container
from datetime import UTC, datetime

MAX_SLUG_CHARS = 50
MAX_FOLDER_CHARS = 40
SUFFIX = ".md"

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]*")
_RESERVED = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")
"""Names that Windows has for devices."""


def slug_of(name: str) -> str:
    """The letters and digits of a name, in any script, in lower case, with hyphens for all between them."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    kept = "".join(one if unicodedata.category(one)[0] in "LMN" else " " for one in folded)
    return "-".join(kept.split())[:MAX_SLUG_CHARS].strip("-")


def file_stem(name: str, begun_at: datetime) -> str:
    """What the file of a session is called, without its ending: `2026-02-21-tax-return`."""
    begun = begun_at.astimezone(UTC)
    return f"{begun:%Y-%m-%d}-{slug_of(name) or f'conversation-{begun:%H%M}'}"


def free_name(stem: str, taken: Container[str]) -> str:
    """The first of `stem.md`, `stem-2.md`, `stem-3.md` … that is not taken."""
    number, name = 1, f"{stem}{SUFFIX}"
    while name in taken:
        number += 1
        name = f"{stem}-{number}{SUFFIX}"
    return name


def folder_name(raw: str) -> str:
    """The folder of a user or group: no two have the same one, also where case does not count.

    A name of lower-case letters and digits is its own folder; any other has a digest in it.
    """
    if _PLAIN.fullmatch(raw) and len(raw) <= MAX_FOLDER_CHARS and not _RESERVED.fullmatch(raw):
        return raw
    digest = hashlib.sha256(raw.encode()).hexdigest()[:16]
    return f"{slug_of(raw)[:MAX_FOLDER_CHARS]}~{digest}"
