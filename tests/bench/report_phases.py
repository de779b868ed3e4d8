"""What notes of conversations cost us, and in what memory: `make bench-phases DATA=folder`.

The folder has transcripts of agents; without one, sessions are made up. The model answers at once, in another
process: what is left is our own time.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from shepherd_memory.config import Config
from shepherd_memory.phases.planning import queue
from shepherd_memory.service import Service, open_service
from shepherd_memory.storage.clock import now_us
from tests.bench.figures import write_line, write_table
from tests.bench.instant_endpoint import NOTE, instant_endpoint
from tests.bench.report_transcripts import write_session

USER = "ann"
BUDGET = 32_000
FEWEST = 5
MADE_UP_BYTES = (200_000, 2_000_000, 14_000_000)
"""Of files: about a seventh of each is talk."""


def config_for(database: Path, endpoint: str) -> Config:
    return Config(
        memory_database=str(database),
        memory_phases=True,
        memory_phase1_endpoint=endpoint,
        memory_phase1_model="instant",
        memory_phase1_input_tokens=BUDGET,
        memory_phase_providers="*",
        memory_phase_originators="*",
        embedding_engine="none",
    )


def take_in(database: Path, folder: Path) -> None:
    """Every transcript below a folder."""
    with open_service(config_for(database, ""), worker=False) as service:
        for path in sorted(folder.rglob("*.jsonl")):
            service.transcripts.ingest(USER, path, folder)
        service.transcripts.poll()


def make_notes(service: Service) -> tuple[Counter[str], float]:
    """Make the notes of all conversations, whatever their age; what became of them, and our seconds."""
    found = [one.conversation for one in service.conversation_notes(USER, limit=100_000)]
    queue(service.database, USER, [one for one in found if one.entries >= FEWEST], lambda one: True, now_us())
    (lane,) = service.phases.lanes
    began = time.process_time()
    outcomes = Counter(outcome.detail for outcome in iter(lane.run_once, None))
    return outcomes, time.process_time() - began


def report(database: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    with instant_endpoint(NOTE) as url, open_service(config_for(database, url), worker=False) as service:
        outcomes, seconds = make_notes(service)
        usage = [line for line in service.usage(USER) if line.purpose == "phase1"]
        with service.database.read() as connection:
            row = connection.row("select count(*), coalesce(sum(length(text)), 0) from documents")
    assert row is not None
    made, calls = sum(outcomes.values()), sum(line.calls for line in usage)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    rows = [
        ("messages stored", f"{row[0]:,}"),
        ("their characters", f"{row[1]:,}"),
        ("conversations", f"{made:,}"),
        ("calls", f"{calls:,}"),
        ("our CPU", f"{seconds:.2f} s"),
        ("conversations per second of it", f"{made / seconds:.1f}"),
        ("peak memory", f"{peak:.0f} MB ({peak - before:.0f} MB more than at the start)"),
    ]
    write_table("Notes of conversations", ("", ""), rows)
    for outcome, number in outcomes.most_common():
        write_line(f"{number} {outcome}")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--take-in"]:
        return take_in(Path(arguments[1]), Path(arguments[2]))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(arguments[0]) if arguments else Path(made, "sessions")
        for number, size in enumerate(() if arguments else MADE_UP_BYTES):
            write_session(folder / "project" / f"session-{number}.jsonl", size)
        database = Path(made, "memory.db")
        # In a process of its own: what reading files takes is another report's.
        command = [sys.executable, "-m", "tests.bench.report_phases", "--take-in", str(database), str(folder)]
        subprocess.run(command, check=True)
        report(database)


if __name__ == "__main__":
    main(sys.argv[1:])
