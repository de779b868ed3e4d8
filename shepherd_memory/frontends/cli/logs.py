"""Log lines of a process that stays: one line each on stderr, without memories."""

import json
import logging
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from shepherd_memory.config import private_files
from shepherd_memory.frontends.terminal.safe_text import escape_line, safe_json

REPEAT_SECONDS = 600
"""The same line again within this time is left out."""

MAX_FILE_BYTES = 1_000_000
PACKAGE = "shepherd_memory"


def log_to_stderr(as_json: bool, debug: bool) -> None:
    """Send what this package logs, and the warnings of others, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLogFormatter(debug) if as_json else LogFormatter(debug))
    handler.addFilter(NoRepeats())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(PACKAGE).setLevel(logging.DEBUG if debug else logging.INFO)


def log_quietly(debug: bool) -> None:
    """Leave the screen to whoever shows something there; with `debug` log to stderr all the same."""
    if debug:
        log_to_stderr(as_json=False, debug=True)
    else:
        logging.getLogger(PACKAGE).addHandler(logging.NullHandler())


def log_to_file(path: Path, debug: bool, level: int) -> None:
    """Send what this package logs, and the warnings of others, to a file that only its owner can read.

    One that has grown large makes room for another.
    """
    private_files.make_folder(path.parent)
    with suppress(FileNotFoundError):
        if path.stat().st_size > MAX_FILE_BYTES:
            path.replace(path.with_suffix(".old.log"))
    # Before it is written, also where an earlier one was left open to others: it may say what users asked.
    path.touch(mode=0o600)
    path.chmod(0o600)
    handler = logging.FileHandler(path)
    handler.setFormatter(LogFormatter(debug))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(PACKAGE).setLevel(logging.DEBUG if debug else level)


class LogFormatter(logging.Formatter):
    """`2026-02-14 09:31:02 warning worker: what happened`, in local time."""

    def __init__(self, debug: bool) -> None:
        super().__init__()
        self._debug = debug

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).isoformat(" ", "seconds")
        fields = "".join(f" {key}={value}" for key, value in _fields(record).items())
        line = escape_line(f"{at} {record.levelname.lower()} {_name(record)}: {_message(record)}{fields}")
        if self._debug and record.exc_info:
            return f"{line}\n{self.formatException(record.exc_info)}"
        return line


class JsonLogFormatter(LogFormatter):
    """The same as a JSON object, in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "name": _name(record),
            "message": _message(record),
            **_fields(record),
        }
        if self._debug and record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return safe_json(json.dumps(entry, ensure_ascii=False))


def _name(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{PACKAGE}.").removeprefix("frontends.cli.").removeprefix("frontends.")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """What a line tells beside its message: given as `extra={"fields": {…}}`."""
    fields: dict[str, object] = getattr(record, "fields", {})
    return fields


def _message(record: logging.LogRecord) -> str:
    """An exception is named with its place, not quoted: its text might hold a memory."""
    if not record.exc_info or record.exc_info[0] is None:
        return record.getMessage()
    kind, _, traceback = record.exc_info
    return f"{record.getMessage()}: {kind.__name__} at {_place(traceback)} (--debug shows more)"


def _place(traceback: TracebackType | None) -> str:
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return "an unknown place"
    return f"{Path(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno}"


class NoRepeats(logging.Filter):
    """Lets a line through that differs from the one before, or comes long after it."""

    def __init__(self) -> None:
        super().__init__()
        self._last = ("", 0.0)

    def filter(self, record: logging.LogRecord) -> bool:
        text, at = self._last
        if not _fields(record) and record.getMessage() == text and time.monotonic() - at < REPEAT_SECONDS:
            return False
        self._last = (record.getMessage(), time.monotonic())
        return True
