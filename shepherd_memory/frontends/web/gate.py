"""The outermost middleware: host check, concurrency limit, error responses, log line, metrics."""

import asyncio
import logging
import time
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shepherd_memory.errors import ShepherdError
from shepherd_memory.frontends.web import hosts
from shepherd_memory.frontends.web.connections import CROWDED_KEY
from shepherd_memory.frontends.web.http_errors import RETRY_SECONDS, HttpError, from_error, render, wire_of
from shepherd_memory.frontends.web.limits import ClientGone
from shepherd_memory.frontends.web.state import (
    ANSWERED_KEY,
    HOLD_KEY,
    LOG_KEY,
    SCOPE_KEY,
    ServerState,
    config_of,
    headers_of,
)

HEALTH_PATHS = ("/health", "/health/live", "/health/ready")
"""Answered also before it is known whether there are keys; they tell a stranger nothing but their status."""

ALWAYS_OPEN = ("/metrics", "/status")
"""Answered also when all slots are taken: that is when somebody wants to know."""

GIVEN_ONCE = {
    b"host": "Host",
    b"authorization": "Authorization",
    b"x-api-key": "x-api-key",
    b"x-shepherd-user": "X-Shepherd-User",
    b"x-shepherd-group": "X-Shepherd-Group",
}

OTHER_ROUTES = "other"
CLIENT_GONE, BROKEN = 499, 502

logger = logging.getLogger("shepherd_memory.frontends.server.gate")


class Broken(Exception):
    """The provider broke off in the middle of its answer: so does ours, as it would have without us."""


class RequestGate:
    """Lets a request through to the routes, and turns whatever is raised there into an answer."""

    def __init__(self, routes: ASGIApp, state: Callable[[], ServerState]) -> None:
        self._routes = routes
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._routes(scope, receive, send)
        state = self._state()
        scope[SCOPE_KEY], scope["app"] = state, self
        answer = _Answer(scope, send)
        begun = time.perf_counter()
        try:
            await self._answer(state, scope, receive, answer)
        except ClientGone:
            answer.status = answer.status or CLIENT_GONE
        except Broken:
            # To return with half an answer given has the server break the connection off.
            answer.status = BROKEN
        finally:
            if HOLD_KEY in scope:
                scope[HOLD_KEY].let_go()
            self._note(state, scope, answer.status, time.perf_counter() - begun)

    async def _let_in(self, state: ServerState, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        _check_given_once(scope)
        hosts.check(headers_of(scope), state.names)
        if state.door.needs_no_key:
            hosts.refuse_cross_site(headers_of(scope))
        if scope["path"] in HEALTH_PATHS:
            return await self._routes(scope, receive, answer)
        await state.door.check_ready()
        if scope["path"] in ALWAYS_OPEN:
            return await self._routes(scope, receive, answer)
        if CROWDED_KEY in scope:
            again = {"Retry-After": str(RETRY_SECONDS)}
            raise HttpError(503, "too many connections at once; try again", code="overloaded", headers=again)
        with state.slots.one(config_of(scope).server_max_requests):
            await self._routes(scope, receive, answer)

    async def _answer(self, state: ServerState, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        """Whatever is raised becomes an answer, as long as none has begun."""
        try:
            await self._let_in(state, scope, receive, answer)
        except HttpError as refusal:
            await _refuse(refusal, scope, answer)
        except HTTPException as error:
            await _refuse(HttpError(error.status_code, error.detail, headers=error.headers), scope, answer)
        except ShepherdError as error:
            told = from_error(error)
            if told.status >= 500:
                logger.warning("%s", type(error).__name__, exc_info=error)
            await _refuse(told, scope, answer)
        except ClientGone:
            raise
        except asyncio.CancelledError:
            # The server is told to stop, and this request takes longer than that may.
            again = {"Retry-After": str(RETRY_SECONDS)}
            await _refuse(HttpError(503, "the server is stopping; try again", headers=again), scope, answer)
        except Exception:
            logger.exception("unexpected")
            await _refuse(HttpError(500, "something failed here; the server's log says what"), scope, answer)

    def _note(self, state: ServerState, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", OTHER_ROUTES)
        state.metrics.count(route, status, seconds)
        if logger.isEnabledFor(logging.INFO):
            _log(scope, route, status, seconds)


def _log(scope: Scope, route: str, status: int, seconds: float) -> None:
    """One line for a request; made by hand: to look for where it is logged takes a third more."""
    record = logging.LogRecord(logger.name, logging.INFO, __file__, 0, "request", (), None)
    fields = {"method": scope["method"], "route": route, "status": status, "ms": round(seconds * 1000, 1)}
    record.fields = fields | scope.get(LOG_KEY, {})
    logger.handle(record)


class _Answer:
    """The way back to the client, and whether something went there yet."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.status = 0
        self._scope = scope
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif not message.get("more_body", False):
            self._scope[ANSWERED_KEY] = True
        await self._send(message)


def _check_given_once(scope: Scope) -> None:
    """Of two headers that say who asks, or whom, neither counts: programs differ in which they would take."""
    given = [name for name, _ in scope["headers"] if name in GIVEN_ONCE]
    if len(given) > len(set(given)):
        twice = next(text for name, text in GIVEN_ONCE.items() if given.count(name) > 1)
        raise HttpError(400, f"a request has one {twice} header")


async def _refuse(refusal: HttpError, scope: Scope, answer: _Answer) -> None:
    if answer.status:
        # Half an answer went out: to break off is all that is left.
        raise Broken from refusal
    body = render(refusal, wire_of(scope["path"]))
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **{name.lower(): value for name, value in refusal.headers.items()},
    }
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await answer({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await answer({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
