"""Memory files over HTTP: paged, read, searched and edited by the version that the writer has seen."""

from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.server.calling import Reply, bearer, call, call_json, new_key
from tests.server.serving import Running, StartServer

FILES = "/v1/memory/files"
TEXT = "# Memory\n\n## Boats\n\nThe blue one is of oak.\n\n## Tea\n\nOolong at four.\n"


@pytest.fixture
def running(server: StartServer) -> Running:
    started = server(user_id="ada", embedding_engine="none")
    started.service.edit_memory_file("ada", "MEMORY.md", TEXT)
    return started


def get(running: Running, target: str = "", **query: Any) -> Reply:
    asked = f"?{urlencode(query, doseq=True)}" if query else ""
    return call(running.url, "GET", f"{FILES}{target}{asked}")


def put(running: Running, path: str, **body: Any) -> Reply:
    return call_json(running.url, "PUT", f"{FILES}/{path}", body)


def test_files_are_paged_and_notes_are_added_once(running: Running) -> None:
    for _ in range(2):
        for number in range(5):
            note = {"note": f"note {number}", "name": f"n{number}"}
            added = call_json(running.url, "POST", f"{FILES}/notes", note)
            assert (added.status, added.json["version"]) == (201, added.json["version"])
    seen, cursor = [], ""
    while cursor is not None:
        page = get(running, path="notes", limit=2, cursor=cursor).json
        seen.append([entry["path"][-5:] for entry in page["entries"]])
        cursor = page["next_cursor"]
    assert seen == [["n0.md", "n1.md"], ["n2.md", "n3.md"], ["n4.md"]]
    top = get(running).json
    assert (top["path"], top["version"]) == ("", 6)
    assert {"path": "MEMORY.md", "type": "file"} in top["entries"]
    assert {"path": "notes", "type": "folder"} in top["entries"]


def test_a_file_is_read_by_lines(running: Running) -> None:
    whole = get(running, "/MEMORY.md").json
    assert whole == {
        "path": "MEMORY.md",
        "text": TEXT,
        "start_line": 1,
        "line_count": 9,
        "next_line": None,
        "version": 1,
    }
    part = get(running, "/MEMORY.md", line_offset=3, max_lines=2).json
    assert (part["text"], part["next_line"]) == ("## Boats\n\n", 5)
    assert get(running, "/MEMORY.md", line_offset=10).status == 400


def test_lines_are_searched_for(running: Running) -> None:
    found = get(running, "/search", queries=["BLUE", "tea"]).json
    assert [(one["path"], one["line"], one["matched_queries"]) for one in found["matches"]] == [
        ("MEMORY.md", 5, ["BLUE"]),
        ("MEMORY.md", 7, ["tea"]),
    ]
    body = {"queries": ["boats", "oak"], "match_mode": "all_within_lines", "context_lines": 1}
    (match,) = call_json(running.url, "POST", f"{FILES}/search", body).json["matches"]
    assert (match["line"], match["start_line"]) == (3, 2)
    first = get(running, "/search", queries="o", limit=1).json
    rest = get(running, "/search", queries="o", cursor=first["next_cursor"]).json
    assert len(first["matches"] + rest["matches"]) == len(
        get(running, "/search", queries="o").json["matches"]
    )


def test_an_edit_with_an_old_version_is_refused_and_changes_nothing(running: Running) -> None:
    version = get(running, "/MEMORY.md").json["version"]
    mine, theirs = TEXT.replace("oak", "elm"), TEXT.replace("oak", "pine")
    assert put(running, "MEMORY.md", text=mine, version=version).json == {"path": "MEMORY.md", "version": 2}
    late = put(running, "MEMORY.md", text=theirs, version=version)
    assert late.status == 409
    assert late.json["error"]["message"].startswith("the memory files were changed meanwhile")
    assert get(running, "/MEMORY.md").json["text"] == mine
    diff = get(running, "/diff", old=1, new=2).json
    assert "-The blue one is of oak.\n+The blue one is of elm.\n" in diff["diff"]
    assert get(running, "/diff", old=1, new=3).status == 404
    history = get(running, "/history", limit=1).json
    assert [(one["version"], one["written_by"]) for one in history["versions"]] == [(2, "user")]
    older = get(running, "/history", before=history["next_before"]).json
    assert ([one["version"] for one in older["versions"]], older["next_before"]) == ([1], None)


def test_a_file_is_deleted_with_its_history_and_a_reset_keeps_what_was_written_by_hand(
    running: Running,
) -> None:
    kept = call_json(running.url, "POST", f"{FILES}/reset", {}).json
    assert kept["sections"] == 0
    assert get(running, "/MEMORY.md").status == 200
    assert call(running.url, "DELETE", f"{FILES}/MEMORY.md").json["deleted"]
    assert get(running, "/MEMORY.md").status == 404
    assert b"oak" not in get(running, "/diff", old=0, new=1).body
    assert call(running.url, "DELETE", f"{FILES}/MEMORY.md").status == 404
    put(running, "skills/sail/SKILL.md", text="# Sail\n\nReef early.")
    assert call_json(running.url, "POST", f"{FILES}/reset", {"everything": True}).json["sections"] == 1
    assert get(running).json["entries"] == []


