import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from shepherd_memory.config import SETTINGS
from shepherd_memory.errors import (
    ConfigError,
    DatabaseUnavailable,
    EndpointMisconfigured,
    InvalidInput,
    NotFound,
    ShepherdError,
)
from shepherd_memory.frontends.cli import COMMANDS, cli
from shepherd_memory.frontends.terminal.output import exit_code

BROKEN_COMMAND = """
import sys
from shepherd_memory.frontends import cli
cli.COMMANDS["broken"] = ("math:no_such_name", "")
cli.main()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


@pytest.fixture(autouse=True)
def _config_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHEPHERD_CONFIG", str(path))


def run(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, args, input=stdin)


def good(*args: str, stdin: str | None = None) -> Result:
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result


def data(*args: str) -> Any:
    return json.loads(good(*args).stdout)


def table(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def process(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shepherd_memory", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def test_a_setting_is_set_got_and_unset(path: Path) -> None:
    said = good("config", "set", "user_id", "steve")
    assert (said.stdout, "user_id = steve" in said.stderr) == ("", True)
    assert good("config", "get", "user_id").stdout == "steve\n"
    assert good("config", "unset", "user_id").stdout == ""
    assert table(path) == {}


def test_the_short_forms_do_the_same(path: Path) -> None:
    good("config", "rag_max_results", "5")
    assert table(path) == {"rag_max_results": 5}
    assert good("config", "rag_max_results").stdout == "5\n"
    assert data("config", "rag_max_results", "--json") == {
        "key": "rag_max_results",
        "value": 5,
        "source": "file",
    }
    assert good("config").stdout == good("config", "show").stdout


def test_show_lists_every_key_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    good("config", "rag_max_results", "5")
    monkeypatch.setenv("SHEPHERD_USER_ID", "env")
    shown = data("config", "show", "--json")
    assert set(shown) == set(SETTINGS)
    assert shown["user_id"] == {"value": "env", "source": "environment"}
    assert shown["rag_max_results"] == {"value": 5, "source": "file"}
    assert shown["rag_max_tokens"] == {"value": 600, "source": "default"}
    lines = {line.split()[0]: line.split()[1:] for line in good("config").stdout.splitlines()}
    assert lines["user_id"] == ["env", "environment"]
    assert lines["memory_database"] == ['""', "default"]


def test_a_secret_is_read_from_stdin_and_never_shown(path: Path) -> None:
    key = "memory_extraction_api_key"
    said = good("config", "set", key, "-", stdin="sk-secret\n")
    assert table(path) == {key: "sk-secret"}
    shown = [said, good("config", key), good("config"), good("config", "show", "--json")]
    assert all("sk-secret" not in result.output and "(set)" in result.output for result in shown)


def test_path_says_which_file(path: Path) -> None:
    assert good("config", "path").stdout == f"{path}\n"
    assert data("config", "path", "--json") == {"path": str(path), "exists": False}


def test_the_config_option_wins_over_the_variable(tmp_path: Path, path: Path) -> None:
    other = tmp_path / "other.toml"
    good("--config", str(other), "config", "user_id", "steve")
    assert (other.exists(), path.exists()) == (True, False)


def test_a_value_that_the_environment_overrides_is_written_with_a_note(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHEPHERD_USER_ID", "env")
    assert "SHEPHERD_USER_ID is set in the environment and wins" in good("config", "user_id", "file").stderr
    assert table(path) == {"user_id": "file"}


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (
            ["config", "set", "rag_max_results", "x"],
            2,
            "rag_max_results takes a whole number, 0 or more; got 'x'",
        ),
        (["config", "rag_max_resulst", "5"], 2, "did you mean rag_max_results"),
        (["config", "get", "zzz"], 2, "unknown key 'zzz'"),
        (["config", "unset", "user_id"], 3, "user_id is not set in"),
        (["config", "set", "user_id"], 2, "Missing argument"),
        (["config", "user_id", "a", "b"], 2, "unexpected extra argument"),
        (["config", "--json", "user_id"], 2, "--json goes after"),
        (["config", "set", "user_id", "a\udcffb"], 2, "user_id takes"),
        (["whomai"], 2, "no such command: 'whomai'; did you mean whoami?"),
        (["provider", "x", "show"], 3, "no provider 'x'"),
        (["provider", "use", "x"], 2, "the name comes first"),
        (["provider", "add", "list"], 2, "give the provider another name"),
        (["provider", "add", "a", "--type", "gemini"], 2, "'gemini' is not one of"),
        (["provider", "next"], 3, "there is no other provider"),
    ],
)
def test_bad_input_is_one_clear_line_and_an_exit_code(args: list[str], code: int, says: str) -> None:
    result = run(*args)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_whoami_says_who_and_why(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ann")
    machine = data("whoami", "--json")
    assert (machine["user_id"].endswith(":ann"), machine["source"], machine["known"]) == (
        True,
        "machine",
        True,
    )
    good("config", "user_id", "steve")
    assert good("whoami").stdout == f"steve  (user_id in {path})\n"
    monkeypatch.setenv("SHEPHERD_USER_ID", "unknown")
    assert data("whoami", "--json") == {"user_id": "unknown", "source": "environment", "known": False}
    assert "nothing is remembered" in good("whoami").stdout


def test_a_provider_lives_from_add_to_remove(path: Path) -> None:
    added = good("provider", "add", "local", "--base-url", "http://h", "--api-key", "-", stdin="sk-1\n")
    assert "true is advised" in added.stderr
    assert "it is in use now" in added.stderr
    good("provider", "local", "set", "memory", "true")
    assert table(path)["providers"]["local"]["memory"] is True
    assert data("provider", "--json") == data("provider", "local", "show", "--json")
    assert data("provider", "list", "--json")[0]["current"] is True
    assert good("provider", "list").stdout.startswith("*  local")
    for args in (["provider"], ["provider", "local"], ["provider", "list", "--json"]):
        assert "sk-1" not in good(*args).output
    good("provider", "local", "remove")
    assert table(path) == {"providers": {}}


def test_a_second_provider_changes_nothing_and_without_the_one_in_use_there_is_none(path: Path) -> None:
    assert data("provider", "add", "a", "--json")["current"] is True
    assert data("provider", "add", "b", "--json")["current"] is False
    assert "`shepherd provider c use` switches to it" in good("provider", "add", "c").stderr
    assert "it was in use, and none is now" in good("provider", "a", "remove").stderr
    assert "provider" not in table(path)


def test_the_memory_of_a_provider_is_set_unset_and_shown(path: Path) -> None:
    added = good("provider", "add", "a", "--base-url", "http://h")
    assert "(it is unset now)" in added.stderr
    assert "memory" not in table(path)["providers"]["a"]
    assert "unset (without memory)" in good("provider", "a").stdout
    good("config", "set", "memory_extraction", "true")
    shown = data("provider", "a", "show", "--json")
    assert (shown["memory"], shown["remembers"], shown["injects"]) == (None, True, False)
    good("provider", "a", "set", "memory", "false")
    assert data("provider", "a", "show", "--json")["remembers"] is False
    assert "a: memory = unset" in good("provider", "a", "unset", "memory").stderr
    assert data("provider", "list", "--json")[0]["memory"] is None
    assert run("provider", "a", "unset", "memory").exit_code == 3
    assert data("provider", "add", "b", "--no-memory", "--json")["memory"] is False


def test_no_provider_in_use_is_said_and_is_null_in_json() -> None:
    assert "no provider is in use" in good("provider").stderr
    assert data("provider", "--json") is None
    assert data("provider", "list", "--json") == []


def test_use_keeps_the_old_provider_when_the_new_one_does_not_answer(path: Path) -> None:
    good("provider", "add", "old")
    good("provider", "add", "new", "--base-url", "http://127.0.0.1:1")
    refused = run("provider", "new", "use")
    assert refused.exit_code == 5
    assert "cannot reach http://127.0.0.1:1/v1/models" in refused.stderr
    assert table(path)["provider"] == "old"
    skipped = run("provider", "next")
    assert (skipped.exit_code, "skipped new" in skipped.stderr) == (5, True)
    good("provider", "next", "--no-check")
    assert table(path)["provider"] == "new"


def test_edit_saves_a_good_edit_and_refuses_a_bad_one(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    monkeypatch.setenv("VISUAL", f"sh {editor}")
    good("provider", "add", "a", "--api-key", "sk-1")
    editor.write_text('echo \'model = "m"\napi_key = "(set)"\' > "$1"')
    good("provider", "a", "edit")
    assert table(path)["providers"]["a"] == {"type": "openai", "api_key": "sk-1", "model": "m"}
    editor.write_text('echo "type = 3" > "$1"')
    refused = run("provider", "a", "edit")
    assert (refused.exit_code, refused.stderr.count("type takes")) == (2, 1)
    editor.write_text("true")
    assert "nothing changed" in good("provider", "a", "edit").stderr


@pytest.mark.parametrize("args", [["provider", "help"], ["provider", "--help"]])
def test_provider_help_shows_both_shapes(args: list[str]) -> None:
    shown = good(*args).stdout
    assert "shepherd provider NAME set FIELD VALUE" in shown.replace("cli", "shepherd")
    assert "next" in shown


def test_every_command_in_the_table_exists_and_is_in_the_help() -> None:
    context = click.Context(cli)
    shown = good("--help").stdout
    for name, (_, short_help) in COMMANDS.items():
        assert isinstance(cli.get_command(context, name), click.Command)
        assert name in shown
        assert short_help.endswith(".")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ShepherdError("x"), 1),
        (ConfigError("x"), 2),
        (InvalidInput("x"), 2),
        (NotFound("x"), 3),
        (DatabaseUnavailable("x"), 4),
        (EndpointMisconfigured("x"), 5),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: ShepherdError, code: int) -> None:
    assert exit_code(error) == code


def test_the_program_runs_as_a_module_and_as_a_script(path: Path) -> None:
    assert process("config", "user_id", "steve").returncode == 0
    script = Path(sys.executable).with_name("shepherd")
    shown = subprocess.run([script, "config", "user_id"], capture_output=True, text=True, check=True)
    assert shown.stdout == "steve\n"
    assert process("--version").stdout.startswith("shepherd, version ")


def test_a_broken_file_is_one_line_and_a_traceback_only_with_debug(path: Path) -> None:
    path.write_text("user_id = ")
    plain, debug = process("whoami"), process("--debug", "whoami")
    assert (plain.returncode, plain.stderr.count("\n")) == (2, 1)
    assert plain.stderr.startswith(f"shepherd: {path} is not valid TOML")
    assert "Traceback" in debug.stderr


@pytest.mark.parametrize(("options", "traceback"), [([], False), (["--debug"], True)])
def test_what_nobody_expected_is_one_line_unless_debugging(options: list[str], traceback: bool) -> None:
    command = [sys.executable, "-c", BROKEN_COMMAND, *options, "broken"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert ("Traceback" in result.stderr) is traceback
    assert ("shepherd --debug" in result.stderr) is not traceback


def test_a_reader_that_goes_away_is_no_reason_for_noise() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "shepherd_memory", "config"]
    with os.fdopen(writing, "wb") as stdout:
        result = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True)
    assert result.stderr == ""
