"""The MCP server on standard input and output, as agents start it."""

import asyncio
import threading
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.to_thread import run_sync
from mcp.server.lowlevel import NotificationOptions
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.mcp.changes import Question, StandingClient, Streams
from shepherd_memory.frontends.mcp.memory import Memory
from shepherd_memory.frontends.mcp.server import mcp_server
from shepherd_memory.frontends.mcp.wire import MAX_LINE_BYTES, LineTooLong, LineTransport, readable
from shepherd_memory.frontends.terminal.signals import SIGNALS, not_ignored

if TYPE_CHECKING:
    from shepherd_memory.tools import ToolOutput

T = TypeVar("T")

CANCELLED = "notifications/cancelled"
THREADS = 4
CLOSED_SECONDS = 10.0
"""So long a client that closed its end may wait for answers to what it asked before."""

SIGNALLED_SECONDS = 1.0
"""So long it may wait after a signal, which wants an end."""

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


def run(memory: Memory, stop: threading.Event) -> None:
    """Serve one client, until it closes its end, `stop` is set or a signal comes."""
    with closing(LineTransport()) as wire:
        try:
            anyio.run(_serve, wire, memory, stop)
        finally:
            memory.stop()


async def _serve(wire: LineTransport, memory: Memory, stop: threading.Event) -> None:
    loop = asyncio.get_running_loop()
    conversation = StdioSession(wire, memory)
    for number in not_ignored(SIGNALS):
        loop.add_signal_handler(number, conversation.end)
    if stop.is_set():
        conversation.end()
    await conversation.run()


class StdioSession:
    """The messages from and to one client."""

    def __init__(self, wire: LineTransport, memory: Memory) -> None:
        self._wire = wire
        self._memory = memory
        self._threads = anyio.CapacityLimiter(THREADS)
        self._own_threads = anyio.CapacityLimiter(2)
        self._unanswered: Counter[types.RequestId] = Counter()
        self._has_answered = False
        self._answered = anyio.Event()
        self._last_answers = anyio.CancelScope()
        self._streams: Streams = {}

    def end(self) -> None:
        """Come to an end, whatever the client still wants."""
        self._wire.end()
        self._give_up_after(SIGNALLED_SECONDS)

    def _give_up_after(self, seconds: float) -> None:
        scope = self._last_answers
        scope.deadline = min(scope.deadline, anyio.current_time() + seconds)

    async def run(self) -> None:
        client = StandingClient(self)
        server = mcp_server(self, client)
        options = server.create_initialization_options(NotificationOptions(resources_changed=True))
        incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception]()
        outgoing, sent = anyio.create_memory_object_stream[SessionMessage]()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, incoming, outgoing.clone())
            tasks.start_soon(self._write, sent)
            async with anyio.create_task_group() as telling:
                telling.start_soon(client.run)
                await server.run(received, outgoing, options)
                telling.cancel_scope.cancel()

    async def answer(self, context: Any, name: str, arguments: dict[str, Any]) -> "ToolOutput":
        return await run_sync(self._memory.answer, name, arguments, limiter=self._threads)

    async def ask(self, context: Any, question: Question[T]) -> T:
        return await run_sync(self._memory.ask, question, limiter=self._threads)

    async def may_look(self, context: Any) -> bool:
        return True

    def streams(self, context: Any) -> Streams:
        return self._streams

    async def _read(self, incoming: Incoming, outgoing: Outgoing) -> None:
        async with incoming, outgoing:
            while (item := await self._next()) is not None:
                if self._has_answered:
                    # Not sooner: until it has its first answer, an agent shows that it is still connecting.
                    self._memory.start()
                if isinstance(item, types.JSONRPCError):
                    await outgoing.send(SessionMessage(item))
                    continue
                if isinstance(item, types.JSONRPCRequest):
                    self._unanswered[item.id] += 1
                self._forget_cancelled(item)
                await incoming.send(SessionMessage(item))
            self._give_up_after(CLOSED_SECONDS)
            for end in list(self._streams):
                end()
            with self._last_answers:
                await self._until_answered()

    async def _next(self) -> types.JSONRPCMessage | None:
        """The next message, None at the end; what cannot be read is answered with the error that it gives."""
        try:
            while (line := await run_sync(self._wire.read_line, limiter=self._own_threads)) is not None:
                if line.strip():
                    return types.jsonrpc_message_adapter.validate_json(readable(line), by_name=False)
        except ValidationError as error:
            is_json = all(one["type"] != "json_invalid" for one in error.errors(include_input=False))
            if is_json:
                return _refused(types.INVALID_REQUEST, "this is no JSON-RPC message")
            return _refused(types.PARSE_ERROR, "this line is not JSON")
        except LineTooLong:
            most = f"{MAX_LINE_BYTES // 1_000_000} MB"
            return _refused(types.INVALID_REQUEST, f"a message may have {most} at most")
        except InvalidInput as error:
            return _refused(types.INVALID_REQUEST, str(error))
        return None

    async def _until_answered(self) -> None:
        while self._unanswered.total():
            self._answered = anyio.Event()
            await self._answered.wait()

    async def _write(self, sent: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Once the client is gone nothing more is written, but everything is still taken."""
        gone = False
        async with sent:
            async for item in sent:
                line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                if not gone and not await run_sync(self._wire.write_line, line, limiter=self._own_threads):
                    gone = True
                    self._wire.end()
                self._has_answered = True
                if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
                    self._count(item.message)

    def _count(self, reply: types.JSONRPCResponse | types.JSONRPCError) -> None:
        if reply.id is not None:
            self._unanswered[reply.id] = max(0, self._unanswered[reply.id] - 1)
            self._answered.set()

    def _forget_cancelled(self, message: types.JSONRPCMessage) -> None:
        """Nobody answers a request that its client has cancelled."""
        if isinstance(message, types.JSONRPCNotification) and message.method == CANCELLED:
            cancelled = cancelled_request_id_from_params(message.params)
            if cancelled is not None:
                self._unanswered.pop(cancelled, None)
                self._answered.set()


def _refused(code: int, message: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=message))
