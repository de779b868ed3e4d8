"""HTTP by `requests`, with a deadline for the whole call and a way to cut it short.

`requests` has neither: its timeout counts from byte to byte, and closing a session leaves a running call be.
So the connections tell the running call which sockets it uses, and cutting the call shuts these down.
"""

import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Iterator
from errno import EINPROGRESS, EWOULDBLOCK
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util.wait import wait_for_write

from shepherd_memory.errors import EndpointError, EndpointMisconfigured, EndpointUnavailable, ItemRejected
from shepherd_memory.extraction.call import Address, Call
from shepherd_memory.extraction.reply import Reply

LONGEST_BODY = 4 * 1024 * 1024
_CHUNK = 64 * 1024

# How soon a connection attempt notices that its call was cut.
_CONNECT_SLICE_SECONDS = 0.05

_BAD_ADDRESS = (
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    UnicodeError,
)


class Transport:
    """One pool of connections, used by one call at a time."""

    def __init__(self) -> None:
        self._adapter = _WatchedAdapter()
        self._session = requests.Session()
        self._session.mount("http://", self._adapter)
        self._session.mount("https://", self._adapter)

    def post(self, call: Call, url: str, place: str, api_key: str, body: dict[str, Any]) -> Reply:
        """Send JSON and read the whole answer, or raise what the failure means; errors name the `place`."""
        self._adapter.call = call
        try:
            reply = self._exchange(call, url, place, api_key, body)
        except requests.Timeout as error:
            call.expire()
            raise EndpointUnavailable(f"{place}: {call.cut_because}", item_may_be_at_fault=True) from error
        except (requests.RequestException, OSError, UnicodeError) as error:
            # A body that stops in the middle is a ConnectionError to requests; only its root tells.
            if _is_timeout(_root_cause(error)):
                call.expire()
            raise _meaning(error, place, call) from error
        if call.cut_because:
            # Where a body ends with the connection, a cut looks like its regular end.
            raise EndpointUnavailable(f"{place}: {call.cut_because}", item_may_be_at_fault=True)
        return reply

    def close(self) -> None:
        self._session.close()

    def _exchange(self, call: Call, url: str, place: str, api_key: str, body: dict[str, Any]) -> Reply:
        # A redirect is not followed: it could take the key and the conversation to another host.
        with self._session.post(
            url,
            json=body,
            auth=_Login(url, api_key),
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            proxies=_proxies(url),
            timeout=call.remaining_seconds(),
            allow_redirects=False,
            stream=True,
        ) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Reply(place, response.status_code, headers, _bounded_body(response, place))


class _Login(AuthBase):
    """The key as a bearer token, else the user and password that the URL carries.

    Being there even without either matters: where no login is given, `requests` sends what ~/.netrc has for
    the host. The rest of the environment (proxies, CA bundles) is honoured, as by other command-line tools.
    """

    def __init__(self, url: str, api_key: str) -> None:
        self._url = url
        self._key = api_key.strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise EndpointMisconfigured(
                "memory_extraction_api_key has characters that no HTTP header can carry"
            )

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        parts = urlsplit(self._url)
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        elif parts.username is not None:
            HTTPBasicAuth(unquote(parts.username), unquote(parts.password or ""))(request)
        return request


def _proxies(url: str) -> Any:
    """No proxy for this very machine; elsewhere None leaves it to the environment."""
    host = urlsplit(url).hostname or ""
    return dict.fromkeys(("http", "https", "all")) if _is_loopback(host) else None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _bounded_body(response: requests.Response, place: str) -> bytes:
    body = bytearray()
    for chunk in response.iter_content(_CHUNK):
        body += chunk
        if len(body) > LONGEST_BODY:
            raise ItemRejected(f"unusable answer: {place} sent more than {LONGEST_BODY} bytes")
    return bytes(body)


