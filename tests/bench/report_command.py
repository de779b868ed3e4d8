"""What a small command costs as a whole process: `python -m tests.bench.report_command`."""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.figures import ratio, write_table

RUNS = 15
SHEPHERD = str(Path(sys.executable).with_name("shepherd"))
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    'python -c "import click"': [sys.executable, "-c", "import click"],
    "shepherd config set user_id steve": [SHEPHERD, "config", "set", "user_id", "steve"],
}


def cpu_milliseconds(command: list[str], home: str) -> float:
    """User and system time of one process, its start and end included."""
    environment = {"PATH": os.defpath, "HOME": home, "XDG_CONFIG_HOME": home}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return 1000 * (usage.ru_utime + usage.ru_stime)


def main() -> None:
    spent: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(RUNS):
            for name, command in COMMANDS.items():
                spent[name].append(cpu_milliseconds(command, home))
    least = min(spent["python -c pass"])
    rows = [
        (name, f"{min(runs):.0f} ms", f"{statistics.median(runs):.0f} ms", ratio(min(runs), least))
        for name, runs in spent.items()
    ]
    write_table(
        f"a whole process, CPU, {RUNS} runs", ("command", "least", "median", "against python -c pass"), rows
    )


if __name__ == "__main__":
    main()
