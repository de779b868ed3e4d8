"""`shepherd mcp` as agents start it: a process that speaks MCP on its standard input and output."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client, StdioServerParameters
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult

from shepherd_memory.tools import ALL_TOOLS
from tests.acceptance.processes import wait_until
from tests.fork_server import Popen
from tests.terminal.shell import COMMAND, data, good, process, run, with_service

PATIENCE = 60
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "claude-code", "version": "1"},
    },
}
TOLD = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture(autouse=True)
def _by_keyword(config_path: Path) -> None:
    """Recall without a model, which takes a while to load."""
    config_path.write_text(
        config_path.read_text() + 'embedding_engine = "none"\nrag_relevance_threshold = 0.0\n'
    )


@asynccontextmanager
async def forked_server(*options: str) -> AsyncIterator[Any]:
    """A transport for the official client: the pipes of a process from the fork server."""
    pipe = subprocess.PIPE
    command = [*COMMAND, "mcp", *options]
    with Popen[str](command, stdin=pipe, stdout=pipe, encoding="utf-8") as process:
        assert process.stdin
        assert process.stdout
        # What the SDK has for a server's own streams reads and writes the same lines.
        async with stdio_server(anyio.wrap_file(process.stdout), anyio.wrap_file(process.stdin)) as streams:
            try:
                yield streams
            finally:
                process.stdin.close()
    assert process.returncode == 0


def started_by_the_client() -> StdioServerParameters:
    """A server process that starts as agents start it, cold."""
    command, *arguments = COMMAND
    return StdioServerParameters(
        command=command, args=[*arguments, "mcp"], env=dict(os.environ), cwd=Path.cwd()
    )


def connected(*options: str) -> Client:
    """The official client, and a server process of its own."""
    return Client(forked_server(*options), mode="legacy")


def with_client(use: Callable[[Client], Awaitable[Any]], *options: str) -> Any:
    async def run() -> Any:
        async with connected(*options) as client:
            return await use(client)

    return asyncio.run(run())


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert content.type == "text"
    return content.text


async def say(client: Client, name: str, **arguments: Any) -> str:
    return text_of(await client.call_tool(name, arguments))


class Raw:
    """The process without any client: lines in, lines out."""

    def __init__(self, *command: str) -> None:
        self.process = Popen[bytes](
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def send(self, *messages: object) -> None:
        assert self.process.stdin
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def call(self, number: int, name: str, /, **arguments: Any) -> None:
        params = {"name": name, "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    def greet(self) -> Any:
        self.send(HELLO, TOLD)
        return self.receive()

    def end(self) -> tuple[int, str]:
        """Close its input; its exit code and what it said beside the protocol."""
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, errors.decode()


@contextmanager
def started(*command: str) -> Iterator[Raw]:
    """A process, until the end of the block at most."""
    one = Raw(*command)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait()
        for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
            assert stream
            with suppress(BrokenPipeError):
                stream.close()


@pytest.fixture
def raw() -> Iterator[Raw]:
    with started(*COMMAND, "mcp") as one:
        yield one


@pytest.mark.parametrize(("server", "mode"), [(started_by_the_client, "auto"), (forked_server, "legacy")])
def test_the_client_lists_and_calls_every_tool(server: Callable[[], Any], mode: str) -> None:
    async def use(client: Client) -> None:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == list(ALL_TOOLS)
        for tool in listed.tools:
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert await say(client, "set_fact", key="home city", value="Berlin") == "Stored: home_city = Berlin"
        assert await say(client, "set_fact", key="home_city", value="Lisbon") == "Stored: home_city = Lisbon"
        assert await say(client, "get_fact", key="homeCity") == "home_city = Lisbon"
        assert "Berlin" in await say(client, "fact_history", key="home_city")
        assert "home_city = Lisbon" in await say(client, "list_facts", contains="LISB")
        assert await say(client, "store_memory", question="Why?", answer="The light") == "Stored: Why?"
        assert "Lisbon" in await say(client, "search_memory", query="home city")
        assert "fact home_city" in await say(client, "recall", query="home city")
        assert await say(client, "clear_memory", question="Why?") == "Deleted: Why?"
        assert await say(client, "forget", kind="fact", id="home_city") == "Deleted fact home_city."
        assert (await say(client, "clear_fact", key="home_city")).startswith("Not found")

    async def run() -> None:
        async with Client(server(), mode=mode) as client:
            await use(client)

    asyncio.run(run())


def test_what_an_agent_stores_the_command_line_finds_and_what_it_forgets_is_gone() -> None:
    async def store(client: Client) -> None:
        await say(client, "set_fact", key="dog_name", value="Bello")
        await say(client, "store_memory", question="What does the dog eat?", answer="Carrots")

    async def forget(client: Client) -> None:
        found = await client.call_tool("recall", {"query": "dog"})
        for hit in found.structured_content["hits"]:
            await say(client, "forget", kind=hit["kind"], id=hit["id"])

    with_client(store)
    assert {hit["kind"] for hit in data("recall", "dog")["hits"]} == {"fact", "context"}
    with_client(forget)
    assert data("recall", "dog")["hits"] == []
    assert run("facts", "history", "dog_name").exit_code == 3


def test_it_acts_for_whom_whoami_names_or_the_option_and_never_for_whom_the_model_names() -> None:
    async def use() -> None:
        async with AsyncExitStack() as stack:
            ann = await stack.enter_async_context(connected())
            bob = await stack.enter_async_context(connected("--user", "bob"))
            both = {"anns": ann, "bobs": bob}
            for turn in range(3):
                for owner, client in both.items():
                    await say(
                        client, "set_fact", key="pet", value=f"{owner}-{turn}", _user_id="carl", user="carl"
                    )
                for owner, client in both.items():
                    assert await say(client, "get_fact", key="pet") == f"pet = {owner}-{turn}"

    asyncio.run(use())
    assert data("facts", "list", "--user", "carl") == []
    assert data("facts", "list", "--user", "bob")[0]["value"] == "bobs-2"


def test_without_a_user_every_tool_says_so() -> None:
    async def use(client: Client) -> None:
        for name in ALL_TOOLS:
            result = await client.call_tool(name, {"query": "x", "key": "x", "kind": "fact", "id": "x"})
            assert result.is_error
            assert "the user is unknown" in text_of(result)

    with_client(use, "--user", "unknown")


def test_twenty_calls_at_once_are_all_answered() -> None:
    async def use(client: Client) -> list[str]:
        calls = [say(client, "set_fact", key=f"key_{number}", value=str(number)) for number in range(20)]
        return list(await asyncio.gather(*calls))

    assert with_client(use) == [f"Stored: key_{number} = {number}" for number in range(20)]


def test_no_argument_breaks_a_tool(raw: Raw) -> None:
    raw.greet()
    wrong: list[Any] = [None, 7, True, [1], {"a": 1}, "", "\0", "\ud800", "x" * 1_000_000, -1]
    for name, tool in ALL_TOOLS.items():
        for arguments in [{}, *({one: value} for one in tool.parameters["properties"] for value in wrong)]:
            raw.call(1, name, **arguments)
            result = raw.receive()["result"]
            assert result["isError"] == result["content"][0]["text"].startswith("Error:")


def test_nothing_that_is_no_message_ends_the_server(raw: Raw) -> None:
    assert raw.greet()["result"]["protocolVersion"] == "2025-06-18"
    broken: list[tuple[bytes, int]] = [
        (b"{broken", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32600),
        (b"[]", -32600),
        (b'"text"', -32600),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600),
        (b'{"jsonrpc": "1.0"}', -32600),
        (b"x" * 5_000_000, -32700),
    ]
    for line, code in broken:
        raw.send(line)
        assert raw.receive()["error"]["code"] == code
    raw.send(b"", b"   ", {"jsonrpc": "2.0", "id": 5, "method": "no/such"})
    assert raw.receive()["error"]["code"] == -32601
    raw.call(6, "set_fact", key="tale", value="once " * 1_000_000)
    assert raw.receive()["id"] == 6
    raw.call(7, "no_such_tool")
    assert "there are search_memory" in raw.receive()["error"]["message"]
    assert raw.end() == (0, "")


def test_a_line_without_end_is_refused_without_being_kept(raw: Raw) -> None:
    raw.greet()
    raw.send(b"x" * 33_000_000)
    assert raw.receive()["error"]["message"] == "a message may have 32 MB at most"
    raw.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert raw.receive()["result"] == {}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_older_clients_get_the_version_that_they_speak(raw: Raw, version: str) -> None:
    raw.send({**HELLO, "params": {**HELLO["params"], "protocolVersion": version}}, TOLD)
    assert raw.receive()["result"]["protocolVersion"] == version


def test_what_was_asked_before_the_input_was_closed_is_answered(raw: Raw) -> None:
    raw.send(HELLO, TOLD)
    raw.call(1, "set_fact", key="pet", value="quokka")
    out, errors = raw.process.communicate(timeout=PATIENCE)
    assert [json.loads(line)["id"] for line in out.splitlines()] == [0, 1]
    assert (raw.process.returncode, errors) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_without_a_word(raw: Raw, number: int) -> None:
    raw.greet()
    raw.process.send_signal(number)
    assert raw.process.wait(PATIENCE) == 0
    assert raw.process.stderr
    assert raw.process.stderr.read() == b""


def test_it_ends_when_its_client_was_killed(raw: Raw) -> None:
    raw.greet()
    raw.call(1, "set_fact", key="pet", value="quokka")
    assert raw.process.stdin
    assert raw.process.stdout
    raw.process.stdout.close()
    raw.process.stdin.close()
    assert raw.process.wait(PATIENCE) == 0
    assert data("facts", "list")[0]["value"] == "quokka"


def test_a_client_that_does_not_read_holds_nothing_up_at_the_end(raw: Raw) -> None:
    raw.greet()
    for number in range(200):
        raw.send({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
    raw.process.send_signal(signal.SIGTERM)
    assert raw.process.wait(PATIENCE) == 0


def test_a_memory_that_cannot_be_opened_is_told_to_the_model_until_it_can(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    database.write_bytes(b"this is no database, but some other file of the user's" * 100)

    async def use(client: Client) -> None:
        refused = await client.call_tool("list_facts", {})
        assert refused.is_error
        assert text_of(refused).startswith("Error: the memory cannot be opened: ")
        assert "memory.db" in text_of(refused)
        database.unlink()
        assert await say(client, "list_facts") == "There are no facts yet."

    with_client(use)


BROKEN_SERVER = """
import threading
from shepherd_memory.frontends.cli.logs import log_to_stderr
from shepherd_memory.frontends.mcp.memory import Memory
from shepherd_memory.frontends.mcp.stdio import run

