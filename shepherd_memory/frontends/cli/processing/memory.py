"""`shepherd memory process --phase 2`: a group's notes are consolidated while one waits."""

import time

from shepherd_memory.errors import EndpointUnavailable
from shepherd_memory.frontends.cli.opening import open_for_writing
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.frontends.terminal.output import emit_json, emit_result, print_note
from shepherd_memory.frontends.terminal.signals import stop_signals
from shepherd_memory.phases.outputs import SUCCEEDED
from shepherd_memory.service import Service
from shepherd_memory.service.consolidation import QUEUED, RUNNING, ConsolidationState, PlannedConsolidation
from shepherd_memory.storage.rows import as_json as plain

LOOK_SECONDS = 0.2
UP_TO_DATE = "nothing has changed since the last consolidation"


def consolidate(
    invocation: Invocation,
    user: str | None,
    group: str,
    dry_run: bool,
    wait: float | None,
    as_json: bool,
) -> None:
    """Say what is sent and to whom, and unless that was all that is asked for, send it."""
    with open_for_writing(invocation, user) as (service, user_id):
        planned = service.consolidate(user_id, dry_run=dry_run, group=group)
        if planned is None:
            return emit_result(as_json, {"consolidated": False, "reason": UP_TO_DATE}, UP_TO_DATE)
        if dry_run:
            return emit_json(plain(planned)) if as_json else print_note(_plan_line(planned))
        print_note(_plan_line(planned))
        with stop_signals() as stop, service.consolidation.working():
            ends_at = float("inf") if wait is None else time.monotonic() + wait
            state = _state(service, user_id, group)
            while state.reason in (QUEUED, RUNNING) and time.monotonic() < ends_at:
                if stop.wait(LOOK_SECONDS):
                    break
                state = _state(service, user_id, group)
    _report(state, as_json)


def _state(service: Service, user_id: str, group: str) -> ConsolidationState:
    return next(one for one in service.consolidation_states(user_id, group=group) if one.group_name == group)


def _report(state: ConsolidationState, as_json: bool) -> None:
    is_done = state.dirty_since is None
    if as_json:
        emit_json({"consolidated": is_done, **plain(state)})
    elif is_done:
        print_note(_done_line(state))
    if not is_done:
        why = state.detail or state.reason
        raise EndpointUnavailable(
            f"the notes are not consolidated: {why}; `shepherd memory phases` says more"
        )


def _done_line(state: ConsolidationState) -> str:
    if state.outcome != SUCCEEDED:
        return f"no note is left to consolidate: the memory files of {state.group_name} stay as they are"
    files = f"the memory files of {state.group_name} are of version {state.version} now"
    return f"{files}; `shepherd memory files` shows them"


def _plan_line(planned: PlannedConsolidation) -> str:
    counts = f"{planned.added} added, {planned.retained} retained, {planned.removed} removed"
    return (
        f"consolidation of {planned.group_name}: {counts} notes, about {planned.prompt_tokens:,} tokens"
        f" to {planned.model} at {planned.host}"
    )
