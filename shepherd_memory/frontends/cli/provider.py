"""`shepherd provider`: show, change and switch model providers."""

import sys
from collections.abc import Callable
from typing import Any

import click

from shepherd_memory.config import PROVIDER_FIELDS, Config, provider_field, providers
from shepherd_memory.config.keys import PROVIDER_TYPES, RESERVED_NAMES
from shepherd_memory.config.providers import Provider
from shepherd_memory.errors import ConfigError, EndpointError
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import (
    emit,
    emit_json,
    is_terminal,
    json_option,
    print_message,
    quote_if_empty,
    secret_text,
)
from shepherd_memory.frontends.terminal.tables import emit_columns

no_check_option = click.option("--no-check", is_flag=True, help="Switch without asking the server first.")


class ProviderGroup(click.Group):
    """A first word that is no action is a provider's name, and the action follows."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        action = super().get_command(ctx, cmd_name)
        if action is None and cmd_name in RESERVED_NAMES:
            ctx.fail(f"the name comes first: `shepherd provider NAME {cmd_name}`")
        return action or named


@click.group(
    cls=ProviderGroup, invoke_without_command=True, subcommand_metavar="[ACTION | NAME [ACTION]] [ARGS]..."
)
@json_option
@click.pass_context
def provider(ctx: click.Context, as_json: bool) -> None:
    """Show, change and switch model providers.

    Without arguments: the provider in use. With a name:

    \b
    shepherd provider NAME show
    shepherd provider NAME set FIELD VALUE
    shepherd provider NAME unset FIELD
    shepherd provider NAME edit
    shepherd provider NAME use
    shepherd provider NAME remove
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show_current, as_json=as_json)
    elif as_json:
        ctx.fail("--json goes after the action")


@click.command()
@json_option
@pass_invocation
def show_current(invocation: Invocation, as_json: bool) -> None:
    """Show the provider in use."""
    current = providers.current_provider(invocation.config)
    if current:
        _emit_provider(invocation, current, as_json)
    elif as_json:
        emit_json(None)
    else:
        print_message(
            "no provider is in use; `shepherd provider list` shows what there is, `NAME use` chooses one"
        )


@provider.command("list")
@json_option
@pass_invocation
def list_(invocation: Invocation, as_json: bool) -> None:
    """List the providers in the order of `next`; `*` marks the one in use."""
    config = invocation.config
    found = providers.list_providers(config)
    if as_json:
        emit_json(
            [providers.describe(config, one) | {"current": one.name == config.provider} for one in found]
        )
    elif found:
        emit_columns(_row(config, one) for one in found)
    else:
        print_message("there are no providers; `shepherd provider add NAME` adds one")


@provider.command()
@click.argument("name")
@click.option("--type", default="openai", type=click.Choice(PROVIDER_TYPES), show_default=True)
@click.option("--model", default="", help=PROVIDER_FIELDS["model"].doc)
@click.option("--api-key", default="", help="Sent to the server; `-` reads it from the terminal or stdin.")
@click.option("--base-url", default="", help=PROVIDER_FIELDS["base_url"].doc)
@click.option(
    "--context-window", type=click.IntRange(0), default=0, help=PROVIDER_FIELDS["context_window"].doc
)
@click.option("--priority", default=100, show_default=True, help=PROVIDER_FIELDS["priority"].doc)
@click.option("--display-name", default="", help=PROVIDER_FIELDS["display_name"].doc)
@click.option("--memory/--no-memory", default=None, help=PROVIDER_FIELDS["memory"].doc)
@json_option
@pass_invocation
def add(invocation: Invocation, /, name: str, as_json: bool, **fields: Any) -> None:
    """Add a provider; the first one is in use."""
    fields["api_key"] = secret_text(fields["api_key"])
    added = Provider(name, **fields)
    is_used = providers.add_provider(invocation.config_path, added)
    if as_json:
        emit_json(providers.describe(invocation.config, added) | {"current": is_used})
    how = "it is in use now" if is_used else f"`shepherd provider {name} use` switches to it"
    print_message(f"added {name}; {how}")
    print_message(
        f"{providers.memory_advice(added)} (it is {PROVIDER_FIELDS['memory'].show(added.memory)} now)"
    )
    if is_used:
        invocation.warn_if_overridden("provider")


@provider.command("next")
@no_check_option
@pass_invocation
def next_(invocation: Invocation, no_check: bool) -> None:
    """Switch to the next provider by priority that answers."""
    chosen = providers.next_provider(invocation.config_path, _check(no_check), _say_skipped)
    _say_in_use(invocation, chosen)


