"""The global memory over HTTP: read by all groups, written from `main`, in each chat once."""

import pytest

from tests.provider import ScriptedProvider, chat
from tests.server.calling import bearer, call, call_json, new_key, say
from tests.server.serving import Running, StartServer

PATH = "/v1/memory/global"
TEXT = "Answer in British English."


@pytest.fixture
def running(server: StartServer, provider: ScriptedProvider) -> Running:
    provider.default = chat("I see.")
    return server(embedding_engine="none")


def test_it_is_written_read_handed_on_and_deleted(running: Running, provider: ScriptedProvider) -> None:
    url = running.url
    assert call(url, "GET", f"{PATH}?user=ada").status == 404
    written = call_json(url, "PUT", PATH, {"user": "ada", "text": f"{TEXT}\n"})
    assert (written.status, written.json["text"]) == (200, TEXT)
    assert call(url, "GET", f"{PATH}?user=ada&group=club").json == written.json
    assert f"  {TEXT}\n</global-memory>" in written.json["handed_on"]
    assert call(url, "GET", f"{PATH}?user=bob").status == 404

    for group in ("main", "club"):
        say(url, "hello", {"X-Shepherd-Group": group}, user="ada")
        assert provider.requests[-1].body.count(TEXT.encode()) == 1
    say(url, "hello", user="ada", memory=False)
    assert TEXT.encode() not in provider.requests[-1].body

    assert call(url, "DELETE", f"{PATH}?user=ada").json == {"deleted": True}
    assert call(url, "DELETE", f"{PATH}?user=ada").status == 404
    say(url, "hello", user="ada")
    assert TEXT.encode() not in provider.requests[-1].body
    assert {text for _, text in running.said("ada")} == {"hello", "I see."}


@pytest.mark.parametrize(
    "text", [None, 7, "", "  ", "a\0b", "x" * 100_001, "x" * 10_000_000], ids=lambda text: repr(text)[:9]
)
def test_what_cannot_be_used_is_refused_and_changes_nothing(running: Running, text: object) -> None:
    call_json(running.url, "PUT", PATH, {"user": "ada", "text": TEXT})
    assert call_json(running.url, "PUT", PATH, {"user": "ada", "text": text}).status == 400
    half = b'{"user": "ada", "text": "half \\ud83d"}'
    assert call(running.url, "PUT", PATH, half, {"Content-Type": "application/json"}).status == 400
    assert call(running.url, "GET", f"{PATH}?user=ada").json["text"] == TEXT


def test_a_key_of_another_group_reads_and_may_not_write(running: Running) -> None:
    running.service.set_global_memory("ada", TEXT)
    key = bearer(new_key(running.service, "ada", group="club"))
    assert call(running.url, "GET", PATH, headers=key).json["text"] == TEXT
    for refused in (
        call_json(running.url, "PUT", PATH, {"text": "Mine."}, key),
        call_json(running.url, "PUT", PATH, {"text": "Mine.", "group": "global"}, key),
        call(running.url, "DELETE", PATH, headers=key),
    ):
        assert (refused.status, refused.json["error"]["code"]) == (403, "group_not_allowed")
    found = running.service.global_memory("ada")
    assert found is not None
    assert found.text == TEXT
