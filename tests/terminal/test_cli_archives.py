"""`shepherd sessions export` as a person uses it."""

import json
from pathlib import Path

from tests.terminal.shell import good, run


def test_sessions_are_exported_as_files_and_again_only_what_has_changed(
    no_answer: None, tmp_path: Path
) -> None:
    target = tmp_path / "sessions"
    good("remember", "My bike is green", "--session", "s")
    said = good("sessions", "export", str(target)).stderr
    assert "1 sessions of ann in" in said
    (file,) = target.rglob("*.md")
    assert "**User**: My bike is green" in file.read_text()
    assert file.parent.name == "main"
    again = json.loads(good("sessions", "export", str(target), "--whole", "--json").stdout)
    assert again == {"folder": str(target), "archives": 1, "written": 1, "removed": 0}
    assert json.loads(good("sessions", "export", str(target), "--whole", "--json").stdout)["written"] == 0


def test_what_is_no_folder_is_refused(no_answer: None, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert run("sessions", "export", str(tmp_path / "file")).exit_code == 2
    assert (tmp_path / "file").read_text() == "mine"
