"""Long texts are embedded in little memory, whatever they hold."""

import os
import subprocess
import sys
from pathlib import Path

from shepherd_memory.config import Config
from shepherd_memory.service import open_service

MAX_MB = 400
PARAGRAPH = "The harbour lantern was painted indigo, and nobody on the quay could say by whom or when. "
TEXTS = 12
CHARS = 8_000


def peak_mb(command: list[str]) -> float:
    """What a process took at most, of the memory of the machine."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1_000_000


def test_many_long_texts_are_embedded_within_the_memory_of_a_small_server(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f'user_id = "ann"\nmemory_database = "{tmp_path}/memory.db"\n')
    config = Config(memory_database=f"{tmp_path}/memory.db", embedding_engine="none")
    with open_service(config) as service:
        for number in range(TEXTS):
            text = f"{number}. " + PARAGRAPH * (CHARS // len(PARAGRAPH))
            service.remember("ann", [{"role": "user", "content": text}], "chat")
    command = [sys.executable, "-m", "shepherd_memory", "--config", str(path), "memory", "reembed"]
    assert peak_mb(command) < MAX_MB
