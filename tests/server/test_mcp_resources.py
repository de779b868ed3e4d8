"""Memory files and archives of sessions as resources over HTTP: attached, watched, and nobody else's."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.client.subscriptions import Subscription
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.memory import api_keys
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import now_us
from tests.grouped_memory import ALPHA, BETA, MAIN, SEEN, USER, WORDS, furnish, words_in
from tests.server.calling import bearer, new_key
from tests.server.serving import Running, ServeCommand, StartServer
from tests.server.test_mcp_http import HANDSHAKE, NEWEST, as_user, connected, post, rpc, with_client

FILES, SESSIONS = "shepherd://files/", "shepherd://sessions/"
SECONDS = 60.0
"""How long a busy machine may take to tell of a change."""


@pytest.fixture
def running(server: StartServer) -> Running:
    return server(embedding_engine="none")


@pytest.fixture
def furnished(running: Running, tmp_path: Path) -> Running:
    """The same in three groups but for a word, and a user who has none of it."""
    for group in (MAIN, ALPHA, BETA):
        furnish(running.service, group, tmp_path / "transcripts")
    return running


async def uris(client: Client) -> list[str]:
    """Those of all pages."""
    found: list[str] = []
    page = await client.list_resources()
    while True:
        found += [one.uri for one in page.resources]
        if page.next_cursor is None:
            return found
        page = await client.list_resources(cursor=page.next_cursor)


async def text_at(client: Client, uri: str) -> str:
    (contents,) = (await client.read_resource(uri)).contents
    assert (contents.uri, contents.mime_type) == (uri, "text/markdown")
    text = contents.text  # type: ignore[union-attr]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("mode", [HANDSHAKE, NEWEST])
def test_a_client_finds_files_and_sessions_and_reads_each(furnished: Running, mode: str) -> None:
    async def use(client: Client) -> None:
        listed = await uris(client)
        assert {one.rpartition("/")[0] + "/" for one in listed} == {
            FILES,
            f"{FILES}rollout_summaries/",
            SESSIONS,
        }
        assert f"{FILES}MEMORY.md" in listed
        assert f"{SESSIONS}session-1" in listed
        assert sorted(listed, key=lambda one: one.startswith(SESSIONS)) == listed
        texts = [await text_at(client, uri) for uri in listed]
        assert all(texts)
        assert sum(WORDS[MAIN] in text for text in texts) >= 3
        patterns = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        assert patterns == [f"{FILES}{{+path}}", f"{SESSIONS}{{session_id}}"]

    with_client(furnished.url, as_user(USER), use, mode)


def test_resources_are_paged_and_each_is_on_one_page(running: Running) -> None:
    for number in range(120):
        running.service.add_memory_note("ann", f"note {number}", name=f"日本 {number}")
        said = [{"role": "user", "content": "hello"}]
        running.service.remember("ann", said, f"chat/{number} #%2F?", extract=False)

    async def use(client: Client) -> None:
        first = await client.list_resources()
        assert len(first.resources) == 100
        listed = await uris(client)
        assert len(listed) == len(set(listed)) >= 240
        for uri in (listed[0], listed[-1]):
            assert await text_at(client, uri)
        for wrong in ("x", "-1:y", "1" * 30 + ":y"):
            with pytest.raises(MCPError, match="the cursor is none that an answer gave"):
                await client.list_resources(cursor=wrong)

    with_client(running.url, as_user("ann"), use)


@pytest.mark.parametrize("group", [MAIN, ALPHA, BETA])
def test_a_group_is_shown_its_own_files_and_the_sessions_that_it_sees(furnished: Running, group: str) -> None:
    async def use(client: Client) -> None:
        for uri in await uris(client):
            text = await text_at(client, uri)
            assert words_in(text) <= ({group} if uri.startswith(FILES) else SEEN[group]), uri

    with_client(furnished.url, {**as_user(USER), "X-Shepherd-Group": group}, use)


HOSTILE = [
    "",
    "x",
    "/etc/passwd",
    "file:///etc/passwd",
    "shepherd://",
    "shepherd://files",
    FILES,
    SESSIONS,
    "shepherd://users/ann/MEMORY.md",
    *(
        FILES + path
        for path in (
            "../MEMORY.md",
            "%2e%2e/MEMORY.md",
            "..%2fMEMORY.md",
            "%252e%252e%252fMEMORY.md",
            "skills/../../MEMORY.md",
            "/MEMORY.md",
            "%2FMEMORY.md",
            "//ann/MEMORY.md",
            "MEMORY.md%00",
            "MEMORY.md\0",
            "..\\MEMORY.md",
            "MEMORY.md?user=ann",
            "MEMORY.md#x",
            "%ff",
            "%ED%A0%80",
            "x" * 600,
            "x" * 5_000,
        )
    ),
    *(SESSIONS + name for name in ("session-1", "%00", "%ff", "../session-1", "session-1?group=main", "%2E")),
]


@pytest.mark.parametrize("mode", [HANDSHAKE, NEWEST])
def test_no_address_reaches_what_is_not_the_users_and_each_error_is_clear(
    furnished: Running, mode: str
) -> None:
    async def use(client: Client) -> None:
        for uri in HOSTILE:
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert refused.value.error.code in (-32002, -32602), uri
            assert refused.value.error.message
            assert not words_in(refused.value.error.message)

    with_client(furnished.url, as_user("bob"), use, mode)


def test_a_group_reads_no_session_and_no_note_of_another(furnished: Running) -> None:
    service = furnished.service
    life = service.start_session(USER, session_id="secret-1", group=ALPHA, takeover=True).session_id
    service.remember(USER, [{"role": "user", "content": "the axolotl"}], life, group=ALPHA)
    path = service.add_memory_note(USER, "the axolotl eats", group=ALPHA)

    async def use(client: Client) -> None:
        for uri in (SESSIONS + life, FILES + path):
            with pytest.raises(MCPError, match=r"there is no (session|memory file)"):
                await client.read_resource(uri)
            assert uri not in await uris(client)

    with_client(furnished.url, {**as_user(USER), "X-Shepherd-Group": BETA}, use)


@pytest.mark.parametrize("wrong", [None, 7, [], {}, True, "\ud800"])
def test_a_wrong_type_is_an_error_and_no_failure(running: Running, wrong: Any) -> None:
    for method in ("resources/read", "resources/list"):
        params = {"uri": wrong, "cursor": wrong}
        reply = post(running.url, rpc(method, params), as_user("ann"))
        assert reply.status == 200
        if method == "resources/read":
            assert reply.json["error"]["code"] in (-32602, -32002)


def test_reading_a_summary_counts_as_use(furnished: Running) -> None:
    async def use(client: Client) -> None:
        for uri in await uris(client):
            await text_at(client, uri)

    (before,) = furnished.service.conversation_outputs(USER)[:1]
    with_client(furnished.url, as_user(USER), use)
    outputs = furnished.service.conversation_outputs(USER)
    assert sum(one.use_count for one in outputs) == before.use_count + 1


def test_over_http_the_older_protocol_says_that_it_tells_of_no_changes(running: Running) -> None:
    async def use(client: Client) -> None:
        offered = client.server_capabilities.resources
        assert offered is not None
        assert not offered.subscribe
        assert not offered.list_changed

    with_client(running.url, as_user("ann"), use)


@pytest.fixture
def elsewhere(running: Running) -> Iterator[Service]:
    """The memory as another process has it: a service of its own on the same database."""
    config = load_config(running.config_path, {})
    with open_service(config, worker=False) as service:
        yield service


async def told(stream: Subscription, *expected: Any) -> None:
    """Wait until it has told of all of these, in whatever order."""
    missing = set(expected)
    async with asyncio.timeout(SECONDS):
        async for event in stream:
            missing.discard(event)
            if not missing:
                return
    raise AssertionError(f"not told of {missing}")


def test_a_client_is_told_what_another_process_changes_and_of_nobody_elses(
    running: Running, elsewhere: Service
) -> None:
    watched = [f"{FILES}MEMORY.md", f"{SESSIONS}chat"]

    async def use(client: Client) -> None:
        async with client.listen(resources_list_changed=True, resource_subscriptions=watched) as stream:
            await asyncio.to_thread(elsewhere.edit_memory_file, "bob", "MEMORY.md", "## Bob\n\nhis")
            await asyncio.to_thread(elsewhere.edit_memory_file, "ann", "MEMORY.md", "## Boats\n\nwood")
            await told(stream, ResourcesListChanged(), ResourceUpdated(watched[0]))
            assert "wood" in await text_at(client, watched[0])
            said = [{"role": "user", "content": "hello"}]
            await asyncio.to_thread(elsewhere.remember, "ann", said, "chat", extract=False)
            await told(stream, ResourcesListChanged(), ResourceUpdated(watched[1]))
            await asyncio.to_thread(elsewhere.delete_memory_file, "ann", "MEMORY.md")
            await told(stream, ResourcesListChanged(), ResourceUpdated(watched[0]))
            with pytest.raises(MCPError, match="there is no memory file"):
                await client.read_resource(watched[0])

    with_client(running.url, as_user("ann"), use, NEWEST)


@pytest.mark.parametrize("is_something_new", [True, False])
def test_a_stream_of_a_key_that_was_revoked_ends_without_a_word(
    running: Running, is_something_new: bool
) -> None:
    service = running.service
    ann = bearer(new_key(service, "ann"))

    async def use(client: Client) -> None:
        async with client.listen(resources_list_changed=True) as stream:
            await asyncio.to_thread(api_keys.revoke, service.database, "ann", now_us())
            if is_something_new:
                await asyncio.to_thread(service.add_memory_note, "ann", "nobody is told of this")
            async with asyncio.timeout(SECONDS):
                assert [event async for event in stream] == []

    with_client(running.url, ann, use, NEWEST)


def test_a_server_that_stops_ends_its_streams_and_does_not_wait_for_their_clients(
    served: ServeCommand,
) -> None:
    started = served(embedding_engine="none", server_shutdown_timeout=SECONDS)

    async def use(client: Client) -> None:
        async with client.listen(resources_list_changed=True) as stream:
            started.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(SECONDS / 2):
                assert [event async for event in stream] == []
                assert await asyncio.to_thread(started.process.wait) == 0

    with_client(started.url, as_user("ann"), use, NEWEST)


def test_a_user_who_opens_many_streams_takes_none_from_others(running: Running) -> None:
    async def use(client: Client) -> None:
        async with AsyncExitStack() as stack:
            for _ in range(16):
                await stack.enter_async_context(client.listen(resources_list_changed=True))
            with pytest.raises(MCPError, match="too many clients wait"):
                await stack.enter_async_context(client.listen(resources_list_changed=True))
            async with connected(running.url, as_user("bob"), NEWEST) as other:
                await stack.enter_async_context(other.listen(resources_list_changed=True))

    with_client(running.url, as_user("ann"), use, NEWEST)


def test_too_many_addresses_at_once_are_refused(running: Running) -> None:
    async def use(client: Client) -> None:
        many = [f"{FILES}{number}" for number in range(1001)]
        with pytest.raises(MCPError, match="at most 1000"):
            async with client.listen(resource_subscriptions=many):
                pass

    with_client(running.url, as_user("ann"), use, NEWEST)
