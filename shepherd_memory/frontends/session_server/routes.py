"""What can be asked of the shared session over HTTP."""

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from shepherd_memory.chat.event_json import ERROR
from shepherd_memory.config import Config
from shepherd_memory.config.providers import current_provider
from shepherd_memory.errors import ShepherdError
from shepherd_memory.frontends.session_server.completions import (
    CompletionWriter,
    follow_completion,
    model_list,
    read_completion,
)
from shepherd_memory.frontends.session_server.session_life import EndRequest, StartRequest
from shepherd_memory.frontends.session_server.shared_session import PromptRequest, QueuedTurn, SharedSession
from shepherd_memory.frontends.session_server.streams import EventStream, follow, follow_from, observe
from shepherd_memory.frontends.session_server.updates import STATUSES, Update
from shepherd_memory.frontends.web.auth import Authenticator, Caller
from shepherd_memory.frontends.web.bodies import read_body
from shepherd_memory.frontends.web.health import health_answer, live, ready
from shepherd_memory.frontends.web.http_errors import RETRY_SECONDS, SESSION_ACTIVE, HttpError, session_header
from shepherd_memory.frontends.web.json_body import decoded, json_response
from shepherd_memory.frontends.web.limits import ClientGone
from shepherd_memory.frontends.web.responses import until_disconnect
from shepherd_memory.frontends.web.state import (
    SCOPE_KEY,
    ServerState,
    admit,
    config_of,
    headers_of,
    is_switched_off,
    threads_of,
)
from shepherd_memory.memory.session_lives import ACTIVE
from shepherd_memory.storage.rows import as_json
from shepherd_memory.text.canonical import canonical_text

CREATED, ACCEPTED = 201, 202
SHORT_BYTES = 65_536
UNAVAILABLE = 503
UNNAMED_MODEL = "session"
"""What the model is called where the provider chooses it."""


class PromptReference(msgspec.Struct, frozen=True, kw_only=True):
    """Which request is to be cancelled; empty: the one that runs."""

    request: str = ""


@dataclass(kw_only=True)
class SessionState(ServerState):
    """What the handlers share: also the session."""

    session: SharedSession


def state_of(scope: Scope) -> SessionState:
    """The state that a request is answered with."""
    state: SessionState = scope[SCOPE_KEY]
    return state


@dataclass(frozen=True)
class Admitted:
    """What a client that was let in may use: the session, and how many bytes its request may have."""

    session: SharedSession
    max_bytes: int
    caller: Caller


async def let_in(scope: Scope, *, needs_memory: bool = True) -> Admitted:
    """Authenticate; a client that reads what was said is refused while the database is away."""
    caller, most = await admit(scope, needs_memory=needs_memory)
    state = state_of(scope)
    await check_user(state.door, caller, state.session.user_id, config_of(scope))
    return Admitted(state.session, most, caller)


async def check_user(door: Authenticator, caller: Caller, user_id: str, config: Config) -> None:
    """Refuse a key that could not ask the API server for this user's memory either."""
    if caller.key is None:
        return
    prefix = f"{caller.key.namespace}/" if caller.key.namespace else ""
    named = user_id.removeprefix(prefix)
    if not user_id.startswith(prefix) or await door.user_of(caller, named, "", config) != user_id:
        raise HttpError(
            403,
            "this session is of a user whom this API key may not act for",
            code="user_not_allowed_for_key",
        )


async def ask(request: Request) -> Any:
    """Say something to the session: wait for the answer, follow it, or leave it in the line."""
    admitted = await let_in(request.scope, needs_memory=False)
    content_type = request.headers.get("content-type", "")
    is_json = not content_type.strip().lower().startswith("text/")
    body = await read_body(request.scope, request.receive, admitted.max_bytes, is_json=is_json)
    asked = await _prompt_of(request, body, content_type)
    turn = QueuedTurn(asked, follows_all=asked.stream, recalls=admitted.caller.is_confirmed)
    position = admitted.session.put(turn)
    if asked.is_async:
        return json_response(_queued(turn, position), ACCEPTED)
    if asked.stream:
        return EventStream(follow(turn, position))
    answered = await _end_of(turn, request)
    return json_response({"success": not answered.fields["cancelled"], **answered.fields})


