"""The composition root: what every frontend and program uses, built and taken down in one place."""

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, wraps
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

from shepherd_memory.config import Config, LiveConfig, default_database_path
from shepherd_memory.config.identity import is_known
from shepherd_memory.embedding import Unavailable, backlog
from shepherd_memory.embedding.thread import EmbeddingThread
from shepherd_memory.errors import DatabaseError, InvalidInput, NotFound
from shepherd_memory.extraction import endpoint_state, guard, jobs, ledger, queue
from shepherd_memory.extraction.endpoint_state import EndpointState
from shepherd_memory.extraction.jobs import Job
from shepherd_memory.extraction.worker import Worker, extraction_endpoint
from shepherd_memory.injection import prompting, stored_blocks
from shepherd_memory.injection.prompt import inject
from shepherd_memory.injection.prompting import Injected, Injection
from shepherd_memory.injection.stored_blocks import Blocks, Kept
from shepherd_memory.intake import store
from shepherd_memory.intake.exchange import GAP_SECONDS, Exchange, read_exchange
from shepherd_memory.intake.store import Intake, Remembered
from shepherd_memory.llm.completion_client import ExtractionClient
from shepherd_memory.maintenance import erasure, forgetting, legacy, portability, reindexing
from shepherd_memory.maintenance.erasure import Receipt
from shepherd_memory.maintenance.forgetting import Forgotten
from shepherd_memory.maintenance.status import Status, Totals, read_status, read_totals
from shepherd_memory.memory import context, documents, entries, facts, rejections, saved_chats, sessions
from shepherd_memory.memory.context import Context
from shepherd_memory.memory.documents import Document, Facets, NewDocument
from shepherd_memory.memory.facts import Fact, PastFact
from shepherd_memory.memory.rejections import Rejection
from shepherd_memory.recall import Recalled
from shepherd_memory.recall.scope import Within
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import SECOND, Clock, from_us, now_us, parse_us
from shepherd_memory.storage.database import Connection, Database, open_database
from shepherd_memory.storage.provenance import Provenance
from shepherd_memory.text.canonical import as_text, canonical_text
from shepherd_memory.text.ids import checked_user_id, storable_id
from shepherd_memory.text.redaction import redact
from shepherd_memory.transcripts.library import Library
from shepherd_memory.transcripts.watching import Watcher

if TYPE_CHECKING:
    from shepherd_memory.recall.recall import Recall

logger = logging.getLogger(__name__)

# With Concatenate mypy would no longer let callers write user_id=….
Method = TypeVar("Method", bound=Callable[..., Any])

UNKNOWN_USER = "the user is unknown: nothing is stored or searched without a user_id"
FLUSH_POLL_SECONDS = 0.02
EVERYTHING = 1_000_000_000
MOST_SHOWN = 50
SAVED_CHATS = "saved chats"
SAME_AS_BEFORE = "the same as before in this tool loop"


@contextmanager
def open_service(
    config: Config,
    *,
    config_path: Path | str | None = None,
    worker: bool = True,
    watch_for: str = "",
    clock: Clock = now_us,
) -> Iterator["Service"]:
    """Build everything that frontends use, and take it down again.

    With `config_path` changes of that file take effect while the service runs. `worker=False` leaves
    extraction to another process. `watch_for` is the user whose agents' transcripts are watched for, where
    the configuration says so.
    """
    live = LiveConfig(config, config_path)
    with ExitStack() as stack:
        url = config.memory_database or str(default_database_path())
        database = stack.enter_context(closing(open_database(url)))
        legacy.adopt(database, clock())
        if reindexing.is_needed(database):
            reindexing.index_everybody(database, clock())
        embedding = EmbeddingThread(database, live.current, clock)
        client = stack.enter_context(closing(ExtractionClient()))
        thread = Worker(database, live.current, clock, client)
        library = Library(database, live.current, clock, embedding.wake, thread.wake)
        watcher = Watcher(library, live.current, watch_for)
        stack.callback(embedding.stop)
        if worker:
            embedding.start()
            thread.start()
            watcher.start()
            stack.callback(watcher.stop)
            stack.callback(thread.stop)
            stack.callback(watcher.ask_to_stop)
            stack.callback(embedding.ask_to_stop)
        yield Service(database, live, thread, embedding, library, clock)


