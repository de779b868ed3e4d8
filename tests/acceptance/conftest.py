"""What the acceptance tests share: processes, a configuration file, a look from outside."""

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.acceptance.processes import Processes, children
from tests.acceptance.server_site import Site
from tests.acceptance.settings import SettingsFile
from tests.endpoint import ScriptedEndpoint
from tests.provider import ScriptedProvider

MAX_LOG_CHARS = 20_000


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    yield
    # One that is on its way out is waited for; a busy machine takes its time over that.
    _, left = psutil.wait_procs(children(), timeout=60)
    for process in left:
        process.kill()
    assert not left, f"left behind: {left}"


@pytest.fixture
def has_tables() -> bool:
    return True


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Starts processes, and ends them with the test; what they wrote is shown if it fails."""
    folder = tmp_path / "logs"
    folder.mkdir()
    running = Processes(folder)
    try:
        yield running
    finally:
        running.end()
        sys.stdout.write(running.logs()[-MAX_LOG_CHARS:])


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as running:
        yield running


@pytest.fixture
def settings(tmp_path: Path, database_url: str, endpoint: ScriptedEndpoint) -> SettingsFile:
    """A configuration file for this test's database and endpoint, with little patience."""
    return SettingsFile(tmp_path / "config.toml", memory_database=database_url, endpoint=endpoint.url)


@pytest.fixture
def site(settings: SettingsFile, processes: Processes) -> Iterator[Site]:
    """A provider, and servers of ours to be started before it."""
    with ScriptedProvider() as provider:
        yield Site(settings, processes, provider)
