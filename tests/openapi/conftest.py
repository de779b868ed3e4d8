"""Servers that requests made from the description are sent to: one without keys, one with."""

from collections.abc import Iterator

import pytest

from tests.openapi.described import a_server, headers_of_ada, key_for_anybody
from tests.server.serving import Running


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Nobody needs a key, and whoever is named is believed."""
    with a_server(tmp_path_factory.mktemp("open")) as running:
        yield running


@pytest.fixture(scope="module")
def locked_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    """There is a key, for any user."""
    with a_server(tmp_path_factory.mktemp("locked")) as running:
        yield running, key_for_anybody(running)


@pytest.fixture
def as_ada(locked_server: tuple[Running, str]) -> dict[str, str]:
    return headers_of_ada(*locked_server)
