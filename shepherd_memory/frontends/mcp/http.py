"""The MCP server at `/mcp` of the API server: each request stands for itself, and acts for its own key."""

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from shepherd_memory.frontends.mcp.wire import readable
from shepherd_memory.frontends.web.bodies import read_body
from shepherd_memory.frontends.web.http_errors import HttpError
from shepherd_memory.frontends.web.state import (
    admit,
    group_of,
    headers_of,
    server_state_of,
    threads_of,
    user_of,
)
from shepherd_memory.tools import ToolOutput, answer

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from shepherd_memory.frontends.mcp.changes import Question, Streams

T = TypeVar("T")

USER_KEY = "shepherd.mcp.user"
GROUP_KEY = "shepherd.mcp.group"
JSON = "application/json"


class Mcp:
    """Streamable HTTP without sessions, so that any of several servers can answer any request.

    Nothing is kept between two requests: whose memory it is each one's own key says.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller, most = await admit(scope)
        if headers_of(scope).get("content-type", "").partition(";")[0].strip().lower() != JSON:
            # Browsers send a page's form to any server, but none with such a type.
            raise HttpError(415, f"the body must come with Content-Type: {JSON}")
        scope[USER_KEY] = await user_of(scope, caller, None)
        scope[GROUP_KEY] = group_of(scope, caller)
        raw = await read_body(scope, receive, most)
        # In a thread: the first time the SDK is imported, which takes a second, and a body may be large.
        server, body = await threads_of(scope).run(lambda: (_server(), readable(raw)))
        # What was mended may have grown.
        await _exchange(server, max(most, len(body)), scope, _Replay(body, receive), send)


async def _exchange(server: "Server[Any]", most: int, scope: Scope, receive: Receive, send: Send) -> None:
    """One request and its answer; the SDK's own check of hosts stays off, ours was made at the gate."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    manager = StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=most
    )
    async with manager.run():
        await manager.handle_request(scope, receive, send)


class _Replay:
    """The body once more, and then whatever else comes from the client."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body = body
        self._receive = receive
        self._is_new = True

    async def __call__(self) -> Message:
        if not self._is_new:
            return await self._receive()
        self._is_new = False
        return {"type": "http.request", "body": self._body, "more_body": False}


@cache
def _server() -> "Server[Any]":
    import mcp.server.streamable_http_manager  # noqa: F401

    from shepherd_memory.frontends.mcp.server import mcp_server

    return mcp_server(HttpDesk())


class HttpDesk:
    """Each request is for the user and group of its own key."""

    async def answer(self, context: Any, name: str, arguments: dict[str, Any]) -> ToolOutput:
        scope: Scope = context.request.scope
        state = server_state_of(scope)
        return await threads_of(scope).run(
            lambda: answer(state.service, scope[USER_KEY], name, arguments, group=scope[GROUP_KEY])
        )

    async def ask(self, context: Any, question: "Question[T]") -> T:
        scope: Scope = context.request.scope
        state = server_state_of(scope)
        return await threads_of(scope).run(question, state.service, scope[USER_KEY], scope[GROUP_KEY])

    async def may_look(self, context: Any) -> bool:
        scope: Scope = context.request.scope
        try:
            await server_state_of(scope).door.caller_of(headers_of(scope))
        except HttpError as refusal:
            return refusal.status >= 500
        return True

    def streams(self, context: Any) -> "Streams":
        scope: Scope = context.request.scope
        return server_state_of(scope).streams


MCP_ROUTES = [Route("/mcp", Mcp(), methods=["POST"])]
