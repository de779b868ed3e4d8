"""Processes from the fork server are what freshly started ones are."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fork_server import Popen, run, server_pid

SURROUNDINGS = """
import json, os, random, signal, sys, threading
with open("/proc/self/status") as status:
    mask = [line for line in status if line.startswith("Umask")]
print(json.dumps({
    "argv": sys.argv,
    "cwd": os.getcwd(),
    "environ": dict(os.environ),
    "umask": mask,
    "parent": os.getppid(),
    "session": os.getsid(0),
    "group": os.getpgrp(),
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "tasks": len(os.listdir("/proc/self/task")),
    "threads": [thread.name for thread in threading.enumerate()],
    "signals": {str(n): str(signal.getsignal(n)).split(" at ")[0] for n in signal.valid_signals()},
    "streams": [
        [s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.write_through, str(s.buffer)]
        for s in (sys.stdin, sys.stdout, sys.stderr)
    ],
    "flags": str(sys.flags),
    "path": sys.path,
    "executable": sys.executable,
    "original": sys.orig_argv[1:2],
    "main": sys.modules["__main__"].__name__,
}))
"""


def python(*command: str, **options: Any) -> subprocess.CompletedProcess[Any]:
    return run([sys.executable, *command], capture_output=True, timeout=60, **options)


def forked_or_cold(is_cold: bool, *command: str, **options: Any) -> Any:
    """The same process both ways."""
    starts = subprocess.run if is_cold else run
    return starts([sys.executable, *command], capture_output=True, timeout=60, **options)


def test_the_surroundings_are_those_of_a_fresh_process(tmp_path: Path) -> None:
    options = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": "/tmp/somewhere", "ONE": "two"}}
    fresh, forked = (
        forked_or_cold(is_cold, "-c", SURROUNDINGS, "--an", "argument", **options)
        for is_cold in (True, False)
    )
    assert (forked.returncode, forked.stderr) == (0, b"")
    assert forked.stdout.decode() == fresh.stdout.decode()


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("pass", 0),
        ("raise SystemExit", 0),
        ("raise SystemExit(3)", 3),
        ("raise SystemExit(-1)", 255),
        ("raise SystemExit('said')", 1),
        ("raise SystemExit([1])", 1),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("import os; os._exit(7)", 7),
        ("import atexit; atexit.register(print, 'last'); print('first'); raise SystemExit(4)", 4),
        ("import threading; threading.Thread(target=print, args=['thread']).start(); raise SystemExit(5)", 5),
        ("import sys; sys.stdout.write('no line'); sys.stderr.write('nor here')", 0),
        ("import os, sys; sys.stdout = open(1, 'w'); print('lost'); os.close(1)", 120),
    ],
)
def test_the_end_is_that_of_a_fresh_process(program: str, code: int) -> None:
    fresh, forked = (forked_or_cold(is_cold, "-c", program) for is_cold in (True, False))
    assert forked.returncode == fresh.returncode == code
    assert forked.stdout == fresh.stdout
    assert forked.stderr.splitlines()[-1:] == fresh.stderr.splitlines()[-1:]


def test_a_module_runs_as_the_main_program(tmp_path: Path) -> None:
    (tmp_path / "greeting.py").write_text("import sys\nprint(__name__, __spec__.name, sys.argv)\n")
    fresh, forked = (
        forked_or_cold(is_cold, "-m", "greeting", "Hello", cwd=tmp_path) for is_cold in (True, False)
    )
    assert forked.stdout == fresh.stdout != b""


def test_input_is_read_and_output_comes_as_it_is_written() -> None:
    echo = "import sys\nfor line in sys.stdin: print(line.strip()[::-1], flush=True)"
    with Popen[str](
        [sys.executable, "-c", echo], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in ("stressed", "drawer"):
            process.stdin.write(f"{word}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{word[::-1]}\n"
    assert process.returncode == 0


def test_two_children_have_nothing_of_each_other(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    change = "import os, sys; os.environ['LEFT'] = 'x'; os.chdir('/'); sys.argv.append('y'); os.umask(0)"
    one.mkdir()
    other.mkdir()
    assert python("-c", change, cwd=one, env={**os.environ, "ONLY": "here"}).returncode == 0
    look = "import os, sys; print(os.environ.get('LEFT'), os.environ.get('ONLY'), os.getcwd(), sys.argv)"
    assert python("-c", look, cwd=other, text=True).stdout == f"None None {other} ['-c']\n"


def test_random_numbers_are_not_those_of_the_last_one() -> None:
    draw = "import random, secrets, uuid; print(random.random(), secrets.token_hex(), uuid.uuid4())"
    assert python("-c", draw).stdout != python("-c", draw).stdout


def test_it_is_a_child_that_can_be_seen_killed_and_waited_for() -> None:
    process = Popen[bytes]([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL)
    assert process.pid in {child.pid for child in psutil.Process().children()}
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    assert not psutil.pid_exists(process.pid)


def test_a_session_of_its_own_and_further_descriptors_are_given_when_asked_for() -> None:
    ours, theirs = os.pipe()
    program = f"import os; os.write({theirs}, str(os.getsid(0) == os.getpid()).encode())"
    with Popen[bytes]([sys.executable, "-c", program], start_new_session=True, pass_fds=[theirs]) as process:
        os.close(theirs)
        assert os.read(ours, 10) == b"True"
        os.close(ours)
    assert process.returncode == 0


def test_many_are_started_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        outcomes = pool.map(lambda number: python("-c", f"raise SystemExit({number})").returncode, range(24))
        assert list(outcomes) == list(range(24))


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ((sys.executable, "-S", "-c"), {}),
        ((sys.executable, "-c"), {"env": {**os.environ, "PYTHONUTF8": "1"}}),
        ((sys.executable, "-c"), {"preexec_fn": lambda: None}),
    ],
)
def test_what_a_fork_cannot_imitate_starts_cold(command: tuple[str, ...], options: dict[str, Any]) -> None:
    look = "import sys; print('shepherd_memory.service' in sys.modules)"
    cold = run([*command, look], capture_output=True, timeout=60, text=True, **options)
    assert cold.stdout == "False\n"
    assert python("-c", look, text=True).stdout == "True\n"


def test_the_server_has_one_thread_and_no_children_and_ends_with_the_tests() -> None:
    assert python("-c", "pass").returncode == 0
    pid = server_pid()
    assert pid is not None
    server = psutil.Process(pid)
    assert server.num_threads() == 1
    assert server.children() == []
    program = (
        "import sys; from tests import fork_server; "
        "fork_server.run([sys.executable, '-c', 'pass'], timeout=60); print(fork_server.server_pid())"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not psutil.pid_exists(int(other.stdout))
