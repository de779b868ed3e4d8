"""What says the same as something that is to be forgotten, in other places: shown, and gone on consent."""

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence

from shepherd_memory.maintenance.related import Bundle, RelatedMemory, of_document, of_fact, of_pair
from shepherd_memory.memory import context, documents, entries, facts, restatements
from shepherd_memory.memory.facts import PastFact
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.tombstones import FACT
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.words import content_stems, fold

ALIKE = 0.8
"""Share of content words that two texts must have in common to say the same."""

NEAR = 0.75
"""How near in meaning a text must come; measured for the model that comes with us (tests/same_said.py)."""

COMPARED = 50
"""Statements that are looked for elsewhere: a session may have thousands."""

MAX_TERMS = 32
MAX_CANDIDATES = 200

Stems = frozenset[str]

SaysSame = Callable[[str], bool]

Near = Callable[[Connection, str, Collection[int], str], Sequence[int]]
"""Gives the entries of a user that a group sees and that come near in meaning to some of these."""


def find_same(
    connection: Connection,
    user_id: str,
    bundle: Bundle,
    group: str = MAIN_GROUP,
    near: Near | None = None,
) -> list[RelatedMemory]:
    """The facts, pairs and documents of the group, outside of the bundle, that say what is in it.

    By their words; and by their meaning, if they are about nobody else and name what is to be forgotten.
    """
    told = [_stems(entries.fact_text(one.key, one.value)) for one in bundle.values()]
    told = [stems for stems in told if len(stems) > 1]
    said = [_stems(document.text) for document in list(bundle.documents.values())[:COMPARED]]
    said += [_stems(entries.context_text(pair.question, pair.answer)) for pair in bundle.pairs.values()]
    looks = _Likeness(told, [stems for stems in said if stems])
    found = _candidates(connection, user_id, [*looks.told, *looks.said])
    means = near(connection, user_id, _meant_by(bundle), group)[:MAX_CANDIDATES] if near else ()
    same = {
        one.target: one
        for candidates, says_same in ((found, looks), (means, _SameMeaning(bundle)))
        for one in (
            *_same_pairs(connection, user_id, bundle, says_same, candidates, group),
            *_same_documents(connection, user_id, bundle, says_same, candidates, group),
        )
    }
    return [*_same_facts(connection, user_id, bundle, group), *same.values()]


def _meant_by(bundle: Bundle) -> set[int]:
    """The entries that say what is to be forgotten: not all that was said around them does."""
    made = [*bundle.facts.values(), *bundle.stated.values(), *bundle.pairs.values()]
    rests_on = {(one.session_id, one.message_id) for one in made}
    said = [
        one
        for one in bundle.documents.values()
        if (one.session_id, one.message_id) in rests_on
        or (not made and not bundle.is_session and one.role != "assistant")
    ]
    return {one.id for one in (*made, *said[:COMPARED]) if not isinstance(one, PastFact)}


class _Likeness:
    """Whether a text says what is to be forgotten: all words of a fact, or nearly those of a statement."""

    def __init__(self, told: Sequence[Stems], said: Sequence[Stems]) -> None:
        self.told, self.said = told, said

    def __call__(self, text: str) -> bool:
        stems = _stems(text)
        return any(fact <= stems for fact in self.told) or any(
            len(stems & other) >= ALIKE * len(stems | other) for other in self.said
        )


class _SameMeaning:
    """Whether a text that comes near in meaning says the same.

    "I live in Porto" comes near to "I live in Lisbon", and so does "my brother lives in Lisbon". So it has
    to name the value that is forgotten, if there is one, and nobody and no number besides.
    """

    def __init__(self, bundle: Bundle) -> None:
        said = [one.text for one in bundle.documents.values()]
        said += [entries.fact_text(one.key, one.value) for one in bundle.values()]
        said += [entries.context_text(one.question, one.answer) for one in bundle.pairs.values()]
        self._persons = {kind for text in said for kind in _persons(text)}
        self._numbers = {number for text in said for number in _NUMBER.findall(text)}
        self._values = [stems for one in bundle.values() if (stems := _stems(one.value))]

    def __call__(self, text: str) -> bool:
        stems = _stems(text)
        if self._values and not any(value <= stems for value in self._values):
            return False
        return _persons(text) <= self._persons and set(_NUMBER.findall(text)) <= self._numbers


_NUMBER = re.compile(r"\d+")


def _persons(text: str) -> set[str]:
    # Late: the tables of the guard's room are a fifth of what it takes to load the service.
    from shepherd_memory.text.grounding.relations import find_mentions

    return {mention.kind for mention in find_mentions(fold(text[: entries.INDEXED_CHARACTERS]))}


def _stems(text: str) -> Stems:
    return frozenset(content_stems(text[: entries.INDEXED_CHARACTERS]))


def _candidates(connection: Connection, user_id: str, wanted: Sequence[Stems]) -> list[int]:
    """Entries that have nearly all words of one of these, the newest first."""
    number = entries.number_of(connection, user_id)
    found: set[int] = set()
    for stems in wanted:
        names = {f"t{at}": stem for at, stem in enumerate(sorted(stems)[:MAX_TERMS])}
        rows = connection.rows(
            "select id from postings where user_number = :number and term in"
            f" ({', '.join(f':{name}' for name in names)}) group by id having count(*) >= :least"
            " order by id desc limit :limit",
            number=number,
            least=math.ceil(ALIKE * len(names)),
            limit=MAX_CANDIDATES,
            **names,
        )
        found |= {row_id for (row_id,) in rows}
    return sorted(found, reverse=True)[:MAX_CANDIDATES]


def _same_facts(connection: Connection, user_id: str, bundle: Bundle, group: str) -> Iterator[RelatedMemory]:
    """Other facts with the same value and a like key, and facts that the statements say as well."""
    again = {
        one.key
        for session_id, message_id in sorted(bundle.statements)[:COMPARED]
        for one in restatements.of_message(connection, user_id, session_id, message_id, group)
        if one.kind == FACT
    }
    gone = [(_stems(one.key.replace("_", " ")), _stems(one.value)) for one in bundle.values()]
    for fact in facts.listing(connection, user_id, group):
        if fact.group_name != group or fact.key in bundle.facts or fact.key in bundle.stated:
            continue
        said_here = (fact.session_id, fact.message_id) in bundle.statements
        key, value = _stems(fact.key.replace("_", " ")), _stems(fact.value)
        is_alike = any(value == other and key & named for named, other in gone)
        if said_here or fact.key in again or (value and is_alike):
            yield of_fact(fact)


def _same_pairs(
    connection: Connection,
    user_id: str,
    bundle: Bundle,
    says_same: SaysSame,
    candidates: Sequence[int],
    group: str,
) -> Iterator[RelatedMemory]:
    for row_id in candidates:
        pair = None if row_id in bundle.pairs else context.get(connection, user_id, row_id, group)
        if pair is None or pair.group_name != group:
            continue
        if says_same(entries.context_text(pair.question, pair.answer)):
            yield of_pair(pair)


def _same_documents(
    connection: Connection,
    user_id: str,
    bundle: Bundle,
    says_same: SaysSame,
    candidates: Sequence[int],
    group: str,
) -> Iterator[RelatedMemory]:
    for row_id in candidates:
        document = None if row_id in bundle.documents else documents.get(connection, user_id, row_id, group)
        if document is not None and document.group_name == group and says_same(document.text):
            yield of_document(document)
