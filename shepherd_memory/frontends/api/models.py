"""The models that can be asked for: those of the provider in use, and of the others by `provider/model`."""

import asyncio
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson
from starlette.types import Receive, Scope, Send

from shepherd_memory.config import Provider
from shepherd_memory.config.providers import list_providers
from shepherd_memory.errors import EndpointError
from shepherd_memory.frontends.api.proxy import forward, pass_through, target_of
from shepherd_memory.frontends.api.state import State, state_of
from shepherd_memory.frontends.api.upstream import UpstreamRequest, choose
from shepherd_memory.frontends.web.json_body import json_response
from shepherd_memory.frontends.web.responses import until_disconnect
from shepherd_memory.frontends.web.state import admit, config_of

LIST_SECONDS = 5.0


class Models:
    """`GET /v1/models`: the provider's own bytes, or the lists of several providers joined."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            return await pass_through(scope, receive, send)
        state = state_of(scope)
        # Public, so that clients can look before they ask; what it costs is bounded like anybody's.
        config = config_of(scope)
        state.rates.take("", config.server_rate_limit)
        provider, _ = choose(config, "", None)
        others = [other for other in list_providers(config) if other.name != provider.name]
        async with until_disconnect(scope, receive):
            if not others:
                request = UpstreamRequest(config, provider, "GET", target_of(scope), scope["headers"])
                return await forward(state, request, b"", send)
            lists = await asyncio.gather(*(_models_of(state, one, scope) for one in [provider, *others]))
        joined = lists[0] + [
            {**model, "id": f"{other.name}/{model['id']}"}
            for other, models in zip(others, lists[1:], strict=True)
            for model in models
        ]
        await json_response({"object": "list", "data": joined})(scope, receive, send)


class Model:
    """`GET /v1/models/{id}`: one model of the provider that its name stands for."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            return await pass_through(scope, receive, send)
        await admit(scope, needs_memory=False)
        state = state_of(scope)
        asked = scope["path_params"]["model"]
        provider, model = choose(config_of(scope), asked, None)
        target = target_of(scope)
        if model != asked:
            target = f"/v1/models/{quote(model, safe='')}"
        request = UpstreamRequest(config_of(scope), provider, "GET", target, scope["headers"])
        async with until_disconnect(scope, receive):
            await forward(state, request, b"", send)


async def _models_of(state: State, provider: Provider, scope: Scope) -> list[dict[str, Any]]:
    """What one provider lists; nothing if it cannot be asked now."""
    try:
        request = UpstreamRequest(config_of(scope), provider, "GET", "/v1/models", [])
        async with asyncio.timeout(LIST_SECONDS), request.send(state.upstream, b"") as response:
            listed = orjson.loads(await response.read()) if response.status == 200 else None
    except (aiohttp.ClientError, EndpointError, TimeoutError, OSError, ValueError):
        return []
    found = listed.get("data") if isinstance(listed, dict) else None
    models = found if isinstance(found, list) else []
    return [model for model in models if isinstance(model, dict) and isinstance(model.get("id"), str)]