async def complete(request: Request) -> Any:
    """The same in OpenAI's wire format, for a provider of the type shepherd; who leaves cancels it."""
    admitted = await let_in(request.scope, needs_memory=False)
    session, is_off = admitted.session, is_switched_off(headers_of(request.scope))
    body = await read_body(request.scope, request.receive, admitted.max_bytes)
    asked = await threads_of(request.scope).run(read_completion, body, is_off)
    turn = QueuedTurn(asked, follows_all=asked.stream, recalls=admitted.caller.is_confirmed)
    session.put(turn)
    writer = CompletionWriter(_model(request))
    if asked.stream:
        return EventStream(follow_completion(turn, writer, lambda: session.cancel(turn.id)))
    try:
        return json_response(writer.whole(await _end_of(turn, request)))
    except ClientGone:
        session.cancel(turn.id)
        raise


async def models(request: Request) -> Response:
    """The model that answers, in OpenAI's form."""
    session = (await let_in(request.scope, needs_memory=False)).session
    provider = current_provider(config_of(request.scope))
    window = (provider.context_window if provider else 0) or session.context_window
    return json_response(model_list(_model(request), window))


def _model(request: Request) -> str:
    provider = current_provider(config_of(request.scope))
    return (provider.model if provider else "") or UNNAMED_MODEL


async def _prompt_of(request: Request, body: bytes, content_type: str) -> PromptRequest:
    """The prompt that a body holds; a long one is read in a thread, because its text is made canonical."""
    if len(body) <= SHORT_BYTES:
        return read_prompt(body, content_type)
    return await threads_of(request.scope).run(read_prompt, body, content_type)


def _queued(turn: QueuedTurn, position: int) -> dict[str, Any]:
    """What an async request is told; `durable`: the line is in memory only, and a server may be killed."""
    place = {"queue_position": position, "durable": False}
    return {"success": True, "queued": True, **place, "request": turn.id}


async def clear(request: Request) -> Response:
    """Begin a new session, once all that was asked before is answered."""
    admitted = await let_in(request.scope, needs_memory=False)
    await read_body(request.scope, request.receive, admitted.max_bytes)
    turn = QueuedTurn(None)
    admitted.session.put(turn)
    cleared = await _end_of(turn, request)
    return json_response({"success": True, **cleared.fields})


async def start_session(request: Request) -> Any:
    """Start a session, once all that was asked before is answered; with `wake` the greeting follows."""
    admitted = await let_in(request.scope)
    asked = read_start(await read_body(request.scope, request.receive, admitted.max_bytes))
    turn = QueuedTurn(asked, follows_all=asked.wake)
    admitted.session.put(turn)
    with ExitStack() as unfollowed:
        unfollowed.callback(turn.leave)
        started = await _heard(turn, request)
        named = session_header(started.fields["session_id"])
        if started.goes_on:
            unfollowed.pop_all()
            return EventStream(follow_from(started, turn), named)
    return json_response({"success": True, **started.fields}, CREATED, named)


async def end_session(request: Request) -> Response:
    """End the session, once all that was asked before is answered."""
    admitted = await let_in(request.scope)
    await read_body(request.scope, request.receive, admitted.max_bytes)
    turn = QueuedTurn(EndRequest())
    admitted.session.put(turn)
    ended = await _end_of(turn, request)
    return json_response({"success": True, **ended.fields})


async def cancel(request: Request) -> Response:
    """Stop the answer that is coming in, or take one request out of the line."""
    admitted = await let_in(request.scope, needs_memory=False)
    which = read_reference(await read_body(request.scope, request.receive, admitted.max_bytes))
    return json_response({"success": True, "cancelled": admitted.session.cancel(which.request)})


async def _end_of(turn: QueuedTurn, request: Request) -> Update:
    """How a request ended; an error is a refusal. If its client leaves, it is carried out all the same."""
    try:
        return await _heard(turn, request)
    finally:
        turn.leave()


async def _heard(turn: QueuedTurn, request: Request) -> Update:
    """What a client that follows a request hears next; an error is a refusal."""
    async with until_disconnect(request.scope, request.receive):
        update = await turn.next()
    assert update is not None
    if update.name == ERROR:
        code = update.fields["code"]
        again = {"Retry-After": str(RETRY_SECONDS)} if STATUSES[code] == UNAVAILABLE else {}
        running = update.fields["session_id"] if code == SESSION_ACTIVE else ""
        told = {**again, **session_header(running)}
        raise HttpError(STATUSES[code], update.fields["message"], code=code, headers=told, session_id=running)
    return update


async def show(request: Request) -> Response:
    """The session: what was said, and how it is doing."""
    session = (await let_in(request.scope)).session
    life = await _life_shown(request, session)
    tokens = sum(message["tokens"] for message in session.messages)
    totals = {"messages": len(session.messages), "tokens": tokens, **session.spent}
    about = {**_about(session, request), "life": life}
    return json_response({**about, "messages": session.messages, "totals": totals})