def open_it():
    raise KeyError("what nobody expected")

log_to_stderr(as_json=False, debug=False)
run(Memory(open_it, "ann"), threading.Event())
"""


def test_a_defect_in_opening_the_memory_is_an_answer_to_every_call_and_the_end_is_as_ever() -> None:
    with started(sys.executable, "-c", BROKEN_SERVER) as broken:
        broken.greet()
        for number in (1, 2):
            broken.call(number, "list_facts")
            result = broken.receive()["result"]
            assert result["isError"]
            assert result["content"][0]["text"] == "Error: the memory failed; the log says why, start again"
        code, errors = broken.end()
    assert code == 0
    assert "the memory failed: KeyError at" in errors
    assert "nobody expected" not in errors


def test_a_signal_that_was_ignored_before_stays_ignored() -> None:
    with started("nohup", *COMMAND, "mcp") as server:
        server.greet()
        server.process.send_signal(signal.SIGHUP)
        server.call(1, "list_facts")
        assert server.receive()["id"] == 1
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0


def test_without_an_input_it_says_so() -> None:
    done = process("mcp", preexec_fn=lambda: os.close(0))
    assert done.returncode == 2
    assert done.stderr.startswith("shepherd: standard input is closed")


def test_a_configuration_that_cannot_be_read_ends_it_with_one_line(config_path: Path) -> None:
    config_path.write_text("user_id = [")
    done = process("mcp", stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_what_an_agent_stores_is_embedded(config_path: Path) -> None:
    config_path.write_text(config_path.read_text().replace('embedding_engine = "none"\n', ""))

    async def use(client: Client) -> None:
        await say(client, "set_fact", key="pet", value="quokka")
        await asyncio.to_thread(wait_until, is_embedded, "the fact is embedded", PATIENCE)

    def is_embedded() -> bool:
        return bool(with_service(lambda service: service.unembedded("ann")) == 0)

    with_client(use)


def test_starting_it_loads_no_model_and_the_other_commands_load_no_sdk() -> None:
    script = (
        "import sys; from shepherd_memory.frontends.cli import cli; "
        "cli(['mcp', 'install', '--help'], standalone_mode=False); "
        "print([name for name in ('mcp', 'anyio', 'onnxruntime', 'starlette') if name in sys.modules])"
    )
    done = subprocess.run([COMMAND[0], "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.splitlines()[-1] == "[]"
    assert good("mcp", "--help").stdout
