"""`shepherd model`: which model of the provider in use answers."""

import click

from shepherd_memory.config import providers
from shepherd_memory.errors import NotFound
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit, emit_json, json_option, print_note


@click.command()
@click.argument("name", required=False)
@json_option
@pass_invocation
def model(invocation: Invocation, name: str | None, as_json: bool) -> None:
    """Show the model of the provider in use, or choose another.

    Without NAME: the one in use. With it: the same as `provider PROVIDER set model NAME`.
    """
    current = providers.current_provider(invocation.config)
    if current is None:
        raise NotFound("no provider is in use; `shepherd provider NAME use` chooses one")
    if name is not None:
        name = providers.set_field(invocation.config_path, current.name, "model", name)
        print_note(f"{current.name}: model = {name}")
    shown = current.model if name is None else name
    if as_json:
        emit_json({"provider": current.name, "model": shown})
    elif name is None:
        emit(shown or f'"" (what {current.name} answers with by itself)')
