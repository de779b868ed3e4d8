"""`shepherd memory process`: extract from conversations that are ready, in this process."""

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import EndpointUnavailable
from shepherd_memory.frontends.cli.advice import how_to_configure
from shepherd_memory.frontends.cli.opening import group_option, open_for_writing, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_result, json_option, print_note
from shepherd_memory.work import endpoint_state, jobs
from shepherd_memory.work.endpoint_state import EndpointState

if TYPE_CHECKING:
    from shepherd_memory.frontends.cli.progress import Step
    from shepherd_memory.service import Service

LOOK_SECONDS = 0.2
IDLE_LOOKS = 2
"""So often nothing must be left to wait for: an item may end between two looks at it."""


@dataclass(frozen=True)
class _State:
    """A user's conversations on the way, and items of theirs that have failed."""

    ready: int
    processing: int
    archived: int
    failed: int
    is_spent: bool
    """Whether the user's tokens of today are spent."""

    @property
    def open(self) -> int:
        return self.ready + self.processing


@click.command()
@click.option(
    "--wait",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="At most so long; else until nothing is left to do.",
)
@user_option
@group_option
@json_option
@pass_invocation
def process(invocation: Invocation, wait: float | None, user: str | None, group: str, as_json: bool) -> None:
    """Extract from conversations that are ready.

    They are worked on in this process, as a worker would, until none is left that the group sees. What is
    left in the end stays, and goes on the next time. Ctrl-C ends it.
    """
    from shepherd_memory.extraction.worker import extraction_endpoint
    from shepherd_memory.frontends.cli.logs import log_quietly
    from shepherd_memory.frontends.terminal.signals import stop_signals

    log_quietly(invocation.debug)
    is_on = extraction_endpoint(invocation.config) is not None
    with stop_signals() as stop:
        with open_for_writing(invocation, user) as (service, user_id):
            service.transcripts.recover()
            service.transcripts.poll()
            before = after = _state(service, user_id, group)
            endpoint = service.endpoint()
        if is_on and before.open:
            # A worker works for everybody: it is started only if there is something to do for this user.
            with open_for_writing(invocation, user, worker=True) as (service, user_id):
                after, endpoint = _work(service, user_id, group, before, wait, stop), service.endpoint()
    done = after.archived - before.archived
    data = {"archived": done, "ready": after.ready, "processing": after.processing, "failed": after.failed}
    emit_result(as_json, data, _sentence(done, after))
    if not is_on:
        _say_how(invocation, after)
    elif after.open and not stop.is_set():
        raise EndpointUnavailable(_why_left(after, endpoint, wait))


def _state(service: "Service", user_id: str, group: str) -> _State:
    counts = service.transcripts.health(user_id, group=group).conversations
    failed = service.count_items(user_id, jobs.FAILED, group=group)
    return _State(
        counts["ready"], counts["processing"], counts["archived"], failed, _is_spent(service, user_id)
    )


def _is_spent(service: "Service", user_id: str) -> bool:
    return 0 < service.config.memory_extraction_daily_tokens <= service.tokens_spent_today(user_id)


def _work(
    service: "Service",
    user_id: str,
    group: str,
    before: _State,
    wait: float | None,
    stop: threading.Event,
) -> _State:
    """Until nothing is left that can be done, the time is up, or a signal comes."""
    from shepherd_memory.frontends.cli.progress import progress_bar

    deadline = float("inf") if wait is None else time.monotonic() + wait
    state, idle = before, 0
    with progress_bar("conversations", before.open) as step:
        while state.open and idle < IDLE_LOOKS and time.monotonic() < deadline:
            state = _look(service, user_id, group, state, step)
            idle = 0 if _can_go_on(service, user_id, group, state) else idle + 1
            if stop.wait(LOOK_SECONDS):
                break
    return state


def _look(service: "Service", user_id: str, group: str, before: _State, step: "Step") -> _State:
    service.transcripts.poll()
    service.worker.wake()
    state = _state(service, user_id, group)
    step(max(0, state.archived - before.archived))
    return state


def _can_go_on(service: "Service", user_id: str, group: str, state: _State) -> bool:
    """Whether waiting helps: not for what has failed or waits for tomorrow, nor for a paused endpoint."""
    if not state.open or service.endpoint().state == endpoint_state.PAUSED:
        return False
    if state.is_spent:
        return bool(service.count_items(user_id, jobs.RUNNING, group=group))
    is_queued = bool(service.count_items(user_id, jobs.WAITING, jobs.RUNNING, group=group))
    return is_queued or bool(state.ready) or not state.failed


def _why_left(state: _State, endpoint: EndpointState, wait: float | None) -> str:
    if endpoint.state != endpoint_state.OK:
        return f"{state.open} conversations are left: the endpoint is {endpoint.state}, {endpoint.reason}"
    if state.is_spent:
        how = "the tokens of today are spent (memory_extraction_daily_tokens), and they go on tomorrow"
        return f"{state.open} conversations are left: {how}"
    if state.failed:
        return f"{state.open} conversations are left: `shepherd queue list --status failed` says why"
    return f"{state.open} conversations are left after {wait or 0:g} s: the same command goes on"


def _sentence(done: int, state: _State) -> str:
    left = [
        f"{state.ready} ready" if state.ready else "",
        f"{state.processing} in process" if state.processing else "",
        f"{state.failed} work items failed (`shepherd queue list`)" if state.failed else "",
    ]
    rest = ", ".join(filter(None, left)) or "nothing left to do"
    return f"processed {done} conversation{'' if done == 1 else 's'}; {rest}"


def _say_how(invocation: Invocation, state: _State) -> None:
    print_note(f"extraction is off: {state.ready} conversations stay ready until it is on, after")
    for command in how_to_configure(invocation, invocation.config):
        print_note(f"  {command}")
