"""Providers: the model servers that chats go to, and which of them is in use."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shepherd_memory.config import (
    PROVIDER_FIELDS,
    Config,
    Provider,
    change,
    load_config,
    provider_field,
    provider_from_table,
)
from shepherd_memory.config.settings import SET, did_you_mean
from shepherd_memory.errors import (
    ConfigError,
    EndpointError,
    EndpointUnavailable,
    InvalidInput,
    NotFound,
)

__all__ = [
    "Provider",
    "add_provider",
    "current_provider",
    "describe",
    "extraction_enabled",
    "fields_as_toml",
    "get_provider",
    "injection_enabled",
    "list_providers",
    "memory_advice",
    "next_provider",
    "remove_provider",
    "set_field",
    "set_fields_from_toml",
    "use_provider",
]

PUBLIC_URLS = {"openai": "https://api.openai.com", "anthropic": "https://api.anthropic.com"}

_HOSTED = (
    "openai.com",
    "anthropic.com",
    "googleapis.com",
    "mistral.ai",
    "openrouter.ai",
    "groq.com",
    "azure.com",
)

Table = dict[str, Any]
Check = Callable[[Provider], None]


def list_providers(config: Config) -> list[Provider]:
    """All of them, in the order of `next`: lowest priority number first, then by name."""
    return sorted(config.providers.values(), key=lambda provider: (provider.priority, provider.name))


def get_provider(config: Config, name: str) -> Provider:
    """The provider of that name, or NotFound with the nearest names."""
    provider: Provider = _existing(dict(config.providers), name)
    return provider


def current_provider(config: Config) -> Provider | None:
    """The provider in use, if there is one."""
    return config.providers[config.provider] if config.provider else None


def extraction_enabled(config: Config, provider: Provider | None = None) -> bool:
    """Are chats to be remembered? As the provider that serves says, else the one in use, else the key."""
    serving = provider or current_provider(config)
    return serving.memory if serving else config.memory_extraction


def injection_enabled(config: Config, provider: Provider | None = None) -> bool:
    """Are memories to be put into prompts? Decided as in `extraction_enabled`."""
    serving = provider or current_provider(config)
    return serving.memory if serving else config.rag_context_injection


def describe(provider: Provider) -> dict[str, Any]:
    """A provider's name and fields, with secrets masked."""
    shown = {key: known.masked(getattr(provider, key)) for key, known in PROVIDER_FIELDS.items()}
    return {"name": provider.name} | shown


def memory_advice(provider: Provider) -> str:
    """What to set `memory` to, for whoever just added a provider."""
    if provider.type == "shepherd":
        return "memory: leave it false; a remote shepherd remembers by itself"
    if _is_hosted(provider):
        return "memory: your choice with a hosted provider; true has shepherd remember and inject here"
    return "memory: true is advised for a local model or a raw inference server; nothing else remembers there"


def add_provider(path: Path, provider: Provider) -> None:
    """Write a new provider into the file; a name that exists is refused."""

    def add(table: Table) -> None:
        tables = _tables(table)
        if provider.name in tables:
            how = f"`shepherd provider {provider.name} set FIELD VALUE` changes it"
            raise InvalidInput(f"provider {provider.name!r} exists; {how}")
        tables[provider.name] = _to_table(provider)

    change(path, add)


def remove_provider(path: Path, name: str) -> None:
    """Take a provider out of the file; if it was in use, none is."""

    def remove(table: Table) -> None:
        tables = _tables(table)
        _existing(tables, name)
        del tables[name]
        if table.get("provider") == name:
            del table["provider"]

    change(path, remove)


def set_field(path: Path, name: str, field: str, text: str) -> Any:
    """Change one field, given as text; returns the value that it became."""
    value = provider_field(field).parse(text)
    change(path, lambda table: _fields(table, name).update({field: value}))
    return value


def fields_as_toml(provider: Provider) -> str:
    """A provider's fields for an editor; a secret stands there as `(set)`."""
    import tomli_w  # readers do not need it

    fields = {key: getattr(provider, key) for key in PROVIDER_FIELDS}
    if provider.api_key:
        fields["api_key"] = SET
    return tomli_w.dumps(fields)


def set_fields_from_toml(path: Path, provider: Provider, text: str) -> Provider:
    """Save what came back from an editor, if it is valid; only what was changed there is written."""
    edited = provider_from_table(provider.name, _parse_fields(provider, text))
    changed = {
        key: getattr(edited, key) for key in PROVIDER_FIELDS if getattr(edited, key) != getattr(provider, key)
    }
    change(path, lambda table: _fields(table, provider.name).update(changed))
    return edited


def use_provider(path: Path, name: str, check: Check | None = None) -> Provider:
    """Switch to a provider once it passes the check; if it does not, the old one stays in use."""
    provider = get_provider(load_config(path), name)
    if check:
        check(provider)
    change(path, lambda table: table.update(provider=name))
    return provider


def next_provider(
    path: Path,
    check: Check | None = None,
    skipped: Callable[[Provider, EndpointError], None] = lambda provider, error: None,
) -> Provider:
    """Switch to the next one by priority that passes the check; `skipped` hears of those that did not."""
    candidates = _after_current(load_config(path))
    if not candidates:
        raise NotFound("there is no other provider; `shepherd provider add NAME` adds one")
    for provider in candidates:
        try:
            return use_provider(path, provider.name, check)
        except EndpointError as error:
            skipped(provider, error)
    raise EndpointUnavailable("no other provider can be used; nothing was changed")


def _is_hosted(provider: Provider) -> bool:
    url = provider.base_url or PUBLIC_URLS.get(provider.type, "")
    host = urlsplit(url).hostname or ""
    return any(host == domain or host.endswith(f".{domain}") for domain in _HOSTED)


def _after_current(config: Config) -> list[Provider]:
    """The others, beginning behind the one in use and coming round."""
    providers = list_providers(config)
    at = next((i for i, provider in enumerate(providers) if provider.name == config.provider), None)
    return providers if at is None else providers[at + 1 :] + providers[:at]


def _parse_fields(provider: Provider, text: str) -> Table:
    import tomllib

    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"not valid TOML: {error}") from error
    if table.get("api_key") == SET:
        table["api_key"] = provider.api_key
    return table


def _to_table(provider: Provider) -> Table:
    """The type, and what differs from the defaults."""
    values = {key: getattr(provider, key) for key in PROVIDER_FIELDS}
    return {
        key: value for key, value in values.items() if key == "type" or value != PROVIDER_FIELDS[key].default
    }


def _tables(table: Table) -> Table:
    """All providers of a file."""
    tables = table.setdefault("providers", {})
    if not isinstance(tables, dict):
        raise ConfigError("providers takes tables: [providers.NAME]")
    return tables


def _fields(table: Table, name: str) -> Table:
    """One provider of a file."""
    fields = _existing(_tables(table), name)
    if not isinstance(fields, dict):
        raise ConfigError(f"providers.{name} takes a table of fields: [providers.{name}]")
    return fields


def _existing(tables: Table, name: str) -> Any:
    if name not in tables:
        hint = did_you_mean(name, tables) or "; `shepherd provider list` shows what there is"
        raise NotFound(f"no provider {name!r}{hint}")
    return tables[name]
