"""How the server is doing: for load balancers, for Prometheus, and for whoever runs it."""

from collections.abc import Sequence
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from shepherd_memory.errors import DatabaseError, ShepherdError
from shepherd_memory.extraction.extractor import extraction_endpoint
from shepherd_memory.frontends.web.http_errors import HttpError
from shepherd_memory.frontends.web.json_body import json_response
from shepherd_memory.frontends.web.state import (
    ServerState,
    admit,
    config_of,
    group_of,
    server_state_of,
    user_header,
    user_of,
)
from shepherd_memory.service import Service
from shepherd_memory.spool.spool import SpoolState
from shepherd_memory.storage.database import try_writing
from shepherd_memory.storage.rows import as_json
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.ids import checked_user_id
from shepherd_memory.work import ledger

OK, FAILING = "ok", "failing"
MIN_FREE_BYTES = 32_000_000
MAX_SPOOL_SECONDS = 30.0
"""What has waited longer for the database is a problem, also where nothing else shows it."""


async def live(request: Request) -> Response:
    """200 as long as the process answers: it looks at nothing, so nothing but a dead process fails it."""
    return _verdict(True)


async def ready(request: Request) -> Response:
    """200 while chats can be served, else 503: a chat needs no memory, but somebody must be let in."""
    return _verdict(await server_state_of(request.scope).door.can_admit())


async def health_answer(request: Request) -> tuple[dict[str, Any], int]:
    """200 while everything moves, else 503; why is told to those who may know."""
    problems = await _current_problems(request)
    spool = server_state_of(request.scope).service.spool.state()
    answer: dict[str, Any] = {"status": FAILING if problems else OK}
    if (problems or spool.records) and await _may_know(request):
        answer |= {"problems": problems} if problems else {}
        answer |= {"spool": _shown_spool(spool)} if spool.records else {}
    return answer, 503 if problems else 200


async def status(request: Request) -> Response:
    """The state of database, queue, endpoint and embedding; a key of one user is told of that user alone."""
    caller, _ = await admit(request.scope)
    state, named = server_state_of(request.scope), _named_user(request)
    user_id = await user_of(request.scope, caller, named)
    group = group_of(request.scope, caller, request.query_params.get("group", ""))
    if caller.sees_all and not (named or user_header(request.scope)):
        return json_response(await state.quick.run(_status, state))
    return json_response(await state.quick.run(_status_of, state, user_id, group))


async def metrics(request: Request) -> Response:
    """Counters and gauges in the text format of Prometheus; with the database away, our own."""
    caller, _ = await admit(request.scope, needs_memory=False)
    state = server_state_of(request.scope)
    state.metrics.set_spool(state.service.spool.state())
    if caller.is_confirmed:
        return Response(await state.quick.run(_metrics, state), media_type=CONTENT_TYPE_LATEST)
    counted = state.metrics.render_without_memory(state.slots.taken)
    return Response(counted, media_type=CONTENT_TYPE_LATEST)


async def _may_know(request: Request) -> bool:
    try:
        caller, _ = await admit(request.scope, needs_memory=False)
    except (HttpError, ShepherdError):
        return False
    return caller.sees_all


def _named_user(request: Request) -> str:
    """Whom the query names; empty if nobody."""
    named = checked_user_id(request.query_params.get("user", ""))
    if "\ufffd" in named:
        # What is not UTF-8 was replaced, and with it one user by another.
        raise HttpError(400, "user must be in UTF-8")
    return named


def _verdict(is_good: bool) -> Response:
    return json_response({"status": OK if is_good else FAILING}, 200 if is_good else 503)


async def _current_problems(request: Request) -> list[str]:
    """What is wrong; that the database does not answer is, after a while, an answer too."""
    state = server_state_of(request.scope)
    try:
        seconds = config_of(request.scope).server_memory_timeout
        return await state.quick.run_within(seconds, lambda: _problems(state))
    except TimeoutError:
        return ["the database cannot be used: it does not answer", *_spool_problems(state)]


def _problems(state: ServerState) -> list[str]:
    try:
        return _problems_of(state, state.service.problems())
    except DatabaseError as error:
        return [f"the database cannot be used: {error}", *_spool_problems(state)]


def _problems_of(state: ServerState, problems: Sequence[str]) -> list[str]:
    found = [*problems, *_spool_problems(state)]
    free = state.service.database.free_bytes()
    if free is not None and free < MIN_FREE_BYTES:
        found.append(f"the disk is full: {free / 1_000_000:.0f} MB are left for the database")
    return [*found, state.write_problem] if _is_write_problem_left(state) else found


def _spool_problems(state: ServerState) -> list[str]:
    spool = state.service.spool.state()
    found = [f"{spool.problem}: exchanges are not remembered"] if spool.problem else []
    if spool.oldest_seconds > MAX_SPOOL_SECONDS:
        size, age = f"{spool.bytes / 1_000_000:.1f} MB", f"{spool.oldest_seconds:.0f} s"
        found.append(f"{spool.records} exchanges ({size}) wait in the spool, the oldest for {age}")
    return found


def _shown_spool(spool: SpoolState) -> dict[str, Any]:
    return {
        "records": spool.records,
        "bytes": spool.bytes,
        "oldest_seconds": round(spool.oldest_seconds, 1),
    }


def _is_write_problem_left(state: ServerState) -> bool:
    """Whether writing still fails: no chat may come that would find out, as long as health is red."""
    if state.write_problem:
        try:
            try_writing(state.service.database)
        except DatabaseError:
            return True
        state.write_problem = ""
    return False


def _status(state: ServerState) -> dict[str, Any]:
    status = state.service.status()
    problems = _problems_of(state, status.problems)
    return {
        **as_json(status),
        "endpoint": as_json(status.endpoint),
        "healthy": not problems,
        "problems": problems,
        "requests_now": state.slots.taken,
        "spool": _shown_spool(state.service.spool.state()),
    }


def _status_of(state: ServerState, user_id: str, group: str) -> dict[str, Any]:
    """What concerns one user's group: nothing of others, of the machine, or of where anything is."""
    service = state.service
    return {
        "user": user_id,
        "healthy": not _problems_of(state, service.problems()),
        "extraction": "on" if extraction_endpoint(service.config) else "off",
        "items": service.item_counts(user_id, group=group),
        "conversations": service.conversation_counts(user_id, group=group),
        "unembedded": service.unembedded(user_id, group=group),
        # What a memory costs is not told apart by group.
        "tokens_today": service.tokens_spent_today(user_id) if group == MAIN_GROUP else 0,
        "phases": [_phase_of(service, user_id, group)],
    }


def _phase_of(service: Service, user_id: str, group: str) -> dict[str, Any]:
    """What concerns one user of phase 1."""
    is_whole = group == MAIN_GROUP
    return {
        "phase": ledger.PHASE1,
        "state": "off" if service.why_no_notes() else "on",
        "items": service.note_counts(user_id, group=group),
        "tokens_today": service.tokens_spent_today(user_id, ledger.PHASE1) if is_whole else 0,
        "daily_tokens": service.config.memory_phase_daily_tokens,
    }


def _metrics(state: ServerState) -> bytes:
    try:
        status, totals = state.service.status(), state.service.totals()
        healthy = not _problems_of(state, status.problems)
    except DatabaseError:
        # What this process counted is there, and wanted most now.
        return state.metrics.render_without_memory(state.slots.taken)
    return state.metrics.render(status, totals, healthy, state.slots.taken)
