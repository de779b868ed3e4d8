"""The description of the server for programs: OpenAPI, made of the same declarations as the routes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from shepherd_memory.frontends.api.memory_routes import MEMORY_OPERATIONS
from shepherd_memory.frontends.api.operations import (
    JSON,
    MARKDOWN,
    NDJSON,
    ForUser,
    Operation,
    OperationInput,
)
from shepherd_memory.frontends.api.tool_routes import TOOL_OPERATIONS
from shepherd_memory.frontends.web.http_errors import ANTHROPIC, MCP, OPENAI, RESPONSES, wire_of

EVENTS, TEXT = "text/event-stream", "text/plain"
REF = "#/components/schemas/{name}"

DESCRIPTION = """\
Long-term memory for LLM agents: an OpenAI- and Anthropic-compatible server that remembers its users.

Any other path under `/v1`, but for `/v1/memory` and `/v1/tools`, goes to the provider as it is.
"""

REASONS = {
    400: "The request does not fit, or names an unknown user where one is needed.",
    401: "No API key, or one that is unknown or revoked.",
    403: "This API key may not act for that user, or the request was made by a page of another site.",
    404: "What was named is not there for this user.",
    405: "The path has other methods; `Allow` lists them.",
    406: "`Accept` leaves out JSON.",
    408: "The body stopped coming, or comes too slowly.",
    409: "What stands in the way: a session that is active, is being answered in or has ended"
    " (`X-Shepherd-Session` names it), or a version of the memory files that the writer has not seen.",
    413: "The body is larger than this key may send, or holds more than a body may.",
    415: "The body has another Content-Type than this operation takes.",
    421: "The Host header names another server.",
    429: "The rate limit of this key is used up; `Retry-After` says for how long.",
    500: "Something failed in the server; its log says what.",
    502: "The provider cannot be reached.",
    503: "Too busy, no provider, or the database cannot be used now.",
    504: "The provider did not answer in time.",
}
EVERYWHERE = (421, 500, 503)
WITH_KEY = (400, 401, 403, 405, 429)
WITH_BODY = (408, 413, 415)
WITH_PROVIDER = (502, 504)


USER_HEADER = {
    "X-Shepherd-User": "Whose memory it is; outranks `user`.",
    "X-Shepherd-Group": "The group that the request comes from; only `main` may name another in `group`.",
}
CHAT_HEADERS = {
    "X-Shepherd-Session": "The session that the chat belongs to.",
    "X-Shepherd-Memory": "`off`: inject nothing, remember nothing.",
}
ANSWER_HEADERS = {
    "X-Shepherd-Memory": "on, off, remember-only, inject-only, none, unknown-user, failed or timeout.",
    "X-Shepherd-Injected": "How many memories were put into the prompt.",
    "X-Shepherd-Injected-Ids": "Which, as fact:12,document:40.",
    "X-Shepherd-Injected-Tokens": "How many tokens they take, as estimated.",
    "X-Shepherd-Abstained": "true if nothing was certain enough.",
    "X-Shepherd-Remembered": "true or false, of an answer that is no stream.",
    "X-Shepherd-Request": "The id by which /v1/memory/why explains it.",
}


@dataclass(frozen=True)
class ErrorDetail:
    message: str
    type: str
    code: str | None


@dataclass(frozen=True)
class Error:
    """Why a request was not carried out."""

    error: ErrorDetail
    session_id: str | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True)
class AnthropicErrorDetail:
    type: str
    message: str


@dataclass(frozen=True)
class AnthropicError:
    """The same in the wire format of Anthropic."""

    type: Literal["error"]
    error: AnthropicErrorDetail


class RpcRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the Model Context Protocol; without an id it is a notification."""

    jsonrpc: Literal["2.0"]
    method: str
    id: str | int | msgspec.UnsetType = msgspec.UNSET
    params: dict[str, Any] | None = None


@dataclass(frozen=True)
class RpcErrorDetail:
    code: int
    message: str


@dataclass(frozen=True)
class RpcError:
    """The same in the form of JSON-RPC."""

    jsonrpc: Literal["2.0"]
    error: RpcErrorDetail
    id: str | int | None = None