def _is_known(user_id: str) -> bool:
    """Whether this is a user whose memory may be touched; an id that cannot be one is an error."""
    return is_known(checked_user_id(user_id))


def _check_known(user_id: str) -> None:
    if not _is_known(user_id):
        raise InvalidInput(UNKNOWN_USER)


def empty_for_unknown_user(empty: Callable[[], object]) -> Callable[[Method], Method]:
    """Make a method return `empty()` for an unknown user, without touching the database."""

    def decorate(method: Method) -> Method:
        @wraps(method)
        def checked(self: "Service", user_id: str, *args: Any, **kwargs: Any) -> Any:
            return method(self, user_id, *args, **kwargs) if _is_known(user_id) else empty()

        return cast("Method", checked)

    return decorate


class Service:
    """The memory of all users; every call names the user it is for."""

    def __init__(
        self,
        database: Database,
        live: LiveConfig,
        worker: Worker,
        embedding: EmbeddingThread,
        transcripts: Library,
        clock: Clock,
    ) -> None:
        self.transcripts = transcripts
        self.database = database
        self.worker = worker
        self.embedding = embedding
        self._blocks = Blocks()
        self._live = live
        self._clock = clock

    @property
    def config(self) -> Config:
        """The configuration in force now."""
        return self._live.current()

    def remember(
        self,
        user_id: str,
        messages: Sequence[Mapping[str, Any]],
        session_id: str | None = None,
        *,
        extract: bool = True,
        group: str = documents.MAIN_GROUP,
        rest_seconds: float = 0.0,
    ) -> Remembered:
        """Store messages, and queue what the user said for extraction if an endpoint is configured.

        Committed when it returns. A message that is already stored in the session is not stored again. With
        `rest_seconds` it is queued by `extract`, or once the session has been silent for so long, whatever
        becomes of this process; where documents are not kept, at once.
        """
        if not _is_known(user_id):
            return Remembered(session_id or "", reason=UNKNOWN_USER)
        config = self.config
        how = Intake(
            config.memory_documents, extraction_endpoint(config) is not None, round(rest_seconds * SECOND)
        )
        result = store.remember(
            self.database, user_id, _listed(messages), session_id, group, how, extract, self._clock()
        )
        if result.queued:
            self._queued(config)
        self.embedding.wake()
        return result

    def remember_exchange(
        self,
        user_id: str,
        messages: Sequence[Any],
        answer: str | None,
        session_id: str | None = None,
    ) -> Remembered:
        """Store what the user said last in a chat request, and the answer to it, if there is one yet.

        However often the same request comes, in a tool loop or because a client tries again, it is stored
        once. Without a `session_id` the requests of one conversation are known by its first words.
        """
        exchange = read_exchange(_listed(messages))
        if not _is_known(user_id) or exchange is None:
            reason = "there is nothing to store in these messages" if exchange is None else UNKNOWN_USER
            return Remembered(session_id or "", reason=reason)
        session = session_id or self._session_of(user_id, exchange)
        return self.remember(user_id, exchange.messages(session, answer), session)

    def _session_of(self, user_id: str, exchange: Exchange) -> str:
        since = self._clock() - GAP_SECONDS * SECOND
        with self.database.read() as connection:
            return sessions.continued(connection, user_id, exchange.opening, since)

    def recall(
        self,
        user_id: str,
        query: str,
        limit: int = 10,
        threshold: float | None = None,
        now: datetime | None = None,
        kinds: Sequence[str] | None = None,
        explain: bool = False,
        *,
        project: str = "",
        source: str = "",
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> Recalled:
        """Find what a query is about among the user's facts, context and documents, best first.

        `project` is a folder or the name of one, `source` where a document came from, such as `claude-code`:
        these are found among documents only.
        """
        if not _is_known(user_id):
            return Recalled(abstained=True, reason=UNKNOWN_USER)
        cut = self.config.rag_relevance_threshold if threshold is None else threshold
        wanted = Within(
            _kinds(kinds),
            canonical_text(project),
            canonical_text(source),
            None if since is None else _moment(since, 0),
            None if until is None else _moment(until, 0),
        )
        asked_at = _aware(now or from_us(self._clock()))
        return self._recall.recall(user_id, as_text(query), max(1, limit), cut, asked_at, wanted, explain)

    @cached_property
    def _recall(self) -> "Recall":
        # Late: numpy takes a tenth of a second, which commands that do not recall need not pay.
        from shepherd_memory.recall.cache import ShelfCache
        from shepherd_memory.recall.recall import Recall

        cache = ShelfCache(lambda: self.config.recall_cache_mb * 1_000_000)
        return Recall(self.database, self.embedding.embedder, cache)

    def inject(
        self,
        user_id: str,
        messages: Sequence[Any],
        *,
        session_id: str = "",
        now: datetime | None = None,
        explain: bool = False,
    ) -> Injected:
        """The messages with what the user's memory has for the last one, at its tail.

        Nothing before that changes. In a tool loop the block is the one that the user's message got first.
        `explain` has the hits say what their scores are made of.
        """
        if not _is_known(user_id):
            return Injected(list(messages), reason=UNKNOWN_USER)
        with self.database.read() as connection:
            key = prompting.conversation_key(connection, user_id, messages)
            if prompting.is_tool_loop(messages) and (kept := self._kept_block(connection, user_id, key)):
                again = inject(messages, kept.block)
                return Injected(again, kept.block, reason=SAME_AS_BEFORE, told=kept.told)
        return self._compose(user_id, messages, session_id, now, key, explain)

    def _kept_block(self, connection: Connection, user_id: str, key: str) -> Kept | None:
        """What an earlier round of a tool loop was told, if nothing of it was deleted since."""
        kept = self._blocks.get(user_id, key) or stored_blocks.load(connection, user_id, key)
        return kept if kept is not None and kept.is_current(connection, user_id) else None

    def _compose(
        self,
        user_id: str,
        messages: Sequence[Any],
        session_id: str,
        now: datetime | None,
        key: str,
        explain: bool,
    ) -> Injected:
        config = self.config
        query = prompting.last_user_text(messages)
        room = prompting.Room(config.rag_max_results, config.rag_max_tokens)
        # What the prompt shows already is among the best found, and is left out.
        limit = room.results + min(len(messages), MOST_SHOWN)
        recalled = self.recall(user_id, query, limit=limit, now=now, explain=explain)
        with self.database.read() as connection:
            kept = prompting.compose(connection, user_id, messages, recalled, room)
        self._blocks.put(user_id, key, kept)
        block = kept.block
        if block is None:
            return Injected(list(messages), recalled=recalled, reason=recalled.reason or "nothing fits")
        session = storable_id(session_id) if session_id else ""
        try:
            request = prompting.record(
                self.database, user_id, session, query, key, kept, recalled.hits, self._clock()
            )
        except DatabaseError as error:
            # A database that cannot be written to now can still be read.
            logger.warning("what is injected could not be noted (%s)", type(error).__name__)
            request = ""
        return Injected(inject(messages, block), block, request, recalled, told=kept.told)

    @empty_for_unknown_user(list)
    def why(self, user_id: str, request: str = "", limit: int = 100) -> list[Injection]:
        """What was put into the user's prompts, newest first, and how it was ranked."""
        with self.database.read() as connection:
            return prompting.listing(connection, user_id, request, limit)

    def reembed(self) -> int:
        """Let everything that has no vector of the current model be embedded again; how many entries wait."""
        embedder = self.embedding.embedder()
        if embedder is not None:
            backlog.queue_all(self.database, embedder.model, self._clock())
        self.embedding.wake()
        with self.database.read() as connection:
            return backlog.size(connection)

    def embed(self) -> int:
        """Embed the entries that have waited longest, in this thread; how many, 0 once nothing waits."""
        embedder = self.embedding.embedder()
        if embedder is None:
            raise Unavailable(self.embedding.trouble() or "embedding_engine is none: nothing is embedded")
        return backlog.embed_batch(self.database, embedder, self._clock())

    @empty_for_unknown_user(int)
    def unembedded(self, user_id: str) -> int:
        """How many of the user's entries are found by keyword only, until they are embedded."""
        with self.database.read() as connection:
            return backlog.size_of(connection, user_id)

    @empty_for_unknown_user(bool)
    def extract(self, user_id: str, session_id: str) -> bool:
        """Queue what is new in a session since its watermark; False if nothing is, or nothing can extract."""
        if extraction_endpoint(self.config) is None:
            return False
        with self.database.read() as connection:
            session = sessions.live_id(connection, user_id, storable_id(session_id))
        queued = queue.queue_session(self.database, user_id, session, self._clock())
        if queued:
            self._queued(self.config)
        return queued

    def _queued(self, config: Config) -> None:
        queue.trim(self.database, config.memory_extraction_queue_limit, self._clock())
        self.worker.wake()

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until nothing waits for extraction or embedding; False if something still does in the end."""
        deadline = time.monotonic() + timeout
        pause = threading.Event()
        while self._is_busy():
            if time.monotonic() >= deadline:
                return False
            pause.wait(FLUSH_POLL_SECONDS)
        return True

    def _is_busy(self) -> bool:
        embeds = self.embedding.embedder() is not None
        with self.database.read() as connection:
            if extraction_endpoint(self.config) is not None and jobs.has_open(connection, queue.KIND):
                return True
            return embeds and not backlog.is_empty(connection)

    @empty_for_unknown_user(list)
    def facts(self, user_id: str) -> list[Fact]:
        """The user's current facts, by key."""
        with self.database.read() as connection:
            return facts.listing(connection, user_id)

    @empty_for_unknown_user(NoneType)
    def get_fact(self, user_id: str, key: str) -> Fact | None:
        """One current fact."""
        with self.database.read() as connection:
            return facts.get(connection, user_id, facts.fact_key(key))

    def set_fact(self, user_id: str, key: str, value: str, *, source: str = "user") -> Fact:
        """Replace a fact by what the user says now; the old value goes to history."""
        _check_known(user_id)
        name, text = facts.fact_key(key), redact(as_text(value)).strip()
        if not text:
            raise InvalidInput(f"the value of {name} is empty; use forget to delete a fact")
        now = self._clock()
        with self.database.write() as tx:
            row_id = users.lock(tx, user_id, now)
            where = Provenance(now, redact(as_text(source)))
            facts.put_by_hand(tx, user_id, name, text, where, now, row_id)
            stored = facts.get(tx, user_id, name)
        assert stored is not None
        self.embedding.wake()
        return stored

    @empty_for_unknown_user(list)
    def fact_history(self, user_id: str, key: str) -> list[PastFact]:
        """The timeline of a fact, oldest first."""
        with self.database.read() as connection:
            return facts.history(connection, user_id, facts.fact_key(key))

    @empty_for_unknown_user(list)
    def context(self, user_id: str, *, after_id: int = 0, limit: int = EVERYTHING) -> list[Context]:
        """The user's question/answer pairs in the order they were stored."""
        with self.database.read() as connection:
            return context.listing(connection, user_id, after_id, limit)

    def add_context(self, user_id: str, question: str, answer: str, *, source: str = "user") -> str:
        """Store a question and its answer as the user gives them; `stored` or `refreshed`."""
        _check_known(user_id)
        asked, answered = (redact(as_text(text)).strip() for text in (question, answer))
        if not asked or not answered:
            raise InvalidInput("a question and an answer are needed")
        now = self._clock()
        with self.database.write() as tx:
            row_id = users.lock(tx, user_id, now)
            where = Provenance(now, redact(as_text(source)))
            result = context.put_by_hand(tx, user_id, row_id, asked, answered, where, now)
        self.embedding.wake()
        return result

    def replace_answer(self, user_id: str, context_id: int, answer: str, *, source: str = "user") -> Context:
        """Give a question another answer, as the user says it now; the pair that has it. All or nothing."""
        _check_known(user_id)
        answered = redact(as_text(answer)).strip()
        if not answered:
            raise InvalidInput("an answer is needed; `forget` deletes the question")
        now = self._clock()
        with self.database.write() as tx:
            new_id = users.lock_existing(tx, user_id)
            where = Provenance(now, redact(as_text(source)))
            kept = new_id and context.replace_answer(tx, user_id, context_id, new_id, answered, where, now)
        if not kept:
            raise NotFound(f"there is no context {context_id}; it may have been deleted meanwhile")
        self.embedding.wake()
        return kept

    def add_document(
        self,
        user_id: str,
        text: str,
        *,
        type: str = "artifact",
        category: str = "knowledge",
        session_id: str = "",
        message_id: str = "",
        role: str = "",
        speaker_type: str = "human",
        speaker_name: str = "",
        created_at: datetime | str | None = None,
        group: str = documents.MAIN_GROUP,
        source: str = "user",
        source_file: str = "",
        tool_names: str = "",
        cwd: str = "",
        extra: object = None,
    ) -> int:
        """Store a document verbatim with its facets; its id."""
        _check_known(user_id)
        _check_choice("type", type, documents.TYPES)
        _check_choice("category", category, documents.CATEGORIES)
        _check_choice("speaker_type", speaker_type, documents.SPEAKER_TYPES)
        now = self._clock()
        document = NewDocument(
            session_id=session_id,
            message_id=message_id,
            text=text,
            created_at=_moment(created_at, now),
            type=type,
            category=category,
            role=role,
            speaker_type=speaker_type,
            speaker_name=speaker_name,
            group_name=group,
            source=source,
            source_file=source_file,
            tool_names=tool_names,
            cwd=cwd,
        )
        document_id, _ = store.add_document(self.database, user_id, document, extra, now)
        self.embedding.wake()
        return document_id

    @empty_for_unknown_user(list)
    def documents(
        self,
        user_id: str,
        *,
        type: str = "",
        category: str = "",
        session_id: str = "",
        role: str = "",
        speaker_name: str = "",
        speaker_type: str = "",
        group: str = "",
        source: str = "",
        since: datetime | str | None = None,
        after_id: int = 0,
        limit: int = EVERYTHING,
        newest: bool = False,
    ) -> list[Document]:
        """The user's documents with these facets, in the order they were stored.

        `newest` takes the last ones where `limit` leaves some out.
        """
        session = storable_id(session_id) if session_id else ""
        place = storable_id(group) if group else ""
        given = (type, category, session, role, speaker_name, speaker_type, place, source)
        facets = Facets(*map(canonical_text, given))
        start = None if since is None else _moment(since, 0)
        with self.database.read() as connection:
            return documents.select(connection, user_id, facets, start, after_id, limit, newest)

    def get_document(self, user_id: str, document_id: int) -> Document | None:
        """One document."""
        found = self.documents(user_id, after_id=document_id - 1, limit=1)
        return found[0] if found and found[0].id == document_id else None

    def forget(
        self,
        user_id: str,
        *,
        fact: str | None = None,
        context: int | None = None,
        document: int | None = None,
        session: str | None = None,
        question: str | None = None,
    ) -> Forgotten:
        """Delete one thing for good: a fact by its key, a pair or document by its id, or a whole session.

        Or a question, by its exact words, with every answer to it.
        """
        choices: list[tuple[Any, Callable[..., Forgotten]]] = [
            (fact, forgetting.forget_fact),
            (context, forgetting.forget_context),
            (document, forgetting.forget_document),
            (question, forgetting.forget_question),
            (None if session is None else storable_id(session), forgetting.forget_session),
        ]
        given = [(value, forget) for value, forget in choices if value is not None]
        if len(given) != 1:
            raise InvalidInput("forget takes one of fact, context, document, session and question")
        if session == "":
            raise InvalidInput("the session has no name; what was said in no session is forgotten one by one")
        if not _is_known(user_id):
            return Forgotten()
        value, forget = given[0]
        said = self._said_in(user_id, document, session)
        _forget_saved(user_id, said, session)
        gone = forget(self.database, user_id, value, self._clock())
        # Again: a chat may have saved itself in between.
        _forget_saved(user_id, said, session)
        return gone

    def _said_in(self, user_id: str, document: int | None, session: str | None) -> list[Document]:
        found = self.documents(user_id, session_id=session) if session else []
        one = None if document is None else self.get_document(user_id, document)
        return found if one is None else [one]

    def erase(self, user_id: str) -> Receipt:
        """Remove a user everywhere; the receipt says what was removed and that nothing is left."""
        _check_known(user_id)
        files = saved_chats.forget(user_id)
        receipt = erasure.erase(self.database, user_id, self._clock())
        # Again: a chat may have saved itself in between.
        files = max(files, saved_chats.forget(user_id))
        return replace(receipt, rows=receipt.rows | ({SAVED_CHATS: files} if files else {}))

    def export(self, user_id: str) -> Generator[bytes, None, None]:
        """Everything of a user as JSON lines; to be closed if they are not read up."""
        _check_known(user_id)
        return portability.export(self.database, user_id, self._clock())

    def import_lines(
        self, user_id: str, lines: BinaryIO, progress: Callable[[int], None] = lambda size: None
    ) -> portability.Imported:
        """Take in what `export` wrote; what is there already stays as it is."""
        _check_known(user_id)
        try:
            return portability.take_in(self.database, user_id, lines, self._clock(), progress)
        finally:
            self.embedding.wake()

    @empty_for_unknown_user(list)
    def rejected(self, user_id: str) -> list[Rejection]:
        """What the guard refused, with its reasons, oldest first."""
        with self.database.read() as connection:
            return rejections.listing(connection, user_id)

    def accept(self, user_id: str, rejection_id: int) -> Rejection:
        """Overrule the guard: store what it refused, as stated by the user now."""
        _check_known(user_id)
        now = self._clock()
        with self.database.write() as tx:
            row_id = users.lock(tx, user_id, now)
            refused = rejections.take(tx, user_id, rejection_id)
            if refused is None:
                raise NotFound(f"there is no rejection {rejection_id}")
            guard.admit_by_hand(tx, user_id, row_id, refused, now)
        return refused

    @empty_for_unknown_user(list)
    def usage(self, user_id: str) -> list[ledger.Usage]:
        """The tokens that a user's memory has cost, by day and purpose."""
        with self.database.read() as connection:
            return ledger.listing(connection, user_id)

    def row_counts(self, user_id: str) -> dict[str, int]:
        """How many rows a user has in which table."""
        checked_user_id(user_id)
        return erasure.count_rows(self.database, user_id)

    @empty_for_unknown_user(list)
    def items(
        self,
        user_id: str,
        status: str | None = None,
        *,
        session_id: str | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> list[Job]:
        """The user's work items, oldest first; `newest` takes the last ones where `limit` leaves some out."""
        session = storable_id(session_id) if session_id else None
        with self.database.read() as connection:
            return jobs.listing(connection, user_id, queue.KIND, status, limit, session, newest)

    def everybodys_items(
        self, status: str | None = None, *, limit: int = 1000, newest: bool = False
    ) -> list[Job]:
        """The work items of all users, oldest first: for whoever runs the machine, never for a user."""
        with self.database.read() as connection:
            return jobs.everybodys(connection, queue.KIND, status, limit, newest)

    @empty_for_unknown_user(bool)
    def retry(self, user_id: str, item_id: int) -> bool:
        """Put a failed or dropped item back into the queue, or make a waiting one due now."""
        retried = queue.retry(self.database, user_id, item_id, self._clock())
        self.worker.wake()
        return retried

    @empty_for_unknown_user(bool)
    def drop(self, user_id: str, item_id: int) -> bool:
        """Take a waiting or failed item out of the queue; its documents stay."""
        return queue.drop(self.database, user_id, item_id, "dropped by hand", self._clock())

    def endpoint(self) -> EndpointState:
        """How the extraction endpoint was last seen, without counting anything."""
        with self.database.read() as connection:
            return endpoint_state.get(connection, endpoint_state.EXTRACTION)

    def status(self) -> Status:
        """How the memory is doing: database, queue, endpoint, health."""
        return read_status(
            self.database, self.config, self._live.problem, self.embedding.trouble(), self._clock()
        )

    def totals(self) -> Totals:
        """What `status` leaves out: sums over all users, for whoever runs the machine."""
        return read_totals(self.database)


def _forget_saved(user_id: str, said: Sequence[Document], session: str | None) -> None:
    """What a chat has left on this machine's disk of what is being forgotten."""
    saved_chats.forget_said(user_id, {one.message_id for one in said}, {one.text for one in said} - {""})
    if session is not None:
        saved_chats.forget(user_id, storable_id(session))


def _listed(messages: Sequence[Mapping[str, Any]]) -> Sequence[object]:
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise InvalidInput("messages must be a list of dicts with role and content")
    return messages


def _kinds(kinds: Sequence[str] | None) -> tuple[str, ...] | None:
    known = (entries.FACT, entries.CONTEXT, entries.DOCUMENT)
    if kinds is not None and (isinstance(kinds, str) or not set(kinds) <= set(known)):
        raise InvalidInput(f"kinds takes a list of {', '.join(known)}; got {kinds!r}")
    return None if kinds is None else tuple(kinds)


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InvalidInput(f"{name} takes {', '.join(choices)}; got {value!r}")


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _moment(value: datetime | str | None, default: int) -> int:
    if value is None:
        return default
    moment = parse_us(value)
    if moment is None:
        raise InvalidInput(f"{value!r} is not a time: give a datetime or ISO 8601")
    return moment
