"""The parts that every method of the service works with."""

from functools import cached_property
from typing import TYPE_CHECKING

from shepherd_memory.archives.keeper import ArchiveKeeper
from shepherd_memory.config import Config, LiveConfig
from shepherd_memory.consolidation.lanes import ConsolidationLane
from shepherd_memory.embedding.thread import EmbeddingThread
from shepherd_memory.extraction.worker import Worker
from shepherd_memory.maintenance.tallies import Tallies
from shepherd_memory.mirrors.memory_file_keeper import MemoryFileKeeper
from shepherd_memory.phases.lanes import PhaseLanes
from shepherd_memory.service.session_keeper import SessionKeeper
from shepherd_memory.service.timed_calls import TimedCalls
from shepherd_memory.spool.spool import Spool
from shepherd_memory.storage.clock import Clock
from shepherd_memory.storage.database import Database
from shepherd_memory.strategies.registry import register
from shepherd_memory.transcripts.library import Library

if TYPE_CHECKING:
    from shepherd_memory.recall.recall import RecallEngine

SEARCHES_AT_ONCE = 2


class ServiceParts:
    """The database, the background threads and the configuration of one running memory."""

    def __init__(
        self,
        database: Database,
        live: LiveConfig,
        worker: Worker,
        embedding: EmbeddingThread,
        transcripts: Library,
        spool: Spool,
        clock: Clock,
    ) -> None:
        self.transcripts = transcripts
        self.spool = spool
        self.database = database
        self.worker = worker
        self.embedding = embedding
        self.tallies = Tallies(database, clock)
        self.session_keeper = SessionKeeper(database, live.current, clock)
        self.session_searches = TimedCalls("shepherd-session-search", SEARCHES_AT_ONCE)
        self.archive_keeper = ArchiveKeeper(database, live.current, clock)
        self.memory_file_keeper = MemoryFileKeeper(database, live.current, clock)
        self.phases = PhaseLanes(database, live.current, clock)
        self.strategies = register(database, live.current, clock, worker, self.phases)
        transcripts.serve([one.strategy for one in self.strategies])
        self.consolidation = ConsolidationLane(database, live.current, clock)
        self._live = live
        self._clock = clock

    @property
    def config(self) -> Config:
        """The configuration in force now."""
        return self._live.current()

    @cached_property
    def _recall(self) -> "RecallEngine":
        # Late: numpy takes a tenth of a second, which commands that do not recall need not pay.
        from shepherd_memory.recall.cache import IndexCache
        from shepherd_memory.recall.recall import RecallEngine

        cache = IndexCache(lambda: self.config.recall_cache_mb * 1_000_000)
        return RecallEngine(self.database, self.embedding.embedder, cache)
