"""Selection, diff, baselines, watermarks and pruning of phase 2 over random histories, against a model."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from shepherd_memory.config import Config
from shepherd_memory.consolidation import hand_changes, planning, selection
from shepherd_memory.consolidation.phase2 import NO_INPUT, Phase2Kind
from shepherd_memory.consolidation.rules import consolidation_rules
from shepherd_memory.conversations import conversation as conversations
from shepherd_memory.errors import ItemRejected
from shepherd_memory.llm.client import Client
from shepherd_memory.llm.request import Completion, ModelRequest, ToolRequest
from shepherd_memory.llm.target import Target
from shepherd_memory.maintenance.erasure import user_tables
from shepherd_memory.memory.sessions import of_work_key
from shepherd_memory.phases import dirtiness, outputs, sections, usage, withholding
from shepherd_memory.phases.answer import NoteAnswer
from shepherd_memory.phases.storing import WrittenNote, store_note
from shepherd_memory.storage import tombstones, users
from shepherd_memory.storage.clock import from_us, to_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.group_ids import ids_of_group
from shepherd_memory.work import jobs
from shepherd_memory.work.lane import Lane, Outcome
from tests.consolidation_endpoint import labelled, section
from tests.consolidation_model import (
    COOLDOWN_HOURS,
    DAY,
    HOUR,
    MAX_INPUTS,
    MAX_UNUSED_DAYS,
    Diff,
    Note,
    Place,
)
from tests.contract.given import NOON, ManualClock, examples

PLACES = [("ada", "main"), ("ada", "work")]
NUMBERS = range(1, 5)
EVERYWHERE = [(place, number) for place in PLACES for number in NUMBERS]
CONVERSATION = (
    *("user_id", "id", "group_name", "file_key", "session_id", "source", "first_document", "last_document"),
    *("first_message_at", "last_message_at", "entries", "status", "updated_at"),
)

PlaceName = tuple[str, str]
NewNote = tuple[int, int, bool, bool]
"""Of which conversation, ended so many days ago, whether it is worth it, and whether a newer one is there."""

PLACE = st.sampled_from(PLACES)
NUMBER = st.sampled_from(NUMBERS)
SELDOM = st.sampled_from([False] * 5 + [True])
NOTE = st.tuples(NUMBER, st.sampled_from([0, 1, 1, 2, 45]), SELDOM.map(lambda one: not one), SELDOM)


def id_of(place: PlaceName, number: int) -> int:
    """The id of a conversation: no two places have one in common."""
    return 10 * PLACES.index(place) + number


def config() -> Config:
    return Config(
        memory_phases=True,
        memory_phase2_endpoint="http://127.0.0.1:9",
        memory_phase2_model="scripted",
        memory_phase2_input_tokens=8_000,
        memory_phase2_max_inputs=MAX_INPUTS,
        memory_phase2_max_unused_days=MAX_UNUSED_DAYS,
        memory_phase2_cooldown_hours=COOLDOWN_HOURS,
        memory_phase_providers="*",
        embedding_engine="none",
    )


class ScriptedClient(Client):
    """A model in this process: it calls the tools that `answer` says for a request."""

    def __init__(self, answer: Callable[[dict[str, Any]], list[tuple[str, Any]]]) -> None:
        super().__init__("a scripted model")
        self._answer = answer

    def complete(self, target: Target, request: ModelRequest, timeout_seconds: float) -> Completion:
        made = enumerate(self._answer({"messages": list(request.messages)}))
        calls = tuple(ToolRequest(str(at), name, json.dumps(given)) for at, (name, given) in made)
        return Completion("", 1, 1, estimated=False, tool_calls=calls)


class Unplanned(Phase2Kind):
    """Phase 2 that queues nothing by itself."""

    def upkeep(self, now: int) -> bool:
        return False


class Histories(RuleBasedStateMachine):
    """What happens to notes, on the database and in the model; runs of phase 2 agree with both."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database = database
        self.clock = ManualClock()
        self.model = {place: Place() for place in PLACES}
        self.open: set[PlaceName] = set()
        self.counter = 100
        self.watermarks = dict.fromkeys(PLACES, (0, 0))
        self.in_run: Callable[[PlaceName], None] = lambda place: None
        self.told: Diff = {}
        with database.write() as tx:
            for table in user_tables(database, tx):
                tx.execute(f"delete from {table}")
            tx.insert_many("conversations", CONVERSATION, [self.conversation(*one) for one in EVERYWHERE])
            users.lock(tx, "ada", self.clock.now, rows=100)

    def conversation(self, place: PlaceName, number: int) -> tuple[Any, ...]:
        (user_id, group), now = place, self.clock.now
        return (
            user_id,
            id_of(place, number),
            group,
            "",
            f"s{number}",
            "live",
            1,
            2,
            now,
            now,
            6,
            "archived",
            now,
        )

    def write(self, place: PlaceName, change: Callable[[Connection, int], object]) -> None:
        with self.database.write() as tx:
            change(tx, users.lock(tx, place[0], self.clock.now))

    @rule(place=PLACE, notes=st.lists(NOTE, min_size=1, max_size=4))
    def phase_1_makes_notes(self, place: PlaceName, notes: list[NewNote]) -> None:
        for note in notes:
            self.upsert(place, note)

    def upsert(self, place: PlaceName, new: NewNote) -> None:
        number, days_ago, is_worth_it, is_late = new
        self.counter += 1
        ended_at = self.clock.now - days_ago * DAY
        through = 1 if is_late else self.counter
        told = f"note {self.counter}" if is_worth_it else ""

        def store(tx: Connection, note_id: int) -> None:
            one = conversations.get(tx, place[0], id_of(place, number))
            assert one is not None
            made = replace(one, last_document=through, last_message_at=from_us(ended_at))
            store_note(tx, place[0], made, WrittenNote(NoteAnswer(told, told)), note_id, self.clock.now)

        self.write(place, store)
        note = Note(through, ended_at, self.clock.now, is_worth_it)
        self.model[place].upsert(id_of(place, number), note)

    @rule(place=PLACE, number=NUMBER)
    def use(self, place: PlaceName, number: int) -> None:
        named, now = [id_of(place, number)], self.clock.now
        self.write(place, lambda tx, _: usage.count_outputs(tx, place[0], named, now, place[1]))
        self.model[place].use(id_of(place, number), now)

    @rule(place=PLACE, number=NUMBER, is_whole=st.booleans())
    def forget(self, place: PlaceName, number: int, is_whole: bool) -> None:
        """Something in a conversation is forgotten, or all of it."""
        wanted, (user_id, group) = id_of(place, number), place
        if wanted not in self.model[place].notes:
            return

        def change(tx: Connection, _: int) -> None:
            output = outputs.get(tx, user_id, wanted, group)
            assert output is not None
            tombstones.add(tx, user_id, tombstones.DOCUMENT, f"m{self.counter}", self.clock.now, "s", group)
            withholding.break_off_consolidation(tx, user_id, group)
            if is_whole:
                outputs.delete(tx, user_id, output)
            else:
                outputs.set_aside(tx, user_id, output, outputs.WITHHELD)

        self.counter += 1
        self.write(place, change)
        if is_whole:
            self.model[place].delete(wanted)
        else:
            self.model[place].withhold(wanted)

    @rule(place=PLACE)
    def reset(self, place: PlaceName) -> None:
        """A person has it consolidated from the beginning."""
        self.write(place, lambda tx, _: hand_changes.reset(tx, *place, False, self.clock.now))
        self.model[place].reset()

    @rule(hours=st.sampled_from([1, 6, 24, 31 * 24, 31 * 24]))
    def time_passes(self, hours: int) -> None:
        self.clock.now += hours * HOUR

    @rule()
    def plan(self) -> None:
        """What is dirty and has cooled down is queued."""
        planning.plan(self.database, consolidation_rules(config()), self.clock.now)
        self.open |= {place for place, model in self.model.items() if model.is_due(self.clock.now)}

    def ask(self, place: PlaceName) -> None:
        """A person has it done now."""
        assert planning.queue(self.database, *place, self.clock.now) is self.model[place].is_dirty
        self.open |= {place} if self.model[place].is_dirty else set()

    @rule(place=PLACE)
    def a_run_goes_well(self, place: PlaceName) -> None:
        self.run(place, lambda running: None, "done")

    @rule(place=PLACE)
    def a_run_fails(self, place: PlaceName) -> None:
        def refuse(running: PlaceName) -> None:
            raise ItemRejected("not today")

        self.run(place, refuse, "waiting")

    @rule(place=PLACE, note=NOTE)
    def more_comes_in_a_run(self, place: PlaceName, note: NewNote) -> None:
        def more(running: PlaceName) -> None:
            self.upsert(running, note)
            self.use(running, note[0])
            self.clock.now += HOUR

        self.run(place, more, "done")

    @rule(place=PLACE, is_whole=st.booleans())
    def something_is_forgotten_in_a_run(self, place: PlaceName, is_whole: bool) -> None:
        def forget(running: PlaceName) -> None:
            self.forget(running, min(self.model[running].notes) - id_of(running, 0), is_whole)

        self.run(place, forget, "lost")

    def run(self, place: PlaceName, in_run: Callable[[PlaceName], None], ended: str) -> None:
        """A run in which something happens: it reads what it should, and ends as expected."""
        self.ask(place)
        self.in_run, self.told, began_at = in_run, {}, self.clock.now
        before = copy.deepcopy(self.model)
        kind = Unplanned(self.database, config, ScriptedClient(self.answer))
        outcome = Lane(kind, self.database, self.clock).run_once()
        assert (outcome is None) == (not self.open)
        if outcome is None:
            return
        place = self.place_of(outcome)
        read = before[place]
        if read.selection(began_at):
            assert self.told == read.diff(began_at)
            assert outcome.status == ended
        else:
            assert (self.told, outcome.detail) == ({}, NO_INPUT)
        if outcome.status == "done":
            self.open.discard(place)
            self.model[place].succeed(read, began_at, self.clock.now)
        elif ended == "waiting":
            # So that it need not wait for its retry.
            self.ask(place)

    def place_of(self, outcome: Outcome) -> PlaceName:
        with self.database.read() as connection:
            job = jobs.get(connection, outcome.user_id, outcome.job_id)
        assert job is not None
        return outcome.user_id, of_work_key(job.key)[1]

    def answer(self, body: dict[str, Any]) -> list[tuple[str, Any]]:
        """A section of each file that rests on all that is selected."""
        shown = labelled(body)
        place, self.told = next(one for one in map(partial(self.as_stored, shown), PLACES) if one)
        named = self.told["added"] + self.told["retained"]
        self.in_run(place)
        summary = section(body, "In short.", "Who", "memory_summary.md")
        return [section(body, f"All of {named}."), summary, ("finish", {})]

    def as_stored(self, shown: Diff, place: PlaceName) -> tuple[PlaceName, Diff] | None:
        """What a group is told by the ids of rows; None if it is another group that is told."""
        with self.database.read() as connection:
            ids = ids_of_group(connection, *place)
        told = {label: [ids.given_id(number) for number in found] for label, found in shown.items()}
        is_here = (told["added"] + told["retained"])[0] - id_of(place, 0) in NUMBERS
        return (place, told) if is_here else None

    @invariant()
    def notes_are_as_in_the_model(self) -> None:
        for place, model in self.model.items():
            with self.database.read() as connection:
                rows = connection.rows(
                    "select conversation_id, source_updated_at, outcome = 'succeeded' and raw_memory <> '',"
                    " state, use_count, last_used_at, selected_source_updated_at, selected"
                    " from conversation_outputs where user_id = :user_id and group_name = :group"
                    " order by conversation_id",
                    user_id=place[0],
                    group=place[1],
                )
            found = [(*row[:2], bool(row[2]), *row[3:7], bool(row[7])) for row in rows]
            assert found == [(number, *as_row(one)) for number, one in sorted(model.notes.items())]

    @invariant()
    def what_is_known_of_each_place_is_as_in_the_model(self) -> None:
        for place, model in self.model.items():
            with self.database.read() as connection:
                state = dirtiness.get(connection, *place)
                open_jobs = jobs.count_of(connection, place[0], dirtiness.CONSOLIDATION, ["waiting"])
            assert (state.is_dirty, state.version) == (model.is_dirty, model.version)
            assert (state.consolidated_at and to_us(state.consolidated_at)) == model.consolidated_at
            marks = (state.input_watermark, state.success_watermark)
            assert marks >= self.watermarks[place], "no watermark goes backwards"
            assert marks[1] >= self.watermarks[place][1]
            self.watermarks[place] = marks
            assert open_jobs == sum(one[0] == place[0] for one in self.open), "one for each place"

    @invariant()
    def sections_live_as_long_as_their_sources(self) -> None:
        for place, model in self.model.items():
            with self.database.read() as connection:
                found = sections.current(connection, *place)
            state = sections.WITHHELD if model.is_withheld else sections.KEPT
            expected = [(state, model.sources)] * 2 if model.sources else []
            assert [(one.state, frozenset(one.sources)) for one in found] == expected


