"""No route shows a user's memory to another, or lets another change it, whatever key or name is given."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.routing import Route

from shepherd_memory import tools
from shepherd_memory.frontends.api.app import ROUTES
from shepherd_memory.memory import api_keys, rejections, unconfirmed
from shepherd_memory.memory.rejections import NewRejection
from shepherd_memory.memory.unconfirmed import NewUnconfirmed
from shepherd_memory.service import Service
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.rows import Provenance
from tests.provider import ScriptedProvider
from tests.server.calling import CHATS, Reply, bearer, call, new_key, say
from tests.server.serving import OPENAI, Running, serving, write_config

ANNA, BOB, DORA, APPS_ANNA = "anna", "bob", "dora", "app/anna"
SECRETS = {ANNA: "quokka", APPS_ANNA: "axolotl", BOB: "marmot", DORA: "wombat"}
"""A word in everything that is stored of a user, and of no one else."""

KEY, SESSION, LIFE, QUESTION = (
    "favourite_animal",
    "session-1",
    "session-2",
    "Which animal does the user like?",
)
WORDS = "Which favourite animal do I like?"
FIRST_ID = 50
"""The ids of those whose memory is tried for are none of the others'."""

FREE_METHODS = dict.fromkeys(CHATS.values(), "POST")
"""Of routes that take any method, the one with a meaning of its own; of others that is GET."""

PUBLIC = {"/health", "/health/live", "/health/ready", "/v1/models", "/openapi.json"}
ANSWERED = (200, 201, 404)
OF_NO_USER = {"/metrics", "/v1/tools", "/v1/models/{model:path}"}


@dataclass(frozen=True)
class Case:
    """A request for something of Anna's, to one method of one route."""

    method: str
    path: str
    target: str = ""
    body: Any = None
    shows: bool = False
    """Whether the answer shows what was asked for, to whoever may see it."""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def lines(self) -> bool:
        return self.path.endswith("/import")

    def naming(self, user: str) -> "Case":
        """The same, which says in its own way whom it is for."""
        if self.path == "/mcp":
            return replace(self, headers={**self.headers, "X-Shepherd-User": user})
        if self.path == CHATS["anthropic"]:
            return replace(self, body={**self.body, "metadata": {"user_id": user}})
        if isinstance(self.body, dict):
            return replace(self, body={**self.body, "user": user})
        joint = "&" if "?" in self.target else "?"
        return replace(self, target=f"{self.target}{joint}{urlencode({'user': user})}")

    def ask(self, url: str, headers: Mapping[str, str], method: str = "") -> Reply:
        kind = {"Content-Type": "application/x-ndjson" if self.lines else "application/json"}
        body = (
            self.body if isinstance(self.body, bytes) or self.body is None else json.dumps(self.body).encode()
        )
        own = {**(kind if body else {}), **self.headers}
        return call(url, method or self.method, self.target, body, {**own, **headers})


def tool(name: str, arguments: Mapping[str, Any], *, shows: bool = False) -> Case:
    asked = {"name": name, "arguments": {**arguments, "_user_id": ANNA, "user_id": ANNA, "user": ANNA}}
    return Case("POST", "/v1/tools/execute", "/v1/tools/execute", asked, shows)


def mcp(name: str, arguments: Mapping[str, Any], *, shows: bool = False) -> Case:
    given = {**arguments, "_user_id": ANNA, "user_id": ANNA, "user": ANNA}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}
    return Case("POST", "/mcp", "/mcp", asked, shows, {"Accept": "application/json", "Mcp-Session-Id": ANNA})


