"""What hangs together: the statements that a memory rests on, and everything that was made of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from shepherd_memory.memory import context, documents, facts, restatements, session_documents
from shepherd_memory.memory.context import Context
from shepherd_memory.memory.documents import PHASE2, Document
from shepherd_memory.memory.facts import Fact, PastFact
from shepherd_memory.phases import sections, withholding
from shepherd_memory.storage import tombstones
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.tombstones import CONTEXT, DOCUMENT, FACT, SESSION
from shepherd_memory.text.canonical import as_text
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.redaction import redact
from shepherd_memory.text.words import content_stems

QUESTION = "question"
TARGETS = (FACT, CONTEXT, DOCUMENT, SESSION, QUESTION)

LISTED_CHARS = 300
REPLIES = 200
"""So many messages after a statement are looked at for what they repeat of it."""

REPEATED = 0.5
"""Share of a statement's words that a reply to it must have to count as repeating it."""

Statement = tuple[str, str]
"""The session and the id of a message."""


@dataclass(frozen=True)
class Forgettable:
    """One thing to forget: a fact's key, the number of a pair or document, a session, a question."""

    kind: str
    name: str


@dataclass(frozen=True)
class RelatedMemory:
    """One memory as a list shows it; `id` is a fact's key, or the number of a pair or document."""

    kind: str
    id: str
    text: str
    said_at: datetime
    session_id: str

    @property
    def target(self) -> Forgettable:
        return Forgettable(self.kind, self.id)

    def with_ids(self, change: Callable[[int], int]) -> "RelatedMemory":
        """The same, under another number if it has one."""
        return self if self.kind == FACT else replace(self, id=str(change(int(self.id))))


@dataclass
class Bundle:
    """What goes together: facts with all their values, values that were said in it, pairs, documents."""

    keys: set[str] = field(default_factory=set)
    """Of facts that are deleted with their history, also of one that is not there yet."""

    facts: dict[str, Fact | PastFact] = field(default_factory=dict)
    """By key: those of them that are there."""

    stated: dict[str, Fact] = field(default_factory=dict)
    """By key: their current value was said in one of the statements."""

    past: list[PastFact] = field(default_factory=list)
    """Values of before, of other facts, that were said in one of the statements."""

    pairs: dict[int, Context] = field(default_factory=dict)
    documents: dict[int, Document] = field(default_factory=dict)
    statements: set[Statement] = field(default_factory=set)
    is_session: bool = False
    """Whether it is what was said in a session, much of which says nothing of its own."""

    @property
    def is_empty(self) -> bool:
        return not (self.facts or self.pairs or self.documents)

    def values(self) -> list[Fact | PastFact]:
        """Every value of a fact that goes."""
        return [*self.facts.values(), *self.stated.values(), *self.past]

    def memories(self) -> list[RelatedMemory]:
        """All of it, as a list shows it."""
        said = sorted(self.documents.values(), key=lambda document: document.id)
        every = {**self.stated, **self.facts}
        return [
            *(of_fact(every[key]) for key in sorted(every)),
            *map(of_fact, self.past),
            *(of_pair(pair) for _, pair in sorted(self.pairs.items())),
            *map(of_document, said),
        ]


def of_fact(fact: Fact | PastFact) -> RelatedMemory:
    text = f"{fact.key}: {fact.value}"[:LISTED_CHARS]
    return RelatedMemory(FACT, fact.key, text, fact.stated_at, fact.session_id)


def of_pair(pair: Context) -> RelatedMemory:
    text = f"{pair.question} {pair.answer}"[:LISTED_CHARS]
    return RelatedMemory(CONTEXT, str(pair.id), text, pair.stated_at, pair.session_id)


def of_document(document: Document) -> RelatedMemory:
    text = document.text[:LISTED_CHARS]
    return RelatedMemory(DOCUMENT, str(document.id), text, document.created_at, document.session_id)


def gather(
    connection: Connection, user_id: str, targets: Iterable[Forgettable], group: str = MAIN_GROUP
) -> Bundle:
    """What hangs together with these, none of them a session: by what they rest on, and what that made."""
    bundle = take(connection, user_id, targets, group)
    for session_id, message_id in sorted(bundle.statements):
        _add_made_of(connection, user_id, bundle, session_id, message_id, group)
    for document in list(bundle.documents.values()):
        for reply in _replies(connection, user_id, bundle, document, group):
            bundle.documents[reply.id] = reply
    add_written_by_hand(connection, user_id, bundle, group)
    return bundle


def add_written_by_hand(connection: Connection, user_id: str, bundle: Bundle, group: str) -> None:
    """Add the documents of sections that a person wrote and that go with it: whoever asks sees them."""
    bundle.documents |= {one.id: one for one in _written_by_hand(connection, user_id, bundle, group)}


