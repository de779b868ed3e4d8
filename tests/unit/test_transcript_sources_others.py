"""The lines of Codex, of Pi, of Pi rewritten as Claude Code's, and of shepherd's own export."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from shepherd_memory.maintenance import line_kinds
from shepherd_memory.transcripts.sources import SkippedLine, Source, TranscriptEntry, source_of
from shepherd_memory.transcripts.sources.codex import CODEX, EVENTS, ITEMS, LINES, TURNS
from shepherd_memory.transcripts.sources.pi import PI
from shepherd_memory.transcripts.sources.pi_converted import PI_CONVERTED
from shepherd_memory.transcripts.sources.shepherd_export import FORMAT, SHEPHERD_EXPORT

NOON = "2026-03-04T12:00:00.250Z"
NOON_US = 1_772_625_600_250_000

META = {
    "id": "0199-a",
    "timestamp": NOON,
    "cwd": "/home/ada/engine",
    "originator": "codex_cli_rs",
    "cli_version": "0.104.0",
    "source": "cli",
    "git": {"branch": "main"},
}


def wrapped(kind: str, payload: object, timestamp: str = NOON) -> dict[str, Any]:
    return {"timestamp": timestamp, "type": kind, "payload": payload}


def event(kind: str, /, **fields: object) -> dict[str, Any]:
    return wrapped("event_msg", {"type": kind, **fields})


def item(kind: str, /, **fields: object) -> dict[str, Any]:
    return wrapped("response_item", {"type": kind, **fields})


def message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def typed(text: str) -> dict[str, Any]:
    return event("user_message", message=text, images=[])


def answered(text: str) -> dict[str, Any]:
    return wrapped("response_item", message("assistant", text))


def all_of(source: Source, lines: Sequence[object]) -> list[TranscriptEntry | SkippedLine]:
    reader = source.reader()
    return [reader.read(line) for line in lines]


def entries_of(source: Source, lines: Sequence[object]) -> list[TranscriptEntry]:
    return [one for one in all_of(source, lines) if isinstance(one, TranscriptEntry)]


def reason(source: Source, line: object) -> str:
    found = source.reader().read(line)
    assert isinstance(found, SkippedLine), found
    return found.reason


def test_of_a_rollout_what_was_typed_and_answered_is_kept() -> None:
    lines = [wrapped("session_meta", META), typed(" Why? "), answered("Because.")]
    found = entries_of(CODEX, lines)
    assert [(one.role, one.text) for one in found] == [("user", "Why?"), ("assistant", "Because.")]
    assert {(one.said_at, one.cwd) for one in found} == {(NOON_US, "/home/ada/engine")}
    assert source_of(lines) is CODEX


@pytest.mark.parametrize(
    ("call", "name", "line"),
    [
        (
            {"type": "function_call", "name": "exec_command", "arguments": '{"cmd":"ls -l\\nrm x"}'},
            "exec_command",
            "[exec_command: ls -l]",
        ),
        (
            {"type": "function_call", "name": "shell", "arguments": '{"command":["bash","-lc","make test"]}'},
            "shell",
            "[shell: make test]",
        ),
        (
            {"type": "function_call", "name": "shell", "arguments": '{"command":["git","status"]}'},
            "shell",
            "[shell: git status]",
        ),
        ({"type": "function_call", "name": "plan", "arguments": "{half"}, "plan", "[plan: {half]"),
        ({"type": "function_call", "name": "plan", "arguments": None}, "plan", "[plan]"),
        (
            {
                "type": "custom_tool_call",
                "name": "apply_patch",
                "input": "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** End Patch",
            },
            "apply_patch",
            "[apply_patch: src/a.py]",
        ),
        (
            {"type": "local_shell_call", "action": {"type": "exec", "command": ["pwd"]}},
            "shell",
            "[shell: pwd]",
        ),
        (
            {"type": "web_search_call", "action": {"type": "search", "query": "sqlite wal"}},
            "web_search",
            "[web_search: sqlite wal]",
        ),
    ],
)
def test_a_call_in_a_rollout_is_one_line_and_a_name(call: dict[str, Any], name: str, line: str) -> None:
    [found] = entries_of(CODEX, [wrapped("response_item", {**call, "call_id": "call_1"})])
    assert (found.role, found.text, found.tool_names) == ("assistant", line, (name,))
    assert found.entry_id.startswith("call_1")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (wrapped("response_item", message("user", "# AGENTS.md instructions for /x")), "bookkeeping"),
        (wrapped("response_item", message("user", "Why?")), "bookkeeping"),
        (wrapped("response_item", message("developer", "Be brief.")), "meta"),
        (wrapped("response_item", message("system", "Be brief.")), "meta"),
        (event("agent_message", message="Because."), "duplicate"),
        (event("agent_reasoning", text="hm"), "thinking"),
        (item("reasoning", summary=[], encrypted_content="x"), "thinking"),
        (item("function_call_output", call_id="c", output="42"), "tool-output"),
        (item("custom_tool_call_output", call_id="c", output="42"), "tool-output"),
        (event("token_count", info=None), "bookkeeping"),
        (event("user_message", message="", images=["data:…"]), "empty"),
        (event("user_message", message="<x>", kind="environment_context"), "bookkeeping"),
        (wrapped("compacted", {"message": "They fixed the parser."}), "summary"),
        (item("compaction", encrypted_content="x"), "summary"),
        (wrapped("turn_context", {"cwd": "/x"}), "bookkeeping"),
        ({"record_type": "state"}, "bookkeeping"),
        (event("telepathy"), "unknown"),
        (item("telepathy"), "unknown"),
        ({"type": "telepathy", "payload": {}}, "unknown"),
        ({"silly": "this"}, "unknown"),
        (event("user_message", message=7), "broken"),
        (wrapped("event_msg", "x"), "broken"),
        (wrapped("event_msg", {}), "broken"),
        (wrapped("response_item", {"type": "message", "role": "assistant", "content": 7}), "broken"),
        (wrapped("response_item", {"type": "message", "role": "assistant", "content": ["x"]}), "broken"),
        (wrapped("response_item", {"type": "message", "role": "robot", "content": []}), "broken"),
        (wrapped("response_item", {"type": "message", "content": []}), "broken"),
        (item("function_call", call_id="c", arguments="{}"), "broken"),
        (42, "broken"),
    ],
)
def test_what_is_not_said_in_a_rollout_is_skipped_for_its_reason(line: object, why: str) -> None:
    assert reason(CODEX, line) == why


def turn_item(kind: str, /, **fields: object) -> dict[str, Any]:
    item = {"type": kind, "id": "item-1", **fields}
    return event("item_completed", thread_id="0199-a", turn_id="turn-1", item=item)


def user_item(*texts: str, **fields: object) -> dict[str, Any]:
    content = [{"type": "text", "text": text, "text_elements": []} for text in texts]
    return turn_item("UserMessage", content=content, **fields)


def test_later_versions_say_what_was_typed_in_the_items_of_a_turn() -> None:
    lines = [
        wrapped("session_meta", {**META, "history_mode": "paginated"}),
        wrapped("response_item", message("user", "# AGENTS.md instructions for /x")),
        wrapped("response_item", message("user", "Why? Say.")),
        user_item("Why? ", "Say."),
        turn_item("AgentMessage", content=[{"type": "Text", "text": "Because."}]),
        answered("Because."),
        turn_item("CommandExecution", command=["ls"], aggregated_output="a.py"),
        user_item("Why? ", "Say.", id="item-2"),
    ]
    found = entries_of(CODEX, lines)
    assert [one.text for one in found] == ["Why? Say.", "Because.", "Why? Say."]
    assert found[0].entry_id.startswith("item-1")
    assert len({one.entry_id for one in found}) == 3


@pytest.mark.parametrize("order", [1, -1])
def test_a_version_that_says_what_was_typed_in_two_events_is_heard_once(order: int) -> None:
    both = [user_item("Why?"), typed("Why?")][::order]
    reasons = [one.reason for one in all_of(CODEX, both * 2) if isinstance(one, SkippedLine)]
    assert reasons == ["duplicate"] * 2
    assert [one.text for one in entries_of(CODEX, both * 2)] == ["Why?"] * 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (turn_item("AgentMessage", content=[{"type": "Text", "text": "x"}]), "bookkeeping"),
        (turn_item("HookPrompt", fragments=[{"text": "x"}]), "bookkeeping"),
        (turn_item("Plan", text="x"), "bookkeeping"),
        (turn_item("CommandExecution", aggregated_output='"type":"UserMessage"'), "bookkeeping"),
        (event("item_completed", item=None), "bookkeeping"),
        (event("item_completed", item=["UserMessage"]), "bookkeeping"),
        (turn_item("UserMessage", content=[{"type": "local_image", "path": "a.png"}]), "empty"),
        (turn_item("UserMessage", content=[]), "empty"),
        (turn_item("UserMessage", content=7), "broken"),
        (turn_item("UserMessage", content=["x"]), "broken"),
        (turn_item("UserMessage"), "broken"),
    ],
)
def test_what_is_not_typed_in_the_items_of_a_turn_is_skipped(line: dict[str, Any], why: str) -> None:
    assert reason(CODEX, line) == why
    skipped = CODEX.can_skip(json.dumps(line, separators=(",", ":")).encode())
    assert skipped is None or skipped.reason == why


def test_the_items_of_a_turn_that_are_no_users_are_skipped_unread() -> None:
    for line, is_skipped in ((turn_item("CommandExecution", command=["ls"]), True), (user_item("x"), False)):
        raw = json.dumps(line, separators=(",", ":")).encode()
        assert (CODEX.can_skip(raw) is not None) == is_skipped


@pytest.mark.parametrize(
    "text",
    [
        "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nFix it.\n",
        "# Context from my IDE setup:\n\n## Open tabs:\n- a.py: a.py\n\n## My request:\nFix it.",
        "# Files mentioned by the user:\r\n\r\n## a.png: /a.png\r\n\r\n## My request:\r\nFix it.",
        "# Selected text:\n\n## Selection 1\n## My request:\nan old one\n\n## My request:\nFix it.",
        "\n# Response annotations:\n[]\n\n## My request:\nFix it.",
        "## My request for Codex: Fix it.",
    ],
)
def test_what_an_editor_puts_before_a_request_is_left_out(text: str) -> None:
    for line in (typed(text), user_item(text)):
        assert [one.text for one in entries_of(CODEX, [line])] == ["Fix it."]


@pytest.mark.parametrize(
    "text", ["# Context from my IDE setup:\n\n## Active file: a.py\n", "# Selected text:\n\n## My request:\n"]
)
def test_where_an_editor_says_all_the_user_has_typed_nothing(text: str) -> None:
    assert reason(CODEX, typed(text)) == "meta"


@pytest.mark.parametrize(
    "text",
    [
        "# My notes\n\n## My request:\nsee there",
        "so:\n## My request: x",
        "# Why?",
        "## My requests\n\nare two",
    ],
)
def test_headings_that_a_user_types_stay(text: str) -> None:
    assert [one.text for one in entries_of(CODEX, [typed(text)])] == [text]


def test_what_a_program_that_drives_codex_puts_before_a_request_is_left_out() -> None:
    text = "<system_instruction>\nWork in /x.\n</system_instruction>\n\nFix it."
    assert [one.text for one in entries_of(CODEX, [typed(text)])] == ["Fix it."]


def test_the_same_said_twice_in_a_rollout_is_two_entries_with_ids_that_last() -> None:
    lines = [typed("yes"), typed("yes"), answered("yes"), {**typed("yes"), "timestamp": "2026-03-05"}]
    names = [one.entry_id for one in entries_of(CODEX, lines)]
    assert len(set(names)) == 4
    assert [one.entry_id for one in entries_of(CODEX, lines)] == names


def test_calls_whose_model_numbers_them_anew_each_turn_are_different_entries() -> None:
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "call_0"}
    lines = [wrapped("response_item", call), wrapped("response_item", call, "2026-03-05T12:00:00Z")]
    assert len({one.entry_id for one in entries_of(CODEX, lines)}) == 2


def test_a_rollout_says_what_it_is_about_and_where_each_turn_was() -> None:
    reader = CODEX.reader()
    for line in (wrapped("session_meta", META), wrapped("session_meta", {**META, "id": "parent"})):
        reader.read(line)
    about = reader.about()
    assert (about.session_id, about.originator, about.version) == ("0199-a", "codex_cli_rs", "0.104.0")
    assert (about.cwd, about.git_branch, about.is_subagent) == ("/home/ada/engine", "main", False)
    reader.read(wrapped("turn_context", {"cwd": "/elsewhere"}))
    found = reader.read(typed("x"))
    assert isinstance(found, TranscriptEntry)
    assert (found.cwd, reader.about().cwd) == ("/elsewhere", "/home/ada/engine")


def test_what_a_sub_agent_of_codex_was_told_is_not_the_users_word() -> None:
    reader = CODEX.reader()
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "0199-a"}}}
    reader.read(wrapped("session_meta", {**META, "id": "0199-b", "source": spawned}))
    assert reader.about().is_subagent
    assert reader.read(typed("Look into it")) == SkippedLine("sidechain")
    assert reader.read(answered("Done")) == SkippedLine("sidechain")
    assert reader.read(event("token_count")) == SkippedLine("bookkeeping")


def uuid7(moment_us: int) -> str:
    made = f"{moment_us // 1000:012x}"
    return f"{made[:8]}-{made[8:]}-7010-8b5d-7fad920aa6f9"


@pytest.mark.parametrize("opening", ["task_started", "turn_started", "turn_context"])
def test_what_a_session_repeats_of_the_one_it_was_begun_from_keeps_its_time(opening: str) -> None:
    day = 86_400_000_000
    then, now = uuid7(NOON_US - 7 * day), uuid7(NOON_US + 5_000_000)

    def turn(turn_id: object) -> dict[str, Any]:
        given = {"turn_id": turn_id}
        return wrapped(opening, given) if opening == "turn_context" else event(opening, **given)

    fork = {**META, "id": uuid7(NOON_US), "forked_from_id": "0199-p"}
    lines = [
        wrapped("session_meta", fork),
        wrapped("session_meta", {**META, "id": "0199-p"}),
        turn(then),
        typed("I live in Lisbon"),
        answered("So."),
        turn(now),
        typed("I live in Porto"),
        turn("no id"),
        answered("Oh."),
    ]
    found = entries_of(CODEX, lines)
    assert [one.said_at for one in found] == [NOON_US - 7 * day] * 2 + [NOON_US] * 2
    plain = entries_of(CODEX, [wrapped("session_meta", META), *lines[1:]])
    assert [one.said_at for one in plain] == [NOON_US] * 4
    assert [one.entry_id for one in plain] == [one.entry_id for one in found]


@pytest.mark.parametrize(
    "turn_id", [None, 7, "", "x" * 36, uuid7(NOON_US).replace("-7", "-4"), uuid7(0xFFFFFFFFFFFF * 1000)]
)
def test_a_turn_whose_id_does_not_tell_its_time_changes_none(turn_id: object) -> None:
    fork = {**META, "id": uuid7(NOON_US + 1_000_000), "forked_from_id": "0199-p"}
    lines = [wrapped("session_meta", fork), event("task_started", turn_id=turn_id), typed("Why?")]
    assert [one.said_at for one in entries_of(CODEX, lines)] == [NOON_US]


@pytest.mark.parametrize(
    ("fields", "is_subagent"),
    [
        ({"source": {"subagent": "review"}}, True),
        ({"source": {"internal": "memory_consolidation"}}, True),
        ({"thread_source": "subagent"}, True),
        ({"source": "exec", "thread_source": "memory_consolidation"}, True),
        ({"source": {"custom": "my-app"}, "thread_source": "user"}, False),
        ({"source": ["subagent"], "thread_source": ["subagent"]}, False),
        ({"source": "exec"}, False),
        ({"source": None}, False),
    ],
)
def test_sessions_that_codex_has_with_itself_are_no_users(fields: dict[str, Any], is_subagent: bool) -> None:
    reader = CODEX.reader()
    reader.read(wrapped("session_meta", {**META, **fields}))
    assert reader.about().is_subagent == is_subagent
    assert isinstance(reader.read(user_item("Why?")), SkippedLine) == is_subagent


OLD = [
    {"id": "old-1", "timestamp": NOON, "instructions": "Be brief.", "git": {"branch": "main"}},
    {"record_type": "state"},
    message("user", "<user_instructions>\n\nBe brief.\n\n</user_instructions>"),
    message("user", "<environment_context>\n  <cwd>/home/ada/old</cwd>\n</environment_context>"),
    message("user", "# AGENTS.md instructions for /home/ada"),
    message("user", "yes"),
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {
        "type": "function_call",
        "id": "fc_1",
        "name": "shell",
        "arguments": '{"command":["ls"]}',
        "call_id": "c1",
    },
    {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
    message("assistant", "Done."),
    message("user", "yes"),
]


def test_rollouts_of_older_versions_are_read_without_what_nobody_typed() -> None:
    assert source_of(OLD) is CODEX
    found = entries_of(CODEX, OLD)
    assert [one.text for one in found] == ["yes", "[shell: ls]", "Done.", "yes"]
    assert {(one.said_at, one.cwd) for one in found} == {(NOON_US, "/home/ada/old")}
    assert len({one.entry_id for one in found}) == 4
    reader = CODEX.reader()
    reasons = [one.reason for one in map(reader.read, OLD) if isinstance(one, SkippedLine)]
    assert reasons == [*["bookkeeping"] * 5, "thinking", "tool-output"]
    assert (reader.about().session_id, reader.about().cwd) == ("old-1", "/home/ada/old")


@pytest.mark.parametrize(
    "text",
    [
        "<turn_aborted>\nThe user interrupted it.\n</turn_aborted>",
        "<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>",
        "<user_shell_command>\nls\n</user_shell_command>",
        "<skill>\n<name>x</name>\n</skill>",
        "<subagent_notification>\n{}\n</subagent_notification>",
        "<permissions instructions>…</permissions instructions>",
    ],
)
def test_what_codex_writes_in_the_users_name_is_never_the_users_word(text: str) -> None:
    assert reason(CODEX, message("user", text)) == "bookkeeping"


def test_the_oldest_rollouts_name_the_folder_in_plain_words() -> None:
    context = "<environment_context>\nCurrent working directory: /home/ada/old\nApproval policy: never\n"
    lines = [
        {"id": "old-1", "timestamp": NOON, "instructions": None},
        message("user", context + "</environment_context>"),
        message("user", "Why?"),
    ]
    assert [(one.text, one.cwd) for one in entries_of(CODEX, lines)] == [("Why?", "/home/ada/old")]


@pytest.mark.parametrize("spacing", [(",", ":"), (", ", ": ")])
def test_what_can_be_skipped_unread_in_a_rollout_is_skipped_for_the_same_reason(
    spacing: tuple[str, str],
) -> None:
    lines = [event(kind, message="x") for kind in (*EVENTS, "user_message", "telepathy")]
    lines += [item(kind, content="x") for kind in (*ITEMS, "message", "function_call", "telepathy")]
    lines += [wrapped(kind, {"type": "token_count"}) for kind in LINES]
    lines += [{"ordinal": 7, **line} for line in lines]
    skipped = 0
    for line in lines:
        raw = json.dumps(line, separators=spacing).encode()
        why = CODEX.can_skip(raw)
        assert why is None or why == CODEX.reader().read(line)
        assert CODEX.can_skip(raw[:-2]) is None
        skipped += why is not None
    assert skipped == (2 * (len(EVENTS) - len(TURNS) + len(ITEMS)) if spacing == (",", ":") else 0)


SESSION = {"type": "session", "version": 3, "id": "pi-1", "timestamp": NOON, "cwd": "/home/ada/pi"}


def pi(role: str, entry_id: str | None = None, **fields: object) -> dict[str, Any]:
    line = {"type": "message", "timestamp": NOON, "message": {"role": role, **fields}}
    return line if entry_id is None else {**line, "id": entry_id, "parentId": None}


def test_of_a_session_of_pi_what_was_typed_and_answered_is_kept() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "I look."},
        {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "ls"}},
    ]
    lines = [
        SESSION,
        pi("user", "a1", content="Why?"),
        pi("assistant", "a2", content=blocks),
        pi("bashExecution", "a3", command="git status", output="clean"),
    ]
    assert source_of(lines) is PI
    assert entries_of(PI, lines) == [
        TranscriptEntry("a1", "user", "Why?", NOON_US, "/home/ada/pi"),
        TranscriptEntry("a2", "assistant", "I look.\n[bash: ls]", NOON_US, "/home/ada/pi", ("bash",)),
        TranscriptEntry("a3", "user", "!git status", NOON_US, "/home/ada/pi"),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('<skill name="tidy" location="/s/SKILL.md">\nRelative to /s.\n\nTidy.\n</skill>', "/skill:tidy"),
        (
            '<skill name="tidy" location="/s/SKILL.md">\nTidy.\n</skill>\n\nonly the parser',
            "/skill:tidy only the parser",
        ),
        ('<file name="/a.py">\nx = 1\n</file>\n<file name="/b.png"></file>\nExplain it', "Explain it"),
        ('<file name="/a.py">\nis not closed', '<file name="/a.py">\nis not closed'),
        ('<skill name="x"> is not closed', '<skill name="x"> is not closed'),
        ("what does <skill name= mean", "what does <skill name= mean"),
    ],
)
def test_of_a_users_message_in_pi_what_was_typed_is_kept(content: str, said: str) -> None:
    for form in (content, [{"type": "text", "text": content}]):
        assert [one.text for one in entries_of(PI, [pi("user", "a1", content=form)])] == [said]
    [answer] = entries_of(PI, [pi("assistant", "a1", content=content)])
    assert answer.text == content


def test_many_files_in_one_message_of_pi_are_passed_over_in_one_go() -> None:
    text = '<file name="x"></file>\n' * 100_000
    assert reason(PI, pi("user", content=text)) == "meta"
    assert [one.text for one in entries_of(PI, [pi("user", content=text + "So?")])] == ["So?"]


def test_the_first_version_of_pis_sessions_had_no_ids() -> None:
    lines = [pi("user", content="yes"), pi("user", content="yes")]
    lines.append(
        {"type": "message", "message": {"role": "user", "content": "no", "timestamp": NOON_US // 1000}}
    )
    found = entries_of(PI, lines)
    assert len({one.entry_id for one in found}) == 3
    assert {one.said_at for one in found} == {NOON_US}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (SESSION, "bookkeeping"),
        ({"type": "model_change", "modelId": "x"}, "bookkeeping"),
        ({"type": "leaf", "targetId": "a1"}, "bookkeeping"),
        ({"type": "active_tools_change", "tools": ["bash"]}, "bookkeeping"),
        ({"type": "compaction", "summary": "They fixed it."}, "summary"),
        ({"type": "branch_summary", "summary": "They tried."}, "summary"),
        ({"type": "custom_message", "content": "Injected"}, "meta"),
        (pi("toolResult", content=[{"type": "text", "text": "42"}]), "tool-output"),
        (pi("compactionSummary", summary="x"), "summary"),
        (pi("custom", content="x"), "meta"),
        (pi("assistant", content=[{"type": "thinking", "thinking": "hm"}]), "thinking"),
        (pi("user", content=[{"type": "image", "data": "A"}]), "empty"),
        (pi("user", content=" "), "empty"),
        ({"type": "telepathy"}, "unknown"),
        ({"silly": "this"}, "unknown"),
        (pi("user", content=7), "broken"),
        (pi("robot", content="x"), "broken"),
        (pi("bashExecution", command=7), "broken"),
        ({"type": "message", "message": "x"}, "broken"),
        ("x", "broken"),
    ],
)
def test_what_is_not_said_in_a_session_of_pi_is_skipped_for_its_reason(line: object, why: str) -> None:
    assert reason(PI, line) == why


def converted(role: str, text: str) -> dict[str, Any]:
    """A line as the script that converts Pi's sessions writes it."""
    return {
        "type": role,
        "message": {"role": role, "content": [{"type": "text", "text": text}]},
        "timestamp": NOON,
        "cwd": "/home/ada/pi",
        "sessionId": "pi-1",
    }


