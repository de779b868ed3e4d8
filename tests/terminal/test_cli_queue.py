import json

import pytest

from shepherd_memory.config import set_value
from tests.endpoint import ScriptedEndpoint, status
from tests.terminal.conftest import use_endpoint
from tests.terminal.shell import data, good, rows, run, with_service


def fail(user_id: str = "ann") -> None:
    """Let all items of a user have failed."""

    def sink(service: object) -> None:
        with service.database.write() as tx:  # type: ignore[attr-defined]
            tx.execute("update jobs set status = 'failed', last_error = 'bad' where user_id = :u", u=user_id)

    with_service(sink)


def states(*options: str) -> dict[str, str]:
    every = [word for state in ("waiting", "failed", "dropped", "done") for word in ("--status", state)]
    return {item["key"]: item["status"] for item in data("queue", "list", *every, *options)}


def test_status_of_an_empty_queue_is_healthy_and_says_how_to_begin() -> None:
    pairs = rows("queue", "status")
    assert dict(pairs[:3]) == {"health": "ok", "extraction": "off", "endpoint": "not called yet"}
    assert any("config set memory_extraction_endpoint" in pair[1] for pair in pairs)
    shown = data("queue", "status")
    assert (shown["healthy"], shown["items"]["waiting"], shown["endpoint"]["state"]) == (True, 0, "ok")


def test_status_counts_all_users(no_answer: None) -> None:
    good("remember", "hi", "--session", "s")
    good("remember", "hi", "--session", "s", "--user", "bob")
    shown = data("queue", "status")
    assert shown["items"]["waiting"] == 2
    assert shown["users"] == 2


def test_a_refused_key_pauses_and_status_says_what_to_set(endpoint: ScriptedEndpoint) -> None:
    endpoint.default = status(401)
    run("remember", "my dog is Rex", "--wait", "2")
    result = run("queue", "status")
    assert result.exit_code == 1
    pairs = dict(line.split("\t") for line in result.stdout.splitlines())
    assert pairs["health"] == "not ok"
    assert pairs["endpoint"].startswith("paused since 2")
    assert "answered 401" in pairs["endpoint"]
    assert pairs["to do"].endswith("config set memory_extraction_api_key -")
    shown = json.loads(run("queue", "status", "--json").stdout)
    assert (shown["healthy"], shown["endpoint"]["state"], len(shown["problems"])) == (False, "paused", 1)


def test_a_wrong_model_or_address_is_named(endpoint: ScriptedEndpoint) -> None:
    endpoint.default = status(404)
    run("remember", "my dog is Rex", "--wait", "2")
    steps = [row for row in run("queue", "status").stdout.splitlines() if row.startswith("to do")]
    assert ["memory_extraction_endpoint" in steps[0], "memory_extraction_model" in steps[1]] == [True, True]


def test_an_endpoint_that_is_away_is_said_to_be_tried_again(no_answer: None) -> None:
    run("remember", "my dog is Rex", "--wait", "2")
    said = good("queue", "status").stdout
    assert "unavailable since" in said
    assert "tried again every 0.1 s" in said


def test_health_turns_red_when_nothing_moves(no_answer: None) -> None:
    good("remember", "hi")
    good("config", "memory_health_max_lag", "0.001")
    result = run("queue", "status")
    assert (result.exit_code, "nothing moves" in result.stdout) == (1, True)


def test_items_are_listed_by_state(no_answer: None) -> None:
    good("remember", "one", "--session", "a")
    good("remember", "two", "--session", "b")
    assert [row[1:2] + row[3:5] for row in rows("queue", "list")] == [
        ["waiting", "a", "3"],
        ["waiting", "b", "3"],
    ]
    assert rows("queue", "list", "--session", "b")[0][3] == "b"
    assert good("queue", "list", "--status", "done").stdout == ""
    assert len(rows("queue", "list", "--limit", "1")) == 1


def test_a_listed_item_shows_nobodys_words(no_answer: None) -> None:
    good("config", "memory_documents", "false")
    good("remember", "my secret garden")
    assert "garden" not in good("queue", "list", "--json").stdout
    assert "payload" not in data("queue", "list")[0]
    assert "token" not in data("queue", "list")[0]