def _meaning(error: Exception, place: str, call: Call) -> EndpointError:
    if call.cut_because:
        return EndpointUnavailable(f"{place}: {call.cut_because}", item_may_be_at_fault=True)
    if isinstance(error, _BAD_ADDRESS):
        return EndpointMisconfigured(f"memory_extraction_endpoint: {place} cannot be used as an address")
    root = _root_cause(error)
    if isinstance(root, ssl.SSLCertVerificationError):
        return EndpointMisconfigured(
            f"{place}: {root.verify_message}; check memory_extraction_endpoint and the CA"
        )
    reason = root.strerror if isinstance(root, OSError) and root.strerror else type(root).__name__
    return EndpointUnavailable(f"{place}: {reason}")


def _root_cause(error: BaseException) -> BaseException:
    """The system's error under the layers of requests and urllib3, whose texts carry the whole URL."""
    root = error
    for layer in _layers(error):
        if isinstance(layer, OSError) and not isinstance(layer, requests.RequestException):
            root = layer
    return root


def _is_timeout(error: BaseException) -> bool:
    """Of a socket of ours; the system's own has a number."""
    return isinstance(error, TimeoutError) and error.errno is None


def _layers(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


class _Host(Protocol):
    """What a watched connection has of a urllib3 connection."""

    adapter: "_WatchedAdapter"
    sock: Any
    port: int
    timeout: float | None
    socket_options: Any
    _dns_host: str


class _Watched:
    """Mixed into urllib3's connections: looks up, connects and sends under the eyes of the running call."""

    def _new_conn(self: _Host) -> socket.socket:
        call = self.adapter.running()
        addresses = _addresses(call, self._dns_host.strip("[]"), self.port)
        sock = _connect_to_one(addresses, call)
        sock.settimeout(self.timeout)
        for option in self.socket_options or ():
            sock.setsockopt(*option)
        call.watch(sock)
        return sock

    def request(self, *args: Any, **kwargs: Any) -> None:
        host: Any = self
        if host.sock is not None:
            host.adapter.running().watch(host.sock)
        super().request(*args, **kwargs)  # type: ignore[misc]


class _WatchedAdapter(HTTPAdapter):
    """Has its pools make watched connections; the class of any other (SOCKS) is left alone."""

    def __init__(self) -> None:
        self.call: Call | None = None
        self._watched = {
            plain: type("Watched" + plain.__name__, (_Watched, plain), {"adapter": self})
            for plain in (HTTPConnection, HTTPSConnection)
        }
        super().__init__(pool_connections=4, pool_maxsize=1)

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        pool.ConnectionCls = self._watched.get(pool.ConnectionCls, pool.ConnectionCls)
        return pool

    def running(self) -> Call:
        if self.call is None:
            raise RuntimeError("a connection was used outside of a call")
        return self.call


def _addresses(call: Call, host: str, port: int) -> list[Address]:
    """Numbers need no name server, and so no thread."""
    try:
        return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST))
    except socket.gaierror:
        return call.resolve(host, port)


def _connect_to_one(addresses: list[Address], call: Call) -> socket.socket:
    """The first address that answers; each gets an equal share of the time that is left."""
    failure: OSError = OSError("the name has no address")
    for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
        try:
            return _connect(address, call, call.remaining_seconds() / left)
        except OSError as error:
            failure = error
    raise failure


def _connect(address: Address, call: Call, seconds: float) -> socket.socket:
    family, kind, protocol, _, where = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        _raise_for(sock.connect_ex(where))
        _await_connected(sock, call, time.monotonic() + seconds)
        _raise_for(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    except BaseException:
        sock.close()
        raise
    return sock


def _await_connected(sock: socket.socket, call: Call, until: float) -> None:
    while not wait_for_write(sock, _CONNECT_SLICE_SECONDS):
        if call.cut_because or time.monotonic() >= until:
            raise TimeoutError(call.cut_because or "no connection")


def _raise_for(code: int) -> None:
    if code not in (0, EINPROGRESS, EWOULDBLOCK):
        raise OSError(code, os.strerror(code))
