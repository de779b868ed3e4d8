"""Names of folders: any text becomes one, and none leads out of the folder that it is in."""

import hashlib
import re
import unicodedata

MAX_SLUG_CHARS = 50
MAX_FOLDER_CHARS = 40

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]*")
_RESERVED = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")
"""Names that Windows has for devices."""


def slug_of(name: str) -> str:
    """The letters and digits of a name, in any script, in lower case, with hyphens for all between them."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    kept = "".join(one if unicodedata.category(one)[0] in "LMN" else " " for one in folded)
    return "-".join(kept.split())[:MAX_SLUG_CHARS].strip("-")


def folder_name(raw: str) -> str:
    """The folder of a user or group: no two have the same one, also where case does not count.

    A name of lower-case letters and digits is its own folder; any other has a digest in it.
    """
    if _PLAIN.fullmatch(raw) and len(raw) <= MAX_FOLDER_CHARS and not _RESERVED.fullmatch(raw):
        return raw
    digest = hashlib.sha256(raw.encode()).hexdigest()[:16]
    return f"{slug_of(raw)[:MAX_FOLDER_CHARS]}~{digest}"
