"""The guard: which of a model's proposals may be stored. Each refusal is recorded with its reason."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from shepherd_memory.errors import InvalidInput
from shepherd_memory.extraction.answer import ExtractionAnswer
from shepherd_memory.extraction.guard_topics import is_about_assistant, is_transient
from shepherd_memory.extraction.queue import QueuedMessage
from shepherd_memory.memory import context, facts, rejections
from shepherd_memory.memory.fact_keys import MAX_PROPOSED_CHARACTERS, is_short_name, normalise_key
from shepherd_memory.memory.rejections import NewRejection
from shepherd_memory.storage import tombstones
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.grounding import Grounding, ground, unsaid_in_question
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.redaction import redact

FACT, CONTEXT = "fact", "context"

SECRET = "secret"
NOT_SAID = "not said by the user"
ABOUT_ASSISTANT = "about the assistant"
TRANSIENT = "transient"
DELETED = "deleted by the user"
UNUSABLE = "unusable"

MAX_VALUE_CHARS = 1000
MAX_PAIR_CHARS = 4000
COMPARED_PAIRS = 2000
"""How many of the user's newest pairs a new one is compared with."""


@dataclass(frozen=True)
class Proposal:
    """A fact (key, value) or context (question, answer) that may be stored, with what it rests on."""

    kind: str
    name: str
    content: str
    where: Provenance
    same_as: int | None = None


@dataclass(frozen=True)
class Review:
    """What a model proposed, sorted."""

    accepted: tuple[Proposal, ...]
    refused: tuple[NewRejection, ...]

    @property
    def size(self) -> int:
        """How many row ids storing it may take."""
        return len(self.accepted) * 2 + len(self.refused) + 1


@dataclass(frozen=True)
class StoredProposals:
    """How much was stored and refused in the end."""

    stored: int
    refreshed: int
    refused: int

    @property
    def summary(self) -> str:
        """The outcome of an item, for people."""
        if not (self.stored or self.refreshed or self.refused):
            return "nothing to store"
        parts = ((self.stored, "stored"), (self.refreshed, "known already"), (self.refused, "refused"))
        return ", ".join(f"{number} {word}" for number, word in parts if number)


def review(
    connection: Connection,
    user_id: str,
    session_id: str,
    said: Sequence[QueuedMessage],
    answer: ExtractionAnswer,
    group: str = MAIN_GROUP,
) -> Review:
    """Sort a model's answer by what the user said: everything that needs no transaction."""
    proposals = [_Reviewer(session_id, said, group).review(*entry) for entry in _entries(answer)]
    accepted = [entry for entry in proposals if isinstance(entry, Proposal)]
    refused = [entry for entry in proposals if isinstance(entry, NewRejection)]
    return Review(tuple(_find_duplicates(connection, user_id, accepted, group)), tuple(refused))


def _entries(answer: ExtractionAnswer) -> Iterable[tuple[str, str, str]]:
    yield from ((FACT, key, value) for key, value in answer.facts)
    yield from ((CONTEXT, question, reply) for question, reply in answer.context)


class _Reviewer:
    """Holds one proposal after another against what the user said."""

    def __init__(self, session_id: str, said: Sequence[QueuedMessage], group: str) -> None:
        self._session_id = session_id
        self._group = group
        self._said = said
        self._texts = [one.text for one in said]
        self._dates = [from_us(one.created_at) for one in said]

    def review(self, kind: str, raw_name: str, raw_content: str) -> Proposal | NewRejection:
        name, content = _clean(kind, raw_name), redact(canonical_text(raw_content)).strip()
        grounding = ground(content, self._texts, key=name, dates=self._dates)
        where = self._provenance(grounding)
        problem = (
            _problem(kind, name, content)
            or _secret(content, raw_content)
            or _unsaid(grounding)
            or (self._unsaid_question(name) if kind == CONTEXT else None)
        )
        if problem is None:
            return Proposal(kind, name, content, where)
        return NewRejection(kind, name or "?", content[:MAX_PAIR_CHARS], *problem, where)

    def _unsaid_question(self, question: str) -> "Problem":
        unsaid = unsaid_in_question(question, self._texts, self._dates)
        return (NOT_SAID, f"in the question: {', '.join(unsaid)}") if unsaid else None

    def _provenance(self, grounding: Grounding) -> Provenance:
        index = len(self._said) - 1 if grounding.statement is None else grounding.statement
        one = self._said[index]
        return Provenance(one.created_at, one.source, self._session_id, one.message_id, self._group)


