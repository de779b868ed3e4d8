"""The option that says what the memory of a chat's sessions is for."""

import click

from shepherd_memory.errors import InvalidInput
from shepherd_memory.memory.sessions import MEMORY_MODES

memory_mode_option = click.option(
    "--memory-mode",
    type=click.Choice(MEMORY_MODES),
    help="What the session's memory is for: `read-only` is used and not added to, `off` neither.",
)


def chosen_mode(given: str | None, nomemory: bool = False) -> str:
    """What the memory of a chat's sessions is for; empty for `on`, or as it was."""
    if given and nomemory:
        raise InvalidInput("--nomemory begins no session: give it, or --memory-mode")
    return given or ""
