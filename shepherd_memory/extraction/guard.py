"""The guard: which of a model's proposals are stored, kept unconfirmed or refused, each with its reason."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from shepherd_memory.errors import InvalidInput
from shepherd_memory.extraction.answer import ExtractionAnswer
from shepherd_memory.extraction.evidence import NO_EVIDENCE, Evidence
from shepherd_memory.extraction.guard_topics import is_about_assistant, is_transient
from shepherd_memory.extraction.queue import QueuedMessage
from shepherd_memory.memory import context, facts, rejections, restatements, unconfirmed
from shepherd_memory.memory.fact_keys import MAX_PROPOSED_CHARACTERS, is_short_name, normalise_key
from shepherd_memory.memory.rejections import NewRejection
from shepherd_memory.memory.unconfirmed import NewUnconfirmed
from shepherd_memory.storage import tombstones
from shepherd_memory.storage.clock import from_us, to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.grounding import NOT_SAID, REFUSED, STORED, UNCONFIRMED, Proposition, Verdict, judge
from shepherd_memory.text.grounding.agreement import names_assistant
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.redaction import redact

FACT, CONTEXT = "fact", "context"

__all__ = [
    "NOT_SAID",
    "Proposal",
    "Review",
    "StoredProposals",
    "admit",
    "admit_by_hand",
    "refuse_by_hand",
    "review",
]

SECRET = "secret"
ABOUT_ASSISTANT = "about the assistant"
TRANSIENT = "transient"
DELETED = "deleted by the user"
BY_HAND = "refused by hand"
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
    unconfirmed: tuple[NewUnconfirmed, ...] = ()

    @property
    def size(self) -> int:
        """How many row ids storing it may take."""
        return (len(self.accepted) + len(self.unconfirmed)) * 2 + len(self.refused) + 1


@dataclass(frozen=True)
class StoredProposals:
    """How much was stored, kept unconfirmed and refused in the end."""

    stored: int
    refreshed: int
    refused: int
    unconfirmed: int = 0

    @property
    def summary(self) -> str:
        """The outcome of an item, for people."""
        parts = (
            (self.stored, "stored"),
            (self.refreshed, "known already"),
            (self.unconfirmed, "unconfirmed"),
            (self.refused, "refused"),
        )
        if not any(number for number, _ in parts):
            return "nothing to store"
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
    reviewer = _Reviewer(session_id, said, group)
    proposals = [reviewer.review(*entry) for entry in _entries(answer)]
    accepted = [entry for entry in proposals if isinstance(entry, Proposal)]
    refused = tuple(entry for entry in proposals if isinstance(entry, NewRejection))
    kept = tuple(entry for entry in proposals if isinstance(entry, NewUnconfirmed))
    return Review(tuple(_find_duplicates(connection, user_id, accepted, group)), refused, kept)


def _entries(answer: ExtractionAnswer) -> Iterable[tuple[str, str, str, Evidence]]:
    for kind, pairs in ((FACT, answer.facts), (CONTEXT, answer.context)):
        for name, content in pairs:
            yield kind, name, content, answer.evidence.get((name, content), NO_EVIDENCE)


class _Reviewer:
    """Holds one proposal after another against what the user said."""

    def __init__(self, session_id: str, said: Sequence[QueuedMessage], group: str) -> None:
        self._session_id = session_id
        self._group = group
        self._said = said
        self._texts = [one.text for one in said]
        self._dates = [from_us(one.created_at) for one in said]

    def review(
        self, kind: str, raw_name: str, raw_content: str, evidence: Evidence
    ) -> Proposal | NewRejection | NewUnconfirmed:
        name, content = _clean(kind, raw_name), redact(canonical_text(raw_content)).strip()
        claim = Proposition(
            name, content, kind == CONTEXT, evidence.statement, redact(evidence.quote), evidence.subject
        )
        verdict = judge(claim, self._texts, self._dates)
        where = self._provenance(verdict)
        problem = _problem(kind, name, content) or _secret(content, raw_content) or _refusal(verdict)
        if problem:
            return NewRejection(kind, name or "?", content[:MAX_PAIR_CHARS], *problem, where)
        if verdict.decision == STORED:
            return Proposal(kind, name, content, where)
        subject = redact(evidence.subject)
        return NewUnconfirmed(
            kind,
            name,
            content,
            verdict.reason,
            verdict.detail,
            verdict.quote[:MAX_PAIR_CHARS],
            subject,
            where,
        )

    def _provenance(self, verdict: Verdict) -> Provenance:
        index = len(self._said) - 1 if verdict.statement is None else verdict.statement
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
    if is_about_assistant(name, content) and not (kind == FACT and names_assistant(name)):
        return ABOUT_ASSISTANT, ""
    if is_transient(name, content):
        return TRANSIENT, ""
    return None


def _secret(content: str, raw_content: str) -> Problem:
    return (SECRET, "") if "[redacted:" in content and content != raw_content.strip() else None


def _refusal(verdict: Verdict) -> Problem:
    return (verdict.reason, verdict.detail) if verdict.decision == REFUSED else None


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
    kept = []
    for waiting in reviewed.unconfirmed:
        is_buried = tombstones.is_buried(tx, user_id, waiting.where)
        kept.append(DELETED if is_buried else _keep(tx, user_id, ids, waiting, now))
        if kept[-1] == DELETED:
            refused.append(_deleted(waiting, is_buried))
    for proposal in reviewed.accepted:
        is_buried = tombstones.is_buried(tx, user_id, proposal.where)
        put = _PUT[proposal.kind]
        result = facts.DELETED if is_buried else put(tx, user_id, next(ids), proposal, now)
        stored += result == facts.STORED
        refreshed += result in (facts.UNCHANGED, facts.OLDER, context.REFRESHED)
        if result == facts.DELETED:
            refused.append(_deleted(proposal, is_buried))
        else:
            _settle(tx, user_id, proposal.kind, proposal.name, proposal.content, proposal.where, now)
    for entry in refused:
        rejections.insert(tx, user_id, next(ids), entry, now)
    stored, refreshed = stored + kept.count(facts.STORED), refreshed + kept.count(facts.UNCHANGED)
    return StoredProposals(stored, refreshed, len(refused), kept.count(UNCONFIRMED))


def _keep(tx: Connection, user_id: str, ids: Iterator[int], new: NewUnconfirmed, now: int) -> str:
    """Keep what nobody vouches for, or store it if it was said on another day before."""
    if _is_deleted(tx, user_id, new):
        return DELETED
    if _is_known(tx, user_id, new):
        # Forgetting the fact takes this statement too.
        restatements.add(tx, user_id, next(ids), FACT, new.name, new.content, new.where)
        return facts.UNCHANGED
    group = new.where.group_name
    same = unconfirmed.like(tx, user_id, new.kind, new.name, new.content, now, group)
    if any(unconfirmed.is_another_day(one, new.where.stated_at) for one in same):
        proposal = Proposal(new.kind, new.name, new.content, new.where)
        result = _PUT[new.kind](tx, user_id, next(ids), proposal, now)
        _settle(tx, user_id, new.kind, new.name, new.content, new.where, now)
        return facts.UNCHANGED if result in (facts.OLDER, context.REFRESHED) else result
    if not same:
        unconfirmed.insert(tx, user_id, next(ids), new, now)
    return UNCONFIRMED


def _is_deleted(tx: Connection, user_id: str, new: NewUnconfirmed) -> bool:
    mark = new.name if new.kind == FACT else context.digest(new.name, new.content)
    return tombstones.exists(tx, user_id, new.kind, mark, new.where.stated_at, new.where.group_name)


def _is_known(tx: Connection, user_id: str, new: NewUnconfirmed) -> bool:
    if new.kind != FACT:
        return False
    current = facts.get(tx, user_id, new.name, new.where.group_name)
    return current is not None and current.value == new.content


def _settle(
    tx: Connection, user_id: str, kind: str, name: str, content: str, where: Provenance, now: int
) -> None:
    """What is stored waits no longer."""
    for one in unconfirmed.like(tx, user_id, kind, name, content, now, where.group_name):
        unconfirmed.delete(tx, user_id, one.id)


def _deleted(one: Proposal | NewUnconfirmed, is_buried: bool) -> NewRejection:
    """The refusal of what the user deleted: of a buried statement without the words, or those were back."""
    name, content = ("?", "") if is_buried else (one.name, one.content)
    return NewRejection(one.kind, name, content, DELETED, "", one.where)


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


def admit_by_hand(
    tx: Connection, user_id: str, row_id: int, given: rejections.Rejection | unconfirmed.Unconfirmed, now: int
) -> None:
    """The user overrules a refusal, or confirms: it is stated by them, now."""
    name = normalise_key(given.name) if given.kind == FACT else given.name
    if not name or not given.content:
        raise InvalidInput("there is no key or no value in what was refused: nothing can be stored of it")
    where = Provenance(now, "accepted by hand", given.session_id, given.message_id, given.group_name)
    if given.kind == FACT:
        facts.put_by_hand(tx, user_id, name, given.content, where, now, row_id)
    else:
        context.put_by_hand(tx, user_id, row_id, name, given.content, where, now)
    _settle(tx, user_id, given.kind, name, given.content, where, now)


def refuse_by_hand(
    tx: Connection, user_id: str, row_id: int, given: unconfirmed.Unconfirmed, now: int
) -> None:
    """The user says that it is not so: it is listed with the other refusals."""
    where = Provenance(
        to_us(given.stated_at), given.source, given.session_id, given.message_id, given.group_name
    )
    refused = NewRejection(given.kind, given.name, given.content, BY_HAND, "", where)
    rejections.insert(tx, user_id, row_id, refused, now)
