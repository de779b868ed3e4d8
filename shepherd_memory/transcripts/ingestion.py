"""Taking in transcript files: from where each was left, in batches that are stored whole or not at all."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from shepherd_memory.conversations import conversation as conversations
from shepherd_memory.conversations import turns
from shepherd_memory.conversations.grouping import Grouping, Origin, SaidEntry
from shepherd_memory.errors import DatabaseError, InvalidInput
from shepherd_memory.extraction import queue
from shepherd_memory.intake import store
from shepherd_memory.memory import documents, entries, session_documents, sessions, threads, twins
from shepherd_memory.memory.documents import NewDocument
from shepherd_memory.memory.sessions import Place
from shepherd_memory.storage import prompt_blocks, transcript_stops, users
from shepherd_memory.storage.clock import SECOND, Clock, to_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.lease_owner import new_owner
from shepherd_memory.text.canonical import canonical_text, dump_json, load_json
from shepherd_memory.text.groups import MAIN_GROUP, may_act_in
from shepherd_memory.text.ids import storable_id
from shepherd_memory.text.redaction import redact
from shepherd_memory.transcripts import files, reading
from shepherd_memory.transcripts.both_ways import HeardLive, find_heard, give_way
from shepherd_memory.transcripts.changes import REWRITTEN, UNCHANGED, judge
from shepherd_memory.transcripts.cleaning import clean, clean_state, documents_of
from shepherd_memory.transcripts.file_keys import file_key_of
from shepherd_memory.transcripts.files import File
from shepherd_memory.transcripts.sources import FileInfo, Reader, SkippedLine, Source, TranscriptEntry

BATCH_ENTRIES, BATCH_CHARACTERS, BATCH_BYTES = 500, 100_000, 8 << 20
"""A batch is stored in one go, and others who write wait for it: well under a tenth of a second."""

PURGE_BATCH = 200
LEASE_US = 60 * SECOND
BUSY, UNRECOGNISED, FAILED, STOPPED = "busy", "unrecognised", "failed", "stopped"
ELSEWHERE = "elsewhere"
MEMORY_OFF = "memory off"
"""Why lines are passed over: their session was started with another memory mode than `on`."""

TAKEN_ELSEWHERE = "it was taken in for another group, and stays there"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class IngestResult:
    """What became of one file: `entries` were stored now, `skipped` lines were passed over, by reason."""

    file_key: str
    outcome: str
    entries: int = 0
    known: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    source: str = ""
    problem: str = ""


@dataclass(frozen=True)
class IngestOptions:
    """How to take in: the gap between two conversations; whether to begin again; when to stop early.

    `progress` is told of bytes as they are stored. A new file goes to `group`; one that is known stays in the
    group that it is in.
    """

    gap_us: int
    reimport: bool = False
    should_stop: Callable[[], bool] = lambda: False
    progress: Callable[[int], None] = lambda size: None
    group: str = MAIN_GROUP


class _NoLongerOurs(Exception):
    """Another reader has taken the file over: what we have is rolled back."""


class _Shrunk(Exception):
    """The file was cut while it was read: what it is now is judged another time."""


def ingest_file(
    database: Database, user_id: str, path: Path, base: Path, how: IngestOptions, clock: Clock
) -> IngestResult:
    """Take in what a file has that is not stored yet; what is wrong with it is in the result, not raised."""
    try:
        key = file_key_of(path, base)
    except InvalidInput as error:
        return IngestResult(path.name, FAILED, problem=str(error))
    try:
        with reading.opened(path) as file:
            return _Ingestion(database, user_id, key, file, how, clock).run()
    except InvalidInput as error:
        # A later version took it in, from an agent that this one does not know.
        return _failed(database, user_id, key, str(error), clock(), how.group)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        return _failed(database, user_id, key, problem, clock(), how.group)
    except _NoLongerOurs:
        return IngestResult(key, BUSY, problem="another process reads it now")


def _failed(database: Database, user_id: str, key: str, problem: str, now: int, group: str) -> IngestResult:
    logger.warning("a transcript %s", problem)
    try:
        with database.write() as tx:
            if users.lock_existing(tx, user_id) is not None:
                files.note_problem(tx, user_id, key, problem, now, group)
    except DatabaseError:
        logger.warning("that could not be noted either")
    return IngestResult(key, FAILED, problem=problem)


@dataclass
class _Batch:
    """Lines that are going to be stored together."""

    entries: list[TranscriptEntry] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    characters: int = 0
    start: int = 0
    end: int = 0

    def add(self, read: TranscriptEntry | SkippedLine, end: int) -> bool:
        """Whether that makes it full."""
        self.end = end
        if isinstance(read, SkippedLine):
            self.skipped[read.reason] += 1
            return end - self.start >= BATCH_BYTES
        self.entries.append(read)
        self.characters += len(read.text)
        return (
            len(self.entries) >= BATCH_ENTRIES
            or self.characters >= BATCH_CHARACTERS
            or end - self.start >= BATCH_BYTES
        )


class _Ingestion:
    """One pass over one file."""

    def __init__(
        self, database: Database, user_id: str, key: str, file: BinaryIO, how: IngestOptions, clock: Clock
    ) -> None:
        self._database = database
        self._user_id = user_id
        self._key = key
        self._file = self._lines = file
        self._how = how
        self._clock = clock
        self._token = new_owner()
        self._stored = self._known = 0
        self._is_stopped = False
        self._skipped: Counter[str] = Counter()
        self._size = self._modified_at = 0

    def run(self) -> IngestResult:
        with self._database.read() as connection:
            before = files.get(connection, self._user_id, self._key)
        if before is not None and not may_act_in(self._how.group, before.group_name):
            return IngestResult(self._key, ELSEWHERE, problem=TAKEN_ELSEWHERE)
        # Not before that: the file may have grown, and another reader may have read that already.
        self._modified_at = os.fstat(self._file.fileno()).st_mtime_ns // 1000
        judged = judge(self._file, self._modified_at, before, self._how.reimport)
        if judged is None:
            return IngestResult(self._key, UNRECOGNISED, problem="no transcript of a known agent")
        outcome, now = judged
        self._lines, self._size = now.lines, now.size
        return self._run(before, now.source, outcome)

    def _run(self, before: File | None, source: Source, outcome: str) -> IngestResult:
        if outcome == UNCHANGED:
            self._note_readable(before)
            return self._result(UNCHANGED, source)
        state = self._claim(before, source, outcome)
        if state is None:
            return self._result(BUSY, source)
        try:
            self._take_in(state, source)
        except (DatabaseError, OSError) as error:
            self._let_go(f"could not be taken in: {error}")
            raise
        except _Shrunk:
            self._let_go("")
            return self._result(BUSY, source)
        return self._result(STOPPED if self._is_stopped else outcome, source)

    def _note_readable(self, before: File | None) -> None:
        if before is not None and before.problem:
            with self._database.write() as tx:
                if users.lock_existing(tx, self._user_id) is not None:
                    files.note_problem(tx, self._user_id, self._key, "", self._clock())

    def _take_in(self, state: File, source: Source) -> None:
        if state.purging:
            self._purge(state)
        if not self._is_stopped:
            self._read(source)

    def _let_go(self, problem: str) -> None:
        """Whoever tries next need not wait for the lease to end, if the database still takes that."""
        with suppress(DatabaseError, _NoLongerOurs), self._database.write() as tx:
            if users.lock_existing(tx, self._user_id) is not None:
                self._change(tx, **_UNFINISHED, problem=problem)

    def _result(self, outcome: str, source: Source) -> IngestResult:
        return IngestResult(
            self._key, outcome, self._stored, self._known, dict(sorted(self._skipped.items())), source.name
        )

    def _claim(self, before: File | None, source: Source, outcome: str) -> File | None:
        now = self._clock()
        with self._database.write() as tx:
            users.lock(tx, self._user_id, now)
            if self._how.reimport:
                transcript_stops.remove(tx, self._user_id, self._key)
            if before is None and files.get(tx, self._user_id, self._key) is None:
                stem = storable_id(Path(self._key).stem)
                files.add(tx, self._user_id, self._key, stem, source.name, now, self._how.group)
            elif not _is_as_judged(before, files.get(tx, self._user_id, self._key)):
                raise _NoLongerOurs
            if not files.claim(
                tx, self._user_id, self._key, self._token, self._size, self._modified_at, now, now + LEASE_US
            ):
                return None
            state = files.get(tx, self._user_id, self._key)
            if before is None and state is not None:
                give_way(tx, self._user_id, state, state.group_name)
            if outcome == REWRITTEN and state is not None:
                self._begin_anew(tx, state, source, now)
                state = files.get(tx, self._user_id, self._key)
            return state

    def _begin_anew(self, tx: Connection, state: File, source: Source, now: int) -> None:
        """All that was read goes. What still waits to be extracted is found and queued again.

        Its items are about documents that go now. What was there when the user was erased stays out.
        """
        session, group = state.session_id, state.group_name
        turns.take_back(tx, self._user_id, session, queue.KIND, now, group)
        queue.drop_open(tx, self._user_id, session, group)
        conversations.forget_bounds(tx, self._user_id, session, group)
        twins.delete_session(tx, self._user_id, session, group)
        self._change(
            tx,
            purging=1,
            source=source.name,
            read_through=transcript_stops.stopped_at(tx, self._user_id, self._key),
            read_check="",
            reader="",
            entries=0,
            skipped="{}",
            last_entry_at=0,
        )

    def _change(self, tx: Connection, **values: object) -> None:
        now = self._clock()
        kept = {"lease_until": now + LEASE_US, "updated_at": now, **values}
        if not files.change(tx, self._user_id, self._key, self._token, kept):
            raise _NoLongerOurs

    def _purge(self, state: File) -> None:
        """Remove what was read before, a little at a time: others want to write too."""
        is_left = True
        while is_left and not self._is_stopped:
            with self._database.write() as tx:
                users.lock(tx, self._user_id, self._clock())
                found = session_documents.of_file(
                    tx, self._user_id, state.session_id, self._key, PURGE_BATCH, state.group_name
                )
                for document in found:
                    documents.delete(tx, self._user_id, document.id, state.group_name)
                    entries.remove(tx, self._user_id, document.id, document.text)
                marks = [prompt_blocks.entry_mark(document.id) for document in found]
                prompt_blocks.withdraw(tx, self._user_id, marks)
                is_left = bool(found)
                users.bump_version(tx, self._user_id)
                self._is_stopped = is_left and self._how.should_stop()
                self._change(tx, purging=int(is_left), **(_UNFINISHED if self._is_stopped else {}))

    def _read(self, source: Source) -> None:
        """Read on to the end, or until it is to stop."""
        with self._database.read() as connection:
            state = files.get(connection, self._user_id, self._key)
            forgotten = transcript_stops.forgotten_through(connection, self._user_id, self._key)
        if state is None:
            raise _NoLongerOurs
        skipped = None if self._is_kept(state) else SkippedLine(MEMORY_OFF)
        reader = source.reader(load_json(state.reader) if state.reader else None)
        batch = _Batch(start=state.read_through, end=state.read_through)
        for raw, end in reading.lines(self._lines, state.read_through, self._size):
            read = reading.read_line(source, reader, raw)
            if batch.add(skipped or (read if end > forgotten else SkippedLine("forgotten")), end):
                self._store(batch, reader, is_last=False)
                batch = _Batch(start=batch.end, end=batch.end)
                self._is_stopped = self._how.should_stop()
                if self._is_stopped:
                    break
        self._store(batch, reader, is_last=True)

    def _is_kept(self, state: File) -> bool:
        """Whether the session's memory is on: whoever started it live may have said otherwise."""
        names = (state.session_id, *threads.live_sessions(state.thread, state.session_id))
        with self._database.read() as connection:
            return sessions.strictest_mode(connection, self._user_id, names, state.group_name) == sessions.ON

    def _store(self, batch: _Batch, reader: Reader, is_last: bool) -> None:
        """Documents, conversations and the place in the file: one transaction."""
        if batch.end > batch.start and reading.size_of(self._lines) < batch.end:
            raise _Shrunk
        # Of a file that is shorter than it was when its user was erased nothing is read.
        check = reading.check_of(self._lines, batch.end) if batch.end <= self._size else ""
        read = clean(batch.entries)
        terms = [entries.terms_of(entry.text) for entry in read]
        now = self._clock()
        with self._database.write() as tx:
            first_id = users.lock(tx, self._user_id, now, rows=2 * len(read) + 1)
            state = files.get(tx, self._user_id, self._key)
            if state is None or state.token != self._token:
                raise _NoLongerOurs
            new = documents_of(read, state, now)
            heard = find_heard(tx, self._user_id, state, new)
            stored = documents.insert(tx, self._user_id, first_id, new, now, heard.apart)
            store.index(tx, self._user_id, first_id, new, terms, stored, now)
            _let_grow(tx, self._user_id, first_id, new, terms, stored, now)
            self._group(tx, _origin(state, reader.about()), first_id, new, stored, heard, now)
            self._note(tx, state, batch, reader, check, new, len(stored), is_last)
        self._stored += len(stored)
        self._known += len(new) - len(stored)
        self._skipped += batch.skipped
        self._how.progress(batch.end - batch.start)

    def _group(
        self,
        tx: Connection,
        origin: Origin,
        first_id: int,
        new: Sequence[NewDocument],
        stored: set[int],
        heard: HeardLive,
        now: int,
    ) -> None:
        counted = stored | {first_id + place for place in heard.twins}
        if not counted:
            return
        user_id, session, group = self._user_id, origin.session_id, origin.group_name
        grouping = Grouping(conversations.for_grouping(tx, user_id, session, group), self._how.gap_us)
        next_id = first_id + len(new)
        for place, document in enumerate(new):
            is_grouped = heard.is_grouped(place, document, self._how.gap_us)
            if first_id + place in counted and not is_grouped:
                next_id += grouping.add(SaidEntry(first_id + place, document.created_at), next_id)
        grouping.save(tx, user_id, origin, now)
        where = Place(cwd=origin.cwd)
        sessions.extend(
            tx, user_id, session, max(counted), group, now, wanted=False, queued=False, place=where
        )
        sessions.mark_grouped(tx, user_id, session, max(counted), group)

    def _note(
        self,
        tx: Connection,
        state: File,
        batch: _Batch,
        reader: Reader,
        check: str,
        new: Sequence[NewDocument],
        stored: int,
        is_last: bool,
    ) -> None:
        about = reader.about()
        self._change(
            tx,
            read_through=batch.end,
            read_check=check,
            reader=dump_json(clean_state(reader.state())),
            originator=_stored_name(about.originator),
            cwd=_stored_name(about.cwd),
            subagent=int(about.is_subagent),
            entries=state.entries + stored,
            skipped=files.merged(state.skipped, batch.skipped),
            last_entry_at=new[-1].created_at if new else to_us(state.last_entry_at),
            problem="",
        )
        if is_last and self._is_stopped:
            self._change(tx, **_UNFINISHED)
        elif is_last:
            conversations.drop_empty(tx, self._user_id, state.session_id, state.group_name)
            self._change(tx, status=files.IDLE, token="")


