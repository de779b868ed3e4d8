"""What the memory API is asked with, and the objects around what it answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta

from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.frontends.api.operations import ForUser, OperationInput
from shepherd_memory.injection.log import Injection
from shepherd_memory.memory.context import Context
from shepherd_memory.memory.documents import CATEGORIES, SPEAKER_TYPES, TYPES, Document
from shepherd_memory.memory.facts import Fact, PastFact
from shepherd_memory.memory.global_memory import MAX_CHARS
from shepherd_memory.memory.group_catalog import GroupSummary
from shepherd_memory.memory.rejections import Rejection
from shepherd_memory.memory.unconfirmed import Unconfirmed
from shepherd_memory.work.ledger import Usage

MAX_ID = 2**63 - 1
MAX_TEXT_CHARS = 100_000
PAGE = 100

Id = Annotated[int, Meta(ge=1, le=MAX_ID)]
Limit = Annotated[int, Meta(ge=1, le=1000, description="At most so many.")]
AfterId = Annotated[
    int, Meta(ge=0, le=MAX_ID, description="Only those stored after it: the last page's `next_after_id`.")
]
Name = Annotated[str, Meta(min_length=1, max_length=1000)]
Said = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_CHARS)]
Share = Annotated[float, Meta(ge=0, le=1)]
Moment = Annotated[datetime, Meta(tz=True)]


class Remember(ForUser, frozen=True, kw_only=True):
    """Messages to store."""

    messages: Annotated[
        list[dict[str, Any]],
        Meta(
            max_length=10_000,
            description="Chat messages with `role` and `content`; `id` and `created_at` are taken as given.",
        ),
    ]
    session_id: Annotated[str, Meta(description="The chat they belong to; empty: a new one.")] = ""
    extract: Annotated[bool, Meta(description="Whether to extract facts from what the user says.")] = True


class Recall(ForUser, frozen=True, kw_only=True):
    """A query, and how to answer it."""

    query: Annotated[str, Meta(max_length=10_000)]
    limit: Limit = 10
    threshold: Annotated[
        Share | None, Meta(description="Only hits at least so certain; else the configured one.")
    ] = None
    now: Annotated[Moment | None, Meta(description="When it is asked; else now.")] = None
    kinds: Annotated[
        list[Literal["fact", "context", "document"]] | None, Meta(description="Only of these; else all.")
    ] = None
    explain: Annotated[bool, Meta(description="Whether to say what each score is made of.")] = False


class FactKey(OperationInput, frozen=True, kw_only=True):
    key: Name


class FactOf(ForUser, frozen=True, kw_only=True):
    key: Name


class Forgetting(ForUser, frozen=True, kw_only=True):
    """How much goes with the one thing that is to be deleted."""

    only: Annotated[bool, Meta(description="The one row, and nothing that hangs together with it.")] = False
    same: Annotated[bool, Meta(description="Also what says the same elsewhere.")] = False


class FactToForget(Forgetting, frozen=True, kw_only=True):
    key: Name


class RowToForget(Forgetting, frozen=True, kw_only=True):
    id: Id


class SessionToForget(Forgetting, frozen=True, kw_only=True):
    # Not empty: that is where everything belongs that was not said in a session.
    session_id: Annotated[str, Meta(min_length=1)]


class ForgettingOf(ForUser, frozen=True, kw_only=True):
    """One thing that might be forgotten: exactly one of the first five."""

    fact: Annotated[Name | None, Meta(description="The key of a fact.")] = None
    context: Annotated[Id | None, Meta(description="The id of a question with its answer.")] = None
    document: Annotated[Id | None, Meta(description="The id of a document.")] = None
    session: Annotated[Name | None, Meta(description="A session.")] = None
    question: Annotated[Said | None, Meta(description="A question, with every answer to it.")] = None
    only: Annotated[bool, Meta(description="The one row alone.")] = False


class FactValue(ForUser, frozen=True, kw_only=True):
    """A fact's new value."""

    value: Said


