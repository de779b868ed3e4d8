"""Keeps the configured folder of archives in step with the memory."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from shepherd_memory.archives import mirror
from shepherd_memory.archives.file_names import folder_name
from shepherd_memory.archives.markdown import ArchiveStyle
from shepherd_memory.archives.mirror import MirrorRules, UserMirror
from shepherd_memory.config import Config
from shepherd_memory.errors import DatabaseError
from shepherd_memory.storage import erasures
from shepherd_memory.storage.clock import Clock
from shepherd_memory.storage.database import Database
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.work import endpoint_state
from shepherd_memory.work.endpoint_state import ARCHIVES, OK, UNAVAILABLE

BEAT_SECONDS, TROUBLE_SECONDS = 1.0, 5.0

logger = logging.getLogger("shepherd_memory.archives")

Version = tuple[int, int]
"""What changes with everything that is written for a user."""


class ArchiveKeeper:
    """A thread that writes the archives of all users into `archive_folder`, if that is configured.

    Also without it running, what is forgotten through this process leaves the files in the same call.
    """

    def __init__(self, database: Database, config: Callable[[], Config], clock: Clock) -> None:
        self._database = database
        self._config = config
        self._clock = clock
        self._kept_for: tuple[Path, str] | None = None
        self._kept: dict[str, Version] = {}
        self._known: frozenset[str] | None = None
        self._problem: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shepherd-archives")

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
        """Where archives are kept; None: nowhere."""
        configured = self._config().archive_folder
        return Path(configured).expanduser() if configured else None

    def follow(self, user_id: str, session_id: str = "", group: str = MAIN_GROUP) -> None:
        """Bring the files of a user in step now; where that fails, the thread tries it again.

        With a session only that one of the group, which has a file from now on, also before its end.
        """
        root = self.folder
        if root is None:
            return
        try:
            self._agree(root, user_id, session_id, group)
        except OSError as error:
            self._kept.pop(user_id, None)
            logger.error("archives in %s are behind what is stored: %s", root, _reason(error))
        except DatabaseError as error:
            logger.error("archives in %s are behind what is stored: %s", root, error)

    def remove(self, user_id: str) -> int:
        """Remove all archives of a user; how many there were. OSError where one cannot be removed."""
        root = self.folder
        return 0 if root is None else mirror.remove_user(root, root / folder_name(user_id))

    def beat(self) -> bool:
        """Bring all that has changed in step; False if something of it has to be tried again."""
        root = self.folder
        if root is None:
            return True
        try:
            problem = self._keep(root)
            self._note(problem)
        except DatabaseError as error:
            logger.debug("archives wait for the database: %s", error)
            return False
        return not problem

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            pause = BEAT_SECONDS if self.beat() else TROUBLE_SECONDS

    def _keep(self, root: Path) -> str:
        """Why something could not be done; else empty."""
        if self._kept_for != (root, self._config().agent_name):
            self._kept_for, self._known = (root, self._config().agent_name), None
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

    def _agree(self, root: Path, user_id: str, session_id: str = "", group: str = MAIN_GROUP) -> None:
        style = ArchiveStyle(agent_name=self._config().agent_name)
        rules = MirrorRules(style, named=(group, session_id) if session_id else None)
        UserMirror(self._database, user_id, root, root / folder_name(user_id)).agree(rules, group)

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
            for name in mirror.folders_in(root):
                if name not in folders and self._is_erased(mirror.user_digest_in(root / name)):
                    mirror.remove_user(root, root / name)
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
                endpoint_state.note_trouble(tx, ARCHIVES, UNAVAILABLE, problem, self._clock())
            elif endpoint_state.get(tx, ARCHIVES).state != OK:
                endpoint_state.note_success(tx, ARCHIVES, self._clock())
        if problem:
            logger.error("archives cannot be kept in step, and are tried again: %s", problem)
        self._problem = problem


def _reason(error: OSError) -> str:
    # Without the path: names of users and sessions are in it.
    return error.strerror or str(error)
