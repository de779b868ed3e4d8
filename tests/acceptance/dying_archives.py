"""A process that brings a folder of archives in step, and is killed when it has reached a point so often."""

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

from shepherd_memory.archives.mirror import MirrorRules, UserMirror
from shepherd_memory.mirrors.folder_names import folder_name
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
        UserMirror(database, "ada", root, root / folder_name("ada")).agree(MirrorRules(fault=reach))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
