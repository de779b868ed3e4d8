"""Changing the file: one writer at a time, all or nothing, readable by its owner alone."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shepherd_memory.config import private_files
from shepherd_memory.config.loading import known_setting, problems, read_table, refuse_special
from shepherd_memory.errors import ConfigError, NotFound

Table = dict[str, Any]

HEADER = (
    "# Settings of shepherd-memory: `shepherd config` lists them, `shepherd config set KEY VALUE` sets one.\n"
)
"""So that a file without settings is not empty: an empty one was emptied by accident."""


def set_value(path: Path, key: str, text: str) -> Any:
    """Write one key, given as text; returns the value that it became."""
    value = known_setting(key).parse(text)
    change(path, lambda table: table.update({key: value}))
    return value


def unset_value(path: Path, key: str) -> None:
    """Take one key out of the file, so that its default is in force again."""

    def remove(table: Table) -> None:
        # A key that is in the file can be taken out whatever it is: that is how a misspelt one is repaired.
        if key in table and key != "providers":
            del table[key]
        else:
            raise NotFound(f"{known_setting(key).key} is not set in {path}")

    change(path, remove)


def change(path: Path, edit: Callable[[Table], None]) -> None:
    """Read, edit and write the file under its lock; an edit that would break it is refused.

    What was wrong before may stay, so that a file with two mistakes can be repaired one by one.
    """
    target = Path(os.path.realpath(path))  # a symlink stays one, what it points to is written
    try:
        refuse_special(target)
        private_files.make_folder(target.parent)
        with private_files.locked(target.with_name(f"{target.name}.lock")):
            table = read_table(target)
            known_problems = set(problems(table))
            edit(table)
            for problem in problems(table):
                if problem not in known_problems:
                    raise ConfigError(problem)
            private_files.replace(target, _to_toml(table))
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def _to_toml(table: Table) -> bytes:
    import tomli_w  # readers do not need it

    return (HEADER + tomli_w.dumps(table)).encode()
