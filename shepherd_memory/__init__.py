"""Long-term memory for LLM agents: self-hosted, multi-tenant, one process, one database."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shepherd_memory.config import Config, load_config
    from shepherd_memory.context import Context
    from shepherd_memory.documents import Document
    from shepherd_memory.erasure import Receipt
    from shepherd_memory.errors import ShepherdError
    from shepherd_memory.facts import Fact, PastFact
    from shepherd_memory.forgetting import Forgotten
    from shepherd_memory.intake import Remembered
    from shepherd_memory.prompting import Injected
    from shepherd_memory.recall import Hit, Recalled
    from shepherd_memory.rejections import Rejection
    from shepherd_memory.service import Service, open_service
    from shepherd_memory.status import Status

__all__ = [
    "Config",
    "Context",
    "Document",
    "Fact",
    "Forgotten",
    "Hit",
    "Injected",
    "PastFact",
    "Recalled",
    "Receipt",
    "Rejection",
    "Remembered",
    "Service",
    "ShepherdError",
    "Status",
    "load_config",
    "open_service",
]

_HOMES = {
    "Config": "config",
    "Context": "context",
    "Document": "documents",
    "Fact": "facts",
    "Forgotten": "forgetting",
    "Hit": "recall",
    "Injected": "prompting",
    "PastFact": "facts",
    "Recalled": "recall",
    "Receipt": "erasure",
    "Rejection": "rejections",
    "Remembered": "intake",
    "Service": "service",
    "ShepherdError": "errors",
    "Status": "status",
    "load_config": "config",
    "open_service": "service",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `shepherd config set` must not load the whole house."""
    if name not in _HOMES:
        raise AttributeError(f"module 'shepherd_memory' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"shepherd_memory.{_HOMES[name]}"), name)
