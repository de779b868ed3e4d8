"""What the global options said, for the command that runs."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shepherd_memory.config import Config, LoadedConfig, default_config_path, load, variable
from shepherd_memory.frontends.terminal.output import print_message

if TYPE_CHECKING:
    from shepherd_memory.service import Service


@dataclass(frozen=True)
class Invocation:
    """One run of `shepherd`; in a chat, whose commands these are, with its service, user and group."""

    given_path: Path | None = None
    debug: bool = False
    service: "Service | None" = None
    user_id: str | None = None
    group: str = ""
    """Of the memory; empty: the configured one."""
    commands: click.Group = field(kw_only=True)
    """The commands of the command line, some of which a chat has too."""

    @property
    def config_path(self) -> Path:
        """The configuration file, whether or not it exists."""
        return self.given_path or default_config_path()

    def load(self) -> LoadedConfig:
        """The configuration in force, with the source of each value."""
        return load(self.config_path)

    @property
    def config(self) -> Config:
        """The configuration in force, read now."""
        return self.load().config

    def warn_if_overridden(self, key: str) -> None:
        """Say so when what was just written has no effect here."""
        if os.environ.get(variable(key)):
            print_message(f"note: {variable(key)} is set in the environment and wins over the file")


pass_invocation = click.make_pass_decorator(Invocation)
