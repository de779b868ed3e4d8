"""A worker process that consolidates, and can be told to die or stop at a named point of that."""

import logging
import signal
from collections.abc import Callable
from pathlib import Path

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.consolidation.lanes import ConsolidationLane
from shepherd_memory.storage.clock import now_us
from tests.acceptance.work import parsed, signal_at


def main(config_path: Path, fault: Callable[[str], None]) -> None:
    """Consolidate until SIGTERM."""
    # Waited for, not handled: what comes as a stopped process goes on may go to a thread that handles none.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    logging.basicConfig(level=logging.INFO)
    with open_service(load_config(config_path), config_path=config_path, worker=False) as service:
        consolidation = ConsolidationLane(service.database, lambda: service.config, now_us, fault)
        with consolidation.working():
            signal.sigwait({signal.SIGTERM})
        consolidation.close()


if __name__ == "__main__":
    options = parsed()
    main(options.config, signal_at(options.at, signal.Signals[options.signal], options.visit))
