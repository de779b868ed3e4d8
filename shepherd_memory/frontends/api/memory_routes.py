"""The memory over HTTP: everything that a program can do with the memory of one user."""

import io
from collections.abc import Sequence
from typing import Literal, TypeVar, cast

from shepherd_memory.frontends.api.exporting import ExportResponse
from shepherd_memory.frontends.api.file_routes import FILE_OPERATIONS
from shepherd_memory.frontends.api.memory_shapes import (
    ContextPage,
    Conversations,
    ConversationsAsked,
    DocumentGiven,
    DocumentPage,
    Documents,
    DocumentStored,
    FactKey,
    FactOf,
    Facts,
    FactToForget,
    FactValue,
    ForgettingOf,
    GlobalMemoryDeleted,
    GlobalText,
    Groups,
    History,
    Injections,
    Page,
    Pair,
    PairStored,
    Recall,
    Rejected,
    Remember,
    RowId,
    RowOf,
    RowToForget,
    SessionToForget,
    SharedText,
    Stats,
    SummaryOf,
    UnconfirmedList,
    Why,
)
from shepherd_memory.frontends.api.operations import (
    NDJSON,
    BodyInput,
    ForUser,
    Operation,
    OperationInput,
    routes_of,
)
from shepherd_memory.frontends.api.phase_routes import PHASE_OPERATIONS
from shepherd_memory.frontends.api.session_routes import SESSION_OPERATIONS
from shepherd_memory.frontends.web.http_errors import HttpError
from shepherd_memory.intake.store import Remembered
from shepherd_memory.maintenance.erasure import Receipt
from shepherd_memory.maintenance.forgetting import ForgettingPlan, Forgotten
from shepherd_memory.maintenance.portability import Imported
from shepherd_memory.memory.context import Context
from shepherd_memory.memory.documents import Document
from shepherd_memory.memory.facts import Fact
from shepherd_memory.memory.rejections import Rejection
from shepherd_memory.memory.unconfirmed import Unconfirmed
from shepherd_memory.recall import Recalled
from shepherd_memory.service.summary import MemorySummary
from shepherd_memory.text.groups import GLOBAL_GROUP, MAIN_GROUP, may_act_in

USER_ROW = "users"

T = TypeVar("T")


def remember(given: BodyInput[OperationInput, Remember]) -> Remembered:
    said = given.body
    return given.service.remember(
        given.user_id, said.messages, said.session_id, extract=said.extract, group=given.group
    )


def recall(given: BodyInput[Recall, None]) -> Recalled:
    return _recall(given, given.parameters)


def recall_by_body(given: BodyInput[OperationInput, Recall]) -> Recalled:
    return _recall(given, given.body)


def _recall(given: BodyInput[Recall, None] | BodyInput[OperationInput, Recall], asked: Recall) -> Recalled:
    return given.service.recall(
        given.user_id,
        asked.query,
        asked.limit,
        asked.threshold,
        asked.now,
        asked.kinds,
        asked.explain,
        group=given.group,
    )


def list_facts(given: BodyInput[ForUser, None]) -> Facts:
    return Facts(given.service.facts(given.user_id, group=given.group))


def get_fact(given: BodyInput[FactOf, None]) -> Fact:
    fact = given.service.get_fact(given.user_id, given.parameters.key, group=given.group)
    return _found(fact, "fact", given.parameters.key)


def put_fact(given: BodyInput[FactKey, FactValue]) -> Fact:
    return given.service.set_fact(given.user_id, given.parameters.key, given.body.value, group=given.group)


def delete_fact(given: BodyInput[FactToForget, None]) -> Forgotten:
    asked = given.parameters
    gone = given.service.forget(
        given.user_id, fact=asked.key, only=asked.only, same=asked.same, group=given.group
    )
    return _forgotten(gone, "fact", asked.key)


def fact_history(given: BodyInput[FactOf, None]) -> History:
    past = given.service.fact_history(given.user_id, given.parameters.key, group=given.group)
    return History(_found(past, "fact", given.parameters.key))


def get_global(given: BodyInput[ForUser, None]) -> SharedText:
    found = given.service.global_memory(given.user_id, group=given.group)
    if found is None:
        raise HttpError(404, "this user has no global memory")
    opening = given.service.global_opening(given.user_id, group=given.group)
    return SharedText(found.text, found.updated_at, opening)


