"""Whom to ask: the address, key and model of a server, and how its errors are worded."""

from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from shepherd_memory.config import PROVIDER_FIELDS, Config, Provider
from shepherd_memory.config.keys import SHEPHERD
from shepherd_memory.config.providers import PUBLIC_URLS
from shepherd_memory.errors import EndpointMisconfigured
from shepherd_memory.text.ids import fits_header


@dataclass(frozen=True)
class TargetKind:
    """What differs between a provider and an endpoint of our settings, and why.

    The first fields are what messages call the settings to check.
    """

    key: str = "its api_key"
    permission: str = "its api_key"
    account: str = "its account"
    url: str = "its base_url"
    address: str = "its type and base_url"
    model: str = "its model"
    max_tokens: str = "chat_max_tokens"
    timeout: str = ""

    is_provider: bool = True
    """A provider's errors are read at once by the person who asked: they have its name, and advice. An
    endpoint's are stored and logged: they name its host, and quote neither secrets nor the conversation."""

    error_under_200: int = 500
    """What an error within an answer counts as: a chat that broke off, or a job that is refused."""

    blames_item_for_408: bool = False
    """A job that the server had no time for may be too much for it; a chat has a person to ask again."""

    tells_long_context: bool = True
    """A chat can leave out its oldest messages and ask again; a job cannot."""

    trusts_every_code: bool = True
    """Of a job's refusal only codes that name key or model count: a 400 may be about the format of the
    answer, which can be asked for in another way."""

    max_quote_chars: int = 300
    """A chat shows an error on its own, the queue in a list of jobs."""

    max_body_bytes: int = 16 * 1024 * 1024
    """The answer to a chat may be long; the answer to a job holds a few memories or vectors."""


PROVIDER: Final = TargetKind()


def _endpoint_kind(prefix: str) -> TargetKind:
    return TargetKind(
        key=f"{prefix}_api_key",
        permission=f"{prefix}_api_key and whether it may use {prefix}_model",
        account=f"the account behind {prefix}_api_key",
        url=f"{prefix}_endpoint",
        address=f"{prefix}_endpoint",
        model=f"{prefix}_model",
        max_tokens=f"{prefix}_max_tokens",
        timeout=f"{prefix}_timeout",
        is_provider=False,
        error_under_200=400,
        blames_item_for_408=True,
        tells_long_context=False,
        trusts_every_code=False,
        max_quote_chars=200,
        max_body_bytes=4 * 1024 * 1024,
    )


EXTRACTION: Final = _endpoint_kind("memory_extraction")
EMBEDDING: Final = _endpoint_kind("embedding")
PHASE1: Final = _endpoint_kind("memory_phase1")
PHASE2: Final = _endpoint_kind("memory_phase2")

# Without an endpoint of its own: key, address and model are extraction's.
_PHASE1_AT_EXTRACTION: Final = replace(EXTRACTION, max_tokens=PHASE1.max_tokens, timeout=PHASE1.timeout)


@dataclass(frozen=True)
class Target:
    """A server and the model there; `base_url` as configured, see `api_url`."""

    kind: TargetKind
    # Neither is shown: the key is a secret, and a URL can carry a password.
    base_url: str = field(repr=False)
    model: str = ""
    api_key: str = field(default="", repr=False)
    wire: str = "openai"
    provider_name: str = ""
    remembered_as: str = ""
    """Whom another shepherd is to remember a chat for; empty: nobody."""

    @property
    def name(self) -> str:
        """What messages call it: a provider by its name, an endpoint by host and port."""
        return self.provider_name if self.kind.is_provider else self._host()

    @property
    def key(self) -> str:
        """The key as a header can carry it: without the line end that a file may have brought along."""
        key = self.api_key.strip()
        if not (key.isascii() and key.isprintable()):
            raise EndpointMisconfigured(f"{self.kind.key} has characters that no HTTP header can carry")
        return key

    @property
    def memory_headers(self) -> dict[str, str]:
        """What another shepherd is told of the memory that it has; other servers know none of it."""
        if self.wire != SHEPHERD:
            return {}
        if not self.remembered_as:
            return {"X-Shepherd-Memory": "off"}
        if not fits_header(self.remembered_as):
            raise EndpointMisconfigured(f"{self.name} cannot be told a user_id with control characters in it")
        # The bytes of UTF-8, as they go through what encodes headers in Latin-1.
        return {"X-Shepherd-User": self.remembered_as.encode().decode("latin-1")}

    def shown_url(self, path: str = "") -> str:
        """Where the API begins, or a path behind that, without a password."""
        return PROVIDER_FIELDS["base_url"].show(api_url(self, path))

    def _host(self) -> str:
        try:
            parts = urlsplit(self.base_url)
            port = parts.port
        except ValueError as error:
            raise EndpointMisconfigured(f"{self.kind.url} is not a valid URL") from error
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            raise EndpointMisconfigured(f"{self.kind.url} must begin with http:// or https:// and a host")
        return f"{parts.hostname}:{port}" if port else parts.hostname


