"""A full disk: said clearly, nothing half stored, and everything goes on when there is space again."""

import resource
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from shepherd_memory.errors import DatabaseUnavailable
from shepherd_memory.service import Service
from shepherd_memory.work.jobs import RUNNING
from tests.acceptance.processes import Processes, wait_until
from tests.acceptance.settings import SettingsFile
from tests.acceptance.statements import answering, assert_stored_once, drain, remember
from tests.endpoint import ScriptedEndpoint, held

FREE_BYTES = 64 * 1024
MAX_STATEMENTS = 5000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with little room."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root can mount a small file system; the other forms of this test need none")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@dataclass(frozen=True)
class Disk:
    """How to use up the space of a database, and to give it back."""

    fill: Callable[[], None]
    free: Callable[[], None]


def small_file_system(folder: Path) -> Disk:
    ballast = folder / "ballast"

    def fill() -> None:
        with ballast.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(FREE_BYTES)):
                    pass
            except OSError:
                file.truncate(file.tell() - FREE_BYTES)

    return Disk(fill, ballast.unlink)


def set_page_limit(service: Service, pages: int) -> None:
    with service.database.write() as tx:
        tx.row(f"pragma max_page_count = {pages}")


def page_count(service: Service) -> int:
    with service.database.read() as connection:
        row = connection.row("pragma page_count")
    assert row is not None
    return int(row[0])


def remember_until_full(service: Service, first: int) -> int:
    """The number that found no space; those before it were accepted."""
    for number in range(first, MAX_STATEMENTS):
        try:
            remember(service, number)
        except DatabaseUnavailable:
            return number
    raise AssertionError("the disk does not get full")


def assert_nothing_half_stored(service: Service, accepted: int) -> None:
    users = {f"user-{number}" for number in range(7)}
    assert sum(len(service.documents(user)) for user in users) == 2 * accepted
    with service.database.read() as connection:
        assert connection.rows("select count(*) from sessions") == connection.rows(
            "select count(*) from (select distinct user_id, session_id from documents)"
        )


def assert_recovers(settings: SettingsFile, service: Service, refused: int, processes: Processes) -> None:
    """What was refused is accepted now, and a worker process stores all of it once."""
    for number in range(refused, refused + 10):
        remember(service, number)
    worker = processes.shepherd(settings.path, "worker")
    drain(service)
    assert_stored_once(service, range(refused + 10))
    assert worker.poll() is None


def test_remember_says_that_the_pages_are_used_up(
    tmp_path: Path, endpoint: ScriptedEndpoint, processes: Processes
) -> None:
    settings = SettingsFile(tmp_path / "config.toml", f"sqlite:///{tmp_path}/memory.db", endpoint.url)
    endpoint.default = answering()
    with settings.service() as service:
        disk = Disk(
            lambda: set_page_limit(service, page_count(service) + 16),
            lambda: set_page_limit(service, 1 << 30),
        )
        fill_and_recover(disk, settings, service, processes)


def test_remember_says_that_the_file_system_is_full(
    tmp_path: Path, small_disk: Path, endpoint: ScriptedEndpoint, processes: Processes
) -> None:
    settings = SettingsFile(tmp_path / "config.toml", f"sqlite:///{small_disk}/memory.db", endpoint.url)
    endpoint.default = answering()
    with settings.service() as service:
        fill_and_recover(small_file_system(small_disk), settings, service, processes)


def fill_and_recover(disk: Disk, settings: SettingsFile, service: Service, processes: Processes) -> None:
    for number in range(5):
        remember(service, number)
    disk.fill()
    refused = remember_until_full(service, 5)
    with pytest.raises(DatabaseUnavailable, match=r"no space left .* free some disk space"):
        remember(service, refused)
    assert_nothing_half_stored(service, refused)
    disk.free()
    assert_recovers(settings, service, refused, processes)


def limit_files_of(process: subprocess.Popen[bytes], database: Path) -> Disk:
    """The worker may write no file any longer than its write-ahead log is now: a full disk for it alone."""
    worker = psutil.Process(process.pid)
    log = database.with_name(database.name + "-wal")

    def fill() -> None:
        worker.rlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, resource.RLIM_INFINITY))

    def free() -> None:
        worker.rlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    return Disk(fill, free)


def work_through_a_full_disk(
    settings: SettingsFile,
    endpoint: ScriptedEndpoint,
    start: Callable[[], tuple[subprocess.Popen[bytes], Disk]],
    processes: Processes,
) -> None:
    gate = threading.Event()
    endpoint.default = held(gate, answering())
    settings.set(memory_extraction_timeout=60)
    with settings.service() as service:
        for number in range(30):
            remember(service, number)
        worker, disk = start()
        endpoint.wait_for(1)
        # It holds an item now and cannot store what it gets for it.
        disk.fill()
        gate.set()
        wait_until(lambda: "the worker waits for the database" in processes.logs(), "the worker says so")
        assert service.status().items[RUNNING] <= 1
        assert worker.poll() is None
        disk.free()
        drain(service)
        assert_stored_once(service, range(30))
        assert worker.poll() is None


def test_a_worker_process_that_may_not_write_goes_on_later(
    tmp_path: Path, endpoint: ScriptedEndpoint, processes: Processes
) -> None:
    database = tmp_path / "memory.db"
    settings = SettingsFile(tmp_path / "config.toml", f"sqlite:///{database}", endpoint.url)

    def start() -> tuple[subprocess.Popen[bytes], Disk]:
        worker = processes.shepherd(settings.path, "worker")
        return worker, limit_files_of(worker, database)

    work_through_a_full_disk(settings, endpoint, start, processes)


def test_a_worker_process_on_a_full_file_system_goes_on_later(
    tmp_path: Path, small_disk: Path, endpoint: ScriptedEndpoint, processes: Processes
) -> None:
    settings = SettingsFile(tmp_path / "config.toml", f"sqlite:///{small_disk}/memory.db", endpoint.url)

    def start() -> tuple[subprocess.Popen[bytes], Disk]:
        disk = small_file_system(small_disk)
        return processes.shepherd(settings.path, "worker"), disk

    work_through_a_full_disk(settings, endpoint, start, processes)
