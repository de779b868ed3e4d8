"""Planning: jobs for the conversations that are to get a note, the newest first, so many in an hour."""

from collections.abc import Callable, Sequence

from shepherd_memory.config import Config
from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.phases import candidates, outputs
from shepherd_memory.phases.candidates import KIND, job_key
from shepherd_memory.phases.eligibility import NoteCandidate, why_not
from shepherd_memory.phases.rules import HOUR, PhaseRules, phase1_endpoint, phase_rules
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.work import jobs

USERS_AT_ONCE = 200
"""Users who are looked at in one poll: the others have their turn in the next."""

WHOLE_EVERY = 600 * SECOND
"""So often all conversations of the last days are looked at: one may have come late, from a file."""


class Planner:
    """Goes round the users who have something new, as often as conversations are polled.

    All lanes of a process share one. Between two looks at all conversations of the last days it looks only at
    those that have just become old enough, and at the users whom it is told of.
    """

    def __init__(self, database: Database, config: Callable[[], Config]) -> None:
        self._database = database
        self._config = config
        self._after = ""
        self._due_at = self._whole_at = 0
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
        config = self._config()
        if self._is_resting or phase1_endpoint(config) is None:
            self._hurried.clear()
            return 0
        rules, claims = phase_rules(config), config.memory_phase1_claims
        hurried, self._hurried = self._hurried, set()
        if now >= self._due_at or now < self._due_at - HOUR:
            self._due_at = now + round(config.poll_interval * SECOND)
            hurried |= set(self._next_users(rules, now))
        return sum(plan_user(self._database, one, rules, claims, now) for one in sorted(hurried))

    def _next_users(self, rules: PhaseRules, now: int) -> list[str]:
        is_whole = bool(self._after) or not self._whole_at - WHOLE_EVERY <= now < self._whole_at
        # An hour more: what ended then may have been found to be over only now.
        oldest = now - (rules.max_age_us if is_whole else min(rules.max_age_us, rules.min_idle_us + HOUR))
        with self._database.read() as connection:
            found = candidates.users_with_news(connection, rules, oldest, now, self._after, USERS_AT_ONCE)
        if is_whole:
            self._after = found[-1] if len(found) == USERS_AT_ONCE else ""
            self._whole_at = self._whole_at if self._after else now + WHOLE_EVERY
        return found


Choice = Callable[[NoteCandidate], bool]
"""Whether a conversation, as it stands, is to get a note."""


def plan_user(database: Database, user_id: str, rules: PhaseRules, claims_per_hour: int, now: int) -> int:
    """Queue the newest of a user's conversations that are to get a note; how many."""

    def is_due(candidate: NoteCandidate) -> bool:
        return why_not(candidate, rules, now) is None

    with database.read() as connection:
        found = candidates.listing(connection, user_id)
        has_orphans = bool(outputs.orphans(connection, user_id))
    if has_orphans:
        with database.write() as tx:
            outputs.drop_orphans(tx, user_id)
    wanted = [one.conversation for one in found if is_due(one)]
    return queue(database, user_id, wanted, is_due, now, claims_per_hour)


def queue(
    database: Database,
    user_id: str,
    wanted: Sequence[Conversation],
    is_due: Choice,
    now: int,
    claims_per_hour: int | None = None,
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
            room = claims_per_hour - queued_since(tx, user_id, now - HOUR)
        if first_id is None or room <= 0:
            return 0
        for job_id, one in enumerate(wanted[: max(0, room)], first_id):
            for current in candidates.listing(tx, user_id, 1, one.group_name, one.id):
                if is_due(current):
                    put(tx, user_id, job_id, current.conversation, now)
                    queued += 1
    return queued


def put(tx: Connection, user_id: str, job_id: int, conversation: Conversation, now: int) -> None:
    """Have a conversation's note made: a job that waits or has failed begins anew, with all its tries."""
    through = conversation.last_document
    jobs.put_anew(tx, user_id, job_id, KIND, job_key(conversation), now, through)


def queued_since(connection: Connection, user_id: str, since: int) -> int:
    """How many notes were begun for a user since then."""
    row = connection.row(
        f"select count(*) from jobs where user_id = :user_id and kind = '{KIND}' and queued_at > :since",
        user_id=user_id,
        since=since,
    )
    return 0 if row is None else int(row[0])
