"""Chats and everything else that goes to a provider, with the memory around the chats."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import aiohttp
import orjson
from starlette.types import Receive, Scope, Send

from shepherd_memory.config import Provider
from shepherd_memory.config.identity import is_known
from shepherd_memory.config.providers import NO_MEMORY, is_remembered_there, memory_use
from shepherd_memory.frontends.api import agents
from shepherd_memory.frontends.api.chat_memory import NONE, REMOTE, ChatMemory
from shepherd_memory.frontends.api.chat_request import ChatRequest, read_asked
from shepherd_memory.frontends.api.relay import relay, relay_chat
from shepherd_memory.frontends.api.session_use import session_in_use
from shepherd_memory.frontends.api.splicing import splice
from shepherd_memory.frontends.api.state import State, state_of
from shepherd_memory.frontends.api.upstream import Headers, UpstreamRequest, choose, readable_codings
from shepherd_memory.frontends.web.auth import Caller
from shepherd_memory.frontends.web.bodies import read_body
from shepherd_memory.frontends.web.http_errors import (
    OPENAI,
    RESPONSES,
    SESSION_HEADER,
    HttpError,
    wire_of,
)
from shepherd_memory.frontends.web.limits import ClientGone
from shepherd_memory.frontends.web.responses import until_disconnect
from shepherd_memory.frontends.web.state import (
    MEMORY_HEADER,
    admit,
    config_of,
    group_of,
    headers_of,
    hold_of,
    is_switched_off,
    note,
    user_of,
)

MEMORY_FIELD = "memory"
WITHOUT_MEMORY = ((MEMORY_HEADER.encode(), NONE.encode()),)
"""What answers say that no memory is around."""

LARGE_BYTES = 262_144


class ChatRoute:
    """A chat in one of the wire formats: memory is added to the request, and keeps the exchange."""

    def __init__(self, wire: str) -> None:
        self._wire = wire

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            return await pass_through(scope, receive, send)
        caller, most = await admit(scope, needs_memory=False)
        _check_plain(headers_of(scope))
        asked = read_asked(await read_body(scope, receive, most), self._wire)
        state = state_of(scope)
        config = config_of(scope)
        provider, model = choose(config, asked.model, self._wire)
        memory = await _memory_for(scope, caller, asked, provider)
        request = UpstreamRequest(config, provider, "POST", target_of(scope), scope["headers"])
        if memory.status == REMOTE:
            request.leave_memory_there(*memory.belonging)
        if memory.is_on:
            request.read_only(readable_codings())
        else:
            asked.forget_messages()
        seconds = config.server_memory_timeout
        try:
            async with (
                session_in_use(state, seconds, *memory.belonging) as mode,
                until_disconnect(scope, receive),
            ):
                memory.restrict(mode)
                edit = partial(
                    splice,
                    asked.body,
                    without=(MEMORY_FIELD,) if asked.memory is not None else (),
                    model=model if model != asked.model else None,
                    tails=await memory.tails(),
                    holder=asked.holder,
                )
                # In a large body the place may be far: others go on meanwhile.
                body = await asyncio.to_thread(edit) if len(asked.body) > LARGE_BYTES else edit()
                # A chat may stream for long: only what is sent is kept so long.
                del asked, edit
                await _exchange(state, request, body, send, memory, self._wire)
        except (ClientGone, asyncio.CancelledError):
            memory.keep_said()
            raise
        finally:
            note(scope, provider=provider.name, memory=memory.status)


def _check_plain(headers: Mapping[str, str]) -> None:
    """A chat is read and edited in place, so it cannot come compressed."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity"):
        raise HttpError(
            415,
            f"the body of a chat has to come without Content-Encoding, not as {coding!r}: "
            "switch the compression of requests off in the client",
            code="unsupported_content_encoding",
        )


