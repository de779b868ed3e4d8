"""Groups over HTTP: by header, field and key; a key that is bound to one acts there and nowhere else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.contract.test_groups import GROUPS, SEEN, furnish, word
from tests.provider import ScriptedProvider
from tests.server.calling import CHATS, bearer, call, call_json, new_key, say
from tests.server.serving import ANTHROPIC, OPENAI, Running, serving, write_config

READS = (
    "/v1/memory/recall?query=where+do+I+live+I+like+a+note&threshold=0&limit=50",
    "/v1/memory/facts",
    "/v1/memory/facts/city",
    "/v1/memory/facts/city/history",
    "/v1/memory/context",
    "/v1/memory/documents",
    "/v1/memory/rejected",
    "/v1/memory/conversations",
    "/v1/memory/sessions",
    "/v1/memory/why",
    "/v1/memory/export",
)
NEAREST_ONLY = ("/v1/memory/facts/city", "/v1/memory/facts/city/history")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Running, ScriptedProvider]]:
    with ScriptedProvider() as provider:
        write_config(tmp_path / "config.toml", provider.url, user_id="ada", embedding_engine="none")
        with serving(tmp_path / "config.toml") as server:
            for group in GROUPS:
                furnish(server.service, lambda: 1_700_000_000_000_000, group)  # type: ignore[arg-type]
            yield server, provider


def named(target: str, group: str) -> str:
    return f"{target}{'&' if '?' in target else '?'}{urlencode({'group': group})}"


def words_in(body: bytes) -> set[str]:
    return {group for group in GROUPS if word(group).encode() in body}


def test_each_group_is_shown_what_it_sees_however_it_is_named(site: tuple[Running, Any]) -> None:
    server, _ = site
    keys = {"": {}, "a": bearer(new_key(server.service, "ada", group="a"))}
    any_group = bearer(new_key(server.service, "ada"))
    for target in READS:
        for group in GROUPS:
            by_field = call(server.url, "GET", named(target, group), headers=any_group)
            by_header = call(server.url, "GET", target, headers={**any_group, "X-Shepherd-Group": group})
            assert (by_field.status, by_header.status) == (200, 200)
            assert words_in(by_field.body) <= SEEN[group]
            assert group in words_in(by_field.body)
            assert words_in(by_header.body) == words_in(by_field.body)
            bound = call(server.url, "GET", named(target, group), headers=keys["a"])
            assert bound.status == (200 if group == "a" else 403)
        of_key = call(server.url, "GET", target, headers=keys["a"])
        assert words_in(of_key.body) == ({"a"} if target in NEAREST_ONLY else SEEN["a"])


def test_a_group_other_than_main_cannot_write_to_global_nor_erase(site: tuple[Running, Any]) -> None:
    server, _ = site
    bound = bearer(new_key(server.service, "ada", group="a"))
    free = bearer(new_key(server.service, "ada"))
    value = {"value": "Rome", "group": "global"}
    fact = "/v1/memory/facts/city"
    assert call_json(server.url, "PUT", fact, value, bound).status == 403
    assert call_json(server.url, "PUT", fact, value, {**free, "X-Shepherd-Group": "a"}).status == 403
    assert call_json(server.url, "POST", "/v1/memory/erase", {}, bound).status == 403
    assert server.service.get_fact("ada", "city", group="global").value == "wordglobal town"  # type: ignore[union-attr]
    assert call_json(server.url, "PUT", fact, value, {**free, "X-Shepherd-Group": "main"}).status == 200
    assert server.service.get_fact("ada", "city", group="global").value == "Rome"  # type: ignore[union-attr]
    assert call_json(server.url, "PUT", fact, {"value": "Bonn"}, bound).status == 200
    assert server.service.get_fact("ada", "city", group="a").value == "Bonn"  # type: ignore[union-attr]
    assert call_json(server.url, "PUT", fact, {"value": "x", "group": "a/b"}, free).status == 400


def test_what_a_group_does_not_see_is_not_found_and_never_forbidden(site: tuple[Running, Any]) -> None:
    server, _ = site
    free = bearer(new_key(server.service, "ada"))
    document = next(one.id for one in server.service.documents("ada", group="a") if one.group_name == "a")
    for method in ("GET", "DELETE"):
        told = call(server.url, method, named(f"/v1/memory/documents/{document}", "b"), headers=free)
        nothing = call(server.url, method, named("/v1/memory/documents/999999", "b"), headers=free)
        assert (told.status, nothing.status) == (404, 404)
        assert told.body == nothing.body.replace(b"999999", str(document).encode())


@pytest.mark.parametrize("wire", CHATS)
def test_a_chat_is_told_and_remembered_in_its_group(
    site: tuple[Running, ScriptedProvider], tmp_path: Path, wire: str
) -> None:
    server, provider = site
    kind = ANTHROPIC if wire == "anthropic" else OPENAI
    write_config(tmp_path / "config.toml", provider.url, kind, user_id="ada", embedding_engine="none")
    headers = {"X-Shepherd-Group": "b", "X-Shepherd-Session": f"chat-{wire}"}
    reply = say(server.url, "Where do I live, and what do I like?", headers, wire=wire)
    assert reply.status == 200
    sent = provider.requests[-1]
    assert "x-shepherd-group" not in {name.lower() for name in sent.headers}
    assert words_in(sent.body) <= SEEN["b"]
    assert b"city=wordb town" in sent.body
    assert server.service.message_ids("ada", f"chat-{wire}", group="b")
    assert not server.service.message_ids("ada", f"chat-{wire}", group="a")
    assert not server.service.message_ids("ada", f"chat-{wire}")


def test_tools_act_in_the_group_of_the_request(site: tuple[Running, Any]) -> None:
    server, _ = site
    asked = {"name": "get_fact", "arguments": {"key": "city"}}
    for group in GROUPS:
        told = call_json(server.url, "POST", "/v1/tools/execute", asked, {"X-Shepherd-Group": group})
        assert words_in(told.body) == {group}
        call_mcp = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "list_facts", "arguments": {}},
        }
        headers = {"X-Shepherd-Group": group, "Accept": "application/json, text/event-stream"}
        by_mcp = call_json(server.url, "POST", "/mcp", call_mcp, headers)
        assert (by_mcp.status, words_in(by_mcp.body)) == (200, SEEN[group])