def put_global(given: BodyInput[OperationInput, GlobalText]) -> SharedText:
    _check_writes_global(given.group)
    stored = given.service.set_global_memory(given.user_id, given.body.text, group=given.group)
    opening = given.service.global_opening(given.user_id, group=given.group)
    return SharedText(stored.text, stored.updated_at, opening)


def delete_global(given: BodyInput[ForUser, None]) -> GlobalMemoryDeleted:
    _check_writes_global(given.group)
    given.service.delete_global_memory(given.user_id, group=given.group)
    return GlobalMemoryDeleted(True)


def _check_writes_global(group: str) -> None:
    if not may_act_in(group, GLOBAL_GROUP):
        raise HttpError(
            403,
            f"the group {group!r} only reads the global memory: writing takes a request of the group 'main'",
            code="group_not_allowed",
        )


def list_context(given: BodyInput[Page, None]) -> ContextPage:
    page = given.parameters
    pairs = given.service.context(given.user_id, after_id=page.after_id, limit=page.limit, group=given.group)
    return ContextPage(pairs, _next_after(pairs, page))


def add_context(given: BodyInput[OperationInput, Pair]) -> PairStored:
    result = given.service.add_context(
        given.user_id, given.body.question, given.body.answer, group=given.group
    )
    return PairStored(cast(Literal["stored", "refreshed"], result))


def get_context(given: BodyInput[RowOf, None]) -> Context:
    pair = given.service.get_context(given.user_id, given.parameters.id, group=given.group)
    return _found(pair, "context", given.parameters.id)


def delete_context(given: BodyInput[RowToForget, None]) -> Forgotten:
    asked = given.parameters
    gone = given.service.forget(
        given.user_id, context=asked.id, only=asked.only, same=asked.same, group=given.group
    )
    return _forgotten(gone, "context", asked.id)


def list_documents(given: BodyInput[DocumentPage, None]) -> Documents:
    page = given.parameters
    found = given.service.documents(
        given.user_id,
        type=page.type,
        category=page.category,
        session_id=page.session_id,
        role=page.role,
        speaker_name=page.speaker_name,
        speaker_type=page.speaker_type,
        group=given.group,
        source=page.source,
        since=page.since,
        after_id=page.after_id,
        limit=page.limit,
        newest=page.newest,
    )
    return Documents(found, None if page.newest else _next_after(found, page))


def add_document(given: BodyInput[OperationInput, DocumentGiven]) -> DocumentStored:
    document = given.body
    document_id = given.service.add_document(
        given.user_id,
        document.text,
        type=document.type,
        category=document.category,
        session_id=document.session_id,
        message_id=document.message_id,
        role=document.role,
        speaker_type=document.speaker_type,
        speaker_name=document.speaker_name,
        created_at=document.created_at,
        group=given.group,
        source=document.source,
        source_file=document.source_file,
        tool_names=document.tool_names,
        cwd=document.cwd,
        made_of=document.made_of,
        extra=document.extra,
    )
    return DocumentStored(document_id or None)


def get_document(given: BodyInput[RowOf, None]) -> Document:
    document = given.service.get_document(given.user_id, given.parameters.id, group=given.group)
    return _found(document, "document", given.parameters.id)


def delete_document(given: BodyInput[RowToForget, None]) -> Forgotten:
    asked = given.parameters
    gone = given.service.forget(
        given.user_id, document=asked.id, only=asked.only, same=asked.same, group=given.group
    )
    return _forgotten(gone, "document", asked.id)


def list_conversations(given: BodyInput[ConversationsAsked, None]) -> Conversations:
    asked = given.parameters
    found = given.service.conversations(
        given.user_id, status=asked.status, source=asked.source, limit=asked.limit, group=given.group
    )
    return Conversations(found)


def delete_session(given: BodyInput[SessionToForget, None]) -> Forgotten:
    asked = given.parameters
    gone = given.service.forget(
        given.user_id, session=asked.session_id, only=asked.only, same=asked.same, group=given.group
    )
    return _forgotten(gone, "session", asked.session_id)


