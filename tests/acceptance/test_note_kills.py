"""Workers that make notes are killed at bad moments: each note is there once, and nothing of it twice."""

import random
import signal
from datetime import UTC, datetime, timedelta

import pytest

from shepherd_memory.service import Service
from tests.acceptance.combinations import BACKENDS, every_value, first_backend
from tests.acceptance.kills import KILLS, SEED
from tests.acceptance.processes import BUSY_SECONDS, Processes, kill, wait_until
from tests.acceptance.settings import SettingsFile
from tests.endpoint import Body, ScriptedEndpoint, Step, by_content, close, user_text
from tests.note_endpoint import note

POINTS = ("claimed", "answered", "storing")
LATER_POINTS = ("committing", "stored")
ALL_POINTS = (*POINTS, *LATER_POINTS)
USERS = ("ada", "bob")
WORKERS = 2
CONVERSATIONS = 200
MAX_VISIT = 4


def converse(service: Service, number: int) -> None:
    """So many conversations of each user, which were over yesterday."""
    for user_id in USERS:
        for at in range(number):
            said_at = datetime.now(UTC) - timedelta(hours=20, minutes=at)
            said = [
                {
                    "role": "user",
                    "content": f"mark-{user_id}-{at}- says {line}",
                    "created_at": said_at.isoformat(),
                }
                for line in range(5)
            ]
            service.remember(user_id, said, f"s{at}", extract=False)
    # Each poll takes up so many sessions at most.
    while sum(len(service.conversations(user_id)) for user_id in USERS) < len(USERS) * number:
        service.transcripts.poll()


def by_mark() -> Step:
    """A note that names the conversation that it is about."""

    def choose(body: Body | None) -> Step:
        if body is None:
            return close()
        mark = user_text(body).partition("mark-")[2].rpartition("- says")[0].partition("- says")[0]
        return note(f"About {mark}.", f"- {mark}")

    return by_content(choose)


def wanting_notes(settings: SettingsFile, endpoint: ScriptedEndpoint) -> None:
    endpoint.default = by_mark()
    settings.set(
        memory_phases=True,
        memory_phase2=False,
        memory_phase_providers="*",
        memory_phase1_claims=1000,
        memory_phase1_input_tokens=4000,
        memory_phase_retry=0.05,
        poll_interval=0.1,
    )


def made(service: Service) -> int:
    return sum(len(service.conversation_outputs(user_id)) for user_id in USERS)


def check_each_once(service: Service, number: int) -> None:
    for user_id in USERS:
        expected = sorted(f"About {user_id}-{at}." for at in range(number))
        outputs = service.conversation_outputs(user_id)
        assert sorted(one.summary for one in outputs) == expected
        assert sorted(one.text for one in service.documents(user_id, type="learning")) == expected
        (used,) = [line for line in service.usage(user_id) if line.purpose == "phase1"]
        assert used.calls == number, "stored once each"


@every_value(point=POINTS, database_url=BACKENDS)
def test_a_worker_that_dies_at_a_named_point_leaves_each_note_once(
    point: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    check_dying_at(point, settings, processes, endpoint)


@pytest.mark.thorough
@pytest.mark.parametrize("point", LATER_POINTS)
def test_nor_does_one_that_dies_when_it_has_stored_leave_one_twice(
    point: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    check_dying_at(point, settings, processes, endpoint)


def check_dying_at(
    point: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    wanting_notes(settings, endpoint)
    with settings.service() as service:
        converse(service, 2)
        doomed = processes.python("tests.acceptance.note_worker", settings.path, "--at", point, "--visit", 2)
        assert doomed.wait(60) == -signal.SIGKILL
        assert made(service) < 4
        processes.python("tests.acceptance.note_worker", settings.path)
        wait_until(lambda: made(service) == 4, "all notes are made")
        check_each_once(service, 2)


@pytest.mark.kills
@first_backend
def test_two_workers_that_are_killed_at_named_points_and_at_random_make_each_note_once(
    settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    wanting_notes(settings, endpoint)
    settings.set(memory_phase1_concurrency=2)
    chance, number = random.Random(SEED), max(CONVERSATIONS // len(USERS), 12 * KILLS)
    with settings.service() as service:
        converse(service, number)
        for killed in range(KILLS):
            die_in_pairs(processes, settings, chance, killed)
        begun = made(service)
        assert begun < 2 * number, "some are left for those that are killed at random"
        workers = [processes.python("tests.acceptance.note_worker", settings.path) for _ in range(WORKERS)]
        for killed in range(KILLS):
            far = begun + (killed + 1) * (2 * number - begun) // (KILLS + 1)
            wait_until(lambda far=far: made(service) >= far, f"{far} notes are made", every=0.001)
            place = chance.randrange(WORKERS)
            kill(workers[place])
            workers[place] = processes.python("tests.acceptance.note_worker", settings.path)
        wait_until(lambda: made(service) == 2 * number, "all notes are made")
        check_each_once(service, number)


def die_in_pairs(processes: Processes, settings: SettingsFile, chance: random.Random, killed: int) -> None:
    """Two workers at once, of which each dies at another point, the first or a later time it comes by."""
    doomed = [
        processes.python(
            "tests.acceptance.note_worker",
            settings.path,
            "--at",
            ALL_POINTS[(killed + place) % len(ALL_POINTS)],
            "--visit",
            chance.randint(1, MAX_VISIT),
        )
        for place in range(WORKERS)
    ]
    assert [process.wait(BUSY_SECONDS) for process in doomed] == [-signal.SIGKILL] * WORKERS
