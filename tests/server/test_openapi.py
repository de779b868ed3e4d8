"""The description of the server is complete and true: a client that knows nothing else finds no fault."""

import json
from collections.abc import Iterator

import pytest
import requests
import schemathesis
from schemathesis.specs.openapi import checks
from starlette.routing import Route

from shepherd_memory.frontends.api.app import ROUTES
from shepherd_memory.frontends.api.openapi import description
from tests.server.described import a_server, check, described, few, headers_of_ada, key_for_anybody, plain
from tests.server.serving import Running

schema = described(by_rule=False)


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


@schema.parametrize()
@few
def test_without_keys_no_request_breaks_the_server_or_its_description(
    case: schemathesis.Case, open_server: Running
) -> None:
    check(case, open_server.url, {})


@pytest.fixture
def as_ada(locked_server: tuple[Running, str]) -> dict[str, str]:
    return headers_of_ada(*locked_server)


@schema.parametrize()
@few
def test_with_a_key_no_request_breaks_the_server_or_its_description(
    case: schemathesis.Case, locked_server: tuple[Running, str], as_ada: dict[str, str]
) -> None:
    check(case, locked_server[0].url, as_ada, checks.ignored_auth)


def test_the_description_is_served_to_anybody(locked_server: tuple[Running, str]) -> None:
    answer = requests.get(f"{locked_server[0].url}/openapi.json", timeout=60)
    assert answer.status_code == 200
    assert answer.json() == json.loads(json.dumps(description()))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_every_route_is_described_with_all_its_methods(route: Route) -> None:
    described = description()["paths"][plain(route.path)]
    declared = {method.lower() for method in route.methods or ()} - {"head"}
    assert declared <= set(described)


def test_every_operation_has_an_id_of_its_own() -> None:
    ids = [one["operationId"] for path in description()["paths"].values() for one in path.values()]
    assert len(set(ids)) == len(ids)
