"""The `shepherd` command as tests call it: in this process, as a process, and on a terminal."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from click.testing import CliRunner, Result

from shepherd_memory.config import load_config
from shepherd_memory.frontends.cli import cli
from shepherd_memory.service import Service, open_service
from tests.fork_server import Popen
from tests.fork_server import run as run_process

COMMAND = (sys.executable, "-m", "shepherd_memory")


def run(*args: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, args, input=stdin)


def good(*args: str, stdin: str | bytes | None = None) -> Result:
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


def data(*args: str, stdin: str | bytes | None = None) -> Any:
    return json.loads(good(*args, "--json", stdin=stdin).stdout)


def rows(*args: str) -> list[list[str]]:
    return [line.split("\t") for line in good(*args).stdout.splitlines()]


def process(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return run_process([*COMMAND, *args], capture_output=True, text=True, timeout=60, **options)


def with_service(use: Callable[[Service], Any]) -> Any:
    """What `use` makes of the service that commands open."""
    with open_service(load_config(), worker=False) as service:
        return use(service)


def on_terminal(*args: str, typed: str = "", columns: int = 80) -> tuple[int, str]:
    """The exit code, and what a person sees."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
    started = Popen[bytes]([*COMMAND, *args], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    if typed:
        os.write(ours, typed.encode())
    seen = b""
    # Linux says EIO when the other end is closed.
    with suppress(OSError):
        while piece := os.read(ours, 4096):
            seen += piece
    os.close(ours)
    return started.wait(60), seen.decode().replace("\r\n", "\n")
