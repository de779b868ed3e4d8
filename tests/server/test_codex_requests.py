"""Requests as Codex 0.166.0 sends them: whose they are, and what of them is remembered."""

import json
from typing import Any

import pytest

from tests.provider import ScriptedProvider, ToolCall, chat, responses_stream
from tests.server.calling import Reply, bearer, call_json, new_key
from tests.server.serving import Running, StartServer

THREAD = "01a1ed78-bf2a-7160-9ff7-0aae510d982a"
TYPED = "My bike is a green Brompton."
AGENTS_MD = (
    "# AGENTS.md instructions for /home/ann/shop\n\n<INSTRUCTIONS>\nHOUSERULES: tabs.\n\n</INSTRUCTIONS>"
)
ENVIRONMENT = (
    "<environment_context>\n  <cwd>/work/HOUSERULES</cwd>\n  <shell>bash</shell>\n</environment_context>"
)
COMPACT = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM."
SUMMARY = (
    "Another language model started to solve this problem and produced a summary of its thinking process."
    " Here is the summary: HOUSERULES"
)


def item(role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return {"type": "message", "id": f"msg_{len(texts)}", "role": role, "content": content}


OPENING = [
    item("developer", "You are a coding agent running in the Codex CLI. HOUSERULES"),
    item("developer", "<skills_instructions>\nHOUSERULES\n</skills_instructions>"),
    item("user", AGENTS_MD, ENVIRONMENT),
]


def headers(kind: str = "turn", **more: str) -> dict[str, str]:
    turn = {"session_id": THREAD, "thread_id": THREAD, "request_kind": kind, "thread_source": "user"}
    return {
        "originator": "codex_exec",
        "User-Agent": "codex_exec/0.166.0 (Debian 12.0.0; x86_64) unknown (codex_exec; 0.166.0)",
        "session-id": THREAD,
        "thread-id": THREAD,
        "x-client-request-id": THREAD,
        "x-codex-turn-metadata": json.dumps(turn),
        **more,
    }


def request(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "stream": True,
        "input": [*OPENING, *items],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": THREAD,
        **fields,
    }


@pytest.fixture
def codex(start: StartServer, provider: ScriptedProvider) -> Running:
    provider.default = chat("Noted.")
    return start(user_id="steve")


def send(codex: Running, asked: dict[str, Any], with_headers: dict[str, str] | None = None) -> Reply:
    return call_json(codex.url, "POST", "/v1/responses", asked, with_headers or headers())


def test_its_session_is_the_session_and_only_what_was_typed_is_stored(codex: Running) -> None:
    reply = send(codex, request(item("user", TYPED)))
    assert (reply.status, reply.header("x-shepherd-memory")) == (200, "on")
    assert codex.said("steve") == [("user", TYPED), ("assistant", "Noted.")]
    assert {document.session_id for document in codex.service.documents("steve")} == {THREAD}
    assert codex.said(THREAD) == []


def moved(folder: str) -> dict[str, Any]:
    return item("user", f"<environment_context>\n  <cwd>{folder}</cwd>\n</environment_context>")


@pytest.mark.parametrize(
    ("items", "folder"),
    [([], "/work/HOUSERULES"), ([item("assistant", "Moved."), moved("/work/two")], "/work/two")],
)
def test_the_folder_that_it_works_in_is_its_sessions(
    codex: Running, items: list[dict[str, Any]], folder: str
) -> None:
    send(codex, request(*items, item("user", TYPED)))
    codex.service.transcripts.poll()
    assert [one.cwd for one in codex.service.conversations("steve")] == [folder]


def test_another_program_with_such_a_message_has_no_folder(codex: Running) -> None:
    call_json(codex.url, "POST", "/v1/responses", request(item("user", TYPED)), {"User-Agent": "mine/1"})
    codex.service.transcripts.poll()
    assert [one.cwd for one in codex.service.conversations("steve")] == [""]


def test_a_personal_key_is_taken_from_it(codex: Running) -> None:
    key = bearer(new_key(codex.service, "ana"))
    assert send(codex, request(item("user", TYPED)), {**headers(), **key}).status == 200
    assert codex.said("ana") == [("user", TYPED), ("assistant", "Noted.")]
    assert codex.said("steve") == []


def test_what_the_program_says_is_not_looked_for(codex: Running, provider: ScriptedProvider) -> None:
    codex.service.remember("steve", [{"role": "user", "content": "HOUSERULES say to use tabs"}], "before")
    codex.service.remember("steve", [{"role": "user", "content": "My bike has a bell"}], "before")
    asked = request(item("user", "Has my bike a bell?"))
    assert int(send(codex, asked).header("x-shepherd-injected") or 0) == 1
    *before, last = provider.requests[-1].json["input"]
    assert before == OPENING
    assert last["content"][0]["text"] == "Has my bike a bell?"
    assert "My bike has a bell" in last["content"][1]["text"]
    assert "HOUSERULES" not in last["content"][1]["text"]


def test_a_tool_loop_keeps_its_block_and_is_stored_once(codex: Running, provider: ScriptedProvider) -> None:
    codex.service.set_fact("steve", "bike", "green")
    provider.script(responses_stream(ToolCall("call_2", "exec_command", '{"cmd": "ls"}')))
    loop = [
        {
            "type": "function_call",
            "id": "fc_2",
            "name": "exec_command",
            "arguments": "{}",
            "call_id": "call_2",
        },
        {"type": "function_call_output", "id": "fco_2", "call_id": "call_2", "output": "HOUSERULES"},
    ]
    asked = item("user", "Which colour is my bike?")
    for items in ([asked], [asked, *loop]):
        assert send(codex, request(*items)).status == 200
    first, second = (received.json["input"] for received in provider.requests)
    assert len(first[-1]["content"]) == 2
    assert second[: len(first)] == first
    assert codex.said("steve") == [("user", "Which colour is my bike?"), ("assistant", "Noted.")]


def test_what_was_typed_after_a_summary_is_stored_without_it(codex: Running) -> None:
    send(codex, request(item("user", TYPED), item("user", SUMMARY), item("user", "And again?")))
    assert codex.said("steve") == [("user", "And again?"), ("assistant", "Noted.")]


def test_marks_around_an_image_are_left_out(codex: Running) -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    said = item("user", '<image name=[Image #1] path="p.png">', "</image>", "What is this?")
    said["content"].insert(1, picture)
    send(codex, request(said))
    assert codex.said("steve") == [("user", "What is this?"), ("assistant", "Noted.")]


@pytest.mark.parametrize(
    ("items", "with_headers"),
    [
        ([item("user", TYPED), item("user", COMPACT)], headers()),
        ([item("user", TYPED)], headers("compaction")),
        ([item("user", TYPED)], headers("prewarm")),
        ([item("user", TYPED), {"type": "compaction_trigger"}], headers()),
        ([item("user", TYPED)], headers(**{"x-openai-subagent": "review"})),
        (
            [item("user", "<next_prompt_suggestion>\n[SUGGESTION MODE: …]\n</next_prompt_suggestion>")],
            headers(),
        ),
    ],
    ids=["summary", "compaction", "prewarm", "compaction trigger", "sub-agent", "suggestion"],
)
def test_what_the_program_asks_for_itself_is_passed_on_and_not_remembered(
    codex: Running,
    provider: ScriptedProvider,
    items: list[dict[str, Any]],
    with_headers: dict[str, str],
) -> None:
    codex.service.set_fact("steve", "bike", "green")
    asked = request(*items)
    reply = send(codex, asked, with_headers)
    assert (reply.status, reply.header("x-shepherd-memory")) == (200, "off")
    assert provider.requests[-1].json == asked
    assert codex.said("steve") == []


@pytest.mark.parametrize("turn", ["", "{", "[]", '{"request_kind": 5}', '{"a": 1}', "{" * 20_000])
def test_metadata_that_says_nothing_is_no_reason_to_forget(codex: Running, turn: str) -> None:
    send(codex, request(item("user", TYPED)), headers() | {"x-codex-turn-metadata": turn})
    assert codex.said("steve") == [("user", TYPED), ("assistant", "Noted.")]
