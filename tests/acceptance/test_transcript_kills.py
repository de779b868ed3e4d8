"""An import that is killed again and again comes to what one that nobody disturbs comes to."""

from contextlib import closing
from pathlib import Path

import pytest

from shepherd_memory.storage.database import open_database
from tests.acceptance.kills import KILLS, SEED
from tests.acceptance.processes import Processes
from tests.contract.recalling import check_indexes
from tests.transcripts import agent_line, exchange, output_line, taken_in, write

TIMES = 5 * KILLS


@pytest.mark.kills
def test_an_import_that_is_killed_many_times_comes_to_the_same_rows(
    database_url: str, tmp_path: Path, processes: Processes
) -> None:
    lines = [line for hour in range(5) for line in exchange(hour * 100, hour * 100 + 26)]
    for number in range(5, 100, 9):
        lines[number:number] = [agent_line(1000 + number, tool="Bash"), output_line(1000 + number)]
    path = write(tmp_path / "base" / "kettle" / "session.jsonl", lines)
    killed = processes.python("tests.acceptance.dying_reader", database_url, "ada", "bob", path, TIMES, SEED)
    assert killed.wait(180 + TIMES) == 0
    assert f"kills {TIMES}" in processes.logs()
    with closing(open_database(database_url)) as database:
        ada, bob = taken_in(database, "ada"), taken_in(database, "bob")
        for table, rows in bob.items():
            assert ada[table] == rows, table
        assert len(bob["documents"]) == 5 * 26 + 11
        check_indexes(database)
