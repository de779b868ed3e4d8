"""Who is let in while the database cannot say who may: nobody to read, nobody new."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.frontends.api.app import ROUTES, api_application
from shepherd_memory.frontends.web.auth import TRUSTED_SECONDS, Auth, Authenticator, Caller
from shepherd_memory.frontends.web.http_errors import HttpError
from shepherd_memory.frontends.web.process import running
from shepherd_memory.frontends.web.threads import ThreadPool
from shepherd_memory.memory import api_keys
from shepherd_memory.storage.clock import now_us
from tests.acceptance.processes import wait_until
from tests.provider import ScriptedProvider, chat
from tests.server.calling import CHATS, Reply, bearer, call, call_json, error_of, new_key, say
from tests.server.hidden_keys import add_hidden_key, hide_keys, show_keys
from tests.server.serving import Running, StartServer, write_config
from tests.server.shared_session import StartSharing

WORDS = "What colour is my lantern?"
SECRET = "indigo"
WRONG = "shp_0123456789ab_" + "x" * 43
FACTS = "/v1/memory/facts?user=steve"
HEALTH = {"/health", "/health/live", "/health/ready"}
GOES_ON = {*CHATS.values(), "/v1/models", "/v1/models/{model:path}"}
"""What is the provider's, and needs nothing of ours."""

TELLS_NOTHING = {*HEALTH, "/metrics", "/openapi.json"}
both_databases = pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)


def targets(*, without: set[str]) -> list[tuple[str, str]]:
    """Every method of every route, and what has no route."""
    routes = [route for route in ROUTES if isinstance(route, Route) and route.path not in without]
    assert len(routes) > 15
    filled = [(route.path.replace("{model:path}", "m"), route.methods or {"GET", "POST"}) for route in routes]
    return [
        (method, path.replace("{", "").replace("}", "")) for path, methods in filled for method in methods
    ]


def verdicts(server: Running) -> dict[str, int]:
    """What is told to whatever starts and chooses servers, which learns nothing else."""
    replies = {name: call(server.url, "GET", f"/health/{name}") for name in ("live", "ready")}
    for reply in replies.values():
        assert reply.json == {"status": "ok" if reply.status == 200 else "failing"}
    return {name: reply.status for name, reply in replies.items()}


def assert_unavailable(reply: Reply, wire: str = "openai") -> None:
    assert reply.status == 503
    assert reply.header("retry-after") == "1"
    if wire != "mcp":
        error_of(reply, wire)
    assert SECRET.encode() not in reply.everything


def wire_of(path: str) -> str:
    return "mcp" if path == "/mcp" else "anthropic" if path == "/v1/messages" else "openai"


@contextmanager
def starting_blind(path: Path, database_url: str, keyed: bool) -> Iterator[Running]:
    """A server whose database goes away after it is opened, and before anybody has looked for keys."""
    write_config(path, "http://127.0.0.1:9", embedding_engine="none", memory_database=database_url)
    with open_service(load_config(path, {}), config_path=path, worker=False) as service:
        service.set_fact("steve", "lantern", SECRET)
        if keyed:
            new_key(service, "steve")
        hide_keys(service)
        with running(service, api_application(service, "127.0.0.1")) as server:
            yield Running(server.url, service, path)


@both_databases
@pytest.mark.parametrize("keyed", [True, False])
def test_until_it_is_known_whether_there_are_keys_nothing_is_answered(
    tmp_path: Path, database_url: str, keyed: bool
) -> None:
    with starting_blind(tmp_path / "config.toml", database_url, keyed) as server:
        for method, path in [*targets(without=HEALTH), ("GET", "/v1/files"), ("GET", "/nowhere")]:
            reply = call_json(server.url, method, path, {})
            if method == "HEAD":
                assert (reply.status, reply.header("retry-after")) == (503, "1")
            else:
                assert_unavailable(reply, wire_of(path))
        assert call(server.url, "GET", "/health").json.keys() == {"status"}
        assert verdicts(server) == {"live": 200, "ready": 503}
        show_keys(server.service)
        wait_until(lambda: verdicts(server)["ready"] == 200, "it is known whether there are keys")
        seen = {call(server.url, "GET", FACTS).status}
        expected = 401 if keyed else 200
        while expected not in seen:
            seen.add(call(server.url, "GET", FACTS).status)
        assert seen <= {503, expected}


def see_that_there_is_no_key(server: Running) -> None:
    assert call(server.url, "GET", FACTS).status == 200


def wait_until_away(server: Running) -> None:
    wait_until(lambda: call(server.url, "GET", FACTS).status == 503, "the keys are looked for again")


@both_databases
def test_without_keys_chats_go_on_and_nothing_is_read(
    start: StartServer, provider: ScriptedProvider, database_url: str
) -> None:
    provider.default = chat("I do not know.")
    server = start(memory_database=database_url)
    server.service.set_fact("steve", "lantern", SECRET)
    see_that_there_is_no_key(server)
    hide_keys(server.service)
    wait_until_away(server)
    for wire in CHATS:
        named = {"metadata": {"user_id": "steve"}} if wire == "anthropic" else {"user": "steve"}
        reply = say(server.url, WORDS, wire=wire, **named)
        assert (reply.status, reply.header("x-shepherd-memory")) == (200, "failed")
        assert SECRET not in provider.requests[-1].body.decode()
    assert ("user", WORDS) in server.said("steve")
    for method, path in targets(without=GOES_ON | TELLS_NOTHING):
        reply = call_json(server.url, method, path, {"user": "steve"})
        assert reply.status == 503, (method, path)
    counted = call(server.url, "GET", "/metrics")
    assert counted.status == 200
    assert b"shepherd_users NaN" in counted.body


