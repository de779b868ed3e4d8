import json

import pytest

from tests.endpoint import ScriptedEndpoint, status
from tests.terminal.shell import data, good, process, rows, run


def texts() -> list[str]:
    return [row[3] for row in rows("documents")]


def test_one_message_is_stored_and_said_to_be() -> None:
    said = good("remember", "I moved to Lisbon", "--session", "s")
    assert (said.stdout, "stored 1 message of ann in session s" in said.stderr) == ("", True)
    assert texts() == ["I moved to Lisbon"]


def test_without_an_endpoint_it_says_how_to_have_one() -> None:
    said = good("remember", "hello").stderr
    assert "extraction is off" in said
    assert "config set memory_extraction_model NAME" in said


def test_the_reply_is_stored_with_it() -> None:
    good("remember", "hi", "--assistant", "hello ann")
    assert [row[2:] for row in rows("documents")] == [["ann", "hi"], ["assistant", "hello ann"]]


LIST = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]


@pytest.mark.parametrize("dash", [[], ["-"]])
@pytest.mark.parametrize(
    "given",
    [
        json.dumps(LIST),
        json.dumps({"messages": LIST, "session_id": "s", "model": "m"}),
        "\n".join(map(json.dumps, LIST)) + "\n\n",
        "\ufeff" + json.dumps(LIST, indent=1),
    ],
)
def test_messages_come_on_stdin_in_three_shapes(given: str, dash: list[str]) -> None:
    result = data("remember", *dash, stdin=given)
    assert result["stored"] == 2
    assert (result["session_id"] == "s") == ("session_id" in given)
    assert texts() == ["one", "two"]


def test_one_message_alone_is_a_line() -> None:
    assert data("remember", stdin=json.dumps(LIST[0]))["stored"] == 1


def test_the_option_wins_over_the_session_on_stdin() -> None:
    given = json.dumps({"messages": LIST, "session_id": "s"})
    assert data("remember", "--session", "t", stdin=given)["session_id"] == "t"


def test_what_is_skipped_is_said_with_its_reason() -> None:
    given = json.dumps([*LIST, {"role": "wizard", "content": "x"}, {"role": "user", "content": ""}, 3])
    said = good("remember", stdin=given).stderr
    assert "stored 2 messages" in said
    assert "skipped message 3: unknown role" in said
    assert "skipped message 4: empty" in said
    assert "skipped message 5: not a message" in said


def test_the_same_again_is_known_already() -> None:
    good("remember", "hi", "--session", "s")
    said = good("remember", "hi", "--session", "s").stderr
    assert "stored 0 messages" in said
    assert "1 message known already" in said
    assert texts() == ["hi"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "nothing to remember"),
        ("  \n", "nothing to remember"),
        ("[{]", "stdin is not valid JSON"),
        ("hello", "stdin, line 1: not JSON"),
        ('{"role": "user", "content": "x"}\n{"role"', "stdin, line 2: not JSON"),
        ('{"messages": 3}', "messages takes a list"),
        ('{"messages": [], "session_id": 3}', "session_id a text"),
        ("[]", "nothing was stored"),
        ('[{"role": "wizard"}]', "nothing was stored"),
        ("[" * 100_000, "stdin is not valid JSON"),
        (b"\xff\xfe", "stdin is not UTF-8 text: byte 0"),
    ],
)
def test_what_cannot_be_remembered_is_one_clear_line(given: str | bytes, says: str) -> None:
    result = run("remember", stdin=given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr
    assert "Traceback" not in result.output


def test_a_reply_without_its_message_is_refused() -> None:
    assert run("remember", "--assistant", "x", stdin="[]").exit_code == 2


@pytest.mark.parametrize("user", ["unknown", "", " "])
def test_an_unknown_user_is_an_error_with_the_reason(user: str) -> None:
    result = run("remember", "hi", "--user", user)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the user is unknown: nothing is stored" in result.stderr


def test_extraction_is_waited_for_in_this_process(endpoint: ScriptedEndpoint) -> None:
    said = good("remember", "my dog is Rex", "--wait", "20").stderr
    assert "queued for extraction" in said
    assert "extracted: 2 stored" in said
    assert rows("facts")[0][:2] == ["dog", "Rex"]


def test_waiting_gives_the_outcome_as_json(endpoint: ScriptedEndpoint) -> None:
    result = data("remember", "my dog is Rex", "--wait", "20")
    assert (result["queued"], result["item"]["status"], result["item"]["outcome"]) == (
        True,
        "done",
        "2 stored",
    )


def test_no_extract_stores_only(endpoint: ScriptedEndpoint) -> None:
    result = data("remember", "my dog is Rex", "--no-extract", "--wait", "5")
    assert (result["stored"], result["queued"], result["item"]) == (1, False, None)
    assert endpoint.requests == []


def test_not_waited_long_enough_is_an_error_of_the_endpoint(no_answer: None) -> None:
    good("config", "memory_extraction_retry_interval", "60")  # or the time might be up in the middle of a try
    result = run("remember", "my dog is Rex", "--wait", "3", "--json")
    assert result.exit_code == 5
    assert json.loads(result.stdout)["item"]["status"] == "waiting"
    assert "not extracted after 3 s: 127.0.0.1:1: Connection refused" in result.stderr


def test_an_item_that_fails_is_an_error_of_the_endpoint(endpoint: ScriptedEndpoint) -> None:
    endpoint.default = status(400)
    result = run("remember", "my dog is Rex", "--wait", "20")
    assert result.exit_code == 5
    assert "extraction failed" in result.stderr


def test_waiting_with_extraction_off_ends_at_once() -> None:
    assert "extraction is off" in good("remember", "hi", "--wait", "60").stderr


def test_a_real_pipe_is_read() -> None:
    piped = process("remember", "--session", "s", input=json.dumps(LIST))
    assert (piped.returncode, piped.stdout) == (0, "")
    assert piped.stderr.startswith("stored 2 messages of ann in session s")
    assert texts() == ["one", "two"]


def test_hostile_text_is_stored_and_does_no_harm() -> None:
    given = json.dumps([{"role": "user", "content": "a\ud800b\0c\x1b[2J"}])
    assert data("remember", stdin=given)["stored"] == 1
    assert texts() == ["a\ufffdb\ufffdc\\x1b[2J"]
