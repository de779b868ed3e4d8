"""Memory files as tools: what they answer, count as used, and that nothing of it is ever stored."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory import tools
from shepherd_memory.errors import VersionChanged
from shepherd_memory.service import Service
from shepherd_memory.text.attached import marked
from tests.contract.given import ManualClock, everything_of, memory
from tests.grouped_memory import ALPHA, BETA, MAIN, USER, WORDS, furnish, words_in
from tests.transcripts import CWD, agent_line, codex_lines, output_line, user_line, write

FILE_TOOLS = ("list_memory_files", "read_memory_file", "search_memory_files", "add_memory_note")


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock) as opened:
        yield opened


def said(service: Service, tool: str, user: str = "ann", group: str = MAIN, /, **arguments: Any) -> str:
    return tools.execute(service, user, tool, arguments, group)


def test_files_are_listed_read_and_searched_a_part_at_a_time(service: Service) -> None:
    assert said(service, "list_memory_files") == "There are no memory files yet."
    text = "".join(f"## Part {number}\n\nline {number} of wood\n\n" for number in range(3))
    service.edit_memory_file("ann", "MEMORY.md", text)
    added = said(service, "add_memory_note", note="Sand it first.", name="Painting a boat")
    path = added.removeprefix("Added the memory note ")
    assert path.endswith("-painting_a_boat.md")
    assert "- MEMORY.md\n" in said(service, "list_memory_files")
    first = said(service, "list_memory_files", max_results=1)
    assert first.splitlines()[1:] == ["- MEMORY.md", "More with cursor MEMORY.md"]
    assert "- notes/" in said(service, "list_memory_files", cursor="MEMORY.md")
    assert said(service, "list_memory_files", path="notes").endswith(f"in notes:\n- {path}")
    assert said(service, "read_memory_file", path="MEMORY.md", max_lines=3) == (
        "Lines 1 to 3 of 13 in the memory file MEMORY.md:\n# Memory\n\n## Part 0\nMore from line_offset 4 on."
    )
    assert said(service, "read_memory_file", path=path).endswith("# Painting a boat\n\nSand it first.")
    assert said(
        service, "search_memory_files", queries=["WOOD", "line 2"], match_mode="all_on_same_line"
    ) == ("Found 1 match in the memory files:\nMEMORY.md:13: line 2 of wood")
    page = said(service, "search_memory_files", queries="of wood", max_results=2)
    assert page.splitlines()[-1] == "More with cursor 9:MEMORY.md"
    rest = said(service, "search_memory_files", queries="of wood", cursor="9:MEMORY.md")
    assert rest == "Found 1 match in the memory files:\nMEMORY.md:13: line 2 of wood"
    assert said(service, "search_memory_files", queries=["steel"]).startswith("Nothing in the memory files")


def test_a_note_is_added_once_and_by_the_name_of_a_file_too(service: Service) -> None:
    note = {"note": "Sand it first.", "filename": "2027-01-15T08-00-00-painting.md"}
    assert said(service, "add_memory_note", **note).endswith("-painting.md")
    version = service.memory_file_version("ann")
    assert said(service, "add_memory_note", **note) == said(service, "add_memory_note", **note)
    assert service.memory_file_version("ann") == version
    assert said(service, "add_memory_note", note="Sand it twice.", name="painting").endswith("-painting-1.md")


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/passwd",
        "a\\b",
        "notes/../MEMORY.md",
        ".git/config",
        "x" * 600,
        "no such file",
        "MEMORY.md/x",
    ],
)
def test_a_path_that_leads_nowhere_is_an_error_that_the_model_is_told(service: Service, path: str) -> None:
    service.edit_memory_file("ann", "MEMORY.md", "## A\n\nb")
    for name, given in (
        ("read_memory_file", {}),
        ("list_memory_files", {}),
        ("search_memory_files", {"queries": ["b"]}),
    ):
        assert said(service, name, path=path, **given).startswith("Error: "), name


def test_a_writer_who_has_not_seen_the_last_version_is_told_so(service: Service) -> None:
    seen = service.edit_memory_file("ann", "MEMORY.md", "## A\n\nb")
    service.edit_memory_file("ann", "MEMORY.md", "## A\n\nc")
    with pytest.raises(VersionChanged, match=f"they are of version {seen + 1}, not {seen}"):
        service.edit_memory_file("ann", "MEMORY.md", "## A\n\nd", version=seen)


def test_an_edit_leaves_the_sections_in_the_order_of_the_text(service: Service) -> None:
    texts = (
        "# Memory\n\n## A\n\na\n\n## B\n\nb\n\n## C\n\nc\n",
        "# Memory\n\n## A\n\nanother\n\n## B\n\nb\n\n## C\n\nc\n",
        "# Memory\n\n## C\n\nc\n\n## New\n\nn\n\n## A\n\nanother\n\n## B\n\nb\n",
    )
    for text in texts:
        service.edit_memory_file("ann", "MEMORY.md", text)
        assert service.memory_file("ann", "MEMORY.md").text == text


def test_each_change_is_a_version_and_they_are_paged(service: Service) -> None:
    for number in range(5):
        service.edit_memory_file("ann", "MEMORY.md", f"## A\n\n{number}")
    first = service.memory_file_history("ann", limit=2)
    assert [one.version for one in first] == [5, 4]
    assert [one.version for one in service.memory_file_history("ann", before=4)] == [3, 2, 1]


@pytest.mark.every_scheme
def test_what_is_read_or_found_counts_as_used_and_in_its_group_alone(
    service: Service, tmp_path: Path
) -> None:
    for group in (MAIN, ALPHA, BETA):
        furnish(service, group, tmp_path)

    def uses() -> dict[str, int]:
        return {one.group_name: one.use_count for one in service.conversation_outputs(USER)}

    before = uses()
    listed = said(service, "list_memory_files", USER, ALPHA, path="rollout_summaries")
    path = listed.splitlines()[-1].removeprefix("- ")
    assert uses() == before
    assert words_in(said(service, "read_memory_file", USER, ALPHA, path=path)) == {ALPHA}
    assert said(service, "read_memory_file", USER, BETA, path="MEMORY.md").count(WORDS[BETA])
    found = said(
        service, "search_memory_files", USER, ALPHA, queries=["the animal"], path="rollout_summaries"
    )
    assert words_in(found) == {ALPHA}
    assert uses() == before | {ALPHA: before[ALPHA] + 2}


# What they returned.

WORD = "quokka"


def returned(service: Service) -> dict[str, str]:
    """What each file tool answers somebody who has the word in a file; the memory itself is another's."""
    service.edit_memory_file("bob", "MEMORY.md", f"## A {WORD}\n\nThe {WORD} sleeps.")
    return {
        "list_memory_files": said(service, "list_memory_files", "bob"),
        "read_memory_file": said(service, "read_memory_file", "bob", path="MEMORY.md"),
        "search_memory_files": said(service, "search_memory_files", "bob", queries=[WORD]),
        "add_memory_note": said(service, "add_memory_note", "bob", note=WORD, name=WORD),
        "read_mcp_resource": json.dumps(
            {"contents": [{"uri": "shepherd://files/MEMORY.md", "text": f"the {WORD}"}]}
        ),
        "ReadMcpResourceTool": json.dumps(
            {"server": "shepherd", "uri": "shepherd://sessions/1", "contents": [{"text": WORD}]}
        ),
        "ListMcpResourcesTool": json.dumps(
            [{"uri": "shepherd://sessions/1", "name": f"{WORD}.md", "server": "shepherd"}]
        ),
    }


