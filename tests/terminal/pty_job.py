"""A small shell, one command in the foreground of its terminal. It is forked, and so is its command."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import termios
from contextlib import suppress
from types import FrameType

from tests.forked_process import is_python, run_program


def be_shell(reports: int, command: list[str]) -> None:
    """Run a job in the foreground, say its number and how it ended, and hold the terminal until told."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    job = _fork(command, reports) if is_python(command) else _execute(command)

    def pass_on(number: int, _: FrameType | None) -> None:
        # As a shell does it when its window is closed.
        with suppress(ProcessLookupError):
            os.killpg(job, number)

    signal.signal(signal.SIGHUP, pass_on)
    with socket.socket(fileno=reports) as line:
        line.sendall(b"%d\n" % job)
        code = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
        with suppress(OSError):
            line.sendall(json.dumps({"exit": code}).encode() + b"\n")
            line.recv(1)


def _fork(command: list[str], reports: int) -> int:
    """Start `python -m …` without a new interpreter; its process, once it is in the foreground."""
    told, tells = os.pipe()
    if job := os.fork():
        os.close(tells)
        os.read(told, 1)
        os.close(told)
        return job
    _come_to_the_foreground()
    for descriptor in (told, tells, reports):
        os.close(descriptor)
    run_program(command)
    sys.exit()


def _execute(command: list[str]) -> int:
    return subprocess.Popen(command, preexec_fn=_come_to_the_foreground).pid


def _come_to_the_foreground() -> None:
    os.setpgid(0, 0)
    # Whoever is not in the foreground yet is stopped for asking.
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, before)


if __name__ == "__main__":
    be_shell(int(sys.argv[1]), sys.argv[2:])