async def _life_shown(request: Request, session: SharedSession) -> dict[str, Any] | None:
    """Where the session is in its life; None if nobody started it, or while the database is away."""
    seconds = config_of(request.scope).server_memory_timeout
    with suppress(ShepherdError, TimeoutError):
        life = await state_of(request.scope).quick.run_within(seconds, session.life)
        return as_json(life) if life is not None and life.status else None
    return None


async def updates(request: Request) -> EventStream:
    """Everything that happens, for who watches."""
    session = (await let_in(request.scope)).session
    last_id = headers_of(request.scope).get("last-event-id", "")

    async def look_again() -> None:
        state = state_of(request.scope)
        caller = await state.door.caller_of(headers_of(request.scope))
        await check_user(state.door, caller, session.user_id, config_of(request.scope))

    return EventStream(observe(session.updates, last_id, _about(session, request), look_again))


async def health(request: Request) -> Response:
    """200 while everything moves, else 503; a client that is let in is also told of the session."""
    answer, status = await health_answer(request)
    return json_response({**answer, **await _session_shown(request)}, status)


async def _session_shown(request: Request) -> dict[str, Any]:
    """Whether the session is active; nothing for a stranger, or while the database is away."""
    state = state_of(request.scope)
    session = state.session
    try:
        # Without a rate limit, like all of health.
        caller = await state.door.caller_of(headers_of(request.scope))
        await check_user(state.door, caller, session.user_id, config_of(request.scope))
        if not caller.is_confirmed:
            return {}
        seconds = config_of(request.scope).server_memory_timeout
        life = await state.quick.run_within(seconds, session.life)
    except (HttpError, ShepherdError, TimeoutError):
        return {}
    is_active = life is not None and life.status == ACTIVE
    return {"session_active": is_active, "session_id": session.session_id if is_active else None}


def _about(session: SharedSession, request: Request) -> dict[str, Any]:
    provider = current_provider(config_of(request.scope))
    running, queued = session.line()
    return {
        "session_id": session.session_id,
        "user_id": session.user_id,
        "provider": provider.name if provider else None,
        "model": provider.model if provider else None,
        "context_window": session.context_window,
        "running": running or None,
        "queued": queued,
        "last_event_id": session.updates.id_of(session.updates.last),
    }


def read_prompt(body: bytes, content_type: str) -> PromptRequest:
    """The request that a body holds: JSON with a `prompt`, or any other text, which is the prompt itself.

    Text that says what it is is never read as JSON; JSON that says so must fit.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "application/json" or media_type.endswith("+json"):
        return _checked(decoded(PromptRequest, body))
    if not media_type.startswith("text/") and _has_prompt(body):
        return _checked(decoded(PromptRequest, body))
    try:
        return _checked(PromptRequest(prompt=body.decode()))
    except UnicodeDecodeError:
        raise HttpError(400, "a prompt must be in UTF-8") from None


def read_start(body: bytes) -> StartRequest:
    """How a session is to be started; an empty body leaves it to us."""
    return decoded(StartRequest, body) if body.strip() else StartRequest()


def read_reference(body: bytes) -> PromptReference:
    """Which request a body names; an empty one names none."""
    return decoded(PromptReference, body) if body.strip() else PromptReference()


def _has_prompt(body: bytes) -> bool:
    """Whether this is a request in JSON whose client did not say so, as curl does not."""
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(found, dict) and "prompt" in found


def _checked(request: PromptRequest) -> PromptRequest:
    if not request.prompt.strip():
        raise HttpError(400, 'the prompt is empty; send {"prompt": "…"}, or the text itself as the body')
    if request.stream and request.is_async:
        raise HttpError(
            400, "stream and async exclude each other: an async request is followed at GET /updates"
        )
    return msgspec.structs.replace(request, prompt=canonical_text(request.prompt))


ROUTES: list[BaseRoute] = [
    Route("/request", ask, methods=["POST"]),
    Route("/v1/chat/completions", complete, methods=["POST"]),
    Route("/v1/models", models, methods=["GET"]),
    Route("/clear", clear, methods=["POST"]),
    Route("/session/start", start_session, methods=["POST"]),
    Route("/session/end", end_session, methods=["POST"]),
    Route("/cancel", cancel, methods=["POST"]),
    Route("/session", show, methods=["GET"]),
    Route("/updates", updates, methods=["GET"]),
    Route("/health", health, methods=["GET"]),
    Route("/health/live", live, methods=["GET"]),
    Route("/health/ready", ready, methods=["GET"]),
]
