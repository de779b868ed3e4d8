"""Many rows at once: as they were given, all or none, and for nobody else."""

from typing import Any

import pytest

from shepherd_memory.errors import DatabaseError
from shepherd_memory.memory import documents
from shepherd_memory.memory.documents import LOOKED_UP, NewDocument
from shepherd_memory.storage import tombstones, users
from shepherd_memory.storage.database import Database
from tests.contract.given import NOON

pytestmark = pytest.mark.every_scheme

COLUMNS = ("user_id", "id", "kind", "session_id", "role", "speaker_name", "stated_at", "length")
STRANGE = [
    "",
    " ",
    "tab\tand\nline\r\n",
    "back\\slash \\N \\.",
    "quote ' \" %s :name",
    "日本語 🙂 é",
    "x" * 100_000,
]


def row(user_id: str, number: int, text: str = "chat") -> tuple[Any, ...]:
    return user_id, number, "document", text, "user", "", 2**62 + number, -number


def insert(database: Database, rows: list[tuple[Any, ...]]) -> None:
    with database.write() as tx:
        tx.insert_many("entries", COLUMNS, rows)


def stored(database: Database, user_id: str = "ada") -> list[tuple[Any, ...]]:
    with database.read() as connection:
        return connection.rows(
            f"select {', '.join(COLUMNS)} from entries where user_id = :user_id order by id", user_id=user_id
        )


@pytest.mark.parametrize("number", [0, 1, 7, 8, 59, 60, 61, 120, 5000])
def test_so_many_rows_come_back_as_they_were_given(database: Database, number: int) -> None:
    rows = [row("ada", place) for place in range(number)]
    insert(database, rows)
    assert stored(database) == rows


@pytest.mark.parametrize("copies", [1, 20])
def test_every_text_comes_back_as_it_was(database: Database, copies: int) -> None:
    rows = [row("ada", place, text) for place, text in enumerate(STRANGE * copies)]
    insert(database, rows)
    assert stored(database) == rows


@pytest.mark.parametrize("number", [2, 500])
def test_what_is_missing_stays_missing(database: Database, number: int) -> None:
    new = [NewDocument("chat", str(place), "hi", NOON, extra=None) for place in range(number)]
    with database.write() as tx:
        documents.insert(tx, "ada", users.lock(tx, "ada", NOON, number), new, NOON)
    with database.read() as connection:
        assert connection.rows("select distinct extra, text from documents") == [(None, "hi")]


@pytest.mark.parametrize("number", [2, 3000])
def test_one_row_that_is_there_already_keeps_out_all(database: Database, number: int) -> None:
    insert(database, [row("ada", number - 1)])
    with pytest.raises(DatabaseError):
        insert(database, [row("ada", place) for place in range(number)])
    assert stored(database) == [row("ada", number - 1)]


@pytest.mark.parametrize("number", [2, 3000])
def test_half_a_surrogate_pair_is_refused_and_the_next_rows_are_taken(
    database: Database, number: int
) -> None:
    good = [row("ada", place) for place in range(number)]
    with pytest.raises(UnicodeEncodeError):
        insert(database, [*good, row("ada", number, "half \ud800")])
    assert stored(database) == []
    insert(database, good)
    assert stored(database) == good


@pytest.mark.parametrize("number", [2, 3000])
def test_nul_is_stored_as_it_is_or_refused_with_all_other_rows(database: Database, number: int) -> None:
    """The core replaces it before: what must not happen is a text that ends there."""
    rows = [*(row("ada", place) for place in range(number)), row("ada", number, "be\0hind")]
    try:
        insert(database, rows)
    except DatabaseError:
        rows = []
    assert stored(database) == rows


def test_rows_of_several_users_stay_apart(database: Database) -> None:
    insert(database, [row(user_id, place) for place in range(500) for user_id in ("ada", "bob")])
    for user_id in ("ada", "bob"):
        assert stored(database, user_id) == [row(user_id, place) for place in range(500)]
    assert stored(database, "eve") == []


def said(name: str, session_id: str = "chat") -> NewDocument:
    return NewDocument(session_id, name, f"said {name}", NOON)


def store(database: Database, user_id: str, new: list[NewDocument]) -> list[str]:
    """The names of those that were stored."""
    with database.write() as tx:
        first = users.lock(tx, user_id, NOON, len(new))
        taken = documents.insert(tx, user_id, first, new, NOON)
    return [document.message_id for number, document in enumerate(new, first) if number in taken]


def test_of_many_documents_those_are_stored_that_are_new(database: Database) -> None:
    names = [f"m{number}" for number in range(2 * LOOKED_UP + 10)]
    assert store(database, "ada", [said(name) for name in names[::2]]) == names[::2]
    assert store(database, "ada", [said(name) for name in names]) == names[1::2]
    assert store(database, "ada", [said(name) for name in names]) == []


def test_of_the_same_message_twice_in_one_go_the_first_is_stored(database: Database) -> None:
    new = [said("a"), said("b"), NewDocument("chat", "a", "again", NOON), said("a", "other")]
    assert store(database, "ada", new) == ["a", "b", "a"]
    with database.read() as connection:
        assert connection.rows("select session_id, text from documents order by id") == [
            ("chat", "said a"),
            ("chat", "said b"),
            ("other", "said a"),
        ]


def test_what_the_user_deleted_is_not_stored_again_among_many(database: Database) -> None:
    names = [f"m{number}" for number in range(LOOKED_UP + 10)]
    with database.write() as tx:
        users.lock(tx, "ada", NOON)
        for name in names[::3]:
            tombstones.add(tx, "ada", tombstones.DOCUMENT, name, NOON, "chat")
    wanted = [name for name in names if name not in names[::3]]
    assert store(database, "ada", [said(name) for name in names]) == wanted


def test_what_somebody_else_has_or_deleted_does_not_count(database: Database) -> None:
    assert store(database, "bob", [said("a"), said("b")]) == ["a", "b"]
    with database.write() as tx:
        users.lock(tx, "bob", NOON)
        tombstones.add(tx, "bob", tombstones.DOCUMENT, "c", NOON, "chat")
    assert store(database, "ada", [said("a"), said("b"), said("c")]) == ["a", "b", "c"]
