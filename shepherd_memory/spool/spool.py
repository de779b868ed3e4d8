"""What waits in this process's spool file and in those of ended processes, and for whom."""

import logging
import os
import threading
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from shepherd_memory.intake.exchange import AnsweredExchange
from shepherd_memory.spool.files import SUFFIX, Line, SpoolFile, read_lines
from shepherd_memory.spool.records import DamagedLine, Record, decode, encode
from shepherd_memory.storage.clock import SECOND, Clock
from shepherd_memory.text.ids import digest_of

PREPARING_THREADS = 2
"""One message that takes long to be cleaned of secrets must not hold up all others."""

PLACE_OPTIONS = ("host", "hostaddr", "port", "service")
"""What a URL of Postgres may say behind its question mark about where the server is."""

logger = logging.getLogger("shepherd_memory.spool")


@dataclass(frozen=True)
class SpoolState:
    """How much waits in the spool; `problem` says why the last exchange found no room in it."""

    records: int = 0
    bytes: int = 0
    oldest_seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True, eq=False)
class Waiting:
    """One record that waits, and where it is."""

    file: SpoolFile
    offset: int
    length: int
    said_at: int


@dataclass(frozen=True, eq=False)
class _Put:
    """A line on its way to the disk."""

    user_id: str
    said_at: int
    line: bytes
    done: Future[bool]


def name_of(url: str, shown_url: str) -> str:
    """A name for the database that `url` means, whatever user and password are in it."""
    options = dict(parse_qsl(urlsplit(url).query)) if "://" in url else {}
    place = [f"{name}={options[name]}" for name in PLACE_OPTIONS if name in options]
    return digest_of("\0".join((shown_url, *place)))


