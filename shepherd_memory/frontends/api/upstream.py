"""The providers behind the server: which one serves a request, and how the request reaches it."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import lru_cache

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from shepherd_memory.config import Config, Provider
from shepherd_memory.config.keys import SHEPHERD
from shepherd_memory.config.providers import current_provider, list_providers
from shepherd_memory.frontends.web.http_errors import ANTHROPIC, OPENAI, RESPONSES, HttpError
from shepherd_memory.llm.decoding import READABLE
from shepherd_memory.llm.target import api_url, target_of
from shepherd_memory.llm.wires import wire_of
from shepherd_memory.memory.api_keys import KEY_PREFIX
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.ids import fits_header

CONNECT_SECONDS = 10
ROOT = "/v1"

_SPEAKS = {
    OPENAI: ("openai", "shepherd"),
    RESPONSES: ("openai", "shepherd"),
    ANTHROPIC: ("anthropic", "shepherd"),
}
_HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
_NOT_FORWARDED = _HOP_BY_HOP | {b"host", b"content-length", b"expect", b"authorization", b"x-api-key"}
_OWN_PREFIX = b"x-shepherd-"
_MEMORY = "x-shepherd-memory"
_PERMISSIONS = b"access-control-"
"""What a provider permits the pages of other sites it permits for itself, not for us."""

_LARGE = 2**20
_PIECE_BYTES = 65_536
_SET_BY_CLIENT = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")

Headers = Sequence[tuple[bytes, bytes]]


def open_session() -> aiohttp.ClientSession:
    """The connections to all providers; how many requests there are at once is bounded elsewhere."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=_SET_BY_CLIENT,
        timeout=aiohttp.ClientTimeout(total=None),
    )


def choose(config: Config, model: str, wire: str | None) -> tuple[Provider, str]:
    """The provider that serves a request, and the model's name there.

    By the `provider/` before the model's name, else the one in use; if that speaks another wire format, the
    first that speaks this one.
    """
    name, slash, rest = model.partition("/")
    if slash and name in config.providers:
        return _speaking(config.providers[name], wire), rest
    current = current_provider(config)
    if current is None:
        raise _none_in_use(config)
    if wire is None or current.type in _SPEAKS[wire]:
        return current, model
    other = next((p for p in list_providers(config) if p.type in _SPEAKS[wire]), None)
    return (_speaking(current, wire) if other is None else other), model


def _speaking(provider: Provider, wire: str | None) -> Provider:
    if wire is not None and provider.type not in _SPEAKS[wire]:
        path = "/v1/messages" if provider.type == "anthropic" else "/v1/chat/completions"
        raise HttpError(
            400,
            f"provider {provider.name!r} is of the type {provider.type}: use {path}, or add one of the type "
            f"{_SPEAKS[wire][0]} with `shepherd provider add NAME --type {_SPEAKS[wire][0]}`",
            code="wrong_wire_format",
        )
    return provider


def _none_in_use(config: Config) -> HttpError:
    if config.providers:
        how = f"run `shepherd provider {list_providers(config)[0].name} use`"
    else:
        how = "run `shepherd provider add NAME --base-url URL --memory`"
    return HttpError(503, f"no provider is in use; {how}", code="no_provider")


