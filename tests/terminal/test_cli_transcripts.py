"""`shepherd memory ingest`: transcripts are found, shown, taken in once, and found by what they mean."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.service import Service
from tests.real_transcripts import real_files_here
from tests.terminal.pty_screen import terminal
from tests.terminal.shell import COMMAND, data, good, process, run, with_service
from tests.terminal.transcript_files import BEGUN, TALK, codex_rollout, said, session_file, talk, write


@pytest.fixture(autouse=True)
def keyword_only() -> None:
    """No embedding, but for the tests that are about it."""
    good("config", "embedding_engine", "none")


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HOME"])


@pytest.fixture
def projects(home: Path) -> Path:
    """Where Claude Code leaves its sessions, with two of them."""
    folder = home / ".claude" / "projects"
    session_file(folder, "one")
    session_file(folder, "two", "-home-ann-work-car", cwd="/home/ann/work/car")
    return folder


def stored(user_id: str = "ann") -> list[tuple[Any, ...]]:
    """What is stored of transcripts, but for the numbers of rows."""

    def read(service: Service) -> list[tuple[Any, ...]]:
        documents = [
            (d.source_file, d.session_id, d.message_id, d.role, d.text, d.created_at, d.source, d.cwd)
            for d in service.documents(user_id)
        ]
        conversations = [
            (c.file_key, c.session_id, c.first_message_at, c.last_message_at, c.entries)
            for c in service.conversations(user_id)
        ]
        files = [
            (f.file_key, f.session_id, f.source, f.cwd, f.read_through, f.entries, f.skipped_lines, f.status)
            for f in service.transcripts.files(user_id)
        ]
        return [*sorted(documents), *sorted(conversations), *files]

    found: list[tuple[Any, ...]] = with_service(read)
    return found


def test_a_new_user_recalls_a_session_by_paraphrase_with_no_configuration(home: Path, tmp_path: Path) -> None:
    session_file(home / ".claude" / "projects", "one")
    environment = {name: value for name, value in os.environ.items() if name != "SHEPHERD_CONFIG"}
    took = process("memory", "ingest", "--yes", env=environment)
    assert took.returncode == 0, took.stderr
    assert "6 entries stored" in took.stderr
    found = process("recall", "what pets do I have?", "--limit", "1", env=environment)
    assert "Minka" in found.stdout, found.stderr
    assert found.stdout.rstrip().split("\t")[-3:] == ["boat", "one", "claude-code"]
    assert "not embedded" not in found.stderr


@pytest.mark.usefixtures("projects")
def test_without_a_folder_it_says_what_it_found_and_asks(home: Path) -> None:
    codex_rollout(home / ".codex" / "sessions" / "2026" / "rollout-c.jsonl", ["hello", "there"])
    with terminal(*COMMAND, "memory", "ingest") as screen:
        shown = screen.wait_for("Take it in for ann?")
        assert f"in {home}/.claude/projects" in re.sub("\n", "", shown)
        assert "claude-code: 2 files" in shown
        assert "2 new" in shown
        assert "about 12 entries in 2 conversations" in re.sub(r"\n", "", shown)
        assert "codex: 1 file" in shown
        screen.type("n\n")
        assert screen.exit_code() == 1
    assert stored() == []
    with terminal(*COMMAND, "memory", "ingest") as screen:
        screen.wait_for("Take it in for ann?")
        screen.type("y\n")
        assert screen.exit_code() == 0
        screen.wait_for("3 files: 3 new", "14 entries stored")


@pytest.mark.usefixtures("projects")
def test_in_a_pipe_it_wants_to_be_told_yes() -> None:
    refused = run("memory", "ingest")
    assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    assert stored() == []
    assert "12 entries stored" in good("memory", "ingest", "--yes").stderr


def test_where_no_agent_is_it_says_what_to_give() -> None:
    refused = run("memory", "ingest", "--yes")
    assert (refused.exit_code, "--dir or --file" in refused.stderr) == (3, True)


def test_a_dry_run_stores_nothing_and_counts_what_there_is(projects: Path) -> None:
    write(projects / "x" / "notes.jsonl", ['{"some": "thing"}'])
    shown = good("memory", "ingest", "--dry-run")
    assert "claude-code: 2 files" in shown.stdout
    assert "unrecognised: 1 file, of no known agent" in shown.stdout
    plan = data("memory", "ingest", "--dry-run")
    assert plan["claude-code"]["files"] == {"new": 2}
    assert (plan["claude-code"]["entries"], plan["claude-code"]["conversations"]) == (12, 2)
    assert "extraction_tokens" not in plan["claude-code"]
    assert stored() == []


@pytest.mark.usefixtures("projects", "no_answer")
def test_tokens_are_estimated_where_extraction_is_on() -> None:
    shown = data("memory", "ingest", "--dry-run")["claude-code"]
    assert shown["extraction_tokens"] == 2 * sum(map(len, TALK[::2])) // 4
    assert "tokens to extract from" in good("memory", "ingest", "--dry-run").stdout


def test_what_was_taken_in_is_unchanged_and_what_has_grown_goes_on(projects: Path) -> None:
    good("memory", "ingest", "--yes")
    again = data("memory", "ingest", "--yes")
    assert (again["files"], again["entries"]) == ({"unchanged": 2}, 0)
    assert "claude-code: 2 files" in good("memory", "ingest", "--dry-run").stdout
    later = BEGUN + timedelta(hours=5)
    path = projects / "-home-ann-work-boat" / "one.jsonl"
    write(path, talk(TALK[:2], session="one", begun=later, first=6), more=True)
    plan = data("memory", "ingest", "--dry-run")["claude-code"]
    assert (plan["files"], plan["entries"], plan["conversations"]) == ({"grown": 1, "unchanged": 1}, 2, 1)
    grown = data("memory", "ingest", "--yes")
    assert (grown["files"], grown["entries"]) == ({"grown": 1, "unchanged": 1}, 2)
    assert grown["conversations"] == {
        "active": 0,
        "ready": 2,
        "processing": 0,
        "archived": 0,
        "skipped": 1,
    }


def test_a_backup_of_the_folder_doubles_nothing(projects: Path, tmp_path: Path) -> None:
    good("memory", "ingest", "--yes")
    before = stored()
    backup = tmp_path / "projects-backup"
    shutil.copytree(projects, backup)
    taken = data("memory", "ingest", "--dir", str(backup))
    assert (taken["files"], taken["entries"]) == ({"unchanged": 2}, 0)
    single = backup / "-home-ann-work-boat" / "one.jsonl"
    assert "1 unchanged" in good("memory", "ingest", "--file", str(single)).stderr
    assert data("memory", "ingest", "--file", str(single), "--base", str(backup))["files"] == {"unchanged": 1}
    assert stored() == before


def test_a_single_file_has_its_key_from_the_folder_given(tmp_path: Path) -> None:
    path = session_file(tmp_path / "a" / "b", "one")
    good("memory", "ingest", "--file", str(path))
    good("memory", "ingest", "--file", str(path), "--base", str(tmp_path / "a"), "--user", "bob")

    def keys(service: Service) -> list[str]:
        return [file.file_key for user in ("ann", "bob") for file in service.transcripts.files(user)]

    assert with_service(keys) == ["-home-ann-work-boat/one.jsonl", "b/-home-ann-work-boat/one.jsonl"]


def test_reimport_reads_anew_and_gives_the_same_rows(projects: Path) -> None:
    good("memory", "ingest", "--yes")
    before = stored()
    again = data("memory", "ingest", "--yes", "--reimport")
    assert (again["files"], again["entries"]) == ({"rewritten": 2}, 12)
    assert stored() == before


def test_what_is_broken_or_of_nobody_is_shown_and_no_failure(projects: Path) -> None:
    write(projects / "-home-ann-work-boat" / "one.jsonl", ["{ half", "[1, 2]", '{"type": "new"}'], more=True)
    write(projects / "strange.jsonl", ['{"a": 1}'])
    (projects / "empty.jsonl").touch()
    (projects / "notes.txt").write_text("nothing of ours")
    os.mkfifo(projects / "pipe.jsonl")
    (projects / "loop").symlink_to(projects)
    taken = good("memory", "ingest", "--dir", str(projects))
    assert "broken lines: -home-ann-work-boat/one.jsonl (2)" in taken.stderr
    assert "of no known agent: strange.jsonl" in taken.stderr
    assert "of no known agent: empty.jsonl" in taken.stderr
    assert "notes.txt" not in taken.stderr
    shown = data("memory", "ingest", "--dir", str(projects), "--reimport")
    assert shown["broken"] == {"-home-ann-work-boat/one.jsonl": 2}
    assert set(shown["unrecognised"]) == {"strange.jsonl", "empty.jsonl"}
    assert shown["skipped"]["unknown"] == 1


def test_wrong_files_and_folders_are_named(tmp_path: Path) -> None:
    strange, empty = write(tmp_path / "strange.jsonl", ['{"a": 1}']), tmp_path / "empty.jsonl"
    empty.touch()
    (tmp_path / "nothing").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    good_one = session_file(tmp_path / "projects", "one")
    for args, code, said_so in (
        (["--file", "no/such.jsonl"], 3, "there is no no/such.jsonl"),
        (["--dir", "no/such"], 3, "there is no no/such"),
        (["--file", str(tmp_path)], 2, "is a folder: `--dir"),
        (["--dir", str(strange)], 2, "is a file: `--file"),
        (["--file", str(empty)], 2, "is empty"),
        (["--file", str(tmp_path / "pipe.jsonl")], 2, "not a regular file"),
        (["--file", str(strange)], 2, "no transcript of a known agent (shepherd"),
        (["--dir", str(tmp_path / "nothing")], 3, "no transcript (*.jsonl) under"),
        (["--file", str(good_one), "--dir", str(tmp_path)], 2, "not both"),
        (["--base", str(tmp_path)], 2, "--base goes with --file"),
        (["--file", str(good_one), "--base", str(tmp_path / "nothing")], 2, "is not under"),
        (["--file", str(good_one), "--base", "no/such"], 3, "there is no no/such"),
        (["--file", str(good_one), "--user", "unknown"], 2, "the user is unknown"),
    ):
        result = run("memory", "ingest", *args)
        assert (result.exit_code, said_so in result.stderr) == (code, True), result.stderr
    assert stored() == []


@pytest.fixture
def as_who_may_not_read_everything() -> list[str]:
    """What to put before a command: root reads files that are closed to all, unless it may not."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root may read everything")
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]


