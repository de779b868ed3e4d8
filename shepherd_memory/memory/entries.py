"""Entries: the words and texts by which facts, context and documents are found."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.words import content_stems

FACT, CONTEXT, DOCUMENT = "fact", "context", "document"

INDEXED_CHARACTERS = 100_000
"""Of a longer text only this much is found by its words."""


@dataclass(frozen=True)
class Entry:
    """One thing to be found, with the words it is found by."""

    id: int
    kind: str
    session_id: str
    role: str
    speaker_name: str
    stated_at: int
    terms: Counter[str]
    group_name: str = MAIN_GROUP


def terms_of(text: str) -> Counter[str]:
    """How often each word that is worth searching stands in `text`; too slow for inside a transaction."""
    return Counter(content_stems(text[:INDEXED_CHARACTERS]))


def add(tx: Connection, user_id: str, entries: Sequence[Entry], now: int) -> None:
    """Make entries findable: by word at once, by vector as soon as they are embedded."""
    if not entries:
        return
    number = number_of(tx, user_id)
    tx.insert_many("entries", _COLUMNS, [_row(user_id, entry) for entry in entries])
    tx.insert_many(
        "postings",
        ("user_number", "term", "id", "count"),
        [(number, term, entry.id, count) for entry in entries for term, count in entry.terms.items()],
    )
    tx.insert_many(
        "unembedded", ("user_id", "id", "queued_at"), [(user_id, entry.id, now) for entry in entries]
    )


_COLUMNS = (
    "user_id",
    "id",
    "kind",
    "session_id",
    "role",
    "speaker_name",
    "stated_at",
    "length",
    "group_name",
)


OTHER_SPEAKER = "case when d.speaker_name = d.user_id then '' else d.speaker_name end"
"""A document's speaker as it is found by. What the user says under their own name needs none, and a word of
that name in a query is about something else."""


def _row(user_id: str, entry: Entry) -> Row:
    return (
        user_id,
        entry.id,
        entry.kind,
        entry.session_id,
        entry.role,
        "" if entry.speaker_name == user_id else entry.speaker_name,
        entry.stated_at,
        entry.terms.total(),
        entry.group_name,
    )


def restate(tx: Connection, user_id: str, entry_id: int, stated_at: int) -> None:
    """Note that the same was said again; caches read the times of facts with what is new."""
    tx.execute(
        "update entries set stated_at = :stated_at where user_id = :user_id and id = :id",
        user_id=user_id,
        id=entry_id,
        stated_at=stated_at,
    )


def remove(tx: Connection, user_id: str, entry_id: int, text: str) -> None:
    """Make an entry unfindable at once; `text` is what it was found by."""
    number = number_of(tx, user_id)
    row = tx.row(
        "delete from entries where user_id = :user_id and id = :id returning length",
        user_id=user_id,
        id=entry_id,
    )
    for table in ("vectors", "unembedded"):
        tx.execute(f"delete from {table} where user_id = :user_id and id = :id", user_id=user_id, id=entry_id)
    if row is not None:
        _remove_postings(tx, number, entry_id, terms_of(text), row[0])


def _remove_postings(tx: Connection, number: int, entry_id: int, terms: Counter[str], length: int) -> None:
    tx.execute_many(
        "delete from postings where user_number = :number and term = :term and id = :id",
        [{"number": number, "term": term, "id": entry_id} for term in terms],
    )
    if terms.total() != length:
        # Another version of the tokenizer, or of Unicode, made them: looked for among all the user's words.
        tx.execute(
            "delete from postings where user_number = :number and id = :id", number=number, id=entry_id
        )


def number_of(connection: Connection, user_id: str) -> int:
    """The user's number, which stands for the name where there are many rows."""
    row = connection.row("select number from users where user_id = :user_id", user_id=user_id)
    return 0 if row is None else int(row[0])


def fact_text(key: str, value: str) -> str:
    """What a fact is found by."""
    return f"{key.replace('_', ' ')}: {value}"


def context_text(question: str, answer: str) -> str:
    """What a question and its answer are found by."""
    return f"{question} {answer}"
