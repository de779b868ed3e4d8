"""The memory around one chat: what it adds to the request before, and what it keeps of it after."""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.config.identity import is_known
from shepherd_memory.config.providers import MemoryUse
from shepherd_memory.errors import DatabaseError, ShepherdError
from shepherd_memory.frontends.api.splicing import SplicePoint
from shepherd_memory.frontends.api.state import State
from shepherd_memory.frontends.web.limits import BodyHold
from shepherd_memory.injection.block import MemoryBlock
from shepherd_memory.injection.injector import InjectionRequest
from shepherd_memory.injection.prompt import block_suffix
from shepherd_memory.injection.prompt_injection import PromptInjection
from shepherd_memory.injection.prompting import Injected
from shepherd_memory.intake.exchange import ResponseLink
from shepherd_memory.intake.messages import last_user_message
from shepherd_memory.llm.request import ReadAnswer
from shepherd_memory.memory.sessions import OFF, ON
from shepherd_memory.service.deliveries import Delivery
from shepherd_memory.text.groups import MAIN_GROUP

UNKNOWN_USER, FAILED, TIMEOUT = "unknown-user", "failed", "timeout"
NONE = "none"
"""There is no memory for this kind of request, whoever asks."""

REMOTE = "remote"
"""Memory is left to the provider, which is a shepherd too, and says itself what it did."""

MAX_IDS = 100

STORED, SPOOLED, LOST = "true", "spooled", "false"
"""What became of an exchange, as `X-Shepherd-Remembered` says it."""

SPOOL_SECONDS = 30.0
"""Longest that a chat waits for the spool: a very long text takes its time to be cleaned of secrets."""

COUNTED_AS = {STORED: "remembered", SPOOLED: "spooled", LOST: "unremembered"}

logger = logging.getLogger("shepherd_memory.frontends.server.chat_memory")


