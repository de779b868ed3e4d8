"""Where transcripts are looked for, and the key that a file has from there: one, however it is named."""

import os
from pathlib import Path

import pytest

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.cli.transcripts.folders import choose
from shepherd_memory.transcripts.file_keys import file_key_of
from shepherd_memory.transcripts.folders import default_folders, files_under, watched


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of Claude Code in a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "XDG_CONFIG_HOME",
        "PI_CODING_AGENT_DIR",
        "PI_CODING_AGENT_SESSION_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    return made(tmp_path / ".claude" / "projects")


def made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def a_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    return path


def key_of_named(path: Path, watch_path: str = "") -> str:
    (found,) = choose(path, None, None, watch_path).files
    return file_key_of(found.path, found.base)


def test_a_file_that_is_named_has_the_key_that_a_scan_gives_it(projects: Path, tmp_path: Path) -> None:
    usual_one = a_file(projects / "p" / "subagents" / "deep" / "a.jsonl")
    assert key_of_named(usual_one) == "p/subagents/deep/a.jsonl"
    (tmp_path / "link").symlink_to(projects)
    assert key_of_named(tmp_path / "link" / "p" / "subagents" / "deep" / "a.jsonl") == key_of_named(usual_one)
    watched_one = a_file(tmp_path / "logs" / "p" / "deep" / "a.jsonl")
    assert key_of_named(watched_one, str(tmp_path / "logs")) == "p/deep/a.jsonl"
    assert key_of_named(watched_one) == "deep/a.jsonl"


def test_folders_within_others_and_links_to_them_are_watched_once(projects: Path, tmp_path: Path) -> None:
    inner, other = made(projects / "inner"), made(tmp_path / "other")
    (tmp_path / "link").symlink_to(projects)
    given = [inner, projects, tmp_path / "link", other, other]
    assert watched(os.pathsep.join(map(str, given))) == [projects, other]
    assert watched("") == [projects]


def test_a_session_that_codex_archives_keeps_its_key(projects: Path, tmp_path: Path) -> None:
    name = "rollout-2026-02-23T23-59-58-019c8a4d-8f45-7010-8b5d-7fad920aa6f9.jsonl"
    sessions, archive = (
        made(tmp_path / ".codex" / "sessions"),
        made(tmp_path / ".codex" / "archived_sessions"),
    )
    live = a_file(sessions / "2026" / "02" / "23" / name)
    assert [folder.path for folder in default_folders()] == [projects, sessions, archive]
    key = file_key_of(live, sessions)
    archived = live.rename(archive / name)
    assert key_of_named(archived) == file_key_of(archived, archive) == key == f"2026/02/23/{name}"
    assert file_key_of(a_file(archive / "notes.jsonl"), archive) == "notes.jsonl"
    both = archive.parent
    assert file_key_of(archived, both) == file_key_of(live, both) == f"sessions/{key}"
    assert file_key_of(archived, both.parent) == file_key_of(live, both.parent) == f".codex/sessions/{key}"
    assert file_key_of(archive / "notes.jsonl", both) == "archived_sessions/notes.jsonl"
    assert file_key_of(a_file(archive / "old" / name), archive) == f"old/{name}"
    assert file_key_of(a_file(sessions / name), sessions) == name


def test_every_agent_is_looked_for_where_its_variables_say(tmp_path: Path) -> None:
    moved = {
        "CLAUDE_CONFIG_DIR": made(tmp_path / "claude" / "projects").parent,
        "XDG_CONFIG_HOME": made(tmp_path / "config" / "claude" / "projects").parents[1],
        "CODEX_HOME": made(tmp_path / "codex" / "sessions").parent,
        "PI_CODING_AGENT_DIR": made(tmp_path / "pi" / "sessions").parent,
    }
    given = {name: str(path) for name, path in moved.items()}
    folders = [
        (folder.agent, folder.path) for folder in default_folders({"HOME": str(tmp_path / "no"), **given})
    ]
    assert folders == [
        ("claude-code", tmp_path / "claude" / "projects"),
        ("claude-code", tmp_path / "config" / "claude" / "projects"),
        ("codex", tmp_path / "codex" / "sessions"),
        ("pi", tmp_path / "pi" / "sessions"),
    ]


def test_the_sessions_of_pi_alone_may_be_elsewhere(tmp_path: Path) -> None:
    made(tmp_path / ".pi" / "agent" / "sessions")
    elsewhere = made(tmp_path / "talks")
    for value in ("~/talks", str(elsewhere)):
        environ = {"HOME": str(tmp_path), "PI_CODING_AGENT_SESSION_DIR": value}
        assert [folder.path for folder in default_folders(environ)] == [elsewhere]
    assert default_folders({"HOME": str(tmp_path), "PI_CODING_AGENT_SESSION_DIR": "~nobody/talks"}) == []


def test_a_link_that_leads_out_of_the_folder_is_known_by_its_own_name(projects: Path, tmp_path: Path) -> None:
    outside = a_file(tmp_path / "outside" / "a.jsonl")
    (made(projects / "p") / "link.jsonl").symlink_to(outside)
    a_file(projects / "outside" / "a.jsonl")
    keys = [file_key_of(found.path, projects) for found in files_under(projects)]
    assert keys == ["outside/a.jsonl", "p/link.jsonl"]
    with pytest.raises(InvalidInput, match="is not under"):
        file_key_of(outside, projects)
