"""`shepherd mcp install` changes an agent's configuration by one entry, and takes it out again."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.terminal.shell import good, process, run

ENTRY = "shepherd"


@pytest.fixture
def settings() -> Path:
    """The configuration file of Claude Code for this account."""
    return Path.home() / ".claude.json"


def entry(path: Path) -> Any:
    return json.loads(path.read_bytes())["mcpServers"][ENTRY]


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "numStartups": 3,\n  "é": "caf\\u00e9",\n  "big": 1.0e5\n}\n',
        '{\n\t"projects": {"/a": {"mcpServers": {}}},\n\t"mcpServers": {\n\t\t"b": {"command": "x"}\n\t}\n}',
        '{\n    "mcpServers": {\n        "a": {},\n        "b": {}\n    },\n    "z": [1,  2]\n}\n',
        '{"a": 1, "mcpServers": {"b": {"command": "c"}}}',
        '{"a":1}',
        '{\r\n  "a": 1\r\n}\r\n',
    ],
)
def test_every_other_byte_stays_and_uninstall_undoes_it_exactly(settings: Path, text: str) -> None:
    settings.write_bytes(text.encode())
    settings.chmod(0o640)
    before = json.loads(text)
    good("mcp", "install", "claude-code", "--yes")
    after = json.loads(settings.read_bytes())
    assert after["mcpServers"].pop(ENTRY)["args"][-1] == "mcp"
    assert {key: value for key, value in after.items() if value} == before
    assert list(after)[: len(before)] == list(before)
    good("mcp", "uninstall", "claude-code", "--yes")
    assert settings.read_bytes() == text.encode()
    assert settings.stat().st_mode & 0o777 == 0o640


def test_installing_again_changes_the_entry_and_nothing_else(settings: Path) -> None:
    settings.write_text('{\n  "mcpServers": {"shepherd": {"command": "old"}, "b": {}}\n}\n')
    good("mcp", "install", "claude-code", "--yes", "--user", "bob")
    assert entry(settings)["args"][-2:] == ["--user", "bob"]
    assert json.loads(settings.read_bytes())["mcpServers"]["b"] == {}
    assert "nothing to change" in good("mcp", "install", "claude-code", "--yes", "--user", "bob").stderr


def test_the_command_can_be_started_from_anywhere(settings: Path, config_path: Path, tmp_path: Path) -> None:
    good("mcp", "install", "claude-code", "--yes")
    written = entry(settings)
    assert written["type"] == "stdio"
    assert os.path.isabs(written["command"])
    assert shutil.which(written["command"])
    assert written["args"][-3:] == ["--config", str(config_path), "mcp"]
    assert os.environ["SHEPHERD_CONFIG"] == str(config_path)


def test_the_shepherd_that_was_called_is_the_one_that_is_written(settings: Path) -> None:
    shepherd = Path(sys.executable).with_name("shepherd")
    done = process("mcp", "install", "claude-code", "--yes")
    assert done.returncode == 0, done.stderr
    assert entry(settings)["command"] == str(shepherd)


def test_a_new_file_of_the_account_is_private_and_goes_with_its_only_entry(settings: Path) -> None:
    good("mcp", "install", "claude-code", "--yes")
    assert settings.stat().st_mode & 0o777 == 0o600
    good("mcp", "uninstall", "claude-code", "--yes")
    assert not settings.exists()


def test_the_file_of_a_project_is_in_its_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, below = tmp_path / "project", tmp_path / "project" / "src"
    below.mkdir(parents=True)
    (root / ".git").mkdir()
    monkeypatch.chdir(below)
    good("mcp", "install", "claude-code", "--scope", "project", "--yes")
    assert entry(root / ".mcp.json")
    assert not (Path.home() / ".claude.json").exists()
    good("mcp", "uninstall", "claude-code", "--scope", "project", "--yes")
    assert not (root / ".mcp.json").exists()


def test_claude_codes_own_folder_is_respected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    good("mcp", "install", "claude-code", "--yes")
    assert entry(tmp_path / "claude" / ".claude.json")


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_dry_run_shows_and_changes_nothing(settings: Path, command: str) -> None:
    settings.write_text('{"a": 1, "mcpServers": {"shepherd": {}}}')
    before = settings.read_bytes()
    shown = good("mcp", command, "claude-code", "--dry-run")
    assert f"--- {settings}" in shown.stdout
    assert "nothing was changed" in shown.stderr
    assert settings.read_bytes() == before
    assert list(settings.parent.glob(".claude.json*")) == [settings]


@pytest.mark.parametrize(("answer", "installed"), [("y\n", True), ("n\n", False), ("", False)])
def test_it_asks_first(settings: Path, answer: str, installed: bool) -> None:
    settings.write_text("{}")
    done = run("mcp", "install", "claude-code", stdin=answer)
    assert (done.exit_code == 0) == installed
    assert ("shepherd" in settings.read_text()) == installed
    assert f"change {settings}?" in done.stderr


@pytest.mark.parametrize("text", ["{broken", "[]", '{"mcpServers": []}', "{} {}", "\ufeff{}"])
def test_a_file_that_is_not_understood_is_left_alone(settings: Path, text: str) -> None:
    settings.write_text(text)
    for command in ("install", "uninstall"):
        done = run("mcp", command, "claude-code", "--yes")
        assert done.exit_code == 2
        assert "nothing was changed" in done.stderr
        assert settings.read_text() == text


def test_without_an_input_nobody_can_agree(settings: Path) -> None:
    done = process("mcp", "install", "claude-code", preexec_fn=lambda: os.close(0))
    assert done.returncode == 2
    assert "nobody answered" in done.stderr
    assert not settings.exists()


def test_a_symbolic_link_stays_one(settings: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.json"
    target.write_text("{}")
    settings.symlink_to(target)
    good("mcp", "install", "claude-code", "--yes")
    assert settings.is_symlink()
    assert entry(target)


def test_an_empty_file_is_as_good_as_none(settings: Path) -> None:
    settings.write_text("")
    good("mcp", "install", "claude-code", "--yes")
    assert entry(settings)


def test_there_is_nothing_to_uninstall_where_nothing_was_installed(settings: Path) -> None:
    assert "nothing to change" in good("mcp", "uninstall", "claude-code").stderr
    assert not settings.exists()


def test_what_a_file_says_cannot_drive_the_terminal(settings: Path) -> None:
    settings.write_text('{\n  "mcpServers": {\n    "\x9b31m": {}\n  }\n}')
    assert "\x9b" not in good("mcp", "install", "claude-code", "--dry-run").stdout


def test_an_unknown_client_is_refused_with_those_that_are_known() -> None:
    refused = run("mcp", "install", "emacs")
    assert refused.exit_code == 2
    assert "claude-code" in refused.stderr


def test_whoever_has_claude_is_told_its_own_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claude = tmp_path / "claude"
    claude.write_text("#!/bin/sh\n")
    claude.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    said = good("mcp", "install", "claude-code", "--dry-run").stderr
    assert "claude mcp add --scope user shepherd -- /" in said
