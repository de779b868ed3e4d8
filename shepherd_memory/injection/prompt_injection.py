"""One prompt's injection: each earlier turn gets back what it got, the last one what is known for it."""

import logging
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from shepherd_memory.errors import DatabaseError
from shepherd_memory.injection import log, stored_blocks
from shepherd_memory.injection.beginning import Beginning, begin
from shepherd_memory.injection.block import MemoryBlock
from shepherd_memory.injection.follow_up import TurnQuery, query_of
from shepherd_memory.injection.handing_on import NOTHING, HandedOn, handing_rules, is_handed_in
from shepherd_memory.injection.injector import InjectionRequest, Injector
from shepherd_memory.injection.log import LoggedPrompt
from shepherd_memory.injection.prompt import inject
from shepherd_memory.injection.prompting import Injected, PromptBudget, compose, told_in
from shepherd_memory.injection.recording import record
from shepherd_memory.injection.stored_blocks import GivenBlock, StoredBlock
from shepherd_memory.injection.turns import UserTurn, is_underway, user_turns
from shepherd_memory.memory import responses, session_lives
from shepherd_memory.memory.session_lives import SessionLife
from shepherd_memory.memory.sessions import OFF, ON
from shepherd_memory.recall import Recalled
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.ids import digest_of, storable_id
from shepherd_memory.text.redaction import redact

SAME_AS_BEFORE = "the same as before in this conversation"
NOTHING_SAID = "the user says nothing"
NOTHING_FITS = "nothing fits"
SWITCHED_OFF = "rag_max_tokens is 0"
MEMORY_OFF = "the memory of this session is off"

ALONE = 0.8
"""The confidence of what a follow-up finds alone, where nothing is found with what it follows: it may begin
something new. A name finds its own then, and "continue" a little of everything (`report_follow_ups`)."""

MAX_SHOWN_MESSAGES = 50
MAX_RENEWED = 5
"""Of the turns whose block was taken back, so many, the last, get another; the others get none."""

logger = logging.getLogger(__name__)


class _Outcome(NamedTuple):
    """What a turn gets, what was recalled for it, and the id that the log has it under."""

    kept: StoredBlock
    recalled: Recalled
    request: str
    reason: str = ""


