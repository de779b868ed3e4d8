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
    SessionBusy,
    SessionConflict,
    SessionEnded,
    ShepherdError,
    VersionChanged,
)

OPENAI, RESPONSES, ANTHROPIC, MCP = "openai", "responses", "anthropic", "mcp"
RETRY_SECONDS = 1
SESSION_HEADER = "X-Shepherd-Session"
SESSION_ACTIVE, SESSION_ENDED, SESSION_BUSY = "session_active", "session_ended", "session_busy"

STATUSES: dict[type[ShepherdError], int] = {
    ShepherdError: 500,
    ConfigError: 500,
    InvalidInput: 400,
    VersionChanged: 409,
    NotFound: 404,
    SessionConflict: 409,
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
        self,
        status: int,
        message: str,
        *,
        code: str = "",
        headers: Mapping[str, str] | None = None,
        session_id: str = "",
    ) -> None:
        """`session_id`: the one that stands in the way, for clients of ours to go on in."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = dict(headers or {})
        self.session_id = session_id


def unavailable(message: str) -> HttpError:
    """What cannot be done now, and may be done a moment later."""
    return HttpError(503, message, headers={"Retry-After": str(RETRY_SECONDS)})


def session_header(session_id: str) -> dict[str, str]:
    """The header that names a session; none if it is not of the ids that we give."""
    is_plain = session_id.isascii() and session_id.isprintable() and session_id.strip() == session_id
    return {SESSION_HEADER: session_id} if session_id and is_plain else {}


def from_error(error: ShepherdError) -> HttpError:
    """What a client is told of an error of the core; one of the database quotes nothing of it."""
    status = next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)
    if status == 503:
        return unavailable("the memory's database cannot be used now; try again")
    if status == 500:
        return HttpError(500, "the memory failed; the server's log says why")
    if isinstance(error, SessionEnded):
        # OpenAI's and Anthropic's libraries ask a conflict again, and this one stays.
        headers = {**session_header(error.session_id), "X-Should-Retry": "false"}
        return HttpError(status, str(error), code=SESSION_ENDED, headers=headers)
    if isinstance(error, SessionConflict):
        running = error.session_id
        named = session_header(running)
        code = SESSION_BUSY if isinstance(error, SessionBusy) else SESSION_ACTIVE
        return HttpError(status, str(error), code=code, headers=named, session_id=running)
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
        # It has no room for codes, and this one programs have to know.
        coded = f"{SESSION_ENDED}: " if refusal.code == SESSION_ENDED else ""
        detail = {"type": kind, "message": coded + refusal.message}
        return orjson.dumps({"type": "error", "error": detail})
    code = refusal.code or None
    session = {"session_id": refusal.session_id} if refusal.session_id else {}
    return orjson.dumps({"error": {"message": refusal.message, "type": kind, "code": code}, **session})
