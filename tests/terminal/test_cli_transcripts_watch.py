"""Commands that stay and take in transcripts as agents write them, and extraction from conversations."""

import json
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.endpoint import ScriptedEndpoint, status
from tests.terminal.conftest import use_endpoint
from tests.terminal.running import Running, starting, wait_for
from tests.terminal.shell import data, good, on_terminal, run
from tests.terminal.transcript_files import BEGUN, TALK, session_file, talk, write

FACTS = ("my dog is Rex", "Noted.", "my city is Porto", "Noted.", "my boat is Minka", "Noted.")


@pytest.fixture(autouse=True)
def keyword_only() -> None:
    """No embedding: what is tested is the commands."""
    good("config", "embedding_engine", "none")


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    with starting() as start_one:
        yield start_one


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "projects"
    path.mkdir()
    return path


def texts(user_id: str = "ann") -> list[str]:
    return [one["text"] for one in data("documents", "--limit", "1000", "--user", user_id)]


def facts(user_id: str = "ann") -> dict[str, str]:
    return {fact["key"]: fact["value"] for fact in data("facts", "--user", user_id)}


def statuses() -> list[str]:
    return [one["status"] for one in data("memory", "conversations")]


def test_watch_prints_a_line_for_each_file_taken_in(start: Callable[..., Running], folder: Path) -> None:
    session_file(folder, "before")
    watching = start("memory", "watch", str(folder))
    watching.wait_until_it_prints("-home-ann-work-boat/before.jsonl: 6 entries (new)\n")
    assert f"watching {folder} for ann" in watching.said
    path = session_file(folder, "later", "-home-ann-work-new")
    watching.wait_until_it_prints("-home-ann-work-new/later.jsonl: 6 entries (new)\n")
    write(path, talk(TALK[:1], session="later", begun=BEGUN + timedelta(hours=3), first=6), more=True)
    watching.wait_until_it_prints("-home-ann-work-new/later.jsonl: 1 entry (grown)\n")
    code, printed = watching.stop(signal.SIGINT)
    assert (code, printed.count("\n")) == (0, 3)
    assert watching.said.endswith("stopped; what is written meanwhile is taken in at the next start\n")
    assert "Traceback" not in watching.said
    assert len(texts()) == 13
    assert data("config")["transcripts_enabled"]["value"] is False, "it is on for this command only"


def test_watch_prints_json_lines_and_is_for_the_user_given(
    start: Callable[..., Running], folder: Path
) -> None:
    watching = start("memory", "watch", str(folder), "--json", "--user", "bob")
    session_file(folder, "one")
    watching.wait_until_it_prints("\n")
    taken = json.loads(watching.printed)
    assert (taken["file_key"], taken["entries"], taken["outcome"]) == (
        "-home-ann-work-boat/one.jsonl",
        6,
        "new",
    )
    watching.stop()
    assert (texts(), texts("bob")) == ([], list(TALK))


def test_what_watch_takes_in_is_extracted(
    start: Callable[..., Running], endpoint: ScriptedEndpoint, folder: Path
) -> None:
    session_file(folder, "one", texts=FACTS)
    watching = start("memory", "watch", str(folder))
    wait_for(lambda: facts() == {"dog": "Rex", "city": "Porto", "boat": "Minka"}, "the facts are there")
    wait_for(lambda: statuses() == ["archived"], "it is done with")
    watching.stop()


