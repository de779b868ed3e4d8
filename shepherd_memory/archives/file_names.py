"""Names of archives: a session's name in a file's, whatever it has in it."""

from collections.abc import Container
from datetime import UTC, datetime

from shepherd_memory.mirrors.folder_names import slug_of

SUFFIX = ".md"


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