PATHS = [
    "../MEMORY.md",
    "/etc/passwd",
    "notes/../MEMORY.md",
    ".git/config",
    "MEMORY.md\0",
    "MEMORY.md\n",
    "a\\b",
    "x" * 600,
]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_leads_elsewhere_is_refused_in_every_place(running: Running, path: str) -> None:
    target = f"{FILES}/{quote(path, safe='')}"
    replies = [
        call(running.url, "GET", target),
        call(running.url, "DELETE", target),
        call_json(running.url, "PUT", target, {"text": "## A\n\nb"}),
        get(running, path=path),
        get(running, "/search", queries="x", path=path),
        call_json(running.url, "POST", f"{FILES}/search", {"queries": ["x"], "path": path}),
    ]
    assert [reply.status for reply in replies] == [400] * len(replies)
    assert all(b"oak" not in reply.everything for reply in replies)
    assert get(running, "/MEMORY.md").json["version"] == 1


WRONG: list[tuple[str, str, Any]] = [
    *(
        ("PUT", "/MEMORY.md", body)
        for body in (
            {},
            {"text": ""},
            {"text": " \n"},
            {"text": 7},
            {"text": "x" * 2_000_001},
            {"text": "## " + "x" * 300 + "\n\ny"},
            {"text": "## A\n\nb", "version": "1"},
            {"text": "## A\n\nb", "version": -1},
            {"text": "## A\n\nb", "unknown": 1},
            ["## A"],
        )
    ),
    ("PUT", "/raw_memories.md", {"text": "## A\n\nb"}),
    ("PUT", "/elsewhere.md", {"text": "## A\n\nb"}),
    *(
        ("POST", "/notes", body)
        for body in ({}, {"note": ""}, {"note": " "}, {"note": "x" * 8001}, {"note": 1})
    ),
    *(
        ("POST", "/search", body)
        for body in (
            {},
            {"queries": []},
            {"queries": "x"},
            {"queries": ["x"] * 33},
            {"queries": [" "]},
            {"queries": ["x"], "match_mode": "all"},
            {"queries": ["x"], "limit": 201},
            {"queries": ["x"], "cursor": "x"},
            {"queries": ["x"], "line_count": 0},
        )
    ),
    ("POST", "/reset", {"everything": "yes"}),
]


@pytest.mark.parametrize(("method", "target", "body"), WRONG)
def test_what_does_not_fit_is_refused_with_a_reason(
    running: Running, method: str, target: str, body: Any
) -> None:
    reply = call_json(running.url, method, f"{FILES}{target}", body)
    assert reply.status == 400, reply.body
    assert reply.json["error"]["message"]
    assert get(running, "/MEMORY.md").json["version"] == 1


@pytest.mark.parametrize(
    ("method", "target", "raw"),
    [
        ("PUT", "/MEMORY.md", b'{"text": "## A\\n\\nx \\ud800 y"}'),
        ("POST", "/search", b'{"queries": ["\\udfff"]}'),
        ("GET", "/%ED%A0%80", None),
        ("GET", "/%ff", None),
        ("GET", "?limit=0", None),
        ("GET", "?limit=2001", None),
        ("GET", "?limit=1&limit=2", None),
        ("GET", "/history?before=0", None),
        ("GET", "/diff?old=x&new=1", None),
        ("GET", "/diff?old=1", None),
        ("GET", "/MEMORY.md?line_offset=0", None),
        ("GET", "/search", None),
    ],
)
def test_bytes_and_numbers_that_are_none_are_refused(
    running: Running, method: str, target: str, raw: bytes | None
) -> None:
    kind = {"Content-Type": "application/json"} if raw else {}
    assert call(running.url, method, f"{FILES}{target}", raw, kind).status == 400


def test_other_methods_are_none_of_a_files(running: Running) -> None:
    for target in ("/search", "/history", "/diff", "/notes", "/reset"):
        for method in ("PUT", "DELETE", "PATCH"):
            assert call_json(running.url, method, f"{FILES}{target}", {"text": "x"}).status == 405


def test_nobody_finds_the_files_of_another_user_or_group(running: Running) -> None:
    service = running.service
    service.edit_memory_file("ada", "skills/oak/SKILL.md", "# Oak\n\nhers", group="club")
    bob, club = bearer(new_key(service, "bob")), bearer(new_key(service, "ada", group="club"))
    for key, path in ((bob, "MEMORY.md"), (club, "MEMORY.md")):
        for method in ("GET", "DELETE"):
            assert call(running.url, method, f"{FILES}/{path}", headers=key).status == 404
        assert b"oak." not in call(running.url, "GET", f"{FILES}/search?queries=o", headers=key).body
    ada = bearer(new_key(service, "ada"))
    assert call(running.url, "GET", f"{FILES}/skills/oak/SKILL.md", headers=ada).status == 404
    named = {**ada, "X-Shepherd-Group": "club"}
    assert call(running.url, "GET", f"{FILES}/skills/oak/SKILL.md", headers=named).status == 200
    refused = call(running.url, "GET", f"{FILES}/MEMORY.md?group=main", headers=club)
    assert refused.status == 403
