"""A conversation that began with the consolidated summary keeps it, whatever is consolidated meanwhile."""

import itertools

from shepherd_memory.service import Service
from tests.acceptance.combinations import BACKENDS, every_value
from tests.acceptance.consolidating import (
    SUMMARY,
    answers,
    is_settled,
    note_of,
    scripted,
    state,
    wanting_memory,
)
from tests.acceptance.processes import wait_until
from tests.acceptance.server_site import Server, Site
from tests.acceptance.test_sessions import SESSIONS, turn
from tests.consolidation_endpoint import ToolCall, results, section
from tests.endpoint import Body, ScriptedEndpoint, Step
from tests.provider import chat
from tests.server.test_prefix import ends_of_turns

KETTLE = "/home/ada/kettle"


def about(tea: str) -> Step:
    """A summary with a general part, and one for each of two projects."""

    def script(body: Body) -> list[ToolCall]:
        if results(body):
            return [("finish", {})]
        return [
            section(body, f"All about {tea}."),
            section(body, f"Drinks {tea}.", "Who", SUMMARY),
            section(body, f"Boil {tea} first.", "Kettle", SUMMARY, project=KETTLE),
            section(body, "Paint it red.", "Bike", SUMMARY, project="/home/ada/bike"),
        ]

    return scripted(script)


def begin(server: Server) -> str:
    began = server.ask("POST", SESSIONS, {"user": "ada", "cwd": f"{KETTLE}/lid"})
    assert began.status == 201, began.body
    return str(began.json["session_id"])


def settled(service: Service, version: int) -> None:
    wait_until(lambda: is_settled(service, "ada") and state(service, "ada").version == version, "a version")


@every_value(database_url=BACKENDS)
def test_each_request_begins_with_the_one_before_it_across_a_consolidation_and_two_servers(
    site: Site, endpoint: ScriptedEndpoint
) -> None:
    site.provider.default = chat("I see.")
    wanting_memory(site.settings, endpoint, about("green tea"))
    servers = site.serve(), site.serve()
    with site.settings.service() as service:
        note_of(service, "ada", "chat")
        settled(service, 1)
        session_id, messages = begin(servers[0]), list[dict[str, str]]()
        requests = []
        for number in range(6):
            if number == 3:
                endpoint.default = answers(about("black tea"))
                note_of(service, "ada", "second")
                settled(service, 2)
            requests.append(turn(site, servers[number % 2], session_id, messages, f"number {number}"))
        told = requests[0].decode()
        parts = ("Drinks green tea.", "Boil green tea first.", "Paint it red.")
        assert [part in told for part in parts] == [True, True, False]
        for before, after in itertools.pairwise(requests):
            end = ends_of_turns(before)[-1]
            assert after.decode()[:end] == before.decode()[:end]
        assert "black tea" not in requests[-1].decode()
        assert servers[1].ask("POST", f"{SESSIONS}/{session_id}/end", {"user": "ada"}).status == 200
        check_new_conversation(site, servers, service, endpoint)


def check_new_conversation(
    site: Site, servers: tuple[Server, Server], service: Service, endpoint: ScriptedEndpoint
) -> None:
    """It is told the new summary, until what that rests on is forgotten."""
    session_id, messages = begin(servers[1]), list[dict[str, str]]()
    fresh = turn(site, servers[1], session_id, messages, "something else").decode()
    assert "Drinks black tea." in fresh
    assert "Boil black tea first." in fresh
    endpoint.default = answers(about("no tea"))
    service.forget("ada", session="chat")
    after = turn(site, servers[0], session_id, messages, "and now?").decode()
    assert "black tea" not in after
