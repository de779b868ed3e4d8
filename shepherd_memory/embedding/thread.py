"""The embedder's thread: works off the backlog in the background."""

import logging
import threading
from collections.abc import Callable

from shepherd_memory.config import Config
from shepherd_memory.embedding import backlog
from shepherd_memory.embedding.engine import (
    Embedder,
    Unavailable,
    model_name,
    open_embedder,
    what_is_missing,
)
from shepherd_memory.errors import DatabaseError
from shepherd_memory.storage.clock import Clock
from shepherd_memory.storage.database import Connection, Database

Choice = tuple[str, ...]

IDLE_SECONDS = 1.0
TROUBLE_SECONDS = 5.0

logger = logging.getLogger(__name__)


def choice_of(config: Config) -> Choice:
    """What a change of which asks for another model."""
    return (
        config.embedding_engine,
        config.embedding_model,
        config.embedding_device,
        config.embedding_endpoint,
        config.embedding_api_key,
        # Only an endpoint is waited for; for its sake no model is loaded again.
        str(config.embedding_timeout) if config.embedding_endpoint else "",
    )


class EmbeddingThread:
    """One named thread that loads the model when it is first needed, and embeds what waits."""

    def __init__(self, database: Database, config: Callable[[], Config], clock: Clock) -> None:
        self._database = database
        self._config = config
        self._clock = clock
        self._loaded: Embedder | None = None
        self._loaded_for: Choice | None = None
        self._loading = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shepherd-embedder")
        self._checked_model = ""
        self.problem = ""

    def start(self) -> None:
        # Before there are two threads: if both import it for the first time, one may see half of it.
        import numpy  # noqa: F401

        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def ask_to_stop(self) -> None:
        """Begin to stop, so that whoever stops several threads waits for them at the same time."""
        self._stopping.set()
        self._wake.set()

    def stop(self) -> None:
        """Stop within two seconds: what is being embedded waits for the next start."""
        self.ask_to_stop()
        while self._thread.is_alive():
            # Again and again: the model may be loaded just after we closed.
            self._close()
            self._thread.join(0.05)
        self._close()

    def _close(self) -> None:
        loaded = self._loaded
        if loaded is not None:
            loaded.close()

    def embedder(self) -> Embedder | None:
        """The model, loaded once and again when another is configured; None if there is none to be had."""
        config = self._config()
        choice = choice_of(config)
        with self._loading:
            if choice != self._loaded_for:
                self._loaded_for = choice
                self._reload(config)
            return self._loaded

    def trouble(self) -> str:
        """Why recall works by keyword only, as far as is known without loading the model; else empty."""
        config = self._config()
        return self.problem if choice_of(config) == self._loaded_for else what_is_missing(config)

    def _reload(self, config: Config) -> None:
        self._close()
        self._loaded, self.problem = None, ""
        try:
            self._loaded = open_embedder(config)
        except Unavailable as error:
            self.problem = str(error)
            logger.warning("recall works by keyword only: %s", error)

    def _try_again(self) -> Embedder | None:
        """What could not be had may be there now; tried without the lock, so that no recall waits for it."""
        if not self.problem:
            return None
        config = self._config()
        loaded = open_embedder(config)
        with self._loading:
            if self._loaded is None and choice_of(config) == self._loaded_for:
                self._loaded, self.problem = loaded, ""
            return self._loaded

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                pause = self._step()
            except Exception:
                logger.exception("embedding failed unexpectedly and is tried again")
                pause = TROUBLE_SECONDS
            # Cleared after the wait: what woke us up during the step is not lost, nor is the stop.
            self._wake.wait(pause)
            self._wake.clear()

    def _step(self) -> float:
        """Embed one batch; how many seconds to wait before the next."""
        try:
            with self._database.read() as connection:
                changed = self._is_model_changed(connection)
                if backlog.is_empty(connection) and not changed:
                    return IDLE_SECONDS
            embedder = self.embedder() or self._try_again()
            if embedder is None:
                return TROUBLE_SECONDS
            if changed:
                backlog.queue_all(self._database, embedder.model, self._clock())
                self._checked_model = embedder.model
            done = backlog.embed_batch(self._database, embedder, self._clock(), self._stopping.is_set)
        except Unavailable as error:
            if str(error) != self.problem and not self._stopping.is_set():
                logger.warning("embedding waits: %s", error)
            self.problem = str(error)
            return TROUBLE_SECONDS
        except DatabaseError as error:
            logger.warning("embedding waits: %s", error)
            return TROUBLE_SECONDS
        self.problem = ""
        # None: others are at all that waits.
        return 0.0 if done else IDLE_SECONDS

    def _is_model_changed(self, connection: Connection) -> bool:
        """Whether there are vectors of another model than the one configured; looked up once for each.

        Only this thread does: it may take a while in a large database, and recall must not write.
        """
        model = model_name(self._config())
        if model in ("", self._checked_model):
            return False
        if backlog.has_other_models(connection, model):
            return True
        self._checked_model = model
        return False
