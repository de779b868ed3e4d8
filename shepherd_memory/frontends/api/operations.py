"""What can be asked of the server, declared once: the routes and their description are made of the same."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import inspect
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from shepherd_memory.frontends.api.state import request_state
from shepherd_memory.frontends.web.bodies import read_body
from shepherd_memory.frontends.web.http_errors import HttpError
from shepherd_memory.frontends.web.json_body import decoded, json_response, misfit
from shepherd_memory.frontends.web.limits import ConcurrencyLimit
from shepherd_memory.frontends.web.state import admit, group_of, threads_of, user_of
from shepherd_memory.frontends.web.threads import ThreadPool
from shepherd_memory.service import Service
from shepherd_memory.text.ids import MAX_ID_LENGTH

ANY_NUMBER = 1_000_000
JSON, NDJSON, MARKDOWN = "application/json", "application/x-ndjson", "text/markdown"

User = Annotated[
    str,
    msgspec.Meta(
        max_length=MAX_ID_LENGTH,
        description="Whose memory it is, if the API key may speak for them; empty: the key's.",
    ),
]


Group = Annotated[
    str,
    msgspec.Meta(
        max_length=MAX_ID_LENGTH,
        description="The group of the user's memory; empty: the API key's, or `main`, which sees all groups.",
    ),
]


class OperationInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request says: in its path and query, or in its body."""


class ForUser(OperationInput, frozen=True, kw_only=True):
    """Whom a request is for, and which group of theirs."""

    user: User = ""
    group: Group = ""


P = TypeVar("P")
B = TypeVar("B")


@dataclass(frozen=True)
class BodyInput(Generic[P, B]):
    """What an operation works with: the service, the user and group, and what the request says."""

    service: Service
    threads: ThreadPool
    user_id: str
    group: str
    parameters: P
    body: B


@dataclass(frozen=True)
class Operation:
    """One method of one path. `call` runs in a thread; without one, the route is made elsewhere.

    `parameters` are those of path and query; `body` is what the body holds (bytes: JSON lines), `answer`
    what the response holds, with `status`; `refusals` are statuses that not every operation has. `at_once`:
    so many run at a time, so that long ones leave threads to others.
    """

    method: str
    path: str
    summary: str
    answer: Any
    call: Callable[[BodyInput[Any, Any]], Any] | None = None
    parameters: type[OperationInput] = OperationInput
    body: Any = None
    media_types: tuple[str, ...] = (JSON,)
    is_public: bool = False
    status: int = 200
    refusals: tuple[int, ...] = ()
    at_once: int = ANY_NUMBER
    slots: ConcurrencyLimit = field(default_factory=ConcurrencyLimit, compare=False)

    @property
    def body_media_type(self) -> str:
        return NDJSON if self.body is bytes else JSON

    async def respond(self, request: Request) -> Response:
        """Let in, read, call, render."""
        assert self.call is not None
        caller, most = await admit(request.scope)
        parameters = read_parameters(self.parameters, request)
        body = await self._read_body(request, most)
        named = getattr(parameters, "user", "") or getattr(body, "user", "")
        user_id = await user_of(request.scope, caller, named)
        group = group_of(
            request.scope, caller, getattr(parameters, "group", "") or getattr(body, "group", "")
        )
        state = request_state(request)
        given = BodyInput(state.service, state.threads, user_id, group, parameters, body)
        # Where few run at a time they leave threads to others anyway.
        threads = threads_of(request.scope) if self.at_once == ANY_NUMBER else state.threads
        with self.slots.one(self.at_once):
            result = await threads.run(self.call, given)
        return result if isinstance(result, Response) else json_response(result)

    async def _read_body(self, request: Request, most: int) -> Any:
        if self.body is None:
            return None
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != self.body_media_type:
            # Browsers send a page's form to any server, but none with such a type.
            raise HttpError(415, f"the body must come with Content-Type: {self.body_media_type}")
        is_json = self.body is not bytes
        raw = await read_body(request.scope, request.receive, most, is_json=is_json)
        return raw if not is_json else decoded(self.body, raw)


def read_parameters(kind: type[OperationInput], request: Request) -> Any:
    """What path and query say, as `kind`; refused if they say more, or something else."""
    _check_encoding(request)
    types = _types_of(kind)
    found: dict[str, list[str]] = {name: [value] for name, value in request.path_params.items()}
    for name, value in request.query_params.multi_items():
        found.setdefault(name, []).append(value)
    values = {name: _from_text(name, types.get(name), texts) for name, texts in found.items()}
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise misfit("path or query", error) from None


# Looking into a type takes longer than everything else that is done with it.
@cache
def _types_of(kind: type[OperationInput]) -> Mapping[str, inspect.Type]:
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    return {field.name: _plain(field.type) for field in described.fields}


def _plain(kind: inspect.Type) -> inspect.Type:
    """Without its description, and without the None that stands for what is not given."""
    if isinstance(kind, inspect.Metadata):
        return _plain(kind.type)
    if isinstance(kind, inspect.UnionType):
        return next(_plain(one) for one in kind.types if not isinstance(one, inspect.NoneType))
    return kind


def _from_text(name: str, kind: inspect.Type | None, texts: Sequence[str]) -> Any:
    if isinstance(kind, inspect.ListType):
        return texts
    if len(texts) > 1:
        raise HttpError(400, f"the path or query does not fit: {name!r} is given more than once")
    return _READERS.get(type(kind), str)(texts[0])


_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"-?[0-9]{1,19}(\.[0-9]{0,19})?([eE]-?[0-9]{1,2})?")


def _whole_number(text: str) -> int | str:
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else text


def _number(text: str) -> float | str:
    return float(text) if _NUMBER.fullmatch(text) else text


def _flag(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text, text)


# What cannot be read stays text, which then does not fit.
_READERS: Mapping[Any, Callable[[str], Any]] = {
    inspect.IntType: _whole_number,
    inspect.FloatType: _number,
    inspect.BoolType: _flag,
}


def routes_of(operations: Iterable[Operation]) -> list[BaseRoute]:
    """One route for each path, so that a wrong method is told which ones there are."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    return [_route(path, methods) for path, methods in by_path.items()]


def _route(path: str, methods: Mapping[str, Operation]) -> Route:
    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await methods[method].respond(request)

    return _NamedRoute(path, endpoint, list(methods))


Endpoint = Callable[[Request], Awaitable[Response]]


def _of_whole_path(pattern: str) -> re.Pattern[str]:
    """A route's pattern for which a line break at the end of an id is a part of it."""
    return re.compile(f"{pattern.removesuffix('$')}\\Z", re.DOTALL)


class _NamedRoute(Route):
    """A route below which nothing is taken for an id of any form to be changed or deleted.

    A line break is a part of an id like any other character, also at its end.
    """

    def __init__(self, path: str, endpoint: Endpoint, methods: list[str]) -> None:
        super().__init__(path, endpoint, methods=methods)
        self.path_regex = _of_whole_path(self.path_regex.pattern)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        is_taken = match is Match.PARTIAL and scope["method"] in ("PATCH", "PUT", "DELETE")
        return (Match.FULL if is_taken else match), child


def _check_encoding(request: Request) -> None:
    """What is not UTF-8 would be replaced, and with it one user or key by another."""
    try:
        for raw in (request.scope["raw_path"], request.scope["query_string"]):
            unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise HttpError(400, "the path or query does not fit: it must be in UTF-8") from None
