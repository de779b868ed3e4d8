"""Taking in transcript files: from where each was left, in batches that are stored whole or not at all."""

import logging
import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from shepherd_memory import documents, entries, intake, queue, sessions, stops, users
from shepherd_memory.canonical import canonical_text, dump_json, load_json
from shepherd_memory.clock import SECOND, Clock, to_us
from shepherd_memory.database import Connection, Database
from shepherd_memory.documents import MAIN_GROUP, NewDocument
from shepherd_memory.errors import DatabaseError, InvalidInput
from shepherd_memory.ids import digest_of, storable_id
from shepherd_memory.redaction import redact
from shepherd_memory.transcripts import conversations, files, reading
from shepherd_memory.transcripts.conversations import Grouping, Said
from shepherd_memory.transcripts.files import File
from shepherd_memory.transcripts.sources import Entry, Reader, Skipped, Source, source_named, source_of

BATCH_ENTRIES, BATCH_CHARACTERS, BATCH_BYTES = 100, 200_000, 8 << 20
"""A batch is stored in one go, and others who write wait for it: well under a tenth of a second."""

PURGE_BATCH = 200
LOOKED_AT = 50
"""Lines by which a file is recognised."""

LONGEST_KEY = 400
"""Characters: keys are in indexes, and Postgres takes no more than 2,700 bytes there."""

LEASE_US = 60 * SECOND
SUFFIX = ".jsonl"

NEW, GROWN, UNCHANGED, REWRITTEN = "new", "grown", "unchanged", "rewritten"
BUSY, UNRECOGNISED, FAILED, STOPPED = "busy", "unrecognised", "failed", "stopped"

