"""The state table of jobs, as docs/reference/jobs.md has it, against the database."""

import inspect
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from shepherd_memory.storage import users
from shepherd_memory.storage.clock import DAY, to_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.work import claims, jobs, upkeep
from shepherd_memory.work.claims import ClaimLimits
from shepherd_memory.work.jobs import (
    DONE,
    DROPPED,
    FAILED,
    FAILED_AGAIN,
    FAILED_ONCE,
    RUNNING,
    STATUSES,
    TRIES,
    WAITING,
    Job,
)
from tests.contract.given import examples
from tests.lease_owners import ended_owner

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "jobs.md"
LIMITS = {"free": ClaimLimits(), "limited": ClaimLimits(max_running=2, exclusive=True)}
NOTHING = "—"

USERS = st.sampled_from(["ada", "bob", "eve"])
KEYS = st.sampled_from(["x", "y"])
KINDS = st.sampled_from(sorted(LIMITS))

Transition = tuple[str, str, str]


def documented() -> set[Transition]:
    """(state, event, next state) of each line of the page's table."""
    lines = re.findall(r"^\| (\S+) \| `(\w+)` \| .* \| (\S+) \|$", PAGE.read_text(), re.MULTILINE)
    return {(before.strip("`"), event, after.strip("`")) for before, event, after in lines}


def event_functions() -> set[str]:
    """The functions that change jobs: those that take a transaction, or open one.

    To hold a kind changes none.
    """
    return {
        name
        for module in (jobs, claims, upkeep)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and function is not claims.lock_kind
        and {"tx", "database"} & set(inspect.signature(function).parameters)
    }


def test_the_page_names_every_state_and_no_other() -> None:
    states = {state for before, _, after in documented() for state in (before, after)}
    assert states - {NOTHING} == set(STATUSES)
    described = re.findall(r"^\| `(\w+)` \| [^`|]*[^|]*\| [^`|]* \|$", PAGE.read_text(), re.MULTILINE)
    assert set(described) >= set(STATUSES)


def test_the_page_names_every_event_and_no_other() -> None:
    assert {event for _, event, _ in documented()} == event_functions()


@dataclass(frozen=True)
class Expected:
    """What the model knows of a job: times in microseconds."""

    user_id: str
    id: int
    kind: str
    key: str
    queued_at: int
    turn: int
    status: str = WAITING
    run_at: int = 0
    watermark_from: int = 0
    watermark_through: int = 0
    payload: str = ""
    worker: str = ""
    token: str | None = None
    lease_until: int | None = None
    claims: int = 0
    tries_left: int = TRIES
    successes_seen: int | None = None
    last_error: str = ""
    outcome: str = ""
    started_at: int | None = None
    ended_at: int | None = None


COMPARED = tuple(Expected.__dataclass_fields__)


def seen(job: Job) -> dict[str, Any]:
    values = asdict(job)
    moments = ("queued_at", "run_at", "lease_until", "started_at", "ended_at")
    return {
        name: to_us(values[name]) if name in moments and values[name] is not None else values[name]
        for name in COMPARED
    }