def plan_forgetting(given: BodyInput[ForgettingOf, None]) -> ForgettingPlan:
    asked = given.parameters
    plan = given.service.plan_forgetting(
        given.user_id,
        fact=asked.fact,
        context=asked.context,
        document=asked.document,
        session=asked.session,
        question=asked.question,
        only=asked.only,
        group=given.group,
    )
    if not plan.total:
        raise HttpError(404, "this user has no such memory")
    return plan


def stats(given: BodyInput[ForUser, None]) -> Stats:
    service, user_id, group = given.service, given.user_id, given.group
    counts = service.row_counts(user_id, group=group)
    rows = {table: number for table, number in counts.items() if table != USER_ROW}
    # What a user's memory has cost is not told apart by group.
    usage = service.usage(user_id) if group == MAIN_GROUP else []
    return Stats(user_id, rows, service.unembedded(user_id, group=group), usage)


def summary(given: BodyInput[SummaryOf, None]) -> MemorySummary:
    return given.service.memory_summary(given.user_id, project=given.parameters.project, group=given.group)


def groups(given: BodyInput[ForUser, None]) -> Groups:
    return Groups(given.service.groups(given.user_id, group=given.group))


def rejected(given: BodyInput[ForUser, None]) -> Rejected:
    return Rejected(given.service.rejected(given.user_id, group=given.group))


def accept(given: BodyInput[RowId, ForUser]) -> Rejection:
    return given.service.accept(given.user_id, given.parameters.id, group=given.group)


def unconfirmed(given: BodyInput[ForUser, None]) -> UnconfirmedList:
    return UnconfirmedList(given.service.unconfirmed(given.user_id, group=given.group))


def confirm(given: BodyInput[RowId, ForUser]) -> Unconfirmed:
    return given.service.confirm(given.user_id, given.parameters.id, group=given.group)


def refuse(given: BodyInput[RowId, ForUser]) -> Unconfirmed:
    return given.service.refuse(given.user_id, given.parameters.id, group=given.group)


def why(given: BodyInput[Why, None]) -> Injections:
    asked = given.parameters
    return Injections(given.service.why(given.user_id, asked.request, asked.limit, group=given.group))


def export(given: BodyInput[ForUser, None]) -> ExportResponse:
    return ExportResponse(given.threads, given.service.export(given.user_id, group=given.group))


def import_(given: BodyInput[ForUser, bytes]) -> Imported:
    return given.service.import_lines(given.user_id, io.BytesIO(given.body), group=given.group)


def erase(given: BodyInput[OperationInput, ForUser]) -> Receipt:
    if given.group != MAIN_GROUP:
        raise HttpError(
            403,
            "a user is erased in all groups: that takes a request of the group 'main'",
            code="group_not_allowed",
        )
    return given.service.erase(given.user_id)


def _found(value: T | None, what: str, name: object) -> T:
    if not value:
        raise HttpError(404, f"this user has no {what} {name!r}")
    return value


def _forgotten(gone: Forgotten, what: str, name: object) -> Forgotten:
    if not gone.total:
        raise HttpError(404, f"this user has no {what} {name!r}")
    return gone


def _next_after(rows: Sequence[Context] | Sequence[Document], page: Page) -> int | None:
    return rows[-1].id if len(rows) == page.limit else None


ROOT = "/v1/memory"
LONG_AT_ONCE = 2

