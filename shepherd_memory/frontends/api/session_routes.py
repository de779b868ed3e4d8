"""Sessions over HTTP: started and ended, listed, searched and read, named, put aside and resumed."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from shepherd_memory.errors import ShepherdError
from shepherd_memory.frontends.api.exporting import ExportResponse
from shepherd_memory.frontends.api.operations import (
    MARKDOWN,
    BodyInput,
    ForUser,
    Operation,
    OperationInput,
)
from shepherd_memory.frontends.api.session_shapes import (
    ActiveSession,
    ArchiveOf,
    MessagesOf,
    PreviousOf,
    PreviousText,
    SessionChange,
    SessionClear,
    SessionEnd,
    SessionGoneOn,
    SessionListOf,
    SessionName,
    SessionOf,
    SessionResume,
    SessionStart,
)
from shepherd_memory.frontends.web.health import health_answer
from shepherd_memory.frontends.web.http_errors import HttpError, session_header
from shepherd_memory.frontends.web.json_body import json_response
from shepherd_memory.frontends.web.state import (
    config_of,
    group_of,
    headers_of,
    server_state_of,
    user_header,
    user_of,
)
from shepherd_memory.injection.previous_session import PreviousSession
from shepherd_memory.memory.session_catalog import SessionList
from shepherd_memory.memory.session_history import HistoryEntry
from shepherd_memory.memory.session_lives import SessionLife
from shepherd_memory.memory.session_messages import MessagePage

ROOT = "/v1/memory/sessions"
CREATED, CONFLICT = 201, 409


def start_session(given: BodyInput[OperationInput, SessionStart]) -> Response:
    asked = given.body
    life = given.service.start_session(
        given.user_id,
        group=given.group,
        agent_name=asked.agent_name,
        previous=asked.previous,
        previous_transcript=asked.transcript,
        takeover=asked.takeover,
        cwd=asked.cwd,
        memory_mode=asked.memory_mode,
    )
    return json_response(life, CREATED, session_header(life.session_id))


def active_session(given: BodyInput[ForUser, None]) -> ActiveSession:
    life = given.service.active_session(given.user_id, group=given.group)
    return ActiveSession(life is not None, life.session_id if life else None, life)


def previous_session(given: BodyInput[PreviousOf, None]) -> PreviousText:
    asked = given.parameters
    found = given.service.previous_session(
        given.user_id,
        group=given.group,
        current=asked.current,
        session_id=asked.session_id,
        cwd=asked.cwd,
        budget_tokens=asked.budget_tokens,
    )
    if found is None:
        raise HttpError(404, "there is no such session, nothing was said in it, or it does not fit")
    return _text_of(found)


def _text_of(found: PreviousSession) -> PreviousText:
    return PreviousText(found.session_id, found.ended, found.message_count, found.total_count, found.text)


def list_sessions(given: BodyInput[SessionListOf, None]) -> SessionList:
    asked = given.parameters
    if asked.query:
        return given.service.search_sessions(given.user_id, asked.query, limit=asked.limit, group=given.group)
    return given.service.list_sessions(
        given.user_id, limit=asked.limit, offset=asked.offset, group=given.group
    )


def read_messages(given: BodyInput[MessagesOf, None]) -> MessagePage:
    asked = given.parameters
    return given.service.read_session(
        given.user_id, asked.session_id, first=asked.first, count=asked.count, group=given.group
    )


def clear_session(given: BodyInput[OperationInput, SessionClear]) -> HistoryEntry:
    asked = given.body
    return given.service.clear_session(
        given.user_id, asked.name, session_id=asked.session_id, group=given.group
    )


def change_session(given: BodyInput[SessionName, SessionChange]) -> SessionLife:
    named, asked, life = given.parameters.session_id, given.body, None
    if asked.name is not None:
        life = given.service.rename_session(given.user_id, named, asked.name, group=given.group)
        named = life.session_id
    if asked.memory_mode is not None:
        life = given.service.set_memory_mode(given.user_id, named, asked.memory_mode, group=given.group)
    if life is None:
        raise HttpError(400, "give a name, a memory_mode or both")
    return life


def resume_session(given: BodyInput[SessionName, SessionResume]) -> Response:
    asked = given.body
    resumed = given.service.resume_session(
        given.user_id,
        given.parameters.session_id,
        save_current_as=asked.save_current_as,
        at=asked.at,
        group=given.group,
    )
    session_id = resumed.session.session_id
    told = given.service.previous_session(given.user_id, current=session_id, group=given.group)
    answer = SessionGoneOn(
        resumed.session, resumed.saved, resumed.was_active, _text_of(told) if told else None
    )
    return json_response(answer, headers=session_header(session_id))


def get_session(given: BodyInput[SessionOf, None]) -> SessionLife:
    session_id = given.parameters.session_id
    life = given.service.session_life(given.user_id, session_id, group=given.group)
    if life is None:
        raise HttpError(404, f"this user has no session {session_id!r}")
    return life


def archive(given: BodyInput[ArchiveOf, None]) -> ExportResponse:
    asked = given.parameters
    pieces = given.service.archive(given.user_id, asked.session_id, whole=asked.whole, group=given.group)
    return ExportResponse(given.threads, pieces, media_type=MARKDOWN)


def end_session(given: BodyInput[SessionName, SessionEnd]) -> SessionLife:
    return given.service.end_session(
        given.user_id, given.parameters.session_id, reason=given.body.reason, group=given.group
    )


async def health(request: Request) -> Response:
    """200 while everything moves, else 503; a caller who is known is also told which session is active."""
    answer, status = await health_answer(request)
    return json_response({**answer, **await _session_shown(request)}, status)


async def _session_shown(request: Request) -> dict[str, Any]:
    """Which session of the caller is active; nothing for a stranger, or while the database is away."""
    named = request.query_params.get("user", "")
    try:
        # Without a rate limit, like all of health.
        caller = await server_state_of(request.scope).door.caller_of(headers_of(request.scope))
        is_known = caller.key is not None or named or user_header(request.scope)
        if not (is_known and caller.is_confirmed):
            return {}
        user_id = await user_of(request.scope, caller, named)
        group = group_of(request.scope, caller, request.query_params.get("group", ""))
        state, seconds = server_state_of(request.scope), config_of(request.scope).server_memory_timeout
        life = await state.quick.run_within(
            seconds, lambda: state.service.active_session(user_id, group=group)
        )
    except (HttpError, ShepherdError, TimeoutError):
        return {}
    return {"session_active": life is not None, "session_id": life.session_id if life else None}


SESSION_OPERATIONS = [
    Operation(
        "POST",
        ROOT,
        "Start a session; 409 while one is active.",
        SessionLife,
        start_session,
        body=SessionStart,
        status=CREATED,
        refusals=(404, CONFLICT),
    ),
    Operation("GET", ROOT, "List sessions, or search them.", SessionList, list_sessions, SessionListOf),
    Operation(
        "POST",
        f"{ROOT}/clear",
        "End a session and put it aside under a name.",
        HistoryEntry,
        clear_session,
        body=SessionClear,
        refusals=(404,),
    ),
    Operation("GET", f"{ROOT}/active", "The active session.", ActiveSession, active_session, ForUser),
    Operation(
        "GET",
        f"{ROOT}/previous",
        "The session that a new one is handed on.",
        PreviousText,
        previous_session,
        PreviousOf,
        refusals=(404,),
    ),
    Operation(
        "POST",
        f"{ROOT}/{{session_id:path}}/end",
        "End a session that was started.",
        SessionLife,
        end_session,
        SessionName,
        SessionEnd,
    ),
    Operation(
        "POST",
        f"{ROOT}/{{session_id:path}}/resume",
        "Go on with an earlier session.",
        SessionGoneOn,
        resume_session,
        SessionName,
        SessionResume,
        refusals=(CONFLICT,),
    ),
    Operation(
        "GET",
        f"{ROOT}/{{session_id:path}}/messages",
        "Read what was said in a session.",
        MessagePage,
        read_messages,
        MessagesOf,
    ),
    Operation(
        "GET",
        f"{ROOT}/{{session_id:path}}/archive.md",
        "A session as markdown.",
        str,
        archive,
        ArchiveOf,
        media_types=(MARKDOWN,),
    ),
    Operation("GET", f"{ROOT}/{{session_id:path}}", "Get a session.", SessionLife, get_session, SessionOf),
    Operation(
        "PATCH",
        f"{ROOT}/{{session_id:path}}",
        "Name a session, or set its memory mode.",
        SessionLife,
        change_session,
        SessionName,
        SessionChange,
    ),
]
"""In this order: an id may have any form."""
