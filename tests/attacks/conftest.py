"""What the attacks share with the acceptance tests: real processes, a configuration file, a provider."""

import logging

import pytest

from tests.acceptance.conftest import (  # noqa: F401
    _no_process_is_left,
    endpoint,
    has_tables,
    processes,
    settings,
    site,
)
from tests.acceptance.secrets_said import Hoard


@pytest.fixture
def hoard() -> Hoard:
    return Hoard(seed=7)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Everything that anybody logs in this process."""
    for name in (None, "urllib3", "requests", "psycopg", "psycopg.pool", "shepherd_memory"):
        caplog.set_level(logging.DEBUG, name)
    return caplog
