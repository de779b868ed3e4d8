"""Real processes that change one configuration file at once, and are killed while they do."""

import os
import random
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from shepherd_memory.config import load_config, set_value
from tests.acceptance.kills import KILLS
from tests.fork_server import Popen

ADD_PROVIDERS = """
import sys
from pathlib import Path
from shepherd_memory.config.providers import Provider, add_provider
path, writer, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(count):
    add_provider(path, Provider(f"w{writer}-{number}", model="m"))
"""

SET_FOREVER = """
import sys
from itertools import count
from pathlib import Path
from shepherd_memory.config import set_value
print("ready", flush=True)
for number in count():
    set_value(Path(sys.argv[1]), "rag_max_tokens", str(number))
"""


def start(program: str, *args: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", program, *map(str, args)]
    return Popen[bytes](command, stdout=subprocess.PIPE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shepherd" / "config.toml"


def test_writers_at_once_lose_nothing(path: Path) -> None:
    writers = [start(ADD_PROVIDERS, path, writer, 15) for writer in range(8)]
    for writer in writers:
        writer.communicate(timeout=120)
    assert [writer.returncode for writer in writers] == [0] * 8
    assert set(load_config(path, {}).providers) == {f"w{w}-{n}" for w in range(8) for n in range(15)}


def test_commands_at_once_lose_nothing(path: Path) -> None:
    values = {
        "user_id": "steve",
        "rag_max_results": "7",
        "memory_extraction_model": "m",
        "rag_max_tokens": "9",
    }
    shepherd = [sys.executable, "-m", "shepherd_memory", "--config", str(path), "config", "set"]
    commands = [Popen[bytes]([*shepherd, *item], stderr=subprocess.DEVNULL) for item in values.items()]
    assert [command.wait(60) for command in commands] == [0] * 4
    config = load_config(path, {})
    assert {key: str(getattr(config, key)) for key in values} == values


@pytest.mark.kills
def test_a_killed_writer_leaves_a_whole_private_file_and_no_lock(path: Path) -> None:
    set_value(path, "user_id", "steve")
    chance = random.Random(7)
    for _ in range(2 * KILLS):
        writer = start(SET_FOREVER, path)
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        threading.Event().wait(chance.uniform(0, 0.02))
        writer.send_signal(signal.SIGKILL)
        writer.communicate(timeout=60)
        assert load_config(path, {}).user_id == "steve"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    set_value(path, "rag_max_results", "5")
    assert sorted(os.listdir(path.parent)) == ["config.toml", "config.toml.lock"]


def test_there_is_no_moment_at_which_others_can_read_it(path: Path) -> None:
    set_value(path, "user_id", "steve")
    seen: set[int] = set()
    umask = os.umask(0)
    try:
        writer = start(SET_FOREVER, path)
        assert writer.stdout is not None
        writer.stdout.readline()
        for _ in range(3000):
            seen |= modes(path.parent)
        writer.kill()
        writer.communicate(timeout=60)
    finally:
        os.umask(umask)
    assert seen == {0o600}


def modes(folder: Path) -> set[int]:
    """The modes of whatever files are there now, passing ones included."""
    found = set()
    for entry in os.scandir(folder):
        try:
            found.add(stat.S_IMODE(entry.stat().st_mode))
        except FileNotFoundError:
            continue
    return found
