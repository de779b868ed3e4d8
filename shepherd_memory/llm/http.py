"""Connections of `requests` that tell the running call which sockets they use, so that it can be cut.

`requests` has no way to do so: its timeout counts from byte to byte, and closing a session leaves a running
call be. Cutting the call shuts its sockets down.
"""

import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from errno import EINPROGRESS, EWOULDBLOCK
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.util.wait import wait_for_write

from shepherd_memory.llm.cancellation import Address, Call

FAILURES = (requests.RequestException, HTTPError, OSError, UnicodeError)
"""What an exchange can raise."""

_READ_BYTES = 64 * 1024

# How soon a connection attempt notices that its call was cut.
_CONNECT_SLICE_SECONDS = 0.05

_BAD_ADDRESS = (
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    UnicodeError,
)


class Connections:
    """One pool of connections, used by one call at a time."""

    def __init__(self) -> None:
        self._adapter = _WatchedAdapter()
        self._session = requests.Session()
        self._session.mount("http://", self._adapter)
        self._session.mount("https://", self._adapter)

    def send(
        self,
        call: Call,
        method: str,
        url: str,
        login: "Login",
        headers: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        bypasses_proxy: bool = True,
    ) -> requests.Response:
        """Send a request, and return once the response headers are there; the caller closes the response.

        With `bypasses_proxy` this machine is asked directly, whatever proxy the environment names.
        """
        self._adapter.call = call
        # A redirect is not followed: it could take the key and the conversation to another host.
        return self._session.request(
            method,
            url,
            json=body,
            auth=login,
            headers={"Accept-Encoding": "identity", **headers},
            proxies=_proxies(url) if bypasses_proxy else None,
            timeout=call.remaining_seconds(),
            allow_redirects=False,
            stream=True,
        )

    def close(self) -> None:
        self._session.close()


def body_pieces(response: requests.Response) -> Iterator[bytes]:
    """The body as it was sent, each piece of it as soon as it is there; raises one of FAILURES."""
    # Any other way to read waits until so many bytes, or a whole chunk of the server's, are there.
    while data := response.raw.read1(_READ_BYTES, decode_content=False):
        yield data


class Login(AuthBase):
    """The headers that log in, else the user and password that the URL carries.

    Being there even without either matters: where no login is given, `requests` sends what ~/.netrc has for
    the host. The rest of the environment (proxies, CA bundles) is honoured, as by other command-line tools.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = headers

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        parts = urlsplit(self._url)
        if self._headers:
            request.headers.update(self._headers)
        elif parts.username is not None:
            HTTPBasicAuth(unquote(parts.username), unquote(parts.password or ""))(request)
        return request


def is_bad_address(error: BaseException) -> bool:
    """Whether the URL itself cannot be used."""
    return isinstance(error, _BAD_ADDRESS)


def is_timeout(error: BaseException) -> bool:
    """Whether we waited too long: on a socket of ours, as the system's own timeout has a number."""
    # A body that stops in the middle is a ConnectionError to requests; only its root tells.
    root = _root_cause(error)
    return isinstance(error, requests.Timeout) or (isinstance(root, TimeoutError) and root.errno is None)


def certificate_error(error: BaseException) -> str:
    """What is wrong with the server's certificate; empty if the failure has another cause."""
    root = _root_cause(error)
    return root.verify_message if isinstance(root, ssl.SSLCertVerificationError) else ""


def failure_reason(error: BaseException) -> str:
    """A few words on why an exchange failed, without the URL."""
    root = _root_cause(error)
    return root.strerror if isinstance(root, OSError) and root.strerror else type(root).__name__


def _root_cause(error: BaseException) -> BaseException:
    """The system's error under the layers of requests and urllib3, whose texts carry the whole URL."""
    root = error
    for layer in _layers(error):
        if isinstance(layer, OSError) and not isinstance(layer, requests.RequestException):
            root = layer
    return root


def _layers(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _proxies(url: str) -> Any:
    """No proxy for this very machine; elsewhere None leaves it to the environment."""
    host = urlsplit(url).hostname or ""
    return dict.fromkeys(("http", "https", "all")) if _is_loopback(host) else None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class _Host(Protocol):
    """What a watched connection has of a urllib3 connection."""

    adapter: "_WatchedAdapter"
    sock: Any
    port: int
    timeout: float | None
    socket_options: Any
    _dns_host: str


class _Watched:
    """Mixed into urllib3's connections: tells the running call of its lookups and sockets."""

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
