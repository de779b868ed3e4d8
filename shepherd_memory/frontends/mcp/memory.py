"""The service, opened in the background: a client that starts us wants its first answer at once."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

from shepherd_memory.errors import DatabaseUnavailable, ShepherdError
from shepherd_memory.text.groups import MAIN_GROUP

if TYPE_CHECKING:
    from shepherd_memory.service import Service
    from shepherd_memory.tools import ToolOutput

STOPPING = "the server is stopping"
FAILED = "the memory failed; the log says why, start again"

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Memory:
    """Opens the service in a named thread, which closes it too; what fails is tried again when asked for."""

    def __init__(
        self,
        open_it: Callable[[], AbstractContextManager["Service"]],
        user_id: str,
        group: str = MAIN_GROUP,
    ) -> None:
        self._open = open_it
        self._user_id = user_id
        self._group = group
        self._opened: Future[Service] = Future()
        self._has_ended = False
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shepherd-mcp-memory")

    def start(self) -> None:
        """Begin to open the service, unless that has begun."""
        with self._lock:
            if self._thread.ident is None and not self._stopping.is_set():
                self._thread.start()

    def stop(self) -> None:
        """Close the service, once it is open."""
        with self._lock:
            self._stopping.set()
            is_running = self._thread.ident is not None
        self._wanted.set()
        if is_running:
            self._thread.join()

    def answer(self, name: str, arguments: object) -> "ToolOutput":
        """What a tool answers; without a memory, why there is none."""
        from shepherd_memory.tools import ERROR, ToolOutput, answer

        try:
            service = self._service()
        except ShepherdError as error:
            return ToolOutput(f"{ERROR} {error}")
        return answer(service, self._user_id, name, arguments, group=self._group)

    def ask(self, question: Callable[["Service", str, str], T]) -> T:
        """What the service says to a question about the user's group; ShepherdError if it cannot be asked."""
        return question(self._service(), self._user_id, self._group)

    def _service(self) -> "Service":
        self.start()
        with self._lock:
            if self._stopping.is_set() and self._thread.ident is None:
                raise DatabaseUnavailable(STOPPING)
            if self._opened.done() and self._opened.exception() and not self._has_ended:
                self._opened = Future()
                self._wanted.set()
            opened = self._opened
        return opened.result()

    def _run(self) -> None:
        why = FAILED
        try:
            while not self._stopping.is_set():
                self._try()
                self._wanted.wait()
                self._wanted.clear()
            why = STOPPING
        except Exception:
            # Whoever waits for an answer gets one below, and the process ends with its client as ever.
            logger.exception("the memory failed")
        finally:
            with self._lock:
                self._has_ended = True
                if not self._opened.done():
                    self._opened.set_exception(DatabaseUnavailable(why))

    def _try(self) -> None:
        """Hold the service open until the end; return if it cannot be opened."""
        try:
            with self._open() as service:
                self._opened.set_result(service)
                self._stopping.wait()
        except ShepherdError as error:
            why = f"the memory cannot be opened: {error}"
            logger.warning("%s", why)
            if not self._opened.done():
                self._opened.set_exception(DatabaseUnavailable(why))
