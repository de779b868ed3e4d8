"""Which indexes Postgres uses for what every worker does all the time."""

from contextlib import closing

import pytest

from shepherd_memory.storage.database import open_database
from tests.bench.report_claims import LIMITS, MAX_BUFFERS, claim_explained, fill

DONE, WAITING, USERS = 20_000, 200, 2_000


@pytest.mark.parametrize("what", LIMITS)
def test_a_claim_reads_few_pages_whatever_the_number_of_done_jobs(postgres_url: str, what: str) -> None:
    with closing(open_database(postgres_url)) as database:
        with database.write() as tx:
            fill(tx, DONE, WAITING, USERS)
        with database.write() as tx:
            tx.execute_script("analyze jobs")
        explained = claim_explained(database, LIMITS[what]).explained
    scans = {scan for one in explained for scan in one.scans}
    assert "jobs_to_claim" in scans
    assert not [scan for scan in scans if scan.startswith("Seq Scan")]
    assert sum(one.buffers for one in explained) < MAX_BUFFERS
