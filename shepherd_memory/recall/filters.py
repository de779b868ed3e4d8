"""Which entries of an index may be found."""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from shepherd_memory.recall.hits import Scope
from shepherd_memory.recall.user_index import KINDS, UserIndex
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.memory_tools import RESULT_ROLES, is_memory_tool

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shepherd_memory.recall.user_index import Floats

    Bools = NDArray[np.bool_]

AT_ONCE = 500
MAX_NAME_CHARS = 400
"""Characters of a folder or source: longer ones are not in the indexes that are read here."""

_SHORT_FOLDER = f"cwd <> '' and length(cwd) <= {MAX_NAME_CHARS}"
_SHORT_SOURCE = f"source <> 'live' and length(source) <= {MAX_NAME_CHARS}"


def allowed(connection: Connection, user_id: str, index: UserIndex, scope: Scope) -> "Floats | None":
    """1 for each entry of the index that may be found, 0 for the others; None: all may."""
    returned = _returned_by_memory(index)
    if scope == Scope() and returned is None:
        return None
    among = np.ones(index.size, dtype=bool) if returned is None else ~returned
    if scope.kinds is not None:
        among &= np.isin(index.kinds, [KINDS.index(kind) for kind in scope.kinds])
    if scope.since is not None:
        among &= index.stated_at >= scope.since
    if scope.until is not None:
        among &= index.stated_at < scope.until
    # Only documents are of a project or source: facts and context belong to none.
    if scope.source:
        among &= np.isin(index.ids, _of_source(connection, user_id, scope.source))
    if scope.project:
        among &= np.isin(index.ids, _of_project(connection, user_id, scope.project))
    found: Floats = among.astype(np.float32)
    return found


def _returned_by_memory(index: UserIndex) -> "Bools | None":
    """Which entries are what a memory tool returned: older versions stored that. None: none are."""
    roles = [code for code, role in enumerate(index.roles) if role in RESULT_ROLES]
    tools = [code for code, name in enumerate(index.speakers) if is_memory_tool(name)] if roles else []
    if not tools:
        return None
    found: Bools = np.isin(index.role_codes, roles) & np.isin(index.speaker_codes, tools)
    return found


def _of_source(connection: Connection, user_id: str, source: str) -> list[int]:
    is_indexed = source != "live" and len(source) <= MAX_NAME_CHARS
    rows = connection.rows(
        "select id from documents where user_id = :user_id and source = :source"
        f"{f' and {_SHORT_SOURCE}' if is_indexed else ''}",
        user_id=user_id,
        source=source,
    )
    return [row[0] for row in rows]


def _of_project(connection: Connection, user_id: str, project: str) -> list[int]:
    folders = [folder for folder in _folders(connection, user_id) if is_in_project(folder, project)]
    found = _in_long_folders(connection, user_id, project)
    for at in range(0, len(folders), AT_ONCE):
        names = {f"cwd{number}": folder for number, folder in enumerate(folders[at : at + AT_ONCE])}
        rows = connection.rows(
            f"select id from documents where user_id = :user_id and {_SHORT_FOLDER}"
            f" and cwd in ({', '.join(f':{name}' for name in names)})",
            user_id=user_id,
            **names,
        )
        found += [row[0] for row in rows]
    return found


def _folders(connection: Connection, user_id: str) -> list[str]:
    """Each folder once, from one to the next in the index: they are few, and their documents many."""
    following = f"select min(cwd) from documents where user_id = :user_id and {_SHORT_FOLDER}"
    rows = connection.rows(
        f"with recursive folders(folder) as ({following} union all"
        f" select ({following} and cwd > folder) from folders where folder is not null)"
        " select folder from folders where folder is not null",
        user_id=user_id,
    )
    return [folder for (folder,) in rows]


def _in_long_folders(connection: Connection, user_id: str, project: str) -> list[int]:
    rows = connection.rows(
        f"select id, cwd from documents where user_id = :user_id and length(cwd) > {MAX_NAME_CHARS}",
        user_id=user_id,
    )
    return [row_id for row_id, folder in rows if is_in_project(folder, project)]


def is_in_project(folder: str, project: str) -> bool:
    """Whether a folder is, or lies in, the project of this path; or of this name, if it is only a name."""
    path = PurePosixPath(folder.replace("\\", "/"))
    wanted = PurePosixPath(project.replace("\\", "/"))
    if len(wanted.parts) == 1 and not wanted.is_absolute():
        return wanted.name in path.parts
    return path.is_relative_to(wanted)
