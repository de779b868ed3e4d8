"""`shepherd recall`, and what stands behind it: `memory reembed`, `memory why`, the state of the engine."""

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from shepherd_memory import Hit
from shepherd_memory.frontends.terminal.hits import MEANINGS
from shepherd_memory.frontends.terminal.tables import width
from shepherd_memory.service import Service
from tests.fork_server import Popen
from tests.fork_server import run as run_process
from tests.terminal.shell import COMMAND, data, good, on_terminal, process, rows, run, with_service

BOLD = re.compile("\x1b\\[1m\x1b\\[4m(.*?)\x1b\\[0m")
ANY_STYLE = re.compile("\x1b\\[[0-9;]*m")

SAID = [
    {"role": "user", "content": "I moved to Lisbon with my dog Rex.", "created_at": "2026-06-02T09:30:00Z"},
    {"role": "assistant", "content": "Does Rex like the beach?", "created_at": "2026-06-02T09:30:20Z"},
    {"role": "user", "content": "The vet wants him on a diet.", "speaker_name": "Steve"},
]


@pytest.fixture
def keyword_only() -> None:
    """No embedding: what is tested then is the command, not the model."""
    good("config", "embedding_engine", "none")


@pytest.fixture
def told() -> None:
    good("remember", "--session", "june", stdin=json.dumps(SAID))


def inject(text: str, user_id: str = "ann", session_id: str = "") -> str:
    """Put memories into a prompt as a frontend would; the request's id."""

    def ask(service: Service) -> str:
        return service.inject(user_id, [{"role": "user", "content": text}], session_id=session_id).request

    return str(with_service(ask))


def plain(seen: str) -> str:
    return ANY_STYLE.sub("", seen)


def test_what_one_process_remembers_another_recalls_with_no_worker() -> None:
    assert process("remember", "I moved to Lisbon last month").returncode == 0
    found = process("recall", "when did I move?")
    assert (found.returncode, found.stdout.count("\n")) == (0, 1)
    confidence, said, who, kind, _, text = found.stdout.rstrip("\n").split("\t")
    assert 0 < float(confidence) <= 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", said)
    assert (who, kind, text) == ("user", "document", "I moved to Lisbon last month")
    assert found.stderr == "", "the command that needs the model embeds what the others have stored"


def test_what_other_commands_stored_is_embedded_by_the_first_that_needs_the_model() -> None:
    good("remember", "I moved to Lisbon last month")
    good("facts", "set", "pet", "a parrot named Kiwi")
    good("context", "add", "Where do I work?", "At the harbour")
    assert data("queue", "status")["embedding"]["waiting"] == 3
    found = data("recall", "a bird", "--threshold", "0", "--explain")["hits"]
    assert "Kiwi" in found[0]["text"]
    assert found[0]["parts"]["vector"] > 0
    assert data("queue", "status")["embedding"]["waiting"] == 0


def test_a_large_backlog_is_left_to_a_worker_and_told_of() -> None:
    many = [{"role": "user", "content": f"note {number} about the vet"} for number in range(65)]
    good("remember", "--session", "s", stdin=json.dumps(many))
    found = good("recall", "vet")
    assert "65 entries not embedded yet, and found by keyword only" in found.stderr
    assert "memory reembed` embeds them" in found.stderr


@pytest.mark.usefixtures("keyword_only", "told")
def test_a_hit_on_a_terminal_has_date_who_kind_and_its_words_marked() -> None:
    code, seen = on_terminal("recall", "the vet's diets")
    assert code == 0
    heading, text, *_ = plain(seen).splitlines()
    assert re.fullmatch(r"1\. [01]\.\d\d  20\d\d-\d\d-\d\d \d\d:\d\d  Steve  document \d+", heading)
    assert text.strip() == "The vet wants him on a diet."
    assert BOLD.findall(seen) == ["vet", "diet"]


@pytest.mark.usefixtures("keyword_only", "told")
def test_a_pipe_gets_whole_hits_without_marks() -> None:
    good("documents", "add", f"{'long ' * 300}vet")
    texts = [row[-1] for row in rows("recall", "vet", "--threshold", "0")]
    assert f"{'long ' * 300}vet" in texts
    assert "\x1b" not in "".join(texts)


@pytest.mark.usefixtures("keyword_only")
@pytest.mark.parametrize("columns", [80, 40, 5])
def test_a_long_text_is_cut_around_the_match(columns: int) -> None:
    good("documents", "add", f"{'before it ' * 200}the vet of Lisbon{' after it' * 200}")
    code, seen = on_terminal("recall", "which vet in Lisbon?", columns=columns)
    lines = plain(seen).splitlines()
    assert code == 0
    assert len(lines) <= 6
    assert all(width(line) <= max(columns, 12) for line in lines)
    if columns > 5:
        assert BOLD.findall(seen) == ["vet", "Lisbon"]
        assert lines[1].strip().startswith("…")
        assert lines[-2].endswith("…")


