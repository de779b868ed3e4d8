"""Where transcripts are looked for, and the key that a file has from there: one, however it is named."""

import os
from pathlib import Path

import pytest

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.cli.transcript_choice import choose
from shepherd_memory.transcripts.folders import files_under, usual, watched
from shepherd_memory.transcripts.ingestion import file_key_of


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of Claude Code in a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "PI_CODING_AGENT_DIR"):
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


def test_sessions_that_codex_has_archived_are_not_looked_for_again(projects: Path, tmp_path: Path) -> None:
    sessions = made(tmp_path / ".codex" / "sessions")
    made(tmp_path / ".codex" / "archived_sessions")
    assert [folder.path for folder in usual()] == [projects, sessions]


def test_a_link_that_leads_out_of_the_folder_is_known_by_its_own_name(projects: Path, tmp_path: Path) -> None:
    outside = a_file(tmp_path / "outside" / "a.jsonl")
    (made(projects / "p") / "link.jsonl").symlink_to(outside)
    a_file(projects / "outside" / "a.jsonl")
    keys = [file_key_of(found.path, projects) for found in files_under(projects)]
    assert keys == ["outside/a.jsonl", "p/link.jsonl"]
    with pytest.raises(InvalidInput, match="is not under"):
        file_key_of(outside, projects)