def test_a_file_that_may_not_be_read_fails_alone(
    projects: Path, as_who_may_not_read_everything: list[str]
) -> None:
    closed = projects / "-home-ann-work-boat" / "one.jsonl"
    closed.chmod(0)
    (projects / "closed").mkdir(mode=0)
    command = [*as_who_may_not_read_everything, *COMMAND, "memory", "ingest"]
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60}
    result = subprocess.run([*command, "--yes"], **options)
    assert result.returncode == 1
    assert result.stderr.splitlines()[0] == "2 files: 1 failed, 1 new"
    assert "failed: -home-ann-work-boat/one.jsonl cannot be read: Permission denied" in result.stderr
    assert "6 entries stored" in result.stderr
    for args in (["--file", str(closed)], ["--dir", str(projects / "closed")]):
        refused = subprocess.run([*command, *args], **options)
        assert (refused.returncode, "cannot be read: permission denied" in refused.stderr) == (2, True)


def test_documents_that_are_not_kept_are_not_taken_in(projects: Path) -> None:
    good("config", "memory_documents", "false")
    refused = run("memory", "ingest", "--yes")
    assert (refused.exit_code, "memory_documents is off" in refused.stderr) == (2, True)


def test_the_progress_bar_is_on_a_terminal_and_not_in_a_pipe(projects: Path) -> None:
    with terminal(*COMMAND, "memory", "ingest", "--yes", columns=120) as screen:
        assert screen.exit_code() == 0
        shown = screen.wait_for("2 files: 2 new")
        assert "importing" in shown
        assert "100%" in shown
    again = process("memory", "ingest", "--dir", str(projects), "--reimport")
    assert "importing" not in again.stderr + again.stdout
    assert "12 entries stored" in again.stderr


