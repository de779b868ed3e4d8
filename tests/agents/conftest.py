"""What clients as they are need: a server before a scripted provider, and a configuration for commands."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.agents.agent_site import OpenSite, agent_site
from tests.agents.installation import NodeUnavailable, node_packages
from tests.provider import ScriptedProvider
from tests.server.conftest import provider, served, server  # noqa: F401
from tests.server.serving import ServeCommand
from tests.terminal.conftest import config_path  # noqa: F401


@pytest.fixture(scope="session")
def _node() -> None:
    """Agents from npm; without node their tests are skipped, and fail in CI."""
    try:
        node_packages()
    except NodeUnavailable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of whoever uses an agent."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def open_site(served: ServeCommand, provider: ScriptedProvider) -> Iterator[OpenSite]:  # noqa: F811
    """Starts `shepherd serve`, with further settings if a test has some."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(agent_site(served, provider, **settings))
