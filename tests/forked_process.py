"""The program of the fork server, and what a process that it forks does to look freshly started."""

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fcntl import F_DUPFD_CLOEXEC, fcntl
from types import ModuleType
from typing import Any, TextIO

PACKAGES = ("shepherd_sqlite", "shepherd_postgres", "shepherd_memory")
IMPORTED_LATE = ("psycopg", "psycopg_pool")
"""What functions of ours import when they are called. Not onnxruntime, which starts threads at its import."""

MAX_DESCRIPTORS = 64


@dataclass(frozen=True)
class Job:
    """What a process is to be."""

    command: list[str]
    """`python -m module …` or `python -c program …`."""
    environ: dict[str, str]
    cwd: str
    umask: int
    descriptors: list[int]
    """The numbers which the descriptors that come with the job get."""
    new_session: bool

    def send(self, connection: socket.socket, descriptors: Sequence[int]) -> None:
        body = json.dumps(asdict(self)).encode()
        socket.send_fds(connection, [len(body).to_bytes(4, "big")], list(descriptors))
        connection.sendall(body)

    @classmethod
    def receive(cls, connection: socket.socket) -> "tuple[Job, list[int]] | None":
        """The next one and its descriptors; None if no more will come."""
        size, descriptors, _, _ = socket.recv_fds(connection, 4, MAX_DESCRIPTORS)
        if not size:
            return None
        body = connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL)
        return cls(**json.loads(body)), descriptors

    def begin(self, received: Sequence[int]) -> None:
        """Make this process what a fresh one is before its program."""
        if self.new_session:
            os.setsid()
        _place(received, self.descriptors)
        os.chdir(self.cwd)
        os.umask(self.umask)
        os.environ.clear()
        os.environ.update(self.environ)
        time.tzset()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _open_standard_streams()


def is_python(command: Sequence[str]) -> bool:
    """Whether this is a module or a program for our interpreter, without any option of the interpreter."""
    return len(command) > 2 and command[0] == sys.executable and command[1] in ("-m", "-c")


def run_program(command: Sequence[str]) -> None:
    """Be `python -m module …` or `python -c program …`, in a process that was forked."""
    _, kind, program, *arguments = command
    sys.argv = ["-c", *arguments]
    sys.orig_argv = list(command)
    folders = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    sys.path[:1] = [os.getcwd() if kind == "-m" else "", *folders]
    if kind == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(program, "<string>", "exec"), vars(sys.modules["__main__"]))


def _place(received: Sequence[int], numbers: Sequence[int]) -> None:
    """Give descriptors these numbers, and close all others."""
    above = max(numbers) + 1
    aside = [fcntl(descriptor, F_DUPFD_CLOEXEC, above) for descriptor in received]
    for descriptor, number in zip(aside, numbers, strict=True):
        os.dup2(descriptor, number)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in numbers:
            os.closerange(number, number + 1)


def _open_standard_streams() -> None:
    """As the interpreter does it: unbuffered if it was told so, in the encoding of the locale."""
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        stream = _opened(number, getattr(sys, f"__{name}__"))
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _opened(number: int, like: Any) -> TextIO:
    is_buffered = not os.environ.get("PYTHONUNBUFFERED")
    size = -1 if is_buffered or number == 0 else 0
    buffer: Any = os.fdopen(number, "wb" if number else "rb", buffering=size, closefd=False)
    getattr(buffer, "raw", buffer).name = like.name
    stream: Any = io.TextIOWrapper(
        buffer,
        like.encoding,
        like.errors,
        newline="\n",
        line_buffering=is_buffered and (number == 2 or buffer.isatty()),
        write_through=not is_buffered,
    )
    stream.mode = like.mode
    opened: TextIO = stream
    return opened


def _import_all() -> None:
    for package in map(importlib.import_module, PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)
    for name in IMPORTED_LATE:
        importlib.import_module(name)


def _serve(connection: socket.socket) -> Job | None:
    """Fork a process for each job; returns the job in that process, and None in the server at the end."""
    while found := Job.receive(connection):
        job, received = found
        ours, theirs = socket.socketpair()
        if (between := os.fork()) == 0:
            ours.close()
            if process := os.fork():
                theirs.sendall(process.to_bytes(4, "big"))
                os._exit(0)
            # It ends when the process between has ended: from then on this is a child of the test process.
            theirs.recv(1)
            # Their numbers may become the job's descriptors, which must not be closed with these objects.
            theirs.close()
            connection.detach()
            job.begin(received)
            return job
        number = ours.recv(4)
        os.waitpid(between, 0)
        ours.close()
        connection.sendall(number)
        for descriptor in (theirs.detach(), *received):
            os.close(descriptor)
    return None


class _Ending:
    """Ends a forked process once its threads and exit functions are done.

    To take down all the modules that it shares with the server would cost more than most programs.
    """

    code: int | None = None

    def watch(self, command: Sequence[str]) -> None:
        """Run a program, and learn what its exit code will be."""
        try:
            run_program(command)
            self.code = 0
        except SystemExit as exit:
            self.code = exit.code & 0xFF if isinstance(exit.code, int) else int(exit.code is not None)
            raise
        except KeyboardInterrupt:
            raise
        except BaseException:
            self.code = 1
            raise

    def end(self) -> None:
        if self.code is None:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            return  # the interpreter will try again, and has an exit code for it
        os._exit(self.code)


if __name__ == "__main__":
    ending = _Ending()
    # The first to be registered is the last to be called.
    atexit.register(ending.end)
    # Ctrl-C is for the tests and the processes under test.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import_all()
    # Collecting what they share would copy it into each of them.
    gc.collect()
    gc.freeze()
    its_job = _serve(socket.socket(fileno=int(sys.argv[1])))
    # Outside any function, so that the interpreter ends the process as it does any other.
    if its_job:
        ending.watch(its_job.command)