def resource(method: str, uri: str = "", *, shows: bool = False) -> Case:
    params = {**({"uri": uri} if uri else {}), "user": ANNA, "_meta": {"user": ANNA}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": f"resources/{method}", "params": params}
    return Case("POST", "/mcp", "/mcp", asked, shows, {"Accept": "application/json"})


def cases(ids: Mapping[str, Any]) -> list[Case]:
    """One for each method of each route at least; what removes most comes last."""
    memory = "/v1/memory"
    previous, shared = f"{memory}/sessions/previous", f"{memory}/global"
    named = f"{memory}/sessions/{{session_id:path}}"
    messages, resume = (f"{memory}/sessions/{{session_id:path}}/{name}" for name in ("messages", "resume"))
    said = [{"role": "user", "content": WORDS}]
    chat = {"model": "m", "max_tokens": 9, "messages": said, "input": said}
    export = b'{"format":"shepherd-memory","version":1}\n'
    files, file = f"{memory}/files", f"{memory}/files/{{path:path}}"
    fact, row, waiting = f"{memory}/facts/{{key}}", "{id}", f"{memory}/unconfirmed"
    return [
        *(Case("POST", path, path, chat) for path in CHATS.values()),
        Case("GET", "/v1/models", "/v1/models"),
        Case("GET", "/v1/models/{model:path}", "/v1/models/m"),
        Case("GET", "/health", "/health"),
        Case("GET", "/health/live", "/health/live"),
        Case("GET", "/health/ready", "/health/ready"),
        Case("GET", "/status", "/status"),
        Case("GET", "/metrics", "/metrics"),
        Case("GET", "/openapi.json", "/openapi.json"),
        Case("GET", f"{memory}/recall", f"{memory}/recall?{urlencode({'query': WORDS})}", shows=True),
        Case("POST", f"{memory}/recall", f"{memory}/recall", {"query": WORDS, "explain": True}, shows=True),
        Case("GET", f"{memory}/facts", f"{memory}/facts", shows=True),
        Case("GET", f"{fact}/history", f"{memory}/facts/{KEY}/history", shows=True),
        Case("GET", fact, f"{memory}/facts/{KEY}", shows=True),
        Case("GET", shared, shared, shows=True),
        Case("GET", f"{memory}/context", f"{memory}/context", shows=True),
        Case("GET", f"{memory}/context/{row}", f"{memory}/context/{ids['context']}", shows=True),
        Case("GET", f"{memory}/documents", f"{memory}/documents?session_id={SESSION}", shows=True),
        Case("GET", f"{memory}/documents", f"{memory}/documents?newest=true&limit=1000", shows=True),
        Case("GET", f"{memory}/documents/{row}", f"{memory}/documents/{ids['document']}", shows=True),
        Case("GET", f"{memory}/forget", f"{memory}/forget?fact={KEY}", shows=True),
        Case("GET", f"{memory}/forget", f"{memory}/forget?document={ids['document']}", shows=True),
        Case("GET", f"{memory}/forget", f"{memory}/forget?session={SESSION}", shows=True),
        Case("GET", f"{memory}/sessions/active", f"{memory}/sessions/active", shows=True),
        Case("GET", previous, previous),
        Case("GET", previous, f"{previous}?session_id={SESSION}", shows=True),
        Case("GET", f"{memory}/sessions/{{session_id:path}}", f"{memory}/sessions/{LIFE}", shows=True),
        Case("GET", f"{memory}/sessions", f"{memory}/sessions", shows=True),
        Case("GET", f"{memory}/sessions", f"{memory}/sessions?query=favourite+animal", shows=True),
        Case("GET", messages, f"{memory}/sessions/{SESSION}/messages", shows=True),
        Case(
            "GET",
            f"{memory}/sessions/{{session_id:path}}/archive.md",
            f"{memory}/sessions/{SESSION}/archive.md?whole=true",
            shows=True,
        ),
        Case("GET", f"{memory}/stats", f"{memory}/stats"),
        Case("GET", f"{memory}/summary", f"{memory}/summary", shows=True),
        Case("GET", f"{memory}/summary", f"{memory}/summary?project=/quokka", shows=True),
        Case("GET", f"{memory}/groups", f"{memory}/groups"),
        Case("GET", f"{memory}/conversations", f"{memory}/conversations?source=live", shows=True),
        Case("GET", f"{memory}/phases", f"{memory}/phases", shows=True),
        Case("GET", f"{memory}/phases/{row}", f"{memory}/phases/{ids['conversation']}", shows=True),
        Case("GET", files, files),
        Case("GET", f"{files}/search", f"{files}/search?queries=keeper", shows=True),
        Case("POST", f"{files}/search", f"{files}/search", {"queries": ["keeper"]}, shows=True),
        Case("GET", f"{files}/history", f"{files}/history"),
        Case("GET", f"{files}/diff", f"{files}/diff?old=0&new=1", shows=True),
        Case("GET", file, f"{files}/MEMORY.md", shows=True),
        resource("list"),
        resource("templates/list"),
        resource("read", "shepherd://files/MEMORY.md", shows=True),
        resource("read", f"shepherd://sessions/{SESSION}", shows=True),
        Case("GET", f"{memory}/rejected", f"{memory}/rejected", shows=True),
        Case("GET", f"{memory}/unconfirmed", f"{memory}/unconfirmed", shows=True),
        Case("GET", f"{memory}/why", f"{memory}/why", shows=True),
        Case("GET", f"{memory}/why", f"{memory}/why?request={ids['request']}", shows=True),
        Case("GET", f"{memory}/export", f"{memory}/export", shows=True),
        Case("GET", "/v1/tools", "/v1/tools"),
        tool("search_memory", {"query": "favourite animal", "max_results": 50}, shows=True),
        tool("get_fact", {"key": KEY}, shows=True),
        *(
            of_kind(name, arguments, shows=shows)
            for of_kind in (tool, mcp)
            for name, arguments, shows in (
                ("list_sessions", {}, True),
                ("search_sessions", {"query": "favourite animal"}, True),
                ("read_session", {"session_id": SESSION}, True),
                ("rename_session", {"session_id": SESSION, "name": "none"}, False),
                ("resume_session", {"session_id": SESSION}, False),
                ("clear_session", {"name": "none"}, False),
                ("list_memory_files", {}, False),
                ("read_memory_file", {"path": "MEMORY.md"}, True),
                ("search_memory_files", {"queries": ["keeper"]}, True),
                ("add_memory_note", {"note": "none"}, False),
            )
        ),
        tool("store_memory", {"question": QUESTION, "answer": "none"}),
        tool("set_fact", {"key": KEY, "value": "none"}),
        tool("clear_memory", {"question": QUESTION}),
        tool("clear_fact", {"key": KEY}),
        mcp("search_memory", {"query": "favourite animal", "max_results": 50}, shows=True),
        mcp("recall", {"query": "favourite animal", "min_confidence": 0}, shows=True),
        mcp("list_facts", {}, shows=True),
        mcp("fact_history", {"key": KEY}, shows=True),
        mcp("get_fact", {"key": KEY}, shows=True),
        mcp("store_memory", {"question": QUESTION, "answer": "none"}),
        mcp("set_fact", {"key": KEY, "value": "none"}),
        mcp("clear_memory", {"question": QUESTION}),
        mcp("clear_fact", {"key": KEY}),
        mcp("forget", {"kind": "context", "id": str(ids["context"])}),
        mcp("forget", {"kind": "document", "id": str(ids["document"])}),
        mcp("forget", {"kind": "fact", "id": KEY}),
        mcp("forget", {"kind": "session", "id": SESSION, "preview": True}, shows=True),
        mcp("forget", {"kind": "session", "id": SESSION, "same": True}),
        Case("POST", f"{memory}/remember", f"{memory}/remember", {"messages": said, "session_id": SESSION}),
        Case("PUT", fact, f"{memory}/facts/{KEY}", {"value": "none"}),
        Case("PUT", shared, shared, {"text": "none"}),
        Case("POST", f"{memory}/context", f"{memory}/context", {"question": QUESTION, "answer": "none"}),
        Case("POST", f"{memory}/documents", f"{memory}/documents", {"text": "none", "session_id": SESSION}),
        Case("POST", f"{memory}/import", f"{memory}/import", export),
        Case("POST", f"{memory}/rejected/{row}/accept", f"{memory}/rejected/{ids['rejection']}/accept", {}),
        Case("POST", f"{waiting}/{row}/confirm", f"{waiting}/{ids['unconfirmed']}/confirm", {}),
        Case("POST", f"{waiting}/{row}/refuse", f"{waiting}/{ids['unconfirmed']}/refuse", {}),
        Case("POST", f"{files}/notes", f"{files}/notes", {"note": "none at all"}),
        Case("PUT", file, f"{files}/MEMORY.md", {"text": "## None\n\nnone"}),
        Case("DELETE", file, f"{files}/MEMORY.md"),
        Case("POST", f"{files}/reset", f"{files}/reset", {"everything": True}),
        Case("DELETE", shared, shared),
        Case("DELETE", fact, f"{memory}/facts/{KEY}"),
        Case("DELETE", f"{memory}/context/{row}", f"{memory}/context/{ids['context']}"),
        Case("DELETE", f"{memory}/documents/{row}", f"{memory}/documents/{ids['document']}"),
        Case("POST", f"{memory}/sessions", f"{memory}/sessions", {"takeover": True}),
        Case("PATCH", named, f"{memory}/sessions/{LIFE}", {"name": "none"}),
        Case("PATCH", named, f"{memory}/sessions/{LIFE}", {"memory_mode": "read-only"}),
        Case("POST", resume, f"{memory}/sessions/{SESSION}/resume", {"save_current_as": "none"}),
        Case("POST", f"{memory}/sessions/clear", f"{memory}/sessions/clear", {"session_id": LIFE}),
        Case("POST", f"{memory}/sessions/{{session_id:path}}/end", f"{memory}/sessions/{LIFE}/end", {}),
        Case("DELETE", f"{memory}/sessions/{{session_id:path}}", f"{memory}/sessions/{SESSION}"),
        Case("POST", f"{memory}/erase", f"{memory}/erase", {}),
    ]  # fmt: skip


def seed(service: Service, user_id: str, first_id: int = 1) -> dict[str, Any]:
    """Something in every table, with the user's secret in it; the ids by which it could be asked for."""
    secret = SECRETS[user_id]
    with service.database.write() as tx:
        users.lock(tx, user_id, now_us(), rows=first_id)
        rejection = users.lock(tx, user_id, now_us())
        where = Provenance(now_us(), "chat", SESSION, "m1")
        refused = NewRejection("fact", f"{secret}_key", f"a {secret}", "unsure", f"{secret}?", where)
        rejections.insert(tx, user_id, rejection, refused, now_us())
        kept = users.lock(tx, user_id, now_us())
        waiting = NewUnconfirmed("fact", f"{secret}_home", f"a {secret}", "unsure", "", secret, "self", where)
        unconfirmed.insert(tx, user_id, kept, waiting, now_us())
    service.set_fact(user_id, KEY, f"a young {secret}")
    service.set_fact(user_id, KEY, f"an old {secret}")
    service.set_fact(user_id, f"{secret}_count", "seven")
    service.set_global_memory(user_id, f"Feed the {secret}.")
    service.edit_memory_file(user_id, "MEMORY.md", f"## A {secret}\n\nThe keeper of the {secret}.")
    service.add_context(user_id, QUESTION, f"The animal that they like is a {secret}.")
    said = {"role": "user", "content": f"I like the {secret}, my favourite animal.", "id": "m1"}
    service.remember(user_id, [said], SESSION, cwd=f"/{secret}")
    # The server polls, too: what it would find is found before anybody is compared.
    service.transcripts.poll()
    service.start_session(user_id, session_id=LIFE, agent_name=secret)
    document = service.add_document(
        user_id, f"Notes on the {secret}, a favourite animal.", session_id=SESSION
    )
    injected = service.inject(user_id, [{"role": "user", "content": WORDS}], session_id=SESSION)
    assert injected.block is not None
    return {
        "context": service.context(user_id)[0].id,
        "conversation": service.conversations(user_id)[0].id,
        "document": document,
        "rejection": rejection,
        "unconfirmed": kept,
        "request": injected.request,
    }


def everything_of(service: Service, user_id: str) -> tuple[Any, ...]:
    """All that is stored of a user."""
    exported = list(service.export(user_id))[1:]
    return (
        exported,
        service.row_counts(user_id),
        service.rejected(user_id),
        service.unconfirmed(user_id),
        service.why(user_id),
        service.usage(user_id),
        service.items(user_id),
    )


@dataclass(frozen=True)
class Site:
    """The server, what can be asked of it, and the keys to ask with."""

    server: Running
    provider: ScriptedProvider
    cases: list[Case]
    keys: Mapping[str, dict[str, str]]

    def of_others(self, *own: str) -> list[bytes]:
        """The secrets of all but these users."""
        return [secret.encode() for user, secret in SECRETS.items() if user not in own]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that knows Anna, an application's Anna, Bob and Dora."""
    path = tmp_path_factory.mktemp("isolation") / "config.toml"
    with ScriptedProvider() as provider:
        claude = {"type": "anthropic", "base_url": provider.url, "memory": True}
        write_config(path, provider.url, OPENAI, others={"claude": claude}, embedding_engine="none")
        with serving(path) as server:
            ids = seed(server.service, ANNA, FIRST_ID)
            seed(server.service, APPS_ANNA, FIRST_ID)
            seed(server.service, DORA, FIRST_ID)
            seed(server.service, BOB)
            yield Site(server, provider, cases(ids), keys_of(server.service))


def keys_of(service: Service) -> dict[str, dict[str, str]]:
    """Every kind of key, as the headers that present it."""
    keys = {
        "none": {},
        "wrong": bearer("shp_0123456789ab_" + "x" * 43),
        "malformed": {"x-api-key": "quite something else"},
        "own": bearer(new_key(service, BOB)),
        "any-user": bearer(new_key(service, "all", any_user=True)),
        "namespaced": bearer(new_key(service, "shop", any_user=True, namespace="app")),
        "other namespace": bearer(new_key(service, "stall", any_user=True, namespace="other")),
        "revoked": bearer(new_key(service, "gone", any_user=True)),
        "Anna's, revoked": bearer(new_key(service, ANNA)),
    }
    for name in ("gone", ANNA):
        api_keys.revoke(service.database, name, now_us())
    return keys


@pytest.fixture
def unchanged(site: Site) -> Iterator[None]:
    """Nothing of either Anna is changed by the test, and nothing of theirs reaches a provider."""
    before = [everything_of(site.server.service, user) for user in (ANNA, APPS_ANNA)]
    asked = len(site.provider.requests)
    yield
    assert [everything_of(site.server.service, user) for user in (ANNA, APPS_ANNA)] == before
    sent = b"".join(received.body for received in site.provider.requests[asked:])
    assert not any(SECRETS[user].encode() in sent for user in (ANNA, APPS_ANNA))


def served() -> set[tuple[str, str]]:
    """All methods of all routes."""
    found = set()
    for route in ROUTES:
        assert isinstance(route, Route)
        methods = route.methods or {FREE_METHODS.get(route.path, "GET")}
        found |= {(method, route.path) for method in methods - {"HEAD"}}
    return found


def test_every_route_has_a_case(site: Site) -> None:
    assert {(case.method, case.path) for case in site.cases} == served()
    used = {case.body["name"] for case in site.cases if case.path == "/v1/tools/execute"}
    assert used == {one["function"]["name"] for one in tools.TOOLS}
    calls = [case.body for case in site.cases if case.path == "/mcp"]
    used = {call["params"]["name"] for call in calls if call["method"] == "tools/call"}
    assert used == set(tools.ALL_TOOLS)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("kind", ["none", "wrong", "malformed", "revoked", "Anna's, revoked"])
def test_without_a_right_nothing_is_answered(site: Site, kind: str) -> None:
    for case in site.cases:
        for asked in (case, case.naming(ANNA)):
            reply = asked.ask(site.server.url, site.keys[kind])
            assert reply.status == (200 if case.path in PUBLIC else 401), case
            assert not any(secret in reply.everything for secret in site.of_others())
            if case.method == "GET" and case.path not in PUBLIC:
                assert asked.ask(site.server.url, site.keys[kind], "HEAD").status == 401


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("kind", ["own", "any-user", "namespaced", "other namespace"])
def test_a_key_with_nobody_named_shows_and_changes_nothing_of_others(site: Site, kind: str) -> None:
    for case in site.cases:
        reply = case.ask(site.server.url, site.keys[kind])
        assert reply.status in ANSWERED, case
        others = site.of_others(BOB) if kind == "own" else site.of_others()
        assert not any(secret in reply.everything for secret in others), case


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("user", [ANNA, APPS_ANNA])
def test_a_users_own_key_acts_for_nobody_else(site: Site, user: str) -> None:
    key, asked = site.keys["own"], len(site.provider.requests)
    for case in site.cases:
        if case.path in PUBLIC | OF_NO_USER:
            continue
        for reply in (
            case.naming(user).ask(site.server.url, key),
            case.ask(site.server.url, {**key, "X-Shepherd-User": user}),
            case.naming(BOB).ask(site.server.url, {**key, "X-Shepherd-User": user}),
        ):
            assert reply.status == 403, case
            assert not any(secret in reply.everything for secret in site.of_others())
    assert len(site.provider.requests) == asked


@pytest.mark.usefixtures("unchanged")
def test_a_key_for_any_user_does_not_reach_into_a_namespace(site: Site) -> None:
    key = site.keys["any-user"]
    for case in site.cases:
        if case.path in PUBLIC | OF_NO_USER:
            continue
        for reply in (
            case.naming(APPS_ANNA).ask(site.server.url, key),
            case.ask(site.server.url, {**key, "X-Shepherd-User": APPS_ANNA}),
        ):
            assert reply.status == 403, case
            assert not any(secret in reply.everything for secret in site.of_others())


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("user", [ANNA, APPS_ANNA, f"../{APPS_ANNA}"])
def test_a_namespace_is_not_left_by_any_name(site: Site, user: str) -> None:
    key = site.keys["other namespace"]
    for case in site.cases:
        named = case if case.path in PUBLIC | OF_NO_USER else case.naming(user)
        for reply in (
            named.ask(site.server.url, key),
            case.ask(site.server.url, {**key, "X-Shepherd-User": user}),
        ):
            assert reply.status in ANSWERED, case
            assert not any(secret in reply.everything for secret in site.of_others()), case


@pytest.mark.usefixtures("unchanged")
def test_the_user_of_a_namespace_is_not_the_one_outside_of_that_name(site: Site) -> None:
    key = site.keys["namespaced"]
    for case in site.cases:
        if case.shows:
            reply = case.naming(f"app/{ANNA}").ask(site.server.url, key)
            assert reply.status in ANSWERED
            assert not any(secret in reply.everything for secret in site.of_others()), case


@pytest.mark.parametrize("wire", CHATS)
def test_in_a_chat_nobody_gets_anothers_memory(site: Site, wire: str) -> None:
    url, provider = site.server.url, site.provider
    tries: list[tuple[str, dict[str, str], str]] = [
        ("own", {}, ""),
        ("own", {}, BOB),
        ("own", {"X-Shepherd-Session": SESSION}, ""),
        ("any-user", {}, "carl"),
        ("any-user", {"X-Shepherd-User": "carl"}, ANNA),
        ("any-user", {}, "unknown"),
        ("other namespace", {}, ANNA),
        ("other namespace", {"X-Shepherd-User": APPS_ANNA}, ANNA),
        ("namespaced", {"X-Shepherd-User": "carl"}, ANNA),
    ]
    for kind, more, user in tries:
        named = {"metadata": {"user_id": user}} if wire == "anthropic" else {"user": user}
        reply = say(url, WORDS, {**site.keys[kind], **more}, wire=wire, **named)
        assert reply.status == 200
        seen = provider.requests[-1].body + reply.everything
        assert not any(SECRETS[one].encode() in seen for one in (ANNA, APPS_ANNA)), (kind, more, user)


def test_a_tool_loop_of_one_user_gets_no_block_of_another(site: Site) -> None:
    loop = [
        {"role": "user", "content": WORDS},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
    ]
    shown = say(site.server.url, WORDS, site.keys["any-user"], user=ANNA)
    assert shown.header("x-shepherd-injected") != "0"
    for user in (ANNA, "carl"):
        assert say(site.server.url, WORDS, site.keys["any-user"], user=user, messages=loop).status == 200
        sent = site.provider.requests[-1].body
        assert (SECRETS[ANNA].encode() in sent) == (user == ANNA)


def test_whoever_may_sees_what_the_others_did_not(site: Site) -> None:
    for kind, named, shown in (("any-user", ANNA, ANNA), ("namespaced", ANNA, APPS_ANNA)):
        for case in site.cases:
            if case.shows and (shown == ANNA or "request=" not in case.target):
                reply = case.naming(named).ask(site.server.url, site.keys[kind])
                assert reply.status == 200, case
                assert SECRETS[shown].encode() in reply.body, case
                assert not any(secret in reply.everything for secret in site.of_others(shown))


@pytest.mark.usefixtures("unchanged")
def test_what_removes_reaches_whom_it_may(site: Site) -> None:
    for case in site.cases:
        if not case.shows and case.path not in PUBLIC | OF_NO_USER:
            assert case.naming(DORA).ask(site.server.url, site.keys["any-user"]).status in ANSWERED, case
    assert not any(site.server.service.row_counts(DORA).values())
