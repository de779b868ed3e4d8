"""What the model is asked for a note: our instructions, and what was said as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

from shepherd_memory.extraction.prompt import day_with_name, look_alike_of
from shepherd_memory.text.tokens import weigh
from shepherd_memory.work.strategy import ConversationEntry

SCHEMA_NAME = "conversation_note"

FIELDS = ("raw_memory", "rollout_summary", "rollout_slug")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "raw_memory": {"type": "string"},
        "rollout_summary": {"type": "string"},
        "rollout_slug": {"type": ["string", "null"]},
    },
    "required": list(FIELDS),
    "additionalProperties": False,
}

_MESSAGE_MARKER = look_alike_of("message")
_PART_MARKER = look_alike_of("part")
_BEFORE_MARKER = look_alike_of("before")

OVERHEAD_TOKENS = 300
"""What a request has besides the instructions and the messages: where and when, and the wire's own words."""


@dataclass(frozen=True)
class Scene:
    """Where and when a conversation took place."""

    cwd: str
    source: str
    began_at: datetime
    ended_at: datetime

    def line(self) -> str:
        where = f", in the folder {_on_one_line(self.cwd)}" if self.cwd else ""
        began, ended = day_with_name(self.began_at), day_with_name(self.ended_at)
        when = f"on {began}" if began == ended else f"from {began} to {ended}"
        return f"The conversation took place {when}{where} ({_on_one_line(self.source)})."


def _on_one_line(text: str) -> str:
    return " ".join(_escape(text).split())[:400]


@cache
def instructions(name: str) -> str:
    """A prompt that comes with the package."""
    return resources.files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8").strip()


def _escape(text: str) -> str:
    for marker in (_MESSAGE_MARKER, _PART_MARKER, _BEFORE_MARKER):
        text = marker.sub("\u2039", text)
    return text


@dataclass(frozen=True)
class RenderedMessage:
    """A message between its markers, and how much of a prompt it takes."""

    text: str
    weight: int


def render(number: int, message: ConversationEntry) -> RenderedMessage:
    """A message as data: nothing in it can look like the end of it."""
    role = message.role if message.role in ("user", "assistant") else "tool"
    opening = f'<message n="{number}" role="{role}" date="{day_with_name(message.said_at)}">'
    text = f"{opening}\n{_escape(message.text)}\n</message>\n"
    return RenderedMessage(text, weigh(text))


def ask_for_note(scene: Scene, said: Sequence[str], before: str = "") -> list[dict[str, str]]:
    """The chat that asks for the note of these messages; `before`: the summary of those before them."""
    earlier = (
        f"What came before, as it was summed up:\n<before>\n{_escape(before)}\n</before>\n" if before else ""
    )
    return _chat("note", f"{scene.line()}\n{earlier}\n{''.join(said)}")


def ask_to_merge(scene: Scene, parts: Sequence[str]) -> list[dict[str, str]]:
    """The chat that asks to make one note of those of successive parts."""
    return _chat("merge", f"{scene.line()}\n\n{''.join(parts)}")


def render_part(number: int, raw_memory: str, summary: str) -> RenderedMessage:
    """The note of one part of a conversation, as data."""
    text = f'<part n="{number}">\n{_escape(raw_memory)}\n\nSummary: {_escape(summary)}\n</part>\n'
    return RenderedMessage(text, weigh(text))


def _chat(name: str, content: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": instructions(name)}, {"role": "user", "content": content}]
