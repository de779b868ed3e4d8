"""Which indexes SQLite uses for the queries that run all the time."""

from contextlib import closing
from pathlib import Path
from typing import Any

from shepherd_memory.conversations import conversation, turns
from shepherd_memory.conversations.turns import TokenAllowance
from shepherd_memory.storage.database import open_database
from shepherd_memory.work import jobs
from tests.query_plans import QUERY_PLAN, Explaining

ADA = "ada"


JOB_INDEXES = (("jobs_open", "<"), ("jobs_of_key", "="), ("jobs_of_key", "<"))


def test_a_poll_looks_only_at_what_is_open_and_at_its_own_items(tmp_path: Path) -> None:
    with closing(open_database(f"{tmp_path}/memory.db")) as database, database.read() as connection:
        explaining: Any = Explaining(connection, QUERY_PLAN)
        conversation.is_any_open(explaining)
        turns.next_to_queue(explaining, "extract", TokenAllowance(9, "2026-02-14"), 9)
        turns.to_give_back(explaining, "extract", TokenAllowance(9, "2026-02-14"), 9)
        turns.to_archive(explaining, "extract", 9)
        jobs.has_open_stretch(explaining, ADA, "extract", "s", ("waiting", "failed"), 1, 9)
        conversation.for_grouping(explaining, ADA, "s")
    plans = "\n".join(explaining.plans)
    assert plans.count("conversations_open (status=?") == 5
    of_session = "(user_id=? AND kind=? AND key=? AND watermark_from"
    assert [plans.count(f"{index} {of_session}{how}?)") for index, how in JOB_INDEXES] == [1, 1, 2]
    assert plans.count("PRIMARY KEY (user_id=? AND day=? AND purpose=?)") == 2
    assert "SCAN jobs" not in plans
    assert "conversations USING PRIMARY KEY (user_id=?)" not in plans