def target_of(provider: Provider, remembered_as: str = "") -> Target:
    """A provider, as it is asked, and if it is another shepherd, whom it remembers the chat for."""
    base_url = provider.base_url or PUBLIC_URLS.get(provider.type, "")
    return Target(
        PROVIDER, base_url, provider.model, provider.api_key, provider.type, provider.name, remembered_as
    )


def extraction_target(config: Config) -> Target:
    """The endpoint of extraction, as it is configured."""
    return Target(
        EXTRACTION,
        config.memory_extraction_endpoint,
        config.memory_extraction_model,
        config.memory_extraction_api_key,
    )


def phase1_target(config: Config) -> Target:
    """The endpoint that writes notes: its own, or that of extraction. No key goes to another's address."""
    model = config.memory_phase1_model or config.memory_extraction_model
    if config.memory_phase1_endpoint:
        return Target(PHASE1, config.memory_phase1_endpoint, model, config.memory_phase1_api_key)
    return replace(extraction_target(config), kind=_PHASE1_AT_EXTRACTION, model=model)


def phase2_target(config: Config) -> Target:
    """The endpoint that consolidates: its own, or that of the notes. No key goes to another's address."""
    first = phase1_target(config)
    model = config.memory_phase2_model or first.model
    if config.memory_phase2_endpoint:
        return Target(PHASE2, config.memory_phase2_endpoint, model, config.memory_phase2_api_key)
    kind = replace(first.kind, max_tokens=PHASE2.max_tokens, timeout=PHASE2.timeout)
    return replace(first, kind=kind, model=model)


def origin_of(url: str) -> tuple[str, str, int | None]:
    """The scheme, host and port of a URL; empty where it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        return parts.scheme, (parts.hostname or "").rstrip("."), port
    except ValueError:
        return "", "", None


def api_url(target: Target, path: str = "") -> str:
    """Where the server's API begins, or a path behind that: `/v1` is added unless the URL has it.

    A query of the URL, such as Azure's `?api-version=…`, goes behind the path, before a query of its own.
    """
    address, query = _address_and_query(target)
    if not target.kind.is_provider and path and address.endswith(path):
        return f"{address}?{query}" if query else address
    _, *segments = address.split("://", 1)[-1].split("/")
    root = address if "v1" in segments else f"{address}/v1"
    if not query:
        return root + path
    path, _, asked = path.partition("?")
    return f"{root}{path}?{query}{'&' if asked else ''}{asked}"


def _address_and_query(target: Target) -> tuple[str, str]:
    """An endpoint's URL is taken as it stands, but for one slash.

    Of a provider's, what was pasted along with it goes: a fragment, any slashes, the path of chats.
    """
    base = target.base_url
    if not target.kind.is_provider:
        address, _, query = base.partition("?")
        return address.removesuffix("/"), query
    if not base:
        how = f"`shepherd provider {target.name} set base_url URL` sets it"
        raise EndpointMisconfigured(f"{target.name} has no base_url; {how}")
    address, _, query = base.partition("#")[0].partition("?")
    return address.rstrip("/").removesuffix("/chat/completions"), query
