"""What clients as they are need: a server before a scripted provider, and a configuration for commands."""

from tests.server.conftest import provider, served, server  # noqa: F401
from tests.terminal.conftest import config_path  # noqa: F401
