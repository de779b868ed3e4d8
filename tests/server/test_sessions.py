"""Sessions over HTTP: one at a time in each group, shared by all devices, and closed once it has ended."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.acceptance.processes import wait_until
from tests.provider import ScriptedProvider, openai_stream
from tests.server.calling import CHATS, Reply, bearer, call, call_json, error_of, new_key, say
from tests.server.serving import ANTHROPIC, OPENAI, Running, StartServer, write_config

SESSIONS = "/v1/memory/sessions"
QUIET: dict[str, Any] = {"user_id": "ada", "embedding_engine": "none"}


@pytest.fixture
def running(server: StartServer) -> Running:
    return server(**QUIET)


def start(url: str, headers: Any = None, **fields: Any) -> Reply:
    return call_json(url, "POST", SESSIONS, fields, headers)


def end(url: str, session_id: str, headers: Any = None, **fields: Any) -> Reply:
    return call_json(url, "POST", f"{SESSIONS}/{session_id}/end", fields, headers)


def active(url: str, headers: Any = None) -> Any:
    return call(url, "GET", f"{SESSIONS}/active", headers=headers).json


def of_session(session_id: str, **more: str) -> dict[str, str]:
    return {"X-Shepherd-Session": session_id, **more}


def test_a_session_is_started_found_by_another_device_and_ended(running: Running) -> None:
    begun = start(running.url, agent_name="Julian")
    session_id = begun.json["session_id"]
    assert (begun.status, begun.header("x-shepherd-session")) == (201, session_id)
    assert begun.json["status"] == "active"
    assert active(running.url) == {"session_active": True, "session_id": session_id, "session": begun.json}
    said = say(running.url, "My bike is green", of_session(session_id))
    assert said.status == 200
    named = [(one.speaker_type, one.speaker_name) for one in running.service.documents("ada")]
    assert named == [("human", "ada"), ("agent", "Julian")]
    ended = end(running.url, session_id)
    assert (ended.status, ended.json["end_reason"]) == (200, "client")
    assert end(running.url, session_id).json == ended.json
    assert call(running.url, "GET", f"{SESSIONS}/{session_id}").json == ended.json
    assert active(running.url) == {"session_active": False, "session_id": None, "session": None}


def test_a_second_start_is_a_conflict_that_names_the_first_until_it_is_taken_over(running: Running) -> None:
    first = start(running.url).json["session_id"]
    refused = start(running.url)
    assert (refused.status, refused.header("x-shepherd-session")) == (409, first)
    assert refused.json["session_id"] == first
    assert refused.json["error"]["code"] == "session_active"
    second = start(running.url, takeover=True)
    assert second.status == 201
    assert call(running.url, "GET", f"{SESSIONS}/{first}").json["end_reason"] == "replaced"


@pytest.mark.parametrize(
    ("mode", "word", "stored", "told"),
    [("on", "on", True, True), ("read-only", "inject-only", False, True), ("off", "off", False, False)],
)
def test_a_chat_keeps_to_what_the_memory_of_its_session_is_for(
    running: Running, provider: ScriptedProvider, mode: str, word: str, stored: bool, told: bool
) -> None:
    running.service.set_fact("ada", "bike", "a green one")
    begun = start(running.url, memory_mode=mode).json
    assert begun["memory_mode"] == mode
    reply = say(running.url, "Which bike do I have?", of_session(begun["session_id"]))
    assert (reply.status, reply.header("x-shepherd-memory")) == (200, word)
    assert (reply.header("x-shepherd-remembered") == "true") == stored
    assert (b"a green one" in provider.requests[-1].body) == told
    assert bool(running.service.documents("ada")) == stored


@pytest.mark.parametrize("wire", CHATS)
def test_a_chat_in_a_session_that_has_ended_is_refused_in_its_wire_format(
    server: StartServer, provider: ScriptedProvider, wire: str
) -> None:
    running = server(ANTHROPIC if wire == "anthropic" else OPENAI, **QUIET)
    session_id = start(running.url).json["session_id"]
    assert say(running.url, "My bike is green", of_session(session_id), wire=wire).status == 200
    end(running.url, session_id)
    asked = len(provider.requests)
    for fields in ({}, {"memory": False}, {"stream": True}):
        refused = say(running.url, "And the bell is brass", of_session(session_id), wire=wire, **fields)
        error = error_of(refused, wire)
        assert (refused.status, error["type"]) == (409, "invalid_request_error")
        assert "session_ended" in (error["message"] if wire == "anthropic" else error["code"])
        assert f"the session {session_id} has ended (client): start another" in error["message"]
        assert refused.header("x-shepherd-session") == session_id
        assert refused.header("x-should-retry") == "false"
    assert len(provider.requests) == asked
    assert len(running.service.documents("ada", session_id=session_id)) == 2


def test_ids_of_ones_own_and_none_are_taken_as_ever(running: Running) -> None:
    start(running.url)
    for headers in (of_session("my own id"), of_session("another"), {}):
        assert say(running.url, "My bike is green", headers).status == 200
    assert call(running.url, "GET", f"{SESSIONS}/my%20own%20id").json["status"] == ""
    assert end(running.url, "my%20own%20id").status == 404
    assert call(running.url, "GET", f"{SESSIONS}/nowhere").status == 404


def test_absurd_ids_are_not_found_and_change_nothing(running: Running) -> None:
    begun = start(running.url).json
    for session_id in ("no", "a/b/../c", "%00", "x" * 3000, "%E2%80%A8", "active/end"):
        assert end(running.url, session_id).status == 404
        assert start(running.url, takeover=True, previous=session_id).status == 404
    assert call(running.url, "DELETE", f"{SESSIONS}/{begun['session_id']}%0A").status == 404
    assert active(running.url)["session"] == begun


def test_an_id_with_line_breaks_is_reached_like_any_other(running: Running) -> None:
    running.service.remember("ada", [{"role": "user", "content": "My bike is green"}], "a\nb\n")
    assert call(running.url, "GET", f"{SESSIONS}/a%0Ab%0A").json["session_id"] == "a\nb\n"
    assert call(running.url, "GET", f"{SESSIONS}/a%0Ab%0A/messages").json["total"] == 1
    assert call(running.url, "DELETE", f"{SESSIONS}/a%0Ab%0A").json["documents"] == 1


def test_a_start_that_does_not_fit_is_refused_in_words(running: Running) -> None:
    wrong: list[dict[str, Any]] = [
        {"agent_name": 7},
        {"agent_name": "x" * 300},
        {"takeover": "yes"},
        {"previous": None},
        {"previous_transcript": "text"},
        {"previousTranscript": {"role": "user"}},
        {"mood": "good"},
        {"memory_mode": "of"},
        {"group": "a/b"},
    ]
    for fields in wrong:
        refused = start(running.url, **fields)
        assert refused.status == 400, fields
        assert error_of(refused)["message"]
    assert not active(running.url)["session_active"]


def test_a_session_of_another_user_or_group_is_not_found_and_never_forbidden(running: Running) -> None:
    ada, bob = (bearer(new_key(running.service, name)) for name in ("ada", "bob"))
    team = bearer(new_key(running.service, "ada", group="team"))
    begun = start(running.url, ada).json
    for key in (bob, team):
        for reply in (
            end(running.url, begun["session_id"], key),
            call(running.url, "GET", f"{SESSIONS}/{begun['session_id']}", headers=key),
            start(running.url, key, previous=begun["session_id"], takeover=True),
        ):
            assert reply.status == 404
        assert not active(running.url, key)["session_active"]
        assert say(running.url, "Hello", {**key, **of_session(begun["session_id"])}).status == 200
        assert start(running.url, key).status == 201
    assert active(running.url, ada)["session"]["status"] == "active"
    assert start(running.url, team, group="main").status == 403
    assert start(running.url, bob, user="ada").status == 403


def test_health_tells_of_the_session_only_whom_it_knows(running: Running) -> None:
    session_id = start(running.url).json["session_id"]
    told = {"status": "ok", "session_active": True, "session_id": session_id}
    assert call(running.url, "GET", "/health").json == {"status": "ok"}
    assert call(running.url, "GET", "/health?user=ada").json == told
    assert call(running.url, "GET", "/health", headers={"X-Shepherd-User": "ada"}).json == told
    nothing = {"status": "ok", "session_active": False, "session_id": None}
    assert call(running.url, "GET", "/health?user=bob").json == nothing
    assert call(running.url, "GET", "/health?user=ada&group=team").json == nothing
    ada, bob = (bearer(new_key(running.service, name)) for name in ("ada", "bob"))
    stranger: Callable[[], Any] = lambda: call(running.url, "GET", "/health?user=ada").json  # noqa: E731
    wait_until(lambda: stranger() == {"status": "ok"}, "the server notices that there are keys")
    assert call(running.url, "GET", "/health", headers=ada).json == told
    assert call(running.url, "GET", "/health", headers=bob).json == nothing
    assert call(running.url, "GET", "/health?user=ada", headers=bob).json == {"status": "ok"}
    assert call(running.url, "GET", "/health", headers=bearer("shp_wrong")).json == {"status": "ok"}


def status_of(running: Running, session_id: str) -> tuple[str, str]:
    life = running.service.session_life("ada", session_id)
    assert life is not None
    return life.status, life.end_reason


def test_a_session_ends_by_itself_and_not_while_an_answer_comes(
    server: StartServer, provider: ScriptedProvider
) -> None:
    running = server(**QUIET)
    gate = threading.Event()
    provider.script(openai_stream("Gre", gate, "en"))
    session_id = start(running.url).json["session_id"]
    silent = start(running.url, group="team").json["session_id"]
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(say, running.url, "Hm?", of_session(session_id), stream=True, memory=False)
        wait_until(lambda: provider.requests, "the provider is asked")
        write_config(running.config_path, provider.url, **QUIET, session_idle_minutes=0.01)
        wait_until(lambda: status_of(running, silent) == ("ended", "idle"), "the silent session ends")
        assert status_of(running, session_id) == ("active", "")
        assert call(running.url, "GET", f"{SESSIONS}/active").json["session_id"] == session_id
        gate.set()
        assert answer.result().status == 200
    wait_until(lambda: status_of(running, session_id) == ("ended", "idle"), "the session ends")


def test_an_end_does_not_break_off_the_answer_that_comes_and_it_is_remembered(
    running: Running, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    provider.script(openai_stream("Gre", gate, "en"))
    session_id = start(running.url).json["session_id"]
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(say, running.url, "Which colour?", of_session(session_id), stream=True)
        wait_until(lambda: provider.requests, "the provider is asked")
        assert end(running.url, session_id).status == 200
        gate.set()
        assert answer.result().status == 200
    said = [one.text for one in running.service.documents("ada", session_id=session_id)]
    assert said == ["Which colour?", "Green"]
    assert status_of(running, session_id) == ("ended", "client")


def test_of_many_requests_that_start_a_session_one_succeeds(running: Running) -> None:
    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda _: start(running.url), range(200)))
    statuses = [reply.status for reply in replies]
    assert (statuses.count(201), statuses.count(409)) == (1, 199)
    assert len({reply.json["session_id"] for reply in replies}) == 1


def test_a_chat_goes_on_where_nobody_can_say_whether_its_session_has_ended(
    running: Running, provider: ScriptedProvider
) -> None:
    session_id = start(running.url).json["session_id"]
    end(running.url, session_id)
    with running.service.database.write() as tx:
        tx.execute("alter table active_sessions rename to hidden_pointers")
        tx.execute("alter table sessions rename to hidden_sessions")
    assert say(running.url, "My bike is green", of_session(session_id)).status == 200
