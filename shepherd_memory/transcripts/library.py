"""The library of transcripts: what frontends call to take them in, list them and read them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from pathlib import Path
from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.config.identity import is_known
from shepherd_memory.conversations import conversation as conversations
from shepherd_memory.conversations import life_cycle
from shepherd_memory.conversations.conversation import MINUTE, STATUSES
from shepherd_memory.errors import ConfigError, InvalidInput, NotFound
from shepherd_memory.extraction.extractor import extraction_endpoint
from shepherd_memory.memory import documents, session_documents, threads
from shepherd_memory.memory.documents import Document
from shepherd_memory.storage.clock import SECOND, Clock
from shepherd_memory.storage.database import Database
from shepherd_memory.storage.group_ids import StoredId, with_group_ids
from shepherd_memory.text.groups import MAIN_GROUP, checked_group, nearness
from shepherd_memory.text.ids import checked_user_id, storable_id
from shepherd_memory.transcripts import files, ingestion
from shepherd_memory.transcripts.files import File
from shepherd_memory.transcripts.ingestion import IngestOptions, IngestResult
from shepherd_memory.work.strategy import Strategy

PAGE = 500


@dataclass(frozen=True)
class TranscriptHealth:
    """How a user's transcripts are doing; `lag_seconds`: since a conversation waits that has ended."""

    files: int = 0
    ingesting: int = 0
    bytes: int = 0
    entries: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    conversations: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATUSES, 0))
    lag_seconds: float = 0.0
    errors: dict[str, str] = field(default_factory=dict)


