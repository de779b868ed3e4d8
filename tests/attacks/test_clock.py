"""A clock that is set back, by a person or by NTP after a wrong boot, stops nothing."""

from pathlib import Path

from tests.contract.given import ManualClock, facts_of, memory, user_says, work
from tests.endpoint import ScriptedEndpoint, echo, status

TWO_HOURS_SECONDS = 7200


def test_what_was_put_off_is_not_put_off_by_two_hours_more(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    clock = ManualClock()
    endpoint.default = echo()
    with memory(str(tmp_path / "memory.db"), clock, endpoint.url) as service:
        endpoint.script(status(503))
        service.remember("steve", [user_says("my city is Ghent")], "chat")
        work(service)
        clock.advance(-TWO_HOURS_SECONDS)
        assert len(work(service)) == 1
        assert facts_of(service, "steve") == {"city": "Ghent"}
