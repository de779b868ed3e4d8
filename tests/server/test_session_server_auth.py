"""A key admits a client to a shared session; whose memory it is stays the server's to say."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.errors import ConfigError
from shepherd_memory.frontends.session_server.app import session_application
from shepherd_memory.frontends.session_server.routes import ROUTES
from shepherd_memory.frontends.session_server.shared_session import open_shared
from shepherd_memory.frontends.web.process import running
from shepherd_memory.memory import api_keys
from shepherd_memory.storage.clock import now_us
from tests.acceptance.processes import wait_until
from tests.provider import ScriptedProvider, chat
from tests.server.calling import Reply, bearer, call, call_json, error_of, new_key
from tests.server.serving import write_config
from tests.server.shared_session import Sharing, StartSharing, watching

SECRET = "My code word is zebra."
OPEN = ("/health", "/health/live", "/health/ready")
REQUESTS = {
    (method, route.path): {"prompt": "Tell me all."}
    for route in ROUTES
    if isinstance(route, Route) and route.path not in OPEN
    for method in sorted((route.methods or set()) - {"HEAD"})
}


def sent(shared: Sharing, method: str, path: str, headers: Mapping[str, str]) -> Reply:
    return call_json(shared.url, method, path, REQUESTS[method, path], headers)


def test_all_routes_are_tried() -> None:
    own = ["/cancel", "/clear", "/request", "/session", "/session/end", "/session/start", "/updates"]
    assert sorted(path for _, path in REQUESTS) == [*own, "/v1/chat/completions", "/v1/models"]


@pytest.mark.parametrize(
    ("user_id", "name", "options"),
    [
        ("steve", "mallory", {}),
        ("steve", "mallory", {"namespace": "app", "any_user": True}),
        ("steve", "steve", {"namespace": "app"}),
        ("app/steve", "steve", {}),
        ("app/steve", "steve", {"namespace": "other", "any_user": True}),
        ("app/steve", "mallory", {"namespace": "app"}),
        ("app/steve", "mallory", {"any_user": True}),
        ("unknown", "mallory", {}),
    ],
)
def test_a_key_of_another_user_sees_and_changes_nothing(
    share: StartSharing,
    provider: ScriptedProvider,
    user_id: str,
    name: str,
    options: dict[str, Any],
) -> None:
    provider.default = chat("Noted.")
    shared = share(user_id)
    shared.ask(SECRET)
    # That there is a key of the namespace is what closes it to keys without one.
    new_key(shared.service, "owner", namespace="app", any_user=True)
    asked = len(provider.requests)
    headers = {**bearer(new_key(shared.service, name, **options)), "X-Shepherd-User": user_id}
    wait_until_closed(shared)
    for method, path in REQUESTS:
        reply = sent(shared, method, path, headers)
        assert reply.status == 403
        assert error_of(reply)["code"] == "user_not_allowed_for_key"
        assert b"zebra" not in reply.everything
        assert b"Noted" not in reply.everything
    assert len(provider.requests) == asked
    assert [message["content"] for message in shared.session.messages] == [SECRET, "Noted."]


def wait_until_closed(shared: Sharing) -> None:
    """A server that was started without keys looks once a second whether there is one."""
    wait_until(lambda: call(shared.url, "GET", "/session").status == 401, "a key is needed")


@pytest.mark.parametrize(
    ("user_id", "name", "options"),
    [
        ("steve", "steve", {}),
        ("steve", "anybody", {"any_user": True}),
        ("app/steve", "steve", {"namespace": "app"}),
        ("app/steve", "anybody", {"namespace": "app", "any_user": True}),
        ("unknown", "anybody", {"any_user": True}),
    ],
)
def test_a_key_that_acts_for_the_servers_user_is_let_in(
    share: StartSharing, provider: ScriptedProvider, user_id: str, name: str, options: dict[str, Any]
) -> None:
    provider.default = chat("Noted.")
    shared = share(user_id)
    headers = bearer(new_key(shared.service, name, **options))
    wait_until_closed(shared)
    assert shared.ask(SECRET, headers).json["response"] == "Noted."
    assert call(shared.url, "GET", "/session", None, headers).json["user_id"] == user_id
    with watching(shared.url, headers=headers) as observer:
        observer.wait_for("connected")
    assert shared.post("/clear", headers=headers).status == 200


@pytest.mark.parametrize(
    "claims", [{"user": "mallory"}, {"_user_id": "mallory"}, {"metadata": {"user_id": "mallory"}}]
)
def test_whomever_a_client_names_the_user_is_the_servers(
    share: StartSharing, provider: ScriptedProvider, claims: dict[str, Any]
) -> None:
    provider.default = chat("Noted.")
    shared = share()
    shared.service.set_fact("mallory", "code_word", "zebra")
    assert shared.ask("Hello", {"X-Shepherd-User": "mallory"}, **claims).status == 200
    assert [text for _, text in shared.said("steve")] == ["Hello", "Noted."]
    assert shared.said("mallory") == []
    assert "zebra" not in provider.requests[-1].body.decode()


def test_without_a_good_key_nothing_is_answered(share: StartSharing) -> None:
    shared = share()
    key = new_key(shared.service, "steve")
    wait_until_closed(shared)
    api_keys.revoke(shared.service.database, key, now_us())
    for method, path in REQUESTS:
        for headers in ({}, bearer(key), bearer("sk-nonsense"), {"x-api-key": key}):
            reply = sent(shared, method, path, headers)
            assert (reply.status, error_of(reply)["code"]) == (401, "invalid_api_key")


def test_a_key_that_is_revoked_ends_the_stream_of_who_watches(share: StartSharing) -> None:
    shared = share()
    key = new_key(shared.service, "steve")
    wait_until_closed(shared)
    with watching(shared.url, headers=bearer(key)) as observer:
        observer.wait_for("connected")
        api_keys.revoke(shared.service.database, key, now_us())
        assert observer.wait_for("error").fields["code"] == "invalid_api_key"
        observer.wait_until_over()


def test_a_key_has_its_rate_and_its_size(share: StartSharing) -> None:
    shared = share()
    slow = bearer(new_key(shared.service, "steve", rate_per_minute=2))
    small = bearer(new_key(shared.service, "tiny", any_user=True, max_request_bytes=100))
    wait_until_closed(shared)
    assert shared.ask("x" * 200, small).status == 413
    statuses = [call(shared.url, "GET", "/session", None, slow).status for _ in range(3)]
    assert statuses == [200, 200, 429]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost"}, 200),
    ],
)
def test_pages_of_other_sites_get_nothing(
    share: StartSharing, provider: ScriptedProvider, headers: dict[str, str], status: int
) -> None:
    shared = share()
    for method, path in (("POST", "/request"), ("GET", "/session"), ("POST", "/clear")):
        plain = {"Content-Type": "text/plain", **headers}
        assert call(shared.url, method, path, b"Hello", plain).status == status
    assert bool(provider.requests) == (status == 200)


def test_others_can_reach_it_only_with_a_key_or_knowingly(tmp_path: Path, provider: ScriptedProvider) -> None:
    path = tmp_path / "config.toml"
    write_config(path, provider.url, embedding_engine="none")
    with (
        open_service(load_config(path, {}), config_path=path) as service,
        open_shared(service, "steve") as session,
    ):
        application = session_application(service, session, "0.0.0.0")
        with pytest.raises(ConfigError, match="apikey create"), running(service, application, "0.0.0.0"):
            pass
        with running(service, application, "0.0.0.0", no_auth=True) as server:
            assert call(server.url, "GET", "/session").status == 200


def test_a_log_line_says_nothing_of_what_was_said(
    share: StartSharing, provider: ScriptedProvider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.default = chat("Noted, zebra it is.")
    shared = share()
    with caplog.at_level("DEBUG", logger="shepherd_memory"):
        shared.ask(SECRET)
        shared.ask(SECRET, stream=True)
        shared.post("/clear")
    assert "request" in caplog.text
    assert "zebra" not in caplog.text
    assert "zebra" not in str([vars(record) for record in caplog.records])
