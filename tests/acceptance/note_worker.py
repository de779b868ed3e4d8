"""A worker process that makes notes of conversations, and can be told to die at a named point of that."""

import logging
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.phases.lanes import PhaseLanes
from shepherd_memory.storage.clock import now_us
from shepherd_memory.work.lane import stop_lanes
from tests.acceptance.work import parsed, signal_at


def main(config_path: Path, fault: Callable[[str], None]) -> None:
    """Make notes until SIGTERM."""
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    logging.basicConfig(level=logging.INFO)
    with open_service(load_config(config_path), config_path=config_path, worker=False) as service:
        phases = PhaseLanes(service.database, lambda: service.config, now_us, fault)
        for lane in phases.lanes:
            lane.start()
        done.wait()
        stop_lanes(phases.lanes)
        phases.close()


if __name__ == "__main__":
    options = parsed()
    main(options.config, signal_at(options.at, signal.Signals[options.signal], options.visit))
