"""Long texts are embedded in little memory, whatever they hold."""

import subprocess
import sys
from pathlib import Path

from shepherd_memory.config import Config
from shepherd_memory.service import open_service

MAX_MB = 400
PARAGRAPH = "The harbour lantern was painted indigo, and nobody on the quay could say by whom or when. "
TEXTS = 12
CHARS = 8_000


# In a process between: what the tests' own process takes would count as the peak of its child.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_mb(command: list[str]) -> float:
    """What a process took at most, of the memory of the machine."""
    measured = subprocess.run([sys.executable, "-c", MEASURE, *command], stdout=subprocess.PIPE, check=True)
    return int(measured.stdout) * (1 if sys.platform == "darwin" else 1024) / 1_000_000


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
