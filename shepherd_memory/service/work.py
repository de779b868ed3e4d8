"""The extraction queue, and how the memory is doing."""

from shepherd_memory.extraction import endpoint_state, jobs, ledger, queue
from shepherd_memory.extraction.endpoint_state import EndpointState
from shepherd_memory.extraction.jobs import Job
from shepherd_memory.maintenance.status import Status, Totals, read_health, read_status
from shepherd_memory.service.arguments import empty_for_unknown_user
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.text.ids import storable_id


class WorkService(ServiceParts):
    """Shows and changes work items, and reports the state of the memory."""

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

    @empty_for_unknown_user(int)
    def count_items(self, user_id: str, *statuses: str, due: bool = False) -> int:
        """How many of the user's items are in one of these states; `due` leaves out what is put off."""
        due_by = self._clock() if due else None
        with self.database.read() as connection:
            return jobs.count_of(connection, user_id, queue.KIND, statuses, due_by)

    @empty_for_unknown_user(lambda: dict.fromkeys(jobs.STATUSES, 0))
    def item_counts(self, user_id: str) -> dict[str, int]:
        """How many of the user's items are in which state, at one moment."""
        with self.database.read() as connection:
            return jobs.count_by_status(connection, user_id, queue.KIND)

    @empty_for_unknown_user(int)
    def tokens_spent_today(self, user_id: str) -> int:
        """The tokens that extraction has cost the user today."""
        with self.database.read() as connection:
            return ledger.spent_on(connection, user_id, ledger.EXTRACTION, self._clock())

    def all_items(self, status: str | None = None, *, limit: int = 1000, newest: bool = False) -> list[Job]:
        """The work items of all users, oldest first: for whoever runs the machine, never for a user."""
        with self.database.read() as connection:
            return jobs.list_all_users(connection, queue.KIND, status, limit, newest)

    @empty_for_unknown_user(bool)
    def retry(self, user_id: str, item_id: int) -> bool:
        """Put a failed or dropped item back into the queue, or make a waiting one due now."""
        retried = jobs.retry(self.database, user_id, item_id, self._clock())
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

    def problems(self) -> tuple[str, ...]:
        """Why the memory is not healthy; cheap, whatever is stored."""
        with self.database.read() as connection:
            return read_health(connection, self.config, self._live.problem, self._clock()).problems

    def status(self) -> Status:
        """How the memory is doing: database, queue, endpoint, health; large numbers may be a minute old."""
        return read_status(
            self.database,
            self.config,
            self._live.problem,
            self.embedding.trouble(),
            self.tallies.read(),
            self._clock(),
        )

    def totals(self) -> Totals:
        """What `status` leaves out: sums over all users, for whoever runs the machine."""
        numbers = self.tallies.read()
        return Totals(numbers.rejections, numbers.tokens)
