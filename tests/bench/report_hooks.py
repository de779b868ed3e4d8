"""What a hook costs the agent that waits for it, as a whole process: `python -m tests.bench.report_hooks`."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.figures import ratio, write_table
from tests.terminal.transcript_files import PROJECT, talk, write

RUNS = 15
SHEPHERD = str(Path(sys.executable).with_name("shepherd"))
HOOK = [SHEPHERD, "hooks", "run", "claude-code", "--max-seconds", "600"]
BARE = [sys.executable, "-c", "pass"]
SERVICE = [sys.executable, "-c", "import shepherd_memory.service"]
LINES = 400


class Site:
    """A home in which an agent has left transcripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._transcripts = folder / ".claude" / "projects" / "-home-ann-work-boat"
        (folder / "config.toml").write_text(
            f'user_id = "ann"\nmemory_database = "{folder / "memory.db"}"\nembedding_engine = "none"\n'
        )
        write(self._transcripts / "before.jsonl", talk([f"Line {number}." for number in range(LINES)]))
        self.cpu_milliseconds(HOOK, self.event("SessionEnd", "before"))

    def event(self, name: str, session_id: str) -> bytes:
        """What the agent tells of a session."""
        path = self._transcripts / f"{session_id}.jsonl"
        told = {"session_id": session_id, "transcript_path": str(path), "cwd": PROJECT}
        return json.dumps({**told, "hook_event_name": name}).encode()

    def cpu_milliseconds(self, command: list[str], told: bytes = b"") -> float:
        """User and system time of one process, its start and end included."""
        home = str(self.folder)
        environment = {
            "PATH": os.defpath,
            "HOME": home,
            "XDG_STATE_HOME": home,
            "SHEPHERD_CONFIG": str(self.folder / "config.toml"),
            "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode"),
        }
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=subprocess.DEVNULL) as process:
            assert process.stdin is not None
            process.stdin.write(told)
            process.stdin.close()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return 1000 * (usage.ru_utime + usage.ru_stime)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder))
        commands = {
            "python -c pass": (BARE, b""),
            "import of the service": (SERVICE, b""),
            "hook at the start of a session": (HOOK, site.event("SessionStart", "new")),
            "hook at its end, nothing new": (HOOK, site.event("SessionEnd", "before")),
        }
        spent: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(RUNS):
            for name, (command, told) in commands.items():
                spent[name].append(site.cpu_milliseconds(command, told))
    _write(spent)


def _write(spent: dict[str, list[float]]) -> None:
    least = min(spent["python -c pass"])
    rows = [
        (name, f"{min(runs):.0f} ms", f"{statistics.median(runs):.0f} ms", ratio(min(runs), least))
        for name, runs in spent.items()
    ]
    write_table(
        f"a whole process, CPU, {RUNS} runs", ("process", "least", "median", "against python -c pass"), rows
    )


if __name__ == "__main__":
    main()
