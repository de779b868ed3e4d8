"""Every regular expression of the package takes time in proportion to the text, whatever the text is."""

import ast
import inspect
import random
import re
from collections.abc import Callable

import pytest

from shepherd_memory.text.redaction import patterns as lazy_patterns
from shepherd_memory.text.redaction.phrases import PHRASES
from shepherd_memory.text.redaction.tokens import TOKENS
from tests.attack_strings import AnyPattern, attack_text, attack_units
from tests.cpu_time import cpu_seconds
from tests.package_patterns import (
    BUILDERS,
    PatternCall,
    is_only_matched_at_a_place,
    modules,
    package_patterns,
    pattern_calls,
    reachable_patterns,
)

SHORT, LONG = 2_000, 32_000
MAX_GROWTH = 24
FLOOR_SECONDS = 0.001
"""What is measured as less counts as this much: a few microseconds tell nothing."""
UNITS_PER_PATTERN = 12

ANCHORED = {
    pattern
    for rule in (*TOKENS.rules, *PHRASES.rules)
    for pattern in [*([] if rule.floating else [rule.pattern()]), *([rule.name()] if rule.name else [])]
}
"""Tried where an anchor stands; what many anchors cost together is limited, see `tests/attacks`."""


def use(pattern: AnyPattern, text: str) -> Callable[[], object]:
    subject = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
    if pattern in ANCHORED or is_only_matched_at_a_place(pattern):
        return lambda: [pattern.match(subject, place) for place in range(3)]  # type: ignore[arg-type]
    return lambda: [None for _ in pattern.finditer(subject)]  # type: ignore[arg-type]


def grows_too_fast(pattern: AnyPattern, beginning: str, unit: str) -> bool:
    # Little by little: a pattern that is far from linear fails on the way, and not after hours.
    limit = MAX_GROWTH * FLOOR_SECONDS
    for size in (SHORT // 8, SHORT, LONG // 4, LONG):
        attack = use(pattern, attack_text(beginning, unit, size))
        if cpu_seconds(attack) > limit and cpu_seconds(attack, tries=3) > limit:
            return True
        if size == SHORT:
            limit = MAX_GROWTH * max(cpu_seconds(attack, tries=3), FLOOR_SECONDS)
    return False


def sampled_units(pattern: AnyPattern) -> list[tuple[str, str]]:
    units = attack_units(pattern)
    chosen = random.Random(1).sample(units, UNITS_PER_PATTERN) if len(units) > UNITS_PER_PATTERN else units
    return sorted(chosen)


@pytest.mark.parametrize("part", range(8))
def test_every_pattern_takes_time_in_proportion_to_the_text(part: int) -> None:
    every = sorted(
        package_patterns(), key=lambda pattern: (package_patterns()[pattern], str(pattern.pattern))
    )
    slow = [
        (package_patterns()[pattern], attack)
        for pattern in every[part::8]
        for attack in sampled_units(pattern)
        if grows_too_fast(pattern, *attack)
    ]
    assert not slow


@pytest.mark.parametrize(
    ("pattern", "attack"),
    [
        (r"password\s+for\s+[^.]{1,60}?\s+is", ("password for", " ")),
        ("x*y", ("", "x")),
        (r"pw=\"(?:\\.|[^\n])*\"", ('pw="', "\\")),
        ("(?:key|token)=.*;", ("", "key=")),
    ],
)
def test_each_literal_and_class_is_repeated_behind_what_it_may_follow(
    pattern: str, attack: tuple[str, str]
) -> None:
    assert attack in attack_units(re.compile(pattern))


def is_walked(call: PatternCall) -> bool:
    """At the module's top, where the walk finds it, or in a cached function, which the walk calls."""
    if call.module is lazy_patterns:
        return True  # `lazy`, whose results the walk calls
    if call.function is not None and (call.module, call.function.name) in BUILDERS:
        return True
    if call.function is not None:
        is_cached = any("cache" in ast.unparse(decorator) for decorator in call.function.decorator_list)
        return is_cached and not call.function.args.args
    try:
        source = eval(ast.unparse(call.node.args[0]), vars(call.module))
    except NameError:  # in a comprehension: then the name that it is for must hold patterns
        targets = [name.id for name in ast.walk(call.statement) if isinstance(name, ast.Name)]
        return any(list(reachable_patterns(vars(call.module).get(name))) for name in targets)
    return source in {pattern.pattern for pattern in package_patterns()}


def test_no_pattern_escapes_the_walk() -> None:
    calls = [call for module in modules() for call in pattern_calls(module)]
    nameless = [str(call) for call in calls if call.name not in ("compile", "escape")]
    assert not nameless, "give the pattern a name at the module's top"
    assert not [str(call) for call in calls if call.name == "compile" and not is_walked(call)]


def test_no_module_takes_names_out_of_re() -> None:
    for module in modules():
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            assert not (isinstance(node, ast.ImportFrom) and node.module == "re"), module
            names = node.names if isinstance(node, ast.Import) else []
            assert not any(name.name in ("re", "regex") and name.asname for name in names), module
