"""What the server says of itself, and to whom: the whole to whoever runs it, to a user what is theirs."""

import pytest

from tests.server.calling import bearer, call, new_key
from tests.server.serving import Running, StartServer
from tests.server.shared_session import StartSharing

OWN = {"user", "healthy", "extraction", "items", "conversations", "unembedded", "tokens_today", "phases"}
PATHS = ["/health/live", "/health/ready"]


@pytest.fixture
def running(start: StartServer) -> Running:
    """A server with something waiting of two users, and something in one namespace."""
    # Nobody answers there, so what is queued stays so.
    server = start(
        memory_extraction_endpoint="http://user:hunter2@127.0.0.1:9", memory_extraction_model="extractor"
    )
    for user_id, number in (("anna", 3), ("bob", 1), ("app/anna", 2)):
        for session in range(number):
            said = {"role": "user", "content": f"I have {session} quokkas.", "id": "m"}
            server.service.remember(user_id, [said], f"session-{session}")
    return server


def waiting(status: dict[str, dict[str, int]]) -> int:
    return status["items"]["waiting"] + status["items"]["running"]


def test_without_keys_the_whole_is_shown(running: Running) -> None:
    shown = call(running.url, "GET", "/status").json
    assert shown["users"] == 3
    assert shown["database"].endswith("memory.db")
    assert waiting(shown) == 6
    assert "hunter2" not in str(shown)


def test_a_key_for_every_user_sees_the_whole_or_the_user_whom_it_names(running: Running) -> None:
    key = bearer(new_key(running.service, "operator", any_user=True))
    assert call(running.url, "GET", "/status", None, key).json["users"] == 3
    for named in (
        call(running.url, "GET", "/status?user=anna", None, key),
        call(running.url, "GET", "/status", None, {**key, "X-Shepherd-User": "anna"}),
    ):
        assert (set(named.json), named.json["user"], waiting(named.json)) == (OWN, "anna", 3)


def test_a_personal_key_sees_its_own_counts_and_nothing_of_the_machine_or_of_others(running: Running) -> None:
    reply = call(running.url, "GET", "/status", None, bearer(new_key(running.service, "bob")))
    assert set(reply.json) == OWN
    assert (reply.json["user"], waiting(reply.json), reply.json["extraction"]) == ("bob", 1, "on")
    for secret in ("anna", "memory.db", "sqlite", "127.0.0.1", "extractor", str(running.config_path.parent)):
        assert secret.encode() not in reply.body


def test_a_personal_key_is_not_told_of_another_user(running: Running) -> None:
    key = bearer(new_key(running.service, "bob"))
    assert call(running.url, "GET", "/status?user=anna", None, key).status == 403
    assert call(running.url, "GET", "/status", None, {**key, "X-Shepherd-User": "anna"}).status == 403
    assert call(running.url, "GET", "/status?user=%ff", None, key).status == 400


def test_a_key_of_a_namespace_sees_its_own_users_and_never_the_whole(running: Running) -> None:
    key = bearer(new_key(running.service, "shop", any_user=True, namespace="app"))
    assert set(call(running.url, "GET", "/status", None, key).json) == OWN
    named = call(running.url, "GET", "/status?user=anna", None, key).json
    assert (named["user"], waiting(named)) == ("app/anna", 2)


def test_conversations_are_counted_by_state_for_all_and_for_one(running: Running) -> None:
    running.service.transcripts.poll()
    operator = bearer(new_key(running.service, "operator", any_user=True))
    whole = call(running.url, "GET", "/status", None, operator).json
    assert (whole["conversations"]["active"], whole["conversations"]["archived"]) == (6, 0)
    own = call(running.url, "GET", "/status", None, bearer(new_key(running.service, "bob"))).json
    assert own["conversations"]["active"] == 1
    metrics = call(running.url, "GET", "/metrics", None, operator).body
    assert b'shepherd_conversations{state="active"} 6.0' in metrics


def test_why_health_is_red_is_told_to_whoever_sees_the_whole(running: Running) -> None:
    personal = bearer(new_key(running.service, "bob"))
    operator = bearer(new_key(running.service, "operator", any_user=True))
    running.config_path.write_text(f"{running.config_path.read_text()}\nwhat = 1\n")
    assert "what" in str(call(running.url, "GET", "/health", None, operator).json["problems"])
    own_session = {"session_active": False, "session_id": None}
    for headers, more in ((personal, own_session), ({}, {})):
        reply = call(running.url, "GET", "/health", None, headers)
        assert (reply.status, reply.json) == (503, {"status": "failing", **more})


def test_red_health_takes_no_server_out_of_rotation(running: Running) -> None:
    new_key(running.service, "bob")
    running.config_path.write_text(f"{running.config_path.read_text()}\nwhat = 1\n")
    assert call(running.url, "GET", "/health").status == 503
    for path in PATHS:
        reply = call(running.url, "GET", path)
        assert (reply.status, reply.json) == (200, {"status": "ok"})
        assert call(running.url, "HEAD", path).status == 200


def test_no_rate_limit_counts_them_and_the_metrics_do(start: StartServer) -> None:
    server = start(server_rate_limit=1)
    for path in (*PATHS * 3, "/health?user=ada"):
        assert call(server.url, "GET", path).status == 200
    counted = call(server.url, "GET", "/metrics").body.decode()
    assert 'shepherd_requests_total{route="/health/ready",status="200"} 3.0' in counted


def test_a_shared_session_has_them_too_without_a_key(share: StartSharing) -> None:
    shared = share()
    new_key(shared.service, "mallory")
    for path in PATHS:
        reply = call(shared.url, "GET", path)
        assert (reply.status, reply.json) == (200, {"status": "ok"})
    assert call(shared.url, "GET", "/session").status == 401
