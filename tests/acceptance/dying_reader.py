"""A process whose children take in a transcript and are killed, each at another moment, until it is all in.

Children are forked, and so begin at once.
"""

import os
import random
import signal
import sys
import time
import traceback
from contextlib import closing
from pathlib import Path
from typing import NoReturn

from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.database import open_database
from shepherd_memory.transcripts import ingestion
from shepherd_memory.transcripts.ingestion import IngestOptions, ingest_file

GAP_US = 3_600_000_000
MAX_BATCHES = 4
MAX_WAIT_SECONDS = 0.004


def take_in(url: str, user_id: str, path: Path, how: IngestOptions) -> None:
    """As one process does; nobody waits for the lease of one that was killed, which is of this machine."""
    ingestion.BATCH_ENTRIES = ingestion.PURGE_BATCH = 3
    with closing(open_database(url)) as database:
        ingest_file(database, user_id, path, path.parent.parent, how, now_us)


def child(url: str, user_id: str, path: Path, reimport: bool) -> tuple[int, int]:
    """Fork one; its process, and where it writes a byte for each batch that it has stored."""
    batches, stored = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(batches)
        be_child(url, user_id, path, reimport, stored)
    os.close(stored)
    return process, batches


def be_child(url: str, user_id: str, path: Path, reimport: bool, stored: int) -> NoReturn:
    def tell(_: int) -> None:
        os.write(stored, b".")

    try:
        take_in(url, user_id, path, IngestOptions(GAP_US, reimport, progress=tell))
        os._exit(0)
    finally:
        traceback.print_exc()
        os._exit(1)


def is_killed(process: int, batches: int, chance: random.Random) -> bool:
    """Kill a child after a few batches and a moment; False if it was done before."""
    for _ in range(chance.randrange(MAX_BATCHES)):
        os.read(batches, 1)
    time.sleep(chance.uniform(0, MAX_WAIT_SECONDS))
    os.kill(process, signal.SIGKILL)
    os.close(batches)
    ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert ended in (0, -signal.SIGKILL)
    return ended != 0


def main(url: str, user_id: str, undisturbed: str, path: Path, wanted: int, seed: int) -> None:
    """Until so many were killed; then the rest for that user, and all of it for another."""
    chance = random.Random(seed)
    open_database(url).close()
    kills = 0
    while kills < wanted:
        # Whoever is through begins anew, with what was read before to be removed.
        is_through = not is_killed(*child(url, user_id, path, reimport=False), chance)
        kills += not is_through
        if is_through and kills < wanted:
            kills += is_killed(*child(url, user_id, path, reimport=True), chance)
    take_in(url, user_id, path, IngestOptions(GAP_US))
    take_in(url, undisturbed, path, IngestOptions(GAP_US))
    sys.stdout.write(f"kills {kills}\n")


if __name__ == "__main__":
    main(*sys.argv[1:4], Path(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]))
