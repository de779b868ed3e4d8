"""How much a model has room for, by what servers tell of it in as many words as there are servers."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from shepherd_memory.config.providers import Provider
from shepherd_memory.errors import EndpointMisconfigured
from shepherd_memory.llm.answers.answer import parsed
from shepherd_memory.llm.cancellation import Call
from shepherd_memory.llm.chat_exchange import Exchange
from shepherd_memory.llm.http import Connections
from shepherd_memory.llm.wires.reading import as_mapping, count

# What is in force now comes before what the model could have.
_NAMES = (
    "loaded_context_length",
    "n_ctx",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "n_ctx_train",
)


def ask_for_window(connections: Connections, call: Call, provider: Provider, model: str) -> int:
    """Ask for the model, then for the list of all: llama.cpp has only that. 0 if neither tells."""
    exchange = Exchange(connections, call, provider)
    try:
        found = window_of(parsed(exchange.get(f"/models/{quote(model, safe='')}")) or {}) if model else 0
    except EndpointMisconfigured:
        found = 0
    return found or _in_list(parsed(exchange.get("/models")) or {}, model)


def window_of(model: Mapping[str, Any]) -> int:
    """What one model's description says; 0 if nothing."""
    described = {**as_mapping(model.get("meta")), **model}
    return next((size for size in (count(described.get(name)) for name in _NAMES) if size), 0)


def _in_list(listed: Mapping[str, Any], model: str) -> int:
    data = listed.get("data")
    models = [as_mapping(one) for one in data] if isinstance(data, list) else []
    named = [one for one in models if one.get("id") == model]
    # A server of one model answers with it whatever it is asked for.
    chosen = named or (models if len(models) == 1 else [])
    return window_of(chosen[0]) if chosen else 0