_UNFINISHED: Mapping[str, Any] = {"token": "", "lease_until": 0}
"""A file that is let go in its middle: anybody may go on, and its last conversation is not over."""


def _stored_name(name: str) -> str:
    return redact(canonical_text(name))


def _origin(state: File, about: FileInfo) -> Origin:
    """The session of a file, with what the file said about itself so far."""
    return Origin(
        session_id=state.session_id,
        source=state.source,
        file_key=state.file_key,
        group_name=state.group_name,
        cwd=_stored_name(about.cwd),
        originator=_stored_name(about.originator),
    )


def _is_as_judged(before: File | None, state: File | None) -> bool:
    """Whether nobody has read on since the file was compared with what was read of it."""
    if before is None or state is None:
        return False
    return (before.read_through, before.read_check) == (state.read_through, state.read_check)


def _let_grow(
    tx: Connection,
    user_id: str,
    first_id: int,
    new: Sequence[NewDocument],
    terms: Sequence[Counter[str]],
    stored: set[int],
    now: int,
) -> None:
    """An answer that was written down while it was given stands there again, longer: the whole is kept."""
    for document_id, (document, counted) in enumerate(zip(new, terms, strict=True), first_id):
        was = documents.grow(tx, user_id, document) if document_id not in stored else None
        if was is not None:
            entries.remove(tx, user_id, *was)
            entries.add(tx, user_id, [store.entry_of(was[0], document, counted)], now)
            users.bump_version(tx, user_id)
