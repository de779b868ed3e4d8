"""What the handlers of the API server share."""

from dataclasses import dataclass

import aiohttp
from starlette.requests import Request
from starlette.types import Scope

from shepherd_memory.frontends.web.state import SCOPE_KEY, ServerState


@dataclass(kw_only=True)
class State(ServerState):
    """Also the way to the providers."""

    upstream: aiohttp.ClientSession


def state_of(scope: Scope) -> State:
    """The state that a request is answered with."""
    state: State = scope[SCOPE_KEY]
    return state


def request_state(request: Request) -> State:
    """The same for a handler that gets a starlette request."""
    return state_of(request.scope)
