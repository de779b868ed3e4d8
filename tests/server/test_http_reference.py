"""The HTTP reference has every operation, and its examples run as they are written."""

import re
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from shepherd_memory.frontends.api.openapi import description
from tests.provider import ScriptedProvider, chat
from tests.server.serving import ANTHROPIC, OPENAI, Running, serving, write_config

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "http.md"
WRITTEN = "http://127.0.0.1:8765"
SECTION = re.compile(r"^### `(\w+ \S+)`$(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = {operation: EXAMPLE.findall(text) for operation, text in SECTION.findall(REFERENCE.read_text())}
OPERATIONS = [f"{method.upper()} {path}" for path, each in description()["paths"].items() for method in each]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reference")


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Running]:
    with ScriptedProvider() as provider:
        provider.default = chat("Rex")
        other = {"type": "anthropic", "base_url": provider.url, "api_key": "k"}
        write_config(folder / "config.toml", provider.url, OPENAI, others={ANTHROPIC: other})
        with serving(folder / "config.toml") as server:
            (folder / "ann.jsonl").write_bytes(b"".join(server.service.export("ann")))
            yield server


@pytest.fixture
def furnished(running: Running) -> Running:
    """A server that knows what the examples ask for, whichever of them ran before."""
    service = running.service
    service.set_fact("ann", "dog_name", "Rex")
    service.edit_memory_file("ann", "MEMORY.md", "## Boats\n\nPaint them.")
    service.set_global_memory("ann", "Answer in British English.")
    for session in ("chat-0", "chat-1"):
        said = {"id": uuid.uuid4().hex, "role": "user", "content": "My dog is called Rex."}
        service.remember("ann", [said], session_id=session)
    return running


def test_the_reference_has_every_operation_and_no_other() -> None:
    assert sorted(EXAMPLES) == sorted(OPERATIONS)


@pytest.mark.parametrize("operation", EXAMPLES)
def test_the_example_of_an_operation_is_a_request_that_fits(
    furnished: Running, folder: Path, operation: str
) -> None:
    (example,) = EXAMPLES[operation]
    command = example.replace(WRITTEN, furnished.url).strip() + " -s -v -w '\\n%{http_code}'"
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    method, path = operation.split()
    pattern = re.sub(r"{\w+}", r"[^/? ]+", path)
    assert re.search(rf"^> {method} {pattern}[? ]", done.stderr, re.MULTILINE), done.stderr
    # The ids in the examples are anybody's.
    allowed = ("200", "404") if "id}" in path else ("200", "201")
    assert done.stdout.splitlines()[-1] in allowed, done.stdout
