"""Providers: the model servers that chats go to, and which of them is in use."""

from collections.abc import Callable
from dataclasses import dataclass
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
from shepherd_memory.config.keys import SHEPHERD
from shepherd_memory.config.settings import SET, UNSET, did_you_mean
from shepherd_memory.errors import (
    ConfigError,
    EndpointError,
    EndpointUnavailable,
    InvalidInput,
    NotFound,
)

__all__ = [
    "NO_MEMORY",
    "MemoryUse",
    "Provider",
    "add_provider",
    "current_provider",
    "describe",
    "fields_as_toml",
    "get_provider",
    "is_remembered_there",
    "list_providers",
    "memory_advice",
    "memory_use",
    "memory_words",
    "next_provider",
    "remove_provider",
    "set_field",
    "set_fields_from_toml",
    "unset_field",
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


@dataclass(frozen=True)
class MemoryUse:
    """What memory is to do for a chat: keep what is said, and put what it knows into prompts."""

    remembers: bool
    injects: bool

    def __bool__(self) -> bool:
        return self.remembers or self.injects

    @property
    def word(self) -> str:
        """`on`, `off`, or which of the two."""
        if self.remembers == self.injects:
            return "on" if self.remembers else "off"
        return "remember-only" if self.remembers else "inject-only"


NO_MEMORY = MemoryUse(remembers=False, injects=False)


def memory_use(config: Config, provider: Provider) -> MemoryUse:
    """As the provider's `memory` says; if that was never set, as the two general keys say.

    Not for another shepherd, which has a memory itself: what is said must not be stored in both.
    """
    if is_remembered_there(provider):
        return NO_MEMORY
    if provider.memory is not None:
        return MemoryUse(provider.memory, provider.memory)
    return MemoryUse(config.memory_extraction, config.rag_context_injection)


def is_remembered_there(provider: Provider) -> bool:
    """Whether memory is left to the server of this provider, which is a shepherd too."""
    return provider.type == SHEPHERD and not provider.memory


def memory_words(config: Config, provider: Provider) -> str:
    """What memory does for a provider's chats, for a person."""
    if is_remembered_there(provider):
        return "the server there remembers"
    use = memory_use(config, provider)
    if use.remembers and use.injects:
        return "with memory"
    if use.remembers:
        return "remembered, and nothing is put into prompts"
    return "nothing is remembered, but memories are put into prompts" if use.injects else "without memory"


def describe(config: Config, provider: Provider) -> dict[str, Any]:
    """A provider's name and fields, with secrets masked, and what memory does for its chats here."""
    shown = {key: known.masked(getattr(provider, key)) for key, known in PROVIDER_FIELDS.items()}
    use = memory_use(config, provider)
    return {"name": provider.name} | shown | {"remembers": use.remembers, "injects": use.injects}


def memory_advice(provider: Provider) -> str:
    """What to set `memory` to, for whoever just added a provider."""
    if provider.type == SHEPHERD:
        return "memory: leave it unset; a remote shepherd remembers by itself"
    if _is_hosted(provider):
        return "memory: your choice with a hosted provider; true has shepherd remember and inject here"
    return "memory: true is advised for a local model or a raw inference server; nothing else remembers there"


def add_provider(path: Path, provider: Provider) -> bool:
    """Write a new provider into the file, and whether it is in use now: it is, where none was before.

    A name that exists is refused.
    """
    is_first = False

    def add(table: Table) -> None:
        nonlocal is_first
        tables = _tables(table)
        if provider.name in tables:
            how = f"`shepherd provider {provider.name} set FIELD VALUE` changes it"
            raise InvalidInput(f"provider {provider.name!r} exists; {how}")
        tables[provider.name] = _to_table(provider)
        is_first = not table.get("provider")
        if is_first:
            table["provider"] = provider.name

    change(path, add)
    return is_first


def remove_provider(path: Path, name: str) -> bool:
    """Take a provider out of the file, and whether it was in use: then none is, until one is chosen."""
    was_used = False

    def remove(table: Table) -> None:
        nonlocal was_used
        tables = _tables(table)
        _existing(tables, name)
        del tables[name]
        was_used = table.get("provider") == name
        if was_used:
            del table["provider"]

    change(path, remove)
    return was_used


def set_field(path: Path, name: str, field: str, text: str) -> Any:
    """Change one field, given as text; returns the value that it became."""
    value = provider_field(field).parse(text)
    change(path, lambda table: _fields(table, name).update({field: value}))
    return value


def unset_field(path: Path, name: str, field: str) -> None:
    """Take one field out of the file, so that its default is in force again."""
    known = provider_field(field).key

    def remove(table: Table) -> None:
        if _fields(table, name).pop(known, None) is None:
            raise NotFound(f"{known} of {name} is not set in {path}")

    change(path, remove)


def fields_as_toml(provider: Provider) -> str:
    """A provider's fields for an editor; a secret stands there as `(set)`, what is unset as a comment."""
    import tomli_w  # readers do not need it

    fields = {key: getattr(provider, key) for key in PROVIDER_FIELDS}
    if provider.api_key:
        fields["api_key"] = SET
    unset = "".join(f"# {key} = true  # {UNSET} now\n" for key, value in fields.items() if value is None)
    return tomli_w.dumps({key: value for key, value in fields.items() if value is not None}) + unset


def set_fields_from_toml(path: Path, provider: Provider, text: str) -> Provider:
    """Save what came back from an editor, if it is valid; only what was changed there is written."""
    edited = provider_from_table(provider.name, _parse_fields(provider, text))
    changed = {
        key: getattr(edited, key) for key in PROVIDER_FIELDS if getattr(edited, key) != getattr(provider, key)
    }
    change(path, lambda table: _update(_fields(table, provider.name), changed))
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


def _update(fields: Table, changed: Table) -> None:
    """Write what was changed; TOML has no word for what is unset."""
    for key, value in changed.items():
        if value is None:
            fields.pop(key, None)
        else:
            fields[key] = value


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
