"""What a turn is told: the profile and what recall found, less what the conversation has been told."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shepherd_memory.injection.block import MemoryBlock, RecalledItem, build_block
from shepherd_memory.injection.global_text import told_lines
from shepherd_memory.injection.handing_on import NOTHING, HandedOn
from shepherd_memory.injection.stored_blocks import GivenBlock, StoredBlock
from shepherd_memory.injection.turns import UserTurn
from shepherd_memory.intake.messages import text_of, typed_by_user
from shepherd_memory.memory import facts
from shepherd_memory.memory.documents import NOTE_SOURCES
from shepherd_memory.memory.entries import FACT
from shepherd_memory.memory.facts import Fact
from shepherd_memory.recall import Hit, Recalled
from shepherd_memory.recall.rows import NOTE
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.text.block_seal import strip_content
from shepherd_memory.text.citations import without_citation
from shepherd_memory.text.groups import GLOBAL_GROUP, MAIN_GROUP
from shepherd_memory.text.reasoning import without_reasoning
from shepherd_memory.text.redaction import redact

REDACTED = "[redacted:"

CERTAIN = 0.6
"""The confidence of what a conversation is still told once its budget is spent."""

MIN_TOKENS = 60
"""Of the budget: a block with less room says nothing worth its frame."""

LATE_SHARE = 4
"""Once the budget is spent, a block takes a quarter of what it may take before."""


@dataclass(frozen=True)
class Injected:
    """The messages to send, and what was put into them: nothing if `block` is None, for `reason`.

    `block` is that of the user's last turn, and `told` are the kinds and ids of what it tells; `blocks` are
    all, by the place of their message. `turns` are the user's, oldest first.
    """

    messages: list[Any]
    block: MemoryBlock | None = None
    request: str = ""
    recalled: Recalled = field(default_factory=Recalled)
    reason: str = ""
    told: tuple[tuple[str, StoredId], ...] = ()
    blocks: Mapping[int, MemoryBlock] = field(default_factory=dict)
    turns: tuple[UserTurn, ...] = ()


@dataclass(frozen=True)
class PromptBudget:
    """How much may be put into one message, and into all of a conversation together."""

    results: int
    tokens: int
    conversation_tokens: int


@dataclass(frozen=True)
class ToldBefore:
    """What other blocks of a conversation tell, what they cost, and the user's seq at the last of them."""

    facts: Mapping[str, str] = field(default_factory=dict)
    entry_ids: frozenset[int] = frozenset()
    tokens: int = 0
    seq: int = 0
    lines: frozenset[str] = frozenset()
    """Of the global memory."""

    @property
    def is_nothing(self) -> bool:
        return not self.tokens


def told_in(given: Iterable[GivenBlock]) -> ToldBefore:
    """What these blocks tell; of several values of a fact, the last."""
    blocks = [(one.kept, one.kept.block, one.seq) for one in given if one.kept and one.kept.block]
    return ToldBefore(
        {key: value for kept, _, _ in blocks for key, value in kept.facts},
        frozenset(number for kept, _, _ in blocks for number in _told_whole(kept)),
        sum(block.tokens - kept.record_tokens for kept, block, _ in blocks),
        max((seq for _, _, seq in blocks), default=0),
        frozenset(told_lines(block.text for kept, block, _ in blocks if kept.global_id)),
    )


def _told_whole(kept: StoredBlock) -> Iterator[int]:
    yield from (number for _, number in kept.entries)
    yield from (number for number in kept.recorded if number not in kept.shortened)


def compose(
    connection: Connection,
    user_id: str,
    messages: Sequence[Any],
    recalled: Recalled,
    room: PromptBudget,
    told: ToldBefore,
    elsewhere: str = "",
    group: str = MAIN_GROUP,
    handed_on: HandedOn = NOTHING,
) -> StoredBlock:
    """The block for a turn: the user's profile, and what recall found that the prompt does not show yet.

    What was said in the session `elsewhere` is shown to the model without being in the prompt. What is
    handed on from before the session stands in the block too, beside the budget.
    """
    left = room.conversation_tokens - told.tokens
    is_spent = left < MIN_TOKENS
    hits = [hit for hit in recalled.hits if hit.confidence >= CERTAIN] if is_spent else list(recalled.hits)
    begun = told_lines([handed_on.text]) if handed_on.global_id else set()
    shown = _shown(messages, any(REDACTED in hit.text for hit in hits)) | told.lines | begun
    known = facts.profile(connection, user_id, group)
    relevant = [_fact_of(hit)[0] for hit in hits if hit.kind == FACT and not _is_foreign(hit, group)]
    profile = _profile(known, told, relevant, shown)
    unseen = (hit for hit in hits if _is_unseen(hit, shown, elsewhere, group))
    best = list(_with_one_note(unseen))[: room.results]
    # What was told is not made up for: what is found beyond the best is less certain.
    untold = [hit for hit in best if hit.id not in told.entry_ids and hit.id not in handed_on.whole_ids]
    tokens = room.tokens // LATE_SHARE if is_spent else min(room.tokens, left)
    pieces = [_piece(hit, recalled.words, group) for hit in untold]
    block = build_block(
        [(fact.key, fact.value) for fact in profile], pieces, tokens, relevant, handed_on.text
    )
    return StoredBlock(None) if block is None else _stored(block, profile, untold, handed_on)


