"""Real transcripts, where there are any, against a count of their lines that shares no code with ours."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.contract.given import ManualClock, memory
from tests.real_transcripts import FOLDER, real_files_here

NOBODYS_WORDS = (
    "<local-command-",
    "<bash-stdout>",
    "<task-notification>",
    "[Request interrupted by user",
    "Caveat: The messages below",
    "This session is being continued",
)


def lines_of(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in path.read_text(errors="replace").split("\n"):
        try:
            read = json.loads(line)
        except ValueError:
            continue
        found += [read] if isinstance(read, dict) else []
    return found


def claude_code(lines: Iterable[dict[str, Any]]) -> Counter[str]:
    """By the table of the reference: text and tools of both sides, nothing of meta or sidechains."""
    said = set()
    for number, line in enumerate(lines):
        role, message = line.get("type"), line.get("message")
        if role == "attachment" and line["attachment"].get("commandMode") == "prompt":
            said.add(("user", line["attachment"].get("source_uuid") or number, ""))
        if role not in ("user", "assistant") or line.get("isMeta") or line.get("isSidechain"):
            continue
        if line.get("isCompactSummary") or not isinstance(message, dict) or message.get("role") != role:
            continue
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        kept = [shown for block in blocks if isinstance(block, dict) and (shown := words_in(block, role))]
        if kept:
            said.add((role, message.get("id") or line.get("uuid") or number, json.dumps(kept)))
    return Counter(role for role, *_ in said)


def words_in(block: dict[str, Any], role: str) -> str:
    if block.get("type") == "tool_use" and role == "assistant":
        return str(block["id"])
    text = block.get("text") if block.get("type") == "text" else ""
    text = text.strip() if isinstance(text, str) else ""
    return "" if text.startswith(NOBODYS_WORDS) or text == "(no content)" else text


def codex(lines: Iterable[dict[str, Any]]) -> Counter[str]:
    """What the user typed is an event; answers and calls of tools are items."""
    found: Counter[str] = Counter()
    for line in lines:
        item = line.get("payload") or {}
        kind = f"{line.get('type')}:{item.get('type')}"
        is_typed = kind == "event_msg:user_message" and item["message"].strip()
        if is_typed or (kind == "event_msg:item_completed" and item["item"]["type"] == "UserMessage"):
            found["user"] += 1
        is_answer = kind == "response_item:message" and item.get("role") == "assistant"
        if kind.startswith("response_item:") and (kind.endswith("_call") or is_answer):
            found["assistant"] += 1
    return found


def test_every_real_file_has_as_many_entries_as_an_independent_count_finds(
    url: str, clock: ManualClock
) -> None:
    with memory(url, clock) as service:
        for number, file in enumerate(real_files_here()):
            user_id, path = f"reader {number}", file.path()
            found = service.transcripts.ingest(user_id, path, FOLDER)
            counted = (codex if file.source == "codex" else claude_code)(lines_of(path))
            stored = Counter(document.role for document in service.documents(user_id, limit=10_000))
            assert stored == counted, path.name
            assert (found.entries, found.problem) == (counted.total(), "")
            lines = path.read_bytes().rstrip(b"\n").count(b"\n") + 1
            assert found.entries + found.known + sum(found.skipped.values()) == lines, path.name
            (file,) = service.transcripts.files(user_id)
            assert file.read_through == path.stat().st_size
            grouped = sum(one.entries for one in service.conversations(user_id))
            assert grouped == counted.total()
            assert service.transcripts.ingest(user_id, path, FOLDER).outcome == "unchanged"
