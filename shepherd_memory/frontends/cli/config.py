"""`shepherd config`: show and change settings."""

import click

from shepherd_memory.config import SETTINGS, LoadedConfig, known_setting, set_value, unset_value
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import (
    emit,
    emit_json,
    json_option,
    print_message,
    quote_if_empty,
    secret_text,
)
from shepherd_memory.frontends.terminal.tables import emit_columns


class ConfigGroup(click.Group):
    """Any other first word is a key: `config KEY` gets it, `config KEY VALUE` sets it."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        return super().get_command(ctx, cmd_name) or key_or_value


@click.group(cls=ConfigGroup, invoke_without_command=True, subcommand_metavar="[COMMAND | KEY [VALUE]]")
@json_option
@click.pass_context
def config(ctx: click.Context, as_json: bool) -> None:
    """Show and change settings.

    `shepherd config KEY` shows one, `shepherd config KEY VALUE` changes it.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show, as_json=as_json)
    elif as_json:
        ctx.fail("--json goes after the command or key")


@config.command()
@json_option
@pass_invocation
def show(invocation: Invocation, as_json: bool) -> None:
    """Show every setting and where it comes from."""
    loaded = invocation.load()
    if as_json:
        emit_json({key: _as_json(loaded, key) for key in SETTINGS})
    else:
        emit_columns((key, quote_if_empty(loaded.show(key)), loaded.source_of(key)) for key in SETTINGS)


@config.command()
@click.argument("key")
@json_option
@pass_invocation
def get(invocation: Invocation, key: str, as_json: bool) -> None:
    """Show one setting."""
    known_setting(key)
    loaded = invocation.load()
    if as_json:
        emit_json({"key": key} | _as_json(loaded, key))
    else:
        emit(loaded.show(key))


@config.command("set")
@click.argument("key")
@click.argument("value")
@pass_invocation
def set_(invocation: Invocation, key: str, value: str) -> None:
    """Change one setting; VALUE `-` reads a secret from the terminal or stdin."""
    setting = known_setting(key)
    written = set_value(invocation.config_path, key, secret_text(value) if setting.is_secret else value)
    print_message(f"{key} = {quote_if_empty(setting.show(written))}  (in {invocation.config_path})")
    invocation.warn_if_overridden(key)


@config.command()
@click.argument("key")
@pass_invocation
def unset(invocation: Invocation, key: str) -> None:
    """Take one setting out of the file: its default is in force again."""
    unset_value(invocation.config_path, key)
    print_message(f"{key} is no longer set in {invocation.config_path}")
    invocation.warn_if_overridden(key)


@config.command()
@json_option
@pass_invocation
def path(invocation: Invocation, as_json: bool) -> None:
    """Show which file holds the settings."""
    where = invocation.config_path
    if as_json:
        emit_json({"path": str(where), "exists": where.exists()})
    else:
        emit(str(where))


@click.command()
@click.argument("value", required=False)
@json_option
@click.pass_context
def key_or_value(ctx: click.Context, value: str | None, as_json: bool) -> None:
    """Show the setting KEY, or change it to VALUE."""
    if value is None:
        ctx.invoke(get, key=ctx.info_name, as_json=as_json)
    else:
        ctx.invoke(set_, key=ctx.info_name, value=value)


def _as_json(loaded: LoadedConfig, key: str) -> dict[str, object]:
    return {"value": loaded.masked(key), "source": loaded.source_of(key)}
