"""The shared session has a life once a client starts it; ended, it takes nothing until the next start."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.storage.lease_owner import new_owner
from tests.acceptance.processes import wait_until
from tests.provider import ScriptedProvider, ToolCall, openai_stream
from tests.server.calling import Reply, bearer, call, error_of, new_key
from tests.server.serving import write_config
from tests.server.shared_session import USER, Sharing, StartSharing, sharing, watching


@pytest.fixture
def shared(share: StartSharing) -> Sharing:
    return share()


def life_of(shared: Sharing, session_id: str) -> tuple[str, str]:
    life = shared.service.session_life(USER, session_id)
    assert life is not None
    return life.status, life.end_reason


def check_ended(reply: Reply) -> None:
    assert (reply.status, error_of(reply)["code"]) == (409, "session_ended")


def test_a_client_starts_and_ends_it_and_nothing_more_is_answered_then(
    shared: Sharing, provider: ScriptedProvider
) -> None:
    begun = shared.post("/session/start", {"agent_name": "Julian"})
    session_id = begun.json["session_id"]
    assert (begun.status, begun.header("x-shepherd-session")) == (201, session_id)
    assert shared.show()["session_id"] == session_id
    assert shared.ask("My dog is Rex.").json["session_id"] == session_id
    named = [one.speaker_name for one in shared.service.documents(USER)]
    assert named == [USER, "Julian"]
    ended = shared.post("/session/end")
    assert (ended.status, ended.json["end_reason"]) == (200, "client")
    asked = len(provider.requests)
    check_ended(shared.ask("Who is my dog?"))
    check_ended(shared.ask("Who is my dog?", stream=True))
    check_ended(shared.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Who?"}]}))
    assert len(provider.requests) == asked
    again = shared.post("/session/start").json
    assert again["previous_session"] == session_id
    assert shared.contents() == []
    assert shared.ask("Hello").status == 200


def test_a_session_that_is_only_read_from_is_started_so_and_listed_so(shared: Sharing) -> None:
    begun = shared.post("/session/start", {"memory_mode": "read-only"})
    assert (begun.status, begun.json["memory_mode"]) == (201, "read-only")
    assert shared.ask("My dog is Rex.").status == 200
    assert shared.service.documents(USER) == []
    (listed,) = shared.service.list_sessions(USER).sessions
    assert (listed.session_id, listed.memory_mode) == (begun.json["session_id"], "read-only")
    assert shared.post("/session/start", {"memory_mode": "sometimes"}).status == 400
    assert shared.post("/session/start", {"takeover": True}).json["memory_mode"] == "on"
    assert shared.ask("My dog is Rex.").status == 200
    assert [one.text for one in shared.service.documents(USER, role="user")] == ["My dog is Rex."]


def test_a_shared_session_of_a_group_stays_there_whatever_is_begun(share: StartSharing) -> None:
    shared = share(group="team")
    started = shared.post("/session/start").json
    assert started["group_name"] == "team"
    assert shared.ask("My dog is Rex.").status == 200
    assert shared.post("/clear").status == 200
    assert shared.ask("Hello").status == 200
    groups = {one.group_name for one in shared.service.documents(USER)}
    assert groups == {"team"}
    assert shared.service.active_session(USER) is None
    assert shared.service.active_session(USER, group="team") is not None


def test_a_start_while_one_is_active_is_a_conflict_also_if_it_is_elsewhere(shared: Sharing) -> None:
    session_id = shared.post("/session/start").json["session_id"]
    refused = shared.post("/session/start")
    assert (refused.status, refused.json["session_id"]) == (409, session_id)
    assert refused.json["error"]["code"] == "session_active"
    elsewhere = shared.service.start_session(USER, takeover=True).session_id
    check_ended(shared.ask("Hello"))
    assert shared.post("/session/start").json["session_id"] == elsewhere
    assert shared.post("/clear").status == 409
    assert shared.post("/session/start", {"takeover": True}).status == 201
    assert life_of(shared, elsewhere) == ("ended", "replaced")
    assert shared.ask("Hello").status == 200


def test_a_session_that_nobody_started_works_as_ever(shared: Sharing) -> None:
    first = shared.ask("My dog is Rex.").json["session_id"]
    assert life_of(shared, first) == ("", "")
    assert (shared.post("/session/end").status, shared.ask("Hello").status) == (404, 200)
    assert shared.post("/clear").json["session_id"] != first
    assert shared.service.active_session(USER) is None


def test_a_clear_ends_the_session_and_starts_another(shared: Sharing) -> None:
    first = shared.post("/session/start").json["session_id"]
    second = shared.post("/clear").json["session_id"]
    assert life_of(shared, first) == ("ended", "cleared")
    assert life_of(shared, second) == ("active", "")
    assert shared.ask("Hello").json["session_id"] == second


@pytest.mark.parametrize(
    ("fields", "status"),
    [({"previous": "nowhere"}, 404), ({"takeover": 1}, 400), ({"previousTranscript": "x"}, 400), ([], 400)],
)
def test_a_start_that_cannot_be_is_refused_and_the_session_goes_on(
    shared: Sharing, fields: Any, status: int
) -> None:
    before = shared.ask("Hello").json["session_id"]
    assert shared.post("/session/start", fields).status == status
    assert shared.show()["session_id"] == before


def test_health_tells_those_who_are_let_in_of_the_session(shared: Sharing) -> None:
    nothing = {"status": "ok", "session_active": False, "session_id": None}
    assert call(shared.url, "GET", "/health").json == nothing
    session_id = shared.post("/session/start").json["session_id"]
    told = {"status": "ok", "session_active": True, "session_id": session_id}
    assert call(shared.url, "GET", "/health").json == told
    keys = {name: bearer(new_key(shared.service, name)) for name in (USER, "bob")}
    wait_until(lambda: call(shared.url, "GET", "/health").json == {"status": "ok"}, "there are keys")
    assert call(shared.url, "GET", "/health", headers=keys[USER]).json == told
    assert call(shared.url, "GET", "/health", headers=keys["bob"]).json == {"status": "ok"}
    assert shared.post("/session/end", headers=keys["bob"]).status == 403
    assert shared.post("/session/end", headers=keys[USER]).status == 200
    assert call(shared.url, "GET", "/health", headers=keys[USER]).json == nothing


def test_those_who_watch_see_it_start_and_end(shared: Sharing) -> None:
    with watching(shared.url) as watcher:
        session_id = shared.post("/session/start").json["session_id"]
        shared.post("/session/end")
        wait_until(lambda: any(told.name == "session_ended" for told in watcher.told), "the end is told")
    names = {told.name: told.fields.get("session_id") for told in watcher.told}
    assert names["session_started"] == names["session_ended"] == session_id


def test_an_end_waits_for_the_answer_that_comes(shared: Sharing, provider: ScriptedProvider) -> None:
    gate = threading.Event()
    provider.script(openai_stream("Re", gate, "x"))
    session_id = shared.post("/session/start").json["session_id"]
    with ThreadPoolExecutor(2) as pool:
        answer = pool.submit(shared.ask, "Who is my dog?")
        shared.wait_until_running()
        end = pool.submit(shared.post, "/session/end")
        wait_until(lambda: shared.session.line()[1] == 1, "the end waits")
        assert life_of(shared, session_id) == ("active", "")
        gate.set()
        assert answer.result().json["response"] == "Rex"
        assert end.result().status == 200


def test_a_session_that_died_with_its_process_is_recovered_as_crashed(share: StartSharing) -> None:
    first = share()
    gone = new_owner().split(":")
    gone[1] = "999999999"
    died = first.service.start_session(USER, holder=":".join(gone)).session_id
    elsewhere = first.service.start_session("bob", holder=":".join(gone)).session_id
    second = share()
    wait_until(lambda: life_of(second, died) == ("ended", "crashed"), "it is recovered")
    assert second.service.active_session("bob").session_id == elsewhere  # type: ignore[union-attr]


def test_a_session_ends_with_its_server_and_goes_on_when_its_chat_does(
    provider: ScriptedProvider, tmp_path: Path
) -> None:
    path = tmp_path / "config.toml"
    write_config(path, provider.url, embedding_engine="none")
    with sharing(path) as first:
        session_id = first.post("/session/start").json["session_id"]
        first.ask("My dog is Rex.")
    with open_service(load_config(path, {}), worker=False) as service:
        life = service.session_life(USER, session_id)
        assert life is not None
        assert (life.status, life.end_reason) == ("ended", "client")
    with sharing(path, resume=True) as second:
        assert second.ask("Who is my dog?").json["session_id"] == session_id
        assert life_of(second, session_id) == ("active", "")


def of_tool(name: str, /, **arguments: str) -> list[Any]:
    """An answer in which the model calls one of the tools."""
    return [openai_stream(ToolCall("c1", name, json.dumps(arguments))), openai_stream("Done.")]


@pytest.mark.parametrize("is_started", [True, False], ids=["started", "unstarted"])
def test_the_session_follows_when_the_model_clears_or_resumes_one(
    share: StartSharing, provider: ScriptedProvider, is_started: bool
) -> None:
    shared = share(memtools=True)
    if is_started:
        assert shared.post("/session/start").status == 201
    assert shared.ask("My dog is Rex.").status == 200
    dogs = shared.show()["session_id"]
    with watching(shared.url, "/updates") as watcher:
        provider.script(*of_tool("clear_session", name="Dogs"))
        cleared = shared.ask("Put it aside")
        assert (cleared.status, cleared.json["session_id"]) == (200, dogs)
        other = shared.show()["session_id"]
        assert other != dogs
        assert shared.contents() == []
        assert shared.ask("Something else").json["session_id"] == other
        provider.script(*of_tool("resume_session", session_id="Dogs"))
        assert shared.ask("Back to the dogs").json["session_id"] == other
        assert shared.show()["session_id"] == dogs
        assert shared.contents()[0] == "My dog is Rex."
        wait_until(lambda: "session_resumed" in [one.name for one in watcher.told], "it is told")
        moved = [
            (one.name, one.fields["session_id"]) for one in watcher.told if one.name.startswith("session_")
        ]
        assert moved == [("session_cleared", other), ("session_resumed", dogs)]
    assert shared.ask("Who is my dog?").json["session_id"] == dogs
    said = [one["content"] for one in provider.requests[-1].json["messages"] if one["role"] == "user"]
    assert said[0].startswith("My dog is Rex.")
    assert "Something else" not in "".join(said)
    assert life_of(shared, dogs) == ("active", "")


def test_a_session_that_is_active_elsewhere_is_left_alone_when_the_model_clears_this_one(
    share: StartSharing, provider: ScriptedProvider
) -> None:
    shared = share(memtools=True)
    assert shared.ask("My dog is Rex.").status == 200
    elsewhere = shared.service.start_session(USER).session_id
    provider.script(*of_tool("clear_session", name="Dogs"))
    assert shared.ask("Put it aside").status == 200
    assert shared.show()["session_id"] != elsewhere
    assert life_of(shared, elsewhere) == ("active", "")
    assert shared.ask("Hello").status == 200
