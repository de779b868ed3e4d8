"""Forgetting over HTTP, and what memory tools returned in proxied chats."""

from typing import Any

import pytest

from tests.provider import ScriptedProvider, chat
from tests.server.calling import CHATS, call, call_json
from tests.server.serving import Running, StartServer

STATEMENT = "My favorite color is teal."
RETURNED = f"Found 1 memory:\n1. [relevance 0.90, 2026-09-21] user: {STATEMENT}"
NAME = "mcp__shepherd__search_memory"
ASKED = {"role": "user", "content": "Which color do I like?"}

LOOPS: dict[str, dict[str, Any]] = {
    "openai": {
        "messages": [
            ASKED,
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": NAME, "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": RETURNED},
        ]
    },
    "anthropic": {
        "max_tokens": 100,
        "messages": [
            ASKED,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": NAME, "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": RETURNED}]},
        ],
    },
    "responses": {
        "input": [
            ASKED,
            {"type": "function_call", "call_id": "c1", "name": NAME, "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": RETURNED},
        ]
    },
}  # fmt: skip


@pytest.fixture
def site(start: StartServer, provider: ScriptedProvider) -> Running:
    provider.default = chat("I see.")
    return start(user_id="steve", embedding_engine="none")


def test_what_a_memory_tool_returned_to_a_proxied_chat_is_not_stored(site: Running) -> None:
    for wire, request in LOOPS.items():
        reply = call_json(site.url, "POST", CHATS[wire], {"model": "m", **request})
        assert (reply.status, reply.header("x-shepherd-remembered")) == (200, "true"), wire
    stored = b"".join(site.service.export("steve"))
    assert b"teal" not in stored
    assert stored.count(b"Which color do I like?") >= 1


def test_what_goes_together_is_shown_before_it_is_deleted(site: Running) -> None:
    site.service.remember("steve", [{"role": "user", "content": STATEMENT, "id": "m1"}], "monday")
    site.service.add_document("steve", "Wears teal.", session_id="monday", made_of="m1")
    site.service.set_fact("steve", "color_preference", "teal")
    (said, note) = site.service.documents("steve")
    plan = call(site.url, "GET", f"/v1/memory/forget?document={said.id}").json
    assert (plan["facts"], plan["context"], plan["documents"]) == (0, 0, 2)
    assert [one["id"] for one in plan["goes"]] == [str(said.id), str(note.id)]
    assert plan["goes"][0]["text"] == STATEMENT
    only = call(site.url, "GET", f"/v1/memory/forget?document={said.id}&only=true").json
    assert only["documents"] == 1
    both = call(site.url, "DELETE", f"/v1/memory/documents/{said.id}?only=true&same=true")
    assert both.status == 400
    gone = call(site.url, "DELETE", f"/v1/memory/documents/{said.id}").json
    assert gone == {"facts": 0, "context": 0, "documents": 2}


@pytest.mark.parametrize(
    ("query", "status"),
    [("fact=pet", 404), ("document=7", 404), ("session=s", 404), ("", 400), ("fact=a&document=1", 400)],
)
def test_what_cannot_be_forgotten_is_not_shown(site: Running, query: str, status: int) -> None:
    assert call(site.url, "GET", f"/v1/memory/forget?{query}").status == status