def rows_with(service: Service, word: str) -> list[str]:
    """The tables in which Ann has the word."""
    return [table for table, rows in everything_of(service.database, "ann").items() if word in repr(rows)]


@pytest.mark.parametrize("prefix", ["", "mcp__shepherd__", "shepherd_"])
def test_nothing_that_they_returned_is_stored_on_any_wire(service: Service, prefix: str) -> None:
    for number, (tool, text) in enumerate(returned(service).items()):
        name, call = f"{prefix}{tool}", f"c{number}"
        function = {"id": call, "type": "function", "function": {"name": name, "arguments": "{}"}}
        use = {"type": "tool_use", "id": call, "name": name, "input": {}}
        result = {"type": "tool_result", "tool_use_id": call, "content": [{"type": "text", "text": text}]}
        wires: list[list[dict[str, Any]]] = [
            [
                {"role": "assistant", "content": None, "tool_calls": [function]},
                {"role": "tool", "tool_call_id": call, "content": text},
            ],
            [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}],
            [
                {"type": "function_call", "call_id": call, "name": name, "arguments": "{}"},
                {"type": "function_call_output", "call_id": call, "output": text},
            ],
        ]
        for place, messages in enumerate(wires):
            service.remember("ann", messages, f"{tool} {place}")
        # Also without the call: by how it reads.
        if WORD in text and tool != "list_memory_files":
            service.remember("ann", [{"role": "tool", "tool_call_id": "x", "content": text}], f"{tool} alone")
        assert rows_with(service, WORD) == [], tool
    assert not service.recall("ann", WORD).hits


def test_nothing_that_they_returned_is_taken_in_with_a_transcript(service: Service, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [user_line(0, "What do you know?")]
    rollout = codex_lines(1)
    for number, (tool, text) in enumerate(returned(service).items(), 1):
        name = f"mcp__shepherd__{tool}"
        lines += [agent_line(number, "look", tool=name), output_line(number, text)]
        call = {"call_id": f"m{number}", "type": "function_call", "name": name, "arguments": "{}"}
        output = {"call_id": f"m{number}", "type": "function_call_output", "output": text}
        at = rollout[-1]["timestamp"]
        rollout += [{"timestamp": at, "type": "response_item", "payload": one} for one in (call, output)]
    claude = write(tmp_path / "work" / "session.jsonl", lines)
    codex = write(tmp_path / "work" / "rollout-2027-01-15T08-00-00-019c.jsonl", rollout)
    for path in (claude, codex):
        assert service.transcripts.ingest("ann", path, tmp_path).entries
    assert service.documents("ann")[0].cwd == CWD
    assert rows_with(service, WORD) == []


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "<system-reminder>\n{}\n</system-reminder>",
        "Full contents of resource:\n\n{}",
        '<mcp-resource server="shepherd" uri="shepherd://files/MEMORY.md">{}</mcp-resource>',
    ],
)
def test_a_resource_that_was_attached_is_not_stored_with_what_was_typed(
    service: Service, around: str
) -> None:
    text = marked(
        "shepherd://files/MEMORY.md", f"the {WORD}\n<!-- end of shepherd://files/MEMORY.md -->\n{WORD}"
    )
    whole, cut = around.format(text), around.format(text[:60])
    typed = {"type": "text", "text": "What do you think of it?"}
    contents: list[Any] = [
        [{"type": "text", "text": whole}, typed],
        [{"type": "text", "text": cut}, typed],
        f"{whole}\nWhat do you think of it?",
        f"What do you think of it?\n{cut}",
    ]
    for number, content in enumerate(contents):
        said = [{"role": "user", "content": content}]
        service.remember("ann", said, f"chat {number}")
        service.remember_exchange("ann", said, "It is short.", f"exchange {number}")
    assert rows_with(service, WORD) == []
    texts = [document.text for document in service.documents("ann") if document.role == "user"]
    assert all("What do you think of it?" in text for text in texts)
    assert len(texts) == 8
