"""Every command that takes a group, from every group: it shows what that one sees, and changes its own."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.frontends.cli import cli
from shepherd_memory.service import Service
from shepherd_memory.storage.database import Database
from tests.group_history import AmongOthers, Shown
from tests.grouped_memory import (
    ALPHA,
    BETA,
    GLOBAL,
    KEY,
    MAIN,
    SEEN,
    SESSION,
    USER,
    WORDS,
    as_shown,
    furnish,
    rows_by_group,
    transcript_of,
    words_in,
)
from tests.terminal.shell import data, good, run, with_service
from tests.terminal.test_cli_isolation import COMMANDS, commands_with

READING = {
    "recall": True,
    "facts list": True,
    "facts get": True,
    "facts history": True,
    "global show": False,
    "context list": True,
    "documents list": True,
    "documents show": False,
    "memory stats": False,
    "memory export": True,
    "memory why": True,
    "memory conversations": False,
    "memory phases groups": False,
    "memory phases list": False,
    "memory phases show": False,
    "memory files list": False,
    "memory files show": True,
    "memory files search": False,
    "memory files history": False,
    "memory files diff": True,
    "memory health-check": False,
    "transcript": True,
    "sessions list": True,
    "groups list": False,
    "sessions search": False,
    "sessions show": True,
    "memory rejected list": True,
    "memory unconfirmed list": True,
    "queue list": False,
}
"""Commands that change nothing, and whether a group finds its own word in what they print."""

WRITING = [command for command in COMMANDS if command not in READING]
STAYING = {"memory watch", "mcp", "chat", "tui", "cli-server"}
"""Processes that stay: tested where they run."""

OPENING_NO_MEMORY = {"mcp install", "hooks install", "apikey create"}
OF_AN_AGENT = {"hooks run"}
"""Ends its process in time: `test_hooks_run.py` runs it as one, for other groups too."""

NAMES = {"secret": KEY, "s": SESSION}


def test_every_command_that_takes_a_group_is_tried_here() -> None:
    with_group = set(commands_with("--group", cli))
    assert with_group - STAYING - OPENING_NO_MEMORY - OF_AN_AGENT == set(COMMANDS)
    assert set(commands_with("--user", cli)) - with_group == set()
    assert set(READING) < set(COMMANDS)


def said(command: str, ids: dict[str, Any], group: str) -> str:
    """What a command prints in a group, but for times and random ids."""
    return lasting(printed(command, ids, group))


def lasting(text: str) -> str:
    masked = re.sub(r"\d{4}-\d\d-\d\d[T ][0-9:.]+(Z|\+00:00)?|[0-9a-f]{12,}", "masked", text)
    # Both go by the time of now: scores in other groups are compared where the clock stands still.
    return re.sub(r'"(lag|score)": [0-9.]+', "masked", masked)


def printed(command: str, ids: dict[str, Any], group: str) -> str:
    shown = with_service(lambda service: as_shown(service, group, ids))
    words = [NAMES.get(word, word).format(**shown) for word in COMMANDS[command]]
    result = run(*command.split(), *words, "--user", USER, "--group", group, "--json")
    assert result.exit_code in (0, 2, 3) or (command, result.exit_code) == ("memory ingest", 1)
    return result.output


@pytest.fixture
def transcripts(tmp_path: Path, no_answer: None) -> Path:
    return tmp_path / "transcripts"


def everything(service: Service) -> dict[str, Any]:
    return rows_by_group(service.database)


def test_each_group_is_shown_what_it_sees_and_changes_what_is_its_own(
    transcripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def furnish_with(service: Service, *groups: str) -> dict[str, Any]:
        made = [furnish(service, group, transcripts) for group in groups]
        # Or a command that lists conversations finds those of live chats first.
        service.transcripts.poll()
        return made[-1]

    with_service(lambda service: furnish_with(service, MAIN, BETA, GLOBAL))
    without = dict.fromkeys(
        ("context", "conversation", "document", "rejection", "unconfirmed", "item"), "1000000"
    )
    listed = [command for command in READING if command not in ("documents show", "memory phases show")]
    alone = {command: said(command, without, BETA) for command in listed}
    ids = with_service(lambda service: furnish_with(service, ALPHA))
    assert {command: said(command, ids, BETA) for command in listed} == alone
    for group in WORDS:
        for command, has_own in READING.items():
            check_shown(command, said(command, ids, group), group, has_own)
    exported, text, section = (tmp_path / name for name in ("exported.jsonl", "text.md", "section.md"))
    text.write_text("none")
    section.write_text("## None\n\nnone\n")
    monkeypatch.setenv("VISUAL", "true")
    good("memory", "export", str(exported), "--user", USER, "--group", GLOBAL)
    for group in (GLOBAL, BETA, ALPHA):
        before = with_service(everything)
        given = {
            **ids,
            "file": transcript_of(group, transcripts),
            "folder": tmp_path / "sessions",
            "text": text,
            "section": section,
        }
        for command in WRITING:
            named = {**given, "file": exported} if command == "memory import" else given
            check_shown(command, said(command, named, group), group, has_own=False)
        after = with_service(everything)
        assert {name for name in after if after[name] != before[name]} <= {group}


def test_a_group_is_shown_the_same_however_much_others_store(
    transcripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHEPHERD_EMBEDDING_ENGINE", "none")
    alone = shown_among(lambda service: service, transcripts)
    monkeypatch.setenv("SHEPHERD_MEMORY_DATABASE", str(tmp_path / "others.db"))
    others = shown_among(AmongOthers, transcripts)
    for (command, without), (_, text) in zip(alone, others, strict=True):
        assert text == without, command


def shown_among(beside: Callable[[Service], Any], transcripts: Path) -> list[tuple[str, str]]:
    """What beta is shown by the commands that read, its rows by the order in which they were stored."""

    def furnish_both(service: Service) -> dict[str, Any]:
        used = beside(service)
        furnish(used, GLOBAL, transcripts)
        return furnish(used, BETA, transcripts)

    ids = with_service(furnish_both)
    texts = [(command, printed(command, ids, BETA)) for command in READING]
    shown = with_service(lambda service: Shown.read(service, BETA))
    return [(command, lasting(text)) for command, text in shown.ordered(texts)]


def check_shown(command: str, text: str, group: str, has_own: bool) -> None:
    found = words_in(text)
    assert found <= SEEN[group], command
    assert not has_own or group in found, command
    assert ALPHA in SEEN[group] or ALPHA not in text, command


def test_main_is_shown_the_items_of_all_groups_labelled(transcripts: Path) -> None:
    ids = with_service(lambda service: furnish(service, ALPHA, transcripts))
    assert [item["group_name"] for item in data("queue", "list", "--user", USER)] == [ALPHA]
    assert good("queue", "list", "--user", USER).stdout.split("\t")[:1] == [ALPHA]
    item, shown = str(ids["item"]), with_service(lambda service: as_shown(service, ALPHA, ids))["item"]
    assert run("queue", "drop", item, "--user", USER, "--group", BETA).exit_code == 3
    assert run("queue", "retry", item, "--user", USER, "--group", GLOBAL).exit_code == 3
    assert data("queue", "drop", "--all-waiting", "--user", USER, "--group", BETA) == {"dropped": []}
    assert run("queue", "list", "--all-users", "--group", BETA).exit_code == 2
    assert data("queue", "drop", item, "--user", USER) == {"dropped": [ids["item"]]}
    assert data("queue", "retry", str(shown), "--user", USER, "--group", ALPHA) == {"retried": [shown]}


def test_what_has_failed_is_retried_in_the_group_that_is_named_alone(transcripts: Path) -> None:
    ids = with_service(lambda service: furnish(service, ALPHA, transcripts))
    with_service(lambda service: fail_all(service.database))
    shown = with_service(lambda service: as_shown(service, ALPHA, ids))
    assert data("queue", "retry", "--all-failed", "--group", BETA) == {"retried": []}
    assert data("queue", "retry", "--all-failed", "--group", ALPHA) == {
        "retried": [{"user": USER, "id": shown["item"]}]
    }


def fail_all(database: Database) -> None:
    with database.write() as tx:
        tx.execute("update jobs set status = 'failed', ended_at = queued_at where status = 'waiting'")


def test_transcripts_go_to_the_group_that_is_named_and_stay_there(transcripts: Path) -> None:
    with_service(lambda service: furnish(service, MAIN, transcripts))
    path = transcript_of(MAIN, transcripts)
    copy = transcripts / "other" / "copy.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    taken = data("memory", "ingest", "--file", str(copy), "--group", ALPHA, "--user", USER, "--no-embed")
    assert (taken["group"], taken["entries"]) == (ALPHA, 2)
    assert data("memory", "ingest", "--file", str(copy), "--user", USER, "--no-embed")["entries"] == 0
    again = data("memory", "ingest", "--file", str(copy), "--group", BETA, "--user", USER, "--no-embed")
    assert again["elsewhere"] == {"other/copy.jsonl": "it was taken in for another group, and stays there"}
    listed = data("memory", "conversations", "--source", "claude-code", "--user", USER)
    groups = {one["file_key"]: one["group_name"] for one in listed}
    assert groups == {"main/session.jsonl": MAIN, "other/copy.jsonl": ALPHA}
    assert "GROUP" not in good("memory", "conversations", "--user", USER, "--group", BETA).output
    assert f"- group: {ALPHA}" in good("transcript", "copy", "--user", USER).stdout
    assert run("transcript", "copy", "--user", USER, "--group", BETA).exit_code == 3
    assert run("memory", "forget", "--file", "other/copy.jsonl", "--user", USER).exit_code == 3
    forget = ("memory", "forget", "--file", "other/copy.jsonl", "--user", USER, "--group", ALPHA)
    assert data(*forget, "--yes")["documents"] == 2


def test_only_main_may_ask_for_all_groups_to_be_erased(transcripts: Path) -> None:
    with_service(lambda service: furnish(service, MAIN, transcripts))
    refused = run("memory", "erase", "--yes", "--user", USER, "--group", ALPHA)
    assert (refused.exit_code, "all groups" in refused.output) == (2, True)
    assert data("facts", "list", "--user", USER)
