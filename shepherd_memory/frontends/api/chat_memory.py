"""The memory around one chat: what it adds to the request before, and what it keeps of it after."""

import logging
import time
from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.config.identity import is_known
from shepherd_memory.errors import DatabaseError, ShepherdError
from shepherd_memory.frontends.api.splicing import SplicePoint
from shepherd_memory.frontends.api.state import State
from shepherd_memory.frontends.web.limits import BodyHold
from shepherd_memory.injection.prompt import block_suffix
from shepherd_memory.injection.prompting import Injected
from shepherd_memory.intake.messages import last_user_message
from shepherd_memory.llm.request import ReadAnswer

ON, OFF, UNKNOWN_USER, FAILED, TIMEOUT = "on", "off", "unknown-user", "failed", "timeout"
MAX_IDS = 100

logger = logging.getLogger("shepherd_memory.frontends.server.chat_memory")


class ChatMemory:
    """One request's memory: within its time budget, and never in the way of the chat."""

    def __init__(
        self,
        state: State,
        config: Config,
        user_id: str,
        messages: list[Any],
        session_id: str,
        wanted: bool,
        hold: BodyHold,
        recalls: bool = True,
    ) -> None:
        self.status = OFF if not wanted else ON if is_known(user_id) else UNKNOWN_USER
        self._state = state
        self._budget_seconds = config.server_memory_timeout
        self._user_id = user_id
        self._messages = messages if self.is_on else []
        self._session_id = session_id
        self._recalls = recalls
        self._hold = hold
        self._injected: Injected | None = None
        self._is_kept = False
        self._is_counted = False
        self._is_stored: bool | None = None

    @property
    def is_on(self) -> bool:
        """Whether the exchange is to be remembered: also when recalling for it failed."""
        return self.status not in (OFF, UNKNOWN_USER)

    async def tail(self) -> SplicePoint | None:
        """What memory adds to the user's last message; nothing if it has none, fails, or takes too long."""
        place = last_user_message(self._messages)
        if not self.is_on or place is None:
            return None
        if not self._recalls:
            # It may be back by now, and know that whoever asks may not read.
            self._fail(FAILED, "the database is away: the chat goes on without recall")
            self._count(0)
            return None
        begun = time.perf_counter()
        try:
            self._injected = await self._within_budget(self._inject)
        except TimeoutError:
            self._fail(TIMEOUT, "recall took too long: the chat goes on without it")
        except ShepherdError as error:
            self._fail(FAILED, f"recall failed: the chat goes on without it ({type(error).__name__})")
        except Exception:
            logger.exception("recall failed unexpectedly: the chat goes on without it")
            self.status = FAILED
        finally:
            self._state.metrics.recall_seconds.observe(time.perf_counter() - begun)
        block = self._injected.block if self._injected else None
        self._count(block.tokens if block else 0)
        return SplicePoint(place, block_suffix(self._messages[place]["content"], block)) if block else None

    def headers(self) -> list[tuple[bytes, bytes]]:
        """What memory did, for the client: on or off, and what was injected."""
        headers = {"x-shepherd-memory": self.status}
        if self._injected is not None:
            block = self._injected.block
            headers["x-shepherd-injected"] = str(len(self._injected.told))
            headers["x-shepherd-injected-tokens"] = str(block.tokens if block else 0)
            headers["x-shepherd-abstained"] = str(self._injected.recalled.abstained).lower()
            ids = [f"{kind}:{number}" for kind, number in self._injected.told[:MAX_IDS]]
            headers |= {"x-shepherd-injected-ids": ",".join(ids)} if ids else {}
            if self._injected.request:
                headers["x-shepherd-request"] = self._injected.request
        if self._is_stored is not None:
            headers["x-shepherd-remembered"] = str(self._is_stored).lower()
        return [(name.encode(), value.encode()) for name, value in headers.items()]

    async def keep(self, answer: ReadAnswer) -> None:
        """Store the exchange, committed when this returns; a failure, or taking too long, is counted."""
        if not self.is_on or self._is_kept or answer.failed:
            return
        self._is_kept = True
        text = answer.text if answer.is_final else None
        try:
            self._is_stored = await self._within_budget(lambda: self._remember(text))
        except TimeoutError:
            self._is_stored = False
            self._count_exchange("unremembered")
            logger.warning("storing an exchange took too long: it is released before it is remembered")

    def keep_said(self) -> None:
        """Store what the user said, in a thread of its own: the client has gone, and there is no answer."""
        if self.is_on and not self._is_kept:
            self._is_kept = True
            self._hold.share()
            self._state.threads.start(self._remember_said, "storing an exchange")

    def drop(self) -> None:
        """Keep nothing of this exchange: the provider's answer is an error."""
        self._is_kept = True

    async def _within_budget(self, call: Any) -> Any:
        return await self._state.threads.run_within(self._budget_seconds, call)

    def _inject(self) -> Injected:
        return self._state.service.inject(self._user_id, self._messages, session_id=self._session_id)

    def _remember(self, answer: str | None) -> bool:
        """Whether it is stored; runs in a thread, and may end when nobody waits for it any more."""
        try:
            self._state.service.remember_exchange(self._user_id, self._messages, answer, self._session_id)
        except DatabaseError as error:
            self._state.write_problem = f"the last exchange could not be stored: {error}"
            self._count_exchange("unremembered")
            logger.warning("an exchange could not be stored (%s): it is not remembered", type(error).__name__)
            return False
        except Exception:
            self._count_exchange("unremembered")
            logger.exception("an exchange could not be stored")
            return False
        self._state.write_problem = ""
        self._count_exchange("remembered")
        return True

    def _remember_said(self) -> None:
        try:
            self._remember(None)
        finally:
            self._hold.let_go()

    def _fail(self, status: str, message: str) -> None:
        self.status = status
        logger.warning(message)

    def _count(self, tokens: int) -> None:
        result = self.status if self._injected is None else "injected" if tokens else "nothing"
        self._state.metrics.injections.labels(result).inc()
        self._state.metrics.injected_tokens.inc(tokens)

    def _count_exchange(self, result: str) -> None:
        """Once: what took too long counts as that, whatever becomes of it later."""
        if not self._is_counted:
            self._is_counted = True
            self._state.metrics.exchanges.labels(result).inc()
