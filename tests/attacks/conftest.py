"""What the attacks share with the acceptance tests: real processes, a configuration file, a provider."""

from tests.acceptance.conftest import (  # noqa: F401
    _no_process_is_left,
    endpoint,
    has_tables,
    processes,
    settings,
    site,
)
