"""Making a note of a conversation in as many calls as it takes, none of them above the budget."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from shepherd_memory.conversations.conversation_text import fit
from shepherd_memory.errors import AnswerCutOff, ItemRejected
from shepherd_memory.extraction.extractor import Endpoint, complete, cost_of
from shepherd_memory.llm.client import Client
from shepherd_memory.phases import prompt
from shepherd_memory.phases.answer import NoteAnswer, read_note
from shepherd_memory.phases.prompt import RenderedMessage, Scene
from shepherd_memory.text.tokens import UNITS, estimate_mean_tokens, estimate_tokens
from shepherd_memory.work.ledger import TokenCost
from shepherd_memory.work.strategy import ConversationEntry

MAX_ATTEMPTS = 2
"""A model that answered with something unreadable often does better when asked again."""

PARTS_AT_EACH_END = 20
"""Of a conversation that is longer than twice as many parts, those in the middle are left out."""

MIN_ROOM_TOKENS = 500
WHOLE, HEAD_AND_TAIL, IN_PARTS = "whole", "head and tail", "in parts"


@dataclass(frozen=True)
class MadeNote:
    """What came of asking: a note, or the problem with the answers, and what it cost."""

    note: NoteAnswer = field(default_factory=NoteAnswer)
    spent: TokenCost = field(default_factory=TokenCost)
    problem: str = ""


class _Unusable(Exception):
    """The model's answers cannot be used; the message says why, without quoting them."""


