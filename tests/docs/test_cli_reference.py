"""The reference page of the command line has every command with its arguments and options."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from shepherd_memory.frontends.cli import cli
from shepherd_memory.frontends.terminal.output import EXIT_CODES

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def tree(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[Any]:
    """Every command, with the words that call it."""
    yield pytest.param(command, path, id=" ".join(path) or "shepherd")
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from tree(below, (*path, name))


EVERY_COMMAND = list(tree(cli))


def usage_of(command: click.Command, path: tuple[str, ...] | list[str]) -> str:
    """How a command is called, without its options."""
    context = click.Context(command)
    arguments = [one.make_metavar(context) for one in command.params if isinstance(one, click.Argument)]
    return " ".join(["shepherd", *path, *arguments])


def described(command: click.Command) -> list[str]:
    """Its options as rows of a table."""
    context = click.Context(command)
    options = [one for one in command.params if isinstance(one, click.Option)]
    return [f"| `{_spelled(option, context)}` | {_meaning(option)} |" for option in options]


def _spelled(option: click.Option, context: click.Context) -> str:
    names = "/".join([*option.opts, *option.secondary_opts])
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    value = "" if option.is_flag else "CHOICE" if choices else option.metavar or _kind(option)
    return f"{names} {value}".strip()


def _kind(option: click.Option) -> str:
    return {"integer": "NUMBER", "integer range": "NUMBER", "path": "PATH"}.get(option.type.name, "TEXT")


def _meaning(option: click.Option) -> str:
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    help_text = re.sub(r" +\[default: (.*)\]", r" Default: \1.", option.help or "")
    parts = [
        help_text,
        f"One of {', '.join(map(str, choices))}." if choices else "",
        f"Default: `{option.default}`." if option.show_default else "",
    ]
    return " ".join(part for part in parts if part)


def section(heading: str) -> str:
    """What the page has between this heading and the next."""
    found = re.search(
        rf"^##+ `{re.escape(heading)}`$(.*?)(?=^##|\Z)",
        REFERENCE.read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert found, f"no heading for `{heading}`"
    return found[1]


@pytest.mark.parametrize(("command", "path"), EVERY_COMMAND)
def test_the_reference_has_the_command_with_all_its_options(
    command: click.Command, path: tuple[str, ...]
) -> None:
    lines = section(usage_of(command, path)).splitlines()
    assert [line for line in lines if line.startswith("| `-")] == described(command)


@pytest.mark.parametrize(("command", "path"), EVERY_COMMAND)
def test_each_command_has_an_example(command: click.Command, path: tuple[str, ...]) -> None:
    if not isinstance(command, click.Group):
        assert f"shepherd {' '.join(path)}" in section(usage_of(command, path)) or path[-1] == "list"


def test_the_reference_has_no_command_that_is_gone() -> None:
    headings = re.findall(r"^##+ `(shepherd.*)`$", REFERENCE.read_text("utf-8"), re.MULTILINE)
    assert len(headings) == len(set(headings))
    assert set(headings) == {usage_of(*param.values) for param in EVERY_COMMAND}


def test_the_reference_has_every_exit_code() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d) \|", REFERENCE.read_text("utf-8"), re.MULTILINE)}
    assert codes == {0, *EXIT_CODES.values()}
