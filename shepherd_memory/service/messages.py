"""Messages, exchanges and documents on their way in, and their extraction."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.embedding import backlog
from shepherd_memory.errors import DatabaseError, InvalidInput
from shepherd_memory.extraction import queue
from shepherd_memory.extraction.extractor import extraction_endpoint
from shepherd_memory.intake import store
from shepherd_memory.intake.exchange import AnsweredExchange, read_answered
from shepherd_memory.intake.messages import storable_name, text_of
from shepherd_memory.intake.store import IntakeOptions, Remembered, storable_place
from shepherd_memory.memory import documents, sessions
from shepherd_memory.memory.documents import NewDocument
from shepherd_memory.phases import usage
from shepherd_memory.service.arguments import (
    UNKNOWN_USER,
    check_known_user,
    empty_for_unknown_user,
    is_known_user,
    time_us,
)
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.group_ids import StoredId, with_group_ids
from shepherd_memory.text.citations import MAX_CITED, cited_ids
from shepherd_memory.text.groups import MAIN_GROUP, checked_group
from shepherd_memory.text.ids import storable_id
from shepherd_memory.work import jobs

FLUSH_POLL_SECONDS = 0.02


class MessageService(ServiceParts):
    """Stores what is said, and queues it for extraction."""

    def remember(
        self,
        user_id: str,
        messages: Sequence[Mapping[str, Any]],
        session_id: str | None = None,
        *,
        extract: bool = True,
        group: str = MAIN_GROUP,
        rest_seconds: float = 0.0,
        provider: str = "",
        cwd: str = "",
    ) -> Remembered:
        """Store messages, and queue what the user said for extraction if an endpoint is configured.

        Committed when it returns. A message that is already stored in the session is not stored again. With
        `rest_seconds` it is queued by `extract`, or once the session has been silent for so long, whatever
        becomes of this process; where documents are not kept, at once. `provider` and `cwd`: with whom, and
        in which folder, the session is chatted.
        """
        if not is_known_user(user_id):
            return Remembered(session_id or "", reason=UNKNOWN_USER)
        how = replace(self._intake_options(rest_seconds), place=storable_place(provider, cwd))
        given, place = _message_list(messages), checked_group(group)
        result = self._stored(
            store.remember(self.database, user_id, given, session_id, place, how, extract, self._clock())
        )
        if result.stored:
            self._count_cited(user_id, _answers(given), place)
        return result

    def _intake_options(self, rest_seconds: float = 0.0) -> IntakeOptions:
        config = self.config
        can_extract = extraction_endpoint(config) is not None
        rest_us, name = round(rest_seconds * SECOND), storable_name(config.agent_name)
        return IntakeOptions(config.memory_documents, can_extract, rest_us, agent_name=name)

    def _stored(self, result: Remembered) -> Remembered:
        if result.queued:
            self._queued(self.config)
        self.embedding.wake()
        return result

    def remember_exchange(
        self,
        user_id: str,
        messages: Sequence[Any],
        answer: str | None,
        session_id: str | None = None,
        *,
        group: str = MAIN_GROUP,
        provider: str = "",
    ) -> Remembered:
        """Store what the user said last in a chat request, and the answer to it, if there is one yet.

        However often the same request comes, in a tool loop or because a client tries again, it is stored
        once. Without a `session_id` the requests of one conversation are known by its first words.
        """
        given, place = _message_list(messages), checked_group(group)
        answered = read_answered(
            given, answer, session_id or "", self._clock(), group=place, provider=provider
        )
        if answered is None:
            return Remembered(session_id or "", reason="there is nothing to store in these messages")
        return self.store_exchange(user_id, answered)

    def store_exchange(
        self, user_id: str, answered: AnsweredExchange, is_wanted: Callable[[], bool] = lambda: True
    ) -> Remembered:
        """Store an exchange that is storable as it is, unless nobody wants that any more."""
        if not is_known_user(user_id):
            return Remembered(answered.session_id, reason=UNKNOWN_USER)
        how = self._intake_options()
        result = self._stored(
            store.remember_exchange(self.database, user_id, answered, how, self._clock(), is_wanted)
        )
        if result.stored and answered.answer:
            self._count_cited(user_id, [answered.answer], answered.group)
        return result

    def _count_cited(self, user_id: str, answers: Iterable[str], group: str) -> None:
        """What an answer cites is used. The answer itself is stored already, whatever becomes of this."""
        ids = [one for answer in answers for one in cited_ids(answer)][:MAX_CITED]
        if ids:
            with suppress(DatabaseError), self.database.write() as tx:
                if users.lock_existing(tx, user_id) is not None:
                    usage.count_cited(tx, user_id, ids, self._clock(), group)

    @with_group_ids
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
        group: str = MAIN_GROUP,
        source: str = "user",
        source_file: str = "",
        tool_names: str = "",
        cwd: str = "",
        made_of: str = "",
        extra: object = None,
    ) -> StoredId:
        """Store a document verbatim with its facets; its id, or 0 if it was deleted before.

        `made_of` names the message of its session that a note was made of: it is forgotten with that.
        """
        check_known_user(user_id)
        _check_choice("type", type, documents.TYPES)
        _check_choice("category", category, documents.CATEGORIES)
        _check_choice("speaker_type", speaker_type, documents.SPEAKER_TYPES)
        now = self._clock()
        document = NewDocument(
            session_id=session_id,
            message_id=message_id,
            text=text,
            created_at=time_us(created_at, now),
            type=type,
            category=category,
            role=role,
            speaker_type=speaker_type,
            speaker_name=speaker_name,
            group_name=checked_group(group),
            source=source,
            source_file=source_file,
            tool_names=tool_names,
            cwd=cwd,
            made_of=made_of,
        )
        document_id, _ = store.add_document(self.database, user_id, document, extra, now)
        self.embedding.wake()
        return document_id

    @empty_for_unknown_user(bool)
    def extract(self, user_id: str, session_id: str, *, group: str = MAIN_GROUP) -> bool:
        """Queue what is new in a session since its watermark; False if nothing is, or nothing can extract."""
        place = checked_group(group)
        if extraction_endpoint(self.config) is None:
            return False
        with self.database.read() as connection:
            session = sessions.live_id(connection, user_id, storable_id(session_id), place)
        queued = queue.queue_session(self.database, user_id, session, self._clock(), group=place)
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


def _message_list(messages: Sequence[Mapping[str, Any]]) -> Sequence[object]:
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise InvalidInput("messages must be a list of dicts with role and content")
    return messages


def _answers(messages: Sequence[object]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            yield text_of(message.get("content"))


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InvalidInput(f"{name} takes {', '.join(choices)}; got {value!r}")
