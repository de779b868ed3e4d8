"""Which conversations get a note, and why the others do not: one rule for the worker and for people."""

import re
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.conversations.conversation import ACTIVE, Conversation
from shepherd_memory.memory.sessions import ON
from shepherd_memory.phases.rules import PhaseRules
from shepherd_memory.storage.clock import from_us, to_us

UP_TO_DATE = "up to date"
FORGOTTEN = "its note was forgotten"
MEMORY_OFF = "memory off"
SUBAGENT = "sub-agent"
NOT_INTERACTIVE = "not interactive"
OTHER_PROVIDER = "other provider"
RUNNING_SESSION = "running session"
NOT_OVER = "not over"
TOO_SHORT = "too short"
TOO_OLD = "too old"
TOO_YOUNG = "too young"
QUEUED = "queued"
RUNNING = "running"
RETRY_AT = "retry at"
TRIES_USED_UP = "tries used up"

REASONS = (
    UP_TO_DATE,
    FORGOTTEN,
    MEMORY_OFF,
    SUBAGENT,
    NOT_INTERACTIVE,
    OTHER_PROVIDER,
    RUNNING_SESSION,
    NOT_OVER,
    TOO_SHORT,
    TOO_OLD,
    TOO_YOUNG,
    QUEUED,
    RUNNING,
    RETRY_AT,
    TRIES_USED_UP,
)

LASTING = frozenset({FORGOTTEN, MEMORY_OFF, SUBAGENT, NOT_INTERACTIVE, OTHER_PROVIDER})
"""Reasons that nobody overrules by asking for a note: they are the user's, or the configuration's."""

_NOT_INTERACTIVE = re.compile(r"(?:^|[_-])(?:exec|sdk|mcp|action|headless)(?:[_-]|$)", re.IGNORECASE)
"""Programs that ask without a person: `codex_exec`, `sdk-cli` (of `claude -p`), `codex_sdk_ts`."""


@dataclass(frozen=True)
class OutputMark:
    """What there is of a conversation's output: through which document it was made, and its state."""

    source_through: int
    state: str


@dataclass(frozen=True)
class OpenJob:
    """The job of a conversation that has not come to its end."""

    key: str
    status: str
    run_at: datetime
    watermark_through: int
    last_error: str


@dataclass(frozen=True)
class NoteCandidate:
    """A conversation, and what decides on its note."""

    conversation: Conversation
    memory_mode: str = ON
    is_session_active: bool = False
    is_subagent: bool = False
    output: OutputMark | None = None
    job: OpenJob | None = None


@dataclass(frozen=True)
class Obstacle:
    """Why a conversation gets no note now; `until` is when that may change, `detail` what else is known."""

    reason: str
    until: datetime | None = None
    detail: str = ""


def why_not(candidate: NoteCandidate, rules: PhaseRules, now: int) -> Obstacle | None:
    """What keeps a conversation from getting a note now; None if nothing does."""
    return (
        _of_output(candidate)
        or lasting_obstacle(candidate, rules)
        or _of_time(candidate, rules, now)
        or _of_job(candidate, now)
    )


def _of_output(candidate: NoteCandidate) -> Obstacle | None:
    output = candidate.output
    if output is None or output.state == "withheld":
        return None
    if output.state == "forgotten":
        return Obstacle(FORGOTTEN)
    is_whole = output.source_through >= candidate.conversation.last_document
    return Obstacle(UP_TO_DATE) if is_whole else None


def lasting_obstacle(candidate: NoteCandidate, rules: PhaseRules) -> Obstacle | None:
    """Why a conversation is not to be sent anywhere, whoever asks for it."""
    conversation = candidate.conversation
    if candidate.memory_mode != ON:
        return Obstacle(MEMORY_OFF)
    if candidate.is_subagent:
        return Obstacle(SUBAGENT)
    originator = conversation.originator
    if _NOT_INTERACTIVE.search(originator) and not rules.is_listed(originator):
        return Obstacle(NOT_INTERACTIVE, detail=originator)
    provider, source = conversation.provider if conversation.is_live else "", conversation.source
    if not rules.may_send(provider, source):
        return Obstacle(OTHER_PROVIDER, detail=provider or source)
    return None


def _of_time(candidate: NoteCandidate, rules: PhaseRules, now: int) -> Obstacle | None:
    conversation = candidate.conversation
    ended_at = to_us(conversation.last_message_at)
    if candidate.is_session_active:
        return Obstacle(RUNNING_SESSION)
    if now - ended_at < rules.min_idle_us:
        return Obstacle(TOO_YOUNG, from_us(ended_at + rules.min_idle_us))
    if conversation.status == ACTIVE:
        return Obstacle(NOT_OVER)
    if conversation.entries < rules.min_entries:
        return Obstacle(TOO_SHORT)
    return Obstacle(TOO_OLD) if now - ended_at > rules.max_age_us else None


def _of_job(candidate: NoteCandidate, now: int) -> Obstacle | None:
    job = candidate.job
    if job is None:
        return None
    if job.status == "running":
        return Obstacle(RUNNING)
    if job.watermark_through < candidate.conversation.last_document:
        # It has grown since: what was wrong with it then may not be any more.
        return None
    if job.status == "failed":
        return Obstacle(TRIES_USED_UP, detail=job.last_error)
    is_due = to_us(job.run_at) <= now
    return Obstacle(QUEUED) if is_due else Obstacle(RETRY_AT, job.run_at, job.last_error)
