"""What a failed exchange means: one table from statuses, codes and broken connections to our errors."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from shepherd_memory.errors import (
    ContextTooLong,
    EndpointError,
    EndpointMisconfigured,
    EndpointUnavailable,
    ItemRejected,
)
from shepherd_memory.llm.answer import as_list, as_mapping, json_value, token_count
from shepherd_memory.llm.cancellation import Call
from shepherd_memory.llm.dialect import RejectedRequest
from shepherd_memory.llm.http import certificate_error, failure_reason, is_bad_address, is_timeout
from shepherd_memory.llm.target import Target
from shepherd_memory.text.redaction import redact

MAX_RETRY_AFTER_SECONDS = 3600.0
_MAX_READ_CHARS = 4_000

# So many characters in a row that are also in the conversation count as a quotation of it.
_QUOTATION_CHARS = 12

_BUSY = (408, 425, 429)
# What gateways answer for a server that is away or overloaded, whatever it was sent.
_AWAY = frozenset({502, 503, 504, *range(520, 528), 529, 530})
# May be about the key, the address and the model, or about this one request.
_RELATIVE = (402, 403, 404)

# With the names of the target's settings.
_ADVICE = {
    401: "check {0.key}",
    402: "{0.account} has no credit",
    403: "check {0.permission}",
    404: "check {0.url} and {0.model}",
    405: "check {0.address}",
    407: "the proxy wants a login: check the proxy variables of the environment",
}

# What an error is called, where its status does not say it: within a stream, and behind gateways.
_STATUS_OF_CODE = {
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
_KEY_OR_MODEL_CODES = ("invalid_api_key", "API_KEY_INVALID", "model_not_found")

_OTHER_USER = "user_not_allowed_for_key"
"""What another shepherd calls it that its key is somebody else's."""

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
class HttpReply:
    """One HTTP answer; `headers` have lower-case names."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def is_success(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True)
class Failure:
    """A reply that is not the answer: the error object in it, and the status that it amounts to."""

    target: Target
    reply: HttpReply
    error_object: Mapping[str, Any]
    status: int
    message: str

    def rejected(self) -> RejectedRequest:
        """Parameters are named in so many places of an error that the whole body is looked at."""
        return RejectedRequest(self.status, _beginning(self.reply.body))

    def error(self, conversation: Sequence[str] = ()) -> EndpointError:
        """The error to raise; it quotes the server, but no secret."""
        kind, what = self.target.kind, self._what(conversation)
        if kind.tells_long_context and self._is_too_long():
            return ContextTooLong(f"{what}; the conversation is too long for this model")
        if self.status in _BUSY or self.status >= 500:
            return self._unavailable(what)
        if self.status < 400:
            return EndpointMisconfigured(what + self._redirect_advice())
        if self.status in _ADVICE:
            return EndpointMisconfigured(f"{what}; {self._advice()}", self.status in _RELATIVE)
        return ItemRejected(what)

    def _advice(self) -> str:
        if self.error_object.get("code") == _OTHER_USER and self.target.remembered_as:
            own = self.target.remembered_as
            return (
                f"here the user is {own!r}: `shepherd config set user_id NAME` or --user NAME says otherwise"
            )
        return _ADVICE[self.status].format(self.target.kind)

    def _what(self, conversation: Sequence[str]) -> str:
        quote = _quotable(self.message, self.target, conversation)
        name = self.target.name
        if not self.target.kind.is_provider:
            answer = f"{name} answered {self.status}"
        elif self.reply.status == 200:
            return f"{name} broke off: {quote or f'error {self.status}'}"
        else:
            answer = f"{name} answers {self.reply.status}"
        return f"{answer}: {quote}" if quote else answer

    def _unavailable(self, what: str) -> EndpointUnavailable:
        kind, seconds = self.target.kind, retry_after_seconds(self.reply.headers)
        is_error = self.status >= 500 and self.status not in _AWAY
        blames_item = is_error or (self.status == 408 and kind.blames_item_for_408)
        if kind.is_provider:
            what += "; try again later" if seconds is None else f"; try again in {seconds:g} s"
        return EndpointUnavailable(what, seconds, blames_item)

    def _redirect_advice(self) -> str:
        # Not followed: the key is meant for the server that was named.
        if self.target.kind.is_provider:
            return ", a redirect; set base_url to where it leads"
        host = _host_in(self.reply.headers.get("location", "")) or self.target.name
        return f"; it redirects to {host}: set {self.target.kind.url} to the address that answers itself"

    def _is_too_long(self) -> bool:
        error = self.error_object
        if self.status in (401, 402, 403, 404, 429):
            return False
        if self.status == 413 or any(error.get(key) in _TOO_LONG_CODES for key in ("code", "type")):
            return True
        return _TOO_LONG.search(_message_in(error)[:_MAX_READ_CHARS]) is not None


def failure_of(target: Target, reply: HttpReply) -> Failure | None:
    """The failure that a reply reports by its status, or by an error object under a good one."""
    payload = json_value(reply.body.strip())
    error = _error_object(payload)
    if reply.is_success() and not error:
        return None
    message = _message_in(error) or _plain_text(target, reply.body, payload)
    return Failure(target, reply, error, _status_of(target, reply.status, error), message)


def failure_within(target: Target, problem: Mapping[str, Any]) -> Failure:
    """The failure that a server reports within an answer that had begun well."""
    error = _error_object(problem)
    return Failure(target, HttpReply(200), error, _status_of(target, 200, error), _message_in(error))


def refused_check(target: Target, path: str, status: int) -> EndpointError:
    """What the answer to a question without content means: only the provider can be at fault."""
    what = f"{target.name}: {target.shown_url(path)} answers {status}"
    if status in _BUSY or status >= 500:
        return EndpointUnavailable(f"{what}; try again later")
    if status < 400:
        return EndpointMisconfigured(f"{what}, a redirect; set base_url to where it leads")
    known = {401: _ADVICE[401], 403: _ADVICE[403], 404: "check {0.url}"}
    return EndpointMisconfigured(f"{what}; {known.get(status, _ADVICE[405]).format(target.kind)}")


def unreachable(target: Target, call: Call, error: Exception, path: str = "") -> EndpointError:
    """What it means that a server could not be asked, in general or for what is at a path."""
    if is_timeout(error):
        call.expire()
    if call.cut_because:
        return cut_short(target, call)
    name, kind = target.name, target.kind
    if is_bad_address(error):
        named = f"{name}: {kind.url}" if kind.is_provider else f"{kind.url}: {name}"
        return EndpointMisconfigured(f"{named} cannot be used as an address")
    where = f"{name}: {target.shown_url()}" if kind.is_provider else name
    if trouble := certificate_error(error):
        return EndpointMisconfigured(f"{where}: {trouble}; check {kind.url} and the CA")
    reason = failure_reason(error)
    if not kind.is_provider:
        return EndpointUnavailable(f"{name}: {reason}")
    shown = target.shown_url(path)
    return EndpointUnavailable(f"{name}: cannot reach {shown} ({reason}); is the server running?")


def broken_off(target: Target, reason: str) -> EndpointUnavailable:
    """The error for an answer of which only the beginning came."""
    if not target.kind.is_provider:
        return EndpointUnavailable(f"{target.name}: {reason}")
    return EndpointUnavailable(f"the answer of {target.name} broke off ({reason}); try again")


def cut_short(target: Target, call: Call) -> EndpointUnavailable:
    """The error for a call that was cut: by its deadline, or by somebody."""
    advice = "; try again later" if target.kind.is_provider else ""
    return EndpointUnavailable(f"{target.name}: {call.cut_because}{advice}", item_may_be_at_fault=True)


def too_long(target: Target, max_chars: int) -> ItemRejected:
    """The error for an answer of which there is more than anyone reads."""
    if not target.kind.is_provider:
        limit = target.kind.max_body_bytes
        return ItemRejected(f"unusable answer: {target.name} sent more than {limit} bytes")
    limit_text = f"{max_chars:,} characters"
    return ItemRejected(f"{target.name}: the answer is longer than {limit_text}; ask for a shorter one")


_SECONDS = re.compile(r"\d++(\.\d*+)?")


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """What Retry-After asks for, in seconds or as a date; at most an hour, nothing if it makes no sense."""
    asked = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(asked):
        return min(float(asked), MAX_RETRY_AFTER_SECONDS)
    seconds = _seconds_until(asked)
    return min(seconds, MAX_RETRY_AFTER_SECONDS) if seconds is not None and seconds >= 0 else None


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (TypeError, ValueError, OverflowError):
        return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (zoned - datetime.now(UTC)).total_seconds()


def _status_of(target: Target, status: int, error: Mapping[str, Any]) -> int:
    """The status that the error's own name or code stands for, where the answer's says little."""
    code = error.get("code")
    if status in (200, 400):
        details = [as_mapping(detail).get("reason") for detail in as_list(error.get("details"))]
        trusted = _STATUS_OF_CODE if target.kind.trusts_every_code else _KEY_OR_MODEL_CODES
        for word in (code, error.get("type"), *details):
            if isinstance(word, str) and word in trusted:
                return _STATUS_OF_CODE[word]
    if not 200 <= status < 300:
        return status
    # Gateways put a number there and answer 200.
    number = token_count(code)
    return number if number is not None and 400 <= number < 600 else target.kind.error_under_200


def _error_object(payload: Any) -> Mapping[str, Any]:
    """The error of a reply in any of the shapes in use: an object, a bare text, inside a list or a choice."""
    outer = as_mapping(payload[0] if isinstance(payload, list) and payload else payload)
    choices = as_list(outer.get("choices"))
    error = outer.get("error") or as_mapping(choices[0] if choices else None).get("error")
    if isinstance(error, str):
        return {"message": error}
    if error:
        return as_mapping(error)
    return {key: outer[key] for key in ("message", "detail") if key in outer and "choices" not in outer}


def _message_in(error: Mapping[str, Any]) -> str:
    texts = (error.get("message"), error.get("detail"))
    return next((text for text in texts if isinstance(text, str) and text), "")


def _plain_text(target: Target, body: bytes, payload: object) -> str:
    """A short plain text; pages for browsers, and JSON that is cut, say nothing in so few characters."""
    text = _beginning(body)
    is_said = payload is None or (target.kind.is_provider and not isinstance(payload, dict))
    return text if is_said and "<" not in text and not text.startswith("{") else ""


def _beginning(body: bytes) -> str:
    return body[:_MAX_READ_CHARS].decode("utf-8", "replace")


def _quotable(message: str, target: Target, conversation: Sequence[str]) -> str:
    """What a server said, in short: to a person as it is, into a log without what nobody else may read."""
    text, limit = " ".join(message.split()), target.kind.max_quote_chars
    if secret := target.api_key.strip():
        text = text.replace(secret, "(key)")
    if target.kind.is_provider:
        return text if len(text) <= limit else text[: limit - 1] + "…"
    # Redacted before it is cut: half of a secret is not known for one.
    text = redact(text[:_MAX_READ_CHARS])
    text = "".join(c if c.isprintable() else "?" for c in text[:limit])
    return "(its message quotes the conversation)" if _quotes(text, conversation) else text


def _quotes(text: str, conversation: Sequence[str]) -> bool:
    ends = range(_QUOTATION_CHARS, len(text) + 1)
    pieces = {text[end - _QUOTATION_CHARS : end] for end in ends}
    spoken = [" ".join(said.split()) for said in conversation]
    return any(piece in said for said in spoken for piece in pieces)


def _host_in(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
