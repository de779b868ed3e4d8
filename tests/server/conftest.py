"""What the server's tests share: a scripted provider, and servers of ours before it."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.processes import Processes
from tests.provider import ScriptedProvider
from tests.server.serving import (
    OPENAI,
    PROVIDER_KEY,
    Running,
    ServeCommand,
    Served,
    StartServer,
    serve,
    serving,
    write_config,
)

LONGEST_LOG = 20_000


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    """The model server: says what the test scripts, in both wire formats, and records everything."""
    with ScriptedProvider() as running:
        yield running


@pytest.fixture
def server(provider: ScriptedProvider, tmp_path: Path) -> Iterator[StartServer]:
    """Starts the real server in this process; called again it starts another on the same database."""
    with ExitStack() as stack:

        def start(*current: str, **options: Any) -> Running:
            path = tmp_path / "config.toml"
            write_config(path, provider.url, *current, **options)
            return stack.enter_context(serving(path))

        yield start


@pytest.fixture
def served(provider: ScriptedProvider, tmp_path: Path) -> Iterator[ServeCommand]:
    """Starts `shepherd serve` as a process; what it wrote is shown if the test fails."""
    folder = tmp_path / "logs"
    folder.mkdir()
    processes = Processes(folder)

    def start(*current: str, **options: Any) -> Served:
        path = tmp_path / "config.toml"
        write_config(path, provider.url, *current, **options)
        return serve(processes, path)

    try:
        yield start
    finally:
        processes.end()
        sys.stdout.write(processes.logs()[-LONGEST_LOG:])


@pytest.fixture
def start(server: StartServer, provider: ScriptedProvider) -> StartServer:
    """A server before providers of both wire formats; recall is by keyword, which needs no model."""

    def started(**options: Any) -> Running:
        claude = {"type": "anthropic", "base_url": provider.url, "api_key": PROVIDER_KEY, "memory": True}
        return server(OPENAI, others={"claude": claude}, **{"embedding_engine": "none", **options})

    return started
