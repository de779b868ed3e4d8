"""The CLI server as one ASGI application, and as a process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.exceptions import HTTPException
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from shepherd_memory.frontends.session_server.routes import ROUTES, SessionState
from shepherd_memory.frontends.session_server.shared_session import SharedSession
from shepherd_memory.frontends.web import hosts
from shepherd_memory.frontends.web.auth import Auth, Authenticator
from shepherd_memory.frontends.web.gate import RequestGate
from shepherd_memory.frontends.web.process import Application
from shepherd_memory.frontends.web.threads import ThreadPool
from shepherd_memory.service import Service


def session_application(service: Service, session: SharedSession, host: str) -> Application:
    """The session as something that the server's process can serve."""

    def make(threads: ThreadPool, quick: ThreadPool, auth: Auth) -> ASGIApp:
        names = hosts.allowed_names(service.config.server_allowed_hosts, host)
        door = Authenticator(service, quick, auth)
        return create_app(SessionState(service, threads, quick, door, names, session=session))

    return Application(make, session.finish)


def create_app(state: SessionState) -> ASGIApp:
    """The application; the session works from the server's start on."""

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        await state.door.start()
        state.session.start()
        yield

    routes = Router(ROUTES, redirect_slashes=False, default=_elsewhere, lifespan=lifespan)
    return RequestGate(routes, lambda: state)


async def _elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
    paths = ", ".join(getattr(route, "path", "") for route in ROUTES)
    raise HTTPException(404, f"there is nothing here; a shared session has {paths}")