class JobTable(RuleBasedStateMachine):
    """Random events, on the database and on the model; after each, both hold the same rows."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database = database
        self.table = documented()
        self.now = 1_000_000
        self.rows: dict[tuple[str, int], Expected] = {}
        self.held: list[Job] = []
        self.counter = 0
        with database.write() as tx:
            tx.execute("delete from jobs")
            tx.execute("delete from users")

    def tick(self) -> int:
        # Each event has a moment of its own, so that "oldest" is never a tie.
        self.now += 1
        return self.now

    def run(self, event: str, change: Callable[[Connection], Any], after: list[Expected]) -> Any:
        """Do it in a transaction; `after` is how the model has the rows that it touches."""
        with self.database.write() as tx:
            result = change(tx)
        self.follow(event, after)
        return result

    def follow(self, event: str, after: list[Expected]) -> None:
        """Change the model as an event has changed the database."""
        assert event in event_functions()
        for row in after:
            before = self.rows.get((row.user_id, row.id))
            transition = (before.status if before else NOTHING, event, row.status)
            assert transition in self.table, f"not in docs/reference/jobs.md: {transition}"
            self.rows[row.user_id, row.id] = row

    def new_id(self, user_id: str) -> int:
        with self.database.write() as tx:
            return users.lock(tx, user_id, self.now)

    def waiting(self, kind: str, user_id: str | None = None) -> list[Expected]:
        rows = (row for row in self.rows.values() if (row.kind, row.status) == (kind, WAITING))
        return [row for row in rows if user_id in (None, row.user_id)]

    def running(self, kind: str) -> list[Expected]:
        return [row for row in self.rows.values() if (row.kind, row.status) == (kind, RUNNING)]

    def next_due(self, kind: str) -> Expected | None:
        due = [row for row in self.waiting(kind) if row.run_at <= self.now]
        return min(due, key=lambda row: (row.turn, row.queued_at), default=None)

    def next_to_claim(self, kind: str) -> Expected | None:
        """The next that is due and within the limits of its kind."""
        running, limits = self.running(kind), LIMITS[kind]
        if limits.max_running and len(running) >= limits.max_running:
            return None
        taken = {(row.user_id, row.key) for row in running} if limits.exclusive else set()
        due = [row for row in self.waiting(kind) if row.run_at <= self.now]
        free = [row for row in due if (row.user_id, row.key) not in taken]
        return min(free, key=lambda row: (row.turn, row.queued_at), default=None)

    def next_turn(self, kind: str, user_id: str) -> int:
        own = [row.turn for row in self.waiting(kind, user_id)]
        served = self.next_due(kind)
        return max(own) + 1 if own else served.turn if served else 0

    def owned(self, job: Job) -> Expected | None:
        row = self.rows.get((job.user_id, job.id))
        return row if row and row.status == RUNNING and row.token == job.token else None

    def on_held(
        self,
        data: st.DataObject,
        event: str,
        change: Callable[[Connection, Job], bool],
        becomes: Callable[[Expected], Expected],
    ) -> None:
        """An event of a worker, which may have lost its job meanwhile."""
        if self.held:
            self.on_job(data.draw(st.sampled_from(self.held)), event, change, becomes)

    def on_job(
        self,
        job: Job,
        event: str,
        change: Callable[[Connection, Job], bool],
        becomes: Callable[[Expected], Expected],
    ) -> None:
        row = self.owned(job)
        changed = self.run(event, lambda tx: change(tx, job), [becomes(row)] if row else [])
        assert changed == (row is not None)

    def watermark_in(self, data: st.DataObject, job: Job) -> int:
        """A watermark as the queue gives it: of a document in the item, never beyond its end."""
        end = (self.owned(job) or job).watermark_through
        return data.draw(st.integers(job.watermark_from, end))

    def let_go(self, row: Expected, **changes: Any) -> Expected:
        return replace(row, token=None, lease_until=None, **changes)

    @rule(kind=KINDS, user_id=USERS, key=KEYS)
    def put(self, kind: str, user_id: str, key: str) -> None:
        now, job_id = self.tick(), self.new_id(user_id)
        self.counter += 1
        through, text = self.counter * 10, f"<{self.counter}>"
        untouched = [row for row in self.waiting(kind, user_id) if row.key == key and row.claims == 0]
        if untouched:
            (row,) = untouched
            after = replace(row, watermark_through=through, payload=row.payload + text)
        else:
            turn = self.next_turn(kind, user_id)
            ends = {"watermark_from": 1, "watermark_through": through}
            after = Expected(user_id, job_id, kind, key, now, turn, payload=text, **ends)
        is_new = self.run(
            "put", lambda tx: jobs.put(tx, user_id, job_id, kind, key, now, 1, through, text), [after]
        )
        assert is_new == (not untouched)

    @rule(kind=KINDS, user_id=USERS, key=KEYS)
    def put_apart(self, kind: str, user_id: str, key: str) -> None:
        now, job_id = self.tick(), self.new_id(user_id)
        self.counter += 1
        ends = {"watermark_from": self.counter * 10 - 3, "watermark_through": self.counter * 10}
        turn = self.next_turn(kind, user_id)
        after = Expected(user_id, job_id, kind, key, now, turn, claims=1, **ends)
        assert self.run(
            "put", lambda tx: jobs.put(tx, user_id, job_id, kind, key, now, **ends, apart=True), [after]
        )

    @rule(kind=KINDS, user_id=USERS, key=KEYS)
    def put_anew(self, kind: str, user_id: str, key: str) -> None:
        now, job_id = self.tick(), self.new_id(user_id)
        self.counter += 1
        through, turn = self.counter * 10, self.next_turn(kind, user_id)
        found = [
            row
            for row in self.rows.values()
            if (row.user_id, row.kind, row.key) == (user_id, kind, key) and row.status in (WAITING, FAILED)
        ]
        if len(found) > 1:
            return  # it is for kinds with one job of a key at a time
        begun = {"run_at": 0, "tries_left": TRIES, "successes_seen": None, "last_error": "", "outcome": ""}
        after = [
            replace(
                row,
                status=WAITING,
                watermark_through=through,
                queued_at=now,
                ended_at=None,
                claims=row.claims + (row.status == FAILED),
                turn=turn if row.status == FAILED else row.turn,
                **begun,
            )
            for row in found
        ] or [Expected(user_id, job_id, kind, key, now, turn, watermark_through=through)]
        self.run("put_anew", lambda tx: jobs.put_anew(tx, user_id, job_id, kind, key, now, through), after)

    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        self.tick()
        if not self.rows:
            return
        row = data.draw(st.sampled_from(list(self.rows.values())))
        stretch = (row.user_id, row.kind, row.key, row.watermark_from, row.watermark_through)
        gone = [
            place
            for place, one in self.rows.items()
            if (one.user_id, one.kind, one.key, one.watermark_from, one.watermark_through) == stretch
            and one.status == WAITING
            # One that has lost a try stays: put again it would have all of them.
            and one.tries_left == TRIES
        ]
        done = self.run("withdraw", lambda tx: jobs.withdraw(tx, *stretch), [])
        assert done == bool(gone)
        assert not gone or (WAITING, "withdraw", NOTHING) in self.table
        for place in gone:
            del self.rows[place]

    @rule(kind=KINDS, lease=st.integers(1, 50), is_killed=st.booleans())
    def claim(self, kind: str, lease: int, is_killed: bool) -> None:
        worker = ended_owner() if is_killed else "worker"
        now, row = self.tick(), self.next_to_claim(kind)
        job = claims.claim(self.database, kind, worker, now, now + lease, LIMITS[kind])
        assert (job is None) == (row is None)
        if job is None or row is None:
            return
        assert job.token not in {held.token for held in self.held}
        after = replace(
            row,
            status=RUNNING,
            worker=worker,
            token=job.token,
            lease_until=now + lease,
            claims=row.claims + 1,
            started_at=now,
        )
        self.follow("claim", [after])
        self.held.append(job)

    @rule(data=st.data(), lease=st.integers(1, 50))
    def renew(self, data: st.DataObject, lease: int) -> None:
        if not self.held:
            return
        job, until = data.draw(st.sampled_from(self.held)), self.tick() + lease
        row = self.owned(job)
        assert claims.renew(self.database, job, until) == (row is not None)
        self.follow("renew", [replace(row, lease_until=until)] if row else [])

    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        now = self.tick()
        self.on_held(
            data,
            "finish",
            lambda tx, job: claims.finish(tx, job, "1 stored", now),
            lambda row: self.let_go(
                row, status=DONE, outcome="1 stored", ended_at=now, payload="", last_error=""
            ),
        )

    @rule(data=st.data())
    def advance(self, data: st.DataObject) -> None:
        self.tick()
        if not self.held:
            return
        job = data.draw(st.sampled_from(self.held))
        mark = self.watermark_in(data, job)

        def becomes(row: Expected) -> Expected:
            own = [other.turn for other in self.waiting(row.kind, row.user_id)]
            return self.let_go(
                row,
                status=WAITING,
                run_at=0,
                watermark_from=mark,
                payload="rest",
                outcome="part",
                tries_left=TRIES,
                successes_seen=None,
                last_error="",
                turn=max(own) + 1 if own else row.turn + 1,
            )

        self.on_job(job, "advance", lambda tx, job: claims.advance(tx, job, mark, "rest", "part"), becomes)

    @rule(data=st.data(), wait=st.integers(0, 20))
    def release(self, data: st.DataObject, wait: int) -> None:
        run_at = self.tick() + wait
        self.on_held(
            data,
            "release",
            lambda tx, job: claims.release(tx, job, run_at, "busy", 4),
            lambda row: self.let_go(row, status=WAITING, run_at=run_at, last_error="busy", successes_seen=4),
        )

    @rule(data=st.data(), wait=st.integers(0, 20), tries=st.integers(1, TRIES))
    def defer(self, data: st.DataObject, wait: int, tries: int) -> None:
        run_at = self.tick() + wait
        self.on_held(
            data,
            "defer",
            lambda tx, job: claims.defer(tx, job, run_at, "500", 5, tries),
            lambda row: self.let_go(
                row,
                status=WAITING,
                run_at=run_at,
                last_error="500",
                successes_seen=5,
                tries_left=tries,
                turn=row.turn + 1,
            ),
        )

    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        now = self.tick()
        self.on_held(
            data,
            "hold",
            lambda tx, job: claims.hold(tx, job, "400", now),
            lambda row: self.let_go(
                row,
                status=FAILED,
                tries_left=0,
                last_error="400",
                outcome=FAILED_AGAIN if row.outcome in (FAILED_ONCE, FAILED_AGAIN) else FAILED_ONCE,
                ended_at=now,
            ),
        )

    @rule(kind=KINDS, days=st.sampled_from([0, 1, 7]))
    def revive(self, kind: str, days: int) -> None:
        self.now += days * DAY
        now = self.tick()
        due = [
            row
            for row in self.rows.values()
            if (row.kind, row.status) == (kind, FAILED)
            and row.ended_at is not None
            and row.ended_at <= now - (DAY if row.outcome == FAILED_ONCE else 7 * DAY)
        ]
        assert upkeep.revive(self.database, kind, now) == len(due)
        for row in sorted(due, key=lambda row: (row.user_id, row.id)):
            again = replace(
                row,
                status=WAITING,
                run_at=0,
                turn=self.next_turn(kind, row.user_id),
                tries_left=1,
                successes_seen=None,
                claims=row.claims + 1,
                ended_at=None,
            )
            self.follow("revive", [again])

    @rule(data=st.data())
    def split(self, data: st.DataObject) -> None:
        if not self.held:
            return
        job = data.draw(st.sampled_from(self.held))
        now, job_id, row = self.tick(), self.new_id(job.user_id), self.owned(job)
        mark = self.watermark_in(data, job)
        after = []
        if row:
            rest = Expected(
                row.user_id,
                job_id,
                row.kind,
                row.key,
                now,
                job.turn,
                watermark_from=mark,
                watermark_through=job.watermark_through,
                payload="tail",
                claims=1,
            )
            after = [replace(row, watermark_through=mark, payload="head"), rest]
        done = self.run("split", lambda tx: claims.split(tx, job, mark, "head", "tail", job_id, now), after)
        assert done == (row is not None)

    @rule(kind=KINDS, user_id=USERS, key=KEYS)
    def requeue(self, kind: str, user_id: str, key: str) -> None:
        self.tick()
        running = [
            self.let_go(row, status=WAITING, run_at=0)
            for row in self.running(kind)
            if (row.user_id, row.key) == (user_id, key)
        ]
        count = self.run("requeue", lambda tx: jobs.requeue(tx, user_id, kind, key), running)
        assert count == len(running)

    @rule(kind=KINDS, passed=st.integers(0, 60), retry=st.integers(0, 3))
    def expire(self, kind: str, passed: int, retry: int) -> None:
        self.now += passed
        now = self.tick()
        after = [
            self.let_go(
                row,
                status=WAITING,
                last_error="the worker stopped while it ran",
                run_at=now + retry * (60 if row.claims > 60 else row.claims - 1),
            )
            for row in self.running(kind)
            # A process of this machine that is gone has no lease any more.
            if row.lease_until is not None and (row.lease_until < now or row.worker == ended_owner())
        ]
        assert upkeep.expire_leases(self.database, kind, now, retry) == len(after)
        self.follow("expire_leases", after)

    @rule(kind=KINDS, user_id=USERS, wait=st.integers(0, 30))
    def defer_user(self, kind: str, user_id: str, wait: int) -> None:
        run_at = self.tick() + wait
        after = [
            replace(row, run_at=run_at, last_error="tomorrow")
            for row in self.waiting(kind, user_id)
            if row.run_at < run_at
        ]
        count = self.run(
            "defer_user", lambda tx: jobs.defer_user(tx, user_id, kind, run_at, "tomorrow"), after
        )
        assert count == len(after)

    @rule(kind=KINDS, new=st.integers(0, 20), old=st.integers(0, 20))
    def bring_forward(self, kind: str, new: int, old: int) -> None:
        now = self.tick()
        after = [
            replace(row, run_at=now + new)
            for row in self.waiting(kind)
            if now + new < row.run_at <= now + old
        ]
        assert upkeep.bring_forward(self.database, kind, now, new, old) == len(after)
        self.follow("bring_forward", after)

    @rule(kind=KINDS, retry=st.sampled_from([0, 60]), lease=st.integers(0, 30))
    def mend_times(self, kind: str, retry: int, lease: int) -> None:
        now = self.tick()
        waiting = [replace(row, run_at=now) for row in self.waiting(kind) if row.run_at > now + retry]
        running = [
            replace(row, lease_until=now + lease)
            for row in self.running(kind)
            if row.lease_until is not None and row.lease_until > now + lease
        ]
        assert upkeep.mend_times(self.database, kind, now, retry, lease) == len(waiting)
        self.follow("mend_times", [*waiting, *running])

    @rule(data=st.data(), stranger=st.booleans())
    def retry(self, data: st.DataObject, stranger: bool) -> None:
        if not self.rows:
            return
        row, now = data.draw(st.sampled_from(list(self.rows.values()))), self.tick()
        user_id = "nobody" if stranger else row.user_id
        after = []
        if not stranger and row.status in (WAITING, FAILED, DROPPED):
            after = [
                replace(
                    row,
                    status=WAITING,
                    run_at=0,
                    tries_left=TRIES,
                    successes_seen=None,
                    claims=row.claims + 1,
                    outcome="",
                    ended_at=None,
                    queued_at=now,
                )
            ]
        assert jobs.retry(self.database, user_id, row.id, now) == bool(after)
        self.follow("retry", after)

    @rule(data=st.data(), stranger=st.booleans())
    def drop(self, data: st.DataObject, stranger: bool) -> None:
        if not self.rows:
            return
        row, now = data.draw(st.sampled_from(list(self.rows.values()))), self.tick()
        user_id = "nobody" if stranger else row.user_id
        after = []
        if not stranger and row.status in (WAITING, FAILED):
            after = [replace(row, status=DROPPED, outcome="full", ended_at=now)]
        done = self.run("drop", lambda tx: jobs.drop(tx, user_id, row.id, "full", now), after)
        assert done == bool(after)

    @rule(kind=KINDS, age=st.integers(0, 40))
    def prune(self, kind: str, age: int) -> None:
        before = self.tick() - age
        gone = [
            row
            for row in self.rows.values()
            if (row.kind, row.status) in ((kind, DONE), (kind, DROPPED))
            and row.ended_at is not None
            and row.ended_at < before
        ]
        assert upkeep.prune(self.database, kind, before) == len(gone)
        for row in gone:
            assert (row.status, "prune", NOTHING) in self.table
            del self.rows[row.user_id, row.id]

    @invariant()
    def the_database_holds_what_the_model_holds(self) -> None:
        with self.database.read() as connection:
            stored = [
                seen(job)
                for kind in LIMITS
                for user in ("ada", "bob", "eve")
                for job in jobs.listing(connection, user, kind)
            ]
            counts = {kind: jobs.count(connection, kind) for kind in LIMITS}
        expected = [asdict(row) for row in self.rows.values()]
        assert stored == sorted(expected, key=lambda row: (row["kind"], row["user_id"], row["id"]))
        found = [(row.kind, row.status) for row in self.rows.values()]
        assert counts == {
            kind: {status: found.count((kind, status)) for status in STATUSES} for kind in LIMITS
        }

    @invariant()
    def the_limits_of_a_kind_hold(self) -> None:
        for kind, limits in LIMITS.items():
            running = self.running(kind)
            assert not limits.max_running or len(running) <= limits.max_running
            keys = [(row.user_id, row.key) for row in running]
            assert not limits.exclusive or len(keys) == len(set(keys))

    @invariant()
    def nobody_else_holds_a_running_job(self) -> None:
        tokens = [row.token for row in self.rows.values() if row.status == RUNNING]
        assert None not in tokens
        assert len(tokens) == len(set(tokens))


def test_random_events_follow_the_state_table(database: Database) -> None:
    run_state_machine_as_test(
        lambda: JobTable(database),
        settings=settings(
            max_examples=examples(30),
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
