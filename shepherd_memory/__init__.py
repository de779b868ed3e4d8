"""Long-term memory for LLM agents: self-hosted, multi-tenant, one process, one database."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shepherd_memory.config import Config, load_config
    from shepherd_memory.errors import ShepherdError
    from shepherd_memory.injection.prompting import Injected
    from shepherd_memory.intake.store import Remembered
    from shepherd_memory.maintenance.erasure import Receipt
    from shepherd_memory.maintenance.forgetting import Forgotten
    from shepherd_memory.maintenance.status import Status
    from shepherd_memory.memory.context import Context
    from shepherd_memory.memory.documents import Document
    from shepherd_memory.memory.facts import Fact, PastFact
    from shepherd_memory.memory.rejections import Rejection
    from shepherd_memory.memory.unconfirmed import Unconfirmed
    from shepherd_memory.recall import Hit, Recalled
    from shepherd_memory.service import Service, open_service

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
    "Unconfirmed",
    "load_config",
    "open_service",
]

_HOMES = {
    "Config": "config",
    "Context": "memory.context",
    "Document": "memory.documents",
    "Fact": "memory.facts",
    "Forgotten": "maintenance.forgetting",
    "Hit": "recall",
    "Injected": "injection.prompting",
    "PastFact": "memory.facts",
    "Recalled": "recall",
    "Receipt": "maintenance.erasure",
    "Rejection": "memory.rejections",
    "Remembered": "intake.store",
    "Service": "service",
    "ShepherdError": "errors",
    "Status": "maintenance.status",
    "Unconfirmed": "memory.unconfirmed",
    "load_config": "config",
    "open_service": "service",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `shepherd config set` must not load the whole house."""
    if name not in _HOMES:
        raise AttributeError(f"module 'shepherd_memory' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"shepherd_memory.{_HOMES[name]}"), name)
