"""The group `shepherd memory files`: what there is, read and searched."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from shepherd_memory.frontends.cli.groups import ListedGroup
from shepherd_memory.frontends.cli.memory_files.changing import delete, edit, note, reset
from shepherd_memory.frontends.cli.memory_files.folders import export, mirror
from shepherd_memory.frontends.cli.memory_files.history import diff, history
from shepherd_memory.frontends.cli.memory_files.words import print_what_to_do
from shepherd_memory.frontends.cli.opening import group_option, open_for_reading, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit, emit_json, json_option, print_note
from shepherd_memory.frontends.terminal.tables import emit_list
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text

if TYPE_CHECKING:
    from shepherd_memory.consolidation.file_reading import FileEntry, FileMatch
    from shepherd_memory.service import Service

FOLDER, MOST_LISTED = "folder", 2000
LINE = click.IntRange(1, 2**31)


@click.group(cls=ListedGroup)
def files() -> None:
    """Read, edit and take away what was consolidated, as Markdown files.

    Each file is of one group. Without a command: list.
    """


for command in (edit, note, delete, reset, export, mirror, history, diff):
    files.add_command(command)


@files.command("list")
@click.argument("path", required=False, default="", type=canonical_text)
@click.option("--all", "is_whole", is_flag=True, help="Also what is in the folders below.")
@user_option
@group_option
@json_option
@pass_invocation
def list_(
    invocation: Invocation, path: str, is_whole: bool, user: str | None, group: str, as_json: bool
) -> None:
    """List the files in a folder; without PATH all that stands at the top."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = [*_entries(service, user_id, path, group, is_whole)]
        texts = service.memory_file_tree(user_id, group=group)
        rows = ((_shown(one), _holds(one, texts)) for one in found)
        emit_list(as_json, map(plain, found), ("PATH", "HOLDS"), rows)
        if not path:
            print_what_to_do(service, user_id, texts)


def _entries(
    service: "Service", user_id: str, path: str, group: str, is_whole: bool
) -> "Iterator[FileEntry]":
    cursor, is_more = "", True
    while is_more:
        page = service.memory_files(user_id, path=path, cursor=cursor, max_results=MOST_LISTED, group=group)
        for entry in page.entries:
            if is_whole and entry.type == FOLDER:
                yield from _entries(service, user_id, entry.path, group, is_whole)
            else:
                yield entry
        cursor, is_more = page.next_cursor, bool(page.next_cursor)


def _shown(entry: "FileEntry") -> str:
    return f"{entry.path}/" if entry.type == FOLDER else entry.path


def _holds(entry: "FileEntry", texts: Mapping[str, str]) -> str:
    if entry.type != FOLDER:
        return _number(texts.get(entry.path, "").count("\n"), "line")
    return _number(sum(path.startswith(f"{entry.path}/") for path in texts), "file")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


@files.command()
@click.argument("path", type=canonical_text)
@click.option("--from", "first", type=LINE, metavar="LINE", help="From this line on.")
@click.option("--lines", type=LINE, metavar="NUMBER", help="At most so many lines.")
@user_option
@group_option
@json_option
@pass_invocation
def show(
    invocation: Invocation,
    path: str,
    first: int | None,
    lines: int | None,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Print a file; a long one whole, unless lines are asked for."""
    with open_for_reading(invocation, user) as (service, user_id):
        page = service.memory_file(user_id, path, line_offset=first or 1, max_lines=lines or 0, group=group)
        found = plain(page) | {"version": service.memory_file_version(user_id, group=group)}
        if page.next_line and first is None and lines is None:
            whole = service.memory_file_tree(user_id, group=group).get(page.path, page.text)
            found |= {"text": whole, "next_line": 0}
    if as_json:
        return emit_json(found)
    emit(found["text"].removesuffix("\n"))
    if found["next_line"]:
        print_note(f"{found['line_count']} lines in all; --from {found['next_line']} shows those that follow")


@files.command()
@click.argument("queries", metavar="QUERY…", nargs=-1, required=True, type=canonical_text)
@click.option("--all", "has_all", is_flag=True, help="Only lines with all of the queries.")
@click.option(
    "--within",
    type=click.IntRange(1, 100),
    metavar="NUMBER",
    help="Only runs of at most so many lines with all of the queries.",
)
@click.option(
    "--in", "path", default="", type=canonical_text, metavar="PATH", help="Only in this file or folder."
)
@click.option(
    "--context", type=click.IntRange(0, 50), default=0, metavar="NUMBER", help="So many lines around each."
)
@click.option("--case-sensitive", is_flag=True, help="Tell `Tea` from `tea`.")
@click.option(
    "--normalized", is_flag=True, help="Look at letters and digits alone: `dark-mode` finds `Dark mode`."
)
@click.option(
    "--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="At most so many matches."
)
@user_option
@group_option
@json_option
@pass_invocation
def search(
    invocation: Invocation,
    /,
    queries: tuple[str, ...],
    has_all: bool,
    within: int | None,
    path: str,
    context: int,
    case_sensitive: bool,
    normalized: bool,
    limit: int,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Find lines that hold any of the queries, as they are written.

    `shepherd recall` finds by meaning.
    """
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.search_memory_files(
            user_id,
            list(queries),
            match_mode="all_within_lines" if within else "all_on_same_line" if has_all else "any",
            path=path,
            context_lines=context,
            case_sensitive=case_sensitive,
            normalized=normalized,
            max_results=limit,
            line_count=within or 1,
            group=group,
        )
    if as_json:
        return emit_json([plain(one) for one in found.matches])
    for number, match in enumerate(found.matches):
        if number and (context or within):
            emit("--")
        _emit_match(match)
    if not found.matches:
        print_note(f"nothing in the memory files of {user_id} says so; `shepherd recall` finds by meaning")
    elif found.next_cursor:
        print_note(f"the first {len(found.matches)} matches; there are more (--limit, --in)")


def _emit_match(match: "FileMatch") -> None:
    """As grep does: the matching line with colons, those around it with hyphens."""
    for number, line in enumerate(match.text.removesuffix("\n").split("\n"), match.start_line):
        mark = ":" if number == match.line else "-"
        emit(f"{match.path}{mark}{number}{mark} {line}")
