"""Workers that consolidate are killed at bad moments: each success is one version, and none runs twice."""

import random
import signal

import pytest

from shepherd_memory.service import Service
from tests.acceptance.combinations import BACKENDS, every_value, first_backend
from tests.acceptance.consolidating import (
    USERS,
    Apart,
    in_rounds,
    is_settled,
    note_of,
    state,
    stored,
    successes,
    wanting_memory,
)
from tests.acceptance.kills import KILLS, SEED
from tests.acceptance.processes import BUSY_SECONDS, Processes, wait_until
from tests.acceptance.settings import SettingsFile
from tests.endpoint import ScriptedEndpoint

WORKER = "tests.acceptance.consolidation_worker"
POINTS = {"claimed": 1, "round": 3, "storing": 1, "committing": 1}
"""And at which visit: that of the agent is its third round."""

LATER_POINTS = {"answered": 1, "stored": 1}
ALL_POINTS = tuple((POINTS | LATER_POINTS).items())
WORKERS = 2
ROUNDS = 4


def check_whole(service: Service, user_id: str) -> None:
    """One version for each success, and the sections are those of one run."""
    now = state(service, user_id)
    assert now.version == successes(service, user_id) == len(service.memory_file_history(user_id))
    found = stored(service, user_id)
    assert [one.file for one in found] == ["MEMORY.md", "memory_summary.md"]
    known = {one.conversation_id for one in service.conversation_outputs(user_id)}
    assert {one.sources for one in found} == {tuple(sorted(known))}
    assert len({one.version for one in found}) == 1


@every_value(point=tuple(POINTS), database_url=BACKENDS)
def test_a_worker_that_dies_at_a_named_point_leaves_nothing_behind_and_its_run_is_taken_over(
    point: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    check_dying_at(point, settings, processes, endpoint)


@pytest.mark.thorough
@pytest.mark.parametrize("point", LATER_POINTS)
def test_nor_does_one_that_dies_when_it_has_its_answers_make_a_version_twice(
    point: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    check_dying_at(point, settings, processes, endpoint)


def check_dying_at(
    point: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    agent = Apart(in_rounds())
    wanting_memory(settings, endpoint, agent)
    visit = dict(ALL_POINTS)[point]
    with settings.service() as service:
        for user_id in USERS:
            note_of(service, user_id, "chat")
        doomed = processes.python(WORKER, settings.path, "--at", point, "--visit", visit)
        assert doomed.wait(BUSY_SECONDS) == -signal.SIGKILL
        done = sum(successes(service, user_id) for user_id in USERS)
        assert done == (point == "stored")
        assert sum(len(stored(service, user_id)) for user_id in USERS) == 2 * done
        for _ in range(WORKERS):
            processes.python(WORKER, settings.path)
        wait_until(lambda: all(is_settled(service, one) for one in USERS), "all is consolidated")
        for user_id in USERS:
            check_whole(service, user_id)
            assert state(service, user_id).version == 1
            (used,) = [line for line in service.usage(user_id) if line.purpose == "phase2"]
            assert used.calls >= ROUNDS
    assert agent.most == 1


@pytest.mark.kills
@first_backend
def test_two_workers_that_die_again_and_again_make_one_version_for_each_success(
    settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    agent = Apart(in_rounds())
    wanting_memory(settings, endpoint, agent)
    chance = random.Random(SEED)
    with settings.service() as service:
        watermarks = dict.fromkeys(USERS, 0)
        for killed in range(4 * KILLS):
            for user_id in USERS:
                note_of(service, user_id, f"chat{killed}")
            die_in_pairs(processes, settings, chance, killed)
            for user_id in USERS:
                now = state(service, user_id)
                assert now.success_watermark >= watermarks[user_id], "it never goes back"
                watermarks[user_id] = now.success_watermark
                assert now.version == successes(service, user_id)
                # A run that came to no end has left nothing: both files are of one version.
                assert len({one.version for one in stored(service, user_id)}) <= 1
        for _ in range(WORKERS):
            processes.python(WORKER, settings.path)
        wait_until(lambda: all(is_settled(service, one) for one in USERS), "all is consolidated")
        for user_id in USERS:
            check_whole(service, user_id)
    assert agent.most == 1


def die_in_pairs(processes: Processes, settings: SettingsFile, chance: random.Random, killed: int) -> None:
    """Two workers at once, of which one dies at a point and the other, once all is done, by hand."""
    point, visit = ALL_POINTS[killed % len(ALL_POINTS)]
    at = visit if point != "round" else chance.randint(1, ROUNDS)
    doomed = processes.python(WORKER, settings.path, "--at", point, "--visit", at)
    other_point, other_visit = chance.choice(ALL_POINTS)
    other = processes.python(WORKER, settings.path, "--at", other_point, "--visit", other_visit)
    # One may have left the other nothing to do: then that one is killed at rest.
    wait_until(lambda: doomed.poll() is not None or other.poll() is not None, "one of them has died")
    for process in (doomed, other):
        process.kill()
        assert process.wait(BUSY_SECONDS) == -signal.SIGKILL
