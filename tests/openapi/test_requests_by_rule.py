"""Requests that are made from the server's description by rule, some dozens for each operation.

`make test` leaves them out: they are made when the tests are collected, in each of its processes, which takes
longer than to send them.
"""

from collections.abc import Iterator

import pytest
import schemathesis
from schemathesis.specs.openapi import checks

from tests.server.described import a_server, check, described, few, headers_of_ada, key_for_anybody
from tests.server.serving import Running

schema = described(by_rule=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with a_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@schema.parametrize()
@few
def test_without_keys_no_request_breaks_the_server_or_its_description(
    case: schemathesis.Case, server: Running
) -> None:
    check(case, server.url, {})


@pytest.fixture(scope="module")
def locked_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    with a_server(tmp_path_factory.mktemp("locked")) as running:
        yield running, key_for_anybody(running)


@pytest.fixture
def as_ada(locked_server: tuple[Running, str]) -> dict[str, str]:
    return headers_of_ada(*locked_server)


@schema.parametrize()
@few
def test_with_a_key_no_request_breaks_the_server_or_its_description(
    case: schemathesis.Case, locked_server: tuple[Running, str], as_ada: dict[str, str]
) -> None:
    check(case, locked_server[0].url, as_ada, checks.ignored_auth)
