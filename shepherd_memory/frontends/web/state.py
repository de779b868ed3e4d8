"""What the handlers of one server process share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from starlette.types import Scope

from shepherd_memory.config import Config
from shepherd_memory.frontends.web.auth import Authenticator, Caller
from shepherd_memory.frontends.web.http_errors import HttpError, unavailable
from shepherd_memory.frontends.web.limits import BodyBudget, BodyHold, ConcurrencyLimit, RateLimiter
from shepherd_memory.frontends.web.metrics import Metrics
from shepherd_memory.frontends.web.threads import ThreadPool
from shepherd_memory.service import Service

SCOPE_KEY, LOG_KEY, ANSWERED_KEY = "shepherd", "shepherd.log", "shepherd.answered"
MEMORY_HEADER, SWITCHED_OFF = "x-shepherd-memory", ("off", "false", "0", "no")
CONFIG_KEY, HEADERS_KEY, HOLD_KEY = "shepherd.config", "shepherd.headers", "shepherd.hold"


@dataclass
class ServerState:
    """What every server of ours has: the service, who is let in, and what is counted and limited."""

    service: Service
    threads: ThreadPool
    quick: ThreadPool
    """Threads of their own for keys and health: a large import must not hold these up."""

    door: Authenticator
    names: frozenset[str]
    metrics: Metrics = field(default_factory=Metrics)
    slots: ConcurrencyLimit = field(default_factory=ConcurrencyLimit)
    rates: RateLimiter = field(default_factory=RateLimiter)
    bodies: BodyBudget = field(default_factory=BodyBudget)
    streams: dict[Callable[[], None], str] = field(default_factory=dict)
    """What ends each answer that goes on until its client leaves, when the server stops; and whose it is."""

    write_problem: str = ""
    """Why the last exchange could not be stored; empty since one could."""


def note(scope: Scope, **fields: object) -> None:
    """Have the request's line in the log say more: never what was said, asked or found."""
    scope.setdefault(LOG_KEY, {}).update(fields)


def config_of(scope: Scope) -> Config:
    """The configuration as it was when the request came: looked at once, it is the same throughout."""
    config: Config | None = scope.get(CONFIG_KEY)
    if config is None:
        config = scope[CONFIG_KEY] = server_state_of(scope).service.config
    return config


def server_state_of(scope: Scope) -> ServerState:
    """The state that a request is answered with, of whichever server."""
    state: ServerState = scope[SCOPE_KEY]
    return state


def hold_of(scope: Scope) -> BodyHold:
    """What the request's body takes of the budget; the gate lets go of it when the request is over."""
    hold: BodyHold | None = scope.get(HOLD_KEY)
    if hold is None:
        hold = scope[HOLD_KEY] = BodyHold(server_state_of(scope).bodies)
    return hold


def threads_of(scope: Scope) -> ThreadPool:
    """The threads that the request's work is done in, by the size of its body."""
    return server_state_of(scope).threads.for_size(hold_of(scope).size)


def headers_of(scope: Scope) -> dict[str, str]:
    """A request's headers by lower-case name; of repeated ones the last."""
    headers: dict[str, str] | None = scope.get(HEADERS_KEY)
    if headers is None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        scope[HEADERS_KEY] = headers
    return headers


def is_switched_off(headers: Mapping[str, str]) -> bool:
    """Whether a chat says that memory is to do nothing for it."""
    return headers.get(MEMORY_HEADER, "").strip().lower() in SWITCHED_OFF


async def admit(scope: Scope, *, needs_memory: bool = True) -> tuple[Caller, int]:
    """Who sends this request, and how many bytes it may have; refused without a key or beyond its rate.

    What needs the memory is refused while the database cannot say who may come in.
    """
    state = server_state_of(scope)
    caller = await state.door.caller_of(headers_of(scope))
    if needs_memory and not caller.is_confirmed:
        raise unavailable("the memory's database cannot be used now; try again")
    config, key = config_of(scope), caller.key
    state.rates.take(key.id if key else "", (key and key.rate_per_minute) or config.server_rate_limit)
    if key:
        note(scope, key=key.name)
    return caller, (key and key.max_request_bytes) or config.server_max_request_mb * 1_000_000


async def user_of(scope: Scope, caller: Caller, given: object) -> str:
    """Whose memory a request is about; `given` is what it says itself, in its own way."""
    state = server_state_of(scope)
    if given is not None and not isinstance(given, str):
        raise HttpError(400, "user takes text")
    header = user_header(scope)
    return await state.door.user_of(caller, given or "", header, config_of(scope))


def group_of(scope: Scope, caller: Caller, given: str = "") -> str:
    """The group that a request is about; `given` is what it says itself, beside the header."""
    header = _named_in(scope, "X-Shepherd-Group")
    return server_state_of(scope).door.group_of(caller, given, header, config_of(scope))


def user_header(scope: Scope) -> str:
    """Whom `X-Shepherd-User` names, in UTF-8; empty if nobody."""
    return _named_in(scope, "X-Shepherd-User")


def _named_in(scope: Scope, header: str) -> str:
    try:
        return headers_of(scope).get(header.lower(), "").encode("latin-1").decode().strip()
    except UnicodeDecodeError:
        # Replaced characters would make one name of several.
        raise HttpError(400, f"{header} must be in UTF-8") from None