class Spool:
    """Takes exchanges for one database, and hands them out again in the order of each user.

    `put` may be called on an event loop: nothing in it waits for a disk.
    """

    def __init__(self, folder: Path, database: str, max_bytes: Callable[[], int], clock: Clock) -> None:
        self._folder = folder
        self._database = database
        self._max_bytes = max_bytes
        self._clock = clock
        self._own: SpoolFile | None = None
        self._adopted: list[SpoolFile] = []
        self._file_lock = threading.Lock()
        """Held while a file is written to or emptied."""
        self._lock = threading.Lock()
        """Held for a moment, for what is below."""
        self._waiting: dict[str, deque[Waiting]] = {}
        self._unfinished: dict[SpoolFile, int] = {}
        self._puts: list[_Put] = []
        self._problem = ""
        self._preparing = ThreadPoolExecutor(PREPARING_THREADS, "shepherd-spool")
        self._writing = ThreadPoolExecutor(1, "shepherd-spool-writer")
        self.on_put: Callable[[], None] = lambda: None
        """Called when something new waits."""

    def put(self, user_id: str, prepare: Callable[[], AnsweredExchange | None]) -> "Future[bool]":
        """Whether what `prepare` gives is on the disk, once it is known; nothing to store counts as that."""
        done: Future[bool] = Future()
        done.set_running_or_notify_cancel()
        self._preparing.submit(self._prepare, user_id, prepare, done).add_done_callback(
            lambda preparing: _pass_failure_on(preparing, done)
        )
        return done

    def _prepare(
        self, user_id: str, prepare: Callable[[], AnsweredExchange | None], done: "Future[bool]"
    ) -> None:
        answered = prepare()
        if answered is None:
            done.set_result(True)
            return
        line = encode(Record(user_id, answered))
        with self._lock:
            self._puts.append(_Put(user_id, answered.said_at, line, done))
        self._writing.submit(self._write)

    def _write(self) -> None:
        """Write all that has come since the last time, with one wait for the disk."""
        with self._lock:
            puts, self._puts = self._puts, []
        if not puts:
            return
        written: set[_Put] = set()
        try:
            with self._file_lock:
                written.update(self._append(puts))
        finally:
            # Whatever happened: a chat waits for each of these.
            for put in puts:
                put.done.set_result(put in written)
        if written:
            self.on_put()

    def _append(self, puts: list[_Put]) -> list[_Put]:
        """What found room; it waits from now on."""
        fitting = self._fitting(puts)
        if not fitting:
            self._refuse_for_size()
            return []
        try:
            file = self._own_file()
            begins = file.append([put.line for put in fitting])
        except OSError as error:
            self._refuse(f"the spool cannot be written: {error.strerror or error}")
            return []
        with self._lock:
            for put, begin in zip(fitting, begins, strict=True):
                self._add(put.user_id, Waiting(file, begin, len(put.line), put.said_at))
        if len(fitting) == len(puts):
            self._problem = ""
        else:
            self._refuse_for_size()
        return fitting

    def _refuse_for_size(self) -> None:
        if self._max_bytes():
            self._refuse(f"the spool is full: {self._size() / 1_000_000:.1f} MB wait to be stored")

    def _refuse(self, problem: str) -> None:
        if problem != self._problem:
            logger.error("%s; exchanges are not remembered until that changes", problem)
        self._problem = problem

    def _fitting(self, puts: list[_Put]) -> list[_Put]:
        room = self._max_bytes() - self._size()
        found: list[_Put] = []
        for put in puts:
            if len(put.line) <= room:
                room -= len(put.line)
                found.append(put)
        return found

    def _size(self) -> int:
        return sum(file.size for file in self._files())

    def _files(self) -> list[SpoolFile]:
        return [*self._adopted, *((self._own,) if self._own else ())]

    def _own_file(self) -> SpoolFile:
        if self._own is None:
            name = f"{self._database}-{self._clock():016d}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
            self._own = SpoolFile.create(self._folder, name, self._database)
        return self._own

    def _add(self, user_id: str, waiting: Waiting) -> None:
        self._waiting.setdefault(user_id, deque()).append(waiting)
        self._unfinished[waiting.file] = self._unfinished.get(waiting.file, 0) + 1

    def holds(self, user_id: str) -> bool:
        """Whether something of this user waits: what they say next must not be stored before it."""
        return user_id in self._waiting

    def users(self) -> list[str]:
        """For whom something waits, oldest first."""
        with self._lock:
            return sorted(self._waiting, key=lambda user_id: self._waiting[user_id][0].said_at)

    def first(self, user_id: str) -> Waiting | None:
        """What of this user is to be stored next."""
        with self._lock:
            waiting = self._waiting.get(user_id)
            return waiting[0] if waiting else None

    def read(self, user_id: str, waiting: Waiting) -> AnsweredExchange | None:
        """The exchange, or None if it cannot be read any more: it is set aside then."""
        line = b""
        try:
            line = waiting.file.read(waiting.offset, waiting.length)
            record = decode(line)
            if record.user_id != user_id:
                raise DamagedLine("it is another user's")
        except (DamagedLine, OSError) as error:
            self._set_aside(waiting.file, line, error)
            return None
        return record.answered

    def _set_aside(self, file: SpoolFile, line: bytes, error: Exception) -> None:
        logger.error("a record of %s cannot be read (%s): it is set aside", file.path.name, error)
        try:
            file.set_aside(line)
        except OSError as failure:
            logger.error("a record could not be set aside: %s", failure.strerror)

    def finish(self, user_id: str, waiting: Waiting) -> None:
        """It is stored, or never will be."""
        with self._lock:
            queue = self._waiting.get(user_id)
            if not queue or waiting not in queue:
                return
            queue.remove(waiting)
            if not queue:
                del self._waiting[user_id]
            self._unfinished[waiting.file] -= 1
            is_last = not self._unfinished[waiting.file]
        if is_last:
            self._clear(waiting.file)

    def _clear(self, file: SpoolFile) -> None:
        """Give back the room of a file in which nothing waits any more."""
        with self._file_lock:
            with self._lock:
                if self._unfinished.get(file, 0):
                    return
                self._unfinished.pop(file, None)
            try:
                if file is self._own:
                    file.empty()
                elif file in self._adopted:
                    self._adopted.remove(file)
                    file.remove()
            except OSError as error:
                logger.warning("%s could not be emptied: %s", file.path.name, error.strerror)
        self._problem = ""

    def adopt(self) -> int:
        """Take over the files of processes that have ended; how many records wait in them."""
        known = {file.path for file in self._files()}
        found = 0
        for path in self._paths():
            if path not in known and (file := SpoolFile.adopt(path, self._database)) is not None:
                found += self._take_over(file)
        return found

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob(f"{self._database}-*{SUFFIX}"))

    def _take_over(self, file: SpoolFile) -> int:
        with self._file_lock:
            self._adopted.append(file)
        found = 0
        for line in file.lines():
            record = self._record_in(file, line)
            if record is not None:
                found += 1
                with self._lock:
                    length = len(line.content)
                    self._add(record.user_id, Waiting(file, line.offset, length, record.answered.said_at))
        if found:
            logger.warning("%d exchanges of an ended process wait in the spool", found)
            self.on_put()
        else:
            self._clear(file)
        return found

    def _record_in(self, file: SpoolFile, line: Line) -> Record | None:
        try:
            return decode(line.content)
        except DamagedLine as error:
            # Of the last line only a part may be there: its exchange was never said to be in the spool.
            if line.is_whole:
                self._set_aside(file, line.content, error)
            return None

    def drop(self, user_id: str, until: int) -> int:
        """The user was erased then: forget what waits of them here; how much waited, elsewhere too."""
        with self._lock:
            mine = [one for one in self._waiting.get(user_id, ()) if one.said_at <= until]
        for waiting in mine:
            self.finish(user_id, waiting)
        known = {file.path for file in self._files()}
        others = [path for path in self._paths() if path not in known]
        return len(mine) + sum(_count(path, user_id, until) for path in others)

    def state(self) -> SpoolState:
        """How much waits."""
        with self._lock:
            firsts = [queue[0].said_at for queue in self._waiting.values()]
            records = sum(map(len, self._waiting.values()))
            size = sum(one.length for queue in self._waiting.values() for one in queue)
        age = max(0, self._clock() - min(firsts)) / SECOND if firsts else 0.0
        return SpoolState(records, size, age, self._problem)

    def close(self) -> None:
        """What was put is on the disk when this returns; what waits is left to the next process."""
        self._preparing.shutdown(wait=True)
        self._writing.shutdown(wait=True)
        for file in self._files():
            if self._unfinished.get(file):
                file.close()
            else:
                file.remove()


def _pass_failure_on(preparing: "Future[None]", done: "Future[bool]") -> None:
    error = preparing.exception()
    if error is not None:
        done.set_exception(error)


def _count(path: Path, user_id: str, until: int) -> int:
    found = 0
    for line in read_lines(path):
        try:
            record = decode(line.content)
        except DamagedLine:
            continue
        found += record.user_id == user_id and record.answered.said_at <= until
    return found
