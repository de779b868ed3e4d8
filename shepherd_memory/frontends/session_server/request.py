"""What clients ask of the session."""

from typing import Annotated, Any

import msgspec

from shepherd_memory.frontends.web.http_errors import Refusal
from shepherd_memory.frontends.web.json_body import decoded
from shepherd_memory.text.canonical import canonical_text

MOST_TOKENS = 10_000_000


class Asked(msgspec.Struct, frozen=True, kw_only=True, rename={"is_async": "async"}):
    """A prompt, and how it is to be answered; fields of other names are left alone."""

    prompt: str
    stream: bool = False
    is_async: bool = False
    max_tokens: Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)] = 0
    memory: bool = True


class Which(msgspec.Struct, frozen=True, kw_only=True):
    """Which request is to be cancelled; empty: the one that runs."""

    request: str = ""


def read_asked(body: bytes, content_type: str) -> Asked:
    """The request that a body holds: JSON with a `prompt`, or any other text, which is the prompt itself.

    Text that says what it is is never read as JSON; JSON that says so must fit.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "application/json" or media_type.endswith("+json"):
        return _checked(decoded(Asked, body))
    if not media_type.startswith("text/") and _has_prompt(body):
        return _checked(decoded(Asked, body))
    try:
        return _checked(Asked(prompt=body.decode()))
    except UnicodeDecodeError:
        raise Refusal(400, "a prompt must be in UTF-8") from None


def read_which(body: bytes) -> Which:
    """Which request a body names; an empty one names none."""
    return decoded(Which, body) if body.strip() else Which()


def _has_prompt(body: bytes) -> bool:
    """Whether this is a request in JSON whose client did not say so, as curl does not."""
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(found, dict) and "prompt" in found


def _checked(asked: Asked) -> Asked:
    if not asked.prompt.strip():
        raise Refusal(400, 'the prompt is empty; send {"prompt": "…"}, or the text itself as the body')
    if asked.stream and asked.is_async:
        raise Refusal(
            400, "stream and async exclude each other: an async request is followed at GET /updates"
        )
    return msgspec.structs.replace(asked, prompt=canonical_text(asked.prompt))
