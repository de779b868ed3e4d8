"""What came back from an endpoint: a completion, or the error that says what to do about it."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from shepherd_memory.errors import EndpointError, EndpointMisconfigured, EndpointUnavailable, ItemRejected
from shepherd_memory.llm.dialect import Refusal
from shepherd_memory.text.redaction import redact

LONGEST_RETRY_AFTER_SECONDS = 3600.0
LONGEST_QUOTE = 200
_LONGEST_REFUSAL = 4_000

# No call takes so many; a greater number is nonsense that would overflow the ledger.
_MOST_TOKENS = 1_000_000_000

# So many characters in a row that are also in the conversation count as a quotation of it.
_QUOTATION = 12

_KEY, _URL, _MODEL = "memory_extraction_api_key", "memory_extraction_endpoint", "memory_extraction_model"
_ADVICE = {
    401: f"check {_KEY}",
    402: f"the account behind {_KEY} has no credit",
    403: f"check {_KEY} and whether it may use {_MODEL}",
    404: f"check {_URL} and {_MODEL}",
    405: f"check {_URL}",
    407: "the proxy wants a login: check the proxy variables of the environment",
}
# Some servers answer a wrong model or key with 400; they say so in the error's code.
_CODE_STATUS = {"model_not_found": 404, "invalid_api_key": 401, "API_KEY_INVALID": 401}

_THOUGHTS = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_UNOPENED_THOUGHTS = re.compile(r"\A.*?</think(?:ing)?>", re.DOTALL)


@dataclass(frozen=True)
class Completion:
    """The model's text without its thoughts; `truncated` when it ran into the token limit."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    truncated: bool = False


@dataclass(frozen=True)
class Reply:
    """One HTTP answer; `headers` have lower-case names, `place` is the host that gave it."""

    place: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    def payload(self) -> Any:
        """The body as JSON, or None."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True)
class Failure:
    """An answer that carries no completion, with the status it amounts to."""

    reply: Reply
    status: int
    message: str

    def refusal(self) -> Refusal:
        """Parameters are named in so many places of an error that the whole body is looked at."""
        return Refusal(self.status, self.reply.body[:_LONGEST_REFUSAL].decode("utf-8", "replace"))

    def error(self, secret: str, conversation: Sequence[str]) -> EndpointError:
        """The error to raise; it quotes the endpoint, but no secret and not the conversation."""
        said = _quotable(self.message, secret, conversation)
        what = f"{self.reply.place} answered {self.status}" + (f": {said}" if said else "")
        if self.status in (408, 425, 429) or self.status >= 500:
            too_much = self.status == 408 or self.status >= 500
            return EndpointUnavailable(what, retry_after_seconds(self.reply.headers), too_much)
        if 300 <= self.status < 400:
            return EndpointMisconfigured(f"{what}; {self._redirect_advice()}")
        if self.status in _ADVICE:
            return EndpointMisconfigured(f"{what}; {_ADVICE[self.status]}")
        return ItemRejected(what)

    def _redirect_advice(self) -> str:
        target = _host_of(self.reply.headers.get("location", "")) or self.reply.place
        return f"it redirects to {target}: set {_URL} to the address that answers itself"


def failure_of(reply: Reply) -> Failure | None:
    """The failure that a reply reports by its status, or by an error object under status 200."""
    payload = reply.payload()
    error = error_object(payload)
    if 200 <= reply.status < 300 and not error:
        return None
    message = first_text(error.get("message"), error.get("detail")) or _plain_body(reply, payload)
    return Failure(reply, _status_of(reply, error), message)


def completion_of(reply: Reply, prompt: Sequence[str]) -> Completion:
    """Read a successful reply; `prompt` is what was sent, for endpoints that do not count tokens."""
    payload = reply.payload()
    choice = _first_choice(payload)
    content = _content_text(_member(choice, "message").get("content"))
    if content is None:
        raise ItemRejected(f"unusable answer: {reply.place} sent no choices[0].message.content")
    truncated = choice.get("finish_reason") == "length"
    text = without_thoughts(content)
    if truncated and not text:
        raise ItemRejected("unusable answer: none before the token limit; raise memory_extraction_max_tokens")
    return _counted(text, content, prompt, _member(payload, "usage"), truncated)


def without_key(completion: Completion, key: str) -> Completion:
    """A completion in which the endpoint does not tell us our own key: what it says may be stored."""
    if not key or key not in completion.text:
        return completion
    return replace(completion, text=completion.text.replace(key, "(key)"))


def without_thoughts(text: str) -> str:
    """The answer of a reasoning model, without what it thought aloud before.

    Some chat templates open the thoughts in the prompt, so that only their end is in the text. In an answer
    that has begun, the same tags are the user's own words.
    """
    rest = text.strip()
    while thoughts := _THOUGHTS.match(rest):
        rest = rest[thoughts.end() :].lstrip()
    return rest if rest.startswith(("{", "[", "```")) else _UNOPENED_THOUGHTS.sub("", rest).strip()


def estimate_tokens(text: str) -> int:
    """A token for every four bytes of UTF-8: near the truth for English, not far from it for the rest."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / 4)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """What Retry-After asks for, in seconds or as a date; at most an hour, nothing if it makes no sense."""
    asked = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d*)?", asked):
        return min(float(asked), LONGEST_RETRY_AFTER_SECONDS)
    seconds = _seconds_until(asked)
    return min(seconds, LONGEST_RETRY_AFTER_SECONDS) if seconds is not None and seconds >= 0 else None


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except (TypeError, ValueError, OverflowError):
        return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (zoned - datetime.now(UTC)).total_seconds()


def _counted(
    text: str, content: str, prompt: Sequence[str], usage: Mapping[str, Any], truncated: bool
) -> Completion:
    sent, received = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    return Completion(
        text,
        sum(map(estimate_tokens, prompt)) if sent is None else sent,
        estimate_tokens(content) if received is None else received,
        estimated=sent is None or received is None,
        truncated=truncated,
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _status_of(reply: Reply, error: Mapping[str, Any]) -> int:
    """The status that the error's own code stands for; gateways put a number there and answer 200."""
    codes = [error.get("code"), error.get("type"), *_reasons(error.get("details"))]
    for code in codes:
        if isinstance(code, str) and code in _CODE_STATUS and reply.status in (200, 400):
            return _CODE_STATUS[code]
    if 200 <= reply.status < 300:
        number = _count(codes[0])
        return number if number is not None and 400 <= number < 600 else 400
    return reply.status