@pytest.mark.usefixtures("keyword_only")
@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("私は東京に住んでいます", "東京", ["東京"]),
        ("Ein CAFÉ in Łódź", "cafe lodz", ["CAFÉ", "Łódź"]),
        ("We use C++ and snake_case_names", "c++ names", ["C++", "names"]),
        ("It cost 1,000.50 euros, he ran", "1000.50 running", ["1,000.50"]),
        ("Anna's running shoes", "anna runs", ["Anna", "running"]),
    ],
)
def test_words_are_marked_as_they_are_matched(text: str, query: str, marked: list[str]) -> None:
    good("documents", "add", text)
    assert BOLD.findall(on_terminal("recall", query, "--threshold", "0")[1]) == marked


@pytest.mark.usefixtures("keyword_only")
def test_what_is_found_cannot_drive_the_terminal() -> None:
    good("documents", "add", "\x1b[2J\x07 the vet\x9b31m \u202e", "--speaker", "\x1b]0;owned\x07")
    for query, *args in (("vet",), ("vet", "--explain"), ("vet", "--json"), ("chromodynamics",)):
        _, seen = on_terminal("recall", query, *args)
        assert "vet" in seen
        assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(ANY_STYLE.sub("", seen))


@pytest.mark.usefixtures("keyword_only", "told")
def test_abstaining_is_said_and_is_no_failure() -> None:
    result = good("recall", "quantum chromodynamics")
    assert result.stdout == ""
    assert "nothing recalled: nothing stored is close enough" in result.stderr
    assert "--threshold 0" in result.stderr
    assert len(result.stderr.splitlines()) == 1 + 3
    assert len(good("recall", "quantum chromodynamics", "--limit", "1").stderr.splitlines()) == 1 + 1
    shown = data("recall", "quantum chromodynamics")
    assert (shown["hits"], shown["abstained"]) == ([], True)
    assert shown["reason"]
    assert len(data("recall", "quantum chromodynamics", "--threshold", "0")["hits"]) == 3
    assert data("recall", "vet", "--user", "unknown")["reason"].startswith("the user is unknown")
    assert "nothing is stored for this user" in good("recall", "vet", "--user", "bob").stderr


@pytest.mark.usefixtures("keyword_only", "told")
def test_json_has_everything_about_a_hit() -> None:
    (hit,) = data("recall", "vet", "--limit", "1")["hits"]
    assert (hit["kind"], hit["text"], hit["speaker_name"]) == ("document", SAID[2]["content"], "Steve")
    assert (hit["session_id"], hit["parts"]) == ("june", None)
    assert set(hit) >= {"id", "score", "confidence", "created_at", "message_id"}
    explained = data("recall", "vet", "--limit", "1", "--explain")["hits"][0]["parts"]
    assert sum(explained.values()) == pytest.approx(hit["score"], abs=0.01)


@pytest.mark.usefixtures("keyword_only", "told")
def test_kinds_and_limit_choose_among_the_hits() -> None:
    good("facts", "set", "vet", "Dr Silva")
    good("context", "add", "Who is the vet?", "Dr Silva")
    assert {row[3] for row in rows("recall", "vet", "--threshold", "0")} == {"fact", "context", "document"}
    assert [row[3] for row in rows("recall", "vet", "--kind", "fact")] == ["fact"]
    chosen = rows("recall", "vet", "--kind", "fact", "--kind", "context")
    assert {row[3] for row in chosen} == {"fact", "context"}
    assert "Who is the vet? → Dr Silva" in {row[5] for row in chosen}
    assert len(rows("recall", "vet", "--threshold", "0", "--limit", "2")) == 2


@pytest.mark.usefixtures("keyword_only", "told")
@pytest.mark.parametrize(
    "args",
    [["--kind", "cat"], ["--limit", "0"], ["--threshold", "1.1"], ["--now", "soon"], ["--user", "a\0b"]],
)
def test_what_cannot_be_asked_is_refused(args: list[str]) -> None:
    assert run("recall", "vet", *args).exit_code == 2


