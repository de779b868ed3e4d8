"""Consolidated memory moves with its user: sections, their sources, their history, and what was forgotten."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.service import Service
from tests.consolidation_endpoint import ToolCall, agent, labelled, section, writes
from tests.contract.given import ManualClock, texts_of
from tests.contract.test_consolidation import consolidate, note_of, state, stored
from tests.contract.test_phases import ADA, BOB, HOUR, make_notes, noting
from tests.endpoint import Body, ScriptedEndpoint


@contextmanager
def opened(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with noting(url, clock, endpoint, memory_phase1_max_age_days=365) as service:
        endpoint.default = agent(writes())
        yield service


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with opened(url, clock, endpoint) as found:
        yield found


def exported(service: Service, user: str = ADA, **more: Any) -> bytes:
    return b"".join(service.export(user, **more))


def take_in(service: Service, data: bytes, user: str = ADA, **more: Any) -> None:
    service.import_lines(user, io.BytesIO(data), **more)


def body(data: bytes) -> bytes:
    """Everything after the header, which tells the time of the export."""
    return data.split(b"\n", 1)[1]


def kinds(data: bytes) -> list[str]:
    return [json.loads(line)["line"] for line in body(data).splitlines()]


def files_of(service: Service, user: str = ADA, group: str = "main") -> dict[str, str]:
    """What is written by consolidation or by hand; the notes of conversations have the ids of a database."""
    tree = service.memory_file_tree(user, group=group)
    return {
        path: text
        for path, text in tree.items()
        if path != "raw_memories.md" and not path.startswith("rollout_summaries/")
    }


def skilled(body: Body) -> list[ToolCall]:
    """All kinds of files, rewritten by each run."""
    now = labelled(body)
    sources = now["added"] + now["retained"]
    return [
        section(body, f"Ada drinks tea, as {len(sources)} of them say."),
        section(body, "Ada, who drinks tea.", "Who", "memory_summary.md", project="/work/kettle"),
        ("write_skill", {"name": "tea", "text": "Boil it.", "sources": sources}),
        ("finish", {"note": "tea"}),
    ]


def lived(service: Service, clock: ManualClock, endpoint: ScriptedEndpoint) -> None:
    """A user with two runs, an edited section, a note by hand, and the same in another group."""
    endpoint.default = agent(skilled)
    note_of(service, clock)
    note_of(service, clock, "club", group="club")
    consolidate(service, clock)
    clock.advance(7 * HOUR)
    note_of(service, clock, "second")
    consolidate(service, clock)
    clock.advance(60)
    service.edit_memory_file(ADA, "skills/tea/SKILL.md", "Boil it twice.")
    clock.advance(60)
    service.add_memory_note(ADA, "Ask about milk.", name="Milk")


@pytest.mark.every_scheme
def test_consolidated_memory_comes_back_byte_for_byte_on_any_database(
    service: Service, other_url: str, clock: ManualClock, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    lived(service, clock, endpoint)
    first = exported(service)
    assert {"consolidation", "section", "output"} <= set(kinds(first))
    files, history = files_of(service), service.memory_file_history(ADA)
    assert len(history) == state(service).version == 4
    diff = service.memory_file_diff(ADA, 1, 4)
    found = service.recall(ADA, "tea milk", threshold=0.0).hits
    for number, place in enumerate([other_url, f"{tmp_path}/sqlite.db", other_url]):
        user = f"ada {number}"
        with opened(place, ManualClock(clock() + 86_400_000_000), endpoint) as there:
            for _ in range(2):
                take_in(there, first, user)
            second = exported(there, user)
            assert body(second) == body(first)
            assert files_of(there, user) == files
            assert files_of(there, user, "club") == files_of(service, group="club")
            assert there.memory_file_history(user) == history
            assert there.memory_file_diff(user, 1, 4) == diff
            hits = there.recall(user, "tea milk", threshold=0.0).hits
            assert sorted(one.text for one in hits) == sorted(one.text for one in found)
            assert state(there, user).is_dirty == state(service).is_dirty
            first = second


def test_a_group_takes_along_what_it_sees_and_has_it_where_it_is_taken(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    lived(service, clock, endpoint)
    data = exported(service, group="club")
    assert b"milk" not in data
    take_in(service, data, BOB, group="pub")
    assert files_of(service, BOB, "pub")["MEMORY.md"] == files_of(service, group="club")["MEMORY.md"]
    assert stored(service, BOB) == stored(service, BOB, "club") == []


def test_the_next_run_goes_on_from_the_baseline(
    service: Service, other_url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    consolidate(service, clock)
    data = exported(service)
    seen: list[dict[str, list[int]]] = []

    def watch(body: Body) -> list[ToolCall]:
        seen.append(labelled(body))
        return list(writes("Ada drinks green tea.")(body))

    with opened(other_url, clock, endpoint) as there:
        endpoint.default = agent(watch)
        take_in(there, data)
        clock.advance(7 * HOUR)
        assert consolidate(there, clock) == [], "it is as clean as it was"
        note_of(there, clock, "second")
        assert [one.detail for one in consolidate(there, clock)] == ["succeeded"]
        assert [(len(one["added"]), len(one["retained"])) for one in seen] == [(1, 1)]
        assert state(there).version == 2
        (memory_section, _) = stored(there)
        assert (memory_section.body, len(memory_section.sources)) == ("Ada drinks green tea.", 2)


def test_what_is_withheld_stays_at_home(service: Service, clock: ManualClock) -> None:
    note_of(service, clock)
    consolidate(service, clock)
    clock.advance(1)
    service.forget(ADA, document=next(one.id for one in service.documents(ADA) if one.message_id == "chat-0"))
    data = exported(service)
    assert {"section", "output"} & set(kinds(data)) == set()
    assert b"drinks tea" not in data
    assert b'"tea"' not in data, "nor what the run has said of it"


@pytest.mark.every_scheme
def test_what_was_forgotten_or_deleted_here_is_not_brought_back(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    lived(service, clock, endpoint)
    data = exported(service)
    path = next(path for path in files_of(service) if path.startswith("notes/"))
    clock.advance(60)
    service.delete_memory_file(ADA, path)
    clock.advance(60)
    service.forget(ADA, document=next(one.id for one in service.documents(ADA) if one.message_id == "chat-0"))
    before = body(exported(service))
    take_in(service, data)
    assert body(exported(service)) == before
    assert b"Ask about milk" not in before
    assert files_of(service).get("MEMORY.md") is None
    clock.advance(60)
    service.reset_memory_files(ADA, everything=True)
    take_in(service, data)
    assert [one for one in stored(service) if one.state == "kept"] == []


def test_a_forgotten_session_takes_its_sections_from_every_import(
    service: Service, clock: ManualClock
) -> None:
    note_of(service, clock)
    consolidate(service, clock)
    data = exported(service)
    clock.advance(1)
    service.forget(ADA, session="chat")
    take_in(service, data)
    assert (stored(service), service.conversation_outputs(ADA)) == ([], [])


@pytest.mark.every_scheme
@pytest.mark.parametrize("target", ["document", "session", "file", "reset", "section"])
def test_deletions_that_are_imported_take_sections_here(
    service: Service, other_url: str, clock: ManualClock, endpoint: ScriptedEndpoint, target: str
) -> None:
    note_of(service, clock)
    consolidate(service, clock)
    clock.advance(1)
    service.add_memory_note(ADA, "Ask about milk.", name="Milk")
    path = next(path for path in files_of(service) if path.startswith("notes/"))
    data = exported(service)
    clock.advance(1)
    documents = {one.message_id: one.id for one in service.documents(ADA)}
    texts = {one.text.splitlines()[0]: one.id for one in service.documents(ADA) if one.source == "phase2"}
    with opened(other_url, clock, endpoint) as there:
        take_in(there, data)
        if target == "file":
            service.delete_memory_file(ADA, path)
        elif target == "reset":
            service.reset_memory_files(ADA)
        elif target == "session":
            service.forget(ADA, session="chat")
        else:
            service.forget(ADA, document=texts["Tea"] if target == "section" else documents["chat-0"])
        for _ in range(2):
            take_in(there, exported(service))
        left = {
            "file": {"MEMORY.md", "memory_summary.md"},
            "section": {"memory_summary.md", path},
        }.get(target, {path})
        rest = set(files_of(there)) - {"memory_summary.md"} if len(left) == 1 else set(files_of(there))
        assert rest == left
        assert ("drinks tea" in repr(files_of(there))) == (target in ("file", "section"))
        assert (b"Ask about milk" in exported(there)) == (target != "file")


def test_two_memories_of_a_group_are_joined_and_the_newer_of_two_hand_edits_is_in_view(
    service: Service, other_url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    consolidate(service, clock)
    clock.advance(60)
    service.edit_memory_file(ADA, "MEMORY.md", "## Tea\n\nAda drinks tea.\n\n## Cup\n\nBlue.")
    with opened(other_url, clock, endpoint) as there:
        endpoint.default = agent(writes("Ada rows.", "Ada, who rows."))
        note_of(there, clock, "boat")
        consolidate(there, clock)
        clock.advance(60)
        there.edit_memory_file(ADA, "MEMORY.md", "## Tea\n\nAda rows.\n\n## Cup\n\nRed.")
        version, data = state(there).version, exported(service)
        for _ in range(2):
            take_in(there, data)
        text = there.memory_file(ADA, "MEMORY.md").text
        assert ("Red." in text, "Blue." in text) == (True, False), "both were written by hand"
        summary = there.memory_file(ADA, "memory_summary.md").text
        assert ("Ada, who rows." in summary, "Ada, who drinks tea." in summary) == (True, True)
        assert next(one.note for one in there.memory_file_history(ADA)) == "imported"
        assert state(there).version == version + 1
        assert state(there).is_dirty, "the next run makes one of both"
        take_in(service, exported(there))
        assert "Red." in service.memory_file(ADA, "MEMORY.md").text
        assert "-Blue." in service.memory_file_diff(ADA, 2, 3), "the older one is in the history"


def test_an_older_copy_of_the_same_memory_adds_nothing(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    lived(service, clock, endpoint)
    data = exported(service)
    clock.advance(7 * HOUR)
    endpoint.default = agent(writes("Ada drinks green tea."))
    note_of(service, clock, "third")
    consolidate(service, clock)
    before = body(exported(service))
    take_in(service, data)
    assert body(exported(service)) == before


def test_a_section_that_was_taken_out_by_hand_stays_out(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    consolidate(service, clock)
    data = exported(service)
    clock.advance(60)
    service.edit_memory_file(ADA, "MEMORY.md", "## Cup\n\nBlue.")
    before = body(exported(service))
    take_in(service, data)
    assert body(exported(service)) == before
    assert "drinks tea" not in service.memory_file(ADA, "MEMORY.md").text


def test_what_was_pruned_is_not_made_again_elsewhere(
    service: Service, other_url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    clock.advance(40 * 24 * HOUR)
    assert [one.detail for one in consolidate(service, clock)] == ["succeeded_no_input"]
    (line,) = (json.loads(one) for one in exported(service).splitlines() if b'"line":"output"' in one)
    assert (line["summary"], line["pruned_at"] is None) == ("", False)
    with opened(other_url, clock, endpoint) as there:
        take_in(there, exported(service))
        assert body(exported(there)) == body(exported(service))
        assert make_notes(there, clock) == []


def test_an_import_that_was_interrupted_is_completed_by_another(
    service: Service, other_url: str, clock: ManualClock, endpoint: ScriptedEndpoint, monkeypatch: Any
) -> None:
    lived(service, clock, endpoint)
    data = exported(service)
    with opened(other_url, clock, endpoint) as there:
        monkeypatch.setattr("shepherd_memory.maintenance.portability.BATCH", 3)
        lines = data.splitlines(keepends=True)
        for end in range(1, len(lines), 4):
            with pytest.raises(InvalidInput):
                take_in(there, b"".join(lines[:end]) + b"{")
        take_in(there, data)
        assert body(exported(there)) == body(data)


def test_a_file_from_before_consolidation_is_taken_in_and_its_notes_are_consolidated(
    service: Service, other_url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    note_of(service, clock)
    header, *lines = map(json.loads, exported(service).splitlines())
    old = [{**header, "version": 3}, *(one for one in lines if one["line"] != "consolidation")]
    for one in old:
        one.pop("pruned_at", None)
    with opened(other_url, clock, endpoint) as there:
        take_in(there, b"".join(json.dumps(one).encode() + b"\n" for one in old))
        assert [one.detail for one in consolidate(there, clock)] == ["succeeded"]
        assert "Ada drinks tea." in there.memory_file(ADA, "MEMORY.md").text


BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("section", {"file": "../../x"}),
    ("section", {"file": "skills/../SKILL.md"}),
    ("section", {"file": "/etc/passwd"}),
    ("section", {"file": "rollout_summaries/a.md"}),
    ("section", {"heading": ""}),
    ("section", {"heading": "a\nb"}),
    ("section", {"body": ""}),
    ("section", {"body": "x" * 20_000}),
    ("section", {"written_by": "somebody"}),
    ("section", {"sources": []}),
    ("section", {"sources": [["chat", "soon"]]}),
    ("section", {"sources": "all"}),
    ("section", {"sources": None}),
    ("section", {"version": 0}),
    ("section", {"ended_version": 1}),
    ("consolidation", {"versions": [[9, "2026-01-01T00:00:00Z", "agent", ""]]}),
    ("consolidation", {"versions": [[1, "2026-01-01T00:00:00Z", "nobody", ""]]}),
    ("consolidation", {"versions": 1}),
    ("consolidation", {"version": -1}),
]


def test_a_line_that_is_none_of_ours_is_refused(service: Service, clock: ManualClock) -> None:
    note_of(service, clock)
    consolidate(service, clock)
    lines = [json.loads(line) for line in exported(service).splitlines()]
    for name, change in BROKEN:
        at = next(number for number, line in enumerate(lines) if line.get("line") == name)
        broken = [*lines[:at], {**lines[at], **change}, *lines[at + 1 :]]
        with pytest.raises(InvalidInput, match=f"^line {at + 1}: "):
            take_in(service, b"".join(json.dumps(line).encode() + b"\n" for line in broken), BOB)
        assert sum(service.row_counts(BOB).values()) == 0, change


def test_a_section_of_conversations_that_do_not_come_along_does_not_either(
    service: Service, clock: ManualClock
) -> None:
    note_of(service, clock)
    consolidate(service, clock)
    lines = [one for one in exported(service).splitlines() if b'"line":"conversation"' not in one]
    take_in(service, b"\n".join(lines), BOB)
    assert stored(service, BOB) == []
    with pytest.raises(NotFound):
        service.memory_file(BOB, "MEMORY.md")


def test_a_document_that_poses_as_a_section_is_not_taken(service: Service, clock: ManualClock) -> None:
    service.add_document(ADA, "a plan", type="learning")
    data = exported(service).replace(b'"source":"api"', b'"source":"phase2"')
    data = data.replace(b'"source":"live"', b'"source":"phase2"').replace(
        b'"source":"user"', b'"source":"phase2"'
    )
    assert b'"source":"phase2"' in data
    take_in(service, data, BOB)
    assert texts_of(service, BOB) == []
