"""Notes of conversations over HTTP: which there are, and why others have none."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from shepherd_memory.frontends.api.memory_shapes import PAGE, Limit, RowOf
from shepherd_memory.frontends.api.operations import BodyInput, ForUser, Operation
from shepherd_memory.phases.note_list import NoteLine, WholeNote, line_of, whole_note
from shepherd_memory.service.consolidation import ConsolidationState

ROOT = "/v1/memory/phases"


class NotesOf(ForUser, frozen=True, kw_only=True):
    """A page of conversations."""

    limit: Limit = PAGE
    offset: Annotated[
        int, Meta(ge=0, le=1_000_000_000, description="Pass over so many: the last page's `next_offset`.")
    ] = 0


@dataclass(frozen=True)
class NotePage:
    """Conversations, the latest first; `off` says why no notes are made at all, empty if they are.

    `groups` are those whose notes are consolidated, with their state.
    """

    conversations: list[NoteLine]
    next_offset: int | None
    off: str
    groups: list[ConsolidationState]


def list_notes(given: BodyInput[NotesOf, None]) -> NotePage:
    page = given.parameters
    found = given.service.conversation_notes(
        given.user_id, limit=page.limit + 1, offset=page.offset, group=given.group
    )
    shown = [line_of(one.conversation, one.output, one.obstacle) for one in found[: page.limit]]
    next_offset = page.offset + page.limit if len(found) > page.limit else None
    groups = given.service.consolidation_states(given.user_id, group=given.group)
    return NotePage(shown, next_offset, given.service.why_no_notes(), groups)


def get_note(given: BodyInput[RowOf, None]) -> WholeNote:
    found = given.service.conversation_note(given.user_id, given.parameters.id, group=given.group)
    return whole_note(found.conversation, found.output, found.obstacle)


PHASE_OPERATIONS = [
    Operation(
        "GET",
        ROOT,
        "List conversations with their notes, or why they have none.",
        NotePage,
        list_notes,
        NotesOf,
    ),
    Operation(
        "GET", f"{ROOT}/{{id}}", "The note of a conversation, with its texts.", WholeNote, get_note, RowOf
    ),
]
