"""The server as one ASGI application."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from shepherd_memory.config import Config
from shepherd_memory.config.providers import memory_use
from shepherd_memory.frontends.api.memory_routes import MEMORY_ROUTES
from shepherd_memory.frontends.api.models import Model, Models
from shepherd_memory.frontends.api.openapi import openapi
from shepherd_memory.frontends.api.proxy import ChatRoute, pass_through
from shepherd_memory.frontends.api.session_routes import health as health_of_session
from shepherd_memory.frontends.api.state import State
from shepherd_memory.frontends.api.tool_routes import TOOL_ROUTES
from shepherd_memory.frontends.api.upstream import open_session
from shepherd_memory.frontends.mcp.http import MCP_ROUTES
from shepherd_memory.frontends.web import health, hosts
from shepherd_memory.frontends.web.auth import Auth, Authenticator
from shepherd_memory.frontends.web.gate import RequestGate
from shepherd_memory.frontends.web.http_errors import ANTHROPIC, OPENAI, RESPONSES
from shepherd_memory.frontends.web.process import Application
from shepherd_memory.frontends.web.threads import ThreadPool
from shepherd_memory.service import Service

MODEL_SECONDS = 10.0
OWN_FOLDERS = ("memory", "tools")
"""What no provider is asked for, whatever is asked for there."""


def api_application(service: Service, host: str) -> Application:
    """The API as something that a server's process can serve."""
    states: list[State] = []

    def make(threads: ThreadPool, quick: ThreadPool, auth: Auth) -> ASGIApp:
        return create_app(service, threads, quick, states, host=host, auth=auth)

    async def finish() -> None:
        for end in [end for state in states for end in state.streams]:
            end()

    return Application(make, finish)


def create_app(
    service: Service, threads: ThreadPool, quick: ThreadPool, states: list[State], *, host: str, auth: Auth
) -> ASGIApp:
    """The server for one service; its state, added to `states`, is made at its start, and ends with it."""

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            states.append(await _open_state(stack, service, threads, quick, host, auth))
            yield

    routes = Router(ROUTES, redirect_slashes=False, default=elsewhere, lifespan=lifespan)
    return RequestGate(routes, lambda: states[-1])


async def _open_state(
    stack: AsyncExitStack, service: Service, threads: ThreadPool, quick: ThreadPool, host: str, auth: Auth
) -> State:
    door = Authenticator(service, quick, auth)
    await door.start()
    upstream = await stack.enter_async_context(open_session())
    if _uses_memory(service.config):
        # So that the first chat does not wait for the model to be loaded: it would go on without memory.
        with suppress(TimeoutError):
            await threads.run_within(MODEL_SECONDS, service.embedding.embedder)
    names = hosts.allowed_names(service.config.server_allowed_hosts, host)
    return State(service, threads, quick, door, names, upstream=upstream)


def _uses_memory(config: Config) -> bool:
    """Whether chats will recall; where no provider is configured, programs will use the memory itself."""
    return not config.providers or any(
        memory_use(config, provider).injects for provider in config.providers.values()
    )


async def elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
    """What has no route of its own: under /v1 it is the provider's, elsewhere nobody's."""
    # No slash at its beginning has the path of `OPTIONS *`.
    parts = scope["path"].split("/")
    if len(parts) < 3 or parts[1] != "v1" or parts[2] in OWN_FOLDERS:
        raise HTTPException(404, "there is nothing here; GET /openapi.json lists what there is")
    await pass_through(scope, receive, send)


ROUTES: list[BaseRoute] = [
    Route("/v1/chat/completions", ChatRoute(OPENAI)),
    Route("/v1/responses", ChatRoute(RESPONSES)),
    Route("/v1/messages", ChatRoute(ANTHROPIC)),
    Route("/v1/models", Models()),
    Route("/v1/models/{model:path}", Model()),
    *MEMORY_ROUTES,
    *TOOL_ROUTES,
    *MCP_ROUTES,
    Route("/health", health_of_session),
    Route("/health/live", health.live),
    Route("/health/ready", health.ready),
    Route("/status", health.status),
    Route("/metrics", health.metrics),
    Route("/openapi.json", openapi),
]
