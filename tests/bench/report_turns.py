"""What a turn of a chat costs: `inject`, `remember` and `recall`, in CPU time, through the service alone.

It uses nothing but what every version has, so that a copy of it measures an older checkout.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from shepherd_memory import Config, Service, open_service
from tests.bench.figures import write_line
from tests.postgres import PostgresUnavailable, running_postgres

ROUNDS = 300
WARM_UP = 30
STORED = 300
USER = "ada"
FACTS = 10


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


def asking(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"Which books did I buy in town {number % 97}, round {number}?"}


def fill(service: Service) -> None:
    for number in range(FACTS):
        service.set_fact(USER, f"town_{number}", f"town number {number}")
    for number in range(STORED):
        service.remember(USER, said(number), f"session-{number // 20}")


def measured(call: Callable[[int], object]) -> float:
    """The median of its processor time, in milliseconds."""
    times = []
    for number in range(WARM_UP + ROUNDS):
        began = time.process_time()
        call(number)
        times.append(time.process_time() - began)
    return statistics.median(times[WARM_UP:]) * 1000


def measure(service: Service) -> dict[str, float]:
    fill(service)
    return {
        "recall": measured(lambda number: service.recall(USER, f"which books in town {number % 97}?")),
        "inject": measured(
            lambda number: service.inject(
                USER,
                [
                    {
                        "role": "user",
                        "content": f"Which books did I buy in town {number % 97}, round {number}?",
                    }
                ],
                session_id=f"chat-{number}",
            )
        ),
        "remember": measured(
            lambda number: service.remember(USER, said(10_000 + number), f"later-{number // 20}")
        ),
    }


def report(name: str, url: str) -> None:
    with service_on(url) as service:
        figures = measure(service)
    write_line(f"{name:11}" + "".join(f"  {what} {spent:.3f} ms" for what, spent in figures.items()))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report("sqlite", f"sqlite:///{folder}/memory.db")
        try:
            with running_postgres() as server:
                server.create_database("turns")
                report("postgresql", server.dsn("turns"))
        except PostgresUnavailable as error:
            write_line(f"postgresql: {error}")


if __name__ == "__main__":
    main()
