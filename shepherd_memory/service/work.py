"""The extraction queue, and how the memory is doing."""

from shepherd_memory.extraction import endpoint_state, jobs, queue
from shepherd_memory.extraction.endpoint_state import EndpointState
from shepherd_memory.extraction.jobs import Job
from shepherd_memory.maintenance.status import Status, Totals, read_status, read_totals
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

    def everybodys_items(
        self, status: str | None = None, *, limit: int = 1000, newest: bool = False
    ) -> list[Job]:
        """The work items of all users, oldest first: for whoever runs the machine, never for a user."""
        with self.database.read() as connection:
            return jobs.everybodys(connection, queue.KIND, status, limit, newest)

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
