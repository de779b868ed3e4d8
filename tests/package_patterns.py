"""Every regular expression of the package: found by walking its modules, and looked for in its source."""

import ast
import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from types import FunctionType, ModuleType

import shepherd_memory
import shepherd_postgres
import shepherd_sqlite
from shepherd_memory.extraction import prompt
from shepherd_memory.frontends.api import operations
from shepherd_memory.text.grounding import agreement, foreign, languages, reading, scanning
from tests.attack_strings import AnyPattern

PACKAGES = (shepherd_memory, shepherd_sqlite, shepherd_postgres)
_NO_PATTERN_IN_A_CALL = {"escape", "compile"}


_TABLES = ("cues", "denial", "mail", "moods", "persons", "plain", "relations")
_ENTRIES = [list(entry.values()) for name in _TABLES for entry in languages.table(name).values()]
BUILDERS: dict[tuple[ModuleType, str], list[tuple[object, ...]]] = {
    (prompt, "look_alike_of"): [("statement",)],
    (languages, "any_phrase"): [(" ".join(max(_ENTRIES, key=lambda entry: len(str(entry)))),)],
    (foreign, "_lines"): [(entry,) for entry in foreign._LINE_ENDS],
    (agreement, "_link"): [(languages.LANGUAGES,)],
    (agreement, "_link_to_person"): [(languages.LANGUAGES,)],
    (reading, "_owned_start"): [(languages.LANGUAGES,)],
    (reading, "_clause_end"): [(languages.LANGUAGES,)],
    (reading, "_sentence_end"): [(languages.LANGUAGES,), (frozenset({"en"}),)],
    (scanning, "_act"): [(languages.LANGUAGES,)],
    (operations, "_of_whole_path"): [("^/v1/memory/sessions/(?P<id>[^/]+)/archive.md$",)],
}
"""Functions that build patterns out of the tables of words, and what they are called with here.

Of lists of phrases the longest stands for all: none of them repeats anything.
"""


@cache
def modules() -> tuple[ModuleType, ...]:
    found = [
        importlib.import_module(module.name)
        for package in PACKAGES
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        if not module.name.endswith("__main__")
    ]
    return (*PACKAGES, *found)


@cache
def package_patterns() -> dict[AnyPattern, str]:
    """Each compiled pattern, and the first global name under which it is found."""
    found: dict[AnyPattern, str] = {}
    for module in modules():
        for name, value in list(vars(module).items()):
            for pattern in reachable_patterns(value):
                found.setdefault(pattern, f"{module.__name__}.{name}")
    for (module, name), calls in BUILDERS.items():
        for arguments in calls:
            found.setdefault(getattr(module, name)(*arguments), f"{module.__name__}.{name}")
    return found


def reachable_patterns(value: object) -> Iterator[AnyPattern]:
    """Through containers, objects, classes, closures, partial calls and functions that cache one value."""
    # Kept alive here: an id may be given again to what takes the place of a freed object.
    seen: dict[int, object] = {}
    pending = [value]
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, re.Pattern):
            yield value
        else:
            pending += _held_by(value)


def _held_by(value: object) -> list[object]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, partial):
        return [value()] if value.func is re.compile else [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, functools._lru_cache_wrapper):
        return _held_by_cached(value)
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return [*cells, value.__defaults__, value.__kwdefaults__] if _is_ours(value) else []
    if isinstance(value, type):
        return list(vars(value).values()) if _is_ours(value) else []
    return _held_by_object(value)


def _held_by_cached(function: "functools._lru_cache_wrapper[object]") -> list[object]:
    wrapped = function.__wrapped__
    if isinstance(wrapped, partial):
        return [wrapped]
    compiles = _is_ours(wrapped) and "re.compile" in inspect.getsource(wrapped)
    return [function()] if compiles and not inspect.signature(wrapped).parameters else [wrapped]


def _held_by_object(value: object) -> list[object]:
    """A bound method such as `re.compile(...).findall` holds its pattern too."""
    held = [getattr(value, name, None) for name in ("__self__", "__func__", "fget")]
    if not _is_ours(type(value)):
        return [one for one in held if isinstance(one, re.Pattern | FunctionType)]
    if is_dataclass(value):
        return [getattr(value, field.name, None) for field in fields(value)]
    return list(vars(value).values()) if hasattr(value, "__dict__") else []


def _is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith(tuple(package.__name__ for package in PACKAGES))


@dataclass(frozen=True)
class PatternCall:
    """A call of the module `re` in a source file."""

    module: ModuleType
    node: ast.Call
    function: ast.FunctionDef | None
    """The function around it, if there is one."""
    statement: ast.stmt

    def __str__(self) -> str:
        return f"{self.module.__name__}:{self.node.lineno}"

    @property
    def name(self) -> str:
        assert isinstance(self.node.func, ast.Attribute)
        return self.node.func.attr


def pattern_calls(module: ModuleType) -> Iterator[PatternCall]:
    tree = ast.parse(inspect.getsource(module))
    for statement in tree.body:
        yield from _calls_in(module, statement, statement, None)


def _calls_in(
    module: ModuleType, node: ast.AST, statement: ast.stmt, function: ast.FunctionDef | None
) -> Iterator[PatternCall]:
    if isinstance(node, ast.FunctionDef):
        function = node
    target = node.func if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and isinstance(target, ast.Attribute) and _is_re(target.value):
        yield PatternCall(module, node, function, statement)
    for child in ast.iter_child_nodes(node):
        yield from _calls_in(module, child, statement, function)


def _is_re(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "re"


def is_only_matched_at_a_place(pattern: AnyPattern) -> bool:
    """Whether it is used by `match` or `fullmatch` alone, so that it does not start at every character."""
    module_name, name = package_patterns()[pattern].rsplit(".", 1)
    module = next(module for module in modules() if module.__name__ == module_name)
    return _names_matched_at_a_place(module).get(name, False)


@cache
def _names_matched_at_a_place(module: ModuleType) -> dict[str, bool]:
    tree = ast.parse(inspect.getsource(module))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    uses: dict[str, bool] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used: ast.AST = node
            user = parents[node]
            while isinstance(user, ast.Subscript) or (isinstance(user, ast.Call) and user.func is used):
                used, user = user, parents[user]
            at_a_place = isinstance(user, ast.Attribute) and user.attr in ("match", "fullmatch")
            uses[node.id] = uses.get(node.id, True) and at_a_place
    return uses
