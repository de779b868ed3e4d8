"""`shepherd remember`: hand an exchange to memory."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from shepherd_memory.errors import EndpointUnavailable, InvalidInput
from shepherd_memory.extraction.extractor import extraction_endpoint
from shepherd_memory.frontends.cli.advice import how_to_configure
from shepherd_memory.frontends.cli.opening import group_option, open_for_writing, user_option
from shepherd_memory.frontends.cli.streams import stdin_text
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_json, json_option, print_note
from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.intake.store import Remembered
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.work import jobs
from shepherd_memory.work.jobs import Job

if TYPE_CHECKING:
    from shepherd_memory.service import Service

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class RememberInput:
    """What is to be remembered."""

    messages: list[Any]
    session_id: str | None = None


@click.command()
@click.argument("text", required=False, type=canonical_text)
@click.option("--assistant", type=canonical_text, metavar="TEXT", help="The assistant's reply to TEXT.")
@click.option(
    "--session", type=canonical_text, metavar="ID", help="The session it belongs to; else a new one."
)
@click.option("--no-extract", is_flag=True, help="Store the messages only; no facts are made of them.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Extract in this process, and wait for it up to so long.",
)
@user_option
@group_option
@json_option
@pass_invocation
def remember(
    invocation: Invocation,
    text: str | None,
    assistant: str | None,
    session: str | None,
    no_extract: bool,
    wait: float | None,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Remember what the user said.

    TEXT is one message of the user. Without it, or with `-`, messages come on stdin: a JSON list of
    messages, an object with `messages` and `session_id`, or one message per line.
    """
    exchange = _exchange(text, assistant)
    with open_for_writing(invocation, user, worker=wait is not None) as (service, user_id):
        result = service.remember(
            user_id,
            exchange.messages,
            session or exchange.session_id,
            extract=not no_extract,
            group=group,
        )
        if not as_json:
            _say_what_became_of_it(invocation, service, user_id, result, no_extract)
        seconds = wait if wait and extraction_endpoint(service.config) else 0
        item = _waited(service, user_id, result.session_id, group, seconds)
    _conclude(result, item, wait, as_json)


def _exchange(text: str | None, assistant: str | None) -> RememberInput:
    if text is None or text == "-":
        if assistant is not None:
            raise InvalidInput("--assistant goes with TEXT; on stdin the reply is a message of its own")
        return _parsed(stdin_text(asked=text == "-"))
    reply = [] if assistant is None else [{"role": "assistant", "content": assistant}]
    return RememberInput([{"role": "user", "content": text}, *reply])


def _parsed(given: str) -> RememberInput:
    if not given.strip():
        raise InvalidInput("nothing to remember: give TEXT, or messages as JSON on stdin")
    try:
        whole = json.loads(given)
    except (ValueError, RecursionError) as error:
        if given.lstrip().startswith("["):
            raise InvalidInput(f"stdin is not valid JSON: {error}") from error
        return RememberInput(list(_lines(given)))
    if isinstance(whole, dict) and "messages" in whole:
        return _with_session(whole)
    return RememberInput(whole if isinstance(whole, list) else [whole])


def _with_session(whole: dict[str, Any]) -> RememberInput:
    messages, session_id = whole["messages"], whole.get("session_id")
    if not isinstance(messages, list) or not isinstance(session_id, str | None):
        raise InvalidInput("stdin: messages takes a list, session_id a text")
    return RememberInput(messages, session_id)


def _lines(given: str) -> Iterator[Any]:
    for number, line in enumerate(given.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(
                f'stdin, line {number}: not JSON ({error}); a line is {{"role": "user", "content": "…"}}'
            ) from error


def _say_what_became_of_it(
    invocation: Invocation, service: "Service", user_id: str, result: Remembered, no_extract: bool
) -> None:
    if result.stored or result.known:
        print_note(f"stored {_messages(result.stored)} of {user_id} in session {result.session_id}")
    if result.known:
        print_note(f"{_messages(result.known)} known already, or deleted by the user")
    for skipped in result.skipped:
        print_note(f"skipped message {skipped.index + 1}: {skipped.reason}")
    if result.queued:
        print_note("queued for extraction")
    elif result.stored and not no_extract and extraction_endpoint(service.config) is None:
        print_note("extraction is off: facts are made of this once it is on, after")
        for command in how_to_configure(invocation, service.config):
            print_note(f"  {command}")


def _messages(number: int) -> str:
    return f"{number} message{'' if number == 1 else 's'}"


def _waited(service: "Service", user_id: str, session_id: str, group: str, seconds: float) -> Job | None:
    """The session's last item, once it has ended or the time is up; None if there is no item."""
    deadline = time.monotonic() + seconds
    while True:
        items = service.items(user_id, session_id=session_id, newest=True, limit=1, group=group)
        left = deadline - time.monotonic()
        if not items or items[0].status not in (jobs.WAITING, jobs.RUNNING) or left <= 0:
            return items[0] if items else None
        service.flush(min(left, POLL_SECONDS))


def _conclude(result: Remembered, item: Job | None, wait: float | None, as_json: bool) -> None:
    if as_json:
        emit_json(plain(result) | {"item": _item(item)})
    if not (result.stored or result.known):
        raise InvalidInput(f"nothing was stored: {result.reason}")
    if wait is None or item is None:
        return
    if item.status in (jobs.WAITING, jobs.RUNNING):
        why = escape_line(item.last_error) or "it still waits"
        raise EndpointUnavailable(f"not extracted after {wait:g} s: {why}")
    if item.status != jobs.DONE:
        raise EndpointUnavailable(f"extraction {item.status}: {escape_line(item.last_error or item.outcome)}")
    if not as_json:
        print_note(f"extracted: {item.outcome}")


def _item(item: Job | None) -> dict[str, Any] | None:
    if item is None:
        return None
    return {"id": item.id, "status": item.status, "outcome": item.outcome, "last_error": item.last_error}
