"""Chat messages in the OpenAI shape, read into what is stored of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shepherd_memory.intake.tool_results import MEMORY_RESULT, called_tools, without_memory_results
from shepherd_memory.storage.clock import parse_us
from shepherd_memory.text.attached import without_attached, without_attached_content
from shepherd_memory.text.block_seal import strip_content
from shepherd_memory.text.canonical import as_text, canonical_json, canonical_text, dump_canonical
from shepherd_memory.text.citations import without_cited_content
from shepherd_memory.text.ids import MAX_ID_LENGTH, digest_of, storable_id
from shepherd_memory.text.program_text import WAKE_UP, ProgramText, typed_text, without_expansions
from shepherd_memory.text.redaction import redact, redact_json

STORED_ROLES = frozenset({"user", "assistant", "tool", "function"})
INSTRUCTION_ROLES = frozenset({"system", "developer"})
MAX_QUERY_CHARS = 4000
"""Of a longer message only the tail, so many characters, is what memories are looked for by."""

EMPTY = "empty"
"""Why a message without text or anything else is skipped."""

TEXT_PART_TYPES = frozenset({"text", "input_text", "output_text"})

NO_CALLS: Mapping[str, str] = {}

_COLUMNS = frozenset({"id", "role", "created_at", "speaker_name", "speaker_type"})


@dataclass(frozen=True)
class Message:
    """One message as it will be stored: canonical, and free of secrets. Nothing behind it does that again.

    `is_unnamed`: it came without an id. Then `message_id` is the digest of what it says, which others of its
    session may say too.
    """

    message_id: str
    role: str
    text: str
    extra: str | None
    speaker_name: str
    speaker_type: str
    tool_names: str
    created_at: int
    is_unnamed: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it to store."""
        return not self.text and not self.extra


@dataclass(frozen=True)
class Skipped:
    """A message that is not stored, and why."""

    index: int
    reason: str


def read_messages(
    messages: Sequence[object], session_id: str, now: int, calls: Mapping[str, str] = NO_CALLS
) -> tuple[list[Message], list[Skipped]]:
    """What can be stored of `messages`, and what cannot; `calls`: the tools that were called before them."""
    read: list[Message] = []
    skipped: list[Skipped] = []
    calls = {**calls, **called_tools(messages)}
    for index, raw in enumerate(messages):
        reason = _refusal(raw)
        if reason is None and isinstance(raw, Mapping):
            said = without_memory_results(raw, calls)
            message = None if said is None else _read(said, session_id, now)
            reason = MEMORY_RESULT if message is None else EMPTY if message.is_empty else None
            if message is not None and reason is None:
                read.append(message)
        if reason is not None:
            skipped.append(Skipped(index, reason))
    return read, skipped


def _refusal(raw: object) -> str | None:
    if not isinstance(raw, Mapping):
        return "not a message: a dict with role and content is expected"
    role = raw.get("role")
    if not isinstance(role, str):
        return "unknown role"
    if role in INSTRUCTION_ROLES:
        return "instructions are not part of what was said"
    return None if role in STORED_ROLES else "unknown role"


def _read(raw: Mapping[Any, Any], session_id: str, now: int) -> Message:
    role = str(raw["role"])
    # Stripped before it is redacted: a block that redaction has changed is no longer known for ours.
    content = without_attached_content(strip_content(raw.get("content")))
    raw = {**raw, "content": without_cited_content(content) if role == "assistant" else content}
    text = redact(text_of(raw["content"]))
    extra = _extra(raw)
    created_at = parse_us(raw.get("created_at"))
    return Message(
        message_id=_message_id(raw, session_id, text, extra),
        role=role,
        text=text,
        extra=extra,
        speaker_name=storable_name(raw.get("speaker_name")) or storable_name(raw.get("name")),
        speaker_type=storable_name(raw.get("speaker_type")) or ("human" if role == "user" else "agent"),
        tool_names=",".join(_tool_names(raw)),
        created_at=now if created_at is None else created_at,
        is_unnamed=not _has_id(raw),
    )


