"""Choosing an earlier conversation at a terminal, by its number or by words, and going on with it."""

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import InvalidInput, SessionRunning
from shepherd_memory.frontends.terminal.choosing import earlier_sessions, others
from shepherd_memory.frontends.terminal.output import print_message, print_note
from shepherd_memory.frontends.terminal.session_words import ago, session_line
from shepherd_memory.frontends.terminal.tables import aligned

if TYPE_CHECKING:
    from shepherd_memory.chat.session import ChatSession
    from shepherd_memory.memory.session_catalog import SessionSummary

MAX_SHOWN = 15
HEADER = ("NO", "LAST", "SAID", "NAME AND BEGINNING")
RUNNING = "Another conversation is running elsewhere. End it, and go on with this one?"


def go_on_with(chat: "ChatSession", named: str) -> None:
    """Go on with the session of this name, or with one that the person chooses; it may be none."""
    chosen = named or pick(chat)
    if not chosen:
        return print_message("nothing was changed")
    try:
        switched = chat.switch_to(chosen)
    except SessionRunning:
        if not click.confirm(RUNNING, err=True):
            return print_message("nothing was changed")
        switched = chat.switch_to(chosen, takeover=True)
    print_note(switched.words)
    if chat.problem:
        print_note(chat.problem)


def pick(chat: "ChatSession") -> str:
    """The id of the session that the person chooses; empty if none."""
    group = chat.group
    found = earlier_sessions(chat, MAX_SHOWN + 1)[:MAX_SHOWN]
    while True:
        _show(found)
        typed = click.prompt(
            "which one? (number, or words)", default="", show_default=False, err=True
        ).strip()
        if not typed:
            return ""
        if typed.isascii() and typed.isdecimal() and 1 <= int(typed) <= len(found):
            return found[int(typed) - 1].session_id
        searched = chat.service.search_sessions(chat.user_id, typed, limit=MAX_SHOWN, group=group)
        if matching := others(chat, searched.sessions):
            found = matching
        else:
            print_note(f"nothing was found for {typed!r}")


def check_choosable(named: str, is_typed: bool) -> None:
    """A picker needs somebody who picks."""
    if not named and not is_typed:
        raise InvalidInput("say which one: --resume ID or NAME; `shepherd sessions` lists them")


def _show(found: "Sequence[SessionSummary]") -> None:
    rows = [
        (str(number), ago(one.last_activity_at), str(one.message_count), session_line(one))
        for number, one in enumerate(found, 1)
    ]
    for line in aligned([HEADER, *rows], shutil.get_terminal_size().columns):
        print_message(line)