class GlobalText(ForUser, frozen=True, kw_only=True):
    """The text that every session is to begin with."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_CHARS)]


class Page(ForUser, frozen=True, kw_only=True):
    after_id: AfterId = 0
    limit: Limit = PAGE


class RowId(OperationInput, frozen=True, kw_only=True):
    id: Id


class RowOf(ForUser, frozen=True, kw_only=True):
    id: Id


class Pair(ForUser, frozen=True, kw_only=True):
    """A question and its answer."""

    question: Said
    answer: Said


class DocumentPage(Page, frozen=True, kw_only=True):
    type: str = ""
    category: str = ""
    session_id: str = ""
    role: str = ""
    speaker_name: str = ""
    speaker_type: str = ""
    source: str = ""
    since: Annotated[Moment | None, Meta(description="Only those created since.")] = None
    newest: Annotated[bool, Meta(description="The last ones instead of the first.")] = False


class ConversationsAsked(ForUser, frozen=True, kw_only=True):
    status: Literal["", "active", "ready", "processing", "archived", "skipped"] = ""
    source: Annotated[str, Meta(description="`live`, or the agent whose transcripts they are of.")] = ""
    limit: Limit = PAGE


class DocumentGiven(ForUser, frozen=True, kw_only=True):
    """A document to store, with its facets."""

    text: Annotated[str, Meta(min_length=1)]
    type: Annotated[str, Meta(extra_json_schema={"enum": list(TYPES)})] = "artifact"
    category: Annotated[str, Meta(extra_json_schema={"enum": list(CATEGORIES)})] = "knowledge"
    session_id: str = ""
    message_id: Annotated[str, Meta(description="Stored once in its session; empty: always new.")] = ""
    role: str = ""
    speaker_type: Annotated[str, Meta(extra_json_schema={"enum": list(SPEAKER_TYPES)})] = "human"
    speaker_name: str = ""
    created_at: Moment | None = None
    source: str = "user"
    source_file: str = ""
    tool_names: str = ""
    cwd: str = ""
    made_of: Annotated[
        str,
        Meta(description="The message of its session that a note was made of, and is forgotten with."),
    ] = ""
    extra: Annotated[Any, Meta(description="Any JSON, kept with it.")] = None


class SummaryOf(ForUser, frozen=True, kw_only=True):
    project: Annotated[
        str,
        Meta(max_length=4096, description="With what is of this folder; empty: only what is of none."),
    ] = ""


class Why(ForUser, frozen=True, kw_only=True):
    request: Annotated[
        str, Meta(pattern="^[0-9a-f]{0,32}$", description="A chat's `X-Shepherd-Request`; empty: the last.")
    ] = ""
    limit: Limit = PAGE


@dataclass(frozen=True)
class Facts:
    """The current facts, by key."""

    facts: list[Fact]


@dataclass(frozen=True)
class SharedText:
    """The global memory; `handed_on` is what a session is told of it, as a part of its first message."""

    text: str
    updated_at: datetime
    handed_on: str


@dataclass(frozen=True)
class GlobalMemoryDeleted:
    """It is in no conversation any more."""

    deleted: bool


@dataclass(frozen=True)
class History:
    """The values of a fact, oldest first."""

    history: list[PastFact]


@dataclass(frozen=True)
class ContextPage:
    """Questions and answers in the order they were stored; `next_after_id` begins the next page."""

    context: list[Context]
    next_after_id: int | None


@dataclass(frozen=True)
class PairStored:
    """Whether it is new."""

    result: Literal["stored", "refreshed"]


@dataclass(frozen=True)
class Documents:
    """Documents in the order they were stored; `next_after_id` begins the next page."""

    documents: list[Document]
    next_after_id: int | None


@dataclass(frozen=True)
class Conversations:
    """Conversations of live chats and of transcripts, the latest first."""

    conversations: list[Conversation]


@dataclass(frozen=True)
class DocumentStored:
    """No id: the user deleted this message of this session before, and it stays deleted."""

    id: int | None


@dataclass(frozen=True)
class Groups:
    """The groups that a group may see, itself first."""

    groups: list[GroupSummary]


@dataclass(frozen=True)
class Rejected:
    """What the guard refused, oldest first."""

    rejected: list[Rejection]


@dataclass(frozen=True)
class UnconfirmedList:
    """What the guard could not vouch for and nobody has confirmed, oldest first."""

    unconfirmed: list[Unconfirmed]


@dataclass(frozen=True)
class Injections:
    """What was put into prompts, newest first."""

    injections: list[Injection]


@dataclass(frozen=True)
class Stats:
    """Rows by table; `unembedded` entries are found by keyword only, so far."""

    user_id: str
    rows: dict[str, int]
    unembedded: int
    usage: list[Usage]
