"""A library of transcripts that prints a line for each file that something was taken in from."""

import sys
from pathlib import Path
from typing import Any

import click

from shepherd_memory.frontends.cli.reembed import entries
from shepherd_memory.frontends.terminal.screen import emit_json_line, one_line
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.transcripts.ingestion import FAILED, Ingested
from shepherd_memory.transcripts.library import Library


class Announced(Library):
    """The library of a service, which says on stdout what it takes in."""

    def __init__(self, service: Service, as_json: bool) -> None:
        super().__init__(service.database, lambda: service.config, now_us, service.embedding.wake)
        self._as_json = as_json

    def ingest(self, user_id: str, path: Path, base: Path | None = None, **how: Any) -> Ingested:
        """Take in what one file has that is not stored yet, and say so."""
        found = super().ingest(user_id, path, base, **how)
        if found.entries or found.outcome == FAILED:
            self._announce(found)
        return found

    def _announce(self, found: Ingested) -> None:
        if self._as_json:
            emit_json_line(plain(found))
            return
        what = found.problem if found.outcome == FAILED else f"{entries(found.entries)} ({found.outcome})"
        click.echo(one_line(f"{found.file_key}: {what}"))
        sys.stdout.flush()
