"""Keeps a configured folder in step with the memory of all users."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from shepherd_memory.config import Config
from shepherd_memory.errors import DatabaseError
from shepherd_memory.mirrors.folder_names import folder_name
from shepherd_memory.mirrors.private_tree import folders_in
from shepherd_memory.storage import erasures
from shepherd_memory.storage.clock import Clock
from shepherd_memory.storage.database import Database
from shepherd_memory.work import endpoint_state
from shepherd_memory.work.endpoint_state import OK, UNAVAILABLE

BEAT_SECONDS, TROUBLE_SECONDS = 1.0, 5.0

logger = logging.getLogger("shepherd_memory.mirrors")

Version = tuple[int, int]
"""What changes with everything that is written for a user."""


@dataclass(frozen=True)
class RemovedFiles:
    """How many files of a user were removed, and how many stay because a person has changed them."""

    removed: int = 0
    left: int = 0


class FolderKeeper(ABC):
    """A thread that writes the files of all users into a folder, if one is configured: one below it for each.

    Also without it running, what is forgotten through this process leaves the files in the same call.
    """

    content: ClassVar[str]
    """What is kept there: as people are told, and as trouble with it is recorded."""

    def __init__(self, database: Database, config: Callable[[], Config], clock: Clock) -> None:
        self._database = database
        self._config = config
        self._clock = clock
        self._kept_for: tuple[Path, object] | None = None
        self._kept: dict[str, Version] = {}
        self._known: frozenset[str] | None = None
        self._problem: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"shepherd-{self.content.replace(' ', '-')}")

    @abstractmethod
    def _configured(self, config: Config) -> str:
        """The folder that is set; empty: none."""

    @abstractmethod
    def _style(self, config: Config) -> object:
        """Has every file looked at again when it changes."""

    @abstractmethod
    def _agree(self, root: Path, user_id: str) -> None:
        """Bring the files of a user in step; OSError."""

    @abstractmethod
    def _remove(self, root: Path, folder: Path) -> RemovedFiles:
        """Remove what was written into the folder of a user; OSError."""

    @abstractmethod
    def _owner_of(self, folder: Path) -> str:
        """The digest of the user whose files a folder holds; empty if there are none."""

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep the folder in step, in the background; it ends after what is being written then."""
        self._thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            self._thread.join()

    @property
    def folder(self) -> Path | None:
        """Where the files are kept; None: nowhere."""
        configured = self._configured(self._config())
        return Path(configured).expanduser() if configured else None

    def follow(self, user_id: str) -> None:
        """Bring the files of a user in step now; where that fails, the thread tries it again."""
        self._try(user_id, lambda root: self._agree(root, user_id))

    def _try(self, user_id: str, bring_in_step: Callable[[Path], None]) -> None:
        root = self.folder
        if root is None:
            return
        try:
            bring_in_step(root)
        except OSError as error:
            self._kept.pop(user_id, None)
            logger.error("%s in %s are behind what is stored: %s", self.content, root, _reason(error))
        except DatabaseError as error:
            logger.error("%s in %s are behind what is stored: %s", self.content, root, error)

    def remove(self, user_id: str) -> RemovedFiles:
        """Remove all files of a user. OSError where one cannot be removed."""
        root = self.folder
        return RemovedFiles() if root is None else self._remove(root, root / folder_name(user_id))

    def beat(self) -> bool:
        """Bring all that has changed in step; False if something of it has to be tried again."""
        root = self.folder
        if root is None:
            return True
        try:
            problem = self._keep(root)
            self._note(problem)
        except DatabaseError as error:
            logger.debug("%s wait for the database: %s", self.content, error)
            return False
        return not problem

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            pause = BEAT_SECONDS if self.beat() else TROUBLE_SECONDS

    def _keep(self, root: Path) -> str:
        """Why something could not be done; else empty."""
        style = self._style(self._config())
        if self._kept_for != (root, style):
            self._kept_for, self._known = (root, style), None
            self._kept.clear()
        now = self._versions()
        found = [self._remove_erased(root, frozenset(now))]
        for user_id, version in now.items():
            if self._stopping.is_set():
                break
            if self._kept.get(user_id) != version:
                found.append(self._keep_user(root, user_id, version))
        return next(filter(None, found), "")

    def _keep_user(self, root: Path, user_id: str, version: Version) -> str:
        try:
            self._agree(root, user_id)
        except OSError as error:
            return _reason(error)
        self._kept[user_id] = version
        return ""

    def _versions(self) -> dict[str, Version]:
        with self._database.read() as connection:
            rows = connection.rows("select user_id, seq, epoch from users")
        return {user_id: (seq, epoch) for user_id, seq, epoch in rows}

    def _remove_erased(self, root: Path, known: frozenset[str]) -> str:
        """Users whom another process has erased leave no file; folders of nobody whom we knew stay."""
        if known == self._known:
            return ""
        try:
            folders = {folder_name(user_id) for user_id in known}
            for name in folders_in(root):
                if name not in folders and self._is_erased(self._owner_of(root / name)):
                    self._remove(root, root / name)
        except OSError as error:
            return _reason(error)
        self._known = known
        self._kept = {user_id: version for user_id, version in self._kept.items() if user_id in known}
        return ""

    def _is_erased(self, digest: str) -> bool:
        with self._database.read() as connection:
            return bool(digest) and erasures.is_erased(connection, digest)

    def _note(self, problem: str) -> None:
        """Let every process see how it went, when that changes."""
        if problem == self._problem:
            return
        with self._database.write() as tx:
            if problem:
                endpoint_state.note_trouble(tx, self.content, UNAVAILABLE, problem, self._clock())
            elif endpoint_state.get(tx, self.content).state != OK:
                endpoint_state.note_success(tx, self.content, self._clock())
        if problem:
            logger.error("%s cannot be kept in step, and are tried again: %s", self.content, problem)
        self._problem = problem


def _reason(error: OSError) -> str:
    # Without the path: names of users and sessions are in it.
    return error.strerror or str(error)
