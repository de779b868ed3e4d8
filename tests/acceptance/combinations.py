"""Which combinations of backend, signal, wire format … `make test` tries; `make test-kills` tries all."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

BACKENDS = ("sqlite", "postgresql")
INDIRECT = ("database_url", "server", "stage")
"""Axes that are fixtures."""

one_backend = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
"""For what happens before the database or behind the provider."""


def every_value(**axes: Sequence[Any]) -> pytest.MarkDecorator:
    """Try each value of each axis at least once; the remaining combinations are `thorough`."""
    names, values = list(axes), list(axes.values())
    chosen = {
        tuple(index % len(axis) for axis in values) for index in range(max(len(axis) for axis in values))
    }
    rows = [
        pytest.param(
            *(axis[place] for axis, place in zip(values, places, strict=True)),
            marks=() if places in chosen else pytest.mark.thorough,
        )
        for places in itertools.product(*(range(len(axis)) for axis in values))
    ]
    return pytest.mark.parametrize(names, rows, indirect=[name for name in names if name in INDIRECT])


first_backend = pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)], indirect=True
)
"""For a rule that holds whatever the backend is: the other one is `thorough`."""
