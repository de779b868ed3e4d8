"""Names of holders of leases: of a process that has ended, and of one elsewhere."""

import sys
from functools import lru_cache
from pathlib import Path

from shepherd_memory.storage.lease_owner import new_owner
from tests.fork_server import run

PRINTED = "from shepherd_memory.storage.lease_owner import new_owner; print(new_owner())"


@lru_cache(maxsize=1)
def ended_owner() -> str:
    """The name of a process of this machine that is no more."""
    ran = run(
        [sys.executable, "-c", PRINTED],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return str(ran.stdout.strip())


def owner_elsewhere() -> str:
    """The name of a process of another machine, with the number of one that is no more here."""
    _, rest = ended_owner().split(":", 1)
    return f"elsewhere:{rest}"


def owner_before_reboot() -> str:
    """The name of a process of this machine from before it was started anew."""
    host, pid, started, _, number = ended_owner().split(":")
    return f"{host}:{pid}:{started}:another-boot/1:{number}"


def owner_with_our_number() -> str:
    """The name of a process that had our number before us."""
    host, pid, _, boot, number = new_owner().split(":")
    return f"{host}:{pid}:1:{boot}:{number}"