@pytest.mark.usefixtures("told")
def test_explain_shows_the_parts_aligned_and_what_they_mean() -> None:
    good("memory", "reembed")
    _, seen = on_terminal("recall", "what did Steve say in June 2026 about the vet?", "--explain")
    lines = plain(seen).splitlines()
    start = next(number for number, line in enumerate(lines) if line.split()[:1] == ["score"])
    header = lines[start].split()
    table = [line for line in lines[start : start + 5] if line[:2].strip() in ("", "1.", "2.", "3.") and line]
    assert {"keyword", "vector", "recency"} <= set(header)
    assert len({len(line) for line in table}) == 1, "the columns line up"
    legend = [line.split()[0] for line in lines[start + len(table) :] if line]
    assert legend[: len(header) + 1] == [*header, "confidence"]
    one_row = rows("recall", "vet", "--explain")[0]
    assert "keyword=" in one_row[-1]
    assert "=-0" not in one_row[-1].replace("=-0.", "")


@pytest.mark.usefixtures("told")
def test_every_part_of_a_score_has_a_meaning() -> None:
    parts = data("recall", "vet", "--explain")["hits"][0]["parts"]
    assert set(parts) == set(MEANINGS)


@pytest.mark.usefixtures("keyword_only", "told")
def test_now_is_what_relative_dates_are_reckoned_from() -> None:
    query = "what happened two weeks ago?"
    first = data("recall", query, "--now", "2026-06-16T12:00:00+00:00", "--explain", "--threshold", "0")
    assert any(hit["parts"]["date"] > 0 for hit in first["hits"])
    later = data("recall", query, "--now", "2027-06-16T12:00:00+00:00", "--explain", "--threshold", "0")
    assert not any(hit["parts"]["date"] for hit in later["hits"])


@pytest.mark.usefixtures("told")
def test_reembed_embeds_what_waits_and_says_with_what() -> None:
    assert data("queue", "status")["embedding"]["waiting"] == 3
    result = good("memory", "reembed")
    assert result.stdout == ""
    assert "embedded 3 entries with all-MiniLM-L6-v2 (onnx)" in result.stderr
    assert data("memory", "reembed") == {
        "engine": "onnx",
        "model": "all-MiniLM-L6-v2",
        "embedded": 0,
        "waiting": 0,
    }
    assert data("memory", "stats")["rows"]["vectors"] == 3
    assert "not embedded yet" not in good("recall", "vet").stderr


@pytest.mark.usefixtures("told")
def test_reembed_redoes_what_is_of_another_model() -> None:
    good("memory", "reembed")

    def change_model(service: Service) -> None:
        with service.database.write() as tx:
            tx.execute("update vectors set model = 'old'")

    with_service(change_model)
    assert data("memory", "reembed")["embedded"] == 3
    assert data("memory", "stats")["rows"]["vectors"] == 3


@pytest.mark.usefixtures("told")
def test_reembed_shows_its_progress_on_a_terminal() -> None:
    code, seen = on_terminal("memory", "reembed")
    assert (code, "3/3" in seen, "100%" in seen) == (0, True, True)


