"""`shepherd memory health-check`: how a user's transcripts are doing."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from shepherd_memory.frontends.cli.opening import group_option, open_for_reading, user_option
from shepherd_memory.frontends.cli.progress import size
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_json, json_option
from shepherd_memory.frontends.terminal.tables import emit_pairs
from shepherd_memory.frontends.terminal.times import age

if TYPE_CHECKING:
    from shepherd_memory.service import Service


@click.command("health-check")
@user_option
@group_option
@json_option
@pass_invocation
def health_check(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    """Show how transcripts are doing.

    What was taken in, what waits, and what could not be read. The exit code is 0 either way.
    """
    from shepherd_memory.frontends.cli.transcripts.folders import watching_as_json, watching_line

    with open_for_reading(invocation, user) as (service, user_id):
        checked, config = _checked(service, user_id, group), service.config
    if as_json:
        emit_json(checked | {"watching": watching_as_json(config)})
    else:
        emit_pairs([*_pairs(checked), ("watching", watching_line(invocation, config)), *_errors(checked)])


def _checked(service: "Service", user_id: str, group: str) -> dict[str, Any]:
    health, embedding = service.transcripts.health(user_id, group=group), service.status().embedding
    return {
        "user_id": user_id,
        "files": health.files,
        "ingesting": health.ingesting,
        "bytes": health.bytes,
        "entries": health.entries,
        "skipped": health.skipped,
        "conversations": health.conversations,
        "lag": round(health.lag_seconds, 3),
        "errors": health.errors,
        "embedding": {
            "engine": embedding.engine,
            "waiting": service.unembedded(user_id, group=group),
            "lag": round(embedding.lag_seconds, 3),
            "problem": embedding.problem,
        },
    }


def _pairs(checked: Mapping[str, Any]) -> list[tuple[str, str]]:
    embedding, lag = checked["embedding"], checked["lag"]
    reading_now = f", {checked['ingesting']} being read now" if checked["ingesting"] else ""
    return [
        ("user_id", checked["user_id"]),
        ("files", f"{checked['files']} ({size(checked['bytes'])}){reading_now}"),
        ("entries", str(checked["entries"])),
        ("passed over", _counts(checked["skipped"]) or "nothing"),
        ("conversations", _counts(checked["conversations"])),
        ("lag", f"a conversation that has ended waits for {age(lag)}" if lag else "none"),
        ("embedding", _embedding_line(embedding)),
    ]


def _embedding_line(embedding: Mapping[str, Any]) -> str:
    if embedding["problem"]:
        return str(embedding["problem"])
    late = (
        f", the oldest for {age(embedding['lag'])}" if embedding["waiting"] and embedding["lag"] >= 1 else ""
    )
    return f"{embedding['engine']}; {embedding['waiting']} wait{late}"


def _errors(checked: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = [("error", f"{key}: {problem}") for key, problem in checked["errors"].items()]
    return found or [("errors", "none")]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.items())
