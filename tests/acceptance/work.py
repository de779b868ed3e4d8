"""A worker process that can be told to die or stop at a named point of its work."""

import argparse
import logging
import signal
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.extraction.extractor import extraction_client
from shepherd_memory.extraction.worker import Worker
from shepherd_memory.storage.clock import now_us


def signal_at(wanted: str | None, number: signal.Signals, visit: int) -> Callable[[str], None]:
    """A fault that signals this very process the nth time that the worker comes by a point."""
    seen = 0

    def fault(point: str) -> None:
        nonlocal seen
        seen += point == wanted
        if point == wanted and seen == visit:
            # To this thread: of a signal to the process another may take note first, while this one goes on.
            signal.pthread_kill(threading.get_ident(), number)

    return fault


def main(config_path: Path, fault: Callable[[str], None]) -> None:
    """Work until SIGTERM."""
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    logging.basicConfig(level=logging.INFO)
    with (
        open_service(load_config(config_path), config_path=config_path, worker=False) as service,
        closing(extraction_client()) as client,
    ):
        worker = Worker(service.database, lambda: service.config, now_us, client, fault)
        worker.start()
        done.wait()
        worker.stop()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("--at", metavar="POINT", help="where to be hit by the signal")
    parser.add_argument("--signal", default="SIGKILL", choices=["SIGKILL", "SIGSTOP"])
    parser.add_argument("--visit", type=int, default=1, help="at which visit of the point")
    return parser.parse_args()


if __name__ == "__main__":
    options = parsed()
    main(options.config, signal_at(options.at, signal.Signals[options.signal], options.visit))
