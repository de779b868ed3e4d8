"""A chat as a person sees it on a terminal: the answer as it comes, and what else happens around it."""

import os
import sys
from typing import Any

import click

from shepherd_memory.chat import events
from shepherd_memory.frontends.terminal.safe_text import escape_block, escape_line
from shepherd_memory.frontends.terminal.session_words import handed_on
from shepherd_memory.frontends.terminal.tables import clip

MAX_LINE_CHARS = 100
"""Of what a tool is called with, or answers."""


class Printer:
    """Prints events: the answer to stdout, everything else to stderr."""

    def __init__(self, *, is_quiet: bool = False) -> None:
        self._is_quiet = is_quiet
        self._ends_with_newline = True
        self._is_thinking = False

    def show(self, event: events.Event) -> None:
        """Print what happened."""
        match event:
            case events.TextDelta(text):
                self._answer(text)
            case events.ReasoningDelta(text):
                self._think(text)
            case events.TurnCompleted() | events.TurnCancelled():
                self._end_line()
                if isinstance(event, events.TurnCancelled):
                    self._talk("(cancelled)")
            case events.TurnFailed(problem):
                self._end_line()
                self._talk(problem, fg="red")
            case _:
                self._aside(event)

    def _aside(self, event: events.Event) -> None:
        match event:
            case events.ToolCalled(_, name, arguments):
                self._talk(f"→ {name} {arguments}")
            case events.ToolFinished(_, _, text):
                self._talk(f"← {text}")
            case events.MessagesEvicted(number):
                self._talk(f"({number} older messages left the prompt; they stay remembered)")
            case events.Notice(text):
                self._talk(f"({text})", fg="yellow", is_important=True)
            case events.MemoryInjected(injected) if injected.block:
                self._talk(f"({told_words(injected.block.text, injected.told)})")

    def _answer(self, text: str) -> None:
        self._end_thinking()
        # Into a pipe too: the next program may be a terminal's, and a model says what it was told.
        click.echo(_plain(text), nl=False, color=True)
        sys.stdout.flush()
        self._ends_with_newline = text.endswith("\n")

    def _think(self, text: str) -> None:
        if self._is_quiet:
            return
        self._is_thinking = True
        click.echo(_styled(_plain(text), dim=True), nl=False, err=True)

    def _end_thinking(self) -> None:
        if self._is_thinking:
            click.echo("\n", err=True)
        self._is_thinking = False

    def _end_line(self) -> None:
        self._end_thinking()
        if not self._ends_with_newline:
            click.echo()
        self._ends_with_newline = True

    def _talk(self, text: str, fg: str | None = None, is_important: bool = False) -> None:
        if self._is_quiet and not is_important:
            return
        self._end_line()
        shown = escape_line(text) if fg else clip(escape_line(text), MAX_LINE_CHARS)
        click.echo(_styled(shown, fg=fg, dim=fg is None), err=True)


def _plain(text: str) -> str:
    """Without carriage returns: of a line end in two characters the second may come in the next piece."""
    return escape_block(text.replace("\r", ""))


def _styled(text: str, **style: Any) -> str:
    return text if os.environ.get("NO_COLOR") else click.style(text, **style)


def told_words(block: str, told: tuple[tuple[str, int], ...]) -> str:
    """What a block tells: what a session begins with, and what was recalled."""
    opening = handed_on(block)
    parts = [f"handed on: {', '.join(opening)}"] if opening else []
    return "; ".join([*parts, f"{recalled(told)} recalled"] if told else parts)


def recalled(told: tuple[tuple[str, int], ...]) -> str:
    """What was put into a prompt, counted: 2 facts, 1 document."""
    kinds = [kind for kind, _ in told]
    counted = ((kinds.count(kind), kind) for kind in dict.fromkeys(kinds))
    return ", ".join(
        f"{number} {kind}{'s' if number > 1 and kind != 'context' else ''}" for number, kind in counted
    )