async def _memory_for(scope: Scope, caller: Caller, asked: ChatRequest, provider: Provider) -> ChatMemory:
    config, headers = config_of(scope), headers_of(scope)
    user_id = await user_of(scope, caller, _named_user(caller, asked))
    named = agents.session_of(headers, asked.fields) if asked.wire == RESPONSES else ""
    session_id = headers.get(SESSION_HEADER.lower()) or asked.session_id or named
    is_off = asked.memory is False or is_switched_off(headers) or not _is_conversation(headers, asked)
    wanted = NO_MEMORY if is_off else memory_use(config, provider)
    memory = ChatMemory(
        state_of(scope),
        config,
        user_id,
        asked.messages,
        session_id,
        NO_MEMORY if asked.is_held_by_provider else wanted,
        hold_of(scope),
        recalls=caller.is_confirmed,
        previous_response=asked.previous_response,
        is_linked=asked.is_stored,
        group=group_of(scope, caller),
        provider=provider.name,
        cwd="" if is_off else agents.folder_of(headers, asked),
        context_window=provider.context_window,
    )
    if wanted and asked.is_held_by_provider:
        memory.status = NONE
    elif not is_off and is_known(user_id) and is_remembered_there(provider):
        memory.status = REMOTE
    return memory


def _named_user(caller: Caller, asked: ChatRequest) -> object:
    """Whom a request names: its user, else whom the provider is told of.

    The latter is meant for the provider, and no claim to be somebody: a personal key is not refused for it.
    """
    is_personal = caller.key is not None and not caller.key.any_user
    return asked.end_user if asked.user in (None, "") and not is_personal else asked.user


def _is_conversation(headers: Mapping[str, str], asked: ChatRequest) -> bool:
    return asked.is_conversation and not agents.is_own_request(headers)


async def _exchange(
    state: State, request: UpstreamRequest, body: bytes, send: Send, memory: ChatMemory, wire: str
) -> None:
    """Ask the provider and pass its answer on."""
    try:
        async with request.send(state.upstream, body) as response:
            await relay_chat(response, send, memory, wire)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise request.failure(error) from error


async def pass_through(scope: Scope, receive: Receive, send: Send) -> None:
    """Anything else under /v1, for the provider: untouched, but for a `provider/` before the model's name."""
    _, most = await admit(scope, needs_memory=False)
    _refuse_websocket(headers_of(scope))
    is_json = headers_of(scope).get("content-type", "").startswith("application/json")
    body = await read_body(scope, receive, most, is_json=is_json)
    state = state_of(scope)
    target = target_of(scope)
    asked = _model_in(body) if is_json else ""
    wire = wire_of(scope["path"])
    provider, model = choose(config_of(scope), asked, None if wire == OPENAI else wire)
    if model != asked:
        body = splice(body, model=model)
    request = UpstreamRequest(config_of(scope), provider, scope["method"], target, scope["headers"])
    async with until_disconnect(scope, receive):
        await forward(state, request, body, send, WITHOUT_MEMORY)


def _refuse_websocket(headers: Mapping[str, str]) -> None:
    """Say no to a websocket in the way in which agents ask over HTTP instead, at once."""
    if headers.get("upgrade", "").lower() == "websocket":
        told = {MEMORY_HEADER: NONE, "Upgrade": "HTTP/1.1", "Connection": "Upgrade"}
        raise HttpError(
            426, "websockets are not spoken here: send a POST", code="websocket_refused", headers=told
        )


async def forward(
    state: State, request: UpstreamRequest, body: bytes, send: Send, added: Headers = ()
) -> None:
    """Send a request to its provider, and pass the answer on, with these headers."""
    try:
        async with request.send(state.upstream, body) as response:
            await relay(response, send, added)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise request.failure(error) from error


def _model_in(body: bytes) -> str:
    """The model that a JSON body names; empty if it is something else."""
    try:
        fields: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    model = fields.get("model") if isinstance(fields, dict) else None
    return model if isinstance(model, str) else ""


def target_of(scope: Scope) -> str:
    """The path and query as the client wrote them; refused if they lead out of /v1."""
    path: str = scope["path"]
    if any(part in (".", "..") for part in path.split("/")) or "\\" in path:
        raise HttpError(400, "a path with . or .. in it goes nowhere")
    raw: bytes = scope.get("raw_path") or path.encode()
    query: bytes = scope.get("query_string", b"")
    return (raw + b"?" + query if query else raw).decode("latin-1")