class NoteMaker:
    """Asks one endpoint for the note of one conversation; `budget` is the most tokens of one request."""

    def __init__(self, client: Client, endpoint: Endpoint, scene: Scene, budget: int) -> None:
        self._client = client
        self._endpoint = endpoint
        self._scene = scene
        self._room = room_of(budget, scene)
        self._spent = TokenCost()

    def make(self, said: Iterable[ConversationEntry]) -> MadeNote:
        """The note of what was said, however long that is; nothing said is worth none."""
        plan = input_of(said, self._room)
        try:
            note = self._note_of(plan)
        except _Unusable as problem:
            return MadeNote(spent=self._spent, problem=str(problem))
        return MadeNote(note, self._spent)

    def _note_of(self, plan: "NoteInput") -> NoteAnswer:
        if plan.way == IN_PARTS:
            return self._merged(list(self._notes_of_parts(plan.parts)))
        said = next(iter(plan.parts), [])
        return self._ask(prompt.ask_for_note(self._scene, said)) if said else NoteAnswer()

    def _notes_of_parts(self, parts: Iterable[Sequence[str]]) -> Iterator[NoteAnswer]:
        before = ""
        for part in parts:
            note = self._ask(prompt.ask_for_note(self._scene, part, before))
            if not note.is_empty:
                before = fit(note.summary, self._room // 8)
                yield note

    def _merged(self, notes: list[NoteAnswer]) -> NoteAnswer:
        """One note of many, in rounds: as many as there is room for are joined at a time."""
        while len(notes) > 1:
            batches = list(_batches([_shortened(note, self._room // 3) for note in notes], self._room))
            notes = [
                self._ask(prompt.ask_to_merge(self._scene, batch)) if len(batch) > 1 else notes[first]
                for first, batch in batches
            ]
            notes = [note for note in notes if not note.is_empty]
        return notes[0] if notes else NoteAnswer()

    def _ask(self, messages: list[dict[str, str]]) -> NoteAnswer:
        problem = ""
        for _ in range(MAX_ATTEMPTS):
            try:
                return self._answer(messages)
            except (AnswerCutOff, _Unreadable) as error:
                problem = str(error)
        raise _Unusable(problem)

    def _answer(self, messages: list[dict[str, str]]) -> NoteAnswer:
        try:
            answered = complete(self._client, self._endpoint, messages, prompt.SCHEMA, prompt.SCHEMA_NAME)
        except AnswerCutOff:
            self._spent += TokenCost(1, 1, 0, self._endpoint.max_tokens)
            raise
        self._spent += cost_of(answered)
        try:
            return read_note(answered.text, answered.truncated)
        except ItemRejected as error:
            raise _Unreadable(str(error)) from error


class _Unreadable(Exception):
    """An answer came that is no note; what the endpoint itself refuses is another matter."""


@dataclass(frozen=True)
class NoteInput:
    """How a conversation is sent: whole, its head and tail, or in parts, read as they are needed."""

    way: str
    parts: Iterable[Sequence[str]]


@dataclass(frozen=True)
class NoteForecast:
    """What a note will take: how the conversation is sent, in how many calls, and about how many tokens."""

    way: str
    calls: int
    prompt_tokens: int


MERGED_TOKENS = 700
"""What the note of a part usually has."""


def forecast(said: Iterable[ConversationEntry], scene: Scene, budget: int) -> NoteForecast:
    """What asking for the note of these messages will take, without asking."""
    plan = input_of(said, room_of(budget, scene))
    contents = (prompt.ask_for_note(scene, part) for part in plan.parts)
    tokens = [sum(estimate_mean_tokens(one["content"]) for one in chat) for chat in contents]
    merges = _merges(len(tokens), room_of(budget, scene))
    fixed = estimate_mean_tokens(prompt.instructions("merge")) + estimate_mean_tokens(scene.line())
    merging = merges * fixed + (len(tokens) + merges - 1) * MERGED_TOKENS if merges else 0
    return NoteForecast(plan.way, len(tokens) + merges, sum(tokens) + merging)


def _merges(notes: int, room: int) -> int:
    """How many calls it takes to make one note of so many."""
    at_once = max(2, room // min(MERGED_TOKENS, max(1, room // 3)))
    calls = 0
    while notes > 1:
        batches, left = divmod(notes, at_once)
        calls += batches + (left > 1)
        notes = batches + (left > 0)
    return calls


def room_of(budget: int, scene: Scene) -> int:
    """How many tokens of a request are left for what was said."""
    taken = max(estimate_tokens(prompt.instructions(name)) for name in ("note", "merge"))
    fixed = taken + estimate_tokens(scene.line()) + prompt.OVERHEAD_TOKENS
    return max(MIN_ROOM_TOKENS, budget - fixed)


def input_of(
    said: Iterable[ConversationEntry], room: int, parts_at_each_end: int = PARTS_AT_EACH_END
) -> NoteInput:
    """The messages as they are sent. No more of them are held than make two requests, or the last parts."""
    rendered = _rendered(said, room)
    held: list[RenderedMessage] = []
    weight = 0
    for message in rendered:
        held.append(message)
        weight += message.weight
        if weight > 2 * room * UNITS:
            # The summary of what came before takes an eighth.
            parts = _parts(chain(held, rendered), room - room // 8)
            return NoteInput(IN_PARTS, _ends(parts, parts_at_each_end))
    if weight <= room * UNITS:
        return NoteInput(WHOLE, [[one.text for one in held]] if held else [])
    return NoteInput(HEAD_AND_TAIL, [_head_and_tail(held, room)])


def _rendered(said: Iterable[ConversationEntry], room: int) -> Iterator[RenderedMessage]:
    """Each message between its markers, none longer than a quarter of a request."""
    for number, message in enumerate(said, start=1):
        found = prompt.render(number, message)
        if found.weight > room * UNITS // 4:
            short = ConversationEntry(message.role, fit(message.text, room // 5), message.said_at)
            found = prompt.render(number, short)
        yield found


def _parts(rendered: Iterable[RenderedMessage], room: int) -> Iterator[list[str]]:
    """Consecutive messages, as many at a time as there is room for."""
    part: list[str] = []
    weight = 0
    for one in rendered:
        if part and weight + one.weight > room * UNITS:
            yield part
            part, weight = [], 0
        part.append(one.text)
        weight += one.weight
    if part:
        yield part


def _ends(parts: Iterator[list[str]], number: int) -> Iterator[list[str]]:
    """So many first parts as they come, and as many of the last; what is in between is left out."""
    yield from islice(parts, number)
    yield from deque(parts, maxlen=number)


def _head_and_tail(held: Sequence[RenderedMessage], room: int) -> list[str]:
    """The first and the last messages, half of the room each, with a note of how many are left out."""
    half = (room - 20) * UNITS // 2
    head = _fitting(held, half)
    tail = _fitting(held[::-1][: len(held) - head], half)
    left_out = len(held) - head - tail
    between = [f"[... {left_out} messages left out ...]\n"] if left_out else []
    return [
        *(one.text for one in held[:head]),
        *between,
        *(one.text for one in held[len(held) - tail :]),
    ]


def _fitting(messages: Sequence[RenderedMessage], room: int) -> int:
    number = 0
    for one in messages:
        room -= one.weight
        if room < 0:
            break
        number += 1
    return number


def _shortened(note: NoteAnswer, max_tokens: int) -> NoteAnswer:
    return NoteAnswer(
        fit(note.raw_memory, max_tokens * 3 // 5), fit(note.summary, max_tokens // 5), note.slug
    )


def _batches(notes: Sequence[NoteAnswer], room: int) -> Iterator[tuple[int, list[str]]]:
    """Consecutive notes, as many at a time as there is room for, and the place of the first of each."""
    parts = [prompt.render_part(at, one.raw_memory, one.summary) for at, one in enumerate(notes, start=1)]
    first = 0
    for texts in _parts(parts, room):
        yield first, texts
        first += len(texts)
