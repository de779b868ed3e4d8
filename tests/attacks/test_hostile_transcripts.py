"""A line of a transcript that was made to keep the reader busy is taken in like any other."""

from pathlib import Path

import pytest

from tests.contract.given import ManualClock, memory
from tests.cpu_time import cpu_seconds, reference_second
from tests.transcripts import agent_line, user_line, write


@pytest.mark.parametrize("beginning", ["password for", 'pw="', "api key of x"])
@pytest.mark.parametrize("unit", [" ", "\\"])
def test_a_line_of_six_kilobytes_is_taken_in(tmp_path: Path, beginning: str, unit: str) -> None:
    hostile = user_line(0, beginning + unit * 6000)
    path = write(
        tmp_path / "kettle" / "session.jsonl", [hostile, agent_line(1), user_line(2, "my tea is green")]
    )
    with memory(f"sqlite:///{tmp_path / 'memory.db'}", ManualClock(), "http://127.0.0.1:9") as service:
        cost = cpu_seconds(lambda: service.transcripts.ingest("ada", path))
        assert cost < 2 * reference_second()
        assert len(service.conversations("ada")) == 1
