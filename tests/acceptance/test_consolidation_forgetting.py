"""Something is forgotten while a worker process consolidates: nothing of it is stored, or sent again."""

import json
import threading

from shepherd_memory.service import Service
from tests.acceptance.combinations import BACKENDS, every_value
from tests.acceptance.consolidating import (
    bodies_for_agent,
    in_rounds,
    is_settled,
    note_of,
    state,
    stored,
    wanting_memory,
)
from tests.acceptance.processes import BUSY_SECONDS, Processes, wait_until
from tests.acceptance.settings import SettingsFile
from tests.attacks.test_secrets import dump
from tests.consolidation_endpoint import results
from tests.endpoint import Body, ScriptedEndpoint, Step, by_content, held

GONE = "Quaggatown"
IN_THE_THIRD_ROUND = 2


class Gate:
    """Holds an agent's third request until the test opens it."""

    def __init__(self, then: Step) -> None:
        self.is_open = threading.Event()
        self.is_reached = threading.Event()
        self.then = then

    def step(self) -> Step:
        return by_content(self._choose)

    def _choose(self, body: Body) -> Step:
        if len(results(body)) < IN_THE_THIRD_ROUND or self.is_open.is_set():
            return self.then
        self.is_reached.set()
        return held(self.is_open, self.then)


def run(processes: Processes, settings: SettingsFile, *arguments: object) -> None:
    assert processes.shepherd(settings.path, *arguments).wait(BUSY_SECONDS) == 0, processes.logs()


def begin(
    settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint, service: Service, text: str
) -> Gate:
    """A worker that is in the midst of a run, with its third request on the way."""
    gate = Gate(in_rounds(text))
    wanting_memory(settings, endpoint, gate.step())
    # So that the call is not broken off but by what is forgotten.
    settings.set(memory_phase2_timeout=BUSY_SECONDS)
    note_of(service, "ada", "gone", f"I live in {GONE}.")
    note_of(service, "ada", "kept")
    processes.shepherd(settings.path, "worker")
    assert gate.is_reached.wait(BUSY_SECONDS)
    return gate


FORGETTING = {
    "a session": ("memory", "forget", "--session", "gone", "--yes"),
    "a fact": ("facts", "delete", "town", "--yes"),
}


@every_value(what=tuple(FORGETTING), database_url=BACKENDS)
def test_what_is_forgotten_while_the_agent_runs_is_in_nothing_that_comes_after(
    what: str,
    settings: SettingsFile,
    processes: Processes,
    endpoint: ScriptedEndpoint,
    database_url: str,
) -> None:
    settings.set(user_id="ada")
    with settings.service() as service:
        if what == "a fact":
            service.set_fact("ada", "town", GONE)
        gate = begin(settings, processes, endpoint, service, f"Ada lives in {GONE}.")
        assert stored(service, "ada") == []
        before = len(bodies_for_agent(endpoint))
        # What is made from now on says it no more, unless it is what was made before.
        gate.then = in_rounds("Ada has tea.")
        run(processes, settings, *FORGETTING[what])
        gate.is_open.set()
        wait_until(lambda: is_settled(service, "ada"), "it is consolidated anew")
        assert state(service, "ada").version == 1
        assert [one.body for one in stored(service, "ada")] == ["Ada has tea."] * 2
        later = bodies_for_agent(endpoint)[before:]
        assert len(later[0]["messages"]) == 2, "it begins anew"
        assert GONE not in json.dumps(later)
        assert GONE not in str(service.documents("ada", type="learning"))
        # Whoever closes a database of SQLite last takes its log of writes away.
        processes.end()
    if what == "a session":
        assert GONE.encode() not in dump(database_url)


@every_value(database_url=BACKENDS)
def test_who_is_erased_while_the_agent_runs_does_not_come_back(
    settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint, database_url: str
) -> None:
    with settings.service() as service:
        gate = begin(settings, processes, endpoint, service, f"Ada lives in {GONE}.")
        before = len(bodies_for_agent(endpoint))
        run(processes, settings, "memory", "erase", "--user", "ada", "--yes")
        gate.then = in_rounds("Bob has tea.")
        gate.is_open.set()
        # Whoever comes next shows that the worker goes on.
        note_of(service, "bob", "chat")
        wait_until(lambda: is_settled(service, "bob"), "the next one is consolidated")
        assert "of_ada" not in json.dumps(bodies_for_agent(endpoint)[before:])
        assert service.status().users == 1
        assert b"".join(service.export("ada")).count(b"\n") <= 1
    assert GONE.encode() not in dump(database_url)
