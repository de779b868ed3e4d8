"""Commands whose output goes nowhere: a closed stdout, a reader that has left, a full device."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.fork_server import Popen
from tests.terminal.shell import COMMAND, good


def in_shell(command: str, ending: str) -> subprocess.CompletedProcess[str]:
    """`shepherd COMMAND ENDING` in a shell, such as `facts >&-`; its exit code is that of shepherd."""
    line = f"set -o pipefail; {shlex.join(COMMAND)} {command} {ending}"
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)


@pytest.fixture(autouse=True)
def stocked() -> None:
    good("facts", "set", "city", "Porto")
    for number in range(3):
        good("remember", f"line {number} " + "a" * 60_000, "--session", "s")


PRINTING = [
    "--help",
    "--version",
    "whoami",
    "facts",
    "facts --json",
    "recall city",
    "documents",
    "memory export",
]


@pytest.mark.parametrize("command", PRINTING)
def test_with_a_closed_stdout_a_command_that_prints_fails_in_one_line(command: str) -> None:
    done = in_shell(command, ">&-")
    # Notes may stand before it.
    last = done.stderr.splitlines()[-1]
    assert last == "shepherd: cannot print to stdout: Bad file descriptor; it was closed before"
    assert (done.returncode, done.stderr.count("Traceback"), done.stderr.count("shepherd: ")) == (1, 0, 1)


def test_with_a_closed_stdout_a_command_that_prints_nothing_is_done() -> None:
    done = in_shell("facts set city Lisbon", ">&-")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert good("facts").stdout.startswith("city\tLisbon")


@pytest.mark.parametrize("closed", [">&- 2>&-", "<&- >&- 2>&-", "2>&-", "<&-"])
def test_no_file_takes_the_place_of_a_stream_that_was_closed(closed: str, tmp_path: Path) -> None:
    in_shell("remember 'I moved to Faro' --session t", closed)
    database = next(tmp_path.glob("memory.db"))
    assert database.read_bytes().startswith(b"SQLite format 3\0")
    assert "Faro" in good("documents", "--session", "t").stdout


@pytest.mark.parametrize("command", ["--help", "documents", "documents --json", "memory export", "facts"])
@pytest.mark.parametrize("wanted", [0, 1])
def test_a_reader_that_leaves_early_ends_a_command_quietly(command: str, wanted: int) -> None:
    ours, theirs = os.pipe()
    with Popen[bytes]([*COMMAND, *command.split()], stdout=theirs, stderr=subprocess.PIPE) as started:
        os.close(theirs)
        assert len(os.read(ours, wanted)) == wanted
        os.close(ours)
        assert started.stderr is not None
        assert started.stderr.read() == b""
