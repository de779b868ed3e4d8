"""What a turn of a chat costs: `inject`, `remember` and `recall`, in CPU time, through the service alone.

`python -m tests.bench.report_turns OTHER` measures this checkout against another one, which needs nothing but
its folder: a process of each takes its turn, so that a machine which is busy for a while is so for both.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from shepherd_memory import Config, Service, open_service
from tests.bench.figures import write_line
from tests.postgres import PostgresUnavailable, running_postgres

ROUNDS = 60
BATCH = 10
STORED = 300
USER = "ada"
FACTS = 10
HERE = Path(__file__).parents[2]


@contextmanager
def service_on(url: str) -> Iterator[Service]:
    config = Config(
        memory_database=url,
        embedding_engine="none",
        memory_extraction_endpoint="http://127.0.0.1:9",
        memory_extraction_model="none",
    )
    with open_service(config, worker=False) as service:
        yield service


def said(number: int) -> list[dict[str, Any]]:
    """An exchange of ordinary length; every one is another."""
    asked = (
        f"In week {number} I went to town {number % 97} by train and bought {number % 31} books about trees."
    )
    told = f"That sounds like a good week {number}: {number % 31} books about trees will last until spring."
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": told}]


def asking(number: int) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"Which books did I buy in town {number % 97}, round {number}?"},
    ]


def fill(service: Service) -> None:
    for number in range(FACTS):
        service.set_fact(USER, f"town_{number}", f"town number {number}")
    for number in range(STORED):
        service.remember(USER, said(number), f"session-{number // 20}")


def calls(service: Service) -> dict[str, Callable[[int], object]]:
    return {
        "recall": lambda number: service.recall(USER, f"which books in town {number % 97}?"),
        "inject": lambda number: service.inject(USER, asking(number), session_id=f"chat-{number}"),
        "remember": lambda number: service.remember(USER, said(10_000 + number), f"later-{number // 20}"),
    }


def median_of(call: Callable[[int], object], first: int) -> float:
    """The median of the processor time of a few calls, in milliseconds."""
    times = []
    for number in range(first, first + BATCH):
        began = time.process_time()
        call(number)
        times.append(time.process_time() - began)
    return statistics.median(times) * 1000


def answer_requests(url: str) -> None:
    """Measure whatever the standard input names, until it ends."""
    with service_on(url) as service:
        fill(service)
        by_name = calls(service)
        for line in sys.stdin:
            name, first = line.split()
            sys.stdout.write(f"{median_of(by_name[name], int(first))}\n")
            sys.stdout.flush()


class Measured:
    """A process that measures one checkout when it is asked to."""

    def __init__(self, checkout: Path, url: str) -> None:
        parts = [str(checkout), str(checkout / "backends"), str(HERE)]
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__)), "--answer", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(parts), "OMP_NUM_THREADS": "1"},
        )

    def __enter__(self) -> "Measured":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def ask(self, name: str, first: int) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name} {first}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


def measure(name: str, sides: list[Measured]) -> str:
    """What a call costs here, and how often what it costs on the other side; they take turns.

    The first batch does not count. The ratio is the median of those of the batches, which ran one after the
    other: the processor's own pace, which changes, is nearly the same in both.
    """
    rounds = [[side.ask(name, number * BATCH) for side in sides] for number in range(ROUNDS + 1)][1:]
    here = statistics.median(batch[0] for batch in rounds)
    ratios = [batch[0] / batch[1] for batch in rounds if len(batch) > 1]
    against = f"  {statistics.median(ratios):.2f} times the other's" if ratios else ""
    return f"{name:9} {here:.3f} ms{against}"


def report(database: str, checkouts: list[Path], urls: list[str]) -> None:
    with ExitStack() as stack:
        sides = [
            stack.enter_context(Measured(checkout, url))
            for checkout, url in zip(checkouts, urls, strict=True)
        ]
        for name in ("recall", "inject", "remember"):
            write_line(f"{database:11} {measure(name, sides)}")


def main(others: list[str]) -> None:
    checkouts = [HERE, *map(Path, others)]
    with tempfile.TemporaryDirectory() as folder:
        report(
            "sqlite", checkouts, [f"sqlite:///{folder}/memory{index}.db" for index in range(len(checkouts))]
        )
    try:
        with running_postgres() as server:
            names = [f"turns{index}" for index in range(len(checkouts))]
            for name in names:
                server.create_database(name)
            report("postgresql", checkouts, [server.dsn(name) for name in names])
    except PostgresUnavailable as error:
        write_line(f"postgresql: {error}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        answer_requests(sys.argv[2])
    else:
        main(sys.argv[1:])
