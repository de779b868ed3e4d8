"""The service, opened for one command, and the user whom the command is about."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from shepherd_memory.config.identity import detect_user_id, is_known
from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.frontends.terminal.output import print_note
from shepherd_memory.text.groups import MAIN_GROUP, checked_group
from shepherd_memory.text.ids import checked_user_id

if TYPE_CHECKING:
    from shepherd_memory.service import Service

ROW_ID = click.IntRange(1, 2**63 - 1)
LIMIT = click.IntRange(1, 10**9)

user_option = click.option(
    "--user", metavar="USER_ID", help="Whose memory, if not that of `shepherd whoami`."
)


def _group(context: click.Context, _: click.Parameter, given: str | None) -> str:
    invocation = context.find_object(Invocation)
    own = (invocation.group or invocation.config.group) if invocation else MAIN_GROUP
    return checked_group(own if given is None else given)


group_option = click.option(
    "--group",
    metavar="GROUP",
    callback=_group,
    help="The group of the memory, if not that of the setting `group`.",
)

own_group_option = click.option(
    "--group", metavar="GROUP", help="The group of the memory, if not that of the setting `group`."
)
"""Not checked yet, and None if it was not given: in a process that stays the setting may change."""


def chosen_group(given: str | None) -> str:
    """The group that was given to a process that stays, checked; empty for the setting's."""
    return "" if given is None else checked_group(given)


def moment(text: str) -> datetime:
    """A time on the command line; without a zone it is local time."""
    return datetime.fromisoformat(text.strip()).astimezone()


@contextmanager
def open_for_reading(invocation: Invocation, user: str | None) -> Iterator[tuple["Service", str]]:
    """The service and the user_id; an unknown user finds nothing and is told so."""
    from shepherd_memory.service import UNKNOWN_USER

    with opened(invocation) as service:
        user_id = user_of(invocation, user)
        if not is_known(user_id):
            print_note(f"note: {UNKNOWN_USER}")
        yield service, user_id


@contextmanager
def open_for_writing(
    invocation: Invocation, user: str | None, worker: bool = False
) -> Iterator[tuple["Service", str]]:
    """The service and the user_id, which must be known."""
    user_id = known_user_of(invocation, user)
    with opened(invocation, worker) as service:
        yield service, user_id


@contextmanager
def opened(invocation: Invocation, worker: bool = False) -> Iterator["Service"]:
    """The service for a short command: by default it leaves extraction to a process that stays."""
    from shepherd_memory.service import open_service

    if invocation.service is not None:
        yield invocation.service
        return
    with open_service(invocation.config, worker=worker) as service:
        yield service


def user_of(invocation: Invocation, given: str | None) -> str:
    """Whom the command is about; an id that cannot be one is refused."""
    own = invocation.user_id if given is None else given
    return checked_user_id(detect_user_id(invocation.config).user_id if own is None else own)


def known_user_of(invocation: Invocation, given: str | None) -> str:
    """The same for a command that writes: a user who is unknown is refused too."""
    from shepherd_memory.service import UNKNOWN_USER

    user_id = user_of(invocation, given)
    if not is_known(user_id):
        raise InvalidInput(f"{UNKNOWN_USER}; give --user, or `shepherd config set user_id NAME`")
    return user_id
