"""The configuration file that a test's processes share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shepherd_memory import open_service
from shepherd_memory.config import load_config, set_value
from shepherd_memory.service import Service

LEASE_SECONDS = 1.0

WITHOUT_EMBEDDING = {"embedding_engine": "none"}
"""To load the model takes most of the time of each start; tests in which it matters set another engine."""

IMPATIENT = {
    "memory_extraction_model": "scripted",
    "memory_extraction_lease": LEASE_SECONDS,
    "memory_extraction_retry_interval": 0.1,
    "memory_extraction_timeout": 1.0,
}


class SettingsFile:
    """A configuration file, and a look at the database that it names."""

    def __init__(self, path: Path, memory_database: str, endpoint: str) -> None:
        self.path = path
        self.set(memory_database=memory_database, memory_extraction_endpoint=endpoint)
        self.set(**IMPATIENT, **WITHOUT_EMBEDDING)

    def set(self, **values: object) -> None:
        for key, value in values.items():
            set_value(self.path, key, str(value))

    @contextmanager
    def service(self, worker: bool = False) -> Iterator[Service]:
        """The service of this process; as a rule other processes do the work."""
        with open_service(load_config(self.path, {}), config_path=self.path, worker=worker) as service:
            yield service
