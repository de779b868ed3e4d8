"""Builds the service with its threads, and takes it down again."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from shepherd_memory.config import (
    Config,
    LiveConfig,
    default_database_path,
    own_folders,
    private_files,
    state_folder,
)
from shepherd_memory.embedding.thread import EmbeddingThread
from shepherd_memory.extraction.extractor import extraction_client
from shepherd_memory.extraction.worker import Worker
from shepherd_memory.maintenance import legacy, reindexing
from shepherd_memory.service.archives import ArchiveService
from shepherd_memory.service.consolidation import ConsolidationService
from shepherd_memory.service.conversations import ConversationService
from shepherd_memory.service.deliveries import DeliveryService
from shepherd_memory.service.global_memory import GlobalMemoryService
from shepherd_memory.service.memories import MemoryService
from shepherd_memory.service.memory_files import MemoryFileService
from shepherd_memory.service.phases import PhaseService
from shepherd_memory.service.recall import RecallService
from shepherd_memory.service.session_history import SessionHistoryService
from shepherd_memory.service.sessions import SessionService
from shepherd_memory.service.summary import SummaryService
from shepherd_memory.service.user_data import UserDataService
from shepherd_memory.service.work import WorkService
from shepherd_memory.spool.replay import Replayer
from shepherd_memory.spool.spool import Spool, name_of
from shepherd_memory.storage.clock import Clock, now_us
from shepherd_memory.storage.database import Database, open_database
from shepherd_memory.transcripts.library import Library
from shepherd_memory.transcripts.watching import Watcher
from shepherd_memory.work.lane import Lane, stop_lanes


class Service(
    DeliveryService,
    SessionHistoryService,
    SessionService,
    ArchiveService,
    RecallService,
    MemoryService,
    GlobalMemoryService,
    SummaryService,
    MemoryFileService,
    ConversationService,
    PhaseService,
    ConsolidationService,
    WorkService,
    UserDataService,
):
    """The memory of all users; every call names the user it is for."""


@contextmanager
def open_service(
    config: Config,
    *,
    config_path: Path | str | None = None,
    worker: bool = True,
    watch_for: str = "",
    clock: Clock = now_us,
) -> Iterator[Service]:
    """Build everything that frontends use, and take it down again.

    With `config_path` changes of that file take effect while the service runs. `worker=False` leaves
    extraction to another process. `watch_for` is the user whose agents' transcripts are watched for, where
    the configuration says so.
    """
    live = LiveConfig(config, config_path)
    with ExitStack() as stack:
        url = config.memory_database or str(default_database_path())
        for folder in own_folders():
            private_files.tighten(folder)
        database = stack.enter_context(closing(open_database(url)))
        _take_over_old_rows(database, clock)
        embedding = EmbeddingThread(database, live.current, clock)
        client = stack.enter_context(closing(extraction_client()))
        thread = Worker(database, live.current, clock, client)
        library = Library(database, live.current, clock, embedding.wake, thread.wake)
        watcher = Watcher(library, live.current, watch_for)
        spool = stack.enter_context(closing(_spool(url, database, live, clock)))
        service = Service(database, live, thread, embedding, library, spool, clock)
        replayer = Replayer(spool, service.store_exchange)
        for stop in (
            service.consolidation.close,
            service.phases.close,
            embedding.stop,
            service.session_keeper.stop,
            service.session_searches.stop,
        ):
            stack.callback(stop)
        if worker:
            embedding.start()
            _keep_in_step(stack, service)
            watcher.start()
            replayer.start()
            service.session_keeper.start_ending()
            stack.callback(replayer.stop)
            stack.callback(watcher.stop)
            _run_lanes(stack, _lanes(service))
            stack.callback(watcher.ask_to_stop)
            stack.callback(replayer.ask_to_stop)
            stack.callback(embedding.ask_to_stop)
        yield service


def _keep_in_step(stack: ExitStack, service: Service) -> None:
    """What follows from what is stored: numbers, and files."""
    stack.enter_context(service.tallies.counting())
    stack.enter_context(service.archive_keeper.keeping())
    stack.enter_context(service.memory_file_keeper.keeping())


def _lanes(service: Service) -> list[Lane[Any, Any]]:
    """Those of every strategy, and the one that consolidates what they make."""
    return [*(lane for one in service.strategies for lane in one.lanes), service.consolidation.lane]


def _run_lanes(stack: ExitStack, lanes: Sequence[Lane[Any, Any]]) -> None:
    """A thread for each kind of job: extraction never waits for a kind whose jobs take long."""
    for lane in lanes:
        lane.start()
    stack.callback(stop_lanes, lanes)


def _take_over_old_rows(database: Database, clock: Clock) -> None:
    """What a version before this one stored, or the original shepherd."""
    legacy.import_legacy_tables(database, clock())
    if reindexing.is_needed(database):
        reindexing.reindex_all_users(database, clock())


def _spool(url: str, database: Database, live: LiveConfig, clock: Clock) -> Spool:
    def max_bytes() -> int:
        return live.current().server_spool_mb * 1_000_000

    return Spool(state_folder() / "spool", name_of(url, database.url), max_bytes, clock)
