"""Earlier sessions over HTTP: found again, named, put aside, resumed; the next chat has the old turns."""

import threading
from typing import Any

import pytest

from tests.acceptance.processes import wait_until
from tests.provider import ScriptedProvider, openai_stream
from tests.server.calling import CHATS, Reply, bearer, call, call_json, new_key, say
from tests.server.serving import ANTHROPIC, OPENAI, Running, StartServer

SESSIONS = "/v1/memory/sessions"
QUIET: dict[str, Any] = {"user_id": "ada", "embedding_engine": "none"}
NAMES = ["税金", "../../x", "👩‍👩‍👧", "a/b?c=d&e#f"]


@pytest.fixture
def running(server: StartServer) -> Running:
    return server(**QUIET)


def started(running: Running, *texts: str, group: str = "main", key: Any = None) -> str:
    """A session in which this was said over HTTP; it is the active one of the group."""
    headers = {"X-Shepherd-Group": group, **(key or {})}
    begun = call_json(running.url, "POST", SESSIONS, {"takeover": True}, headers)
    session_id: str = begun.json["session_id"]
    for text in texts:
        assert say(running.url, text, {"X-Shepherd-Session": session_id, **headers}).status == 200
    return session_id


def clear(running: Running, headers: Any = None, **fields: Any) -> Reply:
    return call_json(running.url, "POST", f"{SESSIONS}/clear", fields, headers)


def resume(running: Running, named: str, headers: Any = None, **fields: Any) -> Reply:
    return call_json(running.url, "POST", f"{SESSIONS}/{named}/resume", fields, headers)


def rename(running: Running, named: str, name: str, headers: Any = None) -> Reply:
    return call_json(running.url, "PATCH", f"{SESSIONS}/{named}", {"name": name}, headers)


def get(running: Running, rest: str, headers: Any = None) -> Reply:
    return call(running.url, "GET", f"{SESSIONS}{rest}", headers=headers)


@pytest.mark.parametrize("wire", CHATS)
def test_after_resume_the_next_prompt_has_the_old_turns_and_the_same_bytes_from_then_on(
    server: StartServer, provider: ScriptedProvider, wire: str
) -> None:
    running = server(ANTHROPIC if wire == "anthropic" else OPENAI, **QUIET)
    session_id = call_json(running.url, "POST", SESSIONS, {}).json["session_id"]
    headers = {"X-Shepherd-Session": session_id}
    assert say(running.url, "My bike is a Brompton", headers, wire=wire).status == 200
    assert clear(running, name="Bikes").status == 200
    assert say(running.url, "And the bell?", headers, wire=wire).status == 409
    resumed = resume(running, "Bikes")
    assert (resumed.status, resumed.header("x-shepherd-session")) == (200, session_id)
    assert "My bike is a Brompton" in resumed.json["told"]["text"]
    holder = "input" if wire == "responses" else "messages"
    said: list[dict[str, Any]] = [{"role": "user", "content": "And the bell?"}]
    for _ in range(2):
        sent = say(running.url, "", headers, wire=wire, **{holder: said})
        assert sent.status == 200
        said += [{"role": "assistant", "content": "Brass."}, {"role": "user", "content": "And the bag?"}]
    first, second = (request.body.decode() for request in provider.requests[-2:])
    tail = first[first.index("And the bell?") : first.index("</previous-session>")]
    assert "My bike is a Brompton" in tail
    assert second.count("<previous-session") == 1
    assert tail in second


def test_sessions_are_listed_searched_and_read_in_pages(running: Running) -> None:
    bike = started(running, "My bike is green", "The pump is in the shed")
    clear(running, name="Bikes")
    cat = started(running, "The cat is called Momo")
    listed = get(running, "").json
    assert [(one["session_id"], one["name"], one["status"]) for one in listed["sessions"]] == [
        (cat, "", "active"),
        (bike, "Bikes", "ended"),
    ]
    assert listed["total"] == 2
    assert [one["session_id"] for one in get(running, "?limit=1&offset=1").json["sessions"]] == [bike]
    found = get(running, "?query=pump").json
    assert [(one["session_id"], one["match"]["hits"]) for one in found["sessions"]] == [(bike, 1)]
    assert (found["timed_out"], "pump" in found["sessions"][0]["match"]["snippet"]) == (False, True)
    page = get(running, f"/{bike}/messages?first=3&count=1").json
    assert [one["text"] for one in page["messages"]] == ["The pump is in the shed"]
    assert (page["total"], page["next_first"]) == (4, 4)
    for wrong in ("?limit=0", "?limit=201", "?offset=-1", f"/{bike}/messages?first=0"):
        assert get(running, wrong).status == 400


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_kept_and_found_again(running: Running, name: str) -> None:
    session_id = started(running, "One")
    assert rename(running, session_id, name).json["name"] == name
    assert clear(running).json["name"] == name
    assert resume(running, session_id).json["session"]["name"] == name


