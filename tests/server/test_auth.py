"""Who is let in, and whose memory a request is about."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.errors import ConfigError
from shepherd_memory.frontends.api.app import api_application
from shepherd_memory.frontends.web import auth
from shepherd_memory.frontends.web.process import running
from shepherd_memory.memory import api_keys
from shepherd_memory.storage.clock import now_us
from tests.acceptance.processes import wait_until
from tests.provider import ScriptedProvider
from tests.server.calling import (
    CHATS,
    Reply,
    bearer,
    call,
    call_json,
    error_of,
    new_key,
    say,
    send_raw,
    status_of,
)
from tests.server.serving import Running, StartServer, serving, write_config

WORDS = "The harbour lantern is painted indigo."
WRONG = "shp_0123456789ab_" + "x" * 43
NO_KEYS = [
    "",
    "shp_",
    "sk-mine",
    WRONG,
    "shp_0123456789ab_" + "x" * 42,
    "shp_ZZZZ_" + "x" * 43,
    "ключ".encode().decode("latin-1"),
    "x" * 5000,
    "' or 1=1 --",
]


def named(wire: str, user: object) -> dict[str, Any]:
    """The field by which a request of this wire format names its user."""
    return {"metadata": {"user_id": user}} if wire == "anthropic" else {"user": user}


def whose(running: Running, *candidates: str) -> list[str]:
    """Of whom something is stored."""
    return [user for user in candidates if running.said(user)]


def assert_refused(reply: Reply, wire: str = "openai") -> None:
    assert reply.status == 401
    assert error_of(reply, wire)["type"] == "authentication_error"
    assert reply.header("www-authenticate") == "Bearer"


def test_on_this_machine_no_key_is_needed_while_there_is_none(start: StartServer) -> None:
    server = start()
    assert say(server.url, WORDS, user="steve").status == 200
    assert call(server.url, "GET", "/v1/memory/facts?user=steve").status == 200
    assert whose(server, "steve") == ["steve"]


def test_whatever_is_sent_as_a_key_is_accepted_while_there_is_none(start: StartServer) -> None:
    server = start()
    for headers in (bearer("sk-anything"), {"x-api-key": WRONG}, {"Authorization": "Basic eDp5"}):
        assert say(server.url, WORDS, headers, user="steve").status == 200


def test_the_first_key_closes_the_door_of_a_running_server(start: StartServer) -> None:
    server = start()
    assert say(server.url, WORDS, user="steve").status == 200
    key = new_key(server.service, "steve")
    wait_until(lambda: say(server.url, WORDS).status == 401, "a key is needed", auth.LOOK_AGAIN_SECONDS * 20)
    assert_refused(say(server.url, WORDS))
    assert say(server.url, WORDS, bearer(key)).status == 200


def test_revoking_the_last_key_does_not_open_the_door(start: StartServer) -> None:
    server = start()
    key = new_key(server.service, "steve")
    assert say(server.url, WORDS, bearer(key)).status == 200
    api_keys.revoke(server.service.database, "steve", now_us())
    assert_refused(say(server.url, WORDS))
    assert_refused(say(server.url, WORDS, bearer(key)))
    again = start()
    assert_refused(say(again.url, WORDS))


def test_a_key_is_taken_from_either_header_and_goes_no_further(
    start: StartServer, provider: ScriptedProvider
) -> None:
    server = start()
    key = new_key(server.service, "steve")
    for wire, sent in product(CHATS, (bearer(key), {"x-api-key": key})):
        assert say(server.url, WORDS, sent, wire=wire).status == 200
        assert key not in repr(provider.requests[-1])
    assert whose(server, "steve") == ["steve"]


def test_the_word_before_a_key_is_read_as_http_has_it(start: StartServer) -> None:
    server = start()
    key = new_key(server.service, "steve")
    for scheme in ("bearer", "BEARER", "Bearer  "):
        assert say(server.url, WORDS, {"Authorization": f"{scheme} {key} "}).status == 200


def test_what_is_no_key_is_refused_in_the_wire_format(start: StartServer, provider: ScriptedProvider) -> None:
    server = start()
    good = new_key(server.service, "steve")
    wrong = [*NO_KEYS, good[:-1], good + "x", good.upper(), f"{good} {good}"]
    tried: list[dict[str, str]] = [{}]
    tried += [sent for key in wrong for sent in (bearer(key), {"x-api-key": key})]
    tried += [{"Authorization": sent} for sent in (good, f"Basic {good}", f"Bearer{good}", "Bearer")]
    for wire, headers in product(CHATS, tried):
        assert_refused(say(server.url, WORDS, headers, wire=wire), wire)
    assert provider.requests == []


@pytest.mark.parametrize("keyed", [True, False])
def test_a_header_that_says_who_asks_is_given_once(start: StartServer, keyed: bool) -> None:
    server = start()
    key = new_key(server.service, "steve") if keyed else "sk-any"
    for line in (f"Authorization: Bearer {key}", f"X-API-Key: {key}", "X-Shepherd-User: steve"):
        name, _, value = line.partition(": ")
        for other in (value, "Bearer other", ""):
            head = ["GET /v1/memory/facts HTTP/1.1", "Host: localhost", "Connection: close"]
            twice = "\r\n".join([*head, line, f"{name.lower()}: {other}", "", ""])
            response = send_raw(server.url, twice.encode())
            assert status_of(response) == 400
            assert name.lower() in response.decode().lower()


def test_two_different_keys_in_one_request_are_refused(
    start: StartServer, provider: ScriptedProvider
) -> None:
    server = start()
    key, other = new_key(server.service, "steve"), new_key(server.service, "anna")
    for wire, second in product(CHATS, (other, WRONG)):
        for sent in (bearer(key) | {"x-api-key": second}, bearer(second) | {"x-api-key": key}):
            refused = say(server.url, WORDS, sent, wire=wire)
            assert refused.status == 400
            assert "different keys" in error_of(refused, wire)["message"]
    assert provider.requests == []
    for sent in (
        bearer(key) | {"x-api-key": key},
        {"Authorization": "Basic eDp5", "x-api-key": key},
        bearer(key) | {"x-api-key": "sk-mine"},
        bearer("sk-mine") | {"x-api-key": key},
    ):
        assert say(server.url, WORDS, sent).status == 200
    assert whose(server, "steve", "anna") == ["steve"]


def test_a_key_in_the_query_opens_nothing(start: StartServer) -> None:
    server = start()
    key = new_key(server.service, "steve")
    assert_refused(call(server.url, "GET", f"/v1/memory/facts?api_key={key}&key={key}"))


def test_a_revoked_key_opens_nothing_from_then_on(start: StartServer) -> None:
    server = start()
    key, other = new_key(server.service, "steve"), new_key(server.service, "anna")
    assert say(server.url, WORDS, bearer(key)).status == 200
    api_keys.revoke(server.service.database, "steve", now_us())
    assert_refused(say(server.url, WORDS, bearer(key)))
    assert say(server.url, WORDS, bearer(other)).status == 200


def test_what_needs_no_key_is_only_what_tells_nothing(start: StartServer) -> None:
    server = start()
    new_key(server.service, "steve")
    assert call(server.url, "GET", "/health").status == 200
    assert call(server.url, "GET", "/v1/models").status == 200
    for target in ("/status", "/metrics", "/v1/models/m", "/v1/embeddings", "/v1/files/1", "/v1/tools"):
        assert_refused(call(server.url, "GET", target))
    for method in ("POST", "DELETE", "HEAD", "OPTIONS"):
        assert call(server.url, method, "/v1/models").status == 401


@pytest.mark.parametrize("wire", CHATS)
def test_a_key_acts_for_its_own_user_only(start: StartServer, provider: ScriptedProvider, wire: str) -> None:
    server = start()
    key = bearer(new_key(server.service, "steve"))
    assert say(server.url, WORDS, key, wire=wire).status == 200
    assert say(server.url, WORDS, key, wire=wire, **named(wire, "steve")).status == 200
    asked = len(provider.requests)
    for user in ("anna", "Steve", "steve ", "unknown", "app/steve"):
        reply = say(server.url, WORDS, key, wire=wire, **named(wire, user))
        assert reply.status == 403
        error = error_of(reply, wire)
        assert error["type"] == "permission_error"
        assert "'steve' only" in error["message"]
    assert len(provider.requests) == asked
    assert whose(server, "steve", "anna", "Steve", "app/steve") == ["steve"]


def test_the_memory_api_has_the_same_rule(start: StartServer) -> None:
    server = start()
    key = bearer(new_key(server.service, "steve"))
    for user, status in (("anna", 403), ("steve", 404)):
        assert call(server.url, "GET", f"/v1/memory/facts/name?user={user}", None, key).status == status
        assert (
            call(server.url, "GET", "/v1/memory/facts/name", None, key | {"X-Shepherd-User": user}).status
            == status
        )
    put = "/v1/memory/facts/name"
    assert call_json(server.url, "PUT", put, {"value": "x", "user": "anna"}, key).status == 403
    assert call_json(server.url, "PUT", put, {"value": "Steve", "user": "steve"}, key).status == 200
    assert call(server.url, "GET", "/v1/memory/facts/name", None, key).json["value"] == "Steve"


def test_a_key_for_any_user_acts_for_whom_it_names(start: StartServer) -> None:
    server = start()
    key = bearer(new_key(server.service, "shop", any_user=True))
    for wire in CHATS:
        assert say(server.url, WORDS, key, wire=wire, **named(wire, f"anna-{wire}")).status == 200
    assert whose(server, "anna-openai", "anna-anthropic", "shop") == ["anna-openai", "anna-anthropic"]
    assert say(server.url, WORDS, key).status == 200
    assert whose(server, "shop") == ["shop"]


def test_a_namespace_goes_before_every_user_of_its_key(start: StartServer) -> None:
    server = start()
    key = bearer(new_key(server.service, "shop", any_user=True, namespace="app"))
    new_key(server.service, "other", any_user=True, namespace="other")
    for user in ("anna", "other/x", "app/anna", "/anna", "../other/x"):
        assert say(server.url, WORDS, key, user=user).status == 200
    assert say(server.url, WORDS, key).status == 200
    inside = ["app/anna", "app/other/x", "app/app/anna", "app//anna", "app/../other/x", "app/shop"]
    assert whose(server, *inside, "anna", "other/x", "x", "shop", "/anna") == inside


def test_a_named_key_in_a_namespace_stays_with_its_name(start: StartServer) -> None:
    server = start()
    key = bearer(new_key(server.service, "steve", namespace="app"))
    assert say(server.url, WORDS, key, user="steve").status == 200
    assert say(server.url, WORDS, key, user="app/steve").status == 403
    assert say(server.url, WORDS, key, user="anna").status == 403
    assert whose(server, "app/steve", "steve") == ["app/steve"]


def test_nobody_else_reaches_into_a_namespace(start: StartServer, provider: ScriptedProvider) -> None:
    server = start()
    apps = bearer(new_key(server.service, "shop", any_user=True, namespace="app"))
    key = bearer(new_key(server.service, "all", any_user=True))
    for user in ("app/anna", "app/", "app//x", "app/anna/deeper"):
        for reply in (
            say(server.url, WORDS, key, user=user),
            say(server.url, WORDS, key | {"X-Shepherd-User": user}),
            call(server.url, "GET", f"/v1/memory/facts?user={user}", None, key),
        ):
            assert reply.status == 403
            assert "namespace" in error_of(reply)["message"]
    assert provider.requests == []
    api_keys.revoke(server.service.database, "shop", now_us())
    assert say(server.url, WORDS, apps).status == 401
    assert say(server.url, WORDS, key, user="app/anna").status == 403


def test_a_slash_in_a_user_that_is_no_namespace_is_part_of_the_name(start: StartServer) -> None:
    server = start()
    new_key(server.service, "shop", any_user=True, namespace="app")
    key = bearer(new_key(server.service, "all", any_user=True))
    for user in ("team/anna", "apps/anna", "APP/anna"):
        assert say(server.url, WORDS, key, user=user).status == 200
        assert whose(server, user) == [user]


@pytest.mark.parametrize("wire", CHATS)
def test_the_header_outranks_the_field(start: StartServer, wire: str) -> None:
    server = start()
    key = bearer(new_key(server.service, "shop", any_user=True))
    said = say(server.url, WORDS, key | {"X-Shepherd-User": "anna"}, wire=wire, **named(wire, "bert"))
    assert said.status == 200
    assert whose(server, "anna", "bert", "shop") == ["anna"]
    empty = say(server.url, WORDS, key | {"X-Shepherd-User": "  "}, wire=wire, **named(wire, "bert"))
    assert empty.status == 200
    assert whose(server, "bert", "shop") == ["bert"]


@pytest.mark.parametrize("wire", CHATS)
def test_the_header_obeys_the_same_rule(start: StartServer, wire: str) -> None:
    server = start()
    key = bearer(new_key(server.service, "steve"))
    refused = say(server.url, WORDS, key | {"X-Shepherd-User": "anna"}, wire=wire, **named(wire, "steve"))
    assert refused.status == 403
    error_of(refused, wire)
    allowed = say(server.url, WORDS, key | {"X-Shepherd-User": "steve"}, wire=wire, **named(wire, "anna"))
    assert allowed.status == 200
    assert whose(server, "steve", "anna") == ["steve"]


def test_users_have_names_in_any_script(start: StartServer) -> None:
    server = start()
    for user in ("Jörg", "安娜", "🦔"):
        assert say(server.url, WORDS, {"X-Shepherd-User": user.encode()}).status == 200
        assert whose(server, user) == [user]


def test_a_header_that_is_not_utf_8_makes_no_two_users_one(start: StartServer) -> None:
    server = start()
    for user in ("Jörg", "Järg"):
        reply = say(server.url, WORDS, {"X-Shepherd-User": user.encode("latin-1")})
        assert reply.status == 400 or whose(server, user) == [user]
    assert whose(server, "J\N{REPLACEMENT CHARACTER}rg") == []


def test_a_query_that_is_not_utf_8_makes_no_two_users_one(start: StartServer) -> None:
    server = start()
    server.service.set_fact("J\N{REPLACEMENT CHARACTER}rg", "name", "somebody")
    for user in ("J%F6rg", "J%E4rg"):
        reply = call(server.url, "GET", f"/v1/memory/facts?user={user}")
        assert reply.status == 400 or reply.json["facts"] == []


def test_without_a_name_it_is_the_configured_user(start: StartServer) -> None:
    server = start(user_id="householder")
    assert say(server.url, WORDS).status == 200
    assert say(server.url, WORDS, user="").status == 200
    assert whose(server, "householder") == ["householder"]


def test_a_key_is_never_for_the_configured_user(start: StartServer) -> None:
    server = start(user_id="householder")
    key = bearer(new_key(server.service, "steve"))
    assert say(server.url, WORDS, key).status == 200
    assert whose(server, "householder", "steve") == ["steve"]


def test_for_nobody_the_chat_works_and_nothing_is_stored_or_injected(
    start: StartServer, provider: ScriptedProvider
) -> None:
    server = start()
    server.service.set_fact("steve", "lantern", "indigo")
    for wire, user in product(CHATS, [None, "", "unknown", "unknown", " unknown ", "  "]):
        reply = say(server.url, WORDS, wire=wire, **named(wire, user))
        assert reply.status == 200
        assert reply.header("x-shepherd-memory") == "unknown-user"
        sent = provider.requests[-1].json
        said = [{"role": "user", "content": sent["input"]}] if wire == "responses" else sent["messages"]
        assert said == [{"role": "user", "content": WORDS}]
    assert server.service.status().users == 1


def test_a_user_that_is_no_text_or_cannot_be_stored_is_refused(
    start: StartServer, provider: ScriptedProvider
) -> None:
    server = start()
    no_text: list[object] = [7, 1.5, True, False, [], ["steve"], {}, {"id": "steve"}]
    for wire, user in product(CHATS, [*no_text, "x" * 257, "a\0b", "\ud800", "steve\udfff"]):
        reply = say(server.url, WORDS, wire=wire, **named(wire, user))
        assert reply.status == 400
        assert "user" in error_of(reply, wire)["message"]
    assert provider.requests == []


def test_a_long_name_is_refused_also_when_only_its_namespace_makes_it_so(start: StartServer) -> None:
    server = start()
    key = bearer(new_key(server.service, "shop", any_user=True, namespace="app"))
    assert say(server.url, WORDS, key, user="x" * 252).status == 200
    assert say(server.url, WORDS, key, user="x" * 253).status == 400


def test_metadata_of_another_form_names_nobody(start: StartServer) -> None:
    server = start()
    strange: list[Any] = [None, "steve", [], {}, {"user": "steve"}, {"user_id": None}]
    for metadata in strange:
        reply = say(server.url, WORDS, wire="anthropic", metadata=metadata)
        assert (reply.status, reply.header("x-shepherd-memory")) == (200, "unknown-user")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts a server that listens elsewhere than on loopback."""
    path = tmp_path / "config.toml"
    write_config(path, "http://127.0.0.1:9", embedding_engine="none")
    with ExitStack() as stack:
        service = stack.enter_context(open_service(load_config(path, {}), config_path=path))

        def start(host: str, *, key: str = "", no_auth: bool = False) -> str:
            if key:
                new_key(service, key)
            api = api_application(service, host)
            return stack.enter_context(running(service, api, host, 0, no_auth=no_auth)).url

        yield start


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_that_others_can_reach_needs_a_key_to_start(opened: Callable[..., str], host: str) -> None:
    with pytest.raises(ConfigError, match=r"shepherd apikey create NAME.*--no-auth") as refused:
        opened(host)
    assert host in str(refused.value)
    url = opened(host, key="steve")
    assert call(url, "GET", "/status").status == 401
    assert call(url, "GET", "/health").status == 200


