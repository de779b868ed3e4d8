"""The configuration as a running process sees it change."""

import os
import stat
import threading
from pathlib import Path

from shepherd_memory.config.keys import Config
from shepherd_memory.config.loading import Environ, load_config
from shepherd_memory.errors import ConfigError

Signature = tuple[int, int, int, int]
MAX_BLANK_BYTES = 4096


class LiveConfig:
    """Gives the configuration in force now, reading the file again only when it changed.

    A broken edit, or a file that has gone or was emptied, leaves the last good configuration in force;
    `problem` says so. A process that starts with an empty file has the defaults.
    Without a path the configuration simply stays.
    """

    def __init__(self, config: Config, path: Path | str | None = None, environ: Environ = os.environ) -> None:
        self._config = config
        self._path = Path(path) if path is not None else None
        self._environ = environ
        self._seen: Signature | None = None
        self._lock = threading.Lock()
        self.problem: str | None = None

    def current(self) -> Config:
        """The configuration in force; costs one `stat` unless the file changed."""
        if self._path is None:
            return self._config
        with self._lock:
            self._refresh(self._path)
            return self._config

    def _refresh(self, path: Path) -> None:
        signature = _signature(path)
        if signature == self._seen:
            return
        # Remembered before reading: a write in between is then noticed the next time.
        self._seen = signature
        if signature is None:
            self._note(f"{path} is gone; the settings last read stay in force")
            return
        if _is_empty(path):
            self._note(
                f"{path} is empty, as an editor or a full disk leaves it; the settings last read stay in "
                "force (a line with a comment says that no settings are meant)"
            )
            return
        try:
            self._config = load_config(path, self._environ)
            self.problem = None
        except ConfigError as error:
            self._note(f"{error}; the settings last read stay in force")

    def _note(self, problem: str) -> None:
        import logging  # a quarter of the time that a short command takes; only trouble needs it

        self.problem = problem
        logging.getLogger(__name__).warning("%s", problem)


def _is_empty(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return stat.S_ISREG(os.fstat(file.fileno()).st_mode) and not file.read(MAX_BLANK_BYTES).strip()
    except OSError:
        return False


def _signature(path: Path) -> Signature | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    # The change time as well: a file made readable again has the same content and modification time.
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
