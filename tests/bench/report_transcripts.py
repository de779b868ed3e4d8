"""What taking in transcripts costs, and in what memory: `python -m tests.bench.report_transcripts`."""

import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from shepherd_memory.config import Config
from shepherd_memory.embedding import Unavailable
from shepherd_memory.memory import entries
from shepherd_memory.service import open_service
from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.database import Database, open_database
from shepherd_memory.text.redaction import redact_each
from shepherd_memory.transcripts import ingestion, reading
from shepherd_memory.transcripts.ingestion import IngestOptions, ingest_file
from shepherd_memory.transcripts.sources import TranscriptEntry, source_named
from tests.bench.figures import each_database, ratio, write_line, write_shares, write_table
from tests.transcripts import agent_line, joined, output_line, user_line

MEGABYTE = 1_000_000
HOW = IngestOptions(3_600_000_000)
REAL = Path(__file__).parents[3] / "shared" / "data" / "transcripts"
EMBEDDED = 200
REPEATS = 7
SIZES = (50, 200)
WORDS = ["the", "kettle", "boils", "while", "we", "look", "at", "failing", "tests", "of", "a", "parser"]


def turn(number: int) -> list[dict[str, Any]]:
    """As sessions are: 1 KB of talk for 6 KB of tools' output and progress."""
    said = " ".join(f"{word}{(number * 7 + place) % 997}" for place, word in enumerate(WORDS * 2))
    progress = {"type": "progress", "data": {"output": said * 4}, "sessionId": "0b5e"}
    return [
        user_line(number, said),
        agent_line(number, f"{said} {said}"),
        agent_line(number, said[:60], tool="Bash"),
        output_line(number, said * 18),
        progress,
    ]


def write_session(path: Path, size: int) -> Path:
    """A file of about `size` bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        number = 0
        while file.tell() < size:
            file.write(b"".join(joined(turn(number + place)) for place in range(100)))
            number += 100
    return path


def cpu_of(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def parse_each(path: Path) -> None:
    """What nobody can do without: read the file, and parse each line."""
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)


def lines_of(path: Path) -> Iterator[bytes | None]:
    with path.open("rb") as file:
        yield from (raw for raw, _ in reading.lines(file, 0, path.stat().st_size))


def entries_of(path: Path) -> list[TranscriptEntry]:
    source = source_named("claude-code")
    reader = source.reader()
    read = [reading.read_line(source, reader, raw) for raw in lines_of(path)]
    return [entry for entry in read if isinstance(entry, TranscriptEntry)]


def parts_of(path: Path, whole: float) -> dict[str, float]:
    """Processor seconds of an import by part; storing is what the others leave of the whole."""
    said = entries_of(path)
    parts = {
        "lines": cpu_of(lambda: Counter(lines_of(path))),
        "parsing and reading them": cpu_of(lambda: entries_of(path)),
        "redaction": cpu_of(lambda: redact_each([entry.text for entry in said])),
        "their words, for the index": cpu_of(lambda: [entries.terms_of(entry.text) for entry in said]),
    }
    parts["parsing and reading them"] -= parts["lines"]
    parts["storing them: rows and index"] = whole - sum(parts.values())
    return parts


def report_speed(name: str, database: Database, label: str, path: Path) -> float:
    """Medians of runs in turn, so that what else the machine does falls on both alike."""
    size = path.stat().st_size / MEGABYTE
    found: list[ingestion.IngestResult] = []

    def take_in(user_id: str) -> None:
        found.append(ingest_file(database, user_id, path, path.parent, HOW, now_us))

    def both(number: int) -> tuple[float, float]:
        return cpu_of(lambda: parse_each(path)), cpu_of(lambda: take_in(f"{label} {number}"))

    runs = [both(number) for number in range(REPEATS)]
    least, spent = median(first for first, _ in runs), median(second for _, second in runs)
    rows = [
        ("read and orjson.loads", f"{size / least:.0f}", "1.00x"),
        ("import", f"{size / spent:.1f}", ratio(spent, least)),
    ]
    title = f"{label}, {size:.1f} MB, {found[0].entries:,} entries, {name} (our process only)"
    write_table(title, ("what", "MB per CPU second", "times the least"), rows)
    write_line(f"an entry: {spent / found[0].entries * 1e6:.0f} µs")
    return spent


def peak_of(size: int, folder: str) -> int:
    """The peak memory of a process that takes in so many megabytes."""
    command = [sys.executable, "-m", "tests.bench.report_transcripts", "peak", str(size), folder]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def take_in_alone(size: int, folder: Path) -> None:
    path = write_session(folder / "kettle" / f"{size}.jsonl", size * MEGABYTE)
    with closing(open_database(f"sqlite:///{folder}/{size}.db")) as database:
        ingest_file(database, "ada", path, folder, HOW, now_us)
    sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))


def report_memory() -> None:
    with tempfile.TemporaryDirectory() as folder:
        peaks = {size: peak_of(size, folder) for size in SIZES}
    rows = [(f"{size} MB", f"{peak / MEGABYTE:.0f} MB") for size, peak in peaks.items()]
    write_table("peak memory of a process that takes in a file, SQLite", ("file", "peak"), rows)


def report_embedding() -> None:
    """In the background the same happens, whenever the processor has time."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_session(Path(folder, "kettle", "a.jsonl"), 300_000)
        config = Config(memory_database=f"sqlite:///{folder}/memory.db")
        with open_service(config, worker=False) as service:
            service.transcripts.ingest("ada", path)
            waiting = service.unembedded("ada")
            try:
                service.embed()
            except Unavailable as error:
                write_line(f"without embedding: {error}")
                return
            began, done = time.process_time(), 0
            while done < EMBEDDED and (more := service.embed()):
                done += more
            rate = done / (time.process_time() - began)
    write_line("")
    write_line(f"embedding with the default model: {rate:.0f} entries per CPU second")
    write_line(f"so the {waiting} entries of a 0.3 MB session lag by {waiting / rate:.0f} s on one core")


def report() -> None:
    report_speeds()
    report_memory()
    report_embedding()


def report_speeds() -> None:
    with each_database() as databases, tempfile.TemporaryDirectory() as folder:
        made = write_session(Path(folder, "kettle", "made.jsonl"), 5 * MEGABYTE)
        real = max(REAL.rglob("*.jsonl"), key=lambda path: path.stat().st_size, default=made)
        for name, database in databases.items():
            whole = report_speed(name, database, "a made session", made)
            write_shares(f"an import's parts, {name}", parts_of(made, whole), len(entries_of(made)))
            if real is not made:
                whole = report_speed(name, database, "a real session", real)
                write_shares(f"an import's parts, {name}", parts_of(real, whole), len(entries_of(real)))


def main(arguments: list[str]) -> None:
    match arguments:
        case ["peak", size, folder]:
            take_in_alone(int(size), Path(folder))
        case ["speed"]:
            report_speeds()
        case _:
            report()


if __name__ == "__main__":
    main(sys.argv[1:])
