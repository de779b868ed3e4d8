"""Which entries of a shelf may be found."""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from shepherd_memory.database import Connection
from shepherd_memory.recall.shelf import KINDS, Shelf
from shepherd_memory.recall.wanted import Within

if TYPE_CHECKING:
    from shepherd_memory.recall.shelf import Floats

AT_ONCE = 500


def allowed(connection: Connection, user_id: str, shelf: Shelf, within: Within) -> "Floats | None":
    """1 for each entry of the shelf that may be found, 0 for the others; None: all may."""
    if within == Within():
        return None
    among = np.ones(shelf.size, dtype=bool)
    if within.kinds is not None:
        among &= np.isin(shelf.kinds, [KINDS.index(kind) for kind in within.kinds])
    if within.since is not None:
        among &= shelf.stated_at >= within.since
    if within.until is not None:
        among &= shelf.stated_at < within.until
    if within.project or within.source:
        among &= np.isin(shelf.ids, _documents(connection, user_id, within))
    found: Floats = among.astype(np.float32)
    return found


def _documents(connection: Connection, user_id: str, within: Within) -> list[int]:
    """The documents of a project or source: facts and context belong to none."""
    where, given = "", {}
    if within.source:
        where, given = " and source = :source", {"source": within.source}
    if not within.project:
        rows = connection.rows(
            f"select id from documents where user_id = :user_id{where}", user_id=user_id, **given
        )
        return [row[0] for row in rows]
    folders = _folders(connection, user_id, within.project)
    found: list[int] = []
    for at in range(0, len(folders), AT_ONCE):
        names = {f"cwd{number}": folder for number, folder in enumerate(folders[at : at + AT_ONCE])}
        rows = connection.rows(
            f"select id from documents where user_id = :user_id{where}"
            f" and cwd in ({', '.join(f':{name}' for name in names)})",
            user_id=user_id,
            **given,
            **names,
        )
        found += [row[0] for row in rows]
    return found


def _folders(connection: Connection, user_id: str, project: str) -> list[str]:
    rows = connection.rows(
        "select distinct cwd from documents where user_id = :user_id and cwd <> ''", user_id=user_id
    )
    return [folder for (folder,) in rows if is_in_project(folder, project)]


def is_in_project(folder: str, project: str) -> bool:
    """Whether a folder is, or lies in, the project of this path; or of this name, if it is only a name."""
    path = PurePosixPath(folder.replace("\\", "/"))
    wanted = PurePosixPath(project.replace("\\", "/"))
    if len(wanted.parts) == 1 and not wanted.is_absolute():
        return wanted.name in path.parts
    return path.is_relative_to(wanted)