def test_watch_waits_for_a_folder_that_is_not_there_yet(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    good("config", "transcripts_watch_path", str(tmp_path / "later"))
    good("config", "poll_interval", "0.2")
    watching = start("memory", "watch")
    watching.wait_until_it_says(f"watching for {tmp_path}/later to appear")
    session_file(tmp_path / "later", "one")
    watching.wait_until_it_prints("one.jsonl: 6 entries (new)")


def test_watch_is_for_somebody(folder: Path) -> None:
    assert run("memory", "watch", str(folder), "--user", "unknown").exit_code == 2
    (folder / "file").touch()
    assert run("memory", "watch", str(folder / "file")).exit_code == 2


@pytest.mark.parametrize("command", [["worker"], ["serve", "--port", "0"]])
def test_a_worker_and_a_server_watch_where_they_are_told(
    start: Callable[..., Running], folder: Path, command: list[str]
) -> None:
    session_file(folder, "one")
    good("config", "transcripts_watch_path", str(folder))
    running = start(*command)
    running.wait_until_it_says("Ctrl-C ends it.")
    assert "transcripts not watched for; " in running.said
    assert texts() == []
    good("config", "transcripts_enabled", "true")
    wait_for(lambda: texts() == list(TALK), "it is switched on while it runs")
    session_file(folder, "two")
    wait_for(lambda: len(texts()) == 12, "what comes later")
    assert running.stop()[0] == 0
    again = start(*command)
    again.wait_until_it_says(f"transcripts watching {folder}\n")
    assert again.stop()[0] == 0
    assert (len(texts()), texts("bob")) == (12, [])


def test_process_extracts_from_what_is_ready(endpoint: ScriptedEndpoint, folder: Path) -> None:
    session_file(folder, "one", texts=FACTS)
    session_file(folder, "short", texts=FACTS[:2])
    good("memory", "ingest", "--dir", str(folder))
    done = good("memory", "process")
    assert "processed 1 conversation; nothing left to do" in done.stderr
    assert facts() == {"dog": "Rex", "city": "Porto", "boat": "Minka"}
    assert sorted(statuses()) == ["archived", "skipped"]
    assert data("facts")[0]["stated_at"].startswith("2026-02-12T14:0"), "as it was said then"
    asked = len(endpoint.requests)
    assert data("memory", "process") == {"archived": 0, "ready": 0, "processing": 0, "failed": 0}
    assert len(endpoint.requests) == asked


def test_process_shows_its_progress_on_a_terminal(endpoint: ScriptedEndpoint, folder: Path) -> None:
    session_file(folder, "one", texts=FACTS)
    session_file(folder, "two", texts=FACTS)
    # Before an endpoint is there, so that nothing is handed on yet.
    good("config", "unset", "memory_extraction_endpoint")
    good("memory", "ingest", "--dir", str(folder))
    use_endpoint(endpoint.url)
    code, seen = on_terminal("memory", "process")
    assert code == 0, seen
    assert "2/2" in seen
    assert "processed 2 conversations" in seen


def test_without_an_endpoint_process_says_what_stays_ready(folder: Path) -> None:
    session_file(folder, "one", texts=FACTS)
    good("memory", "ingest", "--dir", str(folder))
    result = good("memory", "process")
    assert "extraction is off: 1 conversations stay ready" in result.stderr
    assert "config set memory_extraction_endpoint" in result.stderr
    assert statuses() == ["ready"]
    assert data("memory", "process")["ready"] == 1


@pytest.mark.usefixtures("no_answer")
def test_process_ends_when_the_time_is_up(folder: Path) -> None:
    session_file(folder, "one", texts=FACTS)
    good("memory", "ingest", "--dir", str(folder))
    result = run("memory", "process", "--wait", "0.5")
    assert (result.exit_code, "1 conversations are left" in result.stderr) == (5, True)
    assert statuses() == ["processing"]


def test_process_does_not_wait_for_an_endpoint_that_refuses(endpoint: ScriptedEndpoint, folder: Path) -> None:
    endpoint.default = status(401)
    session_file(folder, "one", texts=FACTS)
    good("memory", "ingest", "--dir", str(folder))
    result = run("memory", "process")
    assert (result.exit_code, "the endpoint is paused" in result.stderr) == (5, True)


def test_process_does_not_wait_for_what_has_failed(endpoint: ScriptedEndpoint, folder: Path) -> None:
    endpoint.default = status(400)
    session_file(folder, "one", texts=FACTS)
    good("memory", "ingest", "--dir", str(folder))
    result = run("memory", "process")
    assert (result.exit_code, "queue list --status failed" in result.stderr) == (5, True)


def test_process_does_not_wait_for_tomorrow(endpoint: ScriptedEndpoint, folder: Path) -> None:
    good("config", "memory_extraction_daily_tokens", "1")
    session_file(folder, "one", texts=FACTS)
    session_file(folder, "two", texts=FACTS)
    good("memory", "ingest", "--dir", str(folder))
    result = run("memory", "process")
    assert (result.exit_code, "1 conversations are left: the tokens of today are spent" in result.stderr) == (
        5,
        True,
    )
    assert sorted(statuses()) == ["archived", "ready"]


def test_process_of_bob_leaves_the_count_to_bob(endpoint: ScriptedEndpoint, folder: Path) -> None:
    session_file(folder, "one", texts=FACTS)
    good("memory", "ingest", "--dir", str(folder), "--user", "bob")
    assert data("memory", "process", "--user", "bob")["archived"] == 1
    assert facts("bob") == {"dog": "Rex", "city": "Porto", "boat": "Minka"}
    assert facts() == {}