_PLAIN_ID = re.compile(
    r"(?:(?:msg|toolu)_[0-9A-Za-z]{1,40}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})"
    r"(?::(?:toolu_[0-9A-Za-z]{1,40}|[0-9a-f]{32}))?"
)
"""Ids as agents make them, in which no secret is looked for: that would be a quarter of all the work."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ingested:
    """What became of one file: `entries` were stored now, `skipped` lines were passed over, by reason."""

    file_key: str
    outcome: str
    entries: int = 0
    known: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    source: str = ""
    problem: str = ""


@dataclass(frozen=True)
class How:
    """How to take in: the gap between two conversations; whether to begin again; when to stop early.

    `progress` is told of bytes as they are stored.
    """

    gap_us: int
    reimport: bool = False
    should_stop: Callable[[], bool] = lambda: False
    progress: Callable[[int], None] = lambda size: None


class _NoLongerOurs(Exception):
    """Another reader has taken the file over: what we have is rolled back."""


class _Shrunk(Exception):
    """The file was cut while it was read: what it is now is judged another time."""


def file_key_of(path: Path, base: Path) -> str:
    """A file's key: its path from the folder that it was found under, the same on every system.

    One that is too long or holds a secret is cut or redacted, and told from others by a digest. A link that
    leads out of the folder counts by its own name; a file outside of it has no key there: InvalidInput.
    """
    key = canonical_text(_relative(path, base).as_posix())
    clean = redact(key)
    if clean == key and len(key) <= LONGEST_KEY:
        return key
    return f"{clean[:LONGEST_KEY]}#{digest_of(key)[:16]}"


def _relative(path: Path, base: Path) -> Path:
    for place in (os.path.realpath, os.path.abspath):
        found, folder = Path(place(path)), Path(place(base))
        if found.is_relative_to(folder):
            return found.relative_to(folder)
    raise InvalidInput(f"{path} is not under {base}, where its key should begin")


def ingest_file(database: Database, user_id: str, path: Path, base: Path, how: How, clock: Clock) -> Ingested:
    """Take in what a file has that is not stored yet; what is wrong with it is in the result, not raised."""
    try:
        key = file_key_of(path, base)
    except InvalidInput as error:
        return Ingested(path.name, FAILED, problem=str(error))
    try:
        with reading.opened(path) as file:
            return _Ingestion(database, user_id, key, file, how, clock).run()
    except InvalidInput as error:
        # A later version took it in, from an agent that this one does not know.
        return _failed(database, user_id, key, str(error), clock())
    except OSError as error:
        return _failed(database, user_id, key, f"cannot be read: {error.strerror or error}", clock())
    except _NoLongerOurs:
        return Ingested(key, BUSY, problem="another process reads it now")


def recognised(file: BinaryIO, size: int) -> Source | None:
    """What kind of transcript a file is, by its first lines; None if nobody knows it."""
    found = []
    for line in reading.lines(file, 0, size):
        if line.raw and line.raw.strip():
            found.append(reading.parsed(line.raw))
        if len(found) >= LOOKED_AT:
            break
    return source_of([one for one in found if one is not reading.BROKEN])


def outcome_of(file: BinaryIO, size: int, modified_at: int, before: File | None, reimport: bool) -> str:
    """What the file is, against what it was when it was last read."""
    if before is None:
        return NEW
    if reimport or before.purging:
        return REWRITTEN
    if size < before.read_through and modified_at < to_us(before.modified_at):
        # An older copy, as in a backup: what was read of the file since then stays.
        return UNCHANGED
    if _is_rewritten(file, size, before):
        return REWRITTEN
    # Whoever read it last may have come to its end, and no further.
    has_more = before.status == files.INGESTING or _has_more(file, size, modified_at, before)
    return GROWN if has_more else UNCHANGED


def _has_more(file: BinaryIO, size: int, modified_at: int, before: File) -> bool:
    is_same = size == before.size and modified_at == to_us(before.modified_at)
    if is_same and before.read_through == size:
        return False
    return next(reading.lines(file, before.read_through, size), None) is not None


def source_now(file: BinaryIO, size: int, before: File | None, outcome: str) -> Source | None:
    """What kind of transcript a file is: what it was, unless it is new or was written anew."""
    known = None if before is None else source_named(before.source)
    found = recognised(file, size) if before is None or outcome == REWRITTEN else None
    return found or known


def _is_rewritten(file: BinaryIO, size: int, before: File) -> bool:
    if not before.read_check:
        # Nothing of it was read for this user: it was there when they were erased.
        return False
    is_shorter = size < before.read_through
    return is_shorter or reading.check_of(file, before.read_through) != before.read_check


def _failed(database: Database, user_id: str, key: str, problem: str, now: int) -> Ingested:
    logger.warning("a transcript %s", problem)
    try:
        with database.write() as tx:
            if users.lock_existing(tx, user_id) is not None:
                files.note_problem(tx, user_id, key, problem, now)
    except DatabaseError:
        logger.warning("that could not be noted either")
    return Ingested(key, FAILED, problem=problem)


@dataclass
class _Batch:
    """Lines that are going to be stored together."""

    entries: list[Entry] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    characters: int = 0
    start: int = 0
    end: int = 0

    def add(self, read: Entry | Skipped, end: int) -> None:
        self.end = end
        if isinstance(read, Skipped):
            self.skipped[read.reason] += 1
        else:
            self.entries.append(read)
            self.characters += len(read.text)

    def is_full(self) -> bool:
        return (
            len(self.entries) >= BATCH_ENTRIES
            or self.characters >= BATCH_CHARACTERS
            or self.end - self.start >= BATCH_BYTES
        )


class _Ingestion:
    """One pass over one file."""

    def __init__(
        self, database: Database, user_id: str, key: str, file: BinaryIO, how: How, clock: Clock
    ) -> None:
        self._database = database
        self._user_id = user_id
        self._key = key
        self._file = file
        self._how = how
        self._clock = clock
        self._token = uuid.uuid4().hex
        self._stored = self._known = 0
        self._is_stopped = False
        self._skipped: Counter[str] = Counter()
        self._size = self._modified_at = 0

    def run(self) -> Ingested:
        with self._database.read() as connection:
            before = files.get(connection, self._user_id, self._key)
        # Not before that: the file may have grown, and another reader may have read that already.
        status = os.fstat(self._file.fileno())
        self._size, self._modified_at = status.st_size, status.st_mtime_ns // 1000
        outcome = outcome_of(self._file, self._size, self._modified_at, before, self._how.reimport)
        source = source_now(self._file, self._size, before, outcome)
        if source is None:
            return Ingested(self._key, UNRECOGNISED, problem="no transcript of a known agent")
        return self._run(before, source, outcome)

    def _run(self, before: File | None, source: Source, outcome: str) -> Ingested:
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

    def _result(self, outcome: str, source: Source) -> Ingested:
        return Ingested(
            self._key, outcome, self._stored, self._known, dict(sorted(self._skipped.items())), source.name
        )

    def _claim(self, before: File | None, source: Source, outcome: str) -> File | None:
        now = self._clock()
        with self._database.write() as tx:
            users.lock(tx, self._user_id, now)
            if self._how.reimport:
                stops.lift(tx, self._user_id, self._key)
            if before is None and files.get(tx, self._user_id, self._key) is None:
                files.add(tx, self._user_id, self._key, storable_id(Path(self._key).stem), source.name, now)
            elif not _is_as_judged(before, files.get(tx, self._user_id, self._key)):
                raise _NoLongerOurs
            if not files.claim(
                tx, self._user_id, self._key, self._token, self._size, self._modified_at, now, now + LEASE_US
            ):
                return None
            state = files.get(tx, self._user_id, self._key)
            if outcome == REWRITTEN and state is not None:
                self._begin_anew(tx, state, source, now)
                state = files.get(tx, self._user_id, self._key)
            return state

    def _begin_anew(self, tx: Connection, state: File, source: Source, now: int) -> None:
        """All that was read goes. What still waits to be extracted is found and queued again.

        Its items are about documents that go now. What was there when the user was erased stays out.
        """
        conversations.take_back(tx, self._user_id, self._key, queue.KIND, now)
        queue.drop_open(tx, self._user_id, state.session_id)
        conversations.forget_bounds(tx, self._user_id, self._key)
        self._change(
            tx,
            purging=1,
            source=source.name,
            read_through=stops.stopped_at(tx, self._user_id, self._key),
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
                found = documents.of_file(tx, self._user_id, state.session_id, self._key, PURGE_BATCH)
                for document in found:
                    documents.delete(tx, self._user_id, document.id)
                    entries.remove(tx, self._user_id, document.id, document.text)
                is_left = bool(found)
                users.raise_epoch(tx, self._user_id)
                self._is_stopped = is_left and self._how.should_stop()
                self._change(tx, purging=int(is_left), **(_UNFINISHED if self._is_stopped else {}))

    def _read(self, source: Source) -> None:
        """Read on to the end, or until it is to stop."""
        with self._database.read() as connection:
            state = files.get(connection, self._user_id, self._key)
        if state is None:
            raise _NoLongerOurs
        reader = source.reader(load_json(state.reader) if state.reader else None)
        batch = _Batch(start=state.read_through, end=state.read_through)
        for line in reading.lines(self._file, state.read_through, self._size):
            batch.add(read_line(source, reader, line.raw), line.end)
            if batch.is_full():
                self._store(batch, reader, is_last=False)
                batch = _Batch(start=batch.end, end=batch.end)
                self._is_stopped = self._how.should_stop()
                if self._is_stopped:
                    break
        self._store(batch, reader, is_last=True)

    def _store(self, batch: _Batch, reader: Reader, is_last: bool) -> None:
        """Documents, conversations and the place in the file: one transaction."""
        if batch.end > batch.start and os.fstat(self._file.fileno()).st_size < batch.end:
            raise _Shrunk
        # Of a file that is shorter than it was when its user was erased nothing is read.
        check = reading.check_of(self._file, batch.end) if batch.end <= self._size else ""
        clean = [_clean(entry) for entry in batch.entries]
        terms = [entries.terms_of(entry.text) for entry in clean]
        now = self._clock()
        with self._database.write() as tx:
            first_id = users.lock(tx, self._user_id, now, rows=2 * len(clean) + 1)
            state = files.get(tx, self._user_id, self._key)
            if state is None or state.token != self._token:
                raise _NoLongerOurs
            new = _documents(clean, state, now)
            stored = documents.insert(tx, self._user_id, first_id, new, now)
            intake.index(tx, self._user_id, first_id, new, terms, stored, now)
            _let_grow(tx, self._user_id, first_id, new, terms, stored, now)
            self._group(tx, state, first_id, new, stored, now)
            self._note(tx, state, batch, reader, check, new, len(stored), is_last)
        self._stored += len(stored)
        self._known += len(new) - len(stored)
        self._skipped += batch.skipped
        self._how.progress(batch.end - batch.start)

    def _group(
        self,
        tx: Connection,
        state: File,
        first_id: int,
        new: Sequence[NewDocument],
        stored: set[int],
        now: int,
    ) -> None:
        if not stored:
            return
        grouping = Grouping(conversations.for_grouping(tx, self._user_id, self._key), self._how.gap_us)
        next_id = first_id + len(new)
        for document_id, document in enumerate(new, first_id):
            if document_id in stored:
                next_id += grouping.add(Said(document_id, document.created_at), next_id)
        grouping.save(tx, self._user_id, self._key, state.session_id, now)
        sessions.extend(
            tx, self._user_id, state.session_id, max(stored), MAIN_GROUP, now, wanted=False, queued=False
        )

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
            reader=dump_json(_clean_state(reader.state())),
            originator=redact(canonical_text(about.originator)),
            cwd=redact(canonical_text(about.cwd)),
            subagent=int(about.is_subagent),
            entries=state.entries + stored,
            skipped=files.merged(state.skipped, batch.skipped),
            last_entry_at=new[-1].created_at if new else to_us(state.last_entry_at),
            problem="",
        )
        if is_last and self._is_stopped:
            self._change(tx, **_UNFINISHED)
        elif is_last:
            conversations.drop_empty(tx, self._user_id, self._key)
            self._change(tx, status=files.IDLE, token="")


_UNFINISHED: Mapping[str, Any] = {"token": "", "lease_until": 0}
"""A file that is let go in its middle: anybody may go on, and its last conversation is not over."""


def _is_as_judged(before: File | None, state: File | None) -> bool:
    """Whether nobody has read on since the file was compared with what was read of it."""
    if before is None or state is None:
        return False
    return (before.read_through, before.read_check) == (state.read_through, state.read_check)


def read_line(source: Source, reader: Reader, raw: bytes | None) -> Entry | Skipped:
    """What a line's bytes come to; None is a line that was too long."""
    if raw is None:
        return Skipped("broken")
    if not raw.strip():
        return Skipped("empty")
    skipped = source.can_skip(raw)
    if skipped is not None:
        return skipped
    line = reading.parsed(raw)
    return Skipped("broken") if line is reading.BROKEN else reader.read(line)


