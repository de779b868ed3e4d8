"""What notes of conversations and their consolidation cost us: `make bench-phases DATA=folder`.

The folder has transcripts of agents; without one, sessions are made up. The model answers at once, in another
process: what is left is our own time.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from shepherd_memory.config import Config
from shepherd_memory.consolidation import planning
from shepherd_memory.phases import dirtiness
from shepherd_memory.phases.planning import queue
from shepherd_memory.service import Service, open_service
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import now_us
from shepherd_memory.text.groups import MAIN_GROUP
from tests.bench.figures import ratio, write_line, write_table
from tests.bench.instant_endpoint import AGENT, NOTE, instant_endpoint
from tests.bench.report_transcripts import write_session

USER = "ann"
BUDGET = 32_000
FEWEST = 5
MADE_UP_BYTES = (200_000, 2_000_000, 14_000_000)
"""Of files: about a seventh of each is talk."""

CONSOLIDATIONS = 20
TIMED_CALLS = 60


def config_for(database: Path, endpoint: str, agent: str = "") -> Config:
    return Config(
        memory_database=str(database),
        memory_phases=bool(endpoint),
        memory_phase2_endpoint=agent,
        memory_phase2_model="instant" if agent else "",
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


def consolidate(service: Service) -> tuple[Counter[str], float]:
    """Consolidate as often, everything anew each time; what became of it, and our seconds."""
    outcomes: Counter[str] = Counter()
    seconds = 0.0
    for _ in range(CONSOLIDATIONS):
        with service.database.write() as tx:
            users.lock(tx, USER, now_us())
            dirtiness.mark(tx, USER, MAIN_GROUP, now_us())
        planning.queue(service.database, USER, MAIN_GROUP, now_us())
        began = time.process_time()
        outcome = service.consolidation.lane.run_once()
        seconds += time.process_time() - began
        outcomes[outcome.detail if outcome else "nothing to do"] += 1
    return outcomes, seconds


def report_consolidation(database: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    with (
        instant_endpoint(AGENT) as url,
        open_service(config_for(database, url, url), worker=False) as service,
    ):
        plan = service.consolidate(USER, dry_run=True)
        outcomes, seconds = consolidate(service)
        calls = sum(line.calls for line in service.usage(USER) if line.purpose == "phase2")
        files = service.memory_file_tree(USER)
    assert plan is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    sections = sum(text.count("\n## ") for path, text in files.items() if path == "MEMORY.md")
    rows = [
        ("notes selected", f"{plan.added + plan.retained:,}"),
        ("consolidations", f"{CONSOLIDATIONS}"),
        ("calls", f"{calls:,}"),
        ("our CPU", f"{seconds:.2f} s"),
        ("consolidations per second of it", f"{CONSOLIDATIONS / seconds:.1f}"),
        ("peak memory", f"{peak:.0f} MB ({peak - before:.0f} MB more than before)"),
        ("files", f"{len(files):,} with {sum(map(len, files.values())):,} characters"),
        ("sections of MEMORY.md", f"{sections}, {len(files['MEMORY.md']):,} characters"),
    ]
    write_table("Consolidation", ("", ""), rows)
    for outcome, number in outcomes.most_common():
        write_line(f"{number} {outcome}")


def time_calls(database: Path) -> dict[str, float]:
    """What calls take with phases off, in milliseconds: the least of our CPU."""
    said = [{"role": "user", "content": "Which error came up in the build?"}]
    with open_service(config_for(database, ""), worker=False) as service:
        calls: dict[str, Callable[[], object]] = {
            "remember": lambda: service.remember(USER, said, f"bench-{time.process_time_ns()}"),
            "recall": lambda: service.recall(USER, "which error came up in the build"),
            "inject": lambda: service.inject(USER, said),
        }
        return {name: _least_ms(call) for name, call in calls.items()}


def _least_ms(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(TIMED_CALLS):
        began = time.process_time()
        call()
        taken.append((time.process_time() - began) * 1000)
    return min(taken)


def report_calls(before: dict[str, float], after: dict[str, float]) -> None:
    rows = [
        (name, f"{before[name]:.2f} ms", f"{after[name]:.2f} ms", ratio(after[name], before[name]))
        for name in before
    ]
    write_table("With phases off", ("", "transcripts", "with notes and sections", ""), rows)


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
        before = time_calls(database)
        report(database)
        report_consolidation(database)
        report_calls(before, time_calls(database))


if __name__ == "__main__":
    main(sys.argv[1:])