class ChatMemory:
    """One request's memory: within its time budget, and never in the way of the chat.

    `is_linked`: a later request may go on from the answer by its id, as this one does from the
    `previous_response`.
    """

    def __init__(
        self,
        state: State,
        config: Config,
        user_id: str,
        messages: list[Any],
        session_id: str,
        wanted: MemoryUse,
        hold: BodyHold,
        recalls: bool = True,
        previous_response: str = "",
        is_linked: bool = False,
        group: str = MAIN_GROUP,
        provider: str = "",
        cwd: str = "",
        context_window: int = 0,
    ) -> None:
        self.status = wanted.word if is_known(user_id) or not wanted else UNKNOWN_USER
        self._remembers = wanted.remembers and is_known(user_id)
        self._injects = wanted.injects and is_known(user_id)
        self._state = state
        self._budget_seconds = config.server_memory_timeout
        self._user_id = user_id
        self._messages = messages if self._remembers or self._injects else []
        self._session_id = session_id
        self._group = group
        self._provider = provider
        self._cwd = cwd
        self._recalls = recalls
        self._previous_response = previous_response
        self._is_linked = is_linked
        self._context_window = context_window
        self._hold = hold
        self._threads = state.threads.for_size(hold.size)
        self._injected: Injected | None = None
        self._blocks: Mapping[int, MemoryBlock] = {}
        self._is_kept = False
        self._is_counted = False
        self._became = ""

    @property
    def belonging(self) -> tuple[str, str, str]:
        """Whose chat it is, the session that it says it belongs to, and the group."""
        return self._user_id, self._session_id, self._group

    def restrict(self, mode: str) -> None:
        """Keep to what the session's memory is for: `read-only` keeps nothing, `off` tells nothing either."""
        self._remembers = self._remembers and mode == ON
        self._injects = self._injects and mode != OFF
        if mode != ON and self.status not in (NONE, REMOTE, UNKNOWN_USER):
            self.status = MemoryUse(self._remembers, self._injects).word

    @property
    def is_on(self) -> bool:
        """Whether the exchange is to be remembered: also when recalling for it failed."""
        return self._remembers

    async def tails(self) -> list[SplicePoint]:
        """What memory adds to what the user says: the last time, and again where it did so before.

        If memory fails or takes too long, at least what was added before stays, if it was found by then.
        """
        if not self._injects or last_user_message(self._messages) is None:
            return []
        if not self._recalls:
            # It may be back by now, and know that whoever asks may not read.
            self._fail(FAILED, "the database is away: the chat goes on without recall")
            self._count(0)
            return []
        self._blocks = await self._inject()
        self._count(self._injected.block.tokens if self._injected and self._injected.block else 0)
        return [
            SplicePoint(place, block_suffix(self._messages[place]["content"], block))
            for place, block in self._blocks.items()
        ]

    async def _inject(self) -> Mapping[int, MemoryBlock]:
        """The blocks by the place of their message, as far as they were found in time."""
        asked = InjectionRequest(
            self._user_id,
            self._messages,
            self._session_id,
            self._group,
            previous_response=self._previous_response,
            context_window=self._context_window,
        )
        service = self._state.service
        injection = PromptInjection(service.injector, asked)
        begun = time.perf_counter()
        try:
            self._injected = await self._within_budget(
                lambda: service.run_injection(self._user_id, injection, group=self._group)
            )
        except TimeoutError:
            self._fail(TIMEOUT, "recall took too long: the chat goes on without it")
        except ShepherdError as error:
            self._fail(FAILED, f"recall failed: the chat goes on without it ({type(error).__name__})")
        except Exception:
            logger.exception("recall failed unexpectedly: the chat goes on without it")
            self.status = FAILED
        finally:
            self._state.metrics.recall_seconds.observe(time.perf_counter() - begun)
        return self._injected.blocks if self._injected else injection.abandon()

    def headers(self) -> list[tuple[bytes, bytes]]:
        """What memory did, for the client: on or off, and what was injected."""
        headers = {"x-shepherd-memory": self.status} if self.status != REMOTE else {}
        if self._blocks:
            headers["x-shepherd-blocks"] = str(len(self._blocks))
        if self._injected is not None:
            block = self._injected.block
            headers["x-shepherd-injected"] = str(len(self._injected.told))
            headers["x-shepherd-injected-tokens"] = str(block.tokens if block else 0)
            headers["x-shepherd-abstained"] = str(self._injected.recalled.abstained).lower()
            ids = [f"{kind}:{number}" for kind, number in self._injected.told[:MAX_IDS]]
            headers |= {"x-shepherd-injected-ids": ",".join(ids)} if ids else {}
            if self._injected.request:
                headers["x-shepherd-request"] = self._injected.request
        if self._became:
            headers["x-shepherd-remembered"] = self._became
        return [(name.encode(), value.encode()) for name, value in headers.items()]

    async def keep(self, answer: ReadAnswer) -> None:
        """Store the exchange, or spool it if that fails or takes too long: on the disk when this returns."""
        if not self.is_on or self._is_kept or answer.failed:
            return
        self._is_kept = True
        delivery = self._delivery(answer.text if answer.is_final else None, answer.response_id)
        if delivery.must_queue:
            self._became = await self._spool(delivery)
            return
        try:
            self._became = await self._within_budget(lambda: self._store_or_spool(delivery))
        except TimeoutError:
            logger.warning("storing an exchange took too long: it is spooled")
            self._became = await self._spool(delivery)

    def keep_said(self) -> None:
        """Store what the user said, in a thread of its own: the client has gone, and there is no answer."""
        if self.is_on and not self._is_kept:
            self._is_kept = True
            self._hold.share()
            delivery = self._delivery(None)
            self._threads.start(lambda: self._store_said(delivery), "storing an exchange")

    def drop(self) -> None:
        """Keep nothing of this exchange: the provider's answer is an error."""
        self._is_kept = True

    async def _within_budget(self, call: Any) -> Any:
        return await self._threads.run_within(self._budget_seconds, call)

    def _delivery(self, answer: str | None, response_id: str = "") -> Delivery:
        turns = self._injected.turns if self._injected else ()
        last_turn = turns[-1].key if turns else ""
        link = ResponseLink(self._previous_response, response_id if self._is_linked else "", last_turn)
        return self._state.service.deliver(
            self._user_id,
            self._messages,
            answer,
            self._session_id,
            link,
            group=self._group,
            provider=self._provider,
            cwd=self._cwd,
        )

    def _store_or_spool(self, delivery: Delivery) -> str:
        """What became of it; runs in a thread, and may end when nobody waits for it any more."""
        became = SPOOLED if delivery.must_queue else self._store(delivery)
        if became == SPOOLED and not delivery.to_spool().result():
            became = LOST
        return self._counted(became)

    def _store(self, delivery: Delivery) -> str:
        try:
            delivery.store()
        except DatabaseError as error:
            self._state.write_problem = f"the last exchange could not be stored: {error}"
            logger.warning("an exchange could not be stored (%s): it is spooled", type(error).__name__)
            return SPOOLED
        except Exception:
            logger.exception("an exchange could not be stored")
            return LOST
        self._state.write_problem = ""
        return STORED

    async def _spool(self, delivery: Delivery) -> str:
        is_kept = False
        with suppress(TimeoutError):
            async with asyncio.timeout(SPOOL_SECONDS):
                # Shielded: a client that leaves now must not keep it out of the spool.
                is_kept = await asyncio.shield(asyncio.wrap_future(delivery.to_spool()))
        return self._counted(SPOOLED if is_kept else LOST)

    def _store_said(self, delivery: Delivery) -> None:
        try:
            self._store_or_spool(delivery)
        finally:
            self._hold.let_go()

    def _fail(self, status: str, message: str) -> None:
        self.status = status
        logger.warning(message)

    def _count(self, tokens: int) -> None:
        result = self.status if self._injected is None else "injected" if tokens else "nothing"
        self._state.metrics.injections.labels(result).inc()
        self._state.metrics.injected_tokens.inc(tokens)

    def _counted(self, became: str) -> str:
        """Once: what took too long counts as what it was then, whatever becomes of it later."""
        if not self._is_counted:
            self._is_counted = True
            self._state.metrics.exchanges.labels(COUNTED_AS[became]).inc()
            if became == LOST:
                logger.error("an exchange is not remembered: neither the database nor the spool took it")
        return became