@pytest.fixture
def heeded_ctrl_c() -> Iterator[None]:
    """What a shell runs in the background ignores Ctrl-C, and so does what that starts: not here."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("heeded_ctrl_c")
def test_reembed_can_be_stopped_and_goes_on_where_it_was() -> None:
    many = [{"role": "user", "content": f"note {number}: {'word ' * 40}"} for number in range(200)]
    good("remember", "--session", "s", stdin=json.dumps(many))
    ours, theirs = os.openpty()
    started = Popen[bytes]([*COMMAND, "memory", "reembed"], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen, done = b"", 0
    with suppress(OSError):
        while piece := os.read(ours, 4096):
            seen += piece
            shown = re.search(rb"\b([1-9]\d*)/200", seen)
            if shown and not done:
                done = int(shown[1])
                started.send_signal(signal.SIGINT)
    os.close(ours)
    assert started.wait(60) == 1, seen
    assert b"the same command goes on" in seen
    left = data("queue", "status")["embedding"]["waiting"]
    assert 0 < left <= 200 - done < 200, seen
    assert data("memory", "stats")["rows"]["vectors"] >= 200 - left
    assert data("memory", "reembed")["embedded"] == left


@pytest.mark.usefixtures("told")
def test_a_model_that_is_missing_is_said_and_the_rest_works() -> None:
    good("config", "embedding_engine", "openai")
    result = good("recall", "vet")
    assert "The vet wants him on a diet." in result.stdout
    assert "recall works by keyword only: the openai engine needs embedding_endpoint" in result.stderr
    assert result.stderr.count("keyword only") == 1
    failed = run("memory", "reembed")
    assert (failed.exit_code, "the openai engine needs" in failed.stderr) == (5, True)
    shown = data("queue", "status")
    assert shown["healthy"], "keyword search is no illness"
    assert "recall works by keyword only" in shown["embedding"]["problem"]
    assert "recall works by keyword only" in dict(rows("queue", "status"))["embedding"]
    assert "recall works by keyword only" in dict(rows("memory", "stats"))["embedding"]


def test_only_models_of_sentence_transformers_are_downloaded() -> None:
    refused = run("memory", "reembed", "--download")
    assert (refused.exit_code, "embedding_engine is onnx" in refused.stderr) == (2, True)


def test_recall_goes_on_where_a_package_of_the_model_cannot_be_loaded() -> None:
    hide = "import sys; sys.modules['onnxruntime'] = None; "
    hidden = f"{hide}from shepherd_memory.frontends.cli import main; main()"
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60}
    good("remember", "The vet wants him on a diet.")
    found = run_process([sys.executable, "-c", hidden, "recall", "vet"], **options)
    assert (found.returncode, "The vet wants" in found.stdout) == (0, True)
    assert "recall works by keyword only" in found.stderr
    assert "onnxruntime" in found.stderr


@pytest.mark.usefixtures("keyword_only", "told")
def test_without_an_engine_nothing_is_said_to_wait() -> None:
    assert good("recall", "vet").stderr == ""
    assert dict(rows("queue", "status"))["embedding"] == "off: recall works by keyword only"
    assert run("memory", "reembed").exit_code == 5


@pytest.mark.usefixtures("told")
def test_status_says_what_waits_and_how_long() -> None:
    embedding = data("queue", "status")["embedding"]
    assert (embedding["engine"], embedding["model"]) == ("onnx", "all-MiniLM-L6-v2")
    assert (embedding["waiting"], embedding["problem"]) == (3, "")
    assert embedding["lag_seconds"] >= 0
    assert dict(rows("queue", "status"))["embedding"].startswith("onnx, all-MiniLM-L6-v2; 3 entries wait")
    good("remember", "hello", "--user", "bob")
    assert data("memory", "stats")["embedding"]["waiting"] == 3, "only ann's"


@pytest.mark.usefixtures("keyword_only", "told")
def test_why_shows_what_went_into_which_prompt() -> None:
    good("facts", "set", "city", "Lisbon")
    first, second = inject("what about the vet?", session_id="july"), inject("and Rex, my dog?")
    every = data("memory", "why")
    assert [one["request"] for one in every] == sorted(
        (one["request"] for one in every), key=[second, first].index
    )
    one = next(one for one in every if one["request"] == first and one["text"] == SAID[2]["content"])
    assert (one["kind"], one["query"], one["session_id"]) == ("document", "what about the vet?", "july")
    assert 0 < one["confidence"] <= 1
    assert {one["request"] for one in data("memory", "why", first)} == {first}
    (line,) = [row for row in rows("memory", "why", first) if row[-1] == SAID[2]["content"]]
    when, request, asked, kind, _, confidence, score, _ = line
    assert (request, asked, kind) == (first, "what about the vet?", "document")
    assert all((when, confidence, score))
    assert len(data("memory", "why", "--limit", "1")) == 1


@pytest.mark.usefixtures("keyword_only", "told")
def test_why_on_a_terminal_is_grouped_by_request() -> None:
    good("facts", "set", "city", "Lisbon")
    request = inject("what about the vet?")
    code, seen = on_terminal("memory", "why", columns=70)
    heading, header, *lines = seen.splitlines()
    assert (code, f"request {request}" in heading, "what about the vet?" in heading) == (0, True, True)
    assert header.split() == ["KIND", "ID", "CONFIDENCE", "SCORE", "TEXT"]
    assert any("city: Lisbon" in line for line in lines)
    assert all(width(line) <= 70 for line in seen.splitlines())


@pytest.mark.usefixtures("keyword_only", "told")
def test_why_says_when_something_is_deleted_since() -> None:
    request = inject("what about the vet?")
    (entry,) = [one["entry_id"] for one in data("memory", "why") if one["text"] == SAID[2]["content"]]
    good("documents", "delete", str(entry), "--yes")
    deleted = [row for row in rows("memory", "why", request) if row[4] == str(entry)]
    assert [row[-1] for row in deleted] == ["(deleted since)"]
    assert [one["text"] for one in data("memory", "why", request) if one["entry_id"] == entry] == [None]


@pytest.mark.usefixtures("keyword_only", "told")
def test_why_of_one_user_is_nobody_elses() -> None:
    request = inject("what about the vet?")
    assert run("memory", "why", request, "--user", "bob").exit_code == 3
    assert data("memory", "why", "--user", "bob") == []
    assert run("memory", "why", "nosuchrequest").exit_code == 3
    assert "nothing was put into a prompt of bob yet" in good("memory", "why", "--user", "bob").stderr


def test_the_public_names_are_there() -> None:
    import shepherd_memory

    assert all(getattr(shepherd_memory, name) for name in ("Hit", "Injected", "Recalled"))
    assert Hit.__name__ == "Hit"