def test_a_converted_session_of_pi_is_told_from_claude_codes_own() -> None:
    lines = [
        converted("user", "Why?"),
        converted("assistant", "I look.\n\n[Used tools: bash, read]"),
        converted("assistant", "[Used tools: edit]"),
        converted("assistant", "See [1]"),
    ]
    assert source_of(lines) is PI_CONVERTED
    found = entries_of(PI_CONVERTED, lines)
    assert [one.tool_names for one in found] == [(), ("bash", "read"), ("edit",), ()]
    assert len({one.entry_id for one in found}) == 4
    reader = PI_CONVERTED.reader()
    reader.read(lines[0])
    assert (reader.about().session_id, reader.about().cwd) == ("pi-1", "/home/ada/pi")
    source = source_of([{**lines[0], "uuid": "u"}, *lines])
    assert source is not None
    assert source.name == "claude-code"


def document(**fields: object) -> dict[str, Any]:
    return {
        "line": "document",
        "session_id": "s-1",
        "message_id": "m-1",
        "type": "message",
        "role": "user",
        "text": "Why?",
        "tool_names": "",
        "cwd": "/home/ada",
        "created_at": NOON,
        **fields,
    }


HEADER = {"format": FORMAT, "version": 1, "exported_at": NOON}


def test_of_an_export_the_messages_are_read() -> None:
    lines = [
        HEADER,
        {"line": "fact", "key": "home_city", "value": "Lisbon"},
        document(),
        document(session_id="s-2"),
        document(message_id="m-2", role="assistant", text="So.", tool_names="Bash,Read"),
    ]
    assert FORMAT == line_kinds.FORMAT
    assert source_of(lines) is SHEPHERD_EXPORT
    found = entries_of(SHEPHERD_EXPORT, lines)
    assert [(one.text, one.tool_names) for one in found] == [
        ("Why?", ()),
        ("Why?", ()),
        ("So.", ("Bash", "Read")),
    ]
    assert len({one.entry_id for one in found}) == 3
    assert {(one.said_at, one.cwd) for one in found} == {(NOON_US, "/home/ada")}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (HEADER, "bookkeeping"),
        *(({"line": kind, "text": "x"}, "bookkeeping") for kind in line_kinds.KINDS if kind != "document"),
        (document(type="learning"), "bookkeeping"),
        (document(role="tool"), "tool-output"),
        (document(text=" "), "empty"),
        (document(text=None), "broken"),
        (document(role=["user"]), "broken"),
        ({"silly": "this"}, "unknown"),
        (42, "broken"),
    ],
)
def test_what_is_no_message_in_an_export_is_skipped_for_its_reason(line: object, why: str) -> None:
    assert reason(SHEPHERD_EXPORT, line) == why
    skipped = SHEPHERD_EXPORT.can_skip(json.dumps(line, separators=(",", ":")).encode())
    assert skipped is None or skipped.reason == why
