"""What the API server costs under load: `make bench-server`, or with `--quick` in less than a minute.

In one run, against a provider that answers at once: nobody between, a bare aiohttp relay, ours with memory
off, ours with memory on. Provider, load and servers are processes of their own on loopback; they take turns,
and figures are medians of the rounds.
"""

import argparse
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from shepherd_memory import Config, open_service
from tests.bench.figures import ratio, write_line, write_table
from tests.bench.server_load import Order, Sample
from tests.bench.server_memory import InProcess, fill
from tests.bench.server_processes import Load, listening, loading

DIRECT, RELAY, RELAY_ASYNCIO = "direct", "relay", "relay without uvloop"
OFF, ON = "ours, memory off", "ours, memory on"
CONCURRENCY = (1, 16, 64)
FEW = (1, 16)
"""At which a request's time is not mostly the others' time."""

MEMORIES = 10_000
IDLE_STREAMS = 1_000
OPEN_FILES = 8_192
WARM_UP_SECONDS = 0.3
MOSTLY = 0.95
MB = 1e6


@dataclass(frozen=True)
class Kind:
    """A kind of request."""

    name: str
    stream: bool
    model: str


PACED = Kind("streams of 100 events 1 ms apart", True, "paced")
KINDS = (
    Kind("chats", False, "bench-model"),
    Kind("streams of 100 events", True, "bench-model"),
    PACED,
)


@dataclass(frozen=True)
class Plan:
    """How long to measure."""

    rounds: int
    seconds: float
    in_process: int
    most_with_memory: int
    limit_seconds: float


FULL = Plan(rounds=5, seconds=0.8, in_process=20, most_with_memory=64, limit_seconds=270)
QUICK = Plan(rounds=1, seconds=0.3, in_process=10, most_with_memory=16, limit_seconds=40)


@dataclass(frozen=True)
class Contestant:
    """Who answers at a port; `pid` 0: whose cost is not counted."""

    name: str
    pid: int
    port: int


Key = tuple[str, Kind, int]
Samples = dict[Key, list[Sample]]


@contextmanager
def contestants(folder: Path, provider: int) -> Iterator[list[Contestant]]:
    """All of them, running."""
    url = f"http://127.0.0.1:{provider}"
    with ExitStack() as stack:
        found = [Contestant(DIRECT, 0, provider)]
        for name, loop in ((RELAY, "uvloop"), (RELAY_ASYNCIO, "asyncio")):
            relay = listening("tests.bench.server_relay", url, loop)
            found.append(Contestant(name, *stack.enter_context(relay)))
        for name, memory in ((OFF, False), (ON, True)):
            arguments = ("--config", str(_config(folder, url, memory)), "serve", "--port", "0")
            ours = listening("shepherd_memory", *arguments)
            found.append(Contestant(name, *stack.enter_context(ours)))
        yield found


def _config(folder: Path, url: str, memory: bool) -> Path:
    path = folder / f"{'on' if memory else 'off'}.toml"
    path.write_text(
        f'memory_database = "{path.with_suffix(".db")}"\nprovider = "bench"\n'
        f'[providers.bench]\ntype = "openai"\nbase_url = "{url}"\nmemory = {str(memory).lower()}\n'
    )
    path.chmod(0o600)
    return path


def measure_round(load: Load, who: Sequence[Contestant], plan: Plan, samples: Samples) -> None:
    """Everybody's turn in everything."""
    for kind, concurrency, one in product(KINDS, CONCURRENCY, who):
        if one.name == ON and (kind is PACED or concurrency > plan.most_with_memory):
            continue
        asked = (kind.stream, kind.model, concurrency, plan.seconds)
        order = Order(one.port, one.pid, *asked, settle=one.name == ON)
        samples.setdefault((one.name, kind, concurrency), []).append(load.measure(order))


def measure(load: Load, who: Sequence[Contestant], memory: InProcess, plan: Plan) -> Samples:
    """As many rounds as there is time for."""
    samples: Samples = {}
    for one in who:
        load.measure(Order(one.port, one.pid, seconds=WARM_UP_SECONDS, settle=one.name == ON))
    began, done = time.monotonic(), 0
    while done < plan.rounds and (time.monotonic() - began) * (done + 1) <= plan.limit_seconds * max(done, 1):
        measure_round(load, who, plan, samples)
        memory.measure(plan.in_process)
        done += 1
    sys.stdout.write(f"{done} rounds of {plan.seconds} s each, in {time.monotonic() - began:.0f} s\n")
    return samples


def cpu_ms(samples: Sequence[Sample]) -> float:
    """Of one request, with what is done for it after the answer."""
    return statistics.median(1000 * (one.cpu + one.cpu_afterwards) / one.completed for one in samples)


def cpu_main_thread_ms(samples: Sequence[Sample]) -> float:
    return statistics.median(1000 * one.cpu_main_thread / one.completed for one in samples)


def in_time(samples: Sequence[Sample]) -> float:
    """The share of the requests that memory was in time for; the others went on without it."""
    return sum(one.injected for one in samples) / sum(one.completed for one in samples)


def rate(samples: Sequence[Sample]) -> float:
    return statistics.median(one.completed / one.elapsed for one in samples)


def first_byte_ms(samples: Sequence[Sample], percentile: float) -> float:
    return float(np.percentile([us for one in samples for us in one.first_us], percentile)) / 1000


def whole_ms(samples: Sequence[Sample], percentile: float) -> float:
    return float(np.percentile([us for one in samples for us in one.whole_us], percentile)) / 1000


