"""Watching real folders: what agents write is taken in once and whole, whatever happens meanwhile."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory import open_service
from shepherd_memory.config import load_config, set_value
from shepherd_memory.errors import DatabaseUnavailable
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import now_us
from shepherd_memory.transcripts import ingestion
from shepherd_memory.transcripts.folders import files_under
from shepherd_memory.transcripts.library import Library
from shepherd_memory.transcripts.watching import Watcher
from tests.acceptance.processes import wait_until
from tests.transcripts import append, exchange, joined, user_line, write

ADA = "ada"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "projects"
    found.mkdir()
    return found


class Site:
    """A configuration file for a folder to watch, and services on it."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.set(
            memory_database=f"sqlite:///{path.parent}/memory.db",
            transcripts_watch_path=folder,
            transcripts_enabled="true",
            embedding_engine="none",
            poll_interval="0.2",
        )

    def set(self, **values: object) -> None:
        for key, value in values.items():
            set_value(self.path, key, str(value))

    @contextmanager
    def watching(self, user_id: str = ADA) -> Iterator[Service]:
        config = load_config(self.path, {})
        with open_service(config, config_path=self.path, watch_for=user_id) as service:
            yield service


@pytest.fixture
def site(tmp_path: Path, folder: Path) -> Site:
    return Site(tmp_path / "config.toml", folder)


def texts(service: Service, user_id: str = ADA) -> list[str]:
    return [one.text for one in service.documents(user_id, limit=100_000)]


def wait_for(service: Service, number: int) -> None:
    wait_until(lambda: len(texts(service)) >= number, f"{number} entries", every=0.05)


def test_what_is_there_and_what_comes_is_taken_in(site: Site, folder: Path) -> None:
    first = write(folder / "kettle" / "a.jsonl", exchange(0, 4))
    with site.watching() as service:
        wait_for(service, 4)
        append(first, exchange(4, 6))
        wait_for(service, 6)
        write(folder / "kettle" / "b.jsonl", exchange(0, 2))
        wait_for(service, 8)
        (folder / "kettle" / "notes.txt").write_text("nothing")
        (folder / "kettle" / "other.jsonl").write_text('{"level": "info"}\n')
        write(folder / "teapot" / "deep" / "c.jsonl", exchange(0, 1))
        wait_for(service, 9)
        keys = [file.file_key for file in service.transcripts.files(ADA)]
        assert keys == ["kettle/a.jsonl", "kettle/b.jsonl", "teapot/deep/c.jsonl"]


def test_a_folder_that_is_moved_in_is_read_with_all_that_it_came_with(
    site: Site, folder: Path, tmp_path: Path
) -> None:
    with site.watching() as service:
        write(folder / "kettle" / "a.jsonl", exchange(0, 1))
        wait_for(service, 1)
        write(tmp_path / "elsewhere" / "deep" / "b.jsonl", exchange(0, 5))
        write(tmp_path / "elsewhere" / "c.jsonl", exchange(0, 5))
        os.rename(tmp_path / "elsewhere", folder / "moved")
        wait_for(service, 11)
        append(folder / "moved" / "deep" / "b.jsonl", exchange(5, 6))
        wait_for(service, 12)


