"""The name of whoever holds a lease, by which others of the same machine can tell whether it still runs."""

import os
import socket
import uuid
from functools import lru_cache
from pathlib import Path

_PROC = Path("/proc")


def new_owner() -> str:
    """A name for one holder of leases in this process: `host:pid:start:boot:number`, unlike any other."""
    pid = os.getpid()
    return f"{_host()}:{pid}:{_started_at(pid)}:{_boot()}:{uuid.uuid4().hex}"


def is_gone(owner: str) -> bool:
    """Whether the process of that name has surely ended: it ran here, since the last boot.

    Of one elsewhere, or of a name that says less, nothing is known: its lease has to run out.
    """
    host, pid, started, boot = _parts(owner)
    if not boot or (host, boot) != (_host(), _boot()) or not started or not pid.isdecimal():
        return False
    return not _exists(int(pid)) or _started_at(int(pid)) not in ("", started)


def _parts(owner: str) -> tuple[str, str, str, str]:
    parts = owner.split(":")
    return (parts[0], parts[1], parts[2], parts[3]) if len(parts) == 5 else ("", "", "", "")


def _host() -> str:
    return socket.gethostname().replace(":", "-")


@lru_cache(maxsize=1)
def _boot() -> str:
    """Which run of which machine's kernel, and which of its spaces of process numbers; empty if unknown.

    Containers of one machine have one kernel, may have one name, and cannot see each other's processes.
    """
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        space = os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return ""
    return f"{boot}/{''.join(filter(str.isdecimal, space))}"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _started_at(pid: int) -> str:
    """When a process began, in the kernel's ticks; `ended` of one that nobody has waited for yet."""
    try:
        # Its second field is its name, in brackets, and may hold anything.
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    if len(fields) < 20:
        return ""
    state, threads, started = fields[0], fields[17], fields[19]
    # Its first thread may end before the others.
    return "ended" if state in "ZX" and threads in ("0", "1") else started
