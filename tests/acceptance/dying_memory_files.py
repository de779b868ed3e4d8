"""A process that mirrors memory files, and is killed when it has reached a point so often."""

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

from shepherd_memory.mirrors.memory_files import MemoryFileMirror
from shepherd_memory.storage.database import open_database


def main(url: str, folder: str, fatal: str, times: int) -> None:
    left = times

    def reach(point: str) -> None:
        nonlocal left
        left -= point == fatal
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    root = Path(folder)
    with closing(open_database(url)) as database:
        MemoryFileMirror(database, "ada", root, 5, reach).agree(root / "ada")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
