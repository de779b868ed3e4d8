"""Every method of the service and the library and every tool, from every group: each has its own."""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from shepherd_memory import tools
from shepherd_memory.errors import ShepherdError
from shepherd_memory.injection.injector import InjectionRequest
from shepherd_memory.injection.prompt_injection import PromptInjection
from shepherd_memory.intake.exchange import AnsweredExchange, read_answered
from shepherd_memory.memory.sessions import of_work_key
from shepherd_memory.service import Service
from shepherd_memory.transcripts.ingestion import ELSEWHERE
from shepherd_memory.transcripts.library import Library
from tests.contract.given import NOON, ManualClock, drain, memory
from tests.contract.test_isolation import methods_for_a_user
from tests.endpoint import ScriptedEndpoint
from tests.grouped_memory import (
    ALPHA,
    ASKED,
    BETA,
    GLOBAL,
    KEY,
    LIFE,
    MAIN,
    QUESTION,
    SEEN,
    SESSION,
    USER,
    WORDS,
    as_shown,
    furnish,
    rows_by_group,
    transcript_of,
    words_in,
)
from tests.transcripts import append, user_line

SAID = [{"role": "user", "content": ASKED}]
OF_THE_USER = {
    "embed_own",
    "erase",
    "usage",
    "tokens_spent_today",
    "user_version",
}
"""About all groups at once."""

ALL, NEAREST, ECHO = "all that it sees", "its nearest", "nothing of its own"


@dataclass
class Visit:
    """A group that calls, and the ids of what is alpha's."""

    service: Service
    group: str
    ids: dict[str, Any]
    folder: Path


@dataclass(frozen=True)
class Case:
    """One call; `reaches_all`: from `main` it acts in the group of what it names."""

    call: Callable[[Visit], Any]
    shows: str = ECHO
    reaches_all: bool = False


def method(name: str, *arguments: Any, shows: str = ECHO, reaches_all: bool = False, **options: Any) -> Case:
    """A call of the service; an argument that is the name of an id stands for alpha's."""
    return Case(_calling(lambda visit: visit.service, name, arguments, options), shows, reaches_all)


def reading(name: str, *arguments: Any, shows: str = ECHO, **options: Any) -> Case:
    return Case(_calling(lambda visit: visit.service.transcripts, name, arguments, options), shows)