def _written_by_hand(connection: Connection, user_id: str, bundle: Bundle, group: str) -> Iterator[Document]:
    """What a person wrote into memory files, and says it or was made of it too."""
    values = frozenset(tombstones.value_mark(one.value) for one in bundle.values()) - {""}
    messages = frozenset(tombstones.words_mark(one.text) for one in bundle.documents.values()) - {""}
    found = sections.by_hand_that_say(connection, user_id, values, messages, group)
    found += withholding.pinned_around(connection, user_id, bundle.documents.values(), group)
    said = (documents.get(connection, user_id, section.id, group) for section in found)
    return (one for one in said if one is not None and one.group_name == group)


def take(
    connection: Connection, user_id: str, targets: Iterable[Forgettable], group: str = MAIN_GROUP
) -> Bundle:
    """These alone, with the statements that they rest on."""
    bundle = Bundle()
    for target in targets:
        if target.kind == FACT:
            _take_fact(connection, user_id, bundle, facts.fact_key(target.name), group)
        elif target.kind == DOCUMENT:
            _take_document(connection, user_id, bundle, int(target.name), group)
        else:
            _take_pairs(connection, user_id, bundle, target, group)
    return bundle


def _take_fact(connection: Connection, user_id: str, bundle: Bundle, key: str, group: str) -> None:
    bundle.keys.add(key)
    timeline = facts.history(connection, user_id, key, group)
    if timeline:
        bundle.facts[key] = timeline[-1]
    rests_on = facts.statements_of(connection, user_id, key, group)
    bundle.statements |= {(where.session_id, where.message_id) for where in rests_on}


def _take_pairs(
    connection: Connection, user_id: str, bundle: Bundle, target: Forgettable, group: str
) -> None:
    if target.kind == QUESTION:
        asked = redact(as_text(target.name)).strip()
        found = context.of_question(connection, user_id, asked, group)
    else:
        one = context.get(connection, user_id, int(target.name), group)
        found = [one] if one is not None and one.group_name == group else []
    for pair in found:
        bundle.pairs[pair.id] = pair
        bundle.statements |= set(context.statements_of(connection, user_id, pair))


def _take_document(connection: Connection, user_id: str, bundle: Bundle, row_id: int, group: str) -> None:
    document = documents.get(connection, user_id, row_id, group)
    if document is None or document.group_name != group:
        return
    bundle.documents[document.id] = document
    if document.source != PHASE2:
        bundle.statements.add((document.session_id, document.made_of or document.message_id))


def _add_made_of(
    connection: Connection, user_id: str, bundle: Bundle, session_id: str, message_id: str, group: str
) -> None:
    """The message itself, and the facts, pairs and notes that were made of it."""
    where = (connection, user_id, session_id, message_id, group)
    said = session_documents.get_message(*where)
    for document in [*([said] if said else []), *session_documents.notes_of(*where)]:
        bundle.documents[document.id] = document
    past = facts.past_of_message(*where)
    bundle.past += [value for value in past if value.key not in bundle.facts]
    for pair in context.of_message(*where):
        bundle.pairs[pair.id] = pair
    for fact in facts.of_message(*where):
        # A value that was said elsewhere too stays, and rests on that.
        if fact.key not in bundle.facts and not _is_said_elsewhere(connection, user_id, bundle, fact):
            bundle.stated[fact.key] = fact


def _is_said_elsewhere(connection: Connection, user_id: str, bundle: Bundle, fact: Fact) -> bool:
    again = restatements.of_key(connection, user_id, FACT, fact.key, fact.group_name)
    return any(
        one.value == fact.value and (one.session_id, one.message_id) not in bundle.statements for one in again
    )


def _replies(
    connection: Connection, user_id: str, bundle: Bundle, document: Document, group: str
) -> Iterator[Document]:
    """What was answered to a statement that is part of it, as far as it repeats what goes."""
    if document.role != "user" or not document.session_id:
        return
    said = frozenset(content_stems(document.text))
    gone = [stems for stems in _values(bundle) if stems]
    after = session_documents.of_session(
        connection, user_id, document.session_id, REPLIES, first=document.id + 1, group=group
    )
    for reply in after:
        if reply.role == "user":
            return
        stems = frozenset(content_stems(f"{reply.text} {reply.extra or ''}"))
        if any(value <= stems for value in gone) or (said and len(said & stems) >= REPEATED * len(said)):
            yield reply


def _values(bundle: Bundle) -> Sequence[frozenset[str]]:
    values = [fact.value for fact in bundle.values()]
    return [frozenset(content_stems(text)) for text in (*values, *(p.answer for p in bundle.pairs.values()))]