def test_what_is_taken_in_is_embedded_unless_that_is_left_to_a_worker(projects: Path) -> None:
    good("config", "embedding_engine", "onnx")
    left = data("memory", "ingest", "--yes", "--no-embed")
    assert (left["embedded"], left["unembedded"]) == (0, 12)
    done = data("memory", "ingest", "--yes")
    assert (done["embedded"], done["unembedded"]) == (12, 0)
    assert "Minka" in good("recall", "what pets do I have?", "--limit", "1").stdout


def test_an_engine_that_is_away_is_said_and_no_failure(projects: Path) -> None:
    good("config", "embedding_engine", "openai")
    taken = good("memory", "ingest", "--yes")
    assert "12 entries stored" in taken.stderr
    assert "recall works by keyword only" in taken.stderr


@pytest.fixture
def heeded_ctrl_c() -> Iterator[None]:
    """What a shell runs in the background ignores Ctrl-C, and so does what that starts: not here."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("heeded_ctrl_c")
def test_an_import_that_was_stopped_goes_on_to_the_same_rows(tmp_path: Path) -> None:
    for name in ("a", "b"):
        lines = [
            said(
                place, f"{name} says {place}: {'word ' * 200}", BEGUN + timedelta(seconds=place), session=name
            )
            for place in range(4_000)
        ]
        write(tmp_path / "projects" / "p" / f"{name}.jsonl", lines)
    good("memory", "ingest", "--dir", str(tmp_path / "projects"), "--user", "bob")
    with terminal(*COMMAND, "memory", "ingest", "--dir", str(tmp_path / "projects"), columns=120) as screen:
        screen.wait_until(lambda lines: re.search(r"[1-9]\d*%.*[kM]B/s", "\n".join(lines)), "progress")
        screen.send_signal(signal.SIGINT)
        assert screen.exit_code() == 1
        screen.wait_for("stopped: the same command goes on where it was")
    assert 0 < len(stored()) < len(stored("bob"))
    assert data("memory", "health-check")["ingesting"] == 0, "nothing stays behind"
    good("memory", "ingest", "--dir", str(tmp_path / "projects"))
    assert stored() == stored("bob")


def test_what_was_forgotten_stays_out(projects: Path) -> None:
    good("memory", "ingest", "--yes")
    key = "-home-ann-work-boat/one.jsonl"
    assert data("memory", "forget", "--file", key, "--yes")["documents"] == 6
    assert {one["file_key"] for one in data("memory", "conversations")} == {"-home-ann-work-car/two.jsonl"}
    for again in ([], ["--reimport"]):
        good("memory", "ingest", "--yes", *again)
        assert {one["session_id"] for one in data("documents")} == {"two"}
        assert {one["session_id"] for one in data("memory", "conversations")} == {"two"}
    assert run("memory", "forget", "--file", key).exit_code == 3
    assert run("memory", "forget", "--file", "no-such").exit_code == 3
    assert run("memory", "forget").exit_code == 2
    write(projects / key, [said(9, "a new line", BEGUN + timedelta(days=1), session="one")], more=True)
    good("memory", "ingest", "--yes")
    assert [one["text"] for one in data("documents", "--session", "one")] == ["a new line"]


def test_what_was_erased_stays_out(projects: Path) -> None:
    good("memory", "ingest", "--yes")
    good("memory", "erase", "--yes")
    assert data("memory", "ingest", "--yes")["entries"] == 0
    assert data("documents") == []


def test_a_file_that_vanished_deletes_nothing(projects: Path) -> None:
    good("memory", "ingest", "--yes")
    (projects / "-home-ann-work-boat" / "one.jsonl").unlink()
    good("memory", "ingest", "--yes")
    assert len(data("documents")) == 12


def test_two_users_take_in_the_same_folder_and_see_their_own(projects: Path) -> None:
    good("memory", "ingest", "--yes")
    before = stored()
    assert stored("bob") == []
    assert data("memory", "ingest", "--dry-run", "--user", "bob")["claude-code"]["files"] == {"new": 2}
    assert data("memory", "ingest", "--yes", "--user", "bob")["entries"] == 12
    assert stored("bob") == before
    good("memory", "forget", "--file", "-home-ann-work-boat/one.jsonl", "--user", "bob", "--yes")
    assert stored() == before


def test_real_sessions_are_taken_in_and_none_fails(tmp_path: Path) -> None:
    known = real_files_here()
    for source in ("claude-code", "codex"):
        files = [file.copied_to(tmp_path / source) for file in known if file.source == source]
        taken = data("memory", "ingest", "--dir", str(tmp_path / source))
        assert taken["files"] == {"new": len(files)}
        lines = sum(len(path.read_bytes().splitlines()) for path in files)
        assert taken["entries"] + taken["known"] + sum(taken["skipped"].values()) == lines
        assert {one["source"] for one in data("memory", "conversations")} >= {source}
    assert taken["entries"] > 0


@pytest.mark.usefixtures("projects")
def test_the_configured_gap_divides_conversations(config_path: Path) -> None:
    good("config", "conversation_gap_minutes", "0.5")
    assert data("memory", "ingest", "--dry-run")["claude-code"]["conversations"] == 12
    good("memory", "ingest", "--yes")
    assert len(data("memory", "conversations")) == 12
