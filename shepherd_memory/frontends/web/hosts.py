"""Allowed Host headers: protection against DNS rebinding."""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from shepherd_memory.config.identity import hostname
from shepherd_memory.frontends.web.http_errors import HttpError

LOCAL = "localhost"


def allowed_names(listed: str, bound: str) -> frozenset[str]:
    """The names besides IP addresses; `*` among them means any."""
    given = {name.strip().lower() for name in listed.split(",")}
    return frozenset(given | {LOCAL, hostname().lower(), bound.lower()}) - {""}


def check(headers: Mapping[str, str], names: frozenset[str]) -> None:
    """Refuse a request that was sent to another name, or by a page of another site."""
    host = headers.get("host", "")
    if "*" not in names and not _is_allowed(host, names):
        how = "add it to server_allowed_hosts if it is this server's"
        raise HttpError(421, f"the Host header names {host[:80]!r}, which is not this server; {how}")
    origin = headers.get("origin")
    if origin is not None and _netloc(origin) != host.lower():
        raise HttpError(403, "requests by pages of other sites are refused")


def refuse_cross_site(headers: Mapping[str, str]) -> None:
    """Refuse what a browser sends for a page of another site: links and images carry no Origin."""
    if headers.get("sec-fetch-site", "").strip().lower() == "cross-site":
        raise HttpError(
            403,
            "a page of another site sent this (Sec-Fetch-Site: cross-site); without API keys that is refused",
        )


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host.lower() == LOCAL:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=1024)
def _is_allowed(host: str, names: frozenset[str]) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return name in names or name.endswith(f".{LOCAL}") or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
