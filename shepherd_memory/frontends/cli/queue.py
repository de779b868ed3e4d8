"""`shepherd queue`: what waits for extraction, and how that goes."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.frontends.cli.advice import extraction_line, what_to_do
from shepherd_memory.frontends.cli.groups import CommandGroup
from shepherd_memory.frontends.cli.health import status_as_json, status_pairs
from shepherd_memory.frontends.cli.opening import (
    LIMIT,
    ROW_ID,
    group_option,
    open_for_reading,
    open_for_writing,
    opened,
    user_option,
)
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_json, emit_result, json_option, print_note
from shepherd_memory.frontends.terminal.tables import emit_pairs, emit_table
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.memory.sessions import of_work_key
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.groups import MAIN_GROUP, may_act_in
from shepherd_memory.work import jobs
from shepherd_memory.work.jobs import Job

if TYPE_CHECKING:
    from shepherd_memory.service import Service

OPEN = (jobs.RUNNING, jobs.WAITING, jobs.FAILED)
UNSHOWN = ("payload", "token", "successes_seen", "turn")
"""Parts of an item that are the worker's own, and the user's words where no documents are kept."""

EVERYTHING = 1_000_000_000
HEADER = ("ID", "STATE", "QUEUED", "SESSION", "TRIES LEFT", "OUTCOME OR LAST ERROR")

ids_argument = click.argument("item_ids", metavar="[ID]...", nargs=-1, type=ROW_ID)
failed_option = click.option("--failed", is_flag=True, help="All of the user's items that have failed.")


@click.group(cls=CommandGroup)
def queue() -> None:
    """Show and change what waits for extraction."""


@queue.command()
@json_option
@pass_invocation
@click.pass_context
def status(ctx: click.Context, invocation: Invocation, as_json: bool) -> None:
    """Show how the queue is doing.

    It is about all users. The exit code is 0 if all is well and 1 if not.
    """
    with opened(invocation) as service:
        now, config = service.status(), service.config
    advice = what_to_do(invocation, config, now)
    if as_json:
        emit_json(status_as_json(now, advice))
    else:
        emit_pairs(status_pairs(now, extraction_line(config), advice))
    if not now.healthy:
        ctx.exit(1)


@queue.command("list")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(jobs.STATUSES),
    help="Only in this state; may be given more than once.  [default: running, waiting, failed]",
)
@click.option("--session", type=canonical_text, metavar="ID", help="Only of this session.")
@click.option("--limit", type=LIMIT, default=100, show_default=True, help="At most so many of each state.")
@click.option("--all-users", is_flag=True, help="The items of everybody.")
@user_option
@group_option
@json_option
@pass_invocation
def list_(
    invocation: Invocation,
    statuses: tuple[str, ...],
    session: str | None,
    limit: int,
    all_users: bool,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """List work items.

    Of those that are open the oldest come first; of those that are done or dropped the last are shown.
    """
    if all_users and (user is not None or session is not None or group != MAIN_GROUP):
        raise InvalidInput("--all-users goes with neither --user nor --session, nor with a group but main")
    if all_users:
        with opened(invocation) as service:
            found = [item for state in statuses or OPEN for item in _everybodys(service, state, limit)]
    else:
        with open_for_reading(invocation, user) as (service, user_id):
            found = [
                item
                for state in statuses or OPEN
                for item in _own(service, user_id, state, session, limit, group)
            ]
    _emit_items(found, as_json, all_users)


@queue.command()
@ids_argument
@failed_option
@click.option("--all-failed", is_flag=True, help="The items of everybody that have failed.")
@user_option
@group_option
@json_option
@pass_invocation
def retry(
    invocation: Invocation,
    item_ids: tuple[int, ...],
    failed: bool,
    all_failed: bool,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Put items back into the queue.

    A failed or dropped item gets all its tries again; a waiting one is made due now.
    """
    _check_choice(item_ids, failed, all_failed)
    if all_failed:
        _retry_all_failed(invocation, user, group, as_json)
        return
    with open_for_writing(invocation, user) as (service, user_id):
        wanted = item_ids or _ids(service, user_id, jobs.FAILED, group)
        done = _change(user_id, wanted, partial(service.retry, group=group), skip=failed)
    emit_result(as_json, {"retried": done}, f"put back {_items(len(done))} of {user_id}")


