"""Where a hit was said, and the turns around it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from shepherd_memory.frontends.terminal.screen import clip, local, one_line
from shepherd_memory.memory.documents import Document
from shepherd_memory.memory.entries import DOCUMENT
from shepherd_memory.recall import Hit
from shepherd_memory.storage.rows import as_json as plain

if TYPE_CHECKING:
    from shepherd_memory.service import Service

SHOWN = ("id", "role", "speaker_name", "text", "created_at", "message_id")
LONGEST_SHOWN = 1_000
"""Characters of a turn that are looked at for its line on a terminal."""


@dataclass(frozen=True)
class Neighbours:
    """The turns of a session before and after a hit."""

    before: Sequence[Document] = ()
    after: Sequence[Document] = ()

    def as_json(self) -> list[dict[str, Any]]:
        """All of them, in their order; `place` counts from the hit: -1 is right before it."""
        first = -len(self.before)
        found = [*((first + at, one) for at, one in enumerate(self.before)), *enumerate(self.after, 1)]
        return [{"place": place, **_shown(document)} for place, document in found]

    def lines_before(self, columns: int) -> Iterator[str]:
        """For a terminal: a dim line each."""
        return (_dimmed(document, columns) for document in self.before)

    def lines_after(self, columns: int) -> Iterator[str]:
        return (_dimmed(document, columns) for document in self.after)

    def rows_before(self) -> Iterator[Sequence[str]]:
        """For a pipe: like a hit, without a confidence."""
        return (_row(document) for document in self.before)

    def rows_after(self) -> Iterator[Sequence[str]]:
        return (_row(document) for document in self.after)


NOBODY = Neighbours()


def neighbours(service: "Service", user_id: str, hit: Hit, turns: int) -> Neighbours:
    """So many turns before a hit and after it; none of a fact, or of what was said in no session."""
    if hit.kind != DOCUMENT or not hit.session_id:
        return NOBODY
    found = service.transcripts.around(user_id, hit.id, turns)
    return Neighbours(
        [one for one in found if one.id < hit.id],
        [one for one in found if one.id > hit.id],
    )


def is_of_a_transcript(hit: Hit) -> bool:
    """Whether a hit was taken in from a transcript."""
    return bool(hit.cwd) or (hit.kind == DOCUMENT and hit.source not in ("", "live", "user"))


def origin(hit: Hit) -> tuple[str, str, str]:
    """Project, session and source of a hit."""
    project = PurePosixPath(hit.cwd.replace("\\", "/")).name or hit.cwd
    return one_line(project), one_line(hit.session_id), one_line(hit.source)


def _shown(document: Document) -> dict[str, Any]:
    values = plain(document)
    return {name: values[name] for name in SHOWN}


def _said_by(document: Document) -> str:
    return " ".join((document.speaker_name or document.role or document.type).split())


def _dimmed(document: Document, columns: int) -> str:
    text = " ".join(document.text[:LONGEST_SHOWN].split())
    return click.style(clip(one_line(f"{_said_by(document)}: {text}"), columns), dim=True)


def _row(document: Document) -> Sequence[str]:
    cells = ("", local(document.created_at), _said_by(document), DOCUMENT, str(document.id))
    return (*cells, document.text)