class Library:
    """Everybody's transcripts; every call names the user it is for."""

    def __init__(
        self,
        database: Database,
        config: Callable[[], Config],
        clock: Clock,
        stored: Callable[[], None],
        queued: Callable[[], None] = lambda: None,
    ) -> None:
        """`stored` and `queued` are called after something was."""
        self.database = database
        self._config = config
        self._clock = clock
        self._stored = stored
        self._queued = queued
        self._strategies: Sequence[Strategy[Any]] = ()

    def serve(self, strategies: Sequence[Strategy[Any]]) -> None:
        """Conversations are for these strategies. Before it is told of any, a library moves none on."""
        self._strategies = strategies

    def ingest(
        self,
        user_id: str,
        path: Path,
        base: Path | None = None,
        *,
        reimport: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
        progress: Callable[[int], None] = lambda size: None,
        group: str = MAIN_GROUP,
    ) -> IngestResult:
        """Take in what one file has that is not stored yet.

        Its key is its path from `base`, by default its folder's parent: the same file in a backup and in the
        live folder is one. What is wrong with the file is in the result. A new file goes to `group`; one that
        is known stays where it is, and is read on from that group and from `main`.
        """
        place = checked_group(group)
        self._check_can_store(user_id)
        gap_us = round(self._config().conversation_gap_minutes * MINUTE)
        how = IngestOptions(gap_us, reimport, should_stop, progress, place)
        found = ingestion.ingest_file(
            self.database, user_id, path, base or path.absolute().parent.parent, how, self._clock
        )
        if found.entries:
            self._stored()
        return found

    def _check_can_store(self, user_id: str) -> None:
        if not is_known(checked_user_id(user_id)):
            raise InvalidInput("the user is unknown: nothing is stored or searched without a user_id")
        if not self._config().memory_documents:
            raise ConfigError("memory_documents is off: transcripts would be stored verbatim")

    def recover(self) -> int:
        """Let go of files whose reader was killed; how many. For whoever runs the machine."""
        return files.release_expired(self.database, self._clock())

    def poll(self) -> int:
        """Move everybody's conversations on: ended, handed to extraction, done; how many moved."""
        config, now = self._config(), self._clock()
        gap_us = round(config.conversation_gap_minutes * MINUTE)
        if not self._strategies:
            return 0
        moved = life_cycle.poll(self.database, gap_us, self._strategies, now)
        if extraction_endpoint(config) is None:
            return moved
        limit, daily = config.memory_extraction_queue_limit, config.memory_extraction_daily_tokens
        handed_on = life_cycle.queue_ready(self.database, limit, daily, now)
        if handed_on:
            self._queued()
        return moved + handed_on

    def files(self, user_id: str, *, group: str = MAIN_GROUP) -> list[File]:
        """The files that were taken in, as far as the group sees them."""
        place = checked_group(group)
        if not is_known(checked_user_id(user_id)):
            return []
        with self.database.read() as connection:
            return files.listing(connection, user_id, place)

    def health(self, user_id: str, *, group: str = MAIN_GROUP) -> TranscriptHealth:
        """How a user's transcripts that the group sees are doing."""
        place = checked_group(group)
        if not is_known(checked_user_id(user_id)):
            return TranscriptHealth()
        with self.database.read() as connection:
            known = files.listing(connection, user_id, place)
            stored = documents.count_imported(connection, user_id, place)
            counts = conversations.count(connection, user_id, place)
            waiting_since = conversations.waiting_since(connection, user_id, place)
        now = self._clock()
        skipped: dict[str, int] = {}
        for file in known:
            for reason, number in file.skipped_lines.items():
                skipped[reason] = skipped.get(reason, 0) + number
        return TranscriptHealth(
            files=len(known),
            ingesting=sum(file.is_read_now(now) for file in known),
            bytes=sum(file.read_through for file in known),
            entries=stored,
            skipped=dict(sorted(skipped.items())),
            conversations=counts,
            lag_seconds=0.0 if waiting_since is None else max(0, now - waiting_since) / SECOND,
            errors={file.file_key: file.problem for file in known if file.problem},
        )

    def session(self, user_id: str, name: str, *, group: str = MAIN_GROUP) -> tuple[str, str]:
        """The session that a name means, and its group; or NotFound.

        The name is its id, the beginning of that, or its file's key. Of several groups the nearest counts.
        """
        wanted = storable_id(name)
        known = self.files(user_id, group=group)
        exact = [file for file in known if wanted in (file.session_id, file.file_key)]
        found = exact or [file for file in known if file.session_id.startswith(wanted)]
        nearest = min((nearness(group, file.group_name) for file in found), default=None)
        alike = {file.session_id for file in found if nearness(group, file.group_name) == nearest}
        if len(alike) == 1 and nearest is not None:
            return alike.pop(), nearest[1]
        if not alike:
            raise NotFound(f"there is no transcript {name!r}; `shepherd memory conversations` lists them")
        raise InvalidInput(f"{name!r} could be any of {len(alike)} transcripts: give more of its name")

    @with_group_ids
    def read(self, user_id: str, session_id: str, *, group: str = MAIN_GROUP) -> Iterator[Document]:
        """What was said in a session of the group, in its order; of one that came in both ways, all of it."""
        place = checked_group(group)
        if not is_known(checked_user_id(user_id)):
            return iter(())
        with self.database.read() as connection:
            parts = threads.parts(connection, user_id, session_id, place)
        said = (self._read_part(user_id, part, place) for part in parts)
        return merge(*said, key=lambda document: document.created_at) if len(parts) > 1 else next(said)

    def _read_part(self, user_id: str, session_id: str, group: str) -> Iterator[Document]:
        first = 0
        while True:
            with self.database.read() as connection:
                page = session_documents.of_session(connection, user_id, session_id, PAGE, first, group=group)
            yield from page
            if len(page) < PAGE:
                return
            first = page[-1].id + 1

    @with_group_ids
    def around(
        self, user_id: str, document_id: StoredId, turns: int, *, group: str = MAIN_GROUP
    ) -> list[Document]:
        """A document that the group sees, with its neighbours in the session: so many before, and after."""
        place = checked_group(group)
        if not is_known(checked_user_id(user_id)):
            return []
        with self.database.read() as connection:
            return session_documents.around(connection, user_id, document_id, turns, place)