def test_the_operator_sees_everybodys_items_with_their_users(no_answer: None) -> None:
    good("remember", "hi", "--session", "s")
    good("remember", "hi", "--session", "t", "--user", "bob")
    assert [(row[0], row[4]) for row in rows("queue", "list", "--all-users")] == [("ann", "s"), ("bob", "t")]
    assert {item["user_id"] for item in data("queue", "list", "--all-users")} == {"ann", "bob"}
    assert run("queue", "list", "--all-users", "--user", "bob").exit_code == 2


def test_failed_items_are_retried_and_dropped(no_answer: None) -> None:
    for session in "abc":
        good("remember", "hi", "--session", session)
    fail()
    first, *_ = data("queue", "list", "--status", "failed")
    assert data("queue", "retry", str(first["id"])) == {"retried": [first["id"]]}
    assert states() == {"a": "waiting", "b": "failed", "c": "failed"}
    assert "put back 2 items of ann" in good("queue", "retry", "--failed").stderr
    assert states() == dict.fromkeys("abc", "waiting")
    fail()
    assert len(data("queue", "drop", "--failed")["dropped"]) == 3
    assert states() == dict.fromkeys("abc", "dropped")
    assert len(data("documents")) == 3


def test_what_has_failed_of_everybody_is_retried_by_the_operator(no_answer: None) -> None:
    good("remember", "hi", "--session", "a")
    good("remember", "hi", "--session", "b", "--user", "bob")
    fail()
    fail("bob")
    result = run("queue", "status")
    assert result.exit_code == 1
    assert "2 items have failed" in result.stdout
    assert "put back 2 items of 2 users" in good("queue", "retry", "--all-failed").stderr
    assert (states(), states("--user", "bob")) == ({"a": "waiting"}, {"b": "waiting"})
    assert data("queue", "retry", "--all-failed") == {"retried": []}


def test_waiting_items_are_dropped_one_by_one_or_all(no_answer: None) -> None:
    for session in "abc":
        good("remember", "hi", "--session", session)
    first, *_ = data("queue", "list")
    assert "dropped 1 item of ann" in good("queue", "drop", str(first["id"])).stderr
    assert states() == {"a": "dropped", "b": "waiting", "c": "waiting"}
    good("queue", "drop", "--all-waiting")
    assert states() == dict.fromkeys("abc", "dropped")
    assert "put back 1 item" in good("queue", "retry", str(first["id"])).stderr


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["retry"], 2),
        (["retry", "1", "--failed"], 2),
        (["retry", "--failed", "--all-failed"], 2),
        (["retry", "--all-failed", "--user", "bob"], 2),
        (["retry", "12345"], 3),
        (["drop"], 2),
        (["drop", "--failed", "--all-waiting"], 2),
        (["drop", "12345"], 3),
        (["list", "--status", "wat"], 2),
    ],
)
def test_what_cannot_be_done_is_an_error(args: list[str], code: int) -> None:
    result = run("queue", *args)
    assert (result.exit_code, result.stdout) == (code, "")


def test_what_an_endpoint_says_cannot_drive_the_terminal(endpoint: ScriptedEndpoint) -> None:
    endpoint.default = status(401, body={"error": {"message": "\x1b[2J\x9b31m gone"}})
    good("config", "memory_extraction_retry_interval", "60")  # or the time might be up in the middle of a try
    run("remember", "my dog is Rex", "--wait", "2")
    for args in (["queue", "status"], ["queue", "status", "--json"], ["queue", "list"]):
        shown = run(*args).stdout
        assert "gone" in shown
        assert not {"\x1b", "\x9b"} & set(shown)


def test_a_configuration_given_by_option_is_in_the_advice(config_path: object) -> None:
    assert f"--config {config_path} config set" in good("queue", "status").stdout


def test_the_fixed_key_is_used_at_the_next_try(endpoint: ScriptedEndpoint, config_path: object) -> None:
    endpoint.script(status(401))
    run("remember", "my dog is Rex", "--wait", "2", "--session", "s")
    set_value(config_path, "memory_extraction_api_key", "k")  # type: ignore[arg-type]
    use_endpoint(endpoint.url)
    good("remember", "my cat is Tom", "--wait", "20", "--session", "s")
    assert good("queue", "status").stdout.startswith("health\tok")
