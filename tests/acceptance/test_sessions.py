"""The life of a session across processes: killed at bad moments, and shared by two servers."""

import itertools
import signal
import threading
from contextlib import closing
from pathlib import Path

import pytest

from shepherd_memory.memory import session_history, session_lives
from shepherd_memory.memory.session_lives import IdleRule, NewSession
from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.database import Database, open_database
from tests.acceptance.combinations import BACKENDS, first_backend
from tests.acceptance.processes import Processes, kill, wait_until
from tests.acceptance.server_site import CHAT, Server, Site
from tests.provider import chat, openai_stream
from tests.server.test_handing_on import element_of, entries_of
from tests.server.test_prefix import ends_of_turns

SESSIONS = "/v1/memory/sessions"
both_backends = pytest.mark.parametrize("database_url", BACKENDS, indirect=True)


def lives(database: Database) -> tuple[dict[str, str], list[str]]:
    """The state of each session, and which ones have a place."""
    with database.read() as connection:
        states = connection.rows("select session_id, status from sessions where user_id = 'ada'")
        places = connection.rows("select session_id from active_sessions where user_id = 'ada'")
    return dict(states), [row[0] for row in places]


@both_backends
def test_a_start_or_end_that_is_killed_has_happened_whole_or_not_at_all(
    database_url: str, processes: Processes, tmp_path: Path
) -> None:
    def die(action: str, session_id: str, point: str) -> None:
        dying = processes.python("tests.acceptance.dying_session", database_url, action, session_id, point)
        assert dying.wait(120) == -signal.SIGKILL

    with closing(open_database(database_url)) as database:
        session_lives.start(database, "ada", NewSession("first"), IdleRule(now_us(), 0))
        before = {"first": "active"}, ["first"]
        for action, session_id, point in (
            ("start", "second", "ended the one before"),
            ("start", "second", "started"),
            ("end", "first", "ended"),
        ):
            die(action, session_id, point)
            assert lives(database) == before, (action, point)
        die("start", "second", "committed")
        assert lives(database) == ({"first": "ended", "second": "active"}, ["second"])
        die("end", "second", "committed")
        assert lives(database) == ({"first": "ended", "second": "ended"}, [])
        third = session_lives.start(database, "ada", NewSession("third"), IdleRule(now_us(), 0))
        assert third.status == session_lives.ACTIVE


def history(database: Database) -> dict[str, str]:
    with database.read() as connection:
        return {entry.session_id: entry.name for entry in session_history.entries(connection, "ada")}


@both_backends
def test_a_clear_or_resume_that_is_killed_has_happened_whole_or_not_at_all(
    database_url: str, processes: Processes
) -> None:
    def die(action: str, session_id: str, point: str) -> None:
        dying = processes.python("tests.acceptance.dying_session", database_url, action, session_id, point)
        assert dying.wait(120) == -signal.SIGKILL

    idle = IdleRule(now_us(), 0)
    with closing(open_database(database_url)) as database:
        session_lives.start(database, "ada", NewSession("first"), idle)
        for point in ("ended", "filed"):
            die("clear", "first", point)
            assert (lives(database), history(database)) == (({"first": "active"}, ["first"]), {}), point
        die("clear", "first", "committed")
        assert (lives(database), history(database)) == (({"first": "ended"}, []), {"first": "Tax"})
        session_lives.start(database, "ada", NewSession("second"), idle)
        before = ({"first": "ended", "second": "active"}, ["second"])
        for point in ("put the current one aside", "resumed"):
            die("resume", "first", point)
            assert (lives(database), history(database)) == (before, {"first": "Tax"}), point
        die("resume", "first", "committed")
        after = ({"first": "active", "second": "ended"}, ["first"])
        assert (lives(database), history(database)) == (after, {"second": "Now"})