@dataclass(frozen=True)
class Health:
    """`problems` only for those who may know: with a key, where one is needed.

    The active session only for a caller who is known: by a key, or by `user` where none is needed.
    """

    status: Literal["ok", "failing"]
    problems: list[str] = field(default_factory=list)
    session_active: bool | msgspec.UnsetType = msgspec.UNSET
    session_id: str | msgspec.UnsetType | None = msgspec.UNSET


@dataclass(frozen=True)
class HealthVerdict:
    """For what starts, stops and chooses servers."""

    status: Literal["ok", "failing"]


ERRORS: dict[str, type[object]] = {
    OPENAI: Error,
    RESPONSES: Error,
    ANTHROPIC: AnthropicError,
    MCP: RpcError,
}
"""How each wire format says no."""


class HealthOf(OperationInput, frozen=True, kw_only=True):
    """Whose session is told of; nothing that is said here is refused."""

    user: str = ""
    group: str = ""


class ModelId(OperationInput, frozen=True, kw_only=True):
    model: str


Anything = dict[str, Any]
CHAT_TYPES = (JSON, EVENTS)

CHAT_OPERATIONS = [
    Operation(
        "POST",
        "/v1/chat/completions",
        "A chat in OpenAI's wire format, with memory.",
        Any,
        body=Anything,
        media_types=CHAT_TYPES,
    ),
    Operation(
        "POST",
        "/v1/responses",
        "A chat in the wire format of OpenAI's Responses, with memory.",
        Any,
        body=Anything,
        media_types=CHAT_TYPES,
    ),
    Operation(
        "POST",
        "/v1/messages",
        "A chat in Anthropic's wire format, with memory.",
        Any,
        body=Anything,
        media_types=CHAT_TYPES,
    ),
    Operation("GET", "/v1/models", "The models that can be asked for.", Any, is_public=True),
    Operation("GET", "/v1/models/{model:path}", "One model.", Any, parameters=ModelId),
]

MCP_OPERATIONS = [
    Operation("POST", "/mcp", "The memory tools for agents, over MCP.", Anything, body=RpcRequest),
]

OWN_OPERATIONS = [
    Operation(
        "GET", "/health", "200 while everything moves, else 503.", Health, parameters=HealthOf, is_public=True
    ),
    Operation("GET", "/health/live", "200 as long as the process answers.", HealthVerdict, is_public=True),
    Operation(
        "GET", "/health/ready", "200 while chats can be served, else 503.", HealthVerdict, is_public=True
    ),
    Operation(
        "GET",
        "/status",
        "Database, queue, endpoint and embedding; with a key of one user what concerns that user.",
        Anything,
        parameters=ForUser,
    ),
    Operation("GET", "/metrics", "Counters for Prometheus.", str, media_types=(TEXT,)),
    Operation("GET", "/openapi.json", "This description.", Anything, is_public=True),
]


async def openapi(request: Request) -> Response:
    return Response(_described(), media_type=JSON)


@cache
def _described() -> bytes:
    return msgspec.json.encode(description())


_TYPED_PARAMETER = re.compile(r"{(\w+):\w+}")
_PARAMETER = re.compile(r"{(\w+)")
_WORD = re.compile(r"\w+")


