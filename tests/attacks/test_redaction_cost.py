"""No megabyte of text costs `redact` more than a second of CPU."""

from functools import cache, partial

import pytest

from shepherd_memory.text.redaction import redact
from tests.attack_strings import attack_text, attack_units
from tests.cpu_time import cpu_seconds, reference_second
from tests.package_patterns import package_patterns

MEGABYTE = 1_000_000
SCREENED_CHARS = 4_000
NOISE = 1.5
"""CPU seconds of two measurements differ by as much where others share the cores."""
KNOWN = [
    ("password for", " "), ("password for x", " "), ("api key for", " "), ("pin of", " "),
    ("door code in", " "), ("密码 for", " "), ("", "password for "), ("", ":pw"), ("", "key="),
    ("", "keykey="), ("", "pw:a1 "),
    ('pw="', "\\"), ("", 'pw="\\'), ("", "password=hunter2 "), ("", "api_key: a1b2c3d4e5f6, "), ("", "sk-"),
    ("", "SK"), ("", "-eyJ"), ("", "use hunter2 as password "), ("", "a\u200b"), ("", "pw=)"),
    ("", "x" * 100 + " as pass pass pass pass pass pass pass "),
]  # fmt: skip


def text_of(attack: tuple[str, str], chars: int) -> str:
    return attack_text(*attack, chars)[:chars]


@cache
def generated() -> list[tuple[str, str]]:
    """The attacks that cost most of those made from every pattern of redaction."""
    attacks = {
        attack
        for pattern, name in package_patterns().items()
        if ".redaction." in name
        for attack in attack_units(pattern)
    }
    costs = {
        attack: cpu_seconds(partial(redact, text_of(attack, SCREENED_CHARS))) for attack in sorted(attacks)
    }
    return sorted(costs, key=lambda attack: costs[attack])[-12:]


@pytest.mark.parametrize("attack", KNOWN, ids=repr)
def test_a_megabyte_that_was_slow_once_costs_a_second_at_most(attack: tuple[str, str]) -> None:
    redact(text_of(attack, 400))  # compiles the rules that it needs
    # A thousandth first: what is more than quadratic fails here, and not after hours.
    assert cpu_seconds(partial(redact, text_of(attack, 1000))) < reference_second() / 10
    assert cpu_seconds(partial(redact, text_of(attack, MEGABYTE)), tries=2) < NOISE * reference_second()


def test_a_megabyte_of_the_slowest_generated_text_costs_a_second_at_most() -> None:
    for attack in generated():
        cost = cpu_seconds(partial(redact, text_of(attack, MEGABYTE)), tries=2)
        assert cost < NOISE * reference_second(), attack
