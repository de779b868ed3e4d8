"""The memory over HTTP: everything the service does, for the user that a request is about."""

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
import requests
from starlette.routing import Route

from shepherd_memory.frontends.api.memory_routes import MEMORY_OPERATIONS, MEMORY_ROUTES
from shepherd_memory.memory import api_keys, rejections, unconfirmed
from shepherd_memory.memory.rejections import NewRejection
from shepherd_memory.memory.unconfirmed import NewUnconfirmed
from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.rows import Provenance
from tests.provider import ScriptedProvider
from tests.server.memory_client import NDJSON, Client
from tests.server.serving import Running, StartServer, serving, write_config

REFUSED, KEPT = 9000, 9001
numbers = itertools.count()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("memory_api") / "config.toml"
    with ScriptedProvider() as provider:
        write_config(path, provider.url, embedding_engine="none", rag_relevance_threshold=0.0)
        with serving(path) as server:
            yield server


@pytest.fixture
def ada(running: Running) -> Client:
    return Client(running, f"ada{next(numbers)}")


@pytest.fixture
def bob(ada: Client) -> Client:
    return ada.of(f"bob{next(numbers)}")


def ok(answer: requests.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()


def error(answer: requests.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    found = answer.json()["error"]
    assert set(found) == {"message", "type", "code"}
    return str(found["message"])


def says(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def refuse(client: Client, word: str) -> None:
    """Have the guard refuse something of the user."""
    where = Provenance(now_us(), "test", "chat", "m1")
    with client.running.service.database.write() as tx:
        rejections.insert(
            tx, client.user, REFUSED, NewRejection("fact", "pet", word, "not said", "", where), now_us()
        )
        kept = NewUnconfirmed("fact", "breed", word, "reworded", "", word, "dog", where)
        unconfirmed.insert(tx, client.user, KEPT, kept, now_us())


def test_messages_are_remembered_once_and_recalled(ada: Client) -> None:
    said = {"messages": [says("my dog is Rex", id="m1")], "session_id": "chat"}
    assert ok(ada.post("/remember", said))["stored"] == 1
    again = ok(ada.post("/remember", said))
    assert (again["stored"], again["known"], again["session_id"]) == (0, 1, "chat")
    (hit,) = ok(ada.get("/recall", query="dog"))["hits"]
    assert (hit["kind"], hit["text"], hit["message_id"]) == ("document", "my dog is Rex", "m1")


def test_what_of_the_messages_is_not_stored_is_said(ada: Client) -> None:
    result = ok(ada.post("/remember", {"messages": [{"role": "system", "content": "Be kind."}]}))
    assert (result["stored"], result["skipped"][0]["index"]) == (0, 0)
    assert result["reason"]


@pytest.mark.parametrize("by_body", [False, True])
def test_recall_takes_its_choices_from_the_query_or_from_a_body(ada: Client, by_body: bool) -> None:
    ada.put("/facts/dog", {"value": "Rex the dog"})
    ada.post("/context", {"question": "What dog?", "answer": "a poodle"})
    ada.post("/documents", {"text": "the dog barks"})

    def kinds(**choices: Any) -> list[str]:
        asked = {"query": "dog", "threshold": 0, **choices}
        found = ok(ada.post("/recall", asked) if by_body else ada.get("/recall", **asked))
        assert all(bool(hit["parts"]) == (choices.get("explain") in (True, "true")) for hit in found["hits"])
        return [hit["kind"] for hit in found["hits"]]

    yes = True if by_body else "true"
    assert sorted(kinds()) == ["context", "document", "fact"]
    assert sorted(kinds(kinds=["fact", "context"])) == ["context", "fact"]
    assert len(kinds(limit=1, explain=yes)) == 1
    assert len(kinds(now="2020-01-01T00:00:00+02:00")) == 3


def test_a_recall_that_finds_nothing_says_why(ada: Client) -> None:
    found = ok(ada.get("/recall", query="dog"))
    assert (found["hits"], found["abstained"]) == ([], True)
    assert found["reason"] == "nothing is stored for this user"


def test_a_fact_is_put_read_replaced_and_deleted(ada: Client) -> None:
    assert ok(ada.put("/facts/Home%20City", {"value": "Rome"}))["key"] == "home_city"
    ok(ada.put("/facts/home_city", {"value": "Oslo"}))
    assert ok(ada.get("/facts/home_city"))["value"] == "Oslo"
    assert [fact["value"] for fact in ok(ada.get("/facts"))["facts"]] == ["Oslo"]
    history = ok(ada.get("/facts/home_city/history"))["history"]
    assert [(past["value"], past["ended_at"] is None) for past in history] == [
        ("Rome", False),
        ("Oslo", True),
    ]
    assert ok(ada.delete("/facts/home_city"))["facts"] == 1
    for answer in (
        ada.get("/facts/home_city"),
        ada.get("/facts/home_city/history"),
        ada.delete("/facts/home_city"),
    ):
        assert "has no fact 'home_city'" in error(answer, 404)


@pytest.mark.parametrize("key", ["dogs naïve name", "名前", "a?b#c", "100%", "%41", ".x", "a+b", "user_name"])
def test_a_key_survives_the_path(ada: Client, key: str) -> None:
    name = ok(ada.put(f"/facts/{quote(key, safe='')}", {"value": "Rex"}))["key"]
    assert ok(ada.get(f"/facts/{quote(key, safe='')}"))["key"] == name
    assert ok(ada.get(f"/facts/{quote(name, safe='')}"))["value"] == "Rex"


@pytest.mark.parametrize("key", ["", "a%2Fb", "a/b/c", "%2F", "!!!", "%00", "%FF", "x" * 1001, "%ED%A0%80"])
@pytest.mark.parametrize("method", ["get", "delete", "put"])
def test_a_key_that_cannot_be_one_is_refused(ada: Client, method: str, key: str) -> None:
    calls: dict[str, Callable[[str], requests.Response]] = {
        "get": ada.get,
        "delete": ada.delete,
        "put": lambda path: ada.put(path, {"value": "x"}),
    }
    assert calls[method](f"/facts/{key}").status_code in (400, 404)
    assert ok(ada.get("/facts")) == {"facts": []}


def test_pairs_are_stored_refreshed_paged_and_deleted(ada: Client) -> None:
    for number in range(5):
        assert ok(ada.post("/context", {"question": f"Box {number}?", "answer": "full"})) == {
            "result": "stored"
        }
    assert ok(ada.post("/context", {"question": "Box 0?", "answer": "full"})) == {"result": "refreshed"}
    pages = list(paged(ada, "/context", limit=2))
    assert [len(page["context"]) for page in pages] == [2, 2, 1]
    first = pages[0]["context"][0]
    assert ok(ada.get(f"/context/{first['id']}")) == first
    assert ok(ada.delete(f"/context/{first['id']}"))["context"] == 1
    assert error(ada.get(f"/context/{first['id']}"), 404)
    assert error(ada.delete(f"/context/{first['id']}"), 404)


def paged(client: Client, path: str, **query: Any) -> Iterator[dict[str, Any]]:
    after = 0
    while after is not None:
        page = ok(client.get(path, after_id=after, **query))
        yield page
        after = page["next_after_id"]


def test_documents_are_stored_filtered_paged_and_deleted(ada: Client) -> None:
    facets = {"type": "learning", "category": "identity", "session_id": "s/1", "role": "user"}
    facets |= {"speaker_name": "Ada", "speaker_type": "agent", "group": "room", "source": "app"}
    given = {**facets, "text": "I am Ada", "created_at": "2026-02-14T09:30:00+01:00", "extra": {"a": [1]}}
    document_id = ok(ada.post("/documents", given))["id"]
    for number in range(4):
        ok(ada.post("/documents", {"text": f"page {number}"}))
    stored = ok(ada.get(f"/documents/{document_id}"))
    assert (stored["text"], stored["created_at"], stored["extra"]) == (
        "I am Ada",
        "2026-02-14T08:30:00Z",
        '{"a":[1]}',
    )
    for name, value in facets.items():
        found = ok(ada.get("/documents", **{name: value}))["documents"]
        assert document_id in [document["id"] for document in found]
        assert ok(ada.get("/documents", **{name: "nothing"}))["documents"] == []
    assert [len(page["documents"]) for page in paged(ada, "/documents", limit=3)] == [3, 2]
    assert len(ok(ada.get("/documents", since="2026-03-01T00:00:00Z"))["documents"]) == 4
    newest = ok(ada.get("/documents", limit=2, newest="true"))
    assert [document["text"] for document in newest["documents"]] == ["page 2", "page 3"]
    assert newest["next_after_id"] is None
    assert error(ada.delete(f"/documents/{document_id}"), 404)
    assert ok(ada.delete(f"/documents/{document_id}", group="room"))["documents"] == 1
    assert error(ada.get(f"/documents/{document_id}"), 404)
    assert error(ada.delete(f"/documents/{document_id}", group="room"), 404)


def test_a_document_that_was_deleted_stays_deleted(ada: Client) -> None:
    given = {"text": "old", "session_id": "s", "message_id": "m"}
    document_id = ok(ada.post("/documents", given))["id"]
    assert ok(ada.post("/documents", given))["id"] == document_id
    ok(ada.delete(f"/documents/{document_id}"))
    assert ok(ada.post("/documents", given)) == {"id": None}


@pytest.mark.parametrize("session", ["chat", "a/b", "ü ?#", "..%2F"])
def test_a_session_is_forgotten_with_all_that_was_said_in_it(ada: Client, session: str) -> None:
    ok(ada.post("/remember", {"messages": [says("my dog is Rex")], "session_id": session}))
    assert ok(ada.delete(f"/sessions/{quote(session, safe='')}"))["documents"] == 1
    assert error(ada.delete(f"/sessions/{quote(session, safe='')}"), 404)


def test_no_session_is_not_a_session_to_forget(ada: Client) -> None:
    ok(ada.put("/facts/city", {"value": "Rome"}))
    assert "session_id" in error(ada.delete("/sessions/"), 400)
    assert ok(ada.get("/facts/city"))["value"] == "Rome"


def test_stats_count_the_rows_of_the_user(ada: Client) -> None:
    ok(ada.put("/facts/city", {"value": "Rome"}))
    found = ok(ada.get("/stats"))
    assert (found["user_id"], found["rows"]["facts"], found["unembedded"], found["usage"]) == (
        ada.user,
        1,
        1,
        [],
    )


def test_what_the_guard_refused_is_listed_and_can_be_accepted(ada: Client) -> None:
    refuse(ada, "Rex")
    assert [one["content"] for one in ok(ada.get("/rejected"))["rejected"]] == ["Rex"]
    assert ok(ada.post(f"/rejected/{REFUSED}/accept", {}))["name"] == "pet"
    assert ok(ada.get("/facts/pet"))["value"] == "Rex"
    assert error(ada.post(f"/rejected/{REFUSED}/accept", {}), 404)


def test_what_waits_to_be_confirmed_is_listed_confirmed_and_refused(ada: Client) -> None:
    refuse(ada, "poodle")
    assert [one["content"] for one in ok(ada.get("/unconfirmed"))["unconfirmed"]] == ["poodle"]
    assert error(ada.get("/facts/breed"), 404)
    assert ok(ada.post(f"/unconfirmed/{KEPT}/confirm", {}))["quote"] == "poodle"
    assert ok(ada.get("/facts/breed"))["value"] == "poodle"
    assert error(ada.post(f"/unconfirmed/{KEPT}/refuse", {}), 404)


def test_what_is_refused_by_hand_is_listed_with_the_refusals(ada: Client) -> None:
    refuse(ada, "poodle")
    ok(ada.post(f"/unconfirmed/{KEPT}/refuse", {}))
    assert ok(ada.get("/unconfirmed"))["unconfirmed"] == []
    reasons = {one["reason"] for one in ok(ada.get("/rejected"))["rejected"]}
    assert reasons == {"not said", "refused by hand"}


def test_why_tells_what_was_put_into_prompts(ada: Client) -> None:
    ok(ada.put("/facts/city", {"value": "Rome"}))
    request = ada.running.service.inject(ada.user, [says("Where do I live?")]).request
    (told,) = ok(ada.get("/why", request=request))["injections"]
    assert (told["query"], told["text"], told["request"]) == ("Where do I live?", "city: Rome", request)
    assert ok(ada.get("/why", limit=1))["injections"] == [told]
    assert ok(ada.get("/why", request="abc"))["injections"] == []
    assert error(ada.get("/why", request="\0"), 400)


def furnish(client: Client, word: str) -> None:
    """One row of everything, with the same keys and ids for whoever it is."""
    ok(client.post("/remember", {"messages": [says(f"my dog is {word}", id="m1")], "session_id": "chat"}))
    ok(client.put("/facts/dog", {"value": f"old {word}"}))
    ok(client.put("/facts/dog", {"value": word}))
    ok(client.post("/context", {"question": "What dog?", "answer": word}))
    ok(client.post("/documents", {"text": word, "session_id": "files", "message_id": "d1"}))
    ok(client.put("/global", {"text": f"The dog is {word}"}))
    client.running.service.add_memory_note(client.user, f"The dog is {word}", name="dog")
    refuse(client, word)
    client.running.service.start_session(client.user, session_id="life", agent_name=word)
    client.running.service.transcripts.poll()
    client.running.service.inject(client.user, [says(f"What dog is {word}?")])


def lines_of(client: Client) -> list[bytes]:
    """Everything of a user, but for the time of the export."""
    return list(client.running.service.export(client.user))[1:]


def test_an_export_is_lossless_in_a_round_trip(ada: Client, bob: Client) -> None:
    furnish(ada, "Rex")
    answer = ada.get("/export")
    assert (answer.status_code, answer.headers["content-type"]) == (200, NDJSON)
    assert answer.content.splitlines(keepends=True)[1:] == lines_of(ada)
    read = ok(bob.post_lines("/import", answer.content))["lines"]
    assert (read["fact"], read["document"]) == (1, 2)
    assert lines_of(bob) == lines_of(ada)
    ok(bob.post_lines("/import", answer.content))
    assert lines_of(bob) == lines_of(ada)


def test_a_broken_line_of_an_import_is_named_and_nothing_is_lost(ada: Client, bob: Client) -> None:
    furnish(ada, "Rex")
    furnish(bob, "Max")
    before = lines_of(bob)
    broken = ada.get("/export").content[:-9]
    last = len(broken.splitlines())
    assert f"line {last}: not JSON" in error(bob.post_lines("/import", broken), 400)
    assert lines_of(bob) == before


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff\xfe", b'{"format":"shepherd-memory","version":99}'])
def test_what_is_no_export_is_refused(ada: Client, body: bytes) -> None:
    assert "line 1" in error(ada.post_lines("/import", body), 400)


def test_a_user_is_erased_everywhere_with_a_receipt(ada: Client, bob: Client) -> None:
    furnish(ada, "Rex")
    furnish(bob, "Max")
    before = lines_of(bob)
    receipt = ok(ada.post("/erase", {}))
    assert (receipt["user_id"], receipt["left"], receipt["rows"]["facts"]) == (ada.user, {}, 1)
    assert lines_of(ada) == []
    assert lines_of(bob) == before


def first_conversation(client: Client) -> int:
    return ok(client.get("/phases"))["conversations"][0]["conversation_id"]


def first_note(client: Client) -> str:
    notes = client.running.service.memory_files(client.user, path="notes").entries
    return notes[0].path if notes else "notes/none.md"


def place(path: str, client: Client) -> str:
    """A path with an id in it that exists for the client."""
    ids = {
        "{key}": "dog",
        "{session_id:path}/end": "life/end",
        "{session_id:path}": "chat",
        "/context/{id}": f"/context/{client.running.service.context(client.user)[0].id}",
        "/documents/{id}": f"/documents/{client.running.service.documents(client.user)[0].id}",
        "/rejected/{id}": f"/rejected/{REFUSED}",
        "/unconfirmed/{id}": f"/unconfirmed/{KEPT}",
        "/phases/{id}": f"/phases/{first_conversation(client)}",
        "{path:path}": first_note(client),
    }
    for name, value in ids.items():
        path = path.replace(name, value)
    return path


BODIES: dict[str, dict[str, Any]] = {
    "remember": {"messages": [says("my dog is new", id="m1")], "session_id": "chat"},
    "recall": {"query": "What dog is it?", "limit": 1000, "threshold": 0},
    "facts": {"value": "new"},
    "global": {"text": "The dog is new"},
    "context": {"question": "What dog?", "answer": "new"},
    "documents": {"text": "new", "session_id": "files", "message_id": "d1"},
}


OF_FILES: dict[str, dict[str, Any]] = {
    "search": {"queries": ["dog"]},
    "notes": {"note": "The dog is new"},
    "diff": {"old": 0, "new": 1},
}
"""What a route of memory files takes; the others are those of one file."""

QUERIES: dict[str, dict[str, Any]] = {"recall": BODIES["recall"], "forget": {"session": "chat"}}


def send(client: Client, method: str, path: str) -> requests.Response:
    """A request that does something if the client's own rows are as `furnish` made them."""
    if path.endswith("/import"):
        return client.post_lines(path, client.get("/export").content)
    if path.endswith("/sessions"):
        return client.post(path, {"takeover": True})
    noun = path.split("/")[3]
    if noun == "files" and (last := path.rpartition("/")[2]) and method != "DELETE":
        given = OF_FILES.get(last, {"text": "The dog is new"} if method == "PUT" else {})
        return client.get(path, **given) if method == "GET" else getattr(client, method.lower())(path, given)
    if method in ("POST", "PUT"):
        return getattr(client, method.lower())(path, BODIES.get(noun, {}))
    if method == "DELETE":
        return client.delete(path)
    return client.get(path, **QUERIES.get(noun, {}))


EVERY_OPERATION = [(one.method, one.path) for one in MEMORY_OPERATIONS]


@pytest.mark.parametrize(("method", "path"), EVERY_OPERATION)
def test_no_route_shows_or_changes_the_memory_of_another(
    ada: Client, bob: Client, method: str, path: str
) -> None:
    furnish(ada, "Rex")
    furnish(bob, "Max")
    before = lines_of(ada), ok(ada.get("/stats"))
    answer = send(bob, method, place(path, bob))
    assert answer.status_code in (200, 201), answer.text
    assert "Rex" not in answer.text
    assert ada.user not in answer.text
    assert (lines_of(ada), ok(ada.get("/stats"))) == before


# To put a fact makes the user one of their own.
BY_ID = [(method, path) for method, path in EVERY_OPERATION if "{" in path and method != "PUT"]


def test_an_id_that_only_another_user_has_is_not_found(ada: Client, bob: Client) -> None:
    furnish(ada, "Rex")
    before = lines_of(ada)
    for method, path in BY_ID:
        answer = send(bob, method, place(path, ada))
        assert (method, path, answer.status_code) == (method, path, 404)
        assert "Rex" not in answer.text
        assert lines_of(ada) == before


@pytest.mark.parametrize("user", ["unknown", "", " "])
def test_nobody_has_no_memory(ada: Client, user: str) -> None:
    furnish(ada, "Rex")
    before = lines_of(ada)
    for method, path in EVERY_OPERATION:
        if path.endswith("/import"):
            answer = ada.of(user).post_lines(path, ada.get("/export").content)
        else:
            answer = send(ada.of(user), method, place(path, ada))
        assert answer.status_code in (200, 400, 404), f"{method} {path}: {answer.text}"
        assert "Rex" not in answer.text
        if answer.status_code == 400:
            assert "the user is unknown" in answer.text, f"{method} {path}: {answer.text}"
        assert lines_of(ada) == before


def test_the_header_outranks_the_user_field(ada: Client, bob: Client) -> None:
    ok(ada.put("/facts/city", {"value": "Rome"}))
    for_ada = {"X-Shepherd-User": ada.user}
    url = f"{ada.running.url}/v1/memory/facts/city"
    assert ok(requests.get(url, params={"user": bob.user}, headers=for_ada, timeout=60))["value"] == "Rome"
    ok(requests.put(url, json={"value": "Oslo", "user": bob.user}, headers=for_ada, timeout=60))
    assert ok(ada.get("/facts/city"))["value"] == "Oslo"


def test_a_user_where_it_would_be_overlooked_is_refused(ada: Client) -> None:
    url = f"{ada.running.url}/v1/memory/facts/city"
    answer = requests.put(url, params={"user": ada.user}, json={"value": "Rome"}, timeout=60)
    assert "`user`" in error(answer, 400)


def test_a_key_acts_for_its_own_user_only(server: StartServer) -> None:
    running = server(embedding_engine="none")
    _, text = api_keys.create(running.service.database, "ada", now=now_us())
    running.service.set_fact("bob", "city", "Oslo")
    url, key = f"{running.url}/v1/memory/facts/city", {"x-api-key": text}
    assert error(requests.get(url, timeout=60), 401)
    assert ok(requests.put(url, json={"value": "Rome"}, headers=key, timeout=60))["value"] == "Rome"
    assert [fact.value for fact in running.service.facts("ada")] == ["Rome"]
    assert "'ada' only" in error(requests.get(url, params={"user": "bob"}, headers=key, timeout=60), 403)
    as_bob = {**key, "X-Shepherd-User": "bob"}
    assert error(requests.delete(url, headers=as_bob, timeout=60), 403)
    assert [fact.value for fact in running.service.facts("bob")] == ["Oslo"]


@pytest.mark.parametrize(
    ("path", "query", "names"),
    [
        ("/recall", {}, "`query`"),
        ("/recall", {"query": "x", "limit": 0}, "`limit`"),
        ("/recall", {"query": "x", "limit": 1001}, "`limit`"),
        ("/recall", {"query": "x", "limit": "5.0"}, "`limit`"),
        ("/recall", {"query": "x", "limit": ["1", "2"]}, "'limit'"),
        ("/recall", {"query": "x", "limit": "9" * 5000}, "`limit`"),
        ("/recall", {"query": "x", "threshold": "NaN"}, "`threshold`"),
        ("/recall", {"query": "x", "threshold": 1.5}, "`threshold`"),
        ("/recall", {"query": "x", "explain": "1"}, "`explain`"),
        ("/recall", {"query": "x", "now": "yesterday"}, "`now`"),
        ("/recall", {"query": "x", "now": "2026-01-01T00:00:00"}, "`now`"),
        ("/recall", {"query": "x", "kinds": "dogs"}, "`kinds"),
        ("/recall", {"query": "x", "colour": "red"}, "`colour`"),
        ("/context/0", {}, "`id`"),
        ("/context/x", {}, "`id`"),
        ("/documents/9223372036854775808", {}, "`id`"),
        ("/documents", {"after_id": -1}, "`after_id`"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    ada: Client, path: str, query: dict[str, Any], names: str
) -> None:
    assert names in error(ada.get(path, **query), 400)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100, "does not fit"),
        (b'{"messages":[{"a":' + b"[" * 90, "not JSON"),
        (b"[]", "`object`"),
        (b"{}", "`messages`"),
        (b'{"messages":{}}', "`messages`"),
        (b'{"messages":[1]}', "`messages[0]`"),
        (b'{"messages":[],"extract":1}', "`extract`"),
        (b'{"messages":[],"user":1}', "`user`"),
        (b'{"messages":[],"colour":1}', "`colour`"),
        (b'{"messages":[],"user":"' + b"x" * 257 + b'"}', "`user`"),
        (b'{"messages":[],"user":"a\\u0000"}', "user_id"),
    ],
)
def test_a_body_that_does_not_fit_is_refused_by_name(ada: Client, body: bytes, names: str) -> None:
    headers = {"Content-Type": "application/json"}
    url = f"{ada.running.url}/v1/memory/remember"
    assert names in error(requests.post(url, data=body, headers=headers, timeout=60), 400)


def test_a_document_of_an_unknown_type_is_refused(ada: Client) -> None:
    assert "type takes message" in error(ada.post("/documents", {"text": "x", "type": "dog"}), 400)


@pytest.mark.parametrize("operation", [one for one in MEMORY_OPERATIONS if one.body], ids=lambda o: o.path)
@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "", None])
def test_a_body_of_another_type_is_refused_as_a_foreign_page_could_send_it(
    ada: Client, operation: Any, media_type: str | None
) -> None:
    furnish(ada, "Rex")
    before = lines_of(ada)
    headers = {} if media_type is None else {"Content-Type": media_type}
    url = ada.running.url + place(operation.path, ada)
    answer = requests.request(operation.method, url, data=b'{"value":"x"}', headers=headers, timeout=60)
    assert operation.body_media_type in error(answer, 415)
    assert lines_of(ada) == before


