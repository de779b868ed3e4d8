"""No user sees, changes or deletes another's row: every function that takes a user_id has a case here."""

import importlib
import inspect
import io
import itertools
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import shepherd_memory
from shepherd_memory import tools
from shepherd_memory.archives import markdown
from shepherd_memory.archives.catalog import ArchiveCatalog, ArchivedSession
from shepherd_memory.config.identity import is_known
from shepherd_memory.consolidation import hand_changes, selection
from shepherd_memory.consolidation import planning as consolidation_planning
from shepherd_memory.consolidation.editing import EditedSection
from shepherd_memory.consolidation.files import files_in_use, groups_with_files, read_files
from shepherd_memory.consolidation.selection import Snapshot
from shepherd_memory.conversations import conversation, life_cycle, turns
from shepherd_memory.conversations.grouping import Grouping, Origin, SaidEntry
from shepherd_memory.embedding import backlog
from shepherd_memory.errors import NotFound
from shepherd_memory.extraction import guard, queue
from shepherd_memory.extraction.answer import ExtractionAnswer
from shepherd_memory.extraction.guard import Proposal, Review
from shepherd_memory.extraction.queue import KIND, QueuedMessage
from shepherd_memory.injection import (
    handing_on,
    log,
    prompting,
    recording,
    session_reader,
    stored_blocks,
)
from shepherd_memory.injection.beginning import Beginning, begin
from shepherd_memory.injection.block import MemoryBlock
from shepherd_memory.injection.handing_on import HandingRules, PreviousRequest
from shepherd_memory.injection.injector import InjectionRequest
from shepherd_memory.injection.log import LoggedPrompt
from shepherd_memory.injection.prompt_injection import PromptInjection
from shepherd_memory.injection.stored_blocks import GivenBlock, StoredBlock
from shepherd_memory.injection.turns import UserTurn
from shepherd_memory.intake import alignment, store
from shepherd_memory.intake.exchange import AnsweredExchange, Exchange, ResponseLink
from shepherd_memory.intake.messages import Message
from shepherd_memory.intake.store import IntakeOptions
from shepherd_memory.maintenance import (
    erasure,
    forgetting,
    imported_deletions,
    portability,
    reindexing,
    related,
    session_lines,
)
from shepherd_memory.maintenance.exported_conversations import conversation_rows, insert_conversation
from shepherd_memory.maintenance.exported_outputs import lost_a_message, output_rows
from shepherd_memory.maintenance.exported_sections import consolidation_rows, section_rows
from shepherd_memory.maintenance.related import Bundle, Forgettable
from shepherd_memory.maintenance.same_said import find_same
from shepherd_memory.memory import (
    api_keys,
    context,
    documents,
    entries,
    facts,
    global_memory,
    group_catalog,
    rejections,
    responses,
    restatements,
    saved_chats,
    session_catalog,
    session_documents,
    session_history,
    session_lives,
    session_openings,
    session_tail,
    sessions,
    set_aside,
    threads,
    twins,
    unconfirmed,
)
from shepherd_memory.memory.documents import Facets, NewDocument
from shepherd_memory.memory.rejections import NewRejection
from shepherd_memory.memory.responses import StoredResponse
from shepherd_memory.memory.saved_chats import InputHistory, SavedChat
from shepherd_memory.memory.session_history import ResumeRequest
from shepherd_memory.memory.session_lives import IdleRule, NewSession
from shepherd_memory.memory.unconfirmed import NewUnconfirmed
from shepherd_memory.mirrors import memory_files
from shepherd_memory.mirrors.manifest import owner_of
from shepherd_memory.phases import (
    candidates,
    dirtiness,
    outputs,
    planning,
    refusal,
    sections,
    storing,
    summary_rows,
    usage,
    withholding,
)
from shepherd_memory.phases.answer import NoteAnswer
from shepherd_memory.phases.outputs import Output
from shepherd_memory.phases.rules import PhaseRules
from shepherd_memory.phases.sections import NewSection
from shepherd_memory.phases.storing import WrittenNote
from shepherd_memory.phases.summary_rows import SummaryScope
from shepherd_memory.recall import Hit, Recalled, rows, user_index
from shepherd_memory.recall import filters as recall_within
from shepherd_memory.recall.hits import Scope
from shepherd_memory.service import Service
from shepherd_memory.storage import erasures, prompt_blocks, tombstones, transcript_stops, users
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.group_ids import ids_of_group, ids_shown
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.text.ids import fits_header
from shepherd_memory.tools import advanced, basic
from shepherd_memory.tools import files as file_tools
from shepherd_memory.tools import sessions as session_tools
from shepherd_memory.tools.tool import Arguments
from shepherd_memory.transcripts import files, ingestion
from shepherd_memory.transcripts.both_ways import find_heard, give_way
from shepherd_memory.transcripts.ingestion import IngestOptions
from shepherd_memory.transcripts.library import Library
from shepherd_memory.work import claims, jobs, ledger
from tests.contract.given import (
    NOON,
    ManualClock,
    everything_of,
    examples,
    facts_of,
    memory,
    pairs_of,
    user_says,
)
from tests.transcripts import BEGAN, agent_line, exchange, user_line, write

NOW = NOON + 1_000_000
WHERE = Provenance(NOW, "test", "chat", "m1")
PARKED, WAITING, RUNNING, REFUSED, LOGGED, CONVERSATION, RESTATED, KEPT, SECTION = range(5000, 5009)
"""Ids that both users have."""

TURN = UserTurn(0, "Where?", "key", "start")

numbers = itertools.count()


@dataclass
class Pair:
    """Two users whose rows have the same keys and ids, and differ in one word."""

    service: Service
    me: str
    other: str

    mine = "AdasWord"
    others = "BobsWord"

    @property
    def database(self) -> Database:
        return self.service.database


@pytest.fixture(scope="module")
def service(module_url: str) -> Iterator[Service]:
    with memory(module_url, ManualClock(NOW), "http://127.0.0.1:9") as opened:
        yield opened


@pytest.fixture
def pair(service: Service) -> Pair:
    number = next(numbers)
    both = Pair(service, f"ada{number}", f"bob{number}")
    for step in FURNISHING:
        step(service, both.me, both.mine)
        step(service, both.other, both.others)
    return both


def output_of(word: str) -> Output:
    """The output of the conversation that both have; its note is the answer that both have."""
    moment = from_us(NOW)
    about = ("main", CONVERSATION, "chat", FIRST_DOCUMENT, moment)
    return Output(*about, word, word, "slug", "", "succeeded", "kept", "m2", "m", moment)


def section_of(word: str) -> NewSection:
    """A section of the conversation that both have."""
    return NewSection("MEMORY.md", word, word, NOW, word, sources=(CONVERSATION,))


def _insert_rows(service: Service, user_id: str, word: str) -> None:
    with service.database.write() as tx:
        rejections.insert(tx, user_id, REFUSED, NewRejection("fact", "pet", word, "not said", "", WHERE), NOW)
        kept = NewUnconfirmed("fact", "pet", word, "reworded", "", word, "self", WHERE)
        unconfirmed.insert(tx, user_id, KEPT, kept, NOW)
        ledger.record(tx, user_id, ledger.EXTRACTION, ledger.TokenCost(1, 0, 5, 5), NOW)
        tombstones.add(tx, user_id, tombstones.FACT, "gone", NOW)
        tombstones.add(tx, user_id, tombstones.WORDS, "gone", NOW)
        restatements.add(tx, user_id, RESTATED, "fact", "city", word, WHERE)
        for job_id, status in ((PARKED, "failed"), (WAITING, "waiting"), (RUNNING, "running")):
            tx.execute(
                "insert into jobs (user_id, id, kind, key, status, turn, claims, tries_left, queued_at,"
                " outcome) values (:user_id, :id, 'extract', 'chat', :status, 0, 1, 3, 0, :word)",
                user_id=user_id,
                id=job_id,
                status=status,
                word=word,
            )
        tx.execute(
            "insert into vectors (user_id, id, part, model, seq, embedding)"
            " values (:user_id, 1, 0, 'm', 1, :vector)",
            user_id=user_id,
            vector=service.database.vector([1.0, 0.0]),
        )
        grouping = Grouping([], 0)
        grouping.add(SaidEntry(FIRST_DOCUMENT, NOW), CONVERSATION)
        grouping.save(tx, user_id, Origin("chat", cwd=word), NOW)
        conversation.set_status(tx, user_id, CONVERSATION, "active", "skipped", NOW)
        responses.put(tx, user_id, "resp_both", StoredResponse(word, 4, word), NOW)
        kept = StoredBlock(MemoryBlock(word, 1, (), ()), entries=(("document", FIRST_DOCUMENT),))
        stored_blocks.save(tx, user_id, "main", TURN, kept, 1, NOW)
        tx.execute(
            "insert into session_history (user_id, id, group_name, session_id, name, created_at, archived_at)"
            " values (:user_id, 1, 'main', 'chat', :word, 1, 2)",
            user_id=user_id,
            word=word,
        )
        session_lives.take_place(tx, user_id, "life", word)
        outputs.put(tx, user_id, output_of(word))
        version = dirtiness.next_version(tx, user_id, "main", "agent", word, NOW)
        sections.add(tx, user_id, "main", SECTION, section_of(word), version, NOW)
        dirtiness.mark(tx, user_id, "main", NOW)
        prompting_row = {"user_id": user_id, "word": word, "id": LOGGED}
        tx.execute(
            "insert into injections (user_id, id, request, session_id, query, kind, entry_id, score,"
            " confidence, injected_at) values (:user_id, :id, 'r', 'chat', :word, 'document', 1, 1, 1, 0)",
            **prompting_row,
        )


FURNISHING: list[Callable[[Service, str, str], Any]] = [
    lambda service, user, word: service.remember(
        user,
        [user_says(f"my city is {word}", id="m1"), {"role": "assistant", "content": word, "id": "m2"}],
        "chat",
    ),
    lambda service, user, word: service.set_fact(user, "city", f"old {word}"),
    lambda service, user, word: service.set_fact(user, "city", word),
    lambda service, user, word: service.add_context(user, "Where?", word),
    lambda service, user, word: service.add_context(user, "The same?", "the same"),
    lambda service, user, word: service.add_document(user, word, session_id="files", message_id="d1"),
    lambda service, user, word: service.remember(user, [user_says(word)], "stored only", extract=False),
    lambda service, user, word: service.start_session(user, session_id="life", agent_name=word),
    lambda service, user, word: service.end_session(user, "life"),
    lambda service, user, word: service.start_session(
        user, session_id="handed", previous_transcript=[{"role": "user", "text": word}]
    ),
    lambda service, user, word: service.end_session(user, "handed"),
    lambda service, user, word: service.start_session(user, session_id="life", agent_name=word),
    _insert_rows,
    lambda service, user, word: service.set_global_memory(user, word),
]

FIRST_DOCUMENT, FIRST_PAIR = 1, 6


