"""`shepherd sessions`: what to do with sessions."""

import click

from shepherd_memory.frontends.cli.archives import export
from shepherd_memory.frontends.cli.groups import CommandGroup


@click.group(cls=CommandGroup)
def sessions() -> None:
    """Write sessions as markdown."""


sessions.add_command(export)
