"""What a provider's refusal means for whoever asked: what to do, in its own words where it has some."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shepherd_memory.errors import (
    ContextTooLong,
    EndpointError,
    EndpointMisconfigured,
    EndpointUnavailable,
    ItemRejected,
)
from shepherd_memory.llm.answer import json_object
from shepherd_memory.llm.completion import error_object, first_text, retry_after_seconds

LONGEST_QUOTE = 300
_LONGEST_READ = 4_000

_ADVICE = {
    401: "check its api_key",
    402: "its account has no credit",
    403: "check its api_key",
    404: "check its base_url and its model",
    405: "check its type and base_url",
    407: "the proxy wants a login: check the proxy variables of the environment",
}

# What an error is called, where its status does not say it: within a stream, and behind gateways.
_STATUS_OF = {
    "authentication_error": 401,
    "invalid_api_key": 401,
    "API_KEY_INVALID": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "api_error": 500,
    "internal_error": 500,
    "server_error": 500,
    "unavailable_error": 503,
    "timeout_error": 504,
    "overloaded_error": 529,
}

_TOO_LONG_CODES = ("context_length_exceeded", "exceed_context_size_error")
_TOO_LONG = re.compile(
    r"maximum (context|prompt|model) length"
    r"|prompt is too long|too large for model"
    r"|exceeds?( the)?( available| maximum| model'?s?)* context"
    r"|longer than the (maximum )?(model|context) length"
    r"|(greater|longer) than (the )?(max_seq_len|context)"
    r"|context (length|window|size) (is |was )?(exceeded|of only)"
    r"|input token count.{0,40} exceeds the maximum"
    r"|reduce the length of the (messages|prompt)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Refusal:
    """An answer that is no chat; `status` 200 if it came within one."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    """With lower-case names."""
    problem: Mapping[str, Any] | None = None
    """The error, where it was found already."""

    def text(self) -> str:
        """The beginning of the body."""
        return self.body[:_LONGEST_READ].decode("utf-8", "replace")

    def error(self, name: str, secret: str) -> EndpointError:
        """The error to raise; it names the provider, and never the secret."""
        error = error_object(self.problem if self.problem is not None else json_object(self.body.strip()))
        status = _status_of(self.status, error)
        said = _quotable(first_text(error.get("message"), error.get("detail")) or self._plain(error), secret)
        what = _what(name, self.status, status, said)
        if _is_too_long(status, error):
            return ContextTooLong(f"{what}; the conversation is too long for this model")
        return self._by_status(status, what)

    def _by_status(self, status: int, what: str) -> EndpointError:
        if status in (408, 425, 429) or status >= 500:
            asked = retry_after_seconds(self.headers)
            when = "later" if asked is None else f"in {asked:g} s"
            return EndpointUnavailable(f"{what}; try again {when}", asked, item_may_be_at_fault=status >= 500)
        if status < 400:
            # Not followed: the key is meant for the server that was named.
            return EndpointMisconfigured(f"{what}, a redirect; set base_url to where it leads")
        if status in _ADVICE:
            return EndpointMisconfigured(f"{what}; {_ADVICE[status]}")
        return ItemRejected(what)

    def _plain(self, error: Mapping[str, Any]) -> str:
        """A short plain text; pages for browsers say nothing in so few characters."""
        text = self.text()
        return "" if error or "<" in text or text.startswith("{") else text


def _what(name: str, answered: int, status: int, said: str) -> str:
    if answered == 200:
        return f"{name} broke off: {said or f'error {status}'}"
    return f"{name} answers {answered}" + (f": {said}" if said else "")


def _status_of(status: int, error: Mapping[str, Any]) -> int:
    """The status that the error's own name or code stands for, where the answer's says little."""
    if status not in (200, 400):
        return status
    for word in (error.get("code"), error.get("type")):
        if isinstance(word, str) and word in _STATUS_OF:
            return _STATUS_OF[word]
    code = error.get("code")
    if status == 200:
        return code if type(code) is int and 400 <= code < 600 else 500
    return status


def _is_too_long(status: int, error: Mapping[str, Any]) -> bool:
    if status in (401, 402, 403, 404, 429):
        return False
    if status == 413 or any(error.get(key) in _TOO_LONG_CODES for key in ("code", "type")):
        return True
    said = first_text(error.get("message"), error.get("detail"))
    return _TOO_LONG.search(said[:_LONGEST_READ]) is not None


def _quotable(message: str, secret: str) -> str:
    text = " ".join(message[:_LONGEST_READ].split())
    if secret:
        text = text.replace(secret, "(key)")
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"
