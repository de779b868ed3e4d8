"""The description of the server is complete: every route is in it, and anybody may read it."""

import json

import pytest
import requests
from starlette.routing import Route

from shepherd_memory.frontends.api.app import ROUTES
from shepherd_memory.frontends.api.openapi import description
from tests.server.calling import new_key
from tests.server.serving import StartServer, described_path


def test_the_description_is_served_to_anybody(start: StartServer) -> None:
    server = start()
    new_key(server.service, "steve")
    answer = requests.get(f"{server.url}/openapi.json", timeout=60)
    assert answer.status_code == 200
    assert answer.json() == json.loads(json.dumps(description()))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_every_route_is_described_with_all_its_methods(route: Route) -> None:
    described = description()["paths"][described_path(route.path)]
    declared = {method.lower() for method in route.methods or ()} - {"head"}
    assert declared <= set(described)


def test_every_operation_has_an_id_of_its_own() -> None:
    ids = [one["operationId"] for path in description()["paths"].values() for one in path.values()]
    assert len(set(ids)) == len(ids)
