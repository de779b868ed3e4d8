"""What the server says no with: a status and a sentence, in the wire format of the route."""

from collections.abc import Mapping

import orjson

from shepherd_memory.errors import (
    ConfigError,
    DatabaseError,
    DatabaseUnavailable,
    EndpointError,
    InvalidInput,
    NotFound,
    ShepherdError,
)

OPENAI, RESPONSES, ANTHROPIC, MCP = "openai", "responses", "anthropic", "mcp"
RETRY_SECONDS = 1

STATUSES: dict[type[ShepherdError], int] = {
    ShepherdError: 500,
    ConfigError: 500,
    InvalidInput: 400,
    NotFound: 404,
    DatabaseError: 500,
    DatabaseUnavailable: 503,
    EndpointError: 502,
}

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "invalid_request_error",
    409: "invalid_request_error",
    413: "request_too_large",
    415: "invalid_request_error",
    421: "invalid_request_error",
    426: "invalid_request_error",
    429: "rate_limit_error",
}
_RPC_REFUSED = -32600
_RPC_CODES = {500: -32603, 503: -32603}
_ANTHROPIC_TYPES = {500: "api_error", 502: "api_error", 503: "overloaded_error", 504: "timeout_error"}


class HttpError(Exception):
    """A request that is not carried out, and what the client is told."""

    def __init__(
        self, status: int, message: str, *, code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = dict(headers or {})


def unavailable(message: str) -> HttpError:
    """What cannot be done now, and may be done a moment later."""
    return HttpError(503, message, headers={"Retry-After": str(RETRY_SECONDS)})


def from_error(error: ShepherdError) -> HttpError:
    """What a client is told of an error of the core; one of the database quotes nothing of it."""
    status = next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)
    if status == 503:
        return unavailable("the memory's database cannot be used now; try again")
    if status == 500:
        return HttpError(500, "the memory failed; the server's log says why")
    return HttpError(status, str(error))


def wire_of(path: str) -> str:
    """The wire format that a path belongs to."""
    if path == "/mcp":
        return MCP
    if f"{path}/".startswith("/v1/messages/"):
        return ANTHROPIC
    return RESPONSES if f"{path}/".startswith("/v1/responses/") else OPENAI


def kind_of(status: int) -> str:
    """The `type` of an error with this status."""
    return _TYPES.get(status, "server_error")


def render(refusal: HttpError, wire: str) -> bytes:
    """The body of an error, as clients of that wire format read it."""
    if wire == MCP:
        error = {"code": _RPC_CODES.get(refusal.status, _RPC_REFUSED), "message": refusal.message}
        return orjson.dumps({"jsonrpc": "2.0", "id": None, "error": error})
    kind = kind_of(refusal.status)
    if wire == ANTHROPIC:
        kind = _ANTHROPIC_TYPES.get(refusal.status, kind)
        return orjson.dumps({"type": "error", "error": {"type": kind, "message": refusal.message}})
    code = refusal.code or None
    return orjson.dumps({"error": {"message": refusal.message, "type": kind, "code": code}})