class PromptInjection:
    """Runs once, in a thread of its own where somebody may not be able to wait for it."""

    def __init__(self, injector: Injector, request: InjectionRequest) -> None:
        self._injector = injector
        self._request = request
        self._restored: dict[int, MemoryBlock] = {}
        self._seq = 0
        self._turns: list[UserTurn] = []
        self._given: dict[str, GivenBlock] = {}
        self._before: list[GivenBlock] = []
        self._after = request.after
        self._session_id = request.session_id
        self._life: SessionLife | None = None
        self._is_stored = False
        self._is_off = False
        self._is_abandoned = False

    def run(self) -> Injected:
        """Find the blocks of all turns, and make those that are missing."""
        if not self._injector.config().rag_max_tokens:
            return Injected(list(self._request.messages), reason=SWITCHED_OFF)
        with self._injector.database.read() as connection:
            self._load(connection)
        if not self._turns or self._is_off:
            return Injected(list(self._request.messages), reason=MEMORY_OFF if self._is_off else NOTHING_SAID)
        *earlier, last = self._turns
        self._restore(earlier)
        self._note_use()
        self._renew([turn for turn in earlier if self._is_withdrawn(turn)])
        return self._injected(last, self._outcome(last))

    def abandon(self) -> dict[int, MemoryBlock]:
        """Wait no longer: the blocks of earlier turns that are found by now. The last one never gets any."""
        self._is_abandoned = True
        return dict(self._restored)

    def _load(self, connection: Connection) -> None:
        asked = self._request
        self._go_on(connection)
        number, self._seq = _number_and_seq(connection, asked.user_id)
        # A user who was erased and begins again has another number, and is not told what was erased.
        self._turns = user_turns(asked.messages, self._after or self._start(connection, number))
        self._is_off = self._mode(connection) == OFF
        keys = [turn.key for turn in self._turns]
        self._given = stored_blocks.load(connection, asked.user_id, asked.group, keys)
        for key, kept in self._injector.unsaved.of(asked.user_id, asked.group, keys).items():
            if key not in self._given and self._is_current(connection, kept):
                self._given[key] = GivenBlock(kept, self._seq, self._injector.clock())
        if self._after:
            self._before = stored_blocks.load_chain(connection, asked.user_id, asked.group, self._after)

    def _mode(self, connection: Connection) -> str:
        """What the memory of the session is for."""
        asked, session_id = self._request, self._stored_session_id
        life = self._life
        if life is None and self._after and session_id:
            life = session_lives.get(connection, asked.user_id, session_id, asked.group)
        return ON if life is None else life.memory_mode

    def _is_current(self, connection: Connection, kept: StoredBlock) -> bool:
        user_id, group = self._request.user_id, self._request.group
        is_there = is_handed_in(connection, user_id, self._stored_session_id, kept.handed_in, group)
        return is_there and kept.is_current(connection, user_id)

    def _start(self, connection: Connection, number: int) -> str:
        """Where the chain of turns begins: each session that was started has a chain of its own."""
        asked, session_id = self._request, self._stored_session_id
        life = session_lives.get(connection, asked.user_id, session_id, asked.group) if session_id else None
        self._is_stored = life is not None
        if life is None or life.status == session_lives.UNSTARTED:
            return str(number)
        self._life = life
        return digest_of(f"{number}\0{session_id}")

    @cached_property
    def _stored_session_id(self) -> str:
        """Of the session, which is known once it is looked where the messages go on from."""
        return storable_id(self._session_id) if self._session_id else ""

    def _go_on(self, connection: Connection) -> None:
        """Where the messages go on from a response: its last turn, and its session if none is named."""
        asked = self._request
        if not asked.previous_response:
            return
        response_id, now = storable_id(asked.previous_response), self._injector.clock()
        previous = responses.find(connection, asked.user_id, response_id, now, asked.group)
        if previous is not None:
            self._after = self._after or previous.block_key
            self._session_id = self._session_id or previous.session_id

    def _restore(self, turns: Sequence[UserTurn]) -> None:
        for turn in turns:
            given = self._given.get(turn.key)
            if given is not None and given.kept is not None and given.kept.block is not None:
                self._restored[turn.place] = given.kept.block

    def _note_use(self) -> None:
        injector, asked, now = self._injector, self._request, self._injector.clock()
        keys = [key for key, given in self._given.items() if stored_blocks.is_use_to_note(given, now)]
        if keys:
            with suppress(DatabaseError), injector.database.write() as tx:
                if users.lock_existing(tx, asked.user_id) is not None:
                    stored_blocks.note_use(tx, asked.user_id, asked.group, keys, now)

    def _is_withdrawn(self, turn: UserTurn) -> bool:
        given = self._given.get(turn.key)
        return given is not None and given.kept is None

    def _renew(self, withdrawn: Sequence[UserTurn]) -> None:
        """Make another block for turns whose own was taken back, because something in it was forgotten."""
        for turn in withdrawn[-MAX_RENEWED:]:
            block = self._composed(turn).kept.block
            if block is not None:
                self._restored[turn.place] = block

    def _outcome(self, last: UserTurn) -> _Outcome:
        kept = self._kept_for(last)
        return self._composed(last) if kept is None else _Outcome(kept, Recalled(), "", SAME_AS_BEFORE)

    def _kept_for(self, last: UserTurn) -> StoredBlock | None:
        """What the last turn has got, if it is to have the same again; None: it is to get something now.

        In a tool loop what has got nothing gets nothing. What is asked again with nothing in between gets the
        same; after the user has said something else, it is another conversation that begins alike.
        """
        given, asked = self._given.get(last.key), self._request
        if is_underway(asked.messages, last):
            return given.kept if given else StoredBlock(None)
        if given is None or given.kept is None:
            return None
        with self._injector.database.read() as connection:
            has_news = stored_blocks.has_news(
                connection, asked.user_id, given.seq, redact(last.text), asked.group
            )
        return None if has_news else given.kept

    def _injected(self, last: UserTurn, outcome: _Outcome) -> Injected:
        block = outcome.kept.block
        blocks = {**self._restored, last.place: block} if block else dict(self._restored)
        return Injected(
            inject(self._request.messages, blocks),
            block,
            outcome.request,
            outcome.recalled,
            outcome.reason,
            outcome.kept.told,
            blocks,
            tuple(self._turns),
        )

    def _composed(self, turn: UserTurn) -> _Outcome:
        """A block for a turn, kept; another one if something in the first is forgotten at that moment."""
        recalled = Recalled()
        for _ in range(2):
            query = query_of(self._request.messages, self._turns, turn)
            kept, recalled = self._compose(turn, query)
            saved = self._saved(turn, kept, recalled, query)
            if saved is not None:
                return saved
        return _Outcome(StoredBlock(None), recalled, "", NOTHING_FITS)

    def _compose(self, turn: UserTurn, query: TurnQuery) -> tuple[StoredBlock, Recalled]:
        asked, config = self._request, self._injector.config()
        room = PromptBudget(config.rag_max_results, config.rag_max_tokens, config.rag_max_conversation_tokens)
        others = [self._given[one.key] for one in self._turns if one is not turn and one.key in self._given]
        told = told_in([*self._before, *others])
        recalled = self._recalled(query, room.results)
        with self._injector.database.read() as connection:
            elsewhere = self._session_id if self._after else ""
            handed_on = self._handed_on(connection, turn)
            kept = compose(
                connection,
                asked.user_id,
                asked.messages,
                recalled,
                room,
                told,
                elsewhere,
                asked.group,
                handed_on,
            )
        given = self._given.get(turn.key)
        before = given.kept if given else None
        # What the turn has got already, where that tells the same.
        return before if before and before.tells_as(kept) else kept, recalled

    def _handed_on(self, connection: Connection, turn: UserTurn) -> HandedOn:
        """What a conversation begins with, in its first turn."""
        if self._after or turn is not self._turns[0]:
            return NOTHING
        rules = handing_rules(self._injector.config(), self._request.context_window)
        place = Beginning(self._request.group, self._stored_session_id, self._life, self._is_stored)
        return begin(connection, self._request.user_id, place, rules)

    def _recalled(self, query: TurnQuery, limit: int) -> Recalled:
        """What is found for a query: for one that means little alone, together with what came before it."""
        asked = self._request
        # What the prompt shows already is among the best found, and is left out.
        most = max(1, limit + min(len(asked.messages), MAX_SHOWN_MESSAGES))
        threshold = self._injector.config().rag_relevance_threshold
        if not query.in_context:
            return self._find(query.text, most, threshold)
        found = self._find(query.in_context, most, threshold)
        if not found.abstained:
            return found
        return self._find(query.text, most, max(threshold, ALONE))

    def _find(self, query: str, most: int, threshold: float) -> Recalled:
        asked = self._request
        return self._injector.find(
            asked.user_id, query, most, threshold, asked.now, asked.explain, asked.group
        )

    def _saved(
        self, turn: UserTurn, kept: StoredBlock, recalled: Recalled, query: TurnQuery
    ) -> _Outcome | None:
        """What the turn gets in the end; None if something in the block is forgotten by now."""
        request = uuid.uuid4().hex[:12]
        prompt = LoggedPrompt(request, self._stored_session_id, redact(query.text), self._request.group)
        try:
            given = self._recorded(turn, kept, prompt, recalled)
        except DatabaseError as error:
            # A database that cannot be written to now can still be read.
            logger.warning("what is injected could not be noted (%s)", type(error).__name__)
            given, request = self._unsaved(turn, kept), ""
        if given is None and kept.block is None:
            # Nothing is stored of this user yet.
            given = self._unsaved(turn, kept)
        if given is None:
            return None
        self._given[turn.key] = given
        final = given.kept or StoredBlock(None)
        reason = "" if final.block else recalled.reason or NOTHING_FITS
        return _Outcome(final, recalled, request if final.block else "", reason)

    def _recorded(
        self, turn: UserTurn, kept: StoredBlock, prompt: LoggedPrompt, recalled: Recalled
    ) -> GivenBlock | None:
        """What was committed for the turn: nothing, where the prompt was sent without waiting for it."""
        new = GivenBlock(kept, self._seq, self._injector.clock())
        nothing = replace(new, kept=StoredBlock(None))
        seen = self._given.get(turn.key)
        given = self._record(turn, nothing if self._is_abandoned else new, seen, prompt, recalled)
        if self._is_abandoned and given is new:
            return self._record(turn, nothing, given, prompt, recalled)
        return given

    def _record(
        self,
        turn: UserTurn,
        new: GivenBlock,
        seen: GivenBlock | None,
        prompt: LoggedPrompt,
        recalled: Recalled,
    ) -> GivenBlock | None:
        injector, user_id, group = self._injector, self._request.user_id, self._request.group
        with injector.database.write() as tx:
            given = record(tx, user_id, group, turn, new, seen, prompt, recalled.hits)
            if given is not None and injector.pruning.is_due(user_id):
                log.prune(tx, user_id)
                stored_blocks.prune(tx, user_id, new.used_at)
        return given

    def _unsaved(self, turn: UserTurn, kept: StoredBlock) -> GivenBlock:
        self._injector.unsaved.put(self._request.user_id, self._request.group, turn.key, kept)
        return GivenBlock(kept, self._seq, self._injector.clock())


def _number_and_seq(connection: Connection, user_id: str) -> tuple[int, int]:
    row = connection.row("select number, seq from users where user_id = :user_id", user_id=user_id)
    return (row[0], row[1]) if row else (0, 0)
