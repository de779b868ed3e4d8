"""Reading the note that a model wrote, however it dressed it up, and making it storable."""

import re
from dataclasses import dataclass

from shepherd_memory.conversations.conversation_text import shorten
from shepherd_memory.errors import AnswerCutOff, ItemRejected
from shepherd_memory.extraction.loose_json import Value, values_in
from shepherd_memory.phases.outputs import TASK_OUTCOMES
from shepherd_memory.text.block_seal import strip_injection, without_records
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.reasoning import without_all_reasoning
from shepherd_memory.text.redaction import redact

MAX_ANSWER_CHARS = 200_000
MAX_RAW_CHARS = 20_000
MAX_SUMMARY_CHARS = 4_000
MAX_SLUG_CHARS = 60

_NAMES = {
    "raw_memory": ("raw_memory", "rawmemory", "memory", "note"),
    "rollout_summary": ("rollout_summary", "rolloutsummary", "summary"),
    "rollout_slug": ("rollout_slug", "rolloutslug", "slug"),
}
"""How models call the three fields."""

_NO_WORD = re.compile(r"[\W_]+")
_NOTHING = frozenset({"", "none", "null", "nil", "n/a", "na", "empty", "nothing", "-"})
_TASK_OUTCOME = re.compile(r"^\W{0,4}task_outcome\W{1,5}(\w+)", re.MULTILINE | re.IGNORECASE)
_HEAD_CHARS = 2_000


@dataclass(frozen=True)
class NoteAnswer:
    """What a model says of a conversation, storable as it is."""

    raw_memory: str = ""
    summary: str = ""
    slug: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was worth a note: one of the two texts alone is none."""
        return not (self.raw_memory and self.summary)

    @property
    def task_outcome(self) -> str:
        """How the task went, if the note says so in the word for it."""
        found = _TASK_OUTCOME.search(self.raw_memory[:_HEAD_CHARS])
        word = found[1].lower() if found else ""
        return word if word in TASK_OUTCOMES else ""


def read_note(text: str, is_truncated: bool = False) -> NoteAnswer:
    """The note in a model's answer; ItemRejected if there is none to be made sense of."""
    if len(text) > MAX_ANSWER_CHARS:
        raise ItemRejected(f"unusable answer: {len(text)} characters long")
    found = [one for one in values_in(without_all_reasoning(text)) if _is_note(one.value)]
    whole = [one for one in found if not one.cut_off]
    if whole:
        return _cleaned(whole[-1].value)
    if is_truncated or found:
        raise AnswerCutOff("unusable answer: cut off before its end; raise memory_phase1_max_tokens")
    raise ItemRejected("unusable answer: no JSON object with raw_memory and rollout_summary in it")


def _is_note(value: Value) -> bool:
    return isinstance(value, dict) and any(
        name in _NAMES["rollout_summary"] for name in map(str.lower, value)
    )


def _cleaned(value: Value) -> NoteAnswer:
    named = {name.lower(): entry for name, entry in value.items()} if isinstance(value, dict) else {}
    raw, summary, slug = (_field(named, names) for names in _NAMES.values())
    return NoteAnswer(
        shorten(_storable(raw), MAX_RAW_CHARS),
        shorten(_storable(summary), MAX_SUMMARY_CHARS),
        slug_of(_storable(slug)),
    )


def _field(named: dict[str, Value], names: tuple[str, ...]) -> str:
    value = next((named[name] for name in names if name in named), None)
    text = "\n".join(map(_text, value)) if isinstance(value, list) else _text(value)
    return "" if text.strip().lower() in _NOTHING else text


def _text(value: Value) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{name}: {_text(entry)}" for name, entry in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return value if isinstance(value, str) else ""


def storable_note(raw_memory: str, summary: str) -> NoteAnswer:
    """A note that something else than a model wrote, made storable in the same way."""
    return NoteAnswer(
        shorten(_storable(raw_memory), MAX_RAW_CHARS), shorten(_storable(summary), MAX_SUMMARY_CHARS)
    )


def _storable(text: str) -> str:
    """Canonical, without secrets, and without what could pass for a block of ours."""
    plain = canonical_text(text).replace("\r\n", "\n").replace("\r", "\n")
    return redact(without_records(strip_injection(plain))).strip()


def slug_of(text: str) -> str:
    """Words with underscores between them: a name that can be part of a file's."""
    return _NO_WORD.sub("_", text.lower()).strip("_")[:MAX_SLUG_CHARS].rstrip("_")
