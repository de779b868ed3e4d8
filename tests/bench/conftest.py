"""What the benchmarks need beyond the tests' fixtures."""

from collections.abc import Iterator

import pytest

from tests.postgres import PostgresServer, PostgresUnavailable, running_postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A Postgres that keeps its promises at a crash: what is measured here is a durable put."""
    try:
        with running_postgres(durable=True) as server:
            yield server
    except PostgresUnavailable as error:
        pytest.skip(str(error))