def test_a_server_that_others_can_reach_is_open_if_that_is_wanted(opened: Callable[..., str]) -> None:
    assert call(opened("0.0.0.0", no_auth=True), "GET", "/status").status == 200


def test_without_auth_keys_are_neither_needed_nor_looked_at(opened: Callable[..., str]) -> None:
    url = opened("127.0.0.1", key="steve", no_auth=True)
    for headers in ({}, bearer(WRONG)):
        assert call(url, "GET", "/v1/memory/facts?user=anna", None, headers).status == 200


def test_loopback_needs_no_key_by_whatever_name(opened: Callable[..., str]) -> None:
    for host in ("127.0.0.1", "localhost", "127.0.0.2", "::1"):
        assert call(opened(host), "GET", "/status").status == 200


def test_each_of_two_servers_sees_a_new_and_a_revoked_key(start: StartServer) -> None:
    first = start()
    with serving(first.config_path) as second:
        key = bearer(new_key(first.service, "steve"))
        assert [say(one.url, WORDS, key).status for one in (first, second)] == [200, 200]
        api_keys.revoke(first.service.database, "steve", now_us())
        assert [say(one.url, WORDS, key).status for one in (first, second)] == [401, 401]


def test_it_is_noted_that_a_key_is_used(start: StartServer) -> None:
    server = start()
    key = new_key(server.service, "steve")
    assert say(server.url, WORDS, bearer(key)).status == 200

    def used() -> bool:
        with server.service.database.read() as connection:
            return api_keys.get(connection, "steve").last_used_at is not None

    wait_until(used, "the key's use is noted")