def text_of(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return canonical_text(content)
    if isinstance(content, list | tuple):
        return "\n".join(filter(None, map(_part_text, content)))
    if content is None or isinstance(content, Mapping):
        return _part_text(content)
    return as_text(content)


def typed_by_user(content: object) -> str:
    """What a person typed of a user message's content, without what a program put there in their name."""
    if isinstance(content, list | tuple):
        texts = without_expansions(_part_text(part) for part in content)
        return "\n".join(filter(None, map(_typed, texts)))
    return _typed(text_of(content))


def _typed(text: str) -> str:
    text = without_attached(text)
    typed = typed_text(text)
    if isinstance(typed, ProgramText):
        return ""
    # What a person typed is kept to the last blank, unless something was taken out of it.
    return text if typed == text.strip() else typed


def _part_text(part: object) -> str:
    return canonical_text(_raw_text(part))


def _raw_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    kind, text = part.get("type", "text"), part.get("text")
    is_text = isinstance(kind, str) and kind in TEXT_PART_TYPES and isinstance(text, str)
    return str(text) if is_text else ""


def last_user_message(messages: Sequence[Any]) -> int | None:
    """The place of the last message in which the user says something, rather than a tool or a program."""
    places = range(len(messages) - 1, -1, -1)
    return next((place for place in places if is_said_by_user(messages[place])), None)


def is_said_by_user(message: Any) -> bool:
    """Whether the user says something in a message, rather than a tool or a program."""
    if not isinstance(message, Mapping) or message.get("role") != "user":
        return False
    content = message.get("content")
    if isinstance(content, list):
        return not all(type_of(part) == "tool_result" or _is_program_text(part) for part in content)
    return isinstance(content, str) and not _is_program_text(content)


def is_wake_up(message: Any) -> bool:
    """Whether a message stands for the user's first words, and has the model greet them."""
    content = message.get("content") if isinstance(message, Mapping) else None
    return content is not None and message.get("role") == "user" and text_of(content).startswith(WAKE_UP)


def _is_program_text(part: object) -> bool:
    text = _raw_text(part)
    return bool(text.strip()) and isinstance(typed_text(text), ProgramText)


def type_of(part: Any) -> Any:
    """The type of a part of a message's content; None for what is no such part."""
    return part.get("type") if isinstance(part, Mapping) else None


def _extra(raw: Mapping[Any, Any]) -> str | None:
    """Everything that has no column of its own, so that nothing a caller hands in is lost."""
    kept = {key: value for key, value in raw.items() if key not in _COLUMNS and value is not None}
    if isinstance(kept.get("content"), str):
        del kept["content"]
    if "created_at" in raw and parse_us(raw["created_at"]) is None and raw["created_at"] is not None:
        kept["created_at"] = raw["created_at"]
    return kept_as_extra(kept) if kept else None


def kept_as_extra(value: object) -> str:
    """JSON text, canonical and free of secrets, for the column `extra`."""
    return dump_canonical(redact_json(canonical_json(value)))


def _message_id(raw: Mapping[Any, Any], session_id: str, text: str, extra: str | None) -> str:
    if _has_id(raw):
        return storable_id(raw["id"])
    said_at = parse_us(raw.get("created_at"))
    return digest_of("\0".join((session_id, str(said_at), str(raw["role"]), text, extra or "")))


def _has_id(raw: Mapping[Any, Any]) -> bool:
    return raw.get("id") is not None and raw["id"] != ""


def storable_name(value: object) -> str:
    """A name, canonical and free of secrets; "" for what is no text."""
    return redact(canonical_text(value))[:MAX_ID_LENGTH] if value and isinstance(value, str) else ""


def _tool_names(raw: Mapping[Any, Any]) -> list[str]:
    calls = raw.get("tool_calls")
    if not isinstance(calls, list | tuple):
        return []
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)]
    names = [function.get("name") for function in functions if isinstance(function, Mapping)]
    return [storable_name(name) for name in names if isinstance(name, str)]
