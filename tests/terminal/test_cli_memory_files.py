"""Memory files on the command line: read, searched, edited, taken away, and their history."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.consolidation_endpoint import ToolCall, agent, section
from tests.endpoint import Body, ScriptedEndpoint, status
from tests.terminal.conftest import use_endpoint
from tests.terminal.shell import data, good, on_terminal, rows, run
from tests.terminal.transcript_files import session_file

SAID = ("my dog is Rex", "Noted.", "my city is Porto", "Noted.", "my boat is Minka", "Noted.")
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
MEMORY = "# Memory\n\n## Tea\n\nAnn drinks green tea.\n\n## The boat\n\nTheir boat is called Minka.\n"


def script(body: Body) -> list[ToolCall]:
    return [
        section(body, "Ann drinks green tea."),
        section(body, "Their boat is called Minka.", "The boat"),
        section(body, "Ann, who drinks tea and sails.", "Who", "memory_summary.md"),
        ("finish", {"note": "tea and the boat"}),
    ]


@pytest.fixture
def noted(endpoint: ScriptedEndpoint, tmp_path: Path) -> ScriptedEndpoint:
    """A conversation of yesterday that has its note."""
    endpoint.default = agent(script)
    session_file(tmp_path / "projects", "one", texts=SAID, begun=YESTERDAY)
    good("config", "embedding_engine", "none")
    good("memory", "ingest", "--dir", str(tmp_path / "projects"))
    use_endpoint(endpoint.url)
    good("config", "memory_phases", "true")
    good("config", "memory_phase_providers", "claude-code")
    good("config", "memory_phase1_input_tokens", "8000")
    good("memory", "process", "--phase", "1")
    return endpoint


def paths() -> list[str]:
    return [row[0] for row in rows("memory", "files", "list", "--all")]


def test_notes_are_consolidated_into_files_that_are_read_and_searched(noted: ScriptedEndpoint) -> None:
    assert (
        "memory files of main: version 0, never consolidated, dirty since" in good("memory", "phases").stderr
    )
    assert "`shepherd memory process`" in good("memory", "files").stderr
    planned = good("memory", "process", "--phase", "2", "--dry-run")
    assert "consolidation of main: 1 added, 0 retained, 0 removed notes" in planned.stderr
    done = good("memory", "process", "--phase", "2")
    assert "the memory files of main are of version 1 now; `shepherd memory files` shows" in done.stderr
    assert "nothing has changed" in good("memory", "process", "--phase", "2").stderr
    assert "version 1, consolidated" in good("memory", "phases").stderr
    listed = rows("memory", "files")
    assert listed[:2] == [["MEMORY.md", "9 lines"], ["memory_summary.md", "5 lines"]]
    assert listed[-1] == ["rollout_summaries/", "1 file"]
    assert data("memory", "files", "list", "rollout_summaries")[0]["type"] == "file"
    assert good("memory", "files", "show", "MEMORY.md").stdout == MEMORY
    part = good("memory", "files", "show", "MEMORY.md", "--from", "3", "--lines", "1")
    assert (part.stdout, part.stderr) == ("## Tea\n", "9 lines in all; --from 4 shows those that follow\n")
    found = good("memory", "files", "search", "TEA", "--in", "MEMORY.md", "--context", "1").stdout
    assert found.splitlines()[:3] == ["MEMORY.md-2- ", "MEMORY.md:3: ## Tea", "MEMORY.md-4- "]
    assert [one["line"] for one in data("memory", "files", "search", "green", "tea", "--all")] == [5]
    both = data("memory", "files", "search", "green", "minka", "--within", "9", "--in", "MEMORY.md")
    assert [one["matched_queries"] for one in both] == [["green", "minka"]]
    assert "`shepherd recall` finds by meaning" in good("memory", "files", "search", "whale").stderr


def test_a_consolidation_that_fails_says_why_and_the_screen_shows_it(noted: ScriptedEndpoint) -> None:
    noted.default = agent(script, status(401))
    noted.default = status(500)
    failed = run("memory", "process", "--phase", "2", "--wait", "1")
    assert failed.exit_code == 5
    assert "the notes are not consolidated" in failed.stderr
    assert "memory files of main: version 0" in good("memory", "phases").stderr


def test_what_a_person_edits_is_shown_pinned_and_survives_consolidation(
    noted: ScriptedEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good("memory", "process", "--phase", "2")
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import sys; path = sys.argv[1]; text = open(path).read().replace('green', 'black')\n"
        "text += '\\n## Key\\n\\nIt is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789\\n'\n"
        "open(path, 'w').write(text)\n"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")
    changed = good("memory", "files", "edit", "MEMORY.md")
    assert "-Ann drinks green tea.\n+Ann drinks black tea.\n" in changed.stdout
    assert "sk-proj" not in changed.stdout
    assert "are of version 2 now; what you wrote is pinned" in changed.stderr
    monkeypatch.setenv("VISUAL", "true")
    assert good("memory", "files", "edit", "MEMORY.md").stderr == "nothing was changed\n"
    assert [row[0:1] + row[2:] for row in rows("memory", "files", "history")] == [
        ["2", "user", "edited MEMORY.md"],
        ["1", "agent", "tea and the boat"],
    ]
    assert "+Ann drinks black tea." in good("memory", "files", "diff").stdout
    assert data("memory", "files", "diff", "0", "1")["diff"].count("+++ ") == 2
    assert run("memory", "files", "diff", "0", "9").exit_code == 3
    good("memory", "files", "note", "Rex has died", "--name", "The dog")
    good("memory", "process", "--phase", "2")
    assert "Ann drinks black tea." in good("memory", "files", "show", "MEMORY.md").stdout


def test_an_edit_of_another_version_is_refused_and_what_was_written_is_kept(
    noted: ScriptedEndpoint, tmp_path: Path
) -> None:
    good("memory", "process", "--phase", "2")
    text = tmp_path / "text.md"
    text.write_text("## Tea\n\nFrom a file.\n")
    first = data("memory", "files", "edit", "MEMORY.md", "--file", str(text), "--version", "1")
    assert (first["version"], first["changed"]) == (2, True)
    late = run(
        "memory", "files", "edit", "MEMORY.md", "--file", "-", "--version", "1", stdin="## Mine\n\nlate\n"
    )
    assert late.exit_code == 2
    assert "they are of version 2, not 1" in late.stderr
    kept = Path(late.stderr.strip().rpartition(" ")[2])
    assert kept.read_text() == "## Mine\n\nlate\n"
    kept.unlink()
    kept.parent.rmdir()
    assert "From a file." in good("memory", "files", "show", "MEMORY.md").stdout
    for refused in ("raw_memories.md", "../x.md", "notes"):
        assert run("memory", "files", "edit", refused, "--file", str(text)).exit_code == 2


def test_files_are_deleted_and_reset_once_that_is_confirmed(noted: ScriptedEndpoint) -> None:
    good("memory", "process", "--phase", "2")
    note = data("memory", "files", "note", "-", stdin="Rex has died")["path"]
    assert "--yes" in run("memory", "files", "delete", note).stderr
    assert "there is no way back" in on_terminal("memory", "files", "delete", note, typed="n\n")[1]
    assert note in paths()
    good("memory", "files", "delete", note, "--yes")
    assert run("memory", "files", "delete", note, "--yes").exit_code == 3
    good("memory", "files", "note", "Rex has died")
    assert run("memory", "files", "reset").exit_code == 2
    assert data("memory", "files", "reset", "--yes") == {"deleted": 3}
    assert [path for path in paths() if path.startswith("notes/")]
    assert [one["note"] for one in data("memory", "files", "history")] == ["reset"]
    assert data("memory", "files", "reset", "--everything", "--yes") == {"deleted": 1}
    assert not [path for path in paths() if path.startswith("notes/")]
    assert data("memory", "phases", "groups")[0]["reason"] == "due"


def test_files_are_exported_and_mirrored(noted: ScriptedEndpoint, tmp_path: Path) -> None:
    good("memory", "process", "--phase", "2")
    target, mirror = tmp_path / "export", tmp_path / "mirror"
    said = good("memory", "files", "export", str(target)).stderr
    assert said == f"4 memory files of ann in {target}: 4 written, 0 removed\n"
    assert (target / "MEMORY.md").read_text() == MEMORY
    good("memory", "files", "mirror", str(mirror))
    (mirror / "main" / "MEMORY.md").write_text("mine")
    again = data("memory", "files", "mirror", str(mirror))
    assert again["left"] == [{"path": "main/MEMORY.md", "reason": "changed by hand"}]
    assert (
        "left alone: main/MEMORY.md (changed by hand)"
        in good("memory", "files", "mirror", str(mirror)).stderr
    )
    refused = run("memory", "files", "export", str(tmp_path))
    assert (refused.exit_code, "name another folder" in refused.stderr) == (2, True)


def test_with_nothing_there_it_says_what_to_do(no_answer: None, tmp_path: Path) -> None:
    empty = good("memory", "files")
    assert (empty.stdout, "shepherd config set memory_phases true" in empty.stderr) == ("", True)
    assert "there is no version" in good("memory", "files", "history").stderr
    assert "nothing was consolidated" in good("memory", "files", "diff").stderr
    assert "is not written yet" in good("memory", "files", "export", str(tmp_path / "new")).stderr
    assert run("memory", "files", "show", "MEMORY.md").exit_code == 3
    good("facts", "set", "dog", "Rex")
    assert [one["path"] for one in data("memory", "files")] == ["memory_summary.md"]
    made = run("memory", "files", "edit", "memory_summary.md")
    assert (made.exit_code, "change the facts" in made.stderr) == (2, True)
