"""`shepherd hooks install` adds our hooks to an agent's settings, and takes just those out again."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.terminal.shell import good, run

EVENTS = ("SessionStart", "PreCompact", "SessionEnd")
RUN = "hooks run claude-code"
THEIRS = {"matcher": "Bash", "hooks": [{"type": "command", "command": "make lint"}]}


@pytest.fixture
def settings() -> Path:
    """The settings file of Claude Code for this account."""
    path = Path.home() / ".claude" / "settings.json"
    path.parent.mkdir()
    return path


def hooks_in(path: Path) -> Any:
    return json.loads(path.read_bytes())["hooks"]


def commands(path: Path) -> list[str]:
    groups = [group for groups in hooks_in(path).values() for group in groups]
    return [hook["command"] for group in groups for hook in group["hooks"]]


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "model": "opus",\n  "é": "caf\\u00e9",\n  "big": 1.0e5\n}\n',
        json.dumps({"hooks": {"SessionStart": [THEIRS], "Stop": [THEIRS]}, "z": [1]}, indent=4),
        json.dumps({"hooks": {"Stop": [THEIRS]}}, indent="\t"),
        json.dumps({"a": 1, "hooks": {"PreCompact": [THEIRS, THEIRS], "SessionEnd": [THEIRS]}}),
        '{"a":1}',
        '{\r\n  "a": 1\r\n}\r\n',
    ],
)
def test_every_other_byte_stays_and_removing_undoes_it_exactly(settings: Path, text: str) -> None:
    settings.write_bytes(text.encode())
    settings.chmod(0o640)
    before = json.loads(text)
    good("hooks", "install", "claude-code")
    after = json.loads(settings.read_bytes())
    assert all(RUN in after["hooks"][event].pop()["hooks"][0]["command"] for event in EVENTS)
    assert {event: groups for event, groups in after.pop("hooks").items() if groups} == before.pop(
        "hooks", {}
    )
    assert list(after.items()) == list(before.items())
    good("hooks", "install", "claude-code", "--remove")
    assert settings.read_bytes() == text.encode()
    assert settings.stat().st_mode & 0o777 == 0o640


def test_a_hook_has_what_claude_code_needs(settings: Path, config_path: Path) -> None:
    good("hooks", "install", "claude-code", "--user", "ana o'hara", "--group", "work")
    start, compact, end = (hooks_in(settings)[event] for event in EVENTS)
    assert start[0]["matcher"] == "startup|clear|compact"
    assert compact == end
    (hook,) = start[0]["hooks"]
    assert (hook["type"], hook["timeout"]) == ("command", 5)
    program, *words = shlex.split(hook["command"])
    assert os.path.isabs(program)
    named = ["--user", "ana o'hara", "--group", "work"]
    assert words == ["--config", str(config_path), *RUN.split(), *named, "||", "true"]


def test_installing_again_changes_nothing_and_another_command_takes_the_place_of_the_first(
    settings: Path,
) -> None:
    settings.write_text(json.dumps({"hooks": {"SessionStart": [THEIRS]}}))
    good("hooks", "install", "claude-code")
    assert "nothing to change" in good("hooks", "install", "claude-code").stderr
    good("hooks", "install", "claude-code", "--user", "bob")
    ours = [command for command in commands(settings) if RUN in command]
    assert len(ours) == len(EVENTS)
    assert all("--user bob" in command for command in ours)
    assert hooks_in(settings)["SessionStart"][0] == THEIRS


def test_ours_is_taken_out_of_a_group_that_a_person_has_put_it_into(settings: Path) -> None:
    theirs = {"type": "command", "command": "echo 'shepherd hooks run claude-codes"}
    older = [
        {"type": "command", "command": "/old/shepherd --config /c hooks run claude-code --user x"},
        {"type": "command", "command": "/usr/bin/python3 -m shepherd_memory hooks run claude-code || true"},
    ]
    settings.write_text(
        json.dumps({"hooks": {"Stop": [{"matcher": "", "hooks": [older[0], theirs, older[1]]}]}})
    )
    good("hooks", "install", "claude-code", "--remove")
    assert hooks_in(settings) == {"Stop": [{"matcher": "", "hooks": [theirs]}]}
    assert "nothing to change" in good("hooks", "install", "claude-code", "--remove").stderr


def test_a_new_file_is_private_and_goes_with_our_hooks(settings: Path) -> None:
    settings.parent.rmdir()
    good("hooks", "install", "claude-code")
    assert settings.stat().st_mode & 0o777 == 0o600
    assert hooks_in(settings).keys() == set(EVENTS)
    good("hooks", "install", "claude-code", "--remove")
    assert not settings.exists()


def test_the_settings_of_a_project_are_in_its_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, below = tmp_path / "project", tmp_path / "project" / "src"
    below.mkdir(parents=True)
    (root / ".git").mkdir()
    monkeypatch.chdir(below)
    good("hooks", "install", "claude-code", "--project")
    assert len(commands(root / ".claude" / "settings.json")) == len(EVENTS)
    assert not (Path.home() / ".claude").exists()


def test_a_folder_below_the_home_is_a_project_of_its_own(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.write_text("{}")
    folder = Path.home() / "notes"
    folder.mkdir()
    monkeypatch.chdir(folder)
    good("hooks", "install", "claude-code", "--project")
    assert (folder / ".claude" / "settings.json").exists()
    assert settings.read_text() == "{}"


def test_the_folder_that_claude_code_is_told_to_use_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    good("hooks", "install", "claude-code")
    assert commands(tmp_path / "claude" / "settings.json")


@pytest.mark.parametrize("option", [(), ("--remove",)])
def test_a_dry_run_shows_and_changes_nothing(settings: Path, option: tuple[str, ...]) -> None:
    if option:
        good("hooks", "install", "claude-code")
    before = settings.read_bytes() if option else None
    shown = good("hooks", "install", "claude-code", "--dry-run", *option)
    assert shown.stdout.count("/shepherd --config ") == len(EVENTS)
    assert "nothing was changed" in shown.stderr
    assert (settings.read_bytes() if settings.exists() else None) == before


@pytest.mark.parametrize(
    "text", ["{broken", "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', "{} {}", "// mine\n{}", "\ufeff{}"]
)
def test_settings_that_are_not_understood_are_left_alone(settings: Path, text: str) -> None:
    settings.write_text(text)
    for option in ((), ("--remove",)):
        done = run("hooks", "install", "claude-code", *option)
        assert done.exit_code == 2
        assert "nothing was changed" in done.stderr
        assert settings.read_text() == text


def test_an_agent_that_is_not_known_and_a_group_that_cannot_be_are_refused(settings: Path) -> None:
    assert "claude-code" in run("hooks", "install", "emacs").stderr
    assert run("hooks", "install", "claude-code", "--group", "a/b").exit_code == 2
    assert not settings.exists()
