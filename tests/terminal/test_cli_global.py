"""`shepherd global` as a person uses it: shown, set from a file or stdin, edited, deleted."""

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.service import Service
from tests.terminal.shell import data, good, run, with_service

TEXT = "Answer in British English.\nThe house is at the harbour."


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that is the user's editor: what it does is written here."""
    path = tmp_path / "editor.py"
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {path}")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "temporary").mkdir()
    return path


def writing(text: str) -> str:
    return f"import sys\nopen(sys.argv[1], 'w').write({text!r})\n"


def left_behind(editor: Path) -> list[Path]:
    return list((editor.parent / "temporary").rglob("*.md"))


def stored() -> Any:
    return with_service(lambda service: service.global_memory("ann"))


def test_a_text_is_set_from_a_file_or_stdin_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "text.md"
    path.write_text(TEXT)
    assert good("global", "set", str(path)).stderr.startswith(f"{len(TEXT)} characters: sessions of ann")
    assert good("global", "show").stdout == f"{TEXT}\n"
    changed = data("global", "set", "-", stdin="Another.\n")
    assert changed["text"] == "Another."
    shown = data("global", "show")
    assert (shown["text"], shown["updated_at"]) == ("Another.", changed["updated_at"])
    assert "  Another.\n</global-memory>" in shown["handed_on"]


def test_what_is_too_long_to_be_told_is_said(tmp_path: Path) -> None:
    good("global", "set", "-", stdin="Rule after rule.\n" * 1000)
    assert "told its beginning" in good("global", "show").stderr
    good("config", "global_memory_tokens", "0")
    assert "told nothing" in good("global", "show").stderr


def test_nothing_there_is_said_with_what_to_do() -> None:
    shown = run("global", "show")
    assert (shown.exit_code, "`shepherd global edit` writes one" in shown.output) == (3, True)
    assert run("global", "delete").exit_code == 3


REFUSED: dict[str, tuple[bytes, str]] = {
    "nul": (b"a\0b", "NUL"),
    "binary": (bytes(range(256)), "not UTF-8"),
    "broken": (b"caf\xe9", "not UTF-8 text: byte 3"),
    "surrogate": (b"\xed\xa0\xbd", "not UTF-8"),
    "empty": (b"", "empty: to have no global memory, delete it"),
    "blank": (b"\n \n", "empty"),
    "long": (b"x" * 100_001, "at most 100,000 characters"),
    "10 MB": (b"x" * 10_000_000, "more than 400,000 bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused_in_words_and_changes_nothing(tmp_path: Path, name: str) -> None:
    good("global", "set", "-", stdin=TEXT)
    before, path = stored(), tmp_path / "text"
    content, words = REFUSED[name]
    path.write_bytes(content)
    for result in (run("global", "set", str(path)), run("global", "set", "-", stdin=content)):
        assert (result.exit_code, words in result.output) == (2, True), result.output
    assert stored() == before


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    missing = run("global", "set", str(tmp_path / "nowhere"))
    assert (missing.exit_code, "No such file" in missing.output) == (2, True)
    assert run("global", "set", str(tmp_path)).exit_code == 2


def test_the_text_is_changed_in_the_editor_in_a_private_file(editor: Path, tmp_path: Path) -> None:
    good("global", "set", "-", stdin=TEXT)
    seen = tmp_path / "seen"
    editor.write_text(
        "import os, pathlib, sys\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "modes = [oct(os.stat(one).st_mode & 0o777) for one in (path, path.parent)]\n"
        f"pathlib.Path({str(seen)!r}).write_text(repr((modes, path.read_text())))\n"
        "path.write_text(path.read_text() + 'And more.\\n')\n"
    )
    assert data("global", "edit")["text"] == f"{TEXT}\nAnd more."
    assert seen.read_text() == repr(([oct(stat.S_IRUSR | stat.S_IWUSR), "0o700"], f"{TEXT}\n"))
    assert left_behind(editor) == []


@pytest.mark.parametrize("program", ["", "raise SystemExit(3)", writing("")])
def test_an_editor_that_changes_nothing_or_fails_changes_nothing(editor: Path, program: str) -> None:
    good("global", "set", "-", stdin=TEXT)
    before = stored()
    editor.write_text(program)
    assert run("global", "edit").exit_code == (2 if program else 0)
    assert stored() == before
    assert left_behind(editor) == []


@pytest.mark.parametrize("command", ["/nowhere/editor", "'unbalanced"])
def test_an_editor_that_cannot_be_run_is_named(
    editor: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("VISUAL", command)
    result = run("global", "edit")
    assert (result.exit_code, "set VISUAL or EDITOR" in result.output) == (2, True)


def test_what_was_written_and_cannot_be_used_is_kept(editor: Path) -> None:
    editor.write_text(writing("x" * 100_001))
    refused = run("global", "edit")
    (path,) = left_behind(editor)
    assert (refused.exit_code, str(path) in refused.output) == (2, True)
    assert path.read_text() == "x" * 100_001
    assert stored() is None


def test_what_another_wrote_meanwhile_stays(editor: Path, tmp_path: Path) -> None:
    def meanwhile(service: Service) -> None:
        service.set_global_memory("ann", TEXT)

    with_service(meanwhile)
    editor.write_text(
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'shepherd_memory', 'global', 'set', '-'],"
        " input=b'By another.', check=True)\n" + writing("Mine.")
    )
    refused = run("global", "edit")
    assert (refused.exit_code, "changed meanwhile" in refused.output) == (2, True)
    assert stored().text == "By another."
    assert [path.read_text() for path in left_behind(editor)] == ["Mine."]


def test_another_group_reads_and_does_not_write(editor: Path) -> None:
    good("global", "set", "-", stdin=TEXT)
    editor.write_text(writing("Mine."))
    assert good("global", "show", "--group", "club").stdout == f"{TEXT}\n"
    for command in (("set", "-"), ("edit",), ("delete",)):
        refused = run("global", *command, "--group", "club", stdin="Mine.")
        assert (refused.exit_code, "main" in refused.output) == (2, True), command
    good("config", "group", "club")
    assert run("global", "delete").exit_code == 2
    assert stored().text == TEXT
    assert data("global", "delete", "--group", "main") == {"deleted": True}
    assert stored() is None