def test_the_media_type_may_have_parameters(ada: Client) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    url = f"{ada.running.url}/v1/memory/facts/city"
    body = f'{{"value":"Rome","user":"{ada.user}"}}'.encode()
    assert ok(requests.put(url, data=body, headers=headers, timeout=60))["value"] == "Rome"


@pytest.mark.parametrize("route", MEMORY_ROUTES, ids=lambda route: route.path)
def test_another_method_is_told_which_ones_there_are(ada: Client, route: Route) -> None:
    furnish(ada, "Rex")
    other = "PUT" if "PATCH" in (route.methods or ()) else "PATCH"
    answer = requests.request(other, ada.running.url + place(route.path, ada), timeout=60)
    assert error(answer, 405)
    assert set(answer.headers["allow"].split(", ")) == route.methods


@pytest.mark.parametrize(
    "path", ["", "/", "/nothing", "/facts/a/b", "/context/1/2", "/rejected/1", "/export/"]
)
def test_other_paths_are_not_there(ada: Client, path: str) -> None:
    assert "openapi.json" in error(ada.get(f"/v1/memory{path}"), 404)


def test_times_are_in_utc(ada: Client) -> None:
    fact = ok(ada.put("/facts/city", {"value": "Rome"}))
    assert datetime.fromisoformat(fact["stated_at"]).tzinfo == UTC
    assert fact["stated_at"].endswith("Z")


def test_a_body_beyond_the_limit_of_its_key_is_refused(server: StartServer) -> None:
    running = server(embedding_engine="none")
    _, text = api_keys.create(running.service.database, "ada", max_request_bytes=1000, now=now_us())
    headers = {"x-api-key": text, "Content-Type": NDJSON}
    url = f"{running.url}/v1/memory/import"
    assert error(requests.post(url, data=b"x" * 1001, headers=headers, timeout=60), 413)
