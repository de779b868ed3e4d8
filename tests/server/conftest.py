"""What the server's tests share: a scripted provider, and servers of ours before it."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from tests.server.shared_session import StartSharing

MAX_LOG_CHARS = 20_000


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
        sys.stdout.write(processes.logs()[-MAX_LOG_CHARS:])


@pytest.fixture
def share(provider: ScriptedProvider, tmp_path: Path) -> Iterator["StartSharing"]:
    """Starts a shared session in this process; recall is by keyword, which needs no model."""
    # Late: most tests of this folder need none of it.
    from tests.server.shared_session import USER, Sharing, sharing

    with ExitStack() as stack:

        def start(
            user_id: str = USER, memtools: bool = False, resume: bool = False, **options: Any
        ) -> Sharing:
            # Told, the provider is not asked for it: what is scripted is for the chat.
            told = {"type": "openai", "base_url": provider.url, "memory": True, "context_window": 32_000}
            path = tmp_path / "config.toml"
            write_config(
                path, provider.url, **{"embedding_engine": "none", "others": {OPENAI: told}, **options}
            )
            return stack.enter_context(sharing(path, user_id, memtools=memtools, resume=resume))

        yield start


@pytest.fixture
def start(server: StartServer, provider: ScriptedProvider) -> StartServer:
    """A server before providers of both wire formats; recall is by keyword, which needs no model."""

    def started(**options: Any) -> Running:
        claude = {"type": "anthropic", "base_url": provider.url, "api_key": PROVIDER_KEY, "memory": True}
        return server(OPENAI, others={"claude": claude}, **{"embedding_engine": "none", **options})

    return started