@queue.command()
@ids_argument
@failed_option
@click.option("--all-waiting", is_flag=True, help="All of the user's items that wait.")
@user_option
@group_option
@json_option
@pass_invocation
def drop(
    invocation: Invocation,
    item_ids: tuple[int, ...],
    failed: bool,
    all_waiting: bool,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Take items out of the queue.

    They must be waiting or have failed. Their documents stay.
    """
    _check_choice(item_ids, failed, all_waiting)
    with open_for_writing(invocation, user) as (service, user_id):
        wanted = item_ids or _ids(service, user_id, jobs.FAILED if failed else jobs.WAITING, group)
        done = _change(user_id, wanted, partial(service.drop, group=group), skip=failed or all_waiting)
    emit_result(as_json, {"dropped": done}, f"dropped {_items(len(done))} of {user_id}")


def _retry_all_failed(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    if user is not None:
        raise InvalidInput("--all-failed is about everybody: of one user, --failed retries what has failed")
    with opened(invocation) as service:
        done = service.retry_all_failed(group=group)
    users = len({item.user_id for item in done})
    said = f"put back {_items(len(done))} of {users} user{'' if users == 1 else 's'}"
    emit_result(as_json, {"retried": [{"user": item.user_id, "id": item.id} for item in done]}, said)


def _own(
    service: "Service", user_id: str, state: str, session: str | None, limit: int, group: str
) -> list[Job]:
    newest = state not in OPEN
    return service.items(user_id, state, session_id=session, limit=limit, newest=newest, group=group)


def _everybodys(service: "Service", state: str, limit: int) -> list[Job]:
    return service.all_items(state, limit=limit, newest=state not in OPEN)


def _emit_items(found: Sequence[Job], as_json: bool, all_users: bool) -> None:
    if as_json:
        emit_json([_as_json(item) for item in found])
    else:
        with_group = any(_group_of(item) != MAIN_GROUP for item in found)
        header = _cells(HEADER, "USER", "GROUP", all_users, with_group)
        emit_table(header, (_row(item, all_users, with_group) for item in found))
    if not found:
        print_note("no such items")


def _as_json(item: Job) -> dict[str, object]:
    session_id, group = of_work_key(item.key)
    shown = {name: value for name, value in plain(item).items() if name not in UNSHOWN}
    return {**shown, "key": session_id, "group_name": group}


def _group_of(item: Job) -> str:
    return of_work_key(item.key)[1]


def _row(item: Job, with_user: bool, with_group: bool) -> tuple[str, ...]:
    session_id, group = of_work_key(item.key)
    what = item.last_error or item.outcome
    cells = (str(item.id), item.status, local(item.queued_at), session_id, str(item.tries_left), what)
    return _cells(cells, item.user_id, group, with_user, with_group)


def _cells(
    cells: tuple[str, ...], user: str, group: str, with_user: bool, with_group: bool
) -> tuple[str, ...]:
    return (*((user,) if with_user else ()), *((group,) if with_group else ()), *cells)


def _check_choice(item_ids: tuple[int, ...], *flags: bool) -> None:
    if sum((bool(item_ids), *flags)) != 1:
        raise InvalidInput("name items by their ids (`shepherd queue list`), or all of them by one option")


def _ids(service: "Service", user_id: str, state: str, group: str) -> list[int]:
    found = service.items(user_id, state, limit=EVERYTHING, group=group)
    return [item.id for item in found if may_act_in(group, _group_of(item))]


def _change(
    user_id: str, item_ids: Sequence[int], change: Callable[[str, int], bool], skip: bool
) -> list[int]:
    """Change one item after the other; one that cannot be is an error, unless it was not named."""
    changed = []
    for item_id in item_ids:
        if change(user_id, item_id):
            changed.append(item_id)
        elif not skip:
            raise NotFound(
                f"{user_id!r} has no item {item_id} of which that can be done (`shepherd queue list`)"
            )
    return changed


def _items(number: int) -> str:
    return f"{number} item{'' if number == 1 else 's'}"