def _stored(
    block: MemoryBlock, profile: Sequence[Fact], hits: Sequence[Hit], handed_on: HandedOn
) -> StoredBlock:
    told = [fact for fact in profile if fact.key in block.fact_keys]
    shown = [hit for hit in hits if hit.id in block.entry_ids]
    return StoredBlock(
        block,
        tuple((fact.key, fact.value) for fact in told),
        tuple(fact.id for fact in told),
        tuple((hit.kind, hit.id) for hit in shown),
        tuple(fact.group_name for fact in told),
        tuple((*_fact_of(hit), hit.group) for hit in shown if hit.kind == FACT),
        handed_on.document_ids,
        handed_on.shortened_ids,
        handed_on.marks,
        handed_on.tokens,
        handed_on.global_id,
        (*handed_on.notes, *_notes_in(shown)),
    )


def _profile(
    known: Sequence[Fact], told: ToldBefore, relevant: Sequence[str], shown: set[str]
) -> Sequence[Fact]:
    """All facts at first; later what has changed, what is new, and what is asked for."""
    if told.is_nothing:
        return known
    untold = [fact for fact in known if told.facts.get(fact.key) != fact.value]
    return [
        fact
        for fact in untold
        if fact.key in relevant
        or fact.key in told.facts
        or (fact.id > told.seq and not any(fact.value in text for text in shown))
    ]


def _is_unseen(hit: Hit, shown: set[str], elsewhere: str, group: str) -> bool:
    if _is_foreign(hit, group):
        return hit.text.strip() not in shown
    # Facts of the group and of `global` are in the profile.
    if hit.kind == FACT or (elsewhere and (hit.session_id, hit.group) == (elsewhere, group)):
        return False
    return hit.text.strip() not in shown


def _notes_in(hits: Iterable[Hit]) -> Iterator[tuple[str, str, str]]:
    """The notes of conversations among these: group, session, and their id there."""
    for hit in hits:
        if hit.role == NOTE:
            yield hit.group, hit.session_id, hit.message_id


def _with_one_note(hits: Iterable[Hit]) -> Iterator[Hit]:
    """The hits with the best of the notes of conversations: these go beside what was said, never instead."""
    has_note = False
    for hit in hits:
        if not (has_note and hit.source in NOTE_SOURCES):
            yield hit
        has_note = has_note or hit.source in NOTE_SOURCES


def _is_foreign(hit: Hit, group: str) -> bool:
    """Whether it is of another group, whose facts are not told by themselves."""
    return hit.group not in (group, GLOBAL_GROUP)


def _fact_of(hit: Hit) -> tuple[str, str]:
    """The key and the value of a fact that was found."""
    name, _, value = hit.text.partition(": ")
    return name.replace(" ", "_"), value


def _shown(messages: Sequence[Any], redacted: bool) -> set[str]:
    """What the prompt says already, as it would be stored; redacting it takes its time."""
    said = [message for message in messages if isinstance(message, Mapping)]
    contents = [(message.get("role"), strip_content(message.get("content"))) for message in said]
    texts = {typed_by_user(content) if role == "user" else text_of(content) for role, content in contents}
    # Clients send a model's thoughts and citations along with its answer; stored is the answer.
    answers = {without_citation(without_reasoning(text)) for text in texts}
    return {(redact(text) if redacted else text).strip() for text in texts | answers}


def _piece(hit: Hit, words: Sequence[str], group: str) -> RecalledItem:
    question, answer = hit.pair or ("", "")
    return RecalledItem(
        entry_id=hit.id,
        kind=hit.kind,
        date=hit.created_at.date().isoformat(),
        speaker=hit.speaker_name or hit.role,
        text=hit.text,
        question=question,
        answer=answer,
        words=tuple(words),
        group=hit.group if _is_foreign(hit, group) else "",
    )
