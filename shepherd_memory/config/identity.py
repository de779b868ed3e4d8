"""Whose memory is this: the user_id of whoever sits at this machine."""

from collections.abc import Callable
from dataclasses import dataclass

from shepherd_memory.config import Config

UNKNOWN = "unknown"
"""The user_id for which nothing is stored, searched, injected or queued."""


@dataclass(frozen=True)
class Identity:
    """A user_id and where it came from: `config`, `machine` or `unknown`."""

    user_id: str
    source: str


def is_known(user_id: str) -> bool:
    """Is there somebody whose memory may be kept under this user_id?"""
    return user_id.strip() not in ("", UNKNOWN)


def hostname() -> str:
    """The name of this machine, or nothing."""
    import socket  # only detection needs it

    try:
        return socket.gethostname().strip()
    except OSError:
        return ""


def username() -> str:
    """The name of this account, or nothing."""
    import getpass

    try:
        return getpass.getuser().strip()
    except (KeyError, ImportError, OSError):
        # An account without a name, as containers have.
        return ""


def detect_user_id(
    config: Config, host: Callable[[], str] = hostname, user: Callable[[], str] = username
) -> Identity:
    """`config.user_id`, else `hostname:username`, else `unknown`."""
    if config.user_id:
        return Identity(config.user_id, "config")
    host_name, user_name = host(), user()
    if host_name and user_name:
        return Identity(f"{host_name}:{user_name}", "machine")
    return Identity(UNKNOWN, "unknown")