MEMORY_OPERATIONS = [
    *SESSION_OPERATIONS,
    *PHASE_OPERATIONS,
    *FILE_OPERATIONS,
    Operation("POST", f"{ROOT}/remember", "Store messages.", Remembered, remember, body=Remember),
    Operation("GET", f"{ROOT}/recall", "Find what a query is about.", Recalled, recall, Recall),
    Operation("POST", f"{ROOT}/recall", "The same, by a body.", Recalled, recall_by_body, body=Recall),
    Operation("GET", f"{ROOT}/facts", "List the current facts.", Facts, list_facts, ForUser),
    Operation("GET", f"{ROOT}/facts/{{key}}/history", "All values of a fact.", History, fact_history, FactOf),
    Operation("GET", f"{ROOT}/facts/{{key}}", "Get a fact.", Fact, get_fact, FactOf),
    Operation("PUT", f"{ROOT}/facts/{{key}}", "Set a fact.", Fact, put_fact, FactKey, FactValue),
    Operation("DELETE", f"{ROOT}/facts/{{key}}", "Delete a fact.", Forgotten, delete_fact, FactToForget),
    Operation(
        "GET",
        f"{ROOT}/global",
        "The text that every session begins with.",
        SharedText,
        get_global,
        ForUser,
        refusals=(404,),
    ),
    Operation("PUT", f"{ROOT}/global", "Replace that text.", SharedText, put_global, body=GlobalText),
    Operation(
        "DELETE",
        f"{ROOT}/global",
        "Delete that text, also from conversations that run.",
        GlobalMemoryDeleted,
        delete_global,
        ForUser,
        refusals=(404,),
    ),
    Operation("GET", f"{ROOT}/context", "List questions and answers.", ContextPage, list_context, Page),
    Operation("POST", f"{ROOT}/context", "Store a question and answer.", PairStored, add_context, body=Pair),
    Operation("GET", f"{ROOT}/context/{{id}}", "Get a question and answer.", Context, get_context, RowOf),
    Operation("DELETE", f"{ROOT}/context/{{id}}", "Delete a pair.", Forgotten, delete_context, RowToForget),
    Operation("GET", f"{ROOT}/documents", "List documents.", Documents, list_documents, DocumentPage),
    Operation(
        "POST", f"{ROOT}/documents", "Store a document.", DocumentStored, add_document, body=DocumentGiven
    ),
    Operation("GET", f"{ROOT}/documents/{{id}}", "Get a document.", Document, get_document, RowOf),
    Operation(
        "DELETE", f"{ROOT}/documents/{{id}}", "Delete a document.", Forgotten, delete_document, RowToForget
    ),
    Operation(
        "GET",
        f"{ROOT}/conversations",
        "List conversations.",
        Conversations,
        list_conversations,
        ConversationsAsked,
    ),
    Operation(
        "DELETE",
        f"{ROOT}/sessions/{{session_id:path}}",
        "Forget a session and what was made of it.",
        Forgotten,
        delete_session,
        SessionToForget,
    ),
    Operation(
        "GET",
        f"{ROOT}/forget",
        "What forgetting one thing would take.",
        ForgettingPlan,
        plan_forgetting,
        ForgettingOf,
        refusals=(404,),
    ),
    Operation("GET", f"{ROOT}/groups", "The groups that a group may see.", Groups, groups, ForUser),
    Operation("GET", f"{ROOT}/stats", "How much is stored, and its cost.", Stats, stats, ForUser),
    Operation(
        "GET",
        f"{ROOT}/summary",
        "What is known of the user, in short.",
        MemorySummary,
        summary,
        SummaryOf,
    ),
    Operation("GET", f"{ROOT}/rejected", "What the guard refused.", Rejected, rejected, ForUser),
    Operation(
        "POST", f"{ROOT}/rejected/{{id}}/accept", "Store it all the same.", Rejection, accept, RowId, ForUser
    ),
    Operation(
        "GET", f"{ROOT}/unconfirmed", "What waits to be confirmed.", UnconfirmedList, unconfirmed, ForUser
    ),
    Operation(
        "POST",
        f"{ROOT}/unconfirmed/{{id}}/confirm",
        "It is so: store it.",
        Unconfirmed,
        confirm,
        RowId,
        ForUser,
    ),
    Operation(
        "POST", f"{ROOT}/unconfirmed/{{id}}/refuse", "It is not so.", Unconfirmed, refuse, RowId, ForUser
    ),
    Operation("GET", f"{ROOT}/why", "What was put into prompts.", Injections, why, Why),
    Operation(
        "GET", f"{ROOT}/export", "Everything, as JSON lines.", bytes, export, ForUser, media_types=(NDJSON,)
    ),
    Operation(
        "POST",
        f"{ROOT}/import",
        "Take in an export.",
        Imported,
        import_,
        ForUser,
        bytes,
        at_once=LONG_AT_ONCE,
    ),
    Operation(
        "POST",
        f"{ROOT}/erase",
        "Remove the user everywhere.",
        Receipt,
        erase,
        body=ForUser,
        at_once=LONG_AT_ONCE,
    ),
]

MEMORY_ROUTES = routes_of(MEMORY_OPERATIONS)
