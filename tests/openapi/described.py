"""Requests that are made from the description of the server, and what must hold for each of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, assume, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from shepherd_memory.frontends.api.openapi import CHAT_OPERATIONS, description
from shepherd_memory.frontends.api.operations import NDJSON
from shepherd_memory.frontends.web.connections import MAX_HEAD_BYTES
from shepherd_memory.memory import api_keys
from shepherd_memory.storage.clock import now_us
from tests.provider import ScriptedProvider, chat
from tests.server.serving import ANTHROPIC, OPENAI, Running, described_path, serving, write_config

SECONDS = 60.0
"""How long a busy machine may take for one request."""

METHODS = ("GET", "POST", "PUT", "DELETE")

ALWAYS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
OURS = [*ALWAYS, checks.negative_data_rejection, checks.unsupported_method]

few = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))


@schemathesis.serializer(NDJSON)
def as_lines(context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


PROVIDERS_OWN = {described_path(operation.path) for operation in CHAT_OPERATIONS}


def described(*, by_rule: bool) -> Any:
    """Every operation, with requests that are drawn, or with some dozens each that are made by rule."""
    schema = schemathesis.openapi.from_dict(description())
    schema.config.phases.coverage.enabled = by_rule
    schema.config.phases.fuzzing.enabled = not by_rule
    refusals = schema.config.checks.negative_data_rejection
    # A body with more values than any may have is refused before it is read.
    refusals.expected_statuses = [*refusals.expected_statuses, "413"]
    return schema


@contextmanager
def a_server(folder: Path) -> Iterator[Running]:
    with ScriptedProvider() as provider:
        provider.default = chat("Hello")
        path = folder / "config.toml"
        other = {"type": "anthropic", "base_url": provider.url, "api_key": "k", "memory": True}
        write_config(path, provider.url, OPENAI, others={ANTHROPIC: other})
        with serving(path) as running:
            yield running


def key_for_anybody(running: Running) -> str:
    return api_keys.create(running.service.database, "app", any_user=True, now=now_us())[1]


def headers_of_ada(running: Running, key: str) -> dict[str, str]:
    """The headers of somebody who has one of everything: answers have something in them."""
    running.service.remember("ada", [{"role": "user", "content": "my dog is Rex"}], "chat")
    running.service.add_context("ada", "Where?", "In Rome")
    running.service.set_fact("ada", "0", "Rome")
    running.service.edit_memory_file("ada", "MEMORY.md", "## Boats\n\nRome has some.")
    return {"Authorization": f"Bearer {key}", "X-Shepherd-User": "ada"}


def has_too_long_a_head(case: schemathesis.Case, url: str) -> bool:
    """Whether the server ends the connection before there is a request: no route describes that."""
    sent = case.as_transport_kwargs(base_url=url)
    prepared = requests.Request(sent["method"], sent["url"], params=sent["params"]).prepare()
    headers = sum(len(name) + len(value) for name, value in sent["headers"].items())
    return len(prepared.url or "") + headers > MAX_HEAD_BYTES // 2


def check(case: schemathesis.Case, url: str, headers: dict[str, str], *also: Any) -> None:
    """Send a request, and find no fault with the response."""
    assume(not has_too_long_a_head(case, url))
    if case.operation.path not in PROVIDERS_OWN:
        case.call_and_validate(base_url=url, headers=headers, timeout=SECONDS, checks=[*OURS, *also])
    elif case.method.upper() in METHODS:
        case.call_and_validate(base_url=url, headers=headers, timeout=SECONDS, checks=[*ALWAYS, *also])
