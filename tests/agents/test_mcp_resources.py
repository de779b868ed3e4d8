"""Memory files and archives as resources of `shepherd mcp`: read, watched, and told of in both protocols."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp_types import ResourceListChangedNotification, ResourceUpdatedNotification

from shepherd_memory.service import Service
from tests.agents.test_mcp_stdio import HELLO, TOLD, Raw, forked_server, raw, started_by_the_client
from tests.terminal.shell import with_service

__all__ = ["raw"]

FILE, SESSION = "shepherd://files/MEMORY.md", "shepherd://sessions/chat"
OLDER, NEWER = "legacy", "auto"
SECONDS = 60.0


@pytest.fixture(autouse=True)
def _by_keyword(config_path: Path) -> None:
    config_path.write_text(config_path.read_text() + 'embedding_engine = "none"\n')


class Told:
    """What a client of the older protocol was told without having asked."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._news = asyncio.Condition()

    async def __call__(self, message: Any) -> None:
        async with self._news:
            if isinstance(message, ResourceListChangedNotification):
                self.heard.append("list")
            elif isinstance(message, ResourceUpdatedNotification):
                self.heard.append(str(message.params.uri))
            self._news.notify_all()

    async def of(self, *expected: str) -> None:
        async with asyncio.timeout(SECONDS), self._news:
            await self._news.wait_for(lambda: set(expected) <= set(self.heard))
            self.heard.clear()


def with_client(use: Callable[[Client, Told], Awaitable[None]], mode: str) -> None:
    async def run() -> None:
        told = Told()
        # One that ends with a stream open is ended as agents do: not every pipe is closed in its turn.
        server = started_by_the_client() if mode == NEWER else forked_server()
        async with Client(server, mode=mode, message_handler=told) as client:
            await use(client, told)

    asyncio.run(run())


async def watch(client: Client, uri: str) -> None:
    with pytest.warns(MCPDeprecationWarning):
        await client.subscribe_resource(uri)


def edited(user: str, text: str) -> Callable[[Service], int]:
    return lambda service: service.edit_memory_file(user, "MEMORY.md", f"## Boats\n\n{text}\n")


def chatted(service: Service) -> None:
    service.remember("ann", [{"role": "user", "content": "hello from the harbour"}], "chat", extract=False)


@pytest.mark.parametrize("mode", [OLDER, NEWER])
def test_a_client_lists_and_reads_what_other_processes_wrote(mode: str) -> None:
    with_service(edited("ann", "of wood"))
    with_service(edited("bob", "of steel"))
    with_service(chatted)

    async def use(client: Client, told: Told) -> None:
        assert {FILE, SESSION} <= {one.uri for one in (await client.list_resources()).resources}
        assert len((await client.list_resource_templates()).resource_templates) == 2
        for uri, words in ((FILE, "of wood"), (SESSION, "hello from the harbour")):
            (contents,) = (await client.read_resource(uri)).contents
            assert words in contents.text  # type: ignore[union-attr]
        for hostile in (
            "shepherd://files/%2e%2e/MEMORY.md",
            "shepherd://sessions/none",
            "file:///etc/passwd",
        ):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(hostile)
            assert refused.value.error.code in (-32002, -32602)

    with_client(use, mode)


def test_in_the_older_protocol_a_client_is_told_of_changes_to_what_it_watches() -> None:
    async def use(client: Client, told: Told) -> None:
        offered = client.server_capabilities.resources
        assert offered is not None
        assert offered.subscribe
        assert offered.list_changed
        await client.list_resources()
        await asyncio.to_thread(with_service, edited("bob", "of steel"))
        await asyncio.to_thread(with_service, edited("ann", "of wood"))
        await told.of("list")
        await watch(client, FILE)
        await asyncio.to_thread(with_service, edited("ann", "of oak"))
        await told.of(FILE)
        with pytest.warns(MCPDeprecationWarning):
            await client.unsubscribe_resource(FILE)
        await watch(client, SESSION)
        await asyncio.to_thread(with_service, edited("ann", "of elm"))
        await asyncio.to_thread(with_service, chatted)
        await told.of("list", SESSION)
        assert FILE not in told.heard
        for wrong in ("shepherd://users/bob", "x", "shepherd://files/a?b"):
            with pytest.raises(MCPError, match="a resource's address"):
                await watch(client, wrong)

    with_client(use, OLDER)


def test_in_the_newer_protocol_a_stream_tells_the_same() -> None:
    async def use(client: Client, told: Told) -> None:
        async with client.listen(resources_list_changed=True, resource_subscriptions=[FILE]) as stream:
            await asyncio.to_thread(with_service, edited("ann", "of wood"))
            missing: set[Any] = {ResourcesListChanged(), ResourceUpdated(FILE)}
            async with asyncio.timeout(SECONDS):
                async for event in stream:
                    missing.discard(event)
                    if not missing:
                        return

    with_client(use, NEWER)


def test_a_request_that_waits_for_changes_does_not_hold_up_the_end(raw: Raw) -> None:
    """Neither one that still waits nor one that its client has given up: nobody answers that."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    wanted = {"notifications": {"resourcesListChanged": True}, "_meta": meta}
    for number in (1, 2):
        raw.send({"jsonrpc": "2.0", "id": number, "method": "subscriptions/listen", "params": wanted})
        assert raw.receive()["method"] == "notifications/subscriptions/acknowledged"
    raw.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert raw.process.stdin
    raw.process.stdin.close()
    assert raw.receive()["id"] == 2
    assert raw.process.wait(SECONDS) == 0


def test_who_never_asks_for_resources_is_told_of_none(raw: Raw) -> None:
    raw.send(HELLO, TOLD)
    assert raw.receive()["result"]["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    raw.call(1, "add_memory_note", note="a note")
    assert raw.receive()["id"] == 1
    assert raw.end() == (0, "")
