"""`shepherd forget`: one thing, for good, and what a chat has left of it."""

import pytest

from shepherd_memory.memory import saved_chats
from shepherd_memory.memory.saved_chats import InputHistory, SavedChat
from tests.terminal.shell import data, good, on_terminal, rows, run

NOTHING = {"facts": 0, "context": 0, "documents": 0}


def test_a_fact_is_forgotten_by_its_key() -> None:
    good("facts", "set", "home_city", "Lisbon")
    result = good("forget", "home_city", "--yes")
    assert result.stdout == ""
    assert result.stderr == "forgot fact 'home_city' of ann: 1 facts\n"
    assert data("facts") == []


def test_a_key_may_be_spelled_as_people_do() -> None:
    good("facts", "set", "home_city", "Lisbon")
    assert data("forget", "Home City", "--yes") == {**NOTHING, "facts": 1}


def test_a_pair_is_forgotten_by_its_number() -> None:
    good("context", "add", "Where?", "There")
    assert data("forget", "--yes", "--context", str(data("context")[0]["id"])) == {**NOTHING, "context": 1}
    assert data("context") == []


def test_a_document_is_forgotten_with_what_chats_have_of_it() -> None:
    good("remember", "I live in Bonn", "--session", "s")
    stored = data("documents")[0]
    message = {"role": "user", "content": "I live in Bonn", "id": stored["message_id"]}
    saved_chats.save("ann", "/work", "lab", SavedChat("s", [message]))
    InputHistory("ann").add("I live in Bonn")
    assert data("forget", "--yes", "--document", str(stored["id"])) == {**NOTHING, "documents": 1}
    saved = saved_chats.load("ann", "/work", "lab")
    assert saved is not None
    assert saved.messages == []
    assert InputHistory("ann").entries() == []


def test_a_session_is_forgotten_whole() -> None:
    good("remember", "I live in Bonn", "--session", "s")
    good("remember", "I like tea", "--session", "s")
    saved_chats.save("ann", "/work", "lab", SavedChat("s", []))
    assert data("forget", "--yes", "--session", "s") == {**NOTHING, "documents": 2}
    assert data("documents") == []
    assert saved_chats.load("ann", "/work", "lab") is None


@pytest.fixture
def colors() -> None:
    """A statement with its note, and a fact that says the same."""
    good("remember", "My favorite color is teal", "--session", "s")
    message = data("documents")[0]["message_id"]
    good("documents", "add", "Wears teal.", "--session", "s", "--made-of", message)
    good("documents", "add", "My favorite color is TEAL!", "--session", "t")


@pytest.mark.usefixtures("colors")
def test_what_goes_together_is_shown_before_it_goes() -> None:
    plan = data("forget", "--document", "1", "--dry-run")
    assert [one["text"] for one in plan["goes"]] == ["My favorite color is teal", "Wears teal."]
    assert [one["text"] for one in plan["same"]] == ["My favorite color is TEAL!"]
    assert [row[0] for row in rows("forget", "--document", "1", "--dry-run")] == ["goes", "goes", "same"]
    asked = run("forget", "--document", "1")
    assert asked.exit_code == 2
    assert "Wears teal." in asked.stderr
    assert asked.stderr.endswith(
        "there is nobody to ask: --yes forgets it, --dry-run only shows what would go\n"
    )
    assert len(data("documents")) == 3


@pytest.mark.usefixtures("colors")
def test_one_row_goes_alone_and_the_same_on_consent() -> None:
    assert run("forget", "--document", "1", "--only", "--same", "--yes").exit_code == 2
    left = good("forget", "--document", "1", "--only", "--yes")
    assert "1 documents" in left.stderr
    assert len(data("documents")) == 2
    good("remember", "My favorite color is teal", "--session", "u")
    document = str(data("documents")[-1]["id"])
    assert data("forget", "--document", document, "--same", "--yes")["documents"] == 2
    assert [one["text"] for one in data("documents")] == ["Wears teal."]


@pytest.mark.usefixtures("colors")
def test_a_person_is_asked_for_it_and_for_what_says_the_same() -> None:
    code, seen = on_terminal("forget", "--document", "1", typed="y\ny\n")
    assert code == 0, seen
    assert "this goes with document 1, for good:" in seen
    assert "this says the same elsewhere:" in seen
    assert data("documents") == []


@pytest.mark.parametrize(
    "args", [["pet"], ["--context", "7"], ["--document", "7"], ["--session", "s"]], ids=" ".join
)
def test_what_is_not_there_is_said_and_ends_with_three(args: list[str]) -> None:
    result = run("forget", *args)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("shepherd: there is no ")
    assert result.stderr.endswith(" of 'ann'\n")


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["pet", "--context", "1"],
        ["--session", "s", "--document", "1"],
        ["--document", "0"],
        ["--document", "x"],
        ["--session", ""],
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_ends_with_two_and_deletes_nothing(args: list[str]) -> None:
    good("facts", "set", "pet", "Rex")
    assert run("forget", *args).exit_code == 2
    assert [fact["key"] for fact in data("facts")] == ["pet"]


def test_the_unknown_user_has_nothing_to_forget() -> None:
    assert run("forget", "pet", "--user", "unknown").exit_code == 2


def test_another_users_memory_stays() -> None:
    good("facts", "set", "pet", "Tom", "--user", "bob")
    assert run("forget", "pet").exit_code == 3
    assert [fact["value"] for fact in data("facts", "--user", "bob")] == ["Tom"]
