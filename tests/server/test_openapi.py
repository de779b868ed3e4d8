"""The description of the server is complete and true: a client that knows nothing else finds no fault."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks
from starlette.routing import Route

from shepherd_memory.frontends.api.app import ROUTES
from shepherd_memory.frontends.api.openapi import CHAT_OPERATIONS, description
from shepherd_memory.frontends.api.operations import NDJSON
from shepherd_memory.memory import api_keys
from shepherd_memory.storage.clock import now_us
from tests.provider import ScriptedProvider, chat
from tests.server.serving import ANTHROPIC, OPENAI, Running, serving, write_config

METHODS = ("GET", "POST", "PUT", "DELETE")

ALWAYS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
OURS = [*ALWAYS, checks.negative_data_rejection, checks.unsupported_method]

schema = schemathesis.openapi.from_dict(description())
# Besides these, every operation gets some dozens of requests that are made by rule.
few = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))


@schemathesis.serializer(NDJSON)
def as_lines(context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def plain(path: str) -> str:
    """A route's path as it is described."""
    return re.sub(r":\w+}", "}", path)


PROVIDERS_OWN = {plain(operation.path) for operation in CHAT_OPERATIONS}


@contextmanager
def a_server(folder: Path) -> Iterator[Running]:
    with ScriptedProvider() as provider:
        provider.default = chat("Hello")
        path = folder / "config.toml"
        other = {"type": "anthropic", "base_url": provider.url, "api_key": "k", "memory": True}
        write_config(path, provider.url, OPENAI, others={ANTHROPIC: other})
        with serving(path) as running:
            yield running


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Nobody needs a key, and whoever is named is believed."""
    with a_server(tmp_path_factory.mktemp("open")) as running:
        yield running


@pytest.fixture(scope="module")
def locked_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    """There is a key, for any user."""
    with a_server(tmp_path_factory.mktemp("locked")) as running:
        _, key = api_keys.create(running.service.database, "app", any_user=True, now=now_us())
        yield running, key


@pytest.fixture
def as_ada(locked_server: tuple[Running, str]) -> tuple[str, dict[str, str]]:
    """The address, and the headers of somebody who has one of everything: answers have something in them."""
    running, key = locked_server
    running.service.remember("ada", [{"role": "user", "content": "my dog is Rex"}], "chat")
    running.service.add_context("ada", "Where?", "In Rome")
    running.service.set_fact("ada", "0", "Rome")
    return running.url, {"Authorization": f"Bearer {key}", "X-Shepherd-User": "ada"}


def check(case: schemathesis.Case, url: str, headers: dict[str, str], also: list[Any]) -> None:
    if case.operation.path not in PROVIDERS_OWN:
        case.call_and_validate(base_url=url, headers=headers, checks=[*OURS, *also])
    elif case.method.upper() in METHODS:
        case.call_and_validate(base_url=url, headers=headers, checks=[*ALWAYS, *also])


@schema.parametrize()
@few
def test_without_keys_no_request_breaks_the_server_or_its_description(
    case: schemathesis.Case, open_server: Running
) -> None:
    check(case, open_server.url, {}, [])


@schema.parametrize()
@few
def test_with_a_key_no_request_breaks_the_server_or_its_description(
    case: schemathesis.Case, as_ada: tuple[str, dict[str, str]]
) -> None:
    check(case, *as_ada, [checks.ignored_auth])


def test_the_description_is_served_to_anybody(locked_server: tuple[Running, str]) -> None:
    answer = requests.get(f"{locked_server[0].url}/openapi.json", timeout=10)
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