@provider.command("help")
@click.pass_context
def help_(ctx: click.Context) -> None:
    """Show this message."""
    assert ctx.parent is not None
    emit(ctx.parent.get_help())


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def named(ctx: click.Context, as_json: bool) -> None:
    """Show or change the provider of this name."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(show, as_json=as_json)
    elif as_json:
        ctx.fail("--json goes after the action")


@named.command()
@json_option
@pass_invocation
@click.pass_context
def show(ctx: click.Context, invocation: Invocation, as_json: bool) -> None:
    """Show its fields, secrets masked."""
    _emit_provider(invocation, providers.get_provider(invocation.config, _name(ctx)), as_json)


@named.command("set")
@click.argument("field")
@click.argument("value")
@pass_invocation
@click.pass_context
def set_(ctx: click.Context, invocation: Invocation, field: str, value: str) -> None:
    """Change one field; VALUE `-` reads a secret from the terminal or stdin."""
    known = provider_field(field)
    text = secret_text(value) if known.is_secret else value
    written = providers.set_field(invocation.config_path, _name(ctx), field, text)
    print_message(f"{_name(ctx)}: {field} = {quote_if_empty(known.show(written))}")


@named.command()
@click.argument("field")
@pass_invocation
@click.pass_context
def unset(ctx: click.Context, invocation: Invocation, field: str) -> None:
    """Take one field back to its default; `memory` then follows the general keys."""
    providers.unset_field(invocation.config_path, _name(ctx), field)
    default = quote_if_empty(provider_field(field).show(provider_field(field).default))
    print_message(f"{_name(ctx)}: {field} = {default}")


@named.command()
@pass_invocation
@click.pass_context
def edit(ctx: click.Context, invocation: Invocation) -> None:
    """Open its fields in $VISUAL or $EDITOR."""
    before = providers.get_provider(invocation.config, _name(ctx))
    text: str | None = providers.fields_as_toml(before)
    while (text := click.edit(text, extension=".toml")) is not None:
        try:
            providers.set_fields_from_toml(invocation.config_path, before, text)
        except ConfigError as error:
            if not _wants_another_try(error):
                raise
        else:
            print_message(f"saved {before.name}")
            return
    print_message("nothing changed")


@named.command()
@no_check_option
@pass_invocation
@click.pass_context
def use(ctx: click.Context, invocation: Invocation, no_check: bool) -> None:
    """Switch to it, once it answers; the old one stays in use if it does not."""
    _say_in_use(invocation, providers.use_provider(invocation.config_path, _name(ctx), _check(no_check)))


@named.command()
@pass_invocation
@click.pass_context
def remove(ctx: click.Context, invocation: Invocation) -> None:
    """Remove it from the configuration."""
    was_used = providers.remove_provider(invocation.config_path, _name(ctx))
    now = "; it was in use, and none is now: `shepherd provider NAME use` chooses one" if was_used else ""
    print_message(f"removed {_name(ctx)}{now}")


def _name(ctx: click.Context) -> str:
    """The word before the action: click calls the named group by it."""
    named_context = ctx if ctx.command is named else ctx.parent
    assert named_context is not None
    return named_context.info_name or ""


def _check(no_check: bool) -> Callable[[Provider], None] | None:
    if no_check:
        return None
    from shepherd_memory.llm.client import check_provider  # only this needs it

    return check_provider


def _say_in_use(invocation: Invocation, chosen: Provider) -> None:
    memory = providers.memory_words(invocation.config, chosen)
    print_message(f"{chosen.display_name or chosen.name} is in use now; {memory}")
    invocation.warn_if_overridden("provider")


def _say_skipped(skipped: Provider, error: EndpointError) -> None:
    print_message(f"skipped {error}")


def _wants_another_try(error: ConfigError) -> bool:
    return is_terminal(sys.stdin) and click.confirm(f"{error}\nedit again?", default=True, err=True)


def _row(config: Config, one: Provider) -> tuple[str, ...]:
    url = PROVIDER_FIELDS["base_url"].show(one.base_url)
    mark, memory = "*" if one.name == config.provider else " ", providers.memory_words(config, one)
    return mark, one.name, one.type, one.model, url, f"priority {one.priority}", memory


def _emit_provider(invocation: Invocation, one: Provider, as_json: bool) -> None:
    config = invocation.config
    if as_json:
        emit_json(providers.describe(config, one))
        return
    rows = {key: quote_if_empty(known.show(getattr(one, key))) for key, known in PROVIDER_FIELDS.items()}
    rows["memory"] += "" if one.memory is not None else f" ({providers.memory_words(config, one)})"
    emit_columns([("name", one.name), *rows.items()])
