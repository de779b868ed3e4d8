"""Telling clients which resources have changed, also where another process has changed them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated

from shepherd_memory.errors import ShepherdError

if TYPE_CHECKING:
    from shepherd_memory.service import Service
    from shepherd_memory.tools import ToolOutput

BEAT_SECONDS = 1.0
"""So often one row is looked at for each client that wants to know; nothing is where none does."""

CHECK_SECONDS = 5.0
"""After so long a client's key is looked at again: with one that was revoked nobody waits on."""

MAX_STREAMS, MAX_OF_ONE_USER = 256, 16
MAX_URIS = 1000

T = TypeVar("T")
Streams = dict[Callable[[], None], str]
"""What ends each answer that goes on until its client leaves, and whose it is."""

Question = Callable[["Service", str, str], T]
"""What is asked of the service for a user and group."""


class Desk(Protocol):
    """Where clients' requests end up, whatever carries them: it knows whose memory each is about."""

    async def answer(self, context: Any, name: str, arguments: dict[str, Any]) -> "ToolOutput":
        """What a tool answers."""

    async def ask(self, context: Any, question: Question[T]) -> T:
        """Ask in a thread, for whom the request speaks for; ShepherdError if that fails."""

    async def may_look(self, context: Any) -> bool:
        """Whether the client that sent a request some time ago is still let in."""

    def streams(self, context: Any) -> Streams:
        """Those that go on now."""


@dataclass(frozen=True)
class ResourceChanges:
    """The addresses of resources that came, went or have other text, and whether any came or went."""

    uris: frozenset[str]
    is_other_list: bool


class ResourceWatch:
    """The resources of one user and group, looked at again whenever something is written for the user."""

    def __init__(self, ask: Callable[[Question[Any]], Awaitable[Any]]) -> None:
        self._ask = ask
        self._version: tuple[int, int] = (0, 0)
        self._states: dict[str, str] = {}

    async def begin(self) -> None:
        """From now on changes are noticed."""
        self._version = await self._ask(_version)
        self._states = await self._ask(_states)

    async def changes(self) -> AsyncIterator[ResourceChanges]:
        """Each change since `begin`; a database that is away is asked again later."""
        while True:
            await anyio.sleep(BEAT_SECONDS)
            with suppress(ShepherdError):
                found = await self._look()
                if found is not None:
                    yield found

    async def _look(self) -> ResourceChanges | None:
        version = await self._ask(_version)
        if version == self._version:
            return None
        before, now = self._states, await self._ask(_states)
        self._version, self._states = version, now
        uris = {uri for uri in {*before, *now} if before.get(uri) != now.get(uri)}
        return ResourceChanges(frozenset(uris), before.keys() != now.keys()) if uris else None


def _version(service: "Service", user_id: str, group: str) -> tuple[int, int]:
    return service.user_version(user_id)


def _states(service: "Service", user_id: str, group: str) -> dict[str, str]:
    from shepherd_memory.frontends.mcp.resources import resource_states

    return resource_states(service, user_id, group)


async def listen(
    desk: Desk, context: Any, params: types.SubscriptionsListenRequestParams
) -> types.SubscriptionsListenResult:
    """Tell of changes until the client leaves or may look no more, or the server stops."""
    streams, user_id = desk.streams(context), await desk.ask(context, _whose)
    _check_room(streams, user_id)
    _check_number(len(params.notifications.resource_subscriptions or []))
    bus = InMemorySubscriptionBus()
    handler = ListenHandler(bus)
    streams[handler.close] = user_id
    try:
        watch = ResourceWatch(lambda question: desk.ask(context, question))
        await watch.begin()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_publish, watch, desk, context, bus, handler)
            tasks.start_soon(_end_if_refused, desk, context, handler)
            result = await handler(context, params)
            tasks.cancel_scope.cancel()
    finally:
        del streams[handler.close]
    return result


def _whose(service: "Service", user_id: str, group: str) -> str:
    return user_id


def _check_room(streams: Streams, user_id: str) -> None:
    if len(streams) >= MAX_STREAMS or list(streams.values()).count(user_id) >= MAX_OF_ONE_USER:
        raise MCPError(types.INTERNAL_ERROR, "too many clients wait for changes: try again later")


def _check_number(uris: int) -> None:
    if uris > MAX_URIS:
        raise MCPError(types.INVALID_PARAMS, f"at most {MAX_URIS} resources are watched at once")


async def _publish(
    watch: ResourceWatch, desk: Desk, context: Any, bus: InMemorySubscriptionBus, handler: ListenHandler
) -> None:
    async for found in watch.changes():
        if not await desk.may_look(context):
            handler.close()
            return
        if found.is_other_list:
            await bus.publish(ResourcesListChanged())
        for uri in sorted(found.uris):
            await bus.publish(ResourceUpdated(uri))


async def _end_if_refused(desk: Desk, context: Any, handler: ListenHandler) -> None:
    while await desk.may_look(context):
        await anyio.sleep(CHECK_SECONDS)
    handler.close()


class StandingClient:
    """The one client of a connection, in the protocol's older form: told of changes since its first look."""

    def __init__(self, desk: Desk) -> None:
        self._watch = ResourceWatch(lambda question: desk.ask(None, question))
        self._session: Any = None
        self._uris: set[str] = set()
        self._begun = anyio.Event()
        self._beginning = anyio.Lock()

    async def look(self, session: Any) -> None:
        """The client has asked which resources there are."""
        async with self._beginning:
            self._session = session
            if not self._begun.is_set():
                await self._watch.begin()
                self._begun.set()

    async def subscribe(self, session: Any, uri: str) -> None:
        """The client wants to know when this one changes."""
        _check_number(len(self._uris) + 1)
        await self.look(session)
        self._uris.add(uri)

    def unsubscribe(self, uri: str) -> None:
        """The client wants to know no more."""
        self._uris.discard(uri)

    async def run(self) -> None:
        """Tell it of changes, for ever."""
        await self._begun.wait()
        async for found in self._watch.changes():
            if found.is_other_list:
                await self._session.send_resource_list_changed()
            for uri in sorted(found.uris & self._uris):
                await self._session.send_resource_updated(uri)
