"""Agents reach the memory tools at /mcp with the official client, each one only its own memory."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import jsonschema
import pytest
import requests
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from shepherd_memory.memory import api_keys
from shepherd_memory.storage.clock import now_us
from shepherd_memory.tools import ALL_TOOLS
from tests.server.calling import Reply, bearer, call, call_json, new_key
from tests.server.serving import Running, StartServer

GOOD: dict[str, dict[str, Any]] = {
    "search_memory": {"query": "dog name"},
    "store_memory": {"question": "Why Lisbon?", "answer": "For the light"},
    "clear_memory": {"question": "Why Lisbon?"},
    "set_fact": {"key": "dog_name", "value": "Rex"},
    "get_fact": {"key": "dog_name"},
    "clear_fact": {"key": "dog_name"},
    "recall": {"query": "dog name", "min_confidence": 0},
    "list_facts": {},
    "fact_history": {"key": "dog_name"},
    "forget": {"kind": "fact", "id": "dog_name"},
    "clear_session": {"name": "Walks"},
    "list_sessions": {},
    "resume_session": {"session_id": "Walks", "save_current_as": "Now"},
    "search_sessions": {"query": "walk dog"},
    "read_session": {"session_id": "Walks", "from": 1, "max_messages": 5},
    "rename_session": {"session_id": "Walks", "name": "Long walks"},
    "list_memory_files": {"path": "", "max_results": 5},
    "read_memory_file": {"path": "memory_summary.md", "line_offset": 1, "max_lines": 5},
    "search_memory_files": {"queries": ["dog"], "match_mode": "any", "context_lines": 1, "line_count": 2},
    "add_memory_note": {"note": "We walk the dog at eight.", "name": "Walks"},
}
HANDSHAKE, NEWEST = "legacy", "auto"


@pytest.fixture
def running(server: StartServer) -> Running:
    return server(embedding_engine="none", rag_relevance_threshold=0.0)


@asynccontextmanager
async def connected(url: str, headers: Mapping[str, str], mode: str = HANDSHAKE) -> AsyncIterator[Client]:
    """The official client, over HTTP, with these headers on every request."""
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def with_client(
    url: str,
    headers: Mapping[str, str],
    use: Callable[[Client], Awaitable[Any]],
    mode: str = HANDSHAKE,
) -> Any:
    async def run() -> Any:
        async with connected(url, headers, mode) as client:
            return await use(client)

    return asyncio.run(run())


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert content.type == "text"
    return content.text


async def say(client: Client, name: str, /, **arguments: Any) -> str:
    return text_of(await client.call_tool(name, arguments))


def as_user(name: str) -> dict[str, str]:
    return {"X-Shepherd-User": name}


def rpc(method: str, params: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params or {}), **more}


def post(url: str, message: Any, headers: Mapping[str, str] | None = None) -> Reply:
    accept = {"Accept": "application/json, text/event-stream"}
    return call_json(url, "POST", "/mcp", message, {**accept, **(headers or {})})


@pytest.mark.parametrize("mode", [HANDSHAKE, NEWEST])
def test_the_client_finds_every_tool_with_a_valid_schema_and_a_hint_of_what_it_does(
    running: Running, mode: str
) -> None:
    listed = with_client(running.url, as_user("ann"), lambda client: client.list_tools(), mode)
    assert [tool.name for tool in listed.tools] == list(ALL_TOOLS) == list(GOOD)
    for tool in listed.tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["additionalProperties"] is False
        assert not {"user", "user_id", "_user_id"} & set(tool.input_schema["properties"])
        assert tool.description
        if tool.output_schema:
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
    hints = {tool.name: tool.annotations for tool in listed.tools if tool.annotations}
    assert len(hints) == len(listed.tools)
    reads = {name for name, hint in hints.items() if hint.read_only_hint}
    looks = {"list_sessions", "search_sessions", "read_session"}
    looks |= {"list_memory_files", "read_memory_file", "search_memory_files"}
    assert reads == {"search_memory", "get_fact", "recall", "list_facts", "fact_history", *looks}
    deletes = {name for name, hint in hints.items() if hint.destructive_hint}
    assert deletes == {"clear_memory", "clear_fact", "forget"}


def test_the_six_tools_for_conversations_in_a_row(running: Running) -> None:
    service, ann = running.service, as_user("ann")
    walks = service.start_session("ann", agent_name="Julian").session_id
    said = [{"role": "user", "content": "Rex walks far"}, {"role": "assistant", "content": "How far?"}]
    service.remember("ann", said, walks)

    today = service.list_sessions("ann").sessions[0].last_activity_at.date()

    async def use(client: Client) -> None:
        assert await say(client, "list_sessions") == (
            f'No saved conversations found.\nOther conversations:\n- [{walks}] "Rex walks far"'
            f" (active, 2 messages, last {today})"
        )
        assert await say(client, "clear_session", name="Walks 🐕") == (
            'Session saved as "Walks 🐕". The next message starts a fresh conversation.'
        )
        (entry,) = service.session_history("ann")
        listed = await say(client, "list_sessions")
        assert listed.startswith(f'Saved conversations:\n- [{entry.id}] "Walks 🐕" (saved 20')
        found = await say(client, "search_sessions", query="rex")
        assert found.startswith(f'Found 1 conversation(s):\n- [{walks}] "Walks 🐕" (')
        assert found.endswith("): Rex walks far")
        none = 'No conversations found matching "submarine".'
        assert await say(client, "search_sessions", query="submarine") == none
        assert await say(client, "rename_session", session_id=str(entry.id), name="Walks") == (
            f'Session {walks} renamed to "Walks".'
        )
        read = await say(client, "read_session", session_id="Walks", max_messages=1)
        first, message, more = read.split("\n")
        assert first == f"Messages 1 to 1 of 2 in session {walks}:"
        assert message.endswith(" ann] Rex walks far")
        assert more == "More from 2 on."
        resumed = await say(client, "resume_session", session_id=str(entry.id))
        assert resumed.startswith(f"Resuming session {walks}. The next message continues it.\n\nWhat follows")
        assert "[agent — Julian]: How far?\n</previous-session>" in resumed
        assert service.active_session("ann").session_id == walks  # type: ignore[union-attr]
        for name in ("resume_session", "read_session", "rename_session"):
            wrong = await client.call_tool(name, {"session_id": "nobody's", "name": "x"})
            assert wrong.is_error
            assert text_of(wrong).startswith('Error: there is no session "nobody\'s" here')

    with_client(running.url, ann, use)


def test_an_agent_is_told_how_to_use_the_memory(running: Running) -> None:
    async def instructions(client: Client) -> str | None:
        return client.instructions

    assert "2 to 5 keywords" in with_client(running.url, as_user("ann"), instructions)


@pytest.mark.parametrize("mode", [HANDSHAKE, NEWEST])
def test_every_tool_answers_good_arguments(running: Running, mode: str) -> None:
    started = running.service.start_session("ann").session_id
    running.service.remember("ann", [{"role": "user", "content": "We walk the dog"}], started)

    async def use(client: Client) -> None:
        await say(client, "set_fact", key="dog_name", value="Fido")
        for name, arguments in GOOD.items():
            if name in ("recall", "list_facts", "fact_history", "forget", "read_memory_file"):
                await say(client, "set_fact", key="dog_name", value="Rex")
            jsonschema.validate(arguments, ALL_TOOLS[name].parameters)
            result = await client.call_tool(name, arguments)
            assert not result.is_error, text_of(result)
            assert not text_of(result).startswith("Not found"), name
            if output := ALL_TOOLS[name].output:
                jsonschema.validate(result.structured_content, output)

    with_client(running.url, as_user("ann"), use, mode)


WRONG: list[Any] = [{}, None, 7, True, [1], {"a": 1}, "", "\0", "\ud800", "x" * 1_000_000, -1, 1e300]


@pytest.mark.parametrize("name", GOOD)
def test_no_argument_breaks_a_tool(running: Running, name: str) -> None:
    """Sent by hand where the client itself would not: over the wire anything can come."""
    parameters = list(ALL_TOOLS[name].parameters["properties"])
    tries: list[dict[str, Any]] = [{}, {"unheard_of": 1}, *({one: GOOD[name].get(one)} for one in parameters)]
    tries += [{**GOOD[name], one: wrong} for one in parameters for wrong in WRONG]
    for arguments in tries:
        reply = post(running.url, rpc("tools/call", {"name": name, "arguments": arguments}), as_user("ann"))
        assert reply.status == 200
        (content,) = reply.json["result"]["content"]
        assert reply.json["result"]["isError"] == content["text"].startswith("Error:")
    missing = post(running.url, rpc("tools/call", {"name": name, "arguments": {}}), as_user("ann"))
    assert missing.json["result"]["isError"] == bool(ALL_TOOLS[name].parameters["required"])


def test_recall_explains_what_each_memory_is_and_why_it_was_found(running: Running) -> None:
    running.service.set_fact("ann", "dog_name", "Rex")
    document = running.service.add_document("ann", "the dog Rex barks at the moon", session_id="night")

    async def use(client: Client) -> CallToolResult:
        return await client.call_tool("recall", {"query": "dog Rex"})

    result = with_client(running.url, as_user("ann"), use)
    hits = {hit["kind"]: hit for hit in result.structured_content["hits"]}
    assert hits["fact"]["id"] == "dog_name"
    assert hits["document"]["id"] == str(document)
    assert hits["document"]["session"] == "night"
    assert 0 < hits["fact"]["confidence"] <= 1
    assert sum(hits["fact"]["parts"].values()) == pytest.approx(hits["fact"]["score"], abs=0.01)
    assert f"[document {document}, 20" in text_of(result)
    assert "score" in text_of(result)
    assert "keyword" in text_of(result)


def test_what_an_agent_stores_is_found_by_the_api_and_what_it_forgets_by_nobody(running: Running) -> None:
    def recalled() -> str:
        url = f"{running.url}/v1/memory/recall"
        return requests.get(url, {"query": "dog name", "user": "ann"}, timeout=60).text

    async def store(client: Client) -> None:
        await say(client, "set_fact", key="dog_name", value="Bello")

    async def forget(client: Client) -> str:
        return await say(client, "forget", kind="fact", id="dog_name")

    with_client(running.url, as_user("ann"), store)
    assert "Bello" in recalled()
    assert with_client(running.url, as_user("ann"), forget) == "Deleted fact dog_name."
    assert "Bello" not in recalled()
    assert with_client(running.url, as_user("ann"), forget).startswith("Not found")
    for name in ("search_memory", "recall", "list_facts", "fact_history", "get_fact"):
        reply = post(running.url, rpc("tools/call", {"name": name, "arguments": GOOD[name]}), as_user("ann"))
        assert b"Bello" not in reply.body


def test_two_keys_at_once_never_meet(running: Running) -> None:
    keys = {name: bearer(new_key(running.service, name)) for name in ("ann", "bob")}

    async def use() -> None:
        async with AsyncExitStack() as stack:
            clients = {
                name: await stack.enter_async_context(connected(running.url, key))
                for name, key in keys.items()
            }
            for turn in range(10):
                stored = [
                    say(
                        client,
                        "set_fact",
                        key="pet",
                        value=f"{name}s-pet-{turn}",
                        _user_id="carl",
                        user="carl",
                    )
                    for name, client in clients.items()
                ]
                await asyncio.gather(*stored)
                for name, client in clients.items():
                    assert await say(client, "get_fact", key="pet") == f"pet = {name}s-pet-{turn}"
                    other = {"ann": "bob", "bob": "ann"}[name]
                    assert f"{other}s-pet" not in await say(client, "recall", query="pet", min_confidence=0)

    asyncio.run(use())
    assert running.service.facts("carl") == []


def test_a_session_id_gives_no_right_to_what_another_key_opened(running: Running) -> None:
    ann, bob = (bearer(new_key(running.service, name)) for name in ("ann", "bob"))
    running.service.set_fact("ann", "pet", "quokka")
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    opened = post(running.url, rpc("initialize", hello), ann)
    assert opened.status == 200
    session = opened.header("mcp-session-id") or "0123456789abcdef0123456789abcdef"
    asked = rpc("tools/call", {"name": "get_fact", "arguments": {"key": "pet"}})
    for version in ({}, {"MCP-Protocol-Version": "2025-06-18"}):
        reply = post(running.url, asked, {**bob, **version, "Mcp-Session-Id": session})
        assert b"quokka" not in reply.everything
        assert b"quokka" in post(running.url, asked, {**ann, **version, "Mcp-Session-Id": session}).body
    assert post(running.url, asked, {"Mcp-Session-Id": session}).status == 401


def test_a_revoked_key_ends_in_the_middle_of_a_connection(running: Running) -> None:
    ann = bearer(new_key(running.service, "ann"))

    async def use(client: Client) -> None:
        await say(client, "set_fact", key="pet", value="quokka")
        api_keys.revoke(running.service.database, "ann", now_us())
        with pytest.raises(MCPError, match="unknown or was revoked"):
            await say(client, "get_fact", key="pet")

    with_client(running.url, ann, use)


def test_a_key_for_any_user_speaks_for_whom_the_header_names_and_another_key_does_not(
    running: Running,
) -> None:
    app = bearer(new_key(running.service, "app", any_user=True))
    own = bearer(new_key(running.service, "bob"))
    running.service.set_fact("ann", "pet", "quokka")
    asked = rpc("tools/call", {"name": "get_fact", "arguments": {"key": "pet"}})
    assert b"quokka" in post(running.url, asked, {**app, **as_user("ann")}).body
    refused = post(running.url, asked, {**own, **as_user("ann")})
    assert refused.status == 403
    assert refused.json["error"]["message"].startswith("this API key acts for the user 'bob' only")


def test_without_a_user_every_tool_says_so(running: Running) -> None:
    for name, arguments in GOOD.items():
        reply = post(running.url, rpc("tools/call", {"name": name, "arguments": arguments}))
        assert reply.json["result"]["isError"]
        assert "the user is unknown" in reply.json["result"]["content"][0]["text"]


def test_twenty_calls_at_once_are_all_answered(running: Running) -> None:
    async def use(client: Client) -> list[str]:
        calls = [say(client, "set_fact", key=f"key_{number}", value=str(number)) for number in range(20)]
        return list(await asyncio.gather(*calls))

    answers = with_client(running.url, as_user("ann"), use)
    assert answers == [f"Stored: key_{number} = {number}" for number in range(20)]
    assert len(running.service.facts("ann")) == 20


def test_refusals_are_those_of_the_other_routes_in_the_form_of_json_rpc(running: Running) -> None:
    url, key = running.url, bearer(new_key(running.service, "ann"))
    refused = {
        421: post(url, rpc("ping"), {**key, "Host": "evil.example"}),
        403: post(url, rpc("ping"), {**key, "Origin": "http://evil.example"}),
        415: call(url, "POST", "/mcp", b"{}", {**key, "Content-Type": "text/plain"}),
        401: post(url, rpc("ping"), bearer("shp_0123456789ab_x")),
        405: call(url, "GET", "/mcp", None, {**key, "Accept": "text/event-stream"}),
    }
    assert {status: reply.status for status, reply in refused.items()} == {
        status: status for status in refused
    }
    assert all(reply.json["error"]["code"] == -32600 for reply in refused.values())
    assert refused[401].header("www-authenticate") == "Bearer"
    assert refused[405].header("allow") == "POST"
    assert call(url, "DELETE", "/mcp", None, key).status == 405


def test_the_server_answers_to_every_name_that_is_its_own(running: Running) -> None:
    port = running.url.rpartition(":")[2]
    for name in ("localhost", "127.0.0.1", "memory.localhost"):
        assert post(running.url, rpc("ping"), {"Host": f"{name}:{port}"}).json["result"] == {}


def test_a_key_has_the_limits_here_that_it_has_elsewhere(running: Running) -> None:
    small = bearer(new_key(running.service, "ann", max_request_bytes=1000))
    rare = bearer(new_key(running.service, "bob", rate_per_minute=2))
    large = rpc("tools/call", {"name": "set_fact", "arguments": {"key": "k", "value": "x" * 2000}})
    assert post(running.url, large, small).status == 413
    assert [post(running.url, rpc("ping"), rare).status for _ in range(3)] == [200, 200, 429]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{broken", 400, -32700),
        (b"", 400, -32700),
        (b"[]", 400, -32600),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', 400, -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "no/such"}', 200, -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "no"}}', 200, -32602),
        (b"[" * 100_000, 413, -32600),
    ],
)
def test_what_is_no_request_gets_an_error(running: Running, body: bytes, status: int, code: int) -> None:
    reply = call(running.url, "POST", "/mcp", body, {"Content-Type": "application/json", "Accept": "*/*"})
    assert (reply.status, reply.json["error"]["code"]) == (status, code)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_older_clients_get_the_version_that_they_speak(running: Running, version: str) -> None:
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    answer = post(running.url, rpc("initialize", hello)).json["result"]
    assert answer["protocolVersion"] == version
    assert answer["serverInfo"]["name"] == "shepherd-memory"
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(running.url, told, {"MCP-Protocol-Version": version}).status == 202
    listed = post(running.url, rpc("tools/list"), {"MCP-Protocol-Version": version}).json["result"]["tools"]
    assert [tool["name"] for tool in listed] == list(ALL_TOOLS)


def test_what_the_model_says_reaches_no_log(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "shepherd_memory")
    post(running.url, rpc("tools/call", {"name": "set_fact", "arguments": {"key": "pet", "value": "quokka"}}))
    post(running.url, rpc("tools/call", {"name": "recall", "arguments": {"query": "quokka"}}), as_user("ann"))
    assert "quokka" not in json.dumps([record.__dict__ for record in caplog.records], default=str)


def test_a_memory_that_is_away_is_told_to_the_client(running: Running) -> None:
    running.service.database.close()
    reply = post(running.url, rpc("tools/call", {"name": "list_facts"}), as_user("ann"))
    assert (reply.status, reply.header("retry-after")) == (503, "1")
    assert reply.json["error"]["code"] == -32603