def write_load(samples: Samples, kind: Kind) -> None:
    rows = []
    for (name, asked, concurrency), taken in samples.items():
        if asked == kind:
            relay = samples[RELAY, kind, concurrency]
            reads = statistics.median(one.reads / one.completed for one in taken)
            spent = ("", "", "") if name == DIRECT else _spent(taken, relay)
            waits = (f"{whole_ms(taken, 50):.2f}", f"{whole_ms(taken, 99):.2f}")
            rows.append((name, concurrency, f"{rate(taken):.0f}", *waits, f"{reads:.0f}", *spent))
    head = (
        "",
        "at once",
        "per second",
        "p50 ms",
        "p99 ms",
        "reads",
        "CPU ms",
        "of main thread",
        "against relay",
    )
    write_table(kind.name, head, rows)


def _spent(taken: Sequence[Sample], relay: Sequence[Sample]) -> tuple[str, str, str]:
    spent = cpu_ms(taken)
    return f"{spent:.2f}", f"{cpu_main_thread_ms(taken):.2f}", ratio(spent, cpu_ms(relay))


def write_first_byte(samples: Samples) -> None:
    rows = []
    for kind, concurrency, name in product(KINDS, FEW, (RELAY, OFF, ON)):
        taken = samples.get((name, kind, concurrency), [])
        if not taken:
            continue
        figures = [f"{first_byte_ms(taken, percentile):.2f}" for percentile in (50, 99)]
        rows.append((f"{name}, {kind.name}", concurrency, *figures))
    write_table("first byte, ms", ("", "at once", "p50", "p99"), rows)


def write_idle(load: Load, who: Sequence[Contestant], provider: int) -> float:
    """Resident memory with idle streams; of ours, in MB."""
    rows, found = [], 0.0
    for one in who:
        if one.name in (RELAY, OFF):
            order = Order(one.port, one.pid, True, "idle", IDLE_STREAMS, provider_port=provider)
            sample = load.measure(order)
            found = sample.rss / MB
            grown = (sample.rss - sample.rss_before) / IDLE_STREAMS / 1000
            before = f"{sample.rss_before / MB:.0f}"
            rows.append((one.name, before, f"{found:.0f}", f"{grown:.0f} kB", sample.completed))
    head = ("", "before, MB", "with them, MB", "per stream", "went on to their end")
    write_table(f"{IDLE_STREAMS:,} idle streams at once, resident memory", head, rows)
    return found


def write_memory(memory: InProcess, samples: Samples) -> Mapping[str, float]:
    """What the memory costs by itself, in ms of CPU, and what it adds to a request."""
    costs = {name: 1000 * statistics.median(taken) for name, taken in vars(memory.costs).items()}
    rows = [(name.replace("_", " "), f"{cost:.2f}") for name, cost in costs.items()]
    write_table("the memory by itself, in process, one after another", ("", "CPU ms"), rows)
    for (name, kind, concurrency), on in samples.items():
        if name == ON:
            after = statistics.median(1000 * one.cpu_afterwards / one.completed for one in on)
            added = cpu_ms(on) - cpu_ms(samples[OFF, kind, concurrency])
            write_line(
                f"{kind.name}, {concurrency} at once: memory adds {added:.2f} ms of CPU, {after:.2f} of them"
                f" after the last answer; in time for {in_time(on):.0%} of the requests"
            )
    return costs


def write_aims(samples: Samples, costs: Mapping[str, float], idle_mb: float) -> None:
    rows = []
    recall_ms = costs["recall_after_change"]
    with_embedding_ms = recall_ms + costs["embed_exchange"]
    for kind, concurrency in product(KINDS, CONCURRENCY):
        place = f"{kind.name}, {concurrency} at once"
        relay, off = (samples[name, kind, concurrency] for name in (RELAY, OFF))
        on = samples.get((ON, kind, concurrency))
        rows.append(_aim(f"memory off against relay, CPU: {place}", cpu_ms(off) / cpu_ms(relay), 1.5, "x"))
        if concurrency in FEW:
            later = first_byte_ms(off, 50) - first_byte_ms(relay, 50)
            rows.append(_aim(f"first byte after relay's, p50: {place}", later, 2, " ms"))
        # Where memory was late for many, what it added says little of what it costs.
        if on and in_time(on) >= MOSTLY:
            added = cpu_ms(on) - cpu_ms(off)
            rows.append(_aim(f"memory adds, against recall: {place}", added, recall_ms, " ms"))
            what = "memory adds, against recall and the exchange's embedding"
            rows.append(_aim(f"{what}: {place}", added, with_embedding_ms, " ms"))
    rows.append(_aim(f"{IDLE_STREAMS:,} idle streams", idle_mb, 300, " MB"))
    write_table("aims", ("", "measured", "at most", ""), rows)


def _aim(what: str, measured: float, most: float, unit: str) -> tuple[str, str, str, str]:
    return what, f"{measured:.2f}{unit}", f"{most:.2f}{unit}", "met" if measured <= most else "missed"


def _allow_open_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, most), most))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: a look, not a measurement")
    plan = QUICK if parser.parse_args().quick else FULL
    _allow_open_files()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fill(str(folder / "on.db"), MEMORIES)
        shutil.copy(folder / "on.db", folder / "in-process.db")
        config = Config(memory_database=str(folder / "in-process.db"))
        memory = InProcess(stack.enter_context(open_service(config, worker=False)))
        load = stack.enter_context(loading())
        _, provider = stack.enter_context(listening("tests.bench.server_provider"))
        who = stack.enter_context(contestants(folder, provider))
        samples = measure(load, who, memory, plan)
        for kind in KINDS:
            write_load(samples, kind)
        write_first_byte(samples)
        costs = write_memory(memory, samples)
        write_aims(samples, costs, write_idle(load, who, provider))


if __name__ == "__main__":
    main()