def _reasons(details: Any) -> list[Any]:
    return [_as_mapping(detail).get("reason") for detail in details] if isinstance(details, list) else []


def error_object(payload: Any) -> Mapping[str, Any]:
    """The error of a reply in any of the shapes in use: an object, a bare text, inside a list or a choice."""
    outer = payload[0] if isinstance(payload, list) and payload else payload
    error = _as_mapping(outer).get("error") or _first_choice(outer).get("error")
    if isinstance(error, str):
        return {"message": error}
    if error:
        return _as_mapping(error)
    return {
        k: v for k, v in _as_mapping(outer).items() if k in ("message", "detail") and "choices" not in outer
    }


def _first_choice(payload: Any) -> Mapping[str, Any]:
    choices = _as_mapping(payload).get("choices")
    return _as_mapping(choices[0]) if isinstance(choices, list) and choices else {}


def _member(value: Any, name: str) -> Mapping[str, Any]:
    return _as_mapping(_as_mapping(value).get(name))


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _content_text(content: Any) -> str | None:
    """The content as one text; some servers send it in parts."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    parts = [part if isinstance(part, str) else _as_mapping(part).get("text") for part in content]
    texts = [part for part in parts if isinstance(part, str)]
    return "".join(texts) if texts else None


def first_text(*values: Any) -> str:
    """The first of them that is a text and not empty."""
    return next((value for value in values if isinstance(value, str) and value), "")


def _plain_body(reply: Reply, payload: Any) -> str:
    """A short plain-text error; pages for browsers say nothing in 200 characters."""
    text = reply.body[: 10 * LONGEST_QUOTE].decode("utf-8", "replace")
    return "" if payload is not None or "<" in text else text


def _quotable(message: str, secret: str, conversation: Sequence[str]) -> str:
    text = " ".join(message.split())
    if secret:
        text = text.replace(secret, "(key)")
    # Redacted before it is cut: half of a secret is not known for one.
    text = redact(text[:_LONGEST_REFUSAL])
    text = "".join(c if c.isprintable() else "?" for c in text[:LONGEST_QUOTE])
    return "(its message quotes the conversation)" if _quotes(text, conversation) else text


def _quotes(text: str, conversation: Sequence[str]) -> bool:
    pieces = {text[i : i + _QUOTATION] for i in range(max(len(text) - _QUOTATION + 1, 1))}
    spoken = [" ".join(said.split()) for said in conversation]
    return any(piece in said for said in spoken for piece in pieces if len(piece) == _QUOTATION)


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
