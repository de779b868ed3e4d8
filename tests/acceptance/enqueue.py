"""A process that remembers numbered statements, and writes each number down once `remember` has returned.

Started again, it goes on where its file ends, and offers the last number once more.
"""

import os
import sys
import threading
from pathlib import Path

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.errors import DatabaseUnavailable
from shepherd_memory.service import Service
from tests.acceptance.statements import remember

PAUSE_SECONDS = 0.005


def acknowledged(path: Path) -> list[int]:
    """The numbers in the file; a half-written last line counts for nothing."""
    whole_lines = path.read_text().rpartition("\n")[0] if path.exists() else ""
    return [int(line) for line in whole_lines.split()]


def main(config_path: Path, acknowledgements: Path, count: int) -> None:
    done = acknowledged(acknowledgements)
    first = done[-1] if done else 0
    descriptor = os.open(acknowledgements, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with open_service(load_config(config_path, {}), config_path=config_path, worker=False) as service:
        for number in range(first, count):
            insist(service, number)
            os.write(descriptor, f"{number}\n".encode())
            os.fsync(descriptor)
            threading.Event().wait(PAUSE_SECONDS)


def insist(service: Service, number: int) -> None:
    """As a frontend would: a database that is away for a moment is asked again."""
    while True:
        try:
            return remember(service, number)
        except DatabaseUnavailable as error:
            sys.stderr.write(f"{number}: {error}\n")
            threading.Event().wait(PAUSE_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
