"""What `status` says: how much waits, how the endpoint is, and when something is wrong."""

from pathlib import Path

import pytest

from shepherd_memory.service import open_service
from tests.contract.given import ManualClock, config_for, memory, user_says, work
from tests.endpoint import ScriptedEndpoint, status


@pytest.mark.every_scheme
def test_an_empty_memory_is_healthy(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        found = service.status()
        assert found.healthy
        assert found.problems == ()
        assert found.extraction == "off"
        assert found.items == {"waiting": 0, "running": 0, "done": 0, "failed": 0, "dropped": 0}
        assert (found.oldest_waiting_seconds, found.users) == (0, 0)
        assert found.schema_version >= 1


def test_an_old_item_is_no_illness_while_others_move(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_health_max_lag=600) as service:
        service.remember("ada", [user_says("my city is Bonn")], "chat")
        clock.advance(599)
        assert service.status().healthy
        clock.advance(2)
        found = service.status()
        assert not found.healthy
        assert "601 s" in found.problems[0]
        assert found.oldest_waiting_seconds == 601
        service.remember("bob", [user_says("my city is Rome")], "chat")
        service.worker.run_once()
        assert service.status().items["waiting"] == 1
        assert service.status().healthy, "something has moved"
        work(service)
        clock.advance(10_000)
        assert service.status().healthy, "nothing waits"


def test_an_endpoint_that_is_down_makes_it_ill_only_after_the_lag(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        endpoint.default = status(503)
        service.remember("ada", [user_says("my city is Bonn")], "chat")
        work(service)
        assert service.status().healthy
        assert service.status().endpoint.state == "unavailable"
        for _ in range(160):
            clock.advance(6)
            work(service)
        found = service.status()
        assert not found.healthy
        assert "503" in found.problems[0]


@pytest.mark.parametrize("code", [401, 403, 404])
def test_a_pause_is_an_illness_at_once_and_tells_the_reason(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, code: int
) -> None:
    with memory(url, clock, endpoint.url) as service:
        endpoint.script(status(code))
        service.remember("ada", [user_says("my city is Bonn")], "chat")
        work(service)
        found = service.status()
        assert not found.healthy
        assert str(code) in found.problems[0]
        clock.advance(60)
        work(service)
        assert service.status().healthy


def test_a_pause_is_forgotten_when_extraction_is_switched_off(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        endpoint.script(status(401))
        service.remember("ada", [user_says("my city is Bonn")], "chat")
        work(service)
        assert not service.status().healthy
    with memory(url, clock) as service:
        assert service.status().extraction == "off"
        assert service.status().healthy


def test_a_broken_configuration_file_is_a_problem_that_is_named(
    url: str, clock: ManualClock, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text("memory_extraction_retry_interval = 7\n")
    with open_service(config_for(url), config_path=file, worker=False, clock=clock) as service:
        assert service.status().healthy
        file.write_text("memory_extraction_retry_interval = 'never'\n")
        found = service.status()
        assert not found.healthy
        assert "memory_extraction_retry_interval" in found.problems[0]
        assert service.config.memory_extraction_retry_interval == 7
        file.write_text("memory_extraction_retry_interval = 9\n")
        assert service.status().healthy


@pytest.mark.every_scheme
def test_users_are_counted_and_their_database_named_without_secrets(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        for user in ("ada", "bob"):
            service.set_fact(user, "pet", "Rex")
        assert service.status().users == 2
        assert "postgres@" not in service.status().database


def test_a_user_over_the_daily_cap_does_not_make_it_ill(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_extraction_daily_tokens=1) as service:
        for session in ("one", "two"):
            service.remember("ada", [user_says("my city is Bonn")], session)
        work(service)
        assert service.status().items["waiting"] == 1
        clock.advance(3600)
        work(service)
        assert service.status().healthy
