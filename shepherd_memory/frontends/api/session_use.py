"""The session that a chat says it belongs to: whether it is still open, and that it is in use."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shepherd_memory.errors import DatabaseError
from shepherd_memory.frontends.api.state import State

logger = logging.getLogger("shepherd_memory.frontends.server.session_use")


@asynccontextmanager
async def session_in_use(
    state: State, seconds: float, user_id: str, session_id: str, group: str
) -> AsyncIterator[None]:
    """Raises SessionEnded before anything is done; while it lasts, the session is not silent.

    A chat does not wait longer than `seconds` for the memory to say so, and goes on if it cannot.
    """
    if session_id and await _has_life(state, seconds, user_id, session_id, group):
        with state.service.session_keeper.using(user_id, session_id, group):
            yield
    else:
        yield


async def _has_life(state: State, seconds: float, user_id: str, session_id: str, group: str) -> bool:
    def use() -> bool:
        return state.service.use_session(user_id, session_id, group=group)

    try:
        return await state.threads.run_within(seconds, use)
    except (DatabaseError, TimeoutError) as error:
        logger.warning(
            "whether a session has ended is not known (%s): its chat goes on", type(error).__name__
        )
        return False
