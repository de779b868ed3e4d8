"""Slash commands: what the command line does, in a chat and for its user."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shepherd_memory.config import load_config
from shepherd_memory.frontends import cli
from shepherd_memory.frontends.terminal import slash_commands
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.frontends.terminal.shared_commands import SHARED
from shepherd_memory.service import Service, open_service
from tests.terminal.shell import good


@pytest.fixture
def service(config_path: Path) -> Iterator[Service]:
    with open_service(load_config(config_path), config_path=config_path, worker=False) as opened:
        yield opened


@pytest.fixture
def invocation(service: Service, config_path: Path) -> Invocation:
    return Invocation(config_path, service=service, user_id="eve", commands=cli.cli)


def test_every_shared_command_is_one_of_the_command_line_and_in_the_help() -> None:
    assert set(SHARED) <= set(cli.COMMANDS)
    assert [name for name, _ in slash_commands.help_lines()] == [
        f"/{name}" for name in (*SHARED, *slash_commands.OWN)
    ]


WITH_NOTHING = {
    "/provider": "no provider is in use",
    "/model": "no provider is in use",
    "/config": "user_id",
    "/facts": "",
    "/context": "",
    "/documents": "",
    "/recall anything": "nothing recalled",
    "/sessions": "no sessions of eve",
    "/forget pet": "there is no fact 'pet' of 'eve'",
    "/queue": "",
    "/whoami": "ann",
}


@pytest.mark.parametrize(("line", "expected"), WITH_NOTHING.items(), ids=list(WITH_NOTHING))
def test_each_shared_command_runs(invocation: Invocation, line: str, expected: str) -> None:
    assert expected in slash_commands.run_captured(invocation, line)


def test_a_trial_has_every_shared_command() -> None:
    assert {line.split()[0].removeprefix("/") for line in WITH_NOTHING} == set(SHARED)


def test_commands_are_for_the_user_of_the_chat(invocation: Invocation, service: Service) -> None:
    service.set_fact("ann", "pet", "AnnsCat")
    assert "pet = " in slash_commands.run_captured(invocation, "/facts set pet Rex")
    assert [(fact.key, fact.value) for fact in service.facts("eve")] == [("pet", "Rex")]
    assert [fact.value for fact in service.facts("ann")] == ["AnnsCat"]
    assert "Rex" in slash_commands.run_captured(invocation, "/facts")
    assert "AnnsCat" not in slash_commands.run_captured(invocation, "/facts")


def test_another_user_can_be_named_as_on_the_command_line(invocation: Invocation, service: Service) -> None:
    service.set_fact("ann", "pet", "AnnsCat")
    assert "AnnsCat" in slash_commands.run_captured(invocation, "/facts --user ann")


def test_quotes_make_one_argument(invocation: Invocation, service: Service) -> None:
    slash_commands.run_captured(invocation, '/facts set home_city "São Paulo, Brazil"')
    slash_commands.run_captured(invocation, "/context add 'Where is it?' \"on the index\"")
    assert [fact.value for fact in service.facts("eve")] == ["São Paulo, Brazil"]
    assert [(pair.question, pair.answer) for pair in service.context("eve")] == [
        ("Where is it?", "on the index")
    ]


@pytest.mark.parametrize(
    "line",
    ["/recall home city", '/recall "home city"', "/recall 'home city' --limit 1", "/RECALL  home city "],
)
def test_recall_takes_its_words_with_quotes_or_without(
    invocation: Invocation, service: Service, line: str
) -> None:
    service.set_fact("eve", "home_city", "Lisbon")
    assert "Lisbon" in slash_commands.run_captured(invocation, line)


def test_recall_takes_an_apostrophe_as_it_is(invocation: Invocation, service: Service) -> None:
    service.set_fact("eve", "dog_name", "Rex")
    assert "Rex" in slash_commands.run_captured(invocation, "/recall what's the dog's name")


WRONG = {
    "/facts set pet": "Missing argument 'VALUE'",
    "/facts set pet 'Rex": "a quote is not closed",
    "/facts --nonsense": "No such option",
    "/recall": "Missing argument 'QUERY'",
    "/forget": "say what to forget",
    "/forget pet --document 1": "say what to forget",
    "/forget --document x": "Invalid value",
    "/model tiny": "no provider is in use",
    "/config nonsense": "nonsense",
    "/provider lab use": "lab",
    "/fact": "there is no /fact; did you mean",
    "/xyzzy": "there is no /xyzzy",
}


@pytest.mark.parametrize(("line", "problem"), WRONG.items(), ids=list(WRONG))
def test_what_is_wrong_is_said_and_the_chat_goes_on(invocation: Invocation, line: str, problem: str) -> None:
    said = slash_commands.run_captured(invocation, line)
    assert problem in said
    assert "Traceback" not in said


def test_help_of_one_command_is_shown(invocation: Invocation) -> None:
    shown = slash_commands.run_captured(invocation, "/facts --help")
    assert "Usage: /facts" in shown


def test_a_change_of_the_configuration_is_in_force_at_once(invocation: Invocation, service: Service) -> None:
    added = slash_commands.run_captured(
        invocation, "/provider add lab --base-url http://127.0.0.1:1 --memory"
    )
    assert "added lab" in added
    assert "lab" in slash_commands.run_captured(invocation, "/provider lab use --no-check")
    slash_commands.run_captured(invocation, "/model tiny")
    assert slash_commands.run_captured(invocation, "/model") == "tiny"
    assert (service.config.provider, service.config.providers["lab"].model) == ("lab", "tiny")


def test_an_editor_is_not_opened_under_somebody_elses_screen(
    invocation: Invocation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EDITOR", f"touch {tmp_path}/edited #")
    good("provider", "add", "lab")
    said = slash_commands.run_captured(invocation, "/provider lab edit")
    assert "`shepherd provider lab edit`" in said
    assert not (tmp_path / "edited").exists()


def test_a_command_that_would_not_end_is_not_begun(invocation: Invocation) -> None:
    assert "terminal of its own" in slash_commands.run_captured(invocation, "/queue status --watch")


def test_what_a_memory_says_cannot_drive_the_screen(invocation: Invocation, service: Service) -> None:
    service.set_fact("eve", "pet", "Rex\x1b]0;owned\x07\x1b[2J")
    for line in ("/facts", "/facts get pet", "/recall pet", "/forget pet --json"):
        shown = slash_commands.run_captured(invocation, line)
        assert "\x1b]" not in shown
        assert "\x1b[2J" not in shown


COMMANDS = ["/help", "/facts", "/facts set a b", "/x", "/FACTS", "  /facts"]
SAYINGS = [
    "",
    "   ",
    "hello /facts",
    "/home/x is full",
    "//",
    "//facts",
    "/",
    "/ facts",
    "/etc/passwd",
    "1/2",
]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_line_that_begins_with_a_slash_and_a_word_is_a_command(line: str) -> None:
    assert slash_commands.is_command(line)


@pytest.mark.parametrize("line", SAYINGS)
def test_a_path_and_a_doubled_slash_are_none(line: str) -> None:
    assert not slash_commands.is_command(line)


OWN = {
    "exit": "exit",
    " Exit ": "exit",
    "quit": "exit",
    "/exit": "exit",
    "/quit": "exit",
    "/clear": "clear",
    "/help": "help",
    "/HELP": "help",
    "/facts": "",
    "exit now": "",
    "": "",
}


@pytest.mark.parametrize(("line", "name"), OWN.items(), ids=list(OWN))
def test_what_only_a_chat_does_is_told_apart(line: str, name: str) -> None:
    assert slash_commands.own_command(line) == name


@pytest.mark.parametrize("line", ["help", "clear", "help me with this", "clear the table"])
def test_a_word_without_a_slash_is_something_to_say(line: str) -> None:
    assert not slash_commands.is_command(line)
    assert slash_commands.own_command(line) == ""


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("/provider lab set api_key 4f7c1d0b", "/provider lab set api_key [redacted]"),
        ("/config memory_extraction_api_key abc", "/config memory_extraction_api_key [redacted]"),
        ("/facts set city Lisbon", "/facts set city Lisbon"),
        ("my api_key is in the drawer", "my api_key is in the drawer"),
    ],
)
def test_a_secret_in_a_command_is_not_kept_to_be_typed_again(typed: str, kept: str) -> None:
    assert slash_commands.without_secrets(typed) == kept