def _calling(
    owner: Callable[[Visit], Any], name: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Callable[[Visit], Any]:
    def call(visit: Visit) -> Any:
        given = [_meant(visit, one) for one in arguments]
        named = {key: _meant(visit, one) for key, one in options.items()}
        found = getattr(owner(visit), name)(USER, *given, **named, group=visit.group)
        return list(found) if name in ("export", "read", "archive") else found

    return call


def _exported(name: str) -> Callable[[Visit], list[str]]:
    def call(visit: Visit) -> list[str]:
        with TemporaryDirectory() as folder:
            getattr(visit.service, name)(USER, Path(folder), group=visit.group)
            return [path.read_text() for path in sorted(Path(folder).rglob("*.md"))]

    return call


@dataclass(frozen=True)
class Named:
    """The id of something of alpha's."""

    what: str


def _meant(visit: Visit, argument: Any) -> Any:
    """An id as whoever calls is shown it, or would be."""
    shown = as_shown(visit.service, visit.group, visit.ids)
    return shown[argument.what] if isinstance(argument, Named) else argument


PAIR, DOCUMENT, REFUSED, ITEM = Named("context"), Named("document"), Named("rejection"), Named("item")
WAITING = Named("unconfirmed")


def _exchange(group: str) -> AnsweredExchange:
    found = read_answered(SAID, "again", SESSION, NOON, group=group)
    assert found is not None
    return found


def _injection(visit: Visit) -> PromptInjection:
    return PromptInjection(visit.service.injector, InjectionRequest(USER, SAID, SESSION, visit.group))


READS: dict[str, list[Case]] = {
    "facts": [method("facts", shows=ALL)],
    "get_fact": [method("get_fact", KEY, shows=NEAREST)],
    "fact_history": [method("fact_history", KEY, shows=NEAREST)],
    "context": [method("context", shows=ALL)],
    "global_memory": [method("global_memory")],
    "memory_summary": [method("memory_summary", shows=NEAREST), method("memory_summary", project="/work")],
    "global_opening": [method("global_opening")],
    "get_context": [method("get_context", PAIR)],
    "documents": [
        method("documents", shows=ALL),
        method("documents", session_id=SESSION, newest=True, shows=ALL),
    ],
    "get_document": [method("get_document", DOCUMENT)],
    "get_message": [method("get_message", SESSION, "m1", shows=NEAREST)],
    "message_ids": [method("message_ids", SESSION)],
    "made_of": [method("made_of", SESSION, "m1")],
    "session_size": [method("session_size", SESSION)],
    "rejected": [method("rejected", shows=ALL)],
    "unconfirmed": [method("unconfirmed", shows=ALL)],
    "why": [method("why", shows=NEAREST), method("why", Named("request"))],
    "items": [method("items"), method("items", session_id=SESSION)],
    "count_items": [method("count_items", "waiting", "failed")],
    "item_counts": [method("item_counts")],
    "conversation_counts": [method("conversation_counts")],
    "recall": [method("recall", ASKED, 50, 0.0, explain=True, shows=ALL)],
    "unembedded": [method("unembedded")],
    "row_counts": [method("row_counts")],
    "export": [method("export", shows=ALL)],
    "archive": [method("archive", SESSION, shows=NEAREST)],
    "archived_sessions": [method("archived_sessions")],
    "count_archives": [method("count_archives")],
    "begin_archive": [method("begin_archive", SESSION)],
    "export_archives": [Case(_exported("export_archives"), ALL)],
    "export_memory_files": [Case(_exported("export_memory_files"), NEAREST)],
    "mirror_memory_files": [Case(_exported("mirror_memory_files"), ALL)],
    "editable_memory_file": [method("editable_memory_file", "MEMORY.md", shows=NEAREST)],
    "conversations": [method("conversations")],
    "conversation_note": [method("conversation_note", Named("conversation"))],
    "conversation_notes": [method("conversation_notes", shows=ALL), method("conversation_notes", offset=1)],
    "forecast_extraction": [method("forecast_extraction")],
    "note_counts": [method("note_counts")],
    "note_progress": [method("note_progress", range(1000))],
    "conversation_outputs": [method("conversation_outputs", shows=ALL)],
    "consolidation_states": [method("consolidation_states")],
    "memory_file": [method("memory_file", "MEMORY.md", shows=NEAREST)],
    "memory_file_diff": [method("memory_file_diff", 0, 1, shows=NEAREST)],
    "memory_file_history": [method("memory_file_history")],
    "memory_file_tree": [method("memory_file_tree", shows=NEAREST)],
    "memory_file_version": [method("memory_file_version")],
    "memory_files": [method("memory_files")],
    "search_memory_files": [method("search_memory_files", ["keeper"], shows=NEAREST)],
    "active_session": [method("active_session", shows=NEAREST)],
    "profile": [method("profile", shows=NEAREST)],
    "list_sessions": [method("list_sessions", shows=ALL)],
    "session_history": [method("session_history")],
    "groups": [method("groups")],
    "search_sessions": [method("search_sessions", ASKED, limit=50, shows=ALL)],
    "read_session": [method("read_session", SESSION, shows=NEAREST)],
    "rebuild_chat": [method("rebuild_chat", SESSION, 1000, shows=NEAREST)],
    "find_session": [method("find_session", SESSION)],
    "session_life": [method("session_life", LIFE, shows=NEAREST), method("session_life", SESSION)],
    "previous_session": [
        method("previous_session", shows=NEAREST),
        method("previous_session", session_id=SESSION, shows=NEAREST),
        method("previous_session", current=LIFE, shows=NEAREST),
    ],
}
"""What changes nothing."""

WRITES: dict[str, list[Case]] = {
    "inject": [method("inject", SAID, session_id=SESSION, shows=NEAREST)],
    "run_injection": [
        Case(
            lambda visit: visit.service.run_injection(USER, _injection(visit), group=visit.group),
            NEAREST,
        )
    ],
    "remember": [method("remember", SAID, SESSION)],
    "remember_exchange": [method("remember_exchange", SAID, "an answer", SESSION)],
    "deliver": [
        Case(lambda visit: visit.service.deliver(USER, SAID, "an answer", SESSION, group=visit.group).store())
    ],
    "store_exchange": [Case(lambda visit: visit.service.store_exchange(USER, _exchange(visit.group)))],
    "add_document": [method("add_document", "a new note", session_id=SESSION)],
    "add_context": [method("add_context", QUESTION, "none")],
    "set_fact": [method("set_fact", KEY, "none")],
    "note_reading": [
        Case(
            lambda visit: visit.service.note_reading(
                USER, visit.service.recall(USER, ASKED, group=visit.group).hits, group=visit.group
            )
        )
    ],
    "add_memory_note": [method("add_memory_note", "a note")],
    "consolidate": [method("consolidate", dry_run=True)],
    "delete_memory_file": [method("delete_memory_file", "MEMORY.md")],
    "edit_memory_file": [method("edit_memory_file", "MEMORY.md", "## A\n\nb\n")],
    "note_file_reading": [method("note_file_reading", ["MEMORY.md"])],
    "reset_memory_files": [method("reset_memory_files", everything=True)],
    "set_global_memory": [method("set_global_memory", "none", reaches_all=True)],
    "delete_global_memory": [method("delete_global_memory", reaches_all=True)],
    "replace_answer": [method("replace_answer", PAIR, "none")],
    "accept": [method("accept", REFUSED)],
    "confirm": [method("confirm", WAITING)],
    "refuse": [method("refuse", WAITING)],
    "import_lines": [
        Case(
            lambda visit: visit.service.import_lines(
                USER, io.BytesIO(b'{"format":"shepherd-memory","version":1}\n'), group=visit.group
            )
        )
    ],
    "extract": [method("extract", SESSION)],
    "process_conversations": [
        method("process_conversations", dry_run=True),
        method("process_conversations", conversation_id=Named("conversation"), dry_run=True),
    ],
    "use_session": [method("use_session", LIFE)],
    "recover_session": [method("recover_session")],
    "start_session": [method("start_session", session_id="session-3", takeover=True)],
    "end_session": [method("end_session", "session-3"), method("end_session", LIFE)],
    "rename_session": [method("rename_session", SESSION, "another name")],
    "set_memory_mode": [method("set_memory_mode", SESSION, "read-only")],
    "clear_session": [method("clear_session", "put aside", session_id=SESSION)],
    "resume_session": [method("resume_session", SESSION)],
    "retry": [method("retry", ITEM, reaches_all=True)],
    "drop": [method("drop", ITEM, reaches_all=True)],
}
"""What changes the group that calls."""

FORGETS: dict[str, list[Case]] = {
    "plan_forgetting": [
        method("plan_forgetting", document=DOCUMENT),
        method("plan_forgetting", context=PAIR),
        method("plan_forgetting", session=SESSION),
    ],
    "forget": [
        method("forget", document=DOCUMENT),
        method("forget", context=PAIR),
        method("forget", question=QUESTION),
        method("forget", fact=KEY),
        method("forget", session=SESSION),
    ],
}

LIBRARY: dict[str, list[Case]] = {
    "files": [reading("files", shows=ECHO)],
    "health": [reading("health")],
    "session": [reading("session", "sess")],
    "read": [reading("read", "session", shows=NEAREST), reading("read", SESSION, shows=NEAREST)],
    "around": [reading("around", DOCUMENT, 5)],
    "ingest": [
        Case(
            lambda visit: visit.service.transcripts.ingest(
                USER,
                transcript_of(visit.group, visit.folder),
                visit.folder,
                reimport=True,
                group=visit.group,
            )
        )
    ],
}


def asking(name: str, shows: str = ECHO, /, **arguments: Any) -> Case:
    def call(visit: Visit) -> Any:
        given = {
            key: str(_meant(visit, one)) if isinstance(one, Named) else one for key, one in arguments.items()
        }
        return tools.answer(visit.service, USER, name, given, group=visit.group)

    return Case(call, shows)


TOOL_READS: dict[str, list[Case]] = {
    "search_memory": [asking("search_memory", NEAREST, query=ASKED, max_results=20)],
    "get_fact": [asking("get_fact", NEAREST, key=KEY)],
    "list_facts": [asking("list_facts", ALL)],
    "recall": [asking("recall", ALL, query=ASKED, limit=50, min_confidence=0)],
    "fact_history": [asking("fact_history", NEAREST, key=KEY)],
    "list_sessions": [asking("list_sessions")],
    "search_sessions": [asking("search_sessions", query=ASKED)],
    "read_session": [asking("read_session", session_id=SESSION)],
    "list_memory_files": [asking("list_memory_files"), asking("list_memory_files", path="rollout_summaries")],
    "read_memory_file": [asking("read_memory_file", NEAREST, path="MEMORY.md")],
    "search_memory_files": [asking("search_memory_files", NEAREST, queries=["keeper", "They"])],
}
TOOL_WRITES: dict[str, list[Case]] = {
    "store_memory": [asking("store_memory", question=QUESTION, answer="none")],
    "set_fact": [asking("set_fact", key=KEY, value="none")],
    "rename_session": [asking("rename_session", session_id=SESSION, name="renamed")],
    "clear_session": [asking("clear_session", name="put aside")],
    "resume_session": [asking("resume_session", session_id=SESSION)],
    "add_memory_note": [asking("add_memory_note", note="a note")],
    "clear_memory": [asking("clear_memory", question=QUESTION)],
    "clear_fact": [asking("clear_fact", key=KEY)],
    "forget": [
        asking("forget", kind="document", id=DOCUMENT),
        asking("forget", kind="context", id=PAIR),
        asking("forget", kind="session", id=SESSION),
    ],
}


def test_every_method_and_tool_is_in_the_walk() -> None:
    assert methods_for_a_user(Service) - OF_THE_USER == {*READS, *WRITES, *FORGETS}
    assert methods_for_a_user(Library) == set(LIBRARY)
    assert set(tools.ALL_TOOLS) == {*TOOL_READS, *TOOL_WRITES}


def walk(*tables: dict[str, list[Case]]) -> list[tuple[str, Case]]:
    return [(name, case) for table in tables for name, cases in table.items() for case in cases]


LOOKED_UP = walk(READS, {name: cases for name, cases in LIBRARY.items() if name != "ingest"}, TOOL_READS)
CHANGED = walk({"ingest": LIBRARY["ingest"]}, WRITES, TOOL_WRITES, FORGETS)


def answer(case: Case, visit: Visit) -> str:
    """What it shows, or the error: that something is not there is an answer too."""
    try:
        found = case.call(visit)
        return repr(sorted(found) if isinstance(found, set) else found)
    except ShepherdError as error:
        return repr(error)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "transcripts"


@pytest.mark.parametrize("group", WORDS)
def test_each_group_is_shown_what_it_sees_and_changes_what_is_its_own(
    url: str, other_url: str, folder: Path, clock: ManualClock, group: str
) -> None:
    with memory(url, clock, "http://127.0.0.1:9") as service:
        for each in (MAIN, BETA, GLOBAL):
            furnish(service, each, folder)
        visit = Visit(service, group, furnish(service, ALPHA, folder), folder)
        shown = [(name, case, answer(case, visit)) for name, case in LOOKED_UP]
        for name, case, text in shown:
            check_shown(name, case, text, group)
        if ALPHA not in SEEN[group]:
            assert [masked(text) for _, _, text in shown] == without_alpha(other_url, clock, visit)
        for name, case in CHANGED:
            check_change(name, case, visit)


def check_shown(name: str, case: Case, text: str, group: str) -> None:
    found = words_in(text)
    assert found <= SEEN[group], name
    assert case.shows == ECHO or group in found, name
    assert case.shows != ALL or found == SEEN[group], name
    assert ALPHA in SEEN[group] or ALPHA not in text, name


def check_change(name: str, case: Case, visit: Visit) -> None:
    before = rows_by_group(visit.service.database)
    check_shown(name, case, answer(case, visit), visit.group)
    after = rows_by_group(visit.service.database)
    if not (case.reaches_all and visit.group == MAIN):
        changed = {group for group in after if after[group] != before.get(group)}
        assert changed <= {visit.group}, name


def without_alpha(url: str, clock: ManualClock, visit: Visit) -> list[str]:
    """What the group is shown where alpha never was: no row, hit, count, score or name may differ."""
    with memory(url, clock, "http://127.0.0.1:9") as service:
        for each in (MAIN, BETA, GLOBAL):
            furnish(service, each, visit.folder)
        alone = Visit(service, visit.group, visit.ids, visit.folder)
        return [masked(answer(case, alone)) for _, case in LOOKED_UP]


def masked(text: str) -> str:
    """Without what is random."""
    return re.sub(r"[0-9a-f]{12,}", "random", text)


def test_only_main_and_its_own_group_read_a_transcript_on(url: str, folder: Path, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        furnish(service, ALPHA, folder)
        path = transcript_of(ALPHA, folder)
        append(path, [user_line(2, "my cup is a newt")])
        for group in (BETA, GLOBAL):
            found = service.transcripts.ingest(USER, path, folder, group=group)
            assert (found.outcome, found.entries) == (ELSEWHERE, 0)
            assert ALPHA not in found.problem
            assert not service.documents(USER, source="claude-code", group=group)
        assert service.transcripts.ingest(USER, path, folder).entries == 1
        assert service.transcripts.ingest(USER, path, folder, reimport=True).entries == 3
        (file,) = service.transcripts.files(USER)
        assert file.group_name == ALPHA
        read = service.documents(USER, source="claude-code")
        assert {one.group_name for one in read} == {ALPHA}
        assert len(read) == 3


def test_what_is_forgotten_of_a_transcript_is_forgotten_in_its_group(
    url: str, folder: Path, clock: ManualClock
) -> None:
    with memory(url, clock) as service:
        for group in (ALPHA, BETA):
            furnish(service, group, folder)
        assert not service.forget(USER, session="session").total
        assert service.forget(USER, session="session", group=ALPHA).documents == 2
        assert len(list(service.transcripts.read(USER, "session", group=BETA))) == 2
        again = service.transcripts.ingest(USER, transcript_of(ALPHA, folder), folder, reimport=True)
        assert again.entries == 0


def test_a_conversation_is_extracted_in_its_group(
    url: str, folder: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, min_conversation_messages=1) as service:
        furnish(service, ALPHA, folder)
        clock.advance(86_400)
        assert service.transcripts.poll()
        assert {of_work_key(item.key) for item in service.items(USER, group=ALPHA)} == {
            (SESSION, ALPHA),
            ("session", ALPHA),
        }
        drain(service, clock)
        service.transcripts.poll()
        read = service.conversations(USER, source="claude-code", group=ALPHA)
        assert [one.status for one in read] == ["archived"]
        assert service.conversations(USER, group=BETA) == []
        (kettle,) = [fact for fact in service.facts(USER) if fact.key == "kettle"]
        assert kettle.group_name == ALPHA
        assert service.facts(USER, group=BETA) == []
