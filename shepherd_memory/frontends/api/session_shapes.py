"""What is asked of sessions over HTTP, and the objects around what is answered."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from shepherd_memory.frontends.api.operations import ForUser, OperationInput
from shepherd_memory.memory.session_history import HistoryEntry
from shepherd_memory.memory.session_lives import LAST, SessionLife
from shepherd_memory.service.session_history import MAX_PAGE

Transcript = Annotated[
    list[Any],
    Meta(
        max_length=10_000,
        description="What was said before, as `{role, speakerType, speakerName, text}`, to follow instead.",
    ),
]


MemoryMode = Annotated[
    Literal["on", "read-only", "off"],
    Meta(description="Whether memory is used and added to, only used, or neither."),
]


class SessionStart(ForUser, frozen=True, kw_only=True):
    """A session to start."""

    agent_name: Annotated[str, Meta(max_length=256, description="Who answers in it; else as configured.")] = (
        ""
    )
    previous: Annotated[
        str, Meta(description="The session that it follows: `last`, `none`, or the id of one.")
    ] = LAST
    previous_transcript: Transcript = field(default_factory=list)
    previousTranscript: Transcript = field(default_factory=list)
    cwd: Annotated[
        str, Meta(max_length=4096, description="The folder it is about: it follows another of that folder.")
    ] = ""
    takeover: Annotated[bool, Meta(description="Whether to end the one that is active.")] = False
    memory_mode: MemoryMode = "on"

    @property
    def transcript(self) -> list[Any]:
        return self.previous_transcript or self.previousTranscript


class SessionEnd(ForUser, frozen=True, kw_only=True):
    """How a session ends."""

    reason: Literal["client", "cleared"] = "client"


class SessionName(OperationInput, frozen=True, kw_only=True):
    session_id: Annotated[str, Meta(min_length=1)]


class SessionOf(ForUser, frozen=True, kw_only=True):
    # Not empty: that is where everything belongs that was not said in a session.
    session_id: Annotated[str, Meta(min_length=1)]


Name = Annotated[str, Meta(max_length=1000, description="At most 200 characters; any will do.")]


class SessionListOf(ForUser, frozen=True, kw_only=True):
    """Which sessions to list."""

    query: Annotated[
        str, Meta(max_length=10_000, description="Only sessions in which this was said, the best first.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 50
    offset: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0


class SessionClear(ForUser, frozen=True, kw_only=True):
    """A session to put aside."""

    name: Name = ""
    session_id: Annotated[str, Meta(description="This one; else the one that is active.")] = ""


class SessionChange(ForUser, frozen=True, kw_only=True):
    """Another name for a session, or what its memory is for; at least one of them."""

    name: Name | None = None
    memory_mode: MemoryMode | None = None


class SessionResume(ForUser, frozen=True, kw_only=True):
    """How to go on with a session."""

    save_current_as: Annotated[
        str, Meta(max_length=1000, description="The name of the one that is active; else one is made.")
    ] = ""
    at: Annotated[str, Meta(description="The message after which it goes on; else the last.")] = ""


class MessagesOf(SessionOf, frozen=True, kw_only=True):
    """Which messages of a session to read."""

    first: Annotated[int, Meta(ge=1, le=1_000_000_000, description="The first, counted from 1.")] = 1
    count: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 50


class ArchiveOf(SessionOf, frozen=True, kw_only=True):
    """A session as markdown."""

    whole: Annotated[
        bool, Meta(description="Whether long messages are whole, not cut at 2,000 characters.")
    ] = False


TokenBudget = Annotated[
    int, Meta(ge=0, le=1_000_000, description="Most tokens; else `session_rehydration_tokens`.")
]


class PreviousOf(ForUser, frozen=True, kw_only=True):
    """Which session is to be handed on."""

    session_id: Annotated[str, Meta(description="This one; else the newest that is not active.")] = ""
    current: Annotated[str, Meta(description="The session that it is for: what that was started with.")] = ""
    cwd: Annotated[str, Meta(max_length=4096, description="A folder: the newest session there.")] = ""
    budget_tokens: TokenBudget | None = None


@dataclass(frozen=True)
class PreviousText:
    """A session as a new one is told of it."""

    session_id: str
    ended: datetime
    message_count: int
    total_count: int
    text: str


@dataclass(frozen=True)
class SessionGoneOn:
    """A session that is active again: what was said in it before, and which one was put aside for it."""

    session: SessionLife
    saved: HistoryEntry | None
    was_active: bool
    told: PreviousText | None


@dataclass(frozen=True)
class ActiveSession:
    """The session that is active in a group, if there is one."""

    session_active: bool
    session_id: str | None
    session: SessionLife | None