def description() -> dict[str, Any]:
    """Every operation of the server, as OpenAPI 3.1."""
    operations = [*CHAT_OPERATIONS, *MEMORY_OPERATIONS, *TOOL_OPERATIONS, *MCP_OPERATIONS, *OWN_OPERATIONS]
    schemas = _Schemas(operations)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = _TYPED_PARAMETER.sub(r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "shepherd-memory",
            "version": version("shepherd-memory"),
            "description": DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "security": [{"bearer": []}, {"apiKey": []}],
        "components": {
            "schemas": schemas.components,
            "responses": _refusals(schemas),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


class _Schemas:
    """The schemas of all bodies and answers, by their type."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        wanted = [*ERRORS.values()]
        for operation in operations:
            wanted += [kind for kind in (operation.body, operation.answer) if _has_schema(kind)]
        distinct = list(dict.fromkeys(wanted))
        found, self.components = msgspec.json.schema_components(distinct, ref_template=REF)
        self._found = dict(zip(distinct, found, strict=True))

    def content(self, kind: Any, media_types: Iterable[str]) -> dict[str, Any]:
        return {media_type: {"schema": self._schema(kind, media_type)} for media_type in media_types}

    def _schema(self, kind: Any, media_type: str) -> Mapping[str, Any]:
        if kind is Anything:
            return {"type": "object"}
        if media_type in (NDJSON, EVENTS, TEXT, MARKDOWN):
            return {"type": "string"}
        return self._found.get(kind, {})


def _refusals(schemas: _Schemas) -> dict[str, Any]:
    return {
        f"{error.__name__}{status}": {"description": reason, "content": schemas.content(error, [JSON])}
        for error in ERRORS.values()
        for status, reason in REASONS.items()
    }


def _has_schema(kind: Any) -> bool:
    return isinstance(kind, type) and kind not in (bytes, str)


def _operation(operation: Operation, schemas: _Schemas) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": _operation_id(operation),
        "summary": operation.summary,
        "parameters": [*_parameters(operation), *_headers(operation)],
        "responses": _responses(operation, schemas),
    }
    if operation.body is not None:
        content = schemas.content(operation.body, [operation.body_media_type])
        described["requestBody"] = {"required": True, "content": content}
    if operation.is_public:
        described["security"] = []
    return described


def _operation_id(operation: Operation) -> str:
    words = _WORD.findall(operation.path.replace(":path", "").removeprefix("/v1"))
    return "_".join([operation.method.lower(), *words])


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    schema = msgspec.json.schema(operation.parameters)["$defs"][operation.parameters.__name__]
    in_path = _PARAMETER.findall(operation.path)
    return [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in schema.get("required", []),
            "schema": about,
        }
        for name, about in schema["properties"].items()
    ]


def _headers(operation: Operation) -> list[dict[str, Any]]:
    """The headers of ours that an operation reads."""
    is_chat = operation.body is Anything
    names_user = operation.body in (Anything, RpcRequest) or any(
        "user" in kind.__struct_fields__ for kind in _structs(operation)
    )
    read = {**(USER_HEADER if names_user else {}), **(CHAT_HEADERS if is_chat else {})}
    return [
        {
            "name": name,
            "in": "header",
            "required": False,
            "description": meaning,
            "schema": {"type": "string"},
        }
        for name, meaning in read.items()
    ]


def _structs(operation: Operation) -> list[type[OperationInput]]:
    kinds = (operation.parameters, operation.body)
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, OperationInput)]


def _responses(operation: Operation, schemas: _Schemas) -> dict[str, Any]:
    answer = schemas.content(operation.answer, operation.media_types)
    error = ERRORS[wire_of(operation.path)]
    refusals = {
        str(status): {"$ref": f"#/components/responses/{error.__name__}{status}"}
        for status in sorted(_statuses(operation))
    }
    worked = {str(operation.status): {"description": "It worked.", "content": answer}}
    responses: dict[str, Any] = {**worked, **refusals}
    if operation.body is Anything:
        responses["200"]["headers"] = {
            name: {"description": meaning, "schema": {"type": "string"}}
            for name, meaning in ANSWER_HEADERS.items()
        }
    if operation in MCP_OPERATIONS:
        responses["202"] = {"description": "A notification: there is nothing to say to it."}
    if operation.answer in (Health, HealthVerdict):
        responses["503"] = {"description": "Something does not move.", "content": answer}
    if operation in CHAT_OPERATIONS:
        responses["default"] = {"description": "What the provider answered, as it is."}
    return responses


def _statuses(operation: Operation) -> set[int]:
    found = {*EVERYWHERE, 405, *operation.refusals}
    if not operation.is_public:
        found.update(WITH_KEY)
    if operation.body is not None:
        found.update(WITH_BODY)
    if "{" in operation.path:
        found.add(404)
    if operation in MCP_OPERATIONS:
        found.add(406)
    if operation in CHAT_OPERATIONS:
        found.update((*WITH_PROVIDER, 400, 404, 409, 429))
    return found