@first_backend
def test_a_session_whose_server_is_killed_in_an_answer_is_recovered_by_the_next(site: Site) -> None:
    gate = threading.Event()
    site.set_provider(base_url=site.provider.url, context_window=32_000)
    site.provider.script(openai_stream("Noted."), openai_stream("Hello ", gate, "Steve."))
    killed = site.serve("--user", "steve", command="cli-server")
    session_id = killed.ask("POST", "/session/start", {"agent_name": "Julian"}).json["session_id"]
    assert killed.ask("POST", "/request", {"prompt": "My dog is Rex."}).json["response"] == "Noted."
    with killed.open("POST", "/request", {"prompt": "Who am I?", "stream": True}) as conversation:
        conversation.read_until(b"Hello ")
        kill(killed.process)
    gate.set()
    again = site.serve("--user", "steve", command="cli-server")
    begun = wait_until(lambda: started(again), "the session of the process that is gone is ended")
    assert begun["previous_session"] == session_id
    assert again.ask("POST", "/request", {"prompt": "hello"}).status == 200
    told = str(site.provider.exchanges[-1].received.json["messages"])
    assert "[human — steve]: My dog is Rex." in told
    assert "[human — steve]: Who am I?" in told
    with site.settings.service() as service:
        life = service.session_life("steve", session_id)
        assert life is not None
        assert (life.status, life.end_reason) == ("ended", "crashed")
        said = [(one.speaker_name, one.text) for one in service.documents("steve", session_id=session_id)]
    assert said == [("steve", "My dog is Rex."), ("Julian", "Noted."), ("steve", "Who am I?")]


def started(server: Server) -> dict[str, str] | None:
    reply = server.ask("POST", "/session/start", {})
    return reply.json if reply.status == 201 else None


def turn(site: Site, server: Server, session_id: str, messages: list[dict[str, str]], text: str) -> bytes:
    """What reaches the provider of the next words in a chat, in which all messages so far are sent again."""
    messages.append({"role": "user", "content": text})
    body = {"model": "m", "user": "ada", "messages": messages}
    assert server.ask("POST", CHAT, body, {"X-Shepherd-Session": session_id}).memory == "on"
    messages.append({"role": "assistant", "content": "I see."})
    return site.provider.exchanges[-1].received.body


@both_backends
def test_two_servers_on_one_database_share_a_session(site: Site) -> None:
    site.provider.default = chat("I see.")
    site.settings.set(embedding_engine="none")
    first, second = site.serve(), site.serve()
    ada = {"user": "ada"}
    session_id = first.ask("POST", SESSIONS, ada).json["session_id"]
    refused = second.ask("POST", SESSIONS, ada)
    assert (refused.status, refused.json["session_id"]) == (409, session_id)
    assert second.ask("GET", "/health?user=ada").json["session_id"] == session_id
    headers = {"X-Shepherd-Session": session_id}
    for server, text in ((first, "One."), (second, "Two.")):
        assert server.chat(text, "ada", headers=headers).status == 200
    assert second.ask("POST", f"{SESSIONS}/{session_id}/end", ada).status == 200
    refused = first.chat("Three.", "ada", headers=headers)
    assert (refused.status, refused.json["error"]["code"]) == (409, "session_ended")
    begun = first.ask("POST", SESSIONS, ada).json
    assert begun["previous_session"] == session_id

    messages: list[dict[str, str]] = []
    requests = [
        turn(site, (second, first)[number % 2], begun["session_id"], messages, f"number {number}")
        for number in range(6)
    ]
    for before, after in itertools.pairwise(requests):
        end = ends_of_turns(before)[-1]
        assert after.decode()[:end] == before.decode()[:end]
    with site.settings.service() as service:
        before, now = (service.documents("ada", session_id=one) for one in (session_id, begun["session_id"]))
    told = element_of(requests[-1], "messages")
    assert told.attrib == {
        "category": "transcript",
        "session-id": session_id,
        "message-count": "4",
        "total-count": "4",
        "ended": before[-1].created_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    assert entries_of(told) == [
        *("[human — ada]: One.", "[agent]: I see."),
        *("[human — ada]: Two.", "[agent]: I see."),
    ]
    assert [one.text for one in now if one.role == "user"] == [f"number {number}" for number in range(6)]