def _clean(kind: str, raw: str) -> str:
    text = redact(canonical_text(raw)).strip()
    return normalise_key(text) if kind == FACT else text


Problem = tuple[str, str] | None


def _problem(kind: str, name: str, content: str) -> Problem:
    longest = MAX_VALUE_CHARS if kind == FACT else MAX_PAIR_CHARS
    if not name or not content:
        return UNUSABLE, "the key or the value is empty"
    if kind == FACT and not is_short_name(name):
        return UNUSABLE, f"the key has no letter, or more than {MAX_PROPOSED_CHARACTERS} characters"
    if len(name) + len(content) > longest:
        return UNUSABLE, f"longer than {longest} characters"
    if is_about_assistant(name, content):
        return ABOUT_ASSISTANT, ""
    if is_transient(name, content):
        return TRANSIENT, ""
    return None


def _secret(content: str, raw_content: str) -> Problem:
    return (SECRET, "") if "[redacted:" in content and content != raw_content.strip() else None


def _unsaid(grounding: Grounding) -> Problem:
    return None if grounding.grounded else (NOT_SAID, ", ".join(grounding.missing))


def _find_duplicates(
    connection: Connection, user_id: str, accepted: Sequence[Proposal], group: str
) -> Iterable[Proposal]:
    pairs = any(proposal.kind == CONTEXT for proposal in accepted)
    known = context.newest(connection, user_id, COMPARED_PAIRS, group) if pairs else []
    for proposal in accepted:
        same = (
            context.near_duplicate(proposal.name, proposal.content, known)
            if proposal.kind == CONTEXT
            else None
        )
        yield Proposal(
            proposal.kind, proposal.name, proposal.content, proposal.where, same.id if same else None
        )


def admit(tx: Connection, user_id: str, first_id: int, reviewed: Review, now: int) -> StoredProposals:
    """Store what was accepted and record what was refused; only here the user's deletions are known."""
    ids = iter(range(first_id, first_id + reviewed.size))
    stored = refreshed = 0
    refused = list(reviewed.refused)
    for proposal in reviewed.accepted:
        is_buried = tombstones.is_buried(tx, user_id, proposal.where)
        put = _PUT[proposal.kind]
        result = facts.DELETED if is_buried else put(tx, user_id, next(ids), proposal, now)
        stored += result == facts.STORED
        refreshed += result in (facts.UNCHANGED, facts.OLDER, context.REFRESHED)
        if result == facts.DELETED:
            refused.append(_deleted(proposal, is_buried))
    for entry in refused:
        rejections.insert(tx, user_id, next(ids), entry, now)
    return StoredProposals(stored, refreshed, len(refused))


def _deleted(proposal: Proposal, is_buried: bool) -> NewRejection:
    """The refusal of what the user deleted: of a buried statement without the words, or those were back."""
    name, content = ("?", "") if is_buried else (proposal.name, proposal.content)
    return NewRejection(proposal.kind, name, content, DELETED, "", proposal.where)


def _put_fact(tx: Connection, user_id: str, row_id: int, proposal: Proposal, now: int) -> str:
    return facts.put(tx, user_id, proposal.name, proposal.content, proposal.where, now, row_id)


def _put_context(tx: Connection, user_id: str, row_id: int, proposal: Proposal, now: int) -> str:
    return context.put(
        tx, user_id, row_id, proposal.name, proposal.content, proposal.where, now, proposal.same_as
    )


_PUT: dict[str, Callable[[Connection, str, int, Proposal, int], str]] = {
    FACT: _put_fact,
    CONTEXT: _put_context,
}


def admit_by_hand(tx: Connection, user_id: str, row_id: int, refused: rejections.Rejection, now: int) -> None:
    """The user overrules a refusal: it is stated by them, now."""
    name = normalise_key(refused.name) if refused.kind == FACT else refused.name
    if not name or not refused.content:
        raise InvalidInput("there is no key or no value in what was refused: nothing can be stored of it")
    where = Provenance(now, "accepted by hand", refused.session_id, refused.message_id, refused.group_name)
    if refused.kind == FACT:
        facts.put_by_hand(tx, user_id, name, refused.content, where, now, row_id)
    else:
        context.put_by_hand(tx, user_id, row_id, name, refused.content, where, now)
