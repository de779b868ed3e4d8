"""Notes of conversations over HTTP: paged with their reasons, kept out by a mode, and their state."""

import pytest

from tests.server.calling import bearer, call, call_json, new_key
from tests.server.serving import Running, StartServer

PHASES = "/v1/memory/phases"
SESSIONS = ("one", "two", "three")


@pytest.fixture
def running(server: StartServer) -> Running:
    started = server(user_id="ada", embedding_engine="none", memory_phases=True)
    for session in SESSIONS:
        started.service.remember("ada", [{"role": "user", "content": f"about {session}"}], session)
    started.service.transcripts.poll()
    return started


def test_conversations_are_paged_with_the_reason_why_they_have_no_note(running: Running) -> None:
    pages, offset = [], 0
    while offset is not None:
        page = call(running.url, "GET", f"{PHASES}?limit=2&offset={offset}").json
        pages.append([one["session_id"] for one in page["conversations"]])
        offset = page["next_offset"]
    assert [len(page) for page in pages] == [2, 1]
    assert {name for page in pages for name in page} == set(SESSIONS)
    assert page["off"].startswith("memory_phase1_endpoint")
    found = call(running.url, "GET", PHASES).json["conversations"][0]
    assert (found["reason"], found["outcome"], found["title"]) == ("other provider", "", "")
    one = call(running.url, "GET", f"{PHASES}/{found['conversation_id']}").json
    assert (one["summary"], one["raw_memory"]) == ("", "")
    for wrong, status in (("/999999", 404), ("/x", 400), ("?limit=0", 400), ("?offset=-1", 400)):
        assert call(running.url, "GET", f"{PHASES}{wrong}").status == status


def test_a_sessions_mode_is_changed_by_a_patch(running: Running) -> None:
    def patch(**fields: str) -> object:
        reply = call_json(running.url, "PATCH", "/v1/memory/sessions/one", fields)
        return reply.json.get("memory_mode", reply.status) if reply.status == 200 else reply.status

    assert patch(memory_mode="off") == "off"
    assert patch(name="Kettle") == "off"
    assert [patch(), patch(memory_mode="maybe")] == [400, 400]
    reasons = {
        one["session_id"]: one["reason"] for one in call(running.url, "GET", PHASES).json["conversations"]
    }
    assert reasons["one"] == "memory off"
    assert patch(name="Pot", memory_mode="on") == "on"


def test_who_waits_longest_is_told_to_whoever_runs_the_machine_alone(running: Running) -> None:
    operator = bearer(new_key(running.service, "operator", any_user=True))
    whole = call(running.url, "GET", "/status", headers=operator).json
    assert whole["phases"][0]["phase"] == "phase1"
    assert "oldest_user" in whole["phases"][0]
    key = bearer(new_key(running.service, "ada"))
    own = call(running.url, "GET", "/status", headers=key).json
    assert set(own["phases"][0]) == {"phase", "state", "items", "tokens_today", "daily_tokens"}
    metrics = call(running.url, "GET", "/metrics", headers=key).body.decode()
    assert 'shepherd_phase_items{phase="phase1",state="waiting"} 0.0' in metrics
    assert 'shepherd_phase_oldest_waiting_seconds{phase="phase1"} 0.0' in metrics
    assert "ada" not in metrics