class UpstreamRequest:
    """A client's request on its way to a provider."""

    def __init__(
        self, config: Config, provider: Provider, method: str, target: str, headers: Headers
    ) -> None:
        self.provider = provider
        self.method = method
        self.url = _url(api_url(target_of(provider), target.removeprefix(ROOT)))
        self.headers = _forwarded(provider, headers, bool(self.url.user))
        if provider.type == SHEPHERD:
            # Unless it is told a user, it would remember the request for one of its own.
            self.headers[_MEMORY] = "off"
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=config.server_provider_timeout
        )

    def leave_memory_there(self, user_id: str, session_id: str, group: str) -> None:
        """Have another shepherd remember the chat, for this user and nobody else."""
        if not fits_header(user_id):
            raise HttpError(
                400, f"provider {self.provider.name!r} cannot be told this user: no header can be"
            )
        del self.headers[_MEMORY]
        self.headers["x-shepherd-user"] = user_id
        if session_id and session_id.isascii() and fits_header(session_id):
            self.headers["x-shepherd-session"] = session_id
        if group != MAIN_GROUP:
            self.headers["x-shepherd-group"] = group

    def read_only(self, codings: Iterable[str]) -> None:
        """Ask only for content codings that we can read along."""
        accepted = self.headers.get("accept-encoding")
        if accepted is not None:
            kept = [part for part in accepted.split(",") if part.partition(";")[0].strip().lower() in codings]
            self.headers["accept-encoding"] = ",".join(kept).strip() or "identity"

    def send(
        self, session: aiohttp.ClientSession, body: bytes
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """The provider's response, once its head is there."""
        return session.request(
            self.method,
            self.url,
            headers=self.headers,
            data=_LargeBody(body) if len(body) > _LARGE else body or None,
            allow_redirects=False,
            timeout=self._timeout,
        )

    def failure(self, error: BaseException) -> HttpError:
        """What the client is told when the provider cannot be reached, or breaks off before its answer."""
        if isinstance(error, TimeoutError):
            return HttpError(504, f"provider {self.provider.name!r} did not answer in time", code="timeout")
        reason = getattr(error, "os_error", None) or error
        return HttpError(
            502,
            f"provider {self.provider.name!r} cannot be reached ({type(reason).__name__})",
            code="provider_unreachable",
        )


class _LargeBody(aiohttp.Payload):
    """A body sent in pieces: in one it would hold up all else, and a BytesIO would be copied first."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self._body = body
        self._size = len(body)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._body.decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for at in range(0, len(self._body), _PIECE_BYTES):
            await writer.write(self._body[at : at + _PIECE_BYTES])
            await asyncio.sleep(0)


@lru_cache(maxsize=256)
def _url(address: str) -> URL:
    # Kept, because reading a URL takes as long as all else that is done here.
    return URL(address, encoded=True)


def readable_codings() -> tuple[str, ...]:
    """The content codings that a chat with memory may be answered in."""
    return READABLE


def _forwarded(provider: Provider, headers: Headers, signed_by_url: bool) -> CIMultiDict[str]:
    """What the client sent, less what is ours or of this connection, with the provider's key."""
    named = _named_in_connection(headers)
    kept = CIMultiDict(
        (name.decode("latin-1"), _text(value))
        for name, value in headers
        if name not in _NOT_FORWARDED and name not in named and not name.startswith(_OWN_PREFIX)
    )
    for name, text in wire_of(provider.type).headers.items():
        kept.setdefault(name, text)
    if not signed_by_url:
        _sign(kept, provider, headers)
    return kept


def _sign(kept: CIMultiDict[str], provider: Provider, headers: Headers) -> None:
    """The provider's key in place of the client's; if it has none the client's own, unless that is ours."""
    if provider.api_key:
        for header, text in wire_of(provider.type).login(provider.api_key).items():
            kept[header.lower()] = text
        return
    for name, value in headers:
        if name in (b"authorization", b"x-api-key") and KEY_PREFIX.encode() not in value:
            kept[name.decode()] = value.decode("latin-1")


def _text(value: bytes) -> str:
    """A header's value so that aiohttp, which encodes in UTF-8, sends the same bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def returned(headers: Headers, *, of_shepherd: bool = False) -> list[tuple[bytes, bytes]]:
    """The provider's headers for the client, less those of its connection and what it permits to pages.

    What is said of a memory is ours to say, unless that is left to another shepherd.
    """
    dropped = _HOP_BY_HOP | _named_in_connection(headers)
    prefixes = (_PERMISSIONS,) if of_shepherd else (_PERMISSIONS, _OWN_PREFIX)
    return [
        (name, value)
        for name, value in headers
        if name.lower() not in dropped and not name.lower().startswith(prefixes)
    ]


def _named_in_connection(headers: Headers) -> set[bytes]:
    lines = (value.lower() for name, value in headers if name.lower() == b"connection")
    return {part.strip() for line in lines for part in line.split(b",")}
