"""Planning: jobs for the conversations that are to be handed to a strategy, the newest first."""

from collections.abc import Callable, Sequence

from shepherd_memory.config import Config
from shepherd_memory.conversations import life_cycle
from shepherd_memory.conversations.conversation import MINUTE, Conversation
from shepherd_memory.conversations.life_cycle import LATE
from shepherd_memory.phases import candidates, outputs
from shepherd_memory.phases.candidates import job_key
from shepherd_memory.phases.eligibility import NoteCandidate, why_not
from shepherd_memory.phases.rules import PhaseRules
from shepherd_memory.phases.strategy import ConversationStrategy
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import HOUR, SECOND
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.work import jobs, signals
from shepherd_memory.work.kinds import SUMMARY, strategy_kind

USERS_AT_ONCE = 200
"""Users who are looked at in one poll: the others have their turn in the next."""

WHOLE_EVERY = 600 * SECOND
"""So often all conversations of the last days are looked at: one may have come late, from a file."""


class Planner:
    """Goes round the users who have something new for a strategy, as often as conversations are polled.

    All lanes of a process share one. Between two looks at all conversations of the last days it looks only at
    those that have just become old enough, and at the users whom it is told of; at all of them again when
    some came late.
    """

    def __init__(
        self, database: Database, config: Callable[[], Config], strategy: ConversationStrategy
    ) -> None:
        self._database = database
        self._config = config
        self._strategy = strategy
        self._after = ""
        self._due_at = self._whole_at = 0
        self._late_seen = -1
        self._hurried: set[str] = set()
        self._is_resting = False

    def rest(self) -> None:
        """Queue nothing any more: whoever works has chosen what is to be done."""
        self._is_resting = True

    def hurry(self, user_id: str) -> None:
        """Look at this user's conversations at the next opportunity."""
        self._hurried.add(user_id)

    def poll(self, now: int) -> int:
        """Queue what is to be done for the next users, if it is time for that; how many jobs."""
        if self._is_resting or self._strategy.terms().endpoint is None:
            self._hurried.clear()
            return 0
        rules = self._strategy.rules()
        hurried, self._hurried = self._hurried, set()
        if now >= self._due_at or now < self._due_at - HOUR:
            self._due_at = now + round(self._config().poll_interval * SECOND)
            hurried |= set(self._next_users(rules, now))
        return sum(plan_user(self._database, one, rules, now, self._strategy.name) for one in sorted(hurried))

    def _next_users(self, rules: PhaseRules, now: int) -> list[str]:
        # A conversation is over when its gap is; an hour more, as it may be found to be so only now.
        newly_us = max(rules.min_idle_us, round(self._config().conversation_gap_minutes * MINUTE)) + HOUR
        with self._database.read() as connection:
            late = signals.seen(connection, LATE)
            is_whole = bool(self._after) or late != self._late_seen or not self._is_whole_recent(now)
            oldest = now - (rules.max_age_us if is_whole else min(rules.max_age_us, newly_us))
            found = candidates.users_with_news(
                connection, rules, oldest, now, self._after, USERS_AT_ONCE, self._strategy.name
            )
        if not self._after:
            self._late_seen = late
        if is_whole:
            self._after = found[-1] if len(found) == USERS_AT_ONCE else ""
            self._whole_at = self._whole_at if self._after else now + WHOLE_EVERY
        return found

    def _is_whole_recent(self, now: int) -> bool:
        return self._whole_at - WHOLE_EVERY <= now < self._whole_at


Choice = Callable[[NoteCandidate], bool]
"""Whether a conversation, as it stands, is to get a note."""


def plan_user(database: Database, user_id: str, rules: PhaseRules, now: int, strategy: str = SUMMARY) -> int:
    """Queue the newest of a user's conversations that are to be handed to a strategy; how many."""

    def is_due(candidate: NoteCandidate) -> bool:
        return why_not(candidate, rules, now) is None

    with database.read() as connection:
        found = candidates.listing(connection, user_id, strategy=strategy)
        has_orphans = bool(outputs.orphans(connection, user_id))
    if has_orphans:
        with database.write() as tx:
            outputs.drop_orphans(tx, user_id)
    wanted = [one.conversation for one in found if is_due(one)]
    return queue(database, user_id, wanted, is_due, now, rules.claims_per_hour, strategy)


def queue(
    database: Database,
    user_id: str,
    wanted: Sequence[Conversation],
    is_due: Choice,
    now: int,
    claims_per_hour: int | None = None,
    strategy: str = SUMMARY,
) -> int:
    """Put a job for each of these conversations of a user that is due; how many.

    Under the user's lock each is looked at again: another process may have queued it, and even have made its
    note, since it was found.
    """
    if not wanted:
        return 0
    queued = 0
    with database.write() as tx:
        first_id = users.lock_existing(tx, user_id, rows=len(wanted))
        room = len(wanted)
        if claims_per_hour is not None:
            room = claims_per_hour - queued_since(tx, user_id, now - HOUR, strategy)
        if first_id is None or room <= 0:
            return 0
        for job_id, one in enumerate(wanted[: max(0, room)], first_id):
            for current in candidates.listing(tx, user_id, 1, one.group_name, one.id, strategy=strategy):
                if is_due(current):
                    put(tx, user_id, job_id, current.conversation, now, strategy)
                    queued += 1
    return queued


def put(
    tx: Connection,
    user_id: str,
    job_id: int,
    conversation: Conversation,
    now: int,
    strategy: str = SUMMARY,
) -> None:
    """Hand on a conversation: a job that waits or has failed begins anew, with all its tries."""
    kind, through = strategy_kind(strategy), conversation.last_document
    jobs.put_anew(tx, user_id, job_id, kind, job_key(conversation), now, through)
    life_cycle.reopen(tx, user_id, conversation.id, now)


def queued_since(connection: Connection, user_id: str, since: int, strategy: str = SUMMARY) -> int:
    """How many conversations of a user were handed to a strategy since then."""
    row = connection.row(
        "select count(*) from jobs where user_id = :user_id and kind = :kind and queued_at > :since",
        user_id=user_id,
        kind=strategy_kind(strategy),
        since=since,
    )
    return 0 if row is None else int(row[0])