def as_row(note: Note) -> tuple[Any, ...]:
    """A note as its row has it."""
    is_selected = note.selected_at is not None
    about = (note.source_updated_at, note.has_words, note.state, note.used, note.last_used)
    return *about, note.selected_at, is_selected


@pytest.mark.every_scheme
def test_random_histories_of_notes_follow_the_rules(database: Database) -> None:
    run_state_machine_as_test(
        lambda: Histories(database),
        settings=settings(
            max_examples=examples(12),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_no_more_than_two_hundred_old_notes_lose_their_words_at_once(database: Database) -> None:
    place, old = PLACES[0], NOON - 31 * DAY
    made = "user_id group_name conversation_id strategy session_id source_through source_updated_at"
    rest = "raw_memory summary slug task_outcome outcome state note model generated_at"
    names = ("r", "s", "", "", "succeeded", "kept", "", "m", old)
    rows = [(*place, number, "summary", "s", 1, old, *names) for number in range(1, 204)]
    with database.write() as tx:
        users.lock(tx, place[0], NOON)
        tx.insert_many("conversation_outputs", (*made.split(), *rest.split()), rows)
        pruned = [selection.prune(tx, *place, NOON - 30 * DAY, 2**62, NOON) for _ in range(3)]
        left = tx.rows("select distinct raw_memory, outcome, source_through from conversation_outputs")
    assert pruned == [200, 3, 0]
    assert left == [("", "succeeded_no_output", 1)], "how far they were read stays"