def test_what_cannot_be_done_is_said_in_words_and_changes_nothing(running: Running) -> None:
    tax = started(running, "One")
    clear(running, name="Tax")
    current = started(running, "Two")
    before = list(running.service.export("ada"))[1:]
    for refused, status in (
        (clear(running, name="x" * 300), 400),
        (clear(running, session_id="nobody's"), 404),
        (rename(running, tax, ""), 400),
        (rename(running, tax, "x" * 300), 400),
        (rename(running, "nobody's", "x"), 404),
        (resume(running, "nobody's", save_current_as="Mine"), 404),
        (resume(running, tax, save_current_as="x" * 300), 400),
        (resume(running, tax, at="no message"), 404),
        (get(running, "/nobody's/messages"), 404),
    ):
        assert refused.status == status
        assert len(refused.json["error"]["message"]) > 20
    assert list(running.service.export("ada"))[1:] == before
    assert get(running, "/active").json["session_id"] == current


def test_nothing_is_resumed_while_a_request_is_answered(running: Running, provider: ScriptedProvider) -> None:
    old, now = started(running, "One"), started(running, "Two")
    gate = threading.Event()
    provider.script(openai_stream("Hello ", gate, "Ada."))
    asking = threading.Thread(
        target=say, args=(running.url, "Slowly", {"X-Shepherd-Session": now}), kwargs={"stream": True}
    )
    asked = len(provider.requests)
    asking.start()
    wait_until(lambda: len(provider.requests) > asked, "the provider is asked")
    before = list(running.service.export("ada"))[1:]
    refused = resume(running, old)
    assert (refused.status, refused.json["error"]["code"]) == (409, "session_busy")
    assert refused.json["session_id"] == now
    assert list(running.service.export("ada"))[1:] == before
    gate.set()
    asking.join()
    resumed = wait_until(lambda: _resumed(running, old), "the answer is over")
    assert resumed["saved"]["session_id"] == now


def _resumed(running: Running, session_id: str) -> Any:
    reply = resume(running, session_id)
    return reply.json if reply.status == 200 else None


def test_a_group_reaches_its_own_sessions_alone_and_main_all_by_name(running: Running) -> None:
    service = running.service
    keys = {group: bearer(new_key(service, "ada", group=group)) for group in ("a", "b")}
    keys["main"] = bearer(new_key(service, "ada"))
    ids = {
        group: started(running, f"Said in {group}", group=group, key=keys["main"])
        for group in ("main", "a", "b", "global")
    }
    bob = bearer(new_key(service, "bob"))
    before = list(service.export("ada"))[1:]
    for caller, headers in ({**keys, "bob": bob}).items():
        seen = {"a": {"a", "global"}, "b": {"b", "global"}, "main": set(ids), "bob": set()}[caller]
        assert {one["group_name"] for one in get(running, "", headers).json["sessions"]} == seen
        for group, session_id in ids.items():
            read = get(running, f"/{session_id}/messages", headers)
            assert read.status == (200 if group in seen else 404)
            if group not in (caller, "bob"):
                nobody = {
                    reply.status
                    for reply in (
                        resume(running, session_id, headers),
                        rename(running, session_id, "Mine", headers),
                        clear(running, headers, session_id=session_id),
                    )
                }
                assert nobody == {404}, (caller, group)
    assert list(service.export("ada"))[1:] == before
    for group in ("a", "b"):
        assert rename(running, ids[group], "Ours", keys[group]).status == 200
        assert clear(running, keys[group], group="global").status == 403
    by_name = call_json(
        running.url, "PATCH", f"{SESSIONS}/{ids['a']}", {"name": "x", "group": "a"}, keys["main"]
    )
    assert by_name.status == 200