def test_a_folder_that_appears_later_is_found_and_one_that_is_missing_is_no_error(
    site: Site, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(folder)
    with site.watching() as service:
        write(folder / "kettle" / "a.jsonl", exchange(0, 3))
        wait_for(service, 3)
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


def test_a_folder_that_is_removed_and_made_again_is_watched_again(site: Site, folder: Path) -> None:
    write(folder / "kettle" / "a.jsonl", exchange(0, 3))
    with site.watching() as service:
        wait_for(service, 3)
        shutil.rmtree(folder)
        path = write(folder / "kettle" / "b.jsonl", exchange(0, 3))
        wait_for(service, 6)
        append(path, exchange(3, 4))
        wait_for(service, 7)


def test_a_folder_that_is_named_from_the_working_folder_is_watched(
    site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    site.set(transcripts_watch_path=f"./{folder.name}/")
    with site.watching() as service:
        path = write(folder / "kettle" / "a.jsonl", exchange(0, 3))
        wait_for(service, 3)
        append(path, exchange(3, 4))
        wait_for(service, 4)


def test_watching_can_be_switched_on_and_to_another_folder_as_it_runs(
    site: Site, folder: Path, tmp_path: Path
) -> None:
    site.set(transcripts_enabled="false")
    write(folder / "kettle" / "a.jsonl", exchange(0, 3))
    other = write(tmp_path / "others" / "teapot" / "b.jsonl", exchange(0, 3))
    with site.watching() as service:
        site.set(transcripts_enabled="true")
        wait_for(service, 3)
        site.set(transcripts_watch_path=other.parent.parent)
        wait_for(service, 6)


def test_for_the_unknown_user_nothing_is_watched(site: Site, folder: Path) -> None:
    write(folder / "kettle" / "a.jsonl", exchange(0, 3))
    with site.watching("unknown") as service:
        with site.watching(ADA) as watching:
            wait_for(watching, 3)
        with service.database.read() as connection:
            assert connection.rows("select distinct user_id from transcript_files") == [(ADA,)]


def test_a_file_that_is_deleted_deletes_nothing(site: Site, folder: Path) -> None:
    path = write(folder / "kettle" / "a.jsonl", exchange(0, 3))
    with site.watching() as service:
        wait_for(service, 3)
        path.unlink()
        write(folder / "kettle" / "b.jsonl", exchange(0, 3))
        wait_for(service, 6)
        assert service.transcripts.health(ADA).errors == {}


class Slow(Library):
    """Tells of each file that it begins with, and of each call."""

    before: Callable[[Path], None]
    calls = 0

    def ingest(self, user_id: str, path: Path, base: Path | None = None, **options: Any) -> Any:
        self.calls += 1
        self.before(path)
        return super().ingest(user_id, path, base, **options)


@contextmanager
def watcher_on(service: Service, before: Callable[[Path], None]) -> Iterator[Slow]:
    library = Slow(service.database, lambda: service.config, now_us, lambda: None)
    library.before = before
    watcher = Watcher(library, lambda: service.config, ADA)
    watcher.start()
    try:
        yield library
    finally:
        watcher.stop()


@contextmanager
def idle_service(site: Site) -> Iterator[Service]:
    """One that watches nothing by itself."""
    with open_service(load_config(site.path, {}), config_path=site.path, worker=False) as service:
        yield service


def test_what_changes_while_the_first_scan_runs_is_not_missed(site: Site, folder: Path) -> None:
    paths = [write(folder / "kettle" / f"{number}.jsonl", exchange(0, 2)) for number in range(4)]
    changed = threading.Event()

    def change_what_was_read(path: Path) -> None:
        if path == paths[3] and not changed.is_set():
            append(paths[0], exchange(2, 4))
            write(folder / "new" / "late.jsonl", exchange(0, 2))
            changed.set()

    with idle_service(site) as service, watcher_on(service, change_what_was_read):
        wait_for(service, 12)
        assert changed.is_set()


def test_what_another_process_reads_or_the_database_refuses_is_tried_again(
    site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(folder / "kettle" / "a.jsonl", exchange(0, 4))
    with idle_service(site) as service:
        service.transcripts.ingest(ADA, path)
        append(path, exchange(4, 8))
        with service.database.write() as tx:
            tx.execute(
                "update transcript_files set status = 'ingesting', token = 'another', lease_until = :until",
                until=now_us() + 3600 * 10**6,
            )
        with watcher_on(service, lambda path: None) as library:
            wait_until(lambda: library.calls >= 2, "it is tried again")
            with service.database.write() as tx:
                tx.execute("update transcript_files set lease_until = 0")
            wait_for(service, 8)


def test_a_file_that_the_database_refuses_does_not_keep_out_the_others(site: Site, folder: Path) -> None:
    for name in "abc":
        write(folder / "kettle" / f"{name}.jsonl", exchange(0, 2))

    def refuse_the_first(path: Path) -> None:
        if path.name == "a.jsonl":
            raise DatabaseUnavailable("this is not stored")

    with idle_service(site) as service, watcher_on(service, refuse_the_first):
        wait_for(service, 4)


def test_what_a_scan_passes_over_is_passed_over_when_it_changes(
    site: Site, folder: Path, tmp_path: Path
) -> None:
    outside = write(tmp_path / "outside" / "deep" / "b.jsonl", exchange(0, 2))
    write(folder / "kettle" / "a.jsonl", exchange(0, 1))
    with site.watching() as service:
        wait_for(service, 1)
        os.mkfifo(folder / "kettle" / "pipe.jsonl")
        write(folder / "kettle" / ".hidden.jsonl", exchange(0, 2))
        (folder / "linked").symlink_to(outside.parent.parent)
        append(outside, exchange(2, 4))
        append(folder / "kettle" / "a.jsonl", exchange(1, 2))
        wait_for(service, 2)
        write(folder / "kettle" / "c.jsonl", exchange(0, 1))
        wait_for(service, 3)
        keys = [file.file_key for file in service.transcripts.files(ADA)]
        assert keys == ["kettle/a.jsonl", "kettle/c.jsonl"]


def test_a_writer_of_a_thousand_lines_a_second_is_followed_and_costs_little(site: Site, folder: Path) -> None:
    path = folder / "kettle" / "busy.jsonl"
    path.parent.mkdir()
    seconds, each = 3, 10
    with idle_service(site) as service, watcher_on(service, lambda path: None) as library:
        with path.open("ab", buffering=0) as file:
            began = time.monotonic()
            for turn in range(seconds * 1000 // each):
                content = joined(user_line(turn * each + place) for place in range(each))
                # Cut within a line, as a full pipe does it.
                file.write(content[:700])
                file.write(content[700:])
                time.sleep(max(0.0, began + (turn + 1) * each / 1000 - time.monotonic()))
            lasted = time.monotonic() - began
        wait_for(service, seconds * 1000)
        found = texts(service)
        assert found == [user_line(number)["message"]["content"] for number in range(seconds * 1000)]
        # 600 writes are a few passes, not more than two a second.
        assert library.calls <= 5 + 2 * lasted


def test_it_stops_in_the_middle_of_a_long_file_and_goes_on_another_time(
    site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion, "BATCH_ENTRIES", 10)
    write(folder / "kettle" / "long.jsonl", exchange(0, 20_000))
    with idle_service(site) as service:
        library = Library(service.database, lambda: service.config, now_us, lambda: None)
        watcher = Watcher(library, lambda: service.config, ADA)
        watcher.start()
        wait_for(service, 10)
        used = time.process_time()
        watcher.stop()
        assert time.process_time() - used < 2
        stopped = len(texts(service))
        assert 10 <= stopped < 20_000
        assert service.transcripts.health(ADA).ingesting == 0
        with watcher_on(service, lambda path: None):
            wait_for(service, stopped + 10)


def test_pipes_and_folders_named_like_transcripts_are_passed_over(folder: Path) -> None:
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "folder.jsonl").mkdir()
    (folder / "dangling.jsonl").symlink_to(folder / "nowhere")
    (folder / ".hidden.jsonl").write_text("{}")
    write(folder / "folder.jsonl" / "real.jsonl", exchange(0, 1))
    assert [found.path.name for found in files_under(folder)] == ["real.jsonl"]
