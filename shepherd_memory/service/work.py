"""The extraction queue, and how the memory is doing."""

from shepherd_memory.extraction import queue
from shepherd_memory.maintenance.status import Status, Totals, read_status, read_totals
from shepherd_memory.service.arguments import empty_for_unknown_user
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.text.ids import storable_id
from shepherd_memory.work import endpoint_state, jobs, ledger
from shepherd_memory.work.endpoint_state import EndpointState
from shepherd_memory.work.jobs import Job


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

    def status(self) -> Status:
        """How the memory is doing: database, queue, endpoint, health."""
        return read_status(
            self.database, self.config, self._live.problem, self.embedding.trouble(), self._clock()
        )

    def totals(self) -> Totals:
        """What `status` leaves out: sums over all users, for whoever runs the machine."""
        return read_totals(self.database)
