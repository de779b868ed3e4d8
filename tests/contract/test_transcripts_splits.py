"""However a file grows, cut anywhere and read after each growth, it comes to what the whole comes to."""

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shepherd_memory.service import Service
from shepherd_memory.transcripts import ingestion, reading
from tests.contract.given import ManualClock, examples, memory
from tests.transcripts import BEGAN, MINUTE, agent_line, codex_lines, joined, output_line, taken_in, user_line

GAP = 60
MAX_LINE = 3000
HUGE = b'{"type":"user","message":{"role":"user","content":"' + b"x" * MAX_LINE + b'"}}'
USER_LINE = orjson.dumps(user_line(3, "said plainly"))

numbers = itertools.count()


@pytest.fixture(scope="module")
def service(module_url: str) -> Iterator[Service]:
    with memory(module_url, ManualClock(), conversation_gap_minutes=GAP) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few lines are several batches, blocks and a line that is too long."""
    monkeypatch.setattr(ingestion, "BATCH_ENTRIES", 3)
    monkeypatch.setattr(reading, "BLOCK_BYTES", 700)
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", MAX_LINE)


def timeless(line: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key != "timestamp"}


TEXTS = st.sampled_from(["tea", "ünï → 茶 🫖", "two\nlines", "a \0 b", " ", "</system-reminder>", "😀" * 30])
IDS = st.integers(0, 6)
MOMENTS = st.sampled_from([0, 1, GAP - 1, GAP, GAP + 1, -GAP, 10 * GAP, 11 * GAP, 10**7]).map(
    lambda minutes: BEGAN + minutes * MINUTE
)
SAID = st.builds(user_line, IDS, TEXTS, MOMENTS) | st.builds(agent_line, IDS, TEXTS, MOMENTS)
OBJECTS = (
    SAID
    | SAID.map(timeless)
    | st.builds(agent_line, IDS, TEXTS, MOMENTS, st.sampled_from(["Bash", "Read"]))
    | st.builds(output_line, IDS, TEXTS)
    | st.builds(user_line, IDS, TEXTS, MOMENTS, isMeta=st.just(True))
    | st.builds(user_line, IDS, TEXTS, MOMENTS, isSidechain=st.just(True))
    | st.sampled_from([{"type": "summary", "summary": "tea"}, {"type": "next-year's"}, {"type": 7}])
)
ODD = [
    b"",
    b"   ",
    b"\r",
    b"not json",
    b'{"type":"user","message":{"role":"us',
    b"[1, 2]",
    b"7",
    b"null",
    b"\xff\xfe\xfd",
    b"\xef\xbb\xbf" + USER_LINE,
    USER_LINE + b"\r",
    USER_LINE + b"   ",
    USER_LINE.replace(b"plainly", b"\\ud83d"),
    USER_LINE.replace(b"plainly", b"\\u0000 and \\udc00"),
    USER_LINE.replace(b"plainly", b"\xc3"),
    USER_LINE.replace(b'"uuid":"user-3"', b'"uuid":NaN'),
    HUGE,
]
LINES = st.lists(OBJECTS.map(orjson.dumps) | st.sampled_from(ODD), max_size=12)
CUTS = st.lists(st.floats(0, 1), max_size=8)


def whole_file(lines: Sequence[bytes], has_end: bool) -> bytes:
    """Begins with a line by which it is known whatever follows; the last one may lack its end."""
    first = orjson.dumps(user_line(100, at=BEGAN))
    return b"\n".join([first, *lines]) + (b"\n" if has_end else b"")


def ingest(service: Service, user_id: str, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    # The time of the file stands for what has none: here it is the same however often it was written.
    os.utime(path, ns=(BEGAN * 1000, BEGAN * 1000 + len(content) * 1000))
    found = service.transcripts.ingest(user_id, path)
    assert found.problem in ("", "no transcript of a known agent")


def results(service: Service, user_id: str, content: bytes) -> dict[str, Any]:
    """What it came to, and what of it is unread: the end that a line got late is never looked at again."""
    found = taken_in(service.database, user_id)
    for file in service.transcripts.files(user_id):
        found["unread"] = content[file.read_through :].strip()
    found["files"] = [(*row[:8], *row[10:]) for row in found["files"]]
    return found


def check_splits(service: Service, folder: Path, content: bytes, cuts: Sequence[float]) -> None:
    number = next(numbers)
    whole, parts = f"whole {number}", f"parts {number}"
    path = folder / "kettle" / "session.jsonl"
    path.parent.mkdir(exist_ok=True)
    for cut in sorted({round(cut * len(content)) for cut in cuts}):
        ingest(service, parts, path, content[:cut])
    ingest(service, parts, path, content)
    path.unlink()
    ingest(service, whole, path, content)
    expected, found = results(service, whole, content), results(service, parts, content)
    for table, rows in expected.items():
        assert found[table] == rows, table
    assert len(expected["documents"]) == sum(row[6] for row in expected["conversations"])


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(lines=LINES, has_end=st.booleans(), cuts=CUTS)
@example(lines=[USER_LINE], has_end=True, cuts=[0.999])
@example(lines=[], has_end=False, cuts=[0.5])
@example(
    lines=[
        orjson.dumps(user_line(1, at=BEGAN + 9 * MINUTE)),
        orjson.dumps(user_line(2, at=BEGAN + MINUTE)),
        orjson.dumps(timeless(user_line(3))),
    ],
    has_end=True,
    cuts=[0.8],
)
def test_a_claude_code_file_in_pieces_comes_to_the_same_rows_as_the_whole(
    service: Service, tmp_path: Path, lines: list[bytes], has_end: bool, cuts: list[float]
) -> None:
    check_splits(service, tmp_path, whole_file(lines, has_end), cuts)


@settings(max_examples=examples(15), suppress_health_check=list(HealthCheck))
@given(cuts=CUTS, turns=st.integers(0, 5), odd=st.lists(st.sampled_from(ODD), max_size=3))
def test_a_codex_file_in_pieces_comes_to_the_same_rows_as_the_whole(
    service: Service, tmp_path: Path, cuts: list[float], turns: int, odd: list[bytes]
) -> None:
    content = joined(codex_lines(turns)) + b"".join(line + b"\n" for line in odd)
    check_splits(service, tmp_path, content + joined(codex_lines(2)[1:]), cuts)


def grown(length: int, calls: bool = False) -> dict[str, Any]:
    """One answer, as it was when it had so many words."""
    line = agent_line(5, " ".join(f"word{number}" for number in range(length)))
    if calls:
        line["message"]["content"].append({"type": "tool_use", "id": "toolu_9", "name": "Bash", "input": {}})
    return line


@pytest.mark.parametrize("cuts", [[], [0.5], [0.2, 0.4, 0.6, 0.8]])
def test_an_answer_that_is_written_again_while_it_grows_is_one_and_whole(
    service: Service, tmp_path: Path, cuts: list[float]
) -> None:
    lines = [user_line(4), grown(2), grown(5), grown(9), user_line(6), grown(9), grown(9, calls=True)]
    check_splits(service, tmp_path, joined(lines), cuts)
    texts = [document.text for document in service.documents(f"parts {next(numbers) - 1}")]
    assert sum(text.startswith("word0") for text in texts) == 1
    assert sum("word8" in text for text in texts) == 1