def _clean(entry: Entry) -> Entry:
    """As it is stored: redacted, before anything is written."""
    return replace(
        entry,
        entry_id=entry.entry_id if _PLAIN_ID.fullmatch(entry.entry_id) else storable_id(entry.entry_id),
        text=redact(entry.text),
        cwd=_redacted_name(entry.cwd),
        tool_names=tuple(map(_redacted_name, entry.tool_names)),
    )


def _clean_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """A reader's state as it is stored: what a file says about itself may hold secrets."""
    return {name: _redacted_within(value) for name, value in state.items()}


def _redacted_within(value: Any) -> Any:
    if isinstance(value, str):
        return value if _PLAIN_ID.fullmatch(value) else _redacted_name(value)
    if isinstance(value, list):
        return [_redacted_within(one) for one in value]
    if isinstance(value, dict):
        return {_redacted_within(name): _redacted_within(one) for name, one in value.items()}
    return value


@lru_cache(maxsize=1024)
def _redacted_name(name: str) -> str:
    """Kept, because the same few folders and tools stand in every line."""
    return redact(name)


def _documents(clean: Sequence[Entry], state: File, now: int) -> list[NewDocument]:
    times = (entry.said_at for entry in clean if entry.said_at is not None)
    said_at = to_us(state.last_entry_at) or min(next(times, to_us(state.modified_at)), now)
    found = []
    for entry in clean:
        # Nothing was said in the future; a line without a time was written right after the one before it.
        said_at = said_at if entry.said_at is None else min(entry.said_at, now)
        found.append(
            NewDocument(
                session_id=state.session_id,
                message_id=entry.entry_id,
                text=entry.text,
                created_at=said_at,
                role=entry.role,
                speaker_type="human" if entry.role == "user" else "agent",
                source=state.source,
                source_file=state.file_key,
                tool_names=",".join(entry.tool_names),
                cwd=entry.cwd,
            )
        )
    return found


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
            entries.add(tx, user_id, [intake.entry_of(was[0], document, counted)], now)
            users.raise_epoch(tx, user_id)
