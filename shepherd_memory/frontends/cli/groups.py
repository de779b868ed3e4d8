"""Groups of commands about one noun."""

import click

from shepherd_memory.frontends.terminal.output import suggest


class CommandGroup(click.Group):
    """A group that suggests the nearest command for one that it does not have."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None:
            ctx.fail(f"no such command: {args[0]!r}{suggest(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


class ListedGroup(CommandGroup):
    """A group whose `list` may be left out: `shepherd facts --json` is `shepherd facts list --json`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)
