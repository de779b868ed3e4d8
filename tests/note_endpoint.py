"""Scripted answers of a model that writes notes of conversations."""

import json
from typing import Any

from tests.endpoint import Body, Step, by_content, close, echo, raw_reply, user_text

SCHEMA_NAME = "conversation_note"


def schema_of(body: Body) -> str:
    """The name of the schema that an answer is asked for in."""
    described = body.get("response_format", {}).get("json_schema", {})
    return str(described.get("name", ""))


def is_for_note(body: Body) -> bool:
    return schema_of(body) == SCHEMA_NAME


def note(
    summary: str = "They chose tea.", raw: str = "---\ntask_outcome: success\n---\n- tea", **more: Any
) -> Step:
    """The answer with a note."""
    slug = more.pop("slug", "tea_time")
    fields = {"raw_memory": raw, "rollout_summary": summary, "rollout_slug": slug}
    return raw_reply(json.dumps(fields), **more)


def notes_or(other: Step, answer: Step | None = None) -> Step:
    """Notes where one is asked for, and another step for everything else."""
    written = answer or note()

    def choose(body: Body | None) -> Step:
        if body is None:
            return close()
        return written if is_for_note(body) else other

    return by_content(choose)


def facts_and_notes(answer: Step | None = None) -> Step:
    """Facts from `my KEY is VALUE`, and notes."""
    return notes_or(echo(), answer)


def requests_for_notes(bodies: list[Body]) -> list[Body]:
    return [body for body in bodies if body is not None and is_for_note(body)]


__all__ = ["facts_and_notes", "is_for_note", "note", "notes_or", "requests_for_notes", "user_text"]
