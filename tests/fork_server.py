"""Starts `python -m …` and `python -c …` by forking a server that has already imported this project.

    from tests.fork_server import Popen, run

`Popen` and `run` are those of `subprocess`, at a tenth of the cost of a cold start. Each process is a child
of the test process with a number, signals and an exit status of its own. What a fork cannot imitate starts
cold: a `preexec_fn`, another program, another locale.
"""

import atexit
import ctypes
import functools
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, AnyStr

from tests.forked_process import Job, is_python

ROOT = Path(__file__).parents[1]
READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "TEXTUAL")
"""Prefixes of variables which the interpreter or a library reads once, when the server starts."""

FORKABLE_OPTIONS = {
    *("stdin", "stdout", "stderr", "cwd", "env", "start_new_session", "pass_fds"),
    *("text", "encoding", "errors", "bufsize"),
}
PR_SET_CHILD_SUBREAPER = 36
STOP_SECONDS = 30


class Popen(subprocess.Popen[AnyStr]):
    """A `subprocess.Popen` whose process comes from the fork server, unless it has to start cold."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        self._job = _job(command, options)
        super().__init__(command, **options)

    # What the class calls, with 23 positional arguments, once it has made the pipes.
    def _execute_child(self, *arguments: Any) -> None:
        if self._job is None:
            super()._execute_child(*arguments)  # type: ignore[misc]
            return
        pipes = arguments[10:16]
        theirs = [number if end == -1 else end for number, end in enumerate(pipes[i] for i in (0, 3, 5))]
        self.pid = _server().start(self._job, [*theirs, *self._job.descriptors[3:]])
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def run(
    command: Sequence[str], *, input: Any = None, capture_output: bool = False, timeout: float, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """As `subprocess.run`, without its `check`."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with Popen[Any](command, **options) as process:
        try:
            output, errors = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def server_pid() -> int | None:
    """The server's process; None if nothing was forked yet."""
    return _server().pid if _only_server.cache_info().currsize else None


def _job(command: Sequence[str], options: Mapping[str, Any]) -> Job | None:
    """What a forked process is to be; None if it could not be what a fresh one is."""
    environ = dict(os.environ if options.get("env") is None else options["env"])
    cwd = os.path.abspath(options.get("cwd") or ".")
    if (
        sys.platform != "linux"
        or not is_python(command)
        or not options.keys() <= FORKABLE_OPTIONS
        or not os.path.isdir(cwd)
        or _read_at_start(environ) != _server().read_at_start
    ):
        return None
    descriptors = [0, 1, 2, *options.get("pass_fds", ())]
    return Job(list(command), environ, cwd, _umask(), descriptors, options.get("start_new_session", False))


def _read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    # PYTHONPATH is the one of them that a forked process can follow.
    return {
        name: value
        for name, value in environ.items()
        if name.startswith(READ_AT_START) and name != "PYTHONPATH"
    }


def _umask() -> int:
    """Ours, without changing it for a moment as `os.umask` would."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 8) for line in lines if line.startswith("Umask:"))


_starting = threading.Lock()


def _server() -> "_ForkServer":
    # Of two that threads start at once, one would be nobody's.
    with _starting:
        return _only_server()


@functools.cache
def _only_server() -> "_ForkServer":
    return _ForkServer()


class _ForkServer:
    """The server process; it ends with the connection to it, and so with the test process."""

    def __init__(self) -> None:
        # Whose parent has ended becomes a child of this process instead of init's.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._connection, theirs = socket.socketpair()
        self.read_at_start = _read_at_start(os.environ)
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.forked_process", str(theirs.fileno())],
                cwd=ROOT,
                # A library with threads of its own could not be forked.
                env={**environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self.pid = self._process.pid
        self._lock = threading.Lock()
        atexit.register(self._stop)

    def start(self, job: Job, descriptors: Sequence[int]) -> int:
        """Have a process forked; its number."""
        with self._lock:
            job.send(self._connection, descriptors)
            return int.from_bytes(self._connection.recv(4, socket.MSG_WAITALL), "big")

    def _stop(self) -> None:
        self._connection.close()
        self._process.wait(STOP_SECONDS)
