"""A model's context window, from whichever field its server reports it in."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from shepherd_memory.errors import EndpointMisconfigured
from shepherd_memory.llm.answer import as_list, as_mapping, json_object, token_count

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


def fetch_context_window(get: Callable[[str], bytes], model: str) -> int:
    """Ask for the model, then for the list of all: llama.cpp has only that. 0 if neither tells."""
    try:
        described = json_object(get(f"/models/{quote(model, safe='')}")) if model else None
    except EndpointMisconfigured:
        described = None
    return window_of(described or {}) or _in_list(json_object(get("/models")) or {}, model)


def window_of(model: Mapping[str, Any]) -> int:
    """What one model's description says; 0 if nothing."""
    described = {**as_mapping(model.get("meta")), **model}
    return next((size for size in (token_count(described.get(name)) for name in _NAMES) if size), 0)


def _in_list(listed: Mapping[str, Any], model: str) -> int:
    models = [as_mapping(one) for one in as_list(listed.get("data"))]
    named = [one for one in models if one.get("id") == model]
    # A server of one model answers with it whatever it is asked for.
    chosen = named or (models if len(models) == 1 else [])
    return window_of(chosen[0]) if chosen else 0
