"""Watching: one thread that takes in transcripts as agents write them, and moves their conversations on."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from shepherd_memory.config import Config
from shepherd_memory.config.identity import is_known
from shepherd_memory.errors import DatabaseError, ShepherdError
from shepherd_memory.transcripts.folders import files_under, is_candidate, is_through_link, watched
from shepherd_memory.transcripts.ingestion import BUSY, IngestResult
from shepherd_memory.transcripts.library import Library

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

DEBOUNCE_MS, STEP_MS = 1000, 50
REST_SECONDS = 0.5
"""After each pass: what changes meanwhile is taken in at once, however often it is written."""

REFUSED_IN_A_ROW = 2
UNWATCHED_SECONDS = 30.0
RECOVERED_EVERY_SECONDS = 600.0
SCANNED_EVERY_SECONDS = 600.0
"""In case that the system dropped changes, as it does in a storm of them."""

logger = logging.getLogger(__name__)


class Watcher:
    """Watches, scans, recovers, and then takes in what changes; changed settings take effect by themselves.

    Watching begins before the scan, so that no change falls between the two.
    """

    def __init__(
        self,
        library: Library,
        config: Callable[[], Config],
        user_id: str,
        report: Callable[[IngestResult], object] = lambda result: None,
    ) -> None:
        """`report` hears the result of each file that was read."""
        self._library = library
        self._report = report
        self._config = config
        self._user_id = user_id
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shepherd-transcripts")
        self._polled_at = self._scanned_at = self._recovered_at = float("-inf")
        self._pending: dict[Path, Path] = {}

    def start(self) -> None:
        """Begin in the background."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Stop soon: after the batch that is being stored."""
        self._stopping.set()

    def stop(self) -> None:
        """Stop, and wait for it."""
        self.ask_to_stop()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            bases = self._bases()
            if bases:
                self._watch(bases)
            else:
                self._poll_if_due()
                self._stopping.wait(min(self._config().poll_interval, 5.0))

    def _bases(self) -> list[Path]:
        """The folders to watch, as far as they are there; one that appears later is found then."""
        config = self._config()
        if not (config.transcripts_enabled and is_known(self._user_id)):
            return []
        return watched(config.transcripts_watch_path)

    def _watch(self, bases: list[Path]) -> None:
        # Late: only who watches needs it.
        from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

        try:
            with RustNotify([str(base) for base in bases], False, False, 300, True, True) as notify:
                self._scan(bases)
                is_there = True
                while is_there and not self._stopping.is_set() and self._bases() == bases:
                    is_there = self._take_changes(notify, bases)
        except (OSError, WatchfilesRustInternalError) as error:
            # Such as more folders than the system watches: then they are looked through now and then.
            logger.warning("cannot watch for transcripts (%s): their folders are scanned instead", error)
            self._scan(bases)
            self._stopping.wait(UNWATCHED_SECONDS)

    def _take_changes(self, notify: "RustNotify", bases: list[Path]) -> bool:
        """Wait for changes and take them in; False if a folder was removed, whatever stands there now."""
        timeout_ms = round(min(self._config().poll_interval, 5.0) * 1000)
        changes = notify.watch(DEBOUNCE_MS, STEP_MS, timeout_ms, self._stopping)
        changed = [Path(path) for _, path in changes] if isinstance(changes, set) else []
        self._note(changed, bases)
        if time.monotonic() - self._scanned_at > SCANNED_EVERY_SECONDS:
            self._scan(bases)
        self._ingest_pending()
        self._poll_if_due()
        if changed:
            self._stopping.wait(REST_SECONDS)
        return set(bases).isdisjoint(changed)

    def _note(self, paths: Iterable[Path], bases: list[Path]) -> None:
        """Keep what changed, once each; of a new folder, what it came with."""
        for path in paths:
            base = next((base for base in bases if path.is_relative_to(base)), None)
            if base is None or is_through_link(path, base):
                continue
            if os.path.isdir(path):
                self._pending |= {found.path: base for found in files_under(path)}
            elif is_candidate(path):
                self._pending[path] = base

    def _scan(self, bases: list[Path]) -> None:
        self._scanned_at = time.monotonic()
        for base in bases:
            self._pending |= {found.path: base for found in files_under(base)}
        self._ingest_pending()
        self._poll_if_due()

    def _ingest_pending(self) -> None:
        """Take in what is pending; what the database does not take now, or another reads, stays pending.

        One file that is refused does not keep the others out; two in a row, and it is not the file.
        """
        refused = 0
        for path, base in list(self._pending.items()):
            if self._stopping.is_set() or refused == REFUSED_IN_A_ROW:
                return
            if self._guarded(partial(self._ingest, path, base)):
                refused = 0
            else:
                refused += 1
                self._pending[path] = self._pending.pop(path)

    def _ingest(self, path: Path, base: Path) -> None:
        group = self._config().group
        found = self._library.ingest(
            self._user_id, path, base, should_stop=self._stopping.is_set, group=group
        )
        self._report(found)
        if found.outcome != BUSY:
            del self._pending[path]
        if found.entries:
            logger.info("took in %d entries of a transcript (%s)", found.entries, found.outcome)

    def _poll_if_due(self) -> None:
        if time.monotonic() - self._polled_at >= self._config().poll_interval:
            self._recover_if_due()
            self._polled_at = time.monotonic()
            self._guarded(self._library.poll)

    def _recover_if_due(self) -> None:
        """Whoever is killed, or whose file vanishes, does not hold its conversations for ever."""
        if time.monotonic() - self._recovered_at >= RECOVERED_EVERY_SECONDS:
            self._recovered_at = time.monotonic()
            self._guarded(self._library.recover)

    def _guarded(self, call: Callable[[], object]) -> bool:
        """Whether it went well; what the database or the configuration refuses is tried again later."""
        try:
            call()
        except DatabaseError as error:
            logger.warning("transcripts wait for the database: %s", error)
        except ShepherdError as error:
            logger.warning("transcripts are not taken in: %s", error)
        else:
            return True
        return False
