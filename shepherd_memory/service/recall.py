"""Recall, what goes into a prompt, and the vectors that both need."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from types import NoneType
from typing import Any

from shepherd_memory.embedding import Unavailable, backlog
from shepherd_memory.errors import InvalidInput
from shepherd_memory.injection import log
from shepherd_memory.injection.block import MemoryBlock, build_block
from shepherd_memory.injection.injector import InjectionRequest, Injector, PruneSchedule, UnsavedBlocks
from shepherd_memory.injection.log import Injection
from shepherd_memory.injection.prompt_injection import PromptInjection
from shepherd_memory.injection.prompting import Injected
from shepherd_memory.memory import entries, facts
from shepherd_memory.recall import Recalled
from shepherd_memory.recall.hits import Scope
from shepherd_memory.service.arguments import (
    UNKNOWN_USER,
    empty_for_unknown_user,
    is_known_user,
    time_us,
)
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.group_ids import with_group_ids
from shepherd_memory.text.canonical import as_text, canonical_text
from shepherd_memory.text.groups import MAIN_GROUP, checked_group


class RecallService(ServiceParts):
    """Finds memories, and puts them into prompts."""

    @with_group_ids
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
        group: str = MAIN_GROUP,
    ) -> Recalled:
        """Find what a query is about among the facts, context and documents that the group sees, best first.

        `project` is a folder or the name of one, `source` where a document came from, such as `claude-code`:
        these are found among documents only.
        """
        if not is_known_user(user_id):
            return Recalled(abstained=True, reason=UNKNOWN_USER)
        cut = self.config.rag_relevance_threshold if threshold is None else threshold
        scope = Scope(
            _kinds(kinds),
            canonical_text(project),
            canonical_text(source),
            None if since is None else time_us(since, 0),
            None if until is None else time_us(until, 0),
        )
        place = checked_group(group)
        return self._find(user_id, as_text(query), max(1, limit), cut, now, scope, explain, place)

    def _find(
        self,
        user_id: str,
        query: str,
        limit: int,
        threshold: float,
        now: datetime | None,
        scope: Scope,
        explain: bool,
        group: str,
    ) -> Recalled:
        """Recall for arguments that were checked."""
        asked_at = _in_utc(now or from_us(self._clock()))
        return self._recall.recall(user_id, query, limit, threshold, asked_at, scope, explain, group)

    @with_group_ids
    def inject(
        self,
        user_id: str,
        messages: Sequence[Any],
        *,
        session_id: str = "",
        group: str = MAIN_GROUP,
        after: str = "",
        now: datetime | None = None,
        explain: bool = False,
        context_window: int = 0,
    ) -> Injected:
        """The messages with what the user's memory has for them, each block at the tail of its message.

        A turn of the user that got a block gets the same one again, and one that got none gets none; the last
        one gets what is known for it. `after` goes on with a conversation whose earlier messages are not
        given: the key of its last turn, from `Injected.turns`. `explain` has the hits say what their scores
        are made of. The first turn of a session that was started is told of the session before it, within
        its own budget and a quarter of the model's `context_window`, where that is known.
        """
        if not is_known_user(user_id):
            return Injected(list(messages), reason=UNKNOWN_USER)
        place = checked_group(group)
        request = InjectionRequest(
            user_id, messages, session_id, place, after, now, explain, context_window=context_window
        )
        return PromptInjection(self.injector, request).run()

    @with_group_ids
    def run_injection(self, user_id: str, injection: PromptInjection, *, group: str = MAIN_GROUP) -> Injected:
        """What a prompt injection of this group's finds; for whoever may not be able to wait for it."""
        checked_group(group)
        return injection.run() if is_known_user(user_id) else Injected([], reason=UNKNOWN_USER)

    @empty_for_unknown_user(NoneType)
    @with_group_ids
    def profile(
        self, user_id: str, *, group: str = MAIN_GROUP, budget_tokens: int | None = None
    ) -> MemoryBlock | None:
        """What a group's prompts are told whatever they ask: its facts and those of `global`."""
        place = checked_group(group)
        tokens = self.config.rag_max_tokens if budget_tokens is None else budget_tokens
        with self.database.read() as connection:
            known = facts.profile(connection, user_id, place)
        return build_block([(fact.key, fact.value) for fact in known], [], tokens)

    @cached_property
    def injector(self) -> Injector:
        """What injections share; for whoever may not be able to wait for one."""
        return Injector(
            self.database,
            self._find_for_prompt,
            lambda: self.config,
            self._clock,
            UnsavedBlocks(),
            PruneSchedule(),
        )

    def _find_for_prompt(
        self,
        user_id: str,
        query: str,
        limit: int,
        threshold: float,
        now: datetime | None,
        explain: bool,
        group: str,
    ) -> Recalled:
        return self._find(user_id, query, limit, threshold, now, Scope(), explain, group)

    @empty_for_unknown_user(list)
    @with_group_ids
    def why(
        self, user_id: str, request: str = "", limit: int = 100, *, group: str = MAIN_GROUP
    ) -> list[Injection]:
        """What was put into the prompts that the group sees, newest first, and how it was ranked."""
        place = checked_group(group)
        with self.database.read() as connection:
            return log.listing(connection, user_id, request, limit, place)

    def reembed(self) -> int:
        """Let everything that has no vector of the current model be embedded again; how many entries wait."""
        embedder = self.embedding.embedder()
        if embedder is not None:
            backlog.queue_all(self.database, embedder.model, self._clock())
        self.embedding.wake()
        with self.database.read() as connection:
            return backlog.size(connection)

    def embed(self) -> int:
        """Embed the entries that have waited longest, in this thread; how many.

        It is 0 once nothing waits that no other process is embedding.
        """
        embedder = self.embedding.embedder()
        if embedder is None:
            raise Unavailable(self.embedding.trouble() or "embedding_engine is none: nothing is embedded")
        return backlog.embed_batch(self.database, embedder, self._clock())

    @empty_for_unknown_user(int)
    def embed_own(self, user_id: str) -> int:
        """Embed some of the user's entries that wait, in this thread; how many, 0 if there is no model."""
        embedder = self.embedding.embedder()
        if embedder is None:
            return 0
        return backlog.embed_batch(self.database, embedder, self._clock(), only_user=user_id)

    @empty_for_unknown_user(int)
    def unembedded(self, user_id: str, *, group: str = MAIN_GROUP) -> int:
        """How many of the entries that the group sees are found by keyword only, until they are embedded."""
        place = checked_group(group)
        with self.database.read() as connection:
            return backlog.size_of(connection, user_id, place)


def _kinds(kinds: Sequence[str] | None) -> tuple[str, ...] | None:
    known = (entries.FACT, entries.CONTEXT, entries.DOCUMENT)
    if kinds is not None and (isinstance(kinds, str) or not set(kinds) <= set(known)):
        raise InvalidInput(f"kinds takes a list of {', '.join(known)}; got {kinds!r}")
    return None if kinds is None else tuple(kinds)


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
