"""What every command that deletes one thing shares: it shows what goes together, asks, and deletes it."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.frontends.cli.opening import open_for_writing
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.frontends.terminal.output import emit_json, emit_result, is_terminal, print_note
from shepherd_memory.frontends.terminal.tables import clip, emit_table
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.storage.rows import as_json as plain

if TYPE_CHECKING:
    from shepherd_memory.maintenance.forgetting import ForgettingPlan
    from shepherd_memory.maintenance.related import RelatedMemory
    from shepherd_memory.service import Service

SHOWN = 20
"""So many memories are shown before the question; --dry-run shows more."""

SHOWN_COLUMNS = 100
NOBODY_TO_ASK = "there is nobody to ask: --yes forgets it, --dry-run only shows what would go"

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class ForgettingChoice:
    """How much goes with the one thing, and whether to ask."""

    only: bool
    same: bool
    dry_run: bool
    yes: bool


def forgetting_options(command: F) -> F:
    """`--only`, `--same`, `--dry-run` and `--yes`, which come as `only`, `same`, `dry_run` and `yes`."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Only show what would go."),
        click.option("--same", is_flag=True, help="Also what says the same elsewhere."),
        click.option("--only", is_flag=True, help="The one row, and nothing that hangs together with it."),
    ):
        command = option(command)
    return command


def forget_one(
    invocation: Invocation,
    user: str | None,
    group: str,
    as_json: bool,
    choice: ForgettingChoice,
    target: Callable[["Service", str], dict[str, Any]],
    name: str,
) -> None:
    """Show what goes, ask, and forget it; `target` says what, `name` how people are told of it."""
    if choice.only and choice.same:
        raise InvalidInput("--only and --same exclude each other")
    with open_for_writing(invocation, user) as (service, user_id):
        what = target(service, user_id)
        plan = service.plan_forgetting(user_id, only=choice.only, group=group, **what)
        if not plan.total:
            raise NotFound(f"there is no {name} of {user_id!r}")
        if choice.dry_run:
            return _emit_plan(plan, as_json)
        if not choice.yes:
            _confirm(plan, choice, name)
        gone = service.forget(user_id, only=choice.only, same=choice.same, group=group, **what)
    counts = ", ".join(f"{number} {kind}" for kind, number in plain(gone).items() if number)
    emit_result(as_json, plain(gone), f"forgot {name} of {user_id}: {counts}")
    if plan.same and not choice.same and choice.yes:
        print_note(f"{_number(plan.same)} elsewhere that say the same are still there")


def _number(memories: list["RelatedMemory"]) -> str:
    return f"{len(memories)} {'memory' if len(memories) == 1 else 'memories'}"


def _confirm(plan: "ForgettingPlan", choice: ForgettingChoice, name: str) -> None:
    print_note(f"this goes with {name}, for good:")
    _print(plan.goes, plan.total)
    if plan.same:
        print_note("this says the same elsewhere" + (", and goes too:" if choice.same else ":"))
        _print(plan.same, len(plan.same))
    if not is_terminal(sys.stdin):
        raise InvalidInput(NOBODY_TO_ASK)
    if not click.confirm("Forget it?", err=True):
        raise click.Abort
    if plan.same and not choice.same:
        choice.same = click.confirm("Forget what says the same as well?", err=True)


def _print(memories: list["RelatedMemory"], total: int) -> None:
    for memory in memories[:SHOWN]:
        print_note(f"  {clip(' '.join(' '.join(_row(memory)).split()), SHOWN_COLUMNS)}")
    if total > SHOWN:
        print_note(f"  … and {total - SHOWN} more")


def _row(memory: "RelatedMemory") -> tuple[str, str, str, str]:
    return memory.kind, memory.id, local(memory.said_at), memory.text


def _emit_plan(plan: "ForgettingPlan", as_json: bool) -> None:
    if as_json:
        return emit_json(plain(plan))
    emit_table(("", "KIND", "ID", "SAID", "TEXT"), _plan_rows(plan))


def _plan_rows(plan: "ForgettingPlan") -> Iterator[tuple[str, ...]]:
    for word, memories in (("goes", plan.goes), ("same", plan.same)):
        for memory in memories:
            yield word, *_row(memory)
