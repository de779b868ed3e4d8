"""The extraction queue, and how the memory is doing."""

from dataclasses import replace

from shepherd_memory.extraction import queue
from shepherd_memory.extraction.forecast import FactsForecast, forecast_item
from shepherd_memory.maintenance.status import Status, Totals, read_health, read_status
from shepherd_memory.memory.sessions import seen_work_keys, work_key, work_key_prefix
from shepherd_memory.service.arguments import NO_LIMIT, empty_for_unknown_user
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage.group_ids import StoredId, ids_of_group, with_group_ids
from shepherd_memory.text.groups import MAIN_GROUP, checked_group
from shepherd_memory.text.ids import storable_id
from shepherd_memory.work import endpoint_state, jobs, ledger
from shepherd_memory.work.endpoint_state import EndpointState
from shepherd_memory.work.jobs import Job


class WorkService(ServiceParts):
    """Shows and changes work items, and reports the state of the memory."""

    @empty_for_unknown_user(list)
    @with_group_ids
    def items(
        self,
        user_id: str,
        status: str | None = None,
        *,
        session_id: str | None = None,
        limit: int = 1000,
        newest: bool = False,
        group: str = MAIN_GROUP,
    ) -> list[Job]:
        """The work items that the group sees, oldest first; `newest` takes the last ones of them.

        With a `session_id` those of that session of the group.
        """
        place = checked_group(group)
        key = work_key(storable_id(session_id), place) if session_id else None
        with self.database.read() as connection:
            found = jobs.listing(
                connection, user_id, queue.KIND, status, limit, key, newest, seen_work_keys(place)
            )
        # These two are counted over all groups, and over all users.
        return found if place == MAIN_GROUP else [replace(job, turn=0, successes_seen=None) for job in found]

    @empty_for_unknown_user(int)
    def count_items(self, user_id: str, *statuses: str, due: bool = False, group: str = MAIN_GROUP) -> int:
        """How many of the items are in one of these states; `due` leaves out what is put off."""
        due_by = self._clock() if due else None
        seen = seen_work_keys(checked_group(group))
        with self.database.read() as connection:
            return jobs.count_of(connection, user_id, queue.KIND, statuses, due_by, seen)

    @empty_for_unknown_user(lambda: dict.fromkeys(jobs.STATUSES, 0))
    def item_counts(self, user_id: str, *, group: str = MAIN_GROUP) -> dict[str, int]:
        """How many of the items that the group sees are in which state, at one moment."""
        seen = seen_work_keys(checked_group(group))
        with self.database.read() as connection:
            return jobs.count_by_status(connection, user_id, queue.KIND, seen)

    @empty_for_unknown_user(FactsForecast)
    def forecast_extraction(self, user_id: str, *, group: str = MAIN_GROUP) -> FactsForecast:
        """What extraction would send for the items of the group that wait; nothing is sent."""
        now, max_turns = self._clock(), self.config.memory_extraction_max_turns
        seen = seen_work_keys(checked_group(group))
        with self.database.read() as connection:
            waiting = jobs.listing(connection, user_id, queue.KIND, jobs.WAITING, NO_LIMIT, prefixes=seen)
            found = (forecast_item(connection, job, max_turns, now) for job in waiting)
            return sum(found, FactsForecast())

    @empty_for_unknown_user(int)
    def tokens_spent_today(self, user_id: str, purpose: str = ledger.EXTRACTION) -> int:
        """The tokens that extraction, or another purpose, has cost the user today."""
        with self.database.read() as connection:
            return ledger.spent_on(connection, user_id, purpose, self._clock())

    def all_items(self, status: str | None = None, *, limit: int = 1000, newest: bool = False) -> list[Job]:
        """The work items of all users, oldest first: for whoever runs the machine, never for a user."""
        with self.database.read() as connection:
            return jobs.list_all_users(connection, queue.KIND, status, limit, newest)

    @empty_for_unknown_user(bool)
    @with_group_ids
    def retry(self, user_id: str, item_id: StoredId, *, group: str = MAIN_GROUP) -> bool:
        """Put a failed or dropped item back into the queue, or make a waiting one due now.

        It is an item of the group; `main` may name that of any.
        """
        retried = queue.retry(self.database, user_id, item_id, self._clock(), checked_group(group))
        self.worker.wake()
        return retried

    def retry_all_failed(self, *, group: str = MAIN_GROUP) -> list[Job]:
        """Put back all users' items that have failed: for whoever runs the machine, never for a user.

        Those of that group of each user; `main` names all.
        """
        place, now = checked_group(group), self._clock()
        prefix = work_key_prefix(place)
        with self.database.read() as connection:
            failed = jobs.list_all_users(connection, queue.KIND, jobs.FAILED, NO_LIMIT, key_prefix=prefix)
        retried = [job for job in failed if jobs.retry(self.database, job.user_id, job.id, now)]
        self.worker.wake()
        with self.database.read() as connection:
            return [ids_of_group(connection, job.user_id, place).shown(job) for job in retried]

    @empty_for_unknown_user(bool)
    @with_group_ids
    def drop(self, user_id: str, item_id: StoredId, *, group: str = MAIN_GROUP) -> bool:
        """Take a waiting or failed item out of the queue; its documents stay.

        It is an item of the group; `main` may name that of any.
        """
        place = checked_group(group)
        return queue.drop(self.database, user_id, item_id, "dropped by hand", self._clock(), place)

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