def in_transaction(function: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[[Pair], Any]:
    """A case that calls a function of the core for me, with arguments that fit the other as well."""

    def call(pair: Pair) -> Any:
        with pair.database.write() as tx:
            return function(tx, pair.me, *arguments, **options)

    return call


def on_database(function: Callable[..., Any], *arguments: Any) -> Callable[[Pair], Any]:
    return lambda pair: function(pair.database, pair.me, *arguments)


def on_service(name: str, *arguments: Any, **options: Any) -> Callable[[Pair], Any]:
    return lambda pair: getattr(pair.service, name)(pair.me, *arguments, **options)


def tool(name: str, **arguments: Any) -> Callable[[Pair], Any]:
    """A case in which the model tries to speak for the other."""
    return lambda pair: tools.execute(pair.service, pair.me, name, {**arguments, "_user_id": pair.other})


def by_tool(function: Callable[..., Any], **arguments: Any) -> Callable[[Pair], Any]:
    return lambda pair: function(pair.service, pair.me, Arguments({**arguments, "_user_id": pair.other}))


def with_saved_chats(use: Callable[[str], Any]) -> Callable[[Pair], Any]:
    """A case for files: both have a saved chat and a history for the same folder and provider."""

    def call(pair: Pair) -> Any:
        for user_id, word in ((pair.me, pair.mine), (pair.other, pair.others)):
            message = {"role": "user", "content": word, "id": "m1"}
            saved_chats.save(user_id, "/work", "lab", SavedChat("chat", [message]))
            InputHistory(user_id).add(word)
        result = use(pair.me)
        theirs = saved_chats.load(pair.other, "/work", "lab")
        assert theirs is not None
        assert theirs.messages[0]["content"] == pair.others
        assert InputHistory(pair.other).entries() == [pair.others]
        return result, InputHistory(pair.me).entries()

    return call


def _export_of_me(pair: Pair) -> Any:
    return list(portability.export(pair.database, pair.me, NOW))


def _import(pair: Pair) -> Any:
    lines = io.BytesIO(b"".join(_export_of_me(pair)))
    return portability.import_user(pair.database, pair.me, lines, NOW, lambda size: None)


def _import_sections(pair: Pair) -> Any:
    """Into a memory that has lost what was consolidated."""
    lines = io.BytesIO(b"".join(_export_of_me(pair)))
    with pair.database.write() as tx:
        (section,) = sections.current(tx, pair.me, "main")
        sections.end(tx, pair.me, section, 2)
        for table in ("section_sources", "memory_sections", "memory_versions", "consolidations"):
            tx.execute(f"delete from {table} where user_id = :user_id", user_id=pair.me)
    found = portability.import_user(pair.database, pair.me, lines, NOW, lambda size: None)
    with pair.database.read() as connection:
        return found, sections.current(connection, pair.me, "main")


def _refused_of_me(pair: Pair) -> rejections.Rejection:
    with pair.database.write() as tx:
        (found,) = rejections.listing(tx, pair.me)
    return found


def _accept_by_hand(pair: Pair) -> Any:
    refused = _refused_of_me(pair)
    with pair.database.write() as tx:
        return guard.admit_by_hand(tx, pair.me, 9000, refused, NOW)


def _refuse_by_hand(pair: Pair) -> Any:
    with pair.database.write() as tx:
        (kept,) = unconfirmed.listing(tx, pair.me, NOW)
        return guard.refuse_by_hand(tx, pair.me, 9000, kept, NOW)


def _index_again(pair: Pair) -> Any:
    with pair.database.write() as tx:
        tx.execute("delete from entries where user_id = :me", me=pair.me)
        tx.execute("delete from unembedded where user_id = :me", me=pair.me)
        tx.execute("delete from postings where user_number = :me", me=entries.number_of(tx, pair.me))
    missing = reindexing.index_missing(pair.database, pair.me, NOW)
    assert missing >= 7
    return missing


def _extend_index(pair: Pair) -> Any:
    with pair.database.read() as connection:
        version = user_index.version_of(connection, pair.me)
        assert version is not None
        return user_index.extend(pair.database, connection, user_index.empty(version), pair.me, version, "m")


def _run_injection(pair: Pair) -> Any:
    asked = InjectionRequest(pair.me, [user_says("Where is my city, AdasWord or bobsword?")], "chat", "main")
    return pair.service.run_injection(pair.me, PromptInjection(pair.service.injector, asked))


ENTRY = entries.Entry(9000, "document", "chat", "user", "", NOW, Counter(["adasword"]))
BLOCK = MemoryBlock("text", 1, ("city",), (FIRST_DOCUMENT,))
GIVEN = GivenBlock(StoredBlock(BLOCK, entries=(("document", FIRST_DOCUMENT),)), 1, NOW)
LOGGED_PROMPT = LoggedPrompt("r2", "chat", "Where?")
HIT = Hit(FIRST_DOCUMENT, "document", "text", 1.0, 1.0, from_us(NOW), "chat", "m1", "user", "")
MESSAGE = user_says("my city is Rome", id="m3")
EXCHANGE = AnsweredExchange(Exchange("opening", 0, "my city is Rome", ""), "an answer", "chat", NOW)
STORABLE = Message("m3", "user", "my city is Rome", None, "", "human", "", NOW)
SAID = [QueuedMessage(1, "m1", NOW, "my city is AdasWord")]
REVIEW = Review(
    (Proposal("fact", "city", "Rome", WHERE), Proposal("context", "Where?", "Rome", WHERE, FIRST_PAIR)), ()
)
NEW = NewDocument("chat", "m1", "text", NOW)

LED = {
    "group_name": "main",
    "status": "active",
    "name": "",
    "agent_name": "Julian",
    "started_at": NOW,
    "ended_at": None,
    "end_reason": "",
    "previous_session": "chat",
    "handed_in": None,
    "last_seen_at": NOW,
}
SESSION_LINE = {
    "session_id": "chat",
    "group_name": "main",
    "wanted_through": "m1",
    "extracted_through": "m1",
    "grouped_through": "",
    "provider": "",
    "cwd": "",
    "memory_mode": "on",
    "created_at": NOW,
    "updated_at": NOW,
}
DELETION = {"group_name": "main", "deleted_at": NOW * 2}
HANDING = HandingRules(2000, "", ("knowledge",))
BEGINNING = replace(HANDING, global_tokens=500, summary_tokens=800)
AT_NOW, MUCH_LATER = IdleRule(NOW, 1_000_000), IdleRule(NOW * 2, 1_000_000)


def _close_life(pair: Pair) -> Any:
    with pair.database.write() as tx:
        life = session_lives.get(tx, pair.me, "life")
        assert life is not None
        return session_lives.close(tx, pair.me, life, "client", NOW)


def with_life(
    function: Callable[..., Any], *arguments: Any, session_id: str = "life"
) -> Callable[[Pair], Any]:
    """A case that calls a function for me with where my session is in its life."""

    def call(pair: Pair) -> Any:
        with pair.database.write() as tx:
            return function(tx, pair.me, session_lives.get(tx, pair.me, session_id), *arguments)

    return call


def _archived(pair: Pair) -> ArchivedSession:
    """My session as it is archived."""
    with pair.database.read() as connection:
        found = ArchiveCatalog(connection, pair.me).find("chat")
    assert found is not None
    return found


def _written(name: str) -> Callable[[Pair], Any]:
    """All that a method writes for me into a folder."""

    def call(pair: Pair) -> Any:
        with TemporaryDirectory() as folder:
            getattr(pair.service, name)(pair.me, Path(folder))
            return [path.read_text() for path in sorted(Path(folder).rglob("*.md"))]

    return call


def _settle_life(pair: Pair) -> Any:
    with pair.database.write() as tx:
        life = session_lives.get(tx, pair.me, "life")
        assert session_lives.settled(tx, pair.me, life, AT_NOW) == life
        return session_lives.settled(tx, pair.me, life, MUCH_LATER)


Case = Callable[[Pair], Any]

FORGETTABLE = [
    Forgettable("fact", "city"),
    Forgettable("context", str(FIRST_PAIR)),
    Forgettable("document", str(FIRST_DOCUMENT)),
    Forgettable("question", "Where?"),
    Forgettable("session", "chat"),
]


def with_output(function: Callable[..., Any], *arguments: Any) -> Case:
    """A case that is given my output, or what belongs to it."""

    def call(pair: Pair) -> Any:
        with pair.database.write() as tx:
            mine = outputs.get(tx, pair.me, CONVERSATION, "main")
            assert mine is not None
            return function(tx, pair.me, mine, *arguments)

    return call


def with_section(function: Callable[..., Any], *arguments: Any, many: bool = True) -> Case:
    """A case that is given my section."""

    def call(pair: Pair) -> Any:
        with pair.database.write() as tx:
            (mine,) = sections.current(tx, pair.me, "main")
            return function(tx, pair.me, [mine] if many else mine, *arguments)

    return call


def with_conversation(function: Callable[..., Any], *before: Any, after: tuple[Any, ...] = ()) -> Case:
    """A case that is given my conversation."""

    def call(pair: Pair) -> Any:
        with pair.database.write() as tx:
            mine = conversation.get(tx, pair.me, CONVERSATION)
            return function(tx, pair.me, *before, mine, *after)

    return call


def _queue_note(pair: Pair) -> Any:
    with pair.database.read() as connection:
        mine = conversation.get(connection, pair.me, CONVERSATION)
    assert mine is not None
    return planning.queue(pair.database, pair.me, [mine], lambda one: True, NOW)


def _remove_note(pair: Pair) -> Any:
    with pair.database.write() as tx:
        note = session_documents.get_message(tx, pair.me, "chat", "m2")
        assert note is not None
        return outputs.remove_note(tx, pair.me, note)


def _withhold_messages(pair: Pair) -> Any:
    with pair.database.write() as tx:
        said = session_documents.of_session(tx, pair.me, "chat", 10)
        return withholding.withhold_messages(tx, pair.me, said)


def _insert_output(pair: Pair) -> Any:
    lines = [orjson.loads(line) for line in _export_of_me(pair)]
    return portability.import_user(
        pair.database,
        pair.me,
        io.BytesIO(
            b"".join(orjson.dumps(line) + b"\n" for line in lines if line.get("line") in (None, "output"))
        ),
        NOW,
        lambda size: None,
    )


PHASE_RULES = PhaseRules(0, 2 * NOW, 0, frozenset({"*"}))
WRITTEN = WrittenNote(NoteAnswer("AdasWord is a city", "AdasWord", "ada"))


def _find_same(pair: Pair) -> Any:
    with pair.database.read() as connection:
        bundle = related.gather(connection, pair.me, FORGETTABLE[:-1])
        return find_same(connection, pair.me, bundle)


def _add_written_by_hand(pair: Pair) -> Any:
    with pair.database.write() as tx:
        tx.execute("update memory_sections set written_by = 'user'")
        bundle = related.take(tx, pair.me, FORGETTABLE[:-1])
        related.add_written_by_hand(tx, pair.me, bundle, "main")
        tx.execute("update memory_sections set written_by = 'agent'")
        return bundle


def _pinned_around(pair: Pair) -> Any:
    with pair.database.write() as tx:
        tx.execute("update memory_sections set written_by = 'user'")
        said = [one for one in [documents.get(tx, pair.me, FIRST_DOCUMENT)] if one is not None]
        found = withholding.pinned_around(tx, pair.me, said)
        tx.execute("update memory_sections set written_by = 'agent'")
        return found


def _statements_of_pair(pair: Pair) -> Any:
    with pair.database.read() as connection:
        found = context.get(connection, pair.me, FIRST_PAIR)
        assert found is not None
        return context.statements_of(connection, pair.me, found)


CORE: dict[str, list[Case]] = {
    "memory.context.delete": [in_transaction(context.delete, FIRST_PAIR, NOW)],
    "memory.context.get": [in_transaction(context.get, FIRST_PAIR)],
    "memory.context.listing": [in_transaction(context.listing)],
    "memory.context.of_message": [in_transaction(context.of_message, "", "")],
    "memory.context.newest": [in_transaction(context.newest, 100)],
    "memory.context.of_session": [in_transaction(context.of_session, "")],
    "memory.context.put": [
        in_transaction(context.put, 9000, "The same?", "the same", WHERE, NOW),
        in_transaction(context.put, 9000, "Where then?", "There", WHERE, NOW, FIRST_PAIR),
    ],
    "memory.context.put_by_hand": [
        in_transaction(context.put_by_hand, 9000, "Where?", "BobsPlace", WHERE, NOW)
    ],
    "memory.context.replace_answer": [
        in_transaction(context.replace_answer, FIRST_PAIR, 9000, "BobsPlace", WHERE, NOW),
        in_transaction(context.replace_answer, 9999, 9000, "Nowhere", WHERE, NOW),
    ],
    "intake.alignment.align": [
        in_transaction(alignment.align, "chat", [replace(STORABLE, is_unnamed=True)], 9000)
    ],
    "memory.session_tail.read_live": [in_transaction(session_tail.read_live, "chat")],
    "memory.session_tail.read_tail": [in_transaction(session_tail.read_tail, "chat", 10)],
    "memory.session_documents.last_said": [in_transaction(session_documents.last_said, "chat")],
    "memory.documents.delete": [in_transaction(documents.delete, FIRST_DOCUMENT)],
    "memory.session_documents.delete_session": [in_transaction(session_documents.delete_session, "chat")],
    "memory.documents.get": [in_transaction(documents.get, FIRST_DOCUMENT)],
    "memory.session_documents.get_message": [in_transaction(session_documents.get_message, "chat", "m1")],
    "memory.session_documents.message_ids": [in_transaction(session_documents.message_ids, "chat")],
    "memory.documents.insert": [in_transaction(documents.insert, 9000, [NEW], NOW)],
    "memory.documents.select": [
        in_transaction(documents.select, Facets()),
        in_transaction(documents.select, Facets(session_id="chat"), 0, 0, 10, True),
        in_transaction(documents.select, Facets(), before_id=FIRST_DOCUMENT + 1),
    ],
    "memory.session_documents.statements": [
        in_transaction(session_documents.statements, "chat", 0, 10**9, 100)
    ],
    "embedding.backlog.size_of": [in_transaction(backlog.size_of)],
    "memory.entries.add": [in_transaction(entries.add, [ENTRY], NOW)],
    "memory.entries.number_of": [in_transaction(entries.number_of)],
    "memory.entries.remove": [in_transaction(entries.remove, FIRST_DOCUMENT, "my city is BobsWord")],
    "memory.entries.restate": [in_transaction(entries.restate, FIRST_DOCUMENT, NOW)],
    "maintenance.erasure.count_rows": [on_database(erasure.count_rows)],
    "maintenance.erasure.erase": [on_database(erasure.erase, NOW)],
    "memory.facts.delete": [in_transaction(facts.delete, "city", NOW)],
    "memory.facts.delete_session": [in_transaction(facts.delete_session, "", NOW)],
    "memory.facts.get": [in_transaction(facts.get, "city")],
    "memory.facts.of_message": [in_transaction(facts.of_message, "", "")],
    "memory.facts.history": [in_transaction(facts.history, "city")],
    "memory.facts.listing": [in_transaction(facts.listing)],
    "memory.facts.stated": [in_transaction(facts.stated, ["city"])],
    "memory.facts.nearest": [in_transaction(facts.nearest, "city", "main")],
    "memory.facts.nearest_history": [in_transaction(facts.nearest_history, "city", "main")],
    "memory.facts.ids_told": [in_transaction(facts.ids_told, ["city"], "main")],
    "memory.facts.profile": [in_transaction(facts.profile, "main")],
    "memory.facts.put": [in_transaction(facts.put, "city", "Rome", WHERE, NOW, 9000)],
    "memory.facts.put_by_hand": [in_transaction(facts.put_by_hand, "city", "Rome", WHERE, NOW, 9000)],
    "storage.erasures.record": [in_transaction(erasures.record, NOW)],
    "storage.erasures.is_erased_since": [in_transaction(erasures.is_erased_since, NOW)],
    "maintenance.forgetting.forget_part": [in_transaction(forgetting.forget_part, "chat", NOW, "main")],
    "maintenance.forgetting.forget_rows": [
        in_transaction(forgetting.forget_rows, Bundle(keys={"city"}), NOW, "main")
    ],
    "maintenance.imported_deletions.carry_out": [
        in_transaction(
            imported_deletions.carry_out, {**DELETION, "kind": kind, "key": key, "session_id": within}
        )
        for kind, key, within in (
            ("fact", "city", ""),
            ("context", context.digest("The same?", "the same"), ""),
            ("document", "m1", "chat"),
            ("session", "empty", ""),
        )
    ]
    + [
        in_transaction(
            imported_deletions.carry_out,
            {
                "group_name": "global",
                "kind": "global_memory",
                "key": "",
                "session_id": "",
                "deleted_at": NOW * 2,
            },
        )
    ],
    "memory.context.of_digest": [
        in_transaction(context.of_digest, context.digest("The same?", "the same"), "main")
    ],
    "maintenance.forgetting.forget": [
        on_database(forgetting.forget, target, NOW, "main", only, same)
        for target in FORGETTABLE
        for only, same in ((False, False), (True, False), (False, True))
    ],
    "maintenance.forgetting.messages_to_go": [
        on_database(forgetting.messages_to_go, target, "main", True) for target in FORGETTABLE
    ],
    "maintenance.forgetting.plan": [on_database(forgetting.plan, target) for target in FORGETTABLE],
    "maintenance.related.gather": [in_transaction(related.gather, FORGETTABLE[:-1])],
    "maintenance.related.take": [in_transaction(related.take, FORGETTABLE[:-1])],
    "maintenance.same_said.find_same": [_find_same],
    "memory.context.of_question": [in_transaction(context.of_question, "Where?")],
    "memory.context.statements_of": [_statements_of_pair],
    "memory.session_documents.last_calls": [in_transaction(session_documents.last_calls, "chat", 10)],
    "memory.session_documents.notes_of": [in_transaction(session_documents.notes_of, "chat", "m1")],
    "memory.facts.delete_statement": [in_transaction(facts.delete_statement, "chat", "m1", NOW)],
    "memory.facts.past_of_message": [in_transaction(facts.past_of_message, "chat", "m1")],
    "memory.facts.statements_of": [in_transaction(facts.statements_of, "city")],
    "memory.restatements.add": [in_transaction(restatements.add, 9000, "fact", "city", "Rome", WHERE)],
    "memory.restatements.delete_key": [in_transaction(restatements.delete_key, "fact", "city")],
    "memory.restatements.delete_statements": [
        in_transaction(restatements.delete_statements, "chat"),
        in_transaction(restatements.delete_statements, "chat", "m1"),
    ],
    "memory.restatements.of_key": [in_transaction(restatements.of_key, "fact", "city")],
    "memory.restatements.of_message": [in_transaction(restatements.of_message, "chat", "m1")],
    "memory.restatements.rename": [in_transaction(restatements.rename, "fact", "city", "town")],
    "storage.tombstones.add_all": [in_transaction(tombstones.add_all, tombstones.FACT, [("city", "", NOW)])],
    "storage.tombstones.buried_messages": [in_transaction(tombstones.buried_messages, "chat")],
    "storage.tombstones.buried_words": [in_transaction(tombstones.buried_words, ["gone"])],
    "storage.tombstones.deleted_at": [in_transaction(tombstones.deleted_at, tombstones.FACT, "gone")],
    "storage.tombstones.is_buried": [in_transaction(tombstones.is_buried, WHERE)],
    "storage.tombstones.spared_messages": [in_transaction(tombstones.spared_messages, "chat")],
    "storage.tombstones.take_back": [in_transaction(tombstones.take_back, tombstones.FACT, "gone", -1)],
    "storage.transcript_stops.forget_file": [in_transaction(transcript_stops.forget_file, "file", 7)],
    "extraction.guard.admit": [in_transaction(guard.admit, 9000, REVIEW, NOW)],
    "extraction.guard.admit_by_hand": [_accept_by_hand],
    "extraction.guard.refuse_by_hand": [_refuse_by_hand],
    "extraction.queue.retry": [on_database(queue.retry, PARKED, NOW)],
    "extraction.guard.review": [
        in_transaction(
            guard.review, "chat", SAID, ExtractionAnswer((("city", "AdasWord"),), (("Where?", "AdasWord"),))
        )
    ],
    "config.identity.is_known": [lambda pair: is_known(pair.me)],
    "text.ids.fits_header": [lambda pair: fits_header(pair.me)],
    "maintenance.reindexing.index_missing": [on_database(reindexing.index_missing, NOW), _index_again],
    "intake.store.add_document": [on_database(store.add_document, NEW, {"a": 1}, NOW)],
    "intake.store.remember_exchange": [
        on_database(store.remember_exchange, EXCHANGE, IntakeOptions(True, True), NOW)
    ],
    "intake.store.store_messages": [
        on_database(store.store_messages, [STORABLE], "chat", "main", IntakeOptions(True, True), True, NOW)
    ],
    "intake.store.remember": [
        on_database(store.remember, [MESSAGE], "chat", "main", IntakeOptions(True, True), True, NOW)
    ],
    "work.claims.is_running": [in_transaction(claims.is_running, KIND, "chat")],
    "work.jobs.defer_user": [in_transaction(jobs.defer_user, KIND, NOW * 2, "later")],
    "work.jobs.drop": [
        in_transaction(jobs.drop, WAITING, "no", NOW),
        in_transaction(jobs.drop, PARKED, "no", NOW),
    ],
    "work.jobs.get": [in_transaction(jobs.get, PARKED)],
    "work.jobs.count_by_status": [
        in_transaction(jobs.count_by_status, KIND),
        in_transaction(jobs.count_by_status, KIND, ["s"]),
    ],
    "work.jobs.count_of": [
        in_transaction(jobs.count_of, KIND, ["waiting", "failed"]),
        in_transaction(jobs.count_of, KIND, ["waiting"], NOW),
        in_transaction(jobs.count_of, KIND, ["waiting"], NOW, ["c", "s"]),
    ],
    "work.jobs.listing": [
        in_transaction(jobs.listing, KIND),
        in_transaction(jobs.listing, KIND, "failed"),
    ],
    "work.jobs.next_turn": [in_transaction(jobs.next_turn, KIND, NOW)],
    "work.jobs.oldest_waiting_of": [in_transaction(jobs.oldest_waiting_of, KIND, 10)],
    "work.jobs.put": [in_transaction(jobs.put, 9000, KIND, "chat", NOW)],
    "work.jobs.retry": [on_database(jobs.retry, PARKED, NOW)],
    "work.jobs.requeue": [in_transaction(jobs.requeue, KIND, "chat")],
    "work.jobs.withdraw": [in_transaction(jobs.withdraw, KIND, "chat", 0, 0)],
    "work.ledger.listing": [in_transaction(ledger.listing)],
    "work.ledger.record": [
        in_transaction(ledger.record, ledger.EXTRACTION, ledger.TokenCost(1, 1, 1, 1), NOW)
    ],
    "work.ledger.spent_on": [in_transaction(ledger.spent_on, ledger.EXTRACTION, NOW)],
    "maintenance.portability.export": [_export_of_me],
    "maintenance.portability.import_user": [_import],
    "injection.prompting.compose": [
        in_transaction(
            prompting.compose,
            [user_says("Where?")],
            Recalled(),
            prompting.PromptBudget(3, 600, 2000),
            prompting.ToldBefore(),
        )
    ],
    "memory.global_memory.get": [in_transaction(global_memory.get)],
    "memory.global_memory.put": [in_transaction(global_memory.put, 9000, "new", NOW)],
    "memory.global_memory.delete": [in_transaction(global_memory.delete, NOW)],
    "memory.global_memory.is_there": [in_transaction(global_memory.is_there, 9000)],
    "injection.beginning.begin": [
        in_transaction(begin, Beginning("main"), BEGINNING),
        in_transaction(begin, Beginning("main", "new", is_stored=True), BEGINNING),
        with_life(
            lambda tx, me, life: begin(tx, me, Beginning("main", "life", life, is_stored=True), BEGINNING)
        ),
    ],
    "phases.summary_rows.folder_of": [in_transaction(summary_rows.folder_of, "chat", "main")],
    "phases.summary_rows.read_conversations": [
        in_transaction(summary_rows.read_conversations, SummaryScope("main")),
        in_transaction(summary_rows.read_conversations, SummaryScope("main", Pair.others)),
    ],
    "phases.summary_rows.read_profile": [in_transaction(summary_rows.read_profile, SummaryScope("main"))],
    "injection.handing_on.find_previous": [
        in_transaction(handing_on.find_previous, PreviousRequest(session_id="chat"), HANDING, "main"),
        in_transaction(handing_on.find_previous, PreviousRequest(current="life"), HANDING, "main"),
        in_transaction(handing_on.find_previous, PreviousRequest(cwd="/work"), HANDING, "main"),
    ],
    "injection.handing_on.hand_on": [
        with_life(handing_on.hand_on, HANDING),
        with_life(handing_on.hand_on, HANDING, session_id="handed"),
    ],
    "injection.handing_on.is_handed_in": [
        in_transaction(handing_on.is_handed_in, "handed", [prompt_blocks.text_mark(Pair.others)], "main")
    ],
    "injection.handing_on.tell_named": [in_transaction(handing_on.tell_named, "chat", HANDING, "main")],
    "injection.handing_on.tell_previous": [with_life(handing_on.tell_previous, HANDING, session_id="handed")],
    "injection.session_reader.read_context": [
        in_transaction(session_reader.read_context, "knowledge", 600, "main")
    ],
    "injection.log.add": [
        in_transaction(log.add, 9000, LOGGED_PROMPT, ["city"], [HIT], [FIRST_DOCUMENT], NOW)
    ],
    "injection.log.listing": [in_transaction(log.listing), in_transaction(log.listing, "r")],
    "injection.log.prune": [in_transaction(log.prune)],
    "injection.recording.record": [
        in_transaction(recording.record, "main", TURN, GIVEN, None, LOGGED_PROMPT, [HIT]),
        in_transaction(recording.record, "main", TURN, GIVEN, GIVEN, LOGGED_PROMPT, [HIT]),
    ],
    "extraction.queue.drop": [on_database(queue.drop, WAITING, "no", NOW)],
    "extraction.queue.remove_document": [in_transaction(queue.remove_document, "chat", FIRST_DOCUMENT)],
    "extraction.queue.put": [in_transaction(queue.put, 9000, "chat", 10**6, NOW)],
    "extraction.queue.queue_session": [on_database(queue.queue_session, "stored only", NOW)],
    "recall.rows.fetch": [
        in_transaction(rows.fetch, [("document", FIRST_DOCUMENT), ("context", FIRST_PAIR), ("fact", 4)])
    ],
    "recall.user_index.extend": [_extend_index],
    "recall.user_index.version_of": [in_transaction(user_index.version_of)],
    "memory.set_aside.delete_message": [in_transaction(set_aside.delete_message, "chat", "m1")],
    "memory.set_aside.delete_session": [in_transaction(set_aside.delete_session, "chat")],
    "memory.set_aside.insert": [
        in_transaction(
            set_aside.insert, 9000, NewRejection("fact", "a", "b", "c", "", WHERE), NOW, set_aside.REJECTIONS
        )
    ],
    "memory.rejections.insert": [
        in_transaction(rejections.insert, 9000, NewRejection("fact", "a", "b", "c", "", WHERE), NOW)
    ],
    "memory.rejections.listing": [in_transaction(rejections.listing)],
    "memory.rejections.take": [in_transaction(rejections.take, REFUSED)],
    "memory.unconfirmed.delete": [in_transaction(unconfirmed.delete, KEPT)],
    "memory.unconfirmed.delete_named": [in_transaction(unconfirmed.delete_named, "fact", "pet")],
    "memory.unconfirmed.insert": [
        in_transaction(
            unconfirmed.insert, 9000, NewUnconfirmed("fact", "a", "b", "c", "", "q", "self", WHERE), NOW
        )
    ],
    "memory.unconfirmed.like": [in_transaction(unconfirmed.like, "fact", "pet", "BobsWord", NOW)],
    "memory.unconfirmed.listing": [in_transaction(unconfirmed.listing, NOW)],
    "memory.unconfirmed.take": [in_transaction(unconfirmed.take, KEPT, NOW)],
    "injection.stored_blocks.has_news": [in_transaction(stored_blocks.has_news, 0, "Where?")],
    "injection.stored_blocks.load": [in_transaction(stored_blocks.load, "main", ["key"])],
    "injection.stored_blocks.load_chain": [in_transaction(stored_blocks.load_chain, "main", "key")],
    "injection.stored_blocks.note_use": [in_transaction(stored_blocks.note_use, "main", ["key"], NOW * 2)],
    "injection.stored_blocks.prune": [in_transaction(stored_blocks.prune, NOW * 2)],
    "injection.stored_blocks.save": [
        in_transaction(stored_blocks.save, "main", TURN, StoredBlock(BLOCK), 1, NOW)
    ],
    "storage.prompt_blocks.withdraw": [in_transaction(prompt_blocks.withdraw, [str(FIRST_DOCUMENT)])],
    "memory.api_keys.forget_name": [in_transaction(api_keys.forget_name)],
    "memory.responses.delete_session": [in_transaction(responses.delete_session, "chat")],
    "memory.responses.find": [in_transaction(responses.find, "resp_both", NOW)],
    "memory.responses.put": [
        in_transaction(responses.put, "resp_both", StoredResponse("chat", 9), NOW),
        in_transaction(responses.put, "resp_new", StoredResponse("chat", 9), NOW),
    ],
    "memory.saved_chats.forget": [
        with_saved_chats(saved_chats.forget),
        with_saved_chats(lambda user_id: saved_chats.forget(user_id, "chat")),
    ],
    "memory.saved_chats.forget_said": [
        with_saved_chats(lambda user_id: saved_chats.forget_said(user_id, {"m1"}, {Pair.mine, Pair.others}))
    ],
    "memory.saved_chats.load": [with_saved_chats(lambda user_id: saved_chats.load(user_id, "/work", "lab"))],
    "memory.saved_chats.of_session": [
        with_saved_chats(lambda user_id: saved_chats.of_session(user_id, "chat"))
    ],
    "memory.saved_chats.put_aside": [
        with_saved_chats(lambda user_id: saved_chats.put_aside(user_id, "chat"))
    ],
    "memory.saved_chats.save": [
        with_saved_chats(lambda user_id: saved_chats.save(user_id, "/work", "lab", SavedChat("chat", [])))
    ],
    "maintenance.session_lines.insert_life": [
        in_transaction(session_lines.insert_life, {**LED, "session_id": "chat"}),
        in_transaction(session_lines.insert_life, {**LED, "session_id": "life"}),
    ],
    "maintenance.session_lines.insert_session": [in_transaction(session_lines.insert_session, SESSION_LINE)],
    "maintenance.session_lines.session_rows": [in_transaction(session_lines.session_rows, "main")],
    "maintenance.session_lines.life_rows": [in_transaction(session_lines.life_rows, "main")],
    "memory.group_catalog.listing": [in_transaction(group_catalog.listing, AT_NOW)],
    "memory.session_catalog.listing": [in_transaction(session_catalog.listing, 100)],
    "memory.session_history.clear": [
        on_database(session_history.clear, "Put aside", AT_NOW),
        on_database(session_history.clear, "", AT_NOW, "main", "chat"),
    ],
    "memory.session_history.entries": [in_transaction(session_history.entries)],
    "memory.session_history.find": [
        in_transaction(session_history.find, "chat"),
        in_transaction(session_history.find, "1"),
    ],
    "memory.session_history.set_mode": [in_transaction(session_history.set_mode, "chat", "off")],
    "memory.session_history.rename": [on_database(session_history.rename, "chat", "Another")],
    "memory.session_history.resume": [
        on_database(session_history.resume, ResumeRequest("chat"), AT_NOW),
        on_database(session_history.resume, ResumeRequest("1", "Put aside", "m1"), AT_NOW),
    ],
    "memory.session_lives.free_lost_place": [on_database(session_lives.free_lost_place)],
    "memory.session_lives.placed": [in_transaction(session_lives.placed)],
    "memory.session_openings.reopen": [with_life(session_openings.reopen, FIRST_DOCUMENT, NOW)],
    "memory.session_openings.resumed_through": [in_transaction(session_openings.resumed_through, "life")],
    "memory.session_lives.active": [in_transaction(session_lives.active)],
    "memory.session_openings.all_handed_in": [in_transaction(session_openings.all_handed_in)],
    "memory.session_lives.close": [_close_life],
    "memory.session_lives.end": [
        on_database(session_lives.end, "life", "client", AT_NOW),
        on_database(session_lives.end, "life", "client", MUCH_LATER),
    ],
    "memory.session_lives.forget": [in_transaction(session_lives.forget, "life")],
    "memory.session_lives.get": [in_transaction(session_lives.get, "life")],
    "memory.session_openings.handed_in": [in_transaction(session_openings.handed_in, "life")],
    "memory.session_lives.holder": [in_transaction(session_lives.holder)],
    "memory.session_lives.leave": [in_transaction(session_lives.leave, "life")],
    "memory.session_lives.nearest": [in_transaction(session_lives.nearest, "life")],
    "memory.session_lives.newest_other": [in_transaction(session_lives.newest_other, "life")],
    "memory.session_openings.set_handed_in": [in_transaction(session_openings.set_handed_in, "handed", "")],
    "memory.session_lives.settled": [_settle_life],
    "memory.session_lives.start": [
        on_database(session_lives.start, NewSession("new", takeover=True), AT_NOW),
        on_database(session_lives.start, NewSession("life", previous="chat", takeover=True), MUCH_LATER),
    ],
    "memory.session_lives.take_place": [in_transaction(session_lives.take_place, "chat")],
    "memory.session_lives.touch": [in_transaction(session_lives.touch, "life", NOW * 2)],
    "memory.sessions.continued": [
        in_transaction(sessions.continued, "chat", 0, NOW),
        in_transaction(sessions.continued, "opening", 0, NOW),
    ],
    "memory.sessions.as_one": [in_transaction(sessions.as_one)],
    "memory.sessions.extend": [
        in_transaction(sessions.extend, "chat", 9000, "main", NOW, True, True),
        in_transaction(sessions.extend, "chat", 9000, "main", NOW, True, False, NOW * 2),
    ],
    "memory.sessions.get": [in_transaction(sessions.get, "chat")],
    "memory.sessions.listing": [in_transaction(sessions.listing)],
    "memory.sessions.mark_queued": [in_transaction(sessions.mark_queued, "chat", 9000)],
    "memory.sessions.size": [in_transaction(sessions.size, "chat")],
    "memory.sessions.settle": [in_transaction(sessions.settle, "chat", KIND)],
    "storage.tombstones.after_deletion": [
        in_transaction(tombstones.after_deletion, tombstones.FACT, "gone", NOW)
    ],
    "storage.tombstones.add": [in_transaction(tombstones.add, tombstones.FACT, "city", NOW)],
    "storage.tombstones.exists": [in_transaction(tombstones.exists, tombstones.FACT, "gone", NOW)],
    "tools.execute": [
        tool("search_memory", query="Where? my city", max_results=50),
        tool("store_memory", question="The same?", answer="the same"),
        tool("clear_memory", question="Where?"),
        tool("set_fact", key="city", value="Rome"),
        tool("get_fact", key="city"),
        tool("clear_fact", key="city"),
    ],
    "tools.answer": [
        lambda pair: tools.answer(pair.service, pair.me, "recall", {"query": "Where?", "min_confidence": 0}),
        lambda pair: tools.answer(pair.service, pair.me, "list_facts", {"_user_id": pair.other}),
    ],
    "tools.basic.clear_fact": [by_tool(basic.clear_fact, key="city")],
    "tools.basic.clear_memory": [by_tool(basic.clear_memory, question="Where?")],
    "tools.basic.get_fact": [by_tool(basic.get_fact, key="city")],
    "tools.basic.search_memory": [by_tool(basic.search_memory, query="Where? my city", max_results=50)],
    "tools.basic.set_fact": [by_tool(basic.set_fact, key="city", value="Rome")],
    "tools.basic.spelled_alike": [lambda pair: basic.spelled_alike(pair.service, pair.me, "City", "main")],
    "tools.basic.store_memory": [by_tool(basic.store_memory, question="The same?", answer="the same")],
    "tools.advanced.fact_history": [by_tool(advanced.fact_history, key="city")],
    "tools.advanced.forget": [
        by_tool(advanced.forget, kind="fact", id="city"),
        by_tool(advanced.forget, kind="context", id=str(FIRST_PAIR)),
        by_tool(advanced.forget, kind="document", id=str(FIRST_DOCUMENT)),
        by_tool(advanced.forget, kind="session", id="chat"),
        by_tool(advanced.forget, kind="session", id="chat", preview=True, same=True),
    ],
    "tools.advanced.list_facts": [by_tool(advanced.list_facts)],
    "tools.advanced.recall": [by_tool(advanced.recall, query="Where? my city", min_confidence=0)],
    "tools.files.add_memory_note": [by_tool(file_tools.add_memory_note, note="a note")],
    "tools.files.list_memory_files": [by_tool(file_tools.list_memory_files)],
    "tools.files.read_memory_file": [by_tool(file_tools.read_memory_file, path="MEMORY.md")],
    "tools.files.search_memory_files": [by_tool(file_tools.search_memory_files, queries=["word"])],
    "tools.sessions.clear_session": [by_tool(session_tools.clear_session, name="Put aside")],
    "tools.sessions.list_sessions": [by_tool(session_tools.list_sessions)],
    "tools.sessions.read_session": [by_tool(session_tools.read_session, session_id="chat")],
    "tools.sessions.rename_session": [
        by_tool(session_tools.rename_session, session_id="chat", name="Another")
    ],
    "tools.sessions.resume_session": [by_tool(session_tools.resume_session, session_id="chat")],
    "tools.sessions.search_sessions": [by_tool(session_tools.search_sessions, query="city")],
    "archives.markdown.marker_of": [
        lambda pair: markdown.marker_of(pair.me, _archived(pair), markdown.DEFAULT_STYLE)
    ],
    "archives.markdown.render": [
        lambda pair: list(markdown.render(pair.database, pair.me, _archived(pair))),
    ],
    "storage.erasures.digest_of_user": [lambda pair: erasures.digest_of_user(pair.me)],
    "storage.group_ids.ids_of_group": [
        lambda pair: in_transaction(ids_of_group, "a")(pair).shown_id(FIRST_DOCUMENT)
    ],
    "storage.group_ids.ids_shown": [
        lambda pair: in_transaction(ids_shown, "a")(pair).shown_id(FIRST_DOCUMENT)
    ],
    "storage.users.lock": [in_transaction(users.lock, NOW)],
    "storage.users.lock_existing": [in_transaction(users.lock_existing)],
    "storage.users.version": [in_transaction(users.version)],
    "storage.users.bump_version": [in_transaction(users.bump_version)],
}

SERVICE: dict[str, list[Case]] = {
    "accept": [on_service("accept", REFUSED)],
    "add_context": [on_service("add_context", "The same?", "the same")],
    "add_document": [on_service("add_document", "text", session_id="files", message_id="d1")],
    "begin_archive": [on_service("begin_archive", "chat")],
    "archived_sessions": [on_service("archived_sessions")],
    "user_version": [on_service("user_version")],
    "archive": [lambda pair: b"".join(pair.service.archive(pair.me, "chat"))],
    "context": [on_service("context")],
    "confirm": [on_service("confirm", KEPT)],
    "count_archives": [on_service("count_archives")],
    "export_archives": [_written("export_archives")],
    "count_items": [
        on_service("count_items", "waiting", "failed"),
        on_service("count_items", "waiting", due=True),
    ],
    "item_counts": [on_service("item_counts")],
    "conversation_counts": [on_service("conversation_counts")],
    "documents": [
        on_service("documents"),
        on_service("documents", session_id="chat", since="2000-01-01"),
        on_service("documents", before_id=9000, newest=True),
    ],
    "drop": [on_service("drop", WAITING), on_service("drop", PARKED)],
    "erase": [on_service("erase")],
    "export": [lambda pair: list(pair.service.export(pair.me))],
    "conversation_note": [on_service("conversation_note", CONVERSATION)],
    "conversation_notes": [on_service("conversation_notes"), on_service("conversation_notes", offset=1)],
    "forecast_extraction": [on_service("forecast_extraction")],
    "note_counts": [on_service("note_counts")],
    "note_progress": [on_service("note_progress", [CONVERSATION])],
    "conversation_outputs": [on_service("conversation_outputs")],
    "process_conversations": [
        on_service("process_conversations", dry_run=True),
        on_service("process_conversations", dry_run=True, conversation_id=CONVERSATION),
    ],
    "conversations": [on_service("conversations"), on_service("conversations", status="skipped", limit=5)],
    "extract": [on_service("extract", "stored only")],
    "fact_history": [on_service("fact_history", "city")],
    "facts": [on_service("facts")],
    "plan_forgetting": [
        on_service("plan_forgetting", fact="city"),
        on_service("plan_forgetting", context=FIRST_PAIR),
        on_service("plan_forgetting", document=FIRST_DOCUMENT),
        on_service("plan_forgetting", session="chat"),
        on_service("plan_forgetting", question="Where?", only=True),
    ],
    "forget": [
        on_service("forget", fact="city"),
        on_service("forget", fact="city", only=True),
        on_service("forget", session="chat", same=True),
        on_service("forget", context=FIRST_PAIR),
        on_service("forget", document=FIRST_DOCUMENT),
        on_service("forget", session="chat"),
        on_service("forget", question="Where?"),
    ],
    "global_memory": [on_service("global_memory")],
    "note_reading": [on_service("note_reading", [replace(HIT, role="note", message_id="m2")])],
    "add_memory_note": [on_service("add_memory_note", "a note")],
    "consolidate": [on_service("consolidate", dry_run=True)],
    "consolidation_states": [on_service("consolidation_states")],
    "editable_memory_file": [on_service("editable_memory_file", "MEMORY.md")],
    "export_memory_files": [_written("export_memory_files")],
    "mirror_memory_files": [_written("mirror_memory_files")],
    "delete_memory_file": [on_service("delete_memory_file", "MEMORY.md")],
    "edit_memory_file": [on_service("edit_memory_file", "MEMORY.md", "## A\n\nb\n")],
    "memory_file": [on_service("memory_file", "MEMORY.md")],
    "memory_file_diff": [on_service("memory_file_diff", 0, 1)],
    "memory_file_history": [on_service("memory_file_history")],
    "memory_file_tree": [on_service("memory_file_tree")],
    "memory_file_version": [on_service("memory_file_version")],
    "memory_files": [on_service("memory_files"), on_service("memory_files", path="rollout_summaries")],
    "note_file_reading": [
        lambda pair: pair.service.note_file_reading(pair.me, list(pair.service.memory_file_tree(pair.other)))
    ],
    "reset_memory_files": [
        on_service("reset_memory_files"),
        on_service("reset_memory_files", everything=True),
    ],
    "search_memory_files": [on_service("search_memory_files", ["word"])],
    "memory_summary": [
        on_service("memory_summary"),
        on_service("memory_summary", project=Pair.others, current="chat"),
    ],
    "global_opening": [on_service("global_opening")],
    "set_global_memory": [
        on_service("set_global_memory", "new"),
        lambda pair: pair.service.set_global_memory(pair.me, "newer", replaces=pair.mine),
    ],
    "delete_global_memory": [on_service("delete_global_memory")],
    "get_context": [on_service("get_context", FIRST_PAIR)],
    "get_document": [on_service("get_document", FIRST_DOCUMENT)],
    "get_fact": [on_service("get_fact", "city")],
    "get_message": [on_service("get_message", "chat", "m1")],
    "import_lines": [
        lambda pair: pair.service.import_lines(pair.me, io.BytesIO(b"".join(_export_of_me(pair))))
    ],
    "inject": [
        on_service("inject", [user_says("Where is my city, AdasWord or bobsword?")]),
        on_service("inject", [user_says("bobsword")], session_id="chat"),
    ],
    "run_injection": [_run_injection],
    "profile": [on_service("profile"), on_service("profile", budget_tokens=0)],
    "items": [on_service("items"), on_service("items", "failed")],
    "made_of": [on_service("made_of", "chat", "m1"), on_service("made_of", "", "")],
    "message_ids": [on_service("message_ids", "chat")],
    "recall": [
        on_service("recall", "AdasWord", threshold=0, explain=True),
        on_service("recall", "Where is BobsWord? The same city", 50, 0.0),
    ],
    "refuse": [on_service("refuse", KEPT)],
    "rejected": [on_service("rejected")],
    "unconfirmed": [on_service("unconfirmed")],
    "replace_answer": [on_service("replace_answer", FIRST_PAIR, "BobsPlace")],
    "remember": [
        on_service("remember", [MESSAGE], "chat"),
        on_service("remember", [user_says("again", id="m1")], "chat"),
    ],
    "deliver": [lambda pair: pair.service.deliver(pair.me, [MESSAGE], "an answer", "chat").store()],
    "store_exchange": [
        on_service("store_exchange", EXCHANGE),
        on_service(
            "store_exchange", replace(EXCHANGE, session_id="", link=ResponseLink("resp_both", "resp_new"))
        ),
    ],
    "remember_exchange": [
        on_service("remember_exchange", [user_says("the opening of both")], "an answer"),
        on_service("remember_exchange", [user_says("again")], None, "chat"),
    ],
    "retry": [on_service("retry", PARKED)],
    "row_counts": [on_service("row_counts")],
    "active_session": [on_service("active_session")],
    "clear_session": [on_service("clear_session", "Put aside")],
    "find_session": [on_service("find_session", "chat")],
    "list_sessions": [on_service("list_sessions")],
    "read_session": [on_service("read_session", "chat")],
    "rebuild_chat": [on_service("rebuild_chat", "chat", 1000)],
    "rename_session": [on_service("rename_session", "chat", "Another")],
    "set_memory_mode": [on_service("set_memory_mode", "chat", "off")],
    "resume_session": [on_service("resume_session", "chat", save_current_as="Put aside", at="m1")],
    "search_sessions": [on_service("search_sessions", "city")],
    "session_history": [on_service("session_history")],
    "groups": [on_service("groups")],
    "end_session": [on_service("end_session", "life")],
    "recover_session": [on_service("recover_session")],
    "previous_session": [
        on_service("previous_session"),
        on_service("previous_session", session_id="chat"),
        on_service("previous_session", current="handed"),
    ],
    "session_life": [on_service("session_life", "life"), on_service("session_life", "chat")],
    "session_size": [on_service("session_size", "chat")],
    "start_session": [
        on_service("start_session", session_id="new", takeover=True),
        on_service("start_session", session_id="chat", previous="stored only", takeover=True),
    ],
    "use_session": [on_service("use_session", "life"), on_service("use_session", "chat")],
    "set_fact": [on_service("set_fact", "city", "Rome")],
    "tokens_spent_today": [on_service("tokens_spent_today")],
    "embed_own": [on_service("embed_own")],
    "unembedded": [on_service("unembedded")],
    "usage": [on_service("usage")],
    "why": [on_service("why"), on_service("why", "r")],
}


FILE_KEY = "kettle/session.jsonl"
FIRST_READ = 5012
"""The first document of the file that both have taken in, after the ids that were put in by hand."""


def transcript(pair: Pair, user_id: str, folder: Path) -> Path:
    """A file of which each user has a version, under a base of their own."""
    word = pair.mine if user_id == pair.me else pair.others
    said = [user_line(0, f"my kettle is {word}"), agent_line(1, f"So it is {word}."), *exchange(2, 8)]
    return write(folder / user_id / FILE_KEY, [{**line, "cwd": f"/work/{word}"} for line in said])


@pytest.fixture
def readers(pair: Pair, tmp_path: Path) -> Pair:
    """The same two users, who have both taken in a file of the same key."""
    for user_id in (pair.me, pair.other):
        with pair.database.write() as tx:
            tx.execute("update users set seq = 5010 where user_id = :user_id", user_id=user_id)
        pair.service.transcripts.ingest(user_id, transcript(pair, user_id, tmp_path))
        pair.service.transcripts.poll()
        word = pair.mine if user_id == pair.me else pair.others
        heard = replace(HEARD, message_id="before", text=f"my kettle is {word}")
        with pair.database.write() as tx:
            assert twins.set_apart(tx, user_id, [heard], ["session"]) == {0: True}
    return pair


def _allowed(pair: Pair) -> Any:
    with pair.database.read() as connection:
        version = user_index.version_of(connection, pair.me)
        assert version is not None
        mine = user_index.extend(pair.database, connection, user_index.empty(version), pair.me, version, "m")
        found = [
            recall_within.allowed(connection, pair.me, mine, Scope(project=project, source=source))
            for project in ("", pair.others, f"/work/{pair.others}")
            for source in ("", "claude-code")
        ]
    counts = [None if among is None else int(among.sum()) for among in found]
    assert counts == [None, 8, 0, 0, 0, 0]
    return counts


def _claim_twice(pair: Pair) -> Any:
    with pair.database.write() as tx:
        return [files.claim(tx, pair.me, FILE_KEY, f"t{n}", 1, 1, NOW, NOW + 1) for n in range(2)]


def _claim_and_change(pair: Pair) -> Any:
    with pair.database.write() as tx:
        # The other reads theirs under the same token: it is the user that tells.
        files.claim(tx, pair.me, FILE_KEY, "token", 1, 1, NOW, NOW + 1)
        return files.change(tx, pair.me, FILE_KEY, "token", {"problem": "none", "entries": 3})


def _ingest_again(pair: Pair) -> Any:
    (file,) = pair.service.transcripts.files(pair.me)
    folder = Path(__file__).parent
    how = IngestOptions(1, reimport=True)
    return file, ingestion.ingest_file(
        pair.database, pair.me, folder / "nowhere" / "session.jsonl", folder, how, lambda: NOW
    )


def _id_of_conversation(pair: Pair) -> int:
    (mine,) = pair.service.conversations(pair.me, source="claude-code")
    (theirs,) = pair.service.conversations(pair.other, source="claude-code")
    assert mine.id == theirs.id
    return mine.id


def _mark_ready(pair: Pair) -> Any:
    (one,) = pair.service.conversations(pair.me, source="claude-code")
    extent = (_id_of_conversation(pair), one.last_document)
    with pair.database.write() as tx:
        return conversation.mark_ready(tx, pair.me, {extent: True}, NOW * 2, NOW)


def _set_status(pair: Pair) -> Any:
    number = _id_of_conversation(pair)
    with pair.database.write() as tx:
        return [
            conversation.set_status(tx, pair.me, number, before, "archived", NOW)
            for before in ("active", "ready", "processing")
        ]


def _on_its_way(move: Callable[[Connection, str, int, int], None], before: str) -> Callable[[Pair], Any]:
    """A conversation in this state is `processing` after such a move."""

    def moved(pair: Pair) -> Any:
        number = _id_of_conversation(pair)
        with pair.database.write() as tx:
            for status in conversation.STATUSES:
                conversation.set_status(tx, pair.me, number, status, before, NOW)
            move(tx, pair.me, number, NOW)
            found = conversation.get(tx, pair.me, number)
        assert found is not None
        assert found.status == "processing"

    return moved


def _stop_and_lift(pair: Pair) -> Any:
    """Each user's stop is their own, though the table knows no users."""
    with pair.database.write() as tx:
        transcript_stops.record_erased(tx, pair.me)
        transcript_stops.record_erased(tx, pair.other)
        theirs = transcript_stops.stopped_at(tx, pair.other, FILE_KEY)
        transcript_stops.remove(tx, pair.me, FILE_KEY)
        assert transcript_stops.stopped_at(tx, pair.me, FILE_KEY) == 0
        assert transcript_stops.stopped_at(tx, pair.other, FILE_KEY) == theirs > 0


def _keep_mine(pair: Pair) -> Any:
    with pair.database.write() as tx:
        transcript_stops.record_erased(tx, pair.me)
        assert transcript_stops.stopped_at(tx, pair.other, FILE_KEY) == 0
        return transcript_stops.stopped_at(tx, pair.me, FILE_KEY)


def _erased_files(pair: Pair) -> Any:
    with pair.database.write() as tx:
        transcript_stops.record_erased(tx, pair.me)
        assert transcript_stops.erased_files(tx, pair.other) == []
        assert transcript_stops.erased_files(tx, pair.me, "a group") == []
        found = transcript_stops.erased_files(tx, pair.me)
        assert found
        return found


def _forget_mine(pair: Pair) -> Any:
    with pair.database.write() as tx:
        transcript_stops.forget_session(tx, pair.me, "session")
        assert transcript_stops.forgotten_through(tx, pair.other, FILE_KEY) == 0
        return transcript_stops.forgotten_through(tx, pair.me, FILE_KEY)


def on_library(name: str, *arguments: Any, **options: Any) -> Case:
    return lambda pair: getattr(pair.service.transcripts, name)(pair.me, *arguments, **options)


THREAD = "0b5e6f0a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"
HEARD = NewDocument("chat@live", "heard", f"my kettle is {Pair.mine}", NOW, role="user")
EXPORTED = {
    "group_name": "main",
    "session_id": "other",
    **dict.fromkeys(
        ("source", "file_key", "cwd", "provider", "originator", "first_message", "last_message"), ""
    ),
    "first_message_at": NOW,
    "last_message_at": NOW,
    "entries": 1,
    "status": "archived",
    "updated_at": NOW,
}


def _note_forgotten(pair: Pair) -> Any:
    (first, *_) = pair.service.documents(pair.me, session_id="session")
    with pair.database.write() as tx:
        twins.note_forgotten(tx, pair.me, first, NOW)


def _threaded(pair: Pair) -> files.File:
    """My file, as that of the session that both have chatted in."""
    (file,) = pair.service.transcripts.files(pair.me)
    return replace(file, thread="chat")


def _find_heard(pair: Pair) -> Any:
    said = NewDocument("session", "said", f"my city is {pair.others}", NOW, role="user")
    with pair.database.write() as tx:
        found = find_heard(tx, pair.me, _threaded(pair), [said])
    assert not found.apart, "only the other has said that"
    return found


def _give_way(pair: Pair) -> Any:
    file = _threaded(pair)
    with pair.database.write() as tx:
        return give_way(tx, pair.me, file, "main")


GROWN = NewDocument("session", "user-0", f"my kettle is {Pair.mine} and more", NOW)

EVERYTHING_SENT = PhaseRules(0, NOW, 1, frozenset("*"))
SNAPSHOT = Snapshot(output_of("AdasWord"), "", True, 1, False, None)

CONSOLIDATION: dict[str, list[Case]] = {
    "consolidation.files.files_in_use": [
        lambda pair: dict(in_transaction(files_in_use, "main", 1)(pair)),
    ],
    "consolidation.files.groups_with_files": [in_transaction(groups_with_files)],
    "mirrors.manifest.owner_of": [lambda pair: owner_of(pair.me, "main")],
    "mirrors.memory_files.is_free_for": [
        lambda pair: memory_files.is_free_for(Path("not there"), pair.me, "main")
    ],
    "consolidation.files.read_files": [
        lambda pair: dict(in_transaction(read_files, "main")(pair)),
    ],
    "consolidation.hand_changes.delete_file": [
        in_transaction(hand_changes.delete_file, "main", "MEMORY.md", NOW)
    ],
    "consolidation.hand_changes.reset": [in_transaction(hand_changes.reset, "main", True, NOW)],
    "consolidation.hand_changes.store_edit": [
        in_transaction(
            hand_changes.store_edit, "main", "MEMORY.md", [EditedSection("a", "b")], SECTION + 1, NOW
        )
    ],
    "consolidation.planning.open_job": [in_transaction(consolidation_planning.open_job, "main")],
    "consolidation.planning.queue": [on_database(consolidation_planning.queue, "main", NOW)],
    "consolidation.selection.are_kept": [in_transaction(selection.are_kept, "main", [CONVERSATION])],
    "consolidation.selection.forgettings": [in_transaction(selection.forgettings)],
    "consolidation.selection.prune": [in_transaction(selection.prune, "main", 2 * NOW, NOW, NOW)],
    "consolidation.selection.read_snapshots": [
        in_transaction(selection.read_snapshots, "main", EVERYTHING_SENT)
    ],
    "consolidation.selection.set_baseline": [in_transaction(selection.set_baseline, "main", [SNAPSHOT])],
    "consolidation.selection.unsendable_sources": [
        in_transaction(selection.unsendable_sources, "main", PhaseRules(0, NOW, 1))
    ],
    "phases.dirtiness.forget_notes": [in_transaction(dirtiness.forget_notes, "main")],
    "phases.dirtiness.get": [in_transaction(dirtiness.get, "main")],
    "phases.dirtiness.listing": [in_transaction(dirtiness.listing, "main")],
    "phases.dirtiness.mark": [in_transaction(dirtiness.mark, "main", NOW, 99)],
    "phases.dirtiness.mark_existing": [in_transaction(dirtiness.mark_existing, "main")],
    "phases.dirtiness.next_version": [in_transaction(dirtiness.next_version, "main", "user", "n", NOW)],
    "phases.dirtiness.succeed": [in_transaction(dirtiness.succeed, "main", 99, "succeeded", "m", NOW)],
    "phases.dirtiness.versions": [in_transaction(dirtiness.versions, "main")],
    "phases.sections.add_past": [
        in_transaction(sections.add_past, "main", SECTION + 1, section_of("x"), 1, 2, NOW)
    ],
    "phases.sections.by_hand_that_say": [
        in_transaction(
            sections.by_hand_that_say,
            frozenset({tombstones.value_mark("AdasWord")}),
            frozenset({tombstones.words_mark("AdasWord")}),
            "main",
        )
    ],
    "phases.sections.bury": [in_transaction(sections.bury, [("MEMORY.md", "AdasWord")], NOW, "main")],
    "phases.sections.forget_buried": [
        in_transaction(sections.forget_buried, sections.mark_of("MEMORY.md", "AdasWord"), 2 * NOW, "main")
    ],
    "phases.sections.forget_document": [in_transaction(sections.forget_document, SECTION, "main")],
    "phases.sections.that_repeat": [in_transaction(sections.that_repeat, ["AdasWord"], "main")],
    "phases.sections.versions_that_say": [
        in_transaction(sections.versions_that_say, "main", "MEMORY.md", "AdasWord", "AdasWord")
    ],
    "phases.dirtiness.is_known": [in_transaction(dirtiness.is_known, "main")],
    "phases.sections.add": [in_transaction(sections.add, "main", SECTION + 1, section_of("x"), 2, NOW)],
    "phases.sections.at_version": [in_transaction(sections.at_version, "main", 1)],
    "phases.sections.current": [in_transaction(sections.current, "main")],
    "phases.sections.delete": [in_transaction(sections.delete, [SECTION], "main")],
    "phases.sections.drop_history": [in_transaction(sections.drop_history, "main", 5)],
    "phases.sections.end": [with_section(sections.end, 2, many=False)],
    "phases.sections.move": [with_section(sections.move, 3, many=False)],
    "phases.sections.every": [in_transaction(sections.every, "main")],
    "phases.sections.forget": [with_section(sections.forget)],
    "phases.sections.in_use": [in_transaction(sections.in_use, "main")],
    "phases.sections.lose_source": [in_transaction(sections.lose_source, CONVERSATION, "main")],
    "phases.sections.marked": [
        in_transaction(sections.marked, frozenset({tombstones.value_mark("AdasWord")}), 2 * NOW, "main")
    ],
    "phases.sections.of_source": [in_transaction(sections.of_source, CONVERSATION, "main")],
    "phases.sections.that_say": [in_transaction(sections.that_say, "Word", "main")],
    "phases.sections.withhold": [with_section(sections.withhold)],
    "phases.sections.withhold_source": [in_transaction(sections.withhold_source, CONVERSATION, "main")],
    "phases.summary_rows.read_summary": [in_transaction(summary_rows.read_summary, SummaryScope("main"))],
    "phases.usage.count_outputs": [in_transaction(usage.count_outputs, [CONVERSATION], NOW, "main")],
    "maintenance.related.add_written_by_hand": [_add_written_by_hand],
    "phases.withholding.pinned_around": [_pinned_around],
    "phases.withholding.break_off_consolidation": [
        in_transaction(withholding.break_off_consolidation, "main")
    ],
}

PHASES: dict[str, list[Case]] = {
    "maintenance.exported_outputs.insert_output": [_insert_output],
    "maintenance.exported_outputs.is_forgotten_note": [_import],
    "maintenance.exported_outputs.lost_a_message": [in_transaction(lost_a_message, "main", "chat", 0)],
    "maintenance.exported_sections.consolidation_rows": [in_transaction(consolidation_rows, "main")],
    "maintenance.exported_sections.section_rows": [in_transaction(section_rows, "main")],
    "maintenance.imported_sections.insert_consolidation": [_import_sections],
    "maintenance.imported_sections.insert_section": [_import_sections],
    "maintenance.exported_outputs.output_rows": [in_transaction(output_rows, "main")],
    "phases.candidates.listing": [
        in_transaction(candidates.listing),
        in_transaction(candidates.listing, conversation_id=CONVERSATION),
    ],
    "phases.usage.count_cited": [in_transaction(usage.count_cited, ["chat", str(CONVERSATION)], NOW, "main")],
    "phases.usage.count_notes": [in_transaction(usage.count_notes, [("chat", "m2")], NOW, "main")],
    "phases.outputs.make_room": [with_output(outputs.make_room)],
    "phases.candidates.open_jobs": [in_transaction(candidates.open_jobs)],
    "phases.outputs.delete": [with_output(outputs.delete)],
    "phases.outputs.drop_orphans": [in_transaction(outputs.drop_orphans)],
    "phases.outputs.empty": [with_output(outputs.empty, "withheld")],
    "phases.outputs.get": [in_transaction(outputs.get, CONVERSATION, "main")],
    "phases.outputs.listing": [in_transaction(outputs.listing)],
    "phases.outputs.of_conversations": [in_transaction(outputs.of_conversations, [CONVERSATION])],
    "phases.outputs.of_conversation": [in_transaction(outputs.of_conversation, CONVERSATION, "main")],
    "phases.outputs.of_note": [in_transaction(outputs.of_note, "chat", "m2", "main")],
    "phases.outputs.of_session": [in_transaction(outputs.of_session, "chat", "main")],
    "phases.outputs.orphans": [in_transaction(outputs.orphans)],
    "phases.outputs.put": [in_transaction(outputs.put, output_of("AdasWord"))],
    "phases.outputs.remove_note": [_remove_note],
    "phases.outputs.remove_note_of": [with_output(outputs.remove_note_of)],
    "phases.outputs.set_aside": [with_output(outputs.set_aside, "withheld")],
    "phases.outputs.that_say": [
        in_transaction(outputs.that_say, "AdasWord", "main"),
        in_transaction(outputs.that_say, "Word", "main"),
    ],
    "phases.planning.plan_user": [on_database(planning.plan_user, PHASE_RULES, NOW)],
    "phases.planning.put": [with_conversation(planning.put, 9000, after=(NOW,))],
    "phases.planning.queue": [_queue_note],
    "phases.planning.queued_since": [in_transaction(planning.queued_since, 0)],
    "phases.refusal.says_deleted": [in_transaction(refusal.says_deleted, ["gone"], 0, "main")],
    "phases.storing.store_note": [with_conversation(storing.store_note, after=(WRITTEN, 9000, NOW))],
    "phases.withholding.call_off": [in_transaction(withholding.call_off, ["chat"])],
    "phases.withholding.forget_session": [in_transaction(withholding.forget_session, "chat")],
    "phases.withholding.withhold_messages": [_withhold_messages],
    "phases.withholding.withhold_marked": [
        in_transaction(withholding.withhold_marked, tombstones.value_mark("AdasWord"), NOW * 2)
    ],
    "phases.withholding.withhold_value": [in_transaction(withholding.withhold_value, "Word")],
    "storage.tombstones.deleted_values": [in_transaction(tombstones.deleted_values, 0)],
    "work.jobs.put_anew": [in_transaction(jobs.put_anew, 9000, KIND, "chat", NOW, 5)],
}
CORE |= PHASES | CONSOLIDATION

TRANSCRIPTS: dict[str, list[Case]] = {
    "memory.session_documents.around": [
        in_transaction(session_documents.around, FIRST_READ, 50),
        in_transaction(session_documents.around, FIRST_DOCUMENT, 50),
    ],
    "memory.documents.count_imported": [in_transaction(documents.count_imported)],
    "memory.documents.grow": [in_transaction(documents.grow, GROWN)],
    "memory.session_documents.of_file": [in_transaction(session_documents.of_file, "session", FILE_KEY, 100)],
    "memory.session_documents.of_session": [
        in_transaction(session_documents.of_session, "session", 100),
        in_transaction(session_documents.of_session, "chat", 100, 0, 10**9),
    ],
    "intake.store.index": [in_transaction(store.index, 9000, [NEW], [Counter(["adasword"])], {9000}, NOW)],
    "work.jobs.has_open_stretch": [
        in_transaction(jobs.has_open_stretch, KIND, "session", jobs.OPEN, FIRST_READ, 10**9)
    ],
    "extraction.queue.drop_open": [
        in_transaction(queue.drop_open, "session"),
        in_transaction(queue.drop_open, "chat"),
    ],
    "extraction.queue.put_stretch": [in_transaction(queue.put_stretch, 9000, "new", 0, 10**6, NOW)],
    "recall.filters.allowed": [_allowed],
    "memory.sessions.strictest_mode": [in_transaction(sessions.strictest_mode, ["chat", "life"])],
    "memory.sessions.live_id": [
        in_transaction(sessions.live_id, "session"),
        in_transaction(sessions.live_id, "chat"),
    ],
    "storage.transcript_stops.forget_session": [_forget_mine],
    "storage.transcript_stops.forgotten_through": [
        in_transaction(transcript_stops.forgotten_through, FILE_KEY)
    ],
    "storage.transcript_stops.erased_files": [_erased_files],
    "storage.transcript_stops.stop_erased": [in_transaction(transcript_stops.stop_erased, FILE_KEY, 10**9)],
    "storage.transcript_stops.record_erased": [_keep_mine],
    "storage.transcript_stops.remove": [_stop_and_lift],
    "storage.transcript_stops.stopped_at": [in_transaction(transcript_stops.stopped_at, FILE_KEY)],
    "conversations.conversation.count": [in_transaction(conversation.count)],
    "conversations.conversation.delete_session": [in_transaction(conversation.delete_session, "session")],
    "conversations.conversation.drop_empty": [in_transaction(conversation.drop_empty, "session")],
    "conversations.conversation.for_grouping": [in_transaction(conversation.for_grouping, "session")],
    "conversations.conversation.forget_bounds": [in_transaction(conversation.forget_bounds, "session")],
    "conversations.conversation.get": [
        lambda pair: in_transaction(conversation.get, _id_of_conversation(pair))(pair)
    ],
    "conversations.conversation.listing": [
        in_transaction(conversation.listing),
        in_transaction(conversation.listing, "processing", "claude-code", 10),
    ],
    "conversations.conversation.mark_ready": [_mark_ready],
    "conversations.conversation.of_session": [in_transaction(conversation.of_session, "session")],
    "conversations.conversation.set_status": [_set_status],
    "conversations.life_cycle.take_up": [_on_its_way(life_cycle.take_up, "skipped")],
    "conversations.life_cycle.reopen": [_on_its_way(life_cycle.reopen, "archived")],
    "conversations.conversation.waiting_since": [in_transaction(conversation.waiting_since)],
    "conversations.turns.take_back": [in_transaction(turns.take_back, "session", KIND, NOW)],
    "conversations.conversation.delete_untaken": [in_transaction(conversation.delete_untaken, "chat")],
    "conversations.conversation.lose_entry": [
        in_transaction(conversation.lose_entry, "session", FIRST_READ, 0),
        in_transaction(conversation.lose_entry, "session", 0, BEGAN),
    ],
    "maintenance.exported_conversations.conversation_rows": [in_transaction(conversation_rows, "main")],
    "maintenance.exported_conversations.insert_conversation": [
        in_transaction(insert_conversation, 9000, EXPORTED)
    ],
    "memory.documents.find_known": [in_transaction(documents.find_known, [NEW, GROWN])],
    "memory.threads.parts": [in_transaction(threads.parts, THREAD)],
    "memory.threads.transcripts": [in_transaction(threads.transcripts, THREAD)],
    "memory.threads.transcripts_of_live": [in_transaction(threads.transcripts_of_live, THREAD)],
    "memory.twins.delete_session": [in_transaction(twins.delete_session, "chat@live")],
    "memory.twins.note_forgotten": [_note_forgotten],
    "memory.twins.of_stored": [in_transaction(twins.of_stored, "session", "user-0")],
    "memory.twins.cut_read_blocks": [
        in_transaction(
            twins.cut_read_blocks, [replace(NEW, role="assistant", text="I see.\n\nSo.")], "session", [0]
        )
    ],
    "memory.twins.set_apart": [in_transaction(twins.set_apart, [HEARD], ["session"])],
    "storage.tombstones.deleted_at": [in_transaction(tombstones.deleted_at, tombstones.FACT, "gone")],
    "transcripts.both_ways.find_heard": [_find_heard],
    "transcripts.both_ways.give_way": [_give_way],
    "memory.session_documents.said_after": [in_transaction(session_documents.said_after, "chat", 0, 100)],
    "memory.sessions.mark_grouped": [in_transaction(sessions.mark_grouped, "session", 10**9)],
    "transcripts.files.add": [in_transaction(files.add, "other.jsonl", "session", "codex", NOW)],
    "transcripts.files.change": [_claim_and_change],
    "transcripts.files.claim": [_claim_twice],
    "transcripts.files.get": [in_transaction(files.get, FILE_KEY)],
    "transcripts.files.listing": [in_transaction(files.listing)],
    "transcripts.files.note_problem": [in_transaction(files.note_problem, FILE_KEY, "gone", NOW)],
    "transcripts.files.of_session": [in_transaction(files.of_session, "session")],
    "transcripts.ingestion.ingest_file": [_ingest_again],
}

LIBRARY: dict[str, list[Case]] = {
    "around": [on_library("around", FIRST_READ, 50), on_library("around", FIRST_DOCUMENT, 50)],
    "files": [on_library("files")],
    "health": [on_library("health")],
    "ingest": [on_library("ingest", Path(__file__).parent / "session.jsonl", reimport=True)],
    "read": [
        lambda pair: list(pair.service.transcripts.read(pair.me, "session")),
        lambda pair: list(pair.service.transcripts.read(pair.me, "chat")),
    ],
    "session": [on_library("session", "sess"), on_library("session", FILE_KEY)],
}


def core_functions() -> set[str]:
    """Every public function of a core module that takes a user_id."""
    found = set()
    for module in pkgutil.walk_packages(shepherd_memory.__path__, "shepherd_memory."):
        path = module.name.removeprefix("shepherd_memory.")
        if path.partition(".")[0] in ("__main__", "chat", "frontends", "service"):
            continue
        loaded = importlib.import_module(module.name)
        for name, function in inspect.getmembers(loaded, inspect.isfunction):
            if function.__module__ == loaded.__name__ and _is_for_a_user(name, function):
                found.add(f"{path}.{name}")
    return found


def _is_for_a_user(name: str, function: Callable[..., Any]) -> bool:
    return not name.startswith("_") and "user_id" in inspect.signature(function).parameters


def test_every_function_that_takes_a_user_id_has_a_case_here() -> None:
    assert core_functions() == {*CORE, *TRANSCRIPTS}
    assert methods_for_a_user(Service) == set(SERVICE)
    assert methods_for_a_user(Library) == set(LIBRARY)


def methods_for_a_user(owner: type) -> set[str]:
    methods = inspect.getmembers(owner, inspect.isfunction)
    return {name for name, method in methods if _is_for_a_user(name, method)}


def named(cases: dict[str, list[Case]], owner: str = "") -> list[Any]:
    return [
        pytest.param(case, id=f"{owner}{name}-{number}")
        for name, some in cases.items()
        for number, case in enumerate(some)
    ]


@pytest.mark.parametrize("case", [*named(CORE), *named(SERVICE, "Service.")])
def test_what_is_done_for_one_user_neither_shows_nor_touches_another(pair: Pair, case: Case) -> None:
    check_shows_and_touches_no_other(pair, case)


@pytest.mark.parametrize("case", [*named(TRANSCRIPTS), *named(LIBRARY, "Library.")])
def test_what_is_done_with_transcripts_neither_shows_nor_touches_another(readers: Pair, case: Case) -> None:
    check_shows_and_touches_no_other(readers, case)


def check_shows_and_touches_no_other(pair: Pair, case: Case) -> None:
    assert [d.id for d in pair.service.documents(pair.me)] == [
        d.id for d in pair.service.documents(pair.other)
    ]
    assert FIRST_PAIR in [found.id for found in pair.service.context(pair.other)]
    before = everything_of(pair.database, pair.other)
    result = case(pair)
    assert pair.others not in repr(result)
    assert pair.other not in repr(result)
    assert everything_of(pair.database, pair.other) == before


READING = [
    "memory.context.listing",
    "memory.context.newest",
    "memory.context.get",
    "memory.context.of_message",
    "memory.documents.get",
    "memory.session_documents.get_message",
    "memory.documents.select",
    "memory.session_documents.statements",
    "memory.facts.get",
    "memory.facts.of_message",
    "memory.facts.history",
    "memory.facts.listing",
    "maintenance.forgetting.plan",
    "maintenance.related.gather",
    "memory.context.of_question",
    "memory.restatements.of_key",
    "memory.restatements.of_message",
    "work.jobs.get",
    "work.jobs.listing",
    "maintenance.portability.export",
    "memory.rejections.listing",
    "memory.unconfirmed.listing",
    "phases.outputs.get",
    "phases.outputs.listing",
    "phases.outputs.of_conversations",
    "phases.candidates.listing",
    "maintenance.exported_outputs.output_rows",
    "maintenance.exported_sections.consolidation_rows",
    "maintenance.exported_sections.section_rows",
    "maintenance.imported_sections.insert_section",
]


@pytest.mark.every_scheme
@pytest.mark.parametrize("name", READING)
def test_reading_shows_a_user_their_own(pair: Pair, name: str) -> None:
    for case in CORE[name]:
        assert pair.mine in repr(case(pair))


@pytest.mark.every_scheme
@pytest.mark.parametrize(
    "name",
    [
        "memory.session_documents.around",
        "memory.session_documents.of_file",
        "memory.session_documents.of_session",
    ],
)
def test_reading_transcripts_shows_a_user_their_own(readers: Pair, name: str) -> None:
    for case in TRANSCRIPTS[name]:
        assert readers.mine in repr(case(readers))


@pytest.mark.every_scheme
def test_ids_that_only_another_user_has_are_not_found(service: Service) -> None:
    number = next(numbers)
    owner, curious = f"owner{number}", f"curious{number}"
    for step in FURNISHING:
        step(service, owner, "Theirs")
    service.set_fact(curious, "mood", "curious")
    before = everything_of(service.database, owner)
    with pytest.raises(NotFound):
        service.accept(curious, REFUSED)
    for decide in (service.confirm, service.refuse):
        with pytest.raises(NotFound):
            decide(curious, KEPT)
    assert not service.retry(curious, PARKED)
    assert not service.drop(curious, WAITING)
    assert not service.extract(curious, "stored only")
    assert service.get_fact(curious, "city") is None
    assert service.get_document(curious, FIRST_DOCUMENT) is None
    for what in ({"fact": "city"}, {"context": FIRST_PAIR}, {"document": 1}, {"session": "chat"}):
        assert service.forget(curious, **what).total == 0
    assert everything_of(service.database, owner) == before


@pytest.mark.parametrize("user_id", ["unknown", "", "  ", " unknown "])
def test_the_unknown_user_has_no_memory_whatever_is_called(service: Service, user_id: str) -> None:
    nobody = Pair(service, user_id, "somebody")
    for case in itertools.chain.from_iterable((*SERVICE.values(), *LIBRARY.values())):
        with suppress(shepherd_memory.ShepherdError):
            case(nobody)
    assert sum(sum(map(len, rows)) for rows in everything_of(service.database, user_id).values()) == 0


@pytest.mark.every_scheme
def test_asking_about_somebody_who_is_not_there_leaves_no_row(service: Service) -> None:
    ghost = f"ghost{next(numbers)}"
    adding = (
        "add_context",
        "add_document",
        "set_fact",
        "remember",
        "remember_exchange",
        "store_exchange",
        "deliver",
        "import_lines",
        "set_global_memory",
        "add_memory_note",
        "edit_memory_file",
        "start_session",
    )
    reading = [name for name in SERVICE if name not in adding]
    for name in reading:
        for case in SERVICE[name]:
            with suppress(NotFound):
                case(Pair(service, ghost, "somebody"))
    assert everything_of(service.database, ghost) == {
        table: [] for table in everything_of(service.database, ghost)
    }


PEOPLE = ["ada", "bob", "eve"]
WORDS = st.sampled_from(["Rome", "Oslo", "Bonn"])


class Memories(RuleBasedStateMachine):
    """Random operations of several users, each with a model of their own."""

    def __init__(self, service: Service, clock: ManualClock) -> None:
        super().__init__()
        self.service = service
        self.clock = clock
        suffix = next(numbers)
        self.names = {person: f"{person} {suffix}" for person in PEOPLE}
        self.facts: dict[str, dict[str, str]] = {person: {} for person in PEOPLE}
        self.pairs: dict[str, list[str]] = {person: [] for person in PEOPLE}
        self.texts: dict[str, list[tuple[str, str]]] = {person: [] for person in PEOPLE}
        self.deleted: dict[str, set[tuple[str, str]]] = {person: set() for person in PEOPLE}

    @rule(person=st.sampled_from(PEOPLE), key=st.sampled_from(["city", "pet"]), value=WORDS)
    def set_fact(self, person: str, key: str, value: str) -> None:
        self.clock.advance(1)
        self.service.set_fact(self.names[person], key, value)
        self.facts[person][key] = value

    @rule(person=st.sampled_from(PEOPLE), key=st.sampled_from(["city", "pet"]))
    def forget_fact(self, person: str, key: str) -> None:
        self.clock.advance(1)
        forgotten = self.service.forget(self.names[person], fact=key)
        assert bool(forgotten.facts) == (key in self.facts[person])
        self.facts[person].pop(key, None)

    @rule(person=st.sampled_from(PEOPLE), word=WORDS)
    def add_context(self, person: str, word: str) -> None:
        self.clock.advance(1)
        added = self.service.add_context(self.names[person], "Where?", word)
        assert added == ("refreshed" if word in self.pairs[person] else "stored")
        if added == "stored":
            self.pairs[person].append(word)

    @rule(person=st.sampled_from(PEOPLE), position=st.integers(0, 3))
    def forget_context(self, person: str, position: int) -> None:
        self.clock.advance(1)
        found = self.service.context(self.names[person])
        if position < len(found):
            assert self.service.forget(self.names[person], context=found[position].id).context == 1
            self.pairs[person].remove(found[position].answer)

    @rule(person=st.sampled_from(PEOPLE), session=st.sampled_from(["a", "b"]), word=WORDS)
    def remember(self, person: str, session: str, word: str) -> None:
        self.clock.advance(1)
        result = self.service.remember(self.names[person], [user_says(word, id=word)], session)
        known = (session, word) in self.texts[person] or (session, word) in self.deleted[person]
        assert result.stored == (0 if known else 1)
        if result.stored:
            self.texts[person].append((session, word))

    @rule(person=st.sampled_from(PEOPLE), session=st.sampled_from(["a", "b"]))
    def forget_session(self, person: str, session: str) -> None:
        self.clock.advance(1)
        gone = [entry for entry in self.texts[person] if entry[0] == session]
        assert self.service.forget(self.names[person], session=session).documents == len(gone)
        self.deleted[person].update(gone)
        self.texts[person] = [entry for entry in self.texts[person] if entry[0] != session]

    @rule(person=st.sampled_from(PEOPLE))
    def erase(self, person: str) -> None:
        assert self.service.erase(self.names[person]).left == {}
        self.facts[person], self.pairs[person], self.texts[person] = {}, [], []
        self.deleted[person] = set()

    @invariant()
    def everybody_has_their_own_and_nothing_else(self) -> None:
        for person, name in self.names.items():
            assert facts_of(self.service, name) == self.facts[person]
            assert pairs_of(self.service, name) == [("Where?", word) for word in self.pairs[person]]
            found = self.service.documents(name)
            assert [(document.session_id, document.text) for document in found] == self.texts[person]


def test_random_operations_of_several_users_never_mix(module_url: str) -> None:
    clock = ManualClock(NOW)
    with memory(module_url, clock) as service:
        run_state_machine_as_test(
            lambda: Memories(service, clock),
            settings=settings(
                max_examples=examples(10),
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


@pytest.mark.every_scheme
def test_words_of_two_users_in_one_table_are_found_by_their_owners_only(service: Service) -> None:
    number = next(numbers)
    owners = [f"owner {number} {index}" for index in range(8)]
    for turn in range(5):
        for owner in owners:
            service.remember(owner, [user_says(f"{owner} says {turn}", id=str(turn))], "same session")

    def foreign(connection: Connection, owner: str) -> int:
        found = documents.select(connection, owner, Facets(session_id="same session"))
        return sum(owner not in document.text for document in found)

    with service.database.read() as connection:
        assert [foreign(connection, owner) for owner in owners] == [0] * 8
