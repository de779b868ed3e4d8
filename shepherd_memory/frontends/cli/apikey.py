"""`shepherd apikey`: who may use the API server, and for whom."""

import click

from shepherd_memory.frontends.cli.groups import ListedGroup
from shepherd_memory.frontends.cli.opening import opened
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit, emit_json, emit_result, json_option, print_note
from shepherd_memory.frontends.terminal.tables import emit_list, emit_pairs
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.memory import api_keys
from shepherd_memory.memory.api_keys import ApiKey
from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text

MEGABYTE = 1_048_576

which_argument = click.argument("which", metavar="ID|NAME", type=canonical_text)


@click.group(cls=ListedGroup)
def apikey() -> None:
    """Make, show and revoke keys of the API server.

    Without a command: list.
    """


@apikey.command()
@click.argument("name")
@click.option("--any-user", is_flag=True, help="It acts for whichever user a request names, else for NAME.")
@click.option("--group", metavar="GROUP", default="", help="It is for this group of the memory and no other.")
@click.option("--namespace", metavar="APP", default="", help="Its users are APP/…: apart from all others.")
@click.option(
    "--rate", type=click.IntRange(0, 10**9), default=0, help="Requests per minute; else server_rate_limit."
)
@click.option(
    "--max-request-mb",
    type=click.IntRange(0, 2**20),
    default=0,
    help="Largest request, in megabytes; else server_max_request_mb.",
)
@json_option
@pass_invocation
def create(
    invocation: Invocation,
    name: str,
    any_user: bool,
    group: str,
    namespace: str,
    rate: int,
    max_request_mb: int,
    as_json: bool,
) -> None:
    """Make a key that acts for the user NAME.

    The key alone goes to stdout, this once: it is stored as a hash only.
    """
    with opened(invocation) as service:
        key, text = api_keys.create(
            service.database,
            name,
            any_user=any_user,
            namespace=namespace,
            group=group,
            rate_per_minute=rate,
            max_request_bytes=max_request_mb * MEGABYTE,
            now=now_us(),
        )
    if as_json:
        emit_json({"key": text, **plain(key)})
    else:
        emit(text)
    where = f" in the group {key.group_name}" if key.group_name else ""
    print_note(f"this is the key {key.id}, shown only now; it acts for {_acts_for(key)}{where}")
    if key.any_user and not key.namespace:
        may = f"read and change everybody's memory{where}" if where else "read and erase everybody's memory"
        print_note(f"whoever has it can {may}; --namespace APP confines a key")


@apikey.command("list")
@json_option
@pass_invocation
def list_(invocation: Invocation, as_json: bool) -> None:
    """List all keys, also the revoked ones."""
    with opened(invocation) as service, service.database.read() as connection:
        found = api_keys.listing(connection)
    header = ("ID", "NAME", "ACTS FOR", "NAMESPACE", "RATE", "CREATED", "LAST USED", "STATE")
    # A column that most have no use for would cut the ids on a narrow terminal.
    has_groups = any(key.group_name for key in found)
    rows = [(*_row(key), key.group_name) if has_groups else _row(key) for key in found]
    emit_list(as_json, map(plain, found), (*header, "GROUP") if has_groups else header, rows)
    if not found:
        print_note("there are no API keys: the API server needs none, and serves this machine only")


@apikey.command()
@which_argument
@json_option
@pass_invocation
def show(invocation: Invocation, which: str, as_json: bool) -> None:
    """Show what a key may do."""
    with opened(invocation) as service, service.database.read() as connection:
        found = api_keys.get(connection, which)
    if as_json:
        emit_json(plain(found))
    else:
        emit_pairs(_pairs(found))


@apikey.command()
@which_argument
@json_option
@pass_invocation
def revoke(invocation: Invocation, which: str, as_json: bool) -> None:
    """Revoke a key, at once and for good."""
    with opened(invocation) as service:
        gone = api_keys.revoke(service.database, which, now_us())
    since = local(gone.revoked_at)
    emit_result(
        as_json,
        plain(gone),
        f"the key {gone.id} of {gone.name} is revoked since {since}; that takes effect at once, also for a"
        " server that runs",
    )


def _acts_for(key: ApiKey) -> str:
    if not key.any_user:
        return api_keys.acting_name(key, key.name)
    return f"every user in {key.namespace}/" if key.namespace else "every user who is in no namespace"


def _row(key: ApiKey) -> tuple[str, ...]:
    # Days and stars instead of times and words: on a terminal of 80 columns the ids stay whole.
    acts_for = api_keys.acting_name(key, "*" if key.any_user else key.name)
    rate = str(key.rate_per_minute or "")
    days = (local(key.created_at)[:10], local(key.last_used_at)[:10] or "never")
    state = "revoked" if key.revoked_at else "live"
    return key.id, key.name, acts_for, key.namespace, rate, *days, state


def _pairs(key: ApiKey) -> list[tuple[str, str]]:
    size = f"{key.max_request_bytes / MEGABYTE:g} MB" if key.max_request_bytes else "server_max_request_mb"
    return [
        ("id", key.id),
        ("name", key.name),
        ("acts for", _acts_for(key)),
        ("namespace", key.namespace or "none"),
        ("group", key.group_name or "any"),
        ("rate", f"{key.rate_per_minute} a minute" if key.rate_per_minute else "server_rate_limit"),
        ("largest request", size),
        ("created", local(key.created_at)),
        ("last used", local(key.last_used_at) or "never"),
        ("state", f"revoked {local(key.revoked_at)}" if key.revoked_at else "live"),
    ]
