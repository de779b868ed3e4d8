"""A configuration, a user and an endpoint for the commands under test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.endpoint import ScriptedEndpoint, echo
from tests.terminal.shell import good


@pytest.fixture(autouse=True)
def config_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration file: a database of its own, and the user ann."""
    path = tmp_path / "config.toml"
    monkeypatch.setenv("SHEPHERD_CONFIG", str(path))
    path.write_text(f'user_id = "ann"\nmemory_database = "{tmp_path}/memory.db"\n')
    return path


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    """A model that echoes `my KEY is VALUE`, configured."""
    with ScriptedEndpoint() as endpoint:
        endpoint.default = echo()
        use_endpoint(endpoint.url)
        yield endpoint


@pytest.fixture
def no_answer() -> None:
    """An endpoint that is configured, and not there."""
    use_endpoint("http://127.0.0.1:1")


def use_endpoint(url: str) -> None:
    good("config", "memory_extraction_endpoint", url)
    good("config", "memory_extraction_model", "m")
    good("config", "memory_extraction_retry_interval", "0.1")
