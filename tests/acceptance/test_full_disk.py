"""A full disk: said clearly, nothing half stored, and everything goes on when there is space again."""

import resource
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from shepherd_memory.archives.mirror import LOCK, UNFINISHED
from shepherd_memory.errors import DatabaseUnavailable, InvalidInput
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


def talk(service: Service, session_id: str, messages: int) -> None:
    """A session that has ended; a hundred messages do not fit into what a full disk has left."""
    service.start_session("ada", session_id=session_id)
    said = [{"role": "user", "content": f"{session_id} {number} {'x' * 1000}"} for number in range(messages)]
    service.remember("ada", said, session_id, extract=False)
    service.end_session("ada", session_id)


def archived(folder: Path) -> dict[str, str]:
    """What is in the files of a folder, but in that which locks it."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != LOCK)
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def test_a_folder_of_archives_on_a_full_file_system_is_behind_and_catches_up(
    tmp_path: Path, small_disk: Path, endpoint: ScriptedEndpoint
) -> None:
    folder, export = small_disk / "archives", tmp_path / "export"
    settings = SettingsFile(tmp_path / "config.toml", f"sqlite:///{tmp_path}/memory.db", endpoint.url)
    settings.set(archive_folder=folder)
    disk = small_file_system(small_disk)
    with settings.service() as service:
        talk(service, "before", 200)
        assert service.archive_keeper.beat()
        disk.fill()
        talk(service, "after", 200)
        assert not service.archive_keeper.beat()
        (problem,) = service.problems()
        assert "files in archive_folder are behind" in problem
        assert [text.count("**User**") for text in archived(folder).values()] == [200]
        with pytest.raises(InvalidInput, match=r"cannot write to .*No space left"):
            service.export_archives("ada", small_disk / "export")
        assert not archived(small_disk / "export").get(UNFINISHED)
        # What is forgotten leaves at once, though the rest of its session finds no room.
        gone = service.documents("ada", session_id="before")[0]
        assert service.forget("ada", document=gone.id, only=True).documents == 1
        assert not any(gone.text in text for text in archived(folder).values())
        assert "".join(b"".join(service.archive("ada", "after")).decode()).count("**User**") == 200
        disk.free()
        assert service.archive_keeper.beat()
        assert service.problems() == ()
        service.export_archives("ada", export)
        assert archived(folder / "ada") == archived(export)
        assert sorted(text.count("**User**") for text in archived(export).values()) == [199, 200]


def test_a_folder_of_memory_files_on_a_full_file_system_is_behind_and_catches_up(
    tmp_path: Path, small_disk: Path, endpoint: ScriptedEndpoint
) -> None:
    folder = small_disk / "files"
    settings = SettingsFile(tmp_path / "config.toml", f"sqlite:///{tmp_path}/memory.db", endpoint.url)
    settings.set(memory_files_folder=folder)
    disk = small_file_system(small_disk)
    large = "".join(f"## {at}\n\n{'x' * 7000}\n\n" for at in range(50))
    with settings.service() as service:
        service.edit_memory_file("ada", "MEMORY.md", "## Tea\n\nAda drinks tea.\n")
        note = service.add_memory_note("ada", "milk")
        disk.fill()
        service.edit_memory_file("ada", "MEMORY.md", large)
        assert not service.memory_file_keeper.beat()
        (problem,) = service.problems()
        assert "files in memory_files_folder are behind" in problem
        assert {path for path in archived(folder) if path.endswith(".md")} == {f"ada/main/{note}"}
        service.delete_memory_file("ada", note)
        assert not [path for path in archived(folder) if path.endswith(".md")]
        with pytest.raises(InvalidInput, match=r"cannot write to .*No space left"):
            service.export_memory_files("ada", small_disk / "export")
        talk(service, "chat", 1)
        disk.free()
        assert service.memory_file_keeper.beat()
        assert service.problems() == ()
        assert large.strip() in archived(folder)["ada/main/MEMORY.md"]


def test_an_export_that_may_not_write_so_much_says_so_and_leaves_nothing_half_written(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    settings = SettingsFile(tmp_path / "config.toml", f"sqlite:///{tmp_path}/memory.db", endpoint.url)
    with settings.service() as service:
        talk(service, "small", 1)
        talk(service, "large", 200)
    export = tmp_path / "export"
    command = [sys.executable, "-m", "shepherd_memory", "--config", str(settings.path)]
    command += ["sessions", "export", str(export), "--user", "ada"]
    limited = ["bash", "-c", f"ulimit -f {FREE_BYTES // 1024}; exec {shlex.join(command)}"]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "cannot write to" in done.stderr
    assert "File too large" in done.stderr
    assert [text.count("**User**") for text in archived(export).values()] in ([1], [])
    assert subprocess.run(command, capture_output=True, timeout=120).returncode == 0
    assert sorted(text.count("**User**") for text in archived(export).values()) == [1, 200]