@both_databases
def test_a_key_that_was_made_meanwhile_is_seen_before_anybody_is_let_in_without_one(
    start: StartServer, database_url: str
) -> None:
    server = start(memory_database=database_url)
    server.service.set_fact("steve", "lantern", SECRET)
    see_that_there_is_no_key(server)
    hide_keys(server.service)
    wait_until_away(server)
    key = add_hidden_key(server.service, "steve")
    with ThreadPoolExecutor(8) as clients:
        show_keys(server.service)
        seen: set[int] = set()
        while 401 not in seen:
            replies = list(clients.map(lambda _: call(server.url, "GET", FACTS), range(32)))
            assert not any(SECRET.encode() in reply.everything for reply in replies)
            seen |= {reply.status for reply in replies}
    assert seen <= {401, 503}
    assert call(server.url, "GET", FACTS, None, bearer(key)).status == 200


def test_a_key_that_was_good_a_moment_ago_may_chat_and_reads_nothing(
    start: StartServer, provider: ScriptedProvider
) -> None:
    provider.default = chat("I do not know.")
    server = start()
    server.service.set_fact("steve", "lantern", SECRET)
    known, unseen = new_key(server.service, "steve"), new_key(server.service, "anna")
    assert say(server.url, WORDS, bearer(known)).status == 200
    assert SECRET in provider.requests[-1].body.decode()
    hide_keys(server.service)
    reply = say(server.url, WORDS, bearer(known))
    assert (reply.status, reply.header("x-shepherd-memory")) == (200, "failed")
    assert SECRET not in provider.requests[-1].body.decode()
    assert say(server.url, WORDS, bearer(known), user="anna").status == 403
    asked = len(provider.requests)
    for headers in (bearer(unseen), bearer(WRONG), {"x-api-key": WRONG}):
        assert_unavailable(say(server.url, WORDS, headers))
    assert say(server.url, WORDS).status == 401
    assert_unavailable(call(server.url, "GET", "/v1/memory/facts", None, bearer(known)))
    assert_unavailable(call(server.url, "GET", "/status", None, bearer(known)))
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert_unavailable(call_json(server.url, "POST", "/mcp", rpc, bearer(known)), "mcp")
    assert call(server.url, "GET", "/health").json.keys() == {"status"}
    # Chats of keys that it knows go on.
    assert verdicts(server) == {"live": 200, "ready": 200}
    show_keys(server.service)
    assert say(server.url, WORDS, bearer(unseen)).status == 200
    assert call(server.url, "GET", "/v1/memory/facts", None, bearer(known)).status == 200
    assert len(provider.requests) == asked + 1


def test_a_key_that_was_revoked_meanwhile_opens_nothing_once_that_is_known(start: StartServer) -> None:
    server = start()
    key = bearer(new_key(server.service, "steve"))
    assert say(server.url, WORDS, key).status == 200
    hide_keys(server.service)
    assert say(server.url, WORDS, key).status == 200
    show_keys(server.service)
    api_keys.revoke(server.service.database, "steve", now_us())
    assert say(server.url, WORDS, key).status == 401
    hide_keys(server.service)
    assert_unavailable(say(server.url, WORDS, key))


def test_a_key_is_trusted_for_five_minutes(tmp_path: Path) -> None:
    now = [1000.0]
    write_config(tmp_path / "config.toml", "http://127.0.0.1:9", embedding_engine="none")
    config = load_config(tmp_path / "config.toml", {})
    with open_service(config, worker=False) as service, closing(ThreadPool(1)) as threads:
        headers = {"x-api-key": new_key(service, "steve")}
        door = Authenticator(service, threads, Auth.REQUIRED, lambda: now[0])

        def caller() -> Caller:
            return asyncio.run(door.caller_of(headers))

        assert caller().is_confirmed
        hide_keys(service)
        now[0] += TRUSTED_SECONDS
        held = caller()
        assert (held.name, held.is_confirmed) == ("steve", False)
        now[0] += 0.1
        with pytest.raises(HttpError) as refused:
            caller()
        assert refused.value.status == 503


def test_many_requests_share_one_look_and_an_old_one_is_not_enough(tmp_path: Path) -> None:
    now = [1000.0]
    write_config(tmp_path / "config.toml", "http://127.0.0.1:9", embedding_engine="none")
    with (
        open_service(load_config(tmp_path / "config.toml", {}), worker=False) as service,
        closing(ThreadPool(1)) as threads,
    ):
        door = Authenticator(service, threads, Auth.ONCE_THERE_IS_A_KEY, lambda: now[0])

        async def all_of(number: int) -> list[Any]:
            return await asyncio.gather(*(door.caller_of({}) for _ in range(number)), return_exceptions=True)

        assert asyncio.run(all_of(50)) == [Caller()] * 50
        new_key(service, "steve")
        now[0] += 0.9
        assert asyncio.run(all_of(1)) == [Caller()]
        now[0] += 0.1
        assert {refused.status for refused in asyncio.run(all_of(50))} == {401}


def test_in_a_shared_session_one_can_ask_and_not_read(
    share: StartSharing, provider: ScriptedProvider
) -> None:
    provider.default = chat("Noted.")
    shared = share()
    shared.service.set_fact("steve", "lantern", SECRET)
    assert shared.ask("Hello").status == 200
    assert SECRET in provider.requests[-1].body.decode()
    hide_keys(shared.service)
    wait_until(lambda: call(shared.url, "GET", "/session").status == 503, "the keys are looked for again")
    assert_unavailable(call(shared.url, "GET", "/session"))
    assert_unavailable(call(shared.url, "GET", "/updates"))
    assert shared.ask(WORDS).status == 200
    assert SECRET not in provider.requests[-1].body.decode()
    show_keys(shared.service)
    wait_until(lambda: call(shared.url, "GET", "/session").status == 200, "it is known again")
