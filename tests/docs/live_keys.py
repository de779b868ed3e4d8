"""Which keys a running process reads anew, found in the code: where each of them is read."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from shepherd_memory.config import SETTINGS

PACKAGE = Path(__file__).parents[2] / "shepherd_memory"

AT_START = {
    "config/identity.py": {"detect_user_id"},
    "frontends/api/app.py": {"_open_state"},
    "frontends/cli/chat.py": {"_chat_here"},
    "frontends/cli/cli_server.py": {"cli_server"},
    "frontends/cli/mcp.py": {"_serve"},
    "frontends/cli/serve.py": {"serve"},
    "frontends/cli/tui.py": {"_run"},
    "frontends/session_server/app.py": {"session_application.make"},
    "frontends/web/process.py": {"run", "_server", "_threads"},
    "phases/lanes.py": {"PhaseLanes.__init__"},
    "service/opening.py": {"open_service"},
}
"""The functions that a process runs once, when it starts; what they read stays as it was then."""

ONCE = "frontends/cli/"
"""What else is in there are commands that come to an end: the next one reads the file again."""


def live(key: str) -> str:
    """`yes`, `at start`, or `in part` where it is read both ways."""
    kinds = {is_at_start for read, is_at_start in _readers() if read == key}
    assert kinds, f"nothing that runs reads {key}"
    return {(True,): "at start", (False,): "yes"}.get(tuple(kinds), "in part")


@cache
def _readers() -> tuple[tuple[str, bool], ...]:
    """The package is read once, for all keys."""
    return tuple(_find_readers())


def _find_readers() -> Iterator[tuple[str, bool]]:
    """Each place where a key is read by what keeps running, and whether that is only at its start."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        for key, function in _reads(ast.parse(path.read_text("utf-8")), ""):
            is_at_start = function in AT_START.get(name, ())
            if is_at_start or not name.startswith(ONCE):
                yield key, is_at_start


def _reads(node: ast.AST, function: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _reads(child, f"{function}.{child.name}".lstrip("."))
        elif isinstance(child, ast.Lambda):
            yield from _reads(child, f"{function}.lambda")
        else:
            if isinstance(child, ast.Attribute) and child.attr in SETTINGS and _is_config(child.value):
                yield child.attr, function
            yield from _reads(child, function)


def _is_config(value: ast.expr) -> bool:
    """A configuration is called so wherever there is one; other things have a user_id and a provider too."""
    name = ast.unparse(value).removesuffix("()")
    return name.endswith("config") or name.endswith(
        ("config_of(scope)", "config_of(request.scope)", "current")
    )
