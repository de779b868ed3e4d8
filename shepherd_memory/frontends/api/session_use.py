"""The session that a chat says it belongs to: whether it is still open, and that it is in use."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shepherd_memory.errors import DatabaseError
from shepherd_memory.frontends.api.state import State
from shepherd_memory.memory.session_lives import SessionLife
from shepherd_memory.memory.sessions import ON

logger = logging.getLogger("shepherd_memory.frontends.server.session_use")


@asynccontextmanager
async def session_in_use(
    state: State, seconds: float, user_id: str, session_id: str, group: str
) -> AsyncIterator[str]:
    """Raises SessionEnded before anything is done; while it lasts, the session is not silent.

    The mode of its memory is given: `on` where nobody said otherwise.

    A chat does not wait longer than `seconds` for the memory to say so, and goes on if it cannot.
    """
    life = await _life(state, seconds, user_id, session_id, group) if session_id else None
    if life is None:
        yield ON
        return
    with state.service.session_keeper.using(user_id, session_id, group):
        yield life.memory_mode


async def _life(
    state: State, seconds: float, user_id: str, session_id: str, group: str
) -> SessionLife | None:
    def use() -> SessionLife | None:
        return state.service.use_session(user_id, session_id, group=group)

    try:
        return await state.threads.run_within(seconds, use)
    except (DatabaseError, TimeoutError) as error:
        logger.warning(
            "whether a session has ended is not known (%s): its chat goes on", type(error).__name__
        )
        return None
