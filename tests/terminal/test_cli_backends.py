import pytest

from tests.endpoint import ScriptedEndpoint
from tests.terminal.shell import data, good, rows, run


@pytest.fixture(autouse=True)
def _database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHEPHERD_MEMORY_DATABASE", database_url)


def test_what_is_said_becomes_a_fact_and_is_erased(endpoint: ScriptedEndpoint) -> None:
    good("remember", "my dog is Rex", "--session", "s", "--wait", "20")
    good("remember", "my dog is Rex", "--session", "s", "--user", "bob")
    assert [row[:2] for row in rows("facts")] == [["dog", "Rex"]]
    assert data("queue", "list", "--status", "done", "--session", "s")[0]["outcome"] == "2 stored"
    assert data("queue", "status")["items"] == {
        "waiting": 1,
        "running": 0,
        "done": 1,
        "failed": 0,
        "dropped": 0,
    }
    exported = good("memory", "export").stdout
    assert data("memory", "erase", "--yes")["left"] == {}
    good("memory", "import", "-", stdin=exported)
    assert good("memory", "export").stdout.splitlines()[1:] == exported.splitlines()[1:]


def test_documents_are_listed_from_the_newest_and_shown_by_id() -> None:
    ids = [data("documents", "add", text)["id"] for text in ("one", "two", "three")]
    assert [one["text"] for one in data("documents", "--limit", "2")] == ["two", "three"]
    assert data("documents", "show", str(ids[1]))["text"] == "two"
    assert run("documents", "show", str(ids[1]), "--user", "bob").exit_code == 3


def test_items_are_listed_for_a_user_and_for_everybody(no_answer: None) -> None:
    for user in ("ann", "bob", "cid"):
        good("remember", "hi", "--session", f"of {user}", "--user", user)
    assert [row[3] for row in rows("queue", "list", "--user", "bob")] == ["of bob"]
    assert [row[0] for row in rows("queue", "list", "--all-users")] == ["ann", "bob", "cid"]
    assert [row[0] for row in rows("queue", "list", "--all-users", "--limit", "2")] == ["ann", "bob"]
    good("queue", "drop", "--all-waiting", "--user", "bob")
    assert [row[0] for row in rows("queue", "list", "--all-users", "--status", "dropped")] == ["bob"]
