"""Phase 2 by its rules, in plain Python: what is selected, what has changed, what a success leaves behind."""

from dataclasses import dataclass, field, replace

DAY = 86_400 * 1_000_000
HOUR = DAY // 24

MAX_INPUTS = 2
MAX_UNUSED_DAYS = 30
COOLDOWN_HOURS = 6

Diff = dict[str, list[int]]


@dataclass(frozen=True)
class Note:
    """What phase 1 made of a conversation, and what the last success consumed of it (None: nothing)."""

    through: int
    source_updated_at: int
    generated_at: int
    is_worth_it: bool
    state: str = "kept"
    used: int = 0
    last_used: int | None = None
    selected_at: int | None = None

    @property
    def has_words(self) -> bool:
        return self.state == "kept" and self.is_worth_it

    @property
    def freshness(self) -> int:
        return self.generated_at if self.last_used is None else self.last_used


@dataclass
class Place:
    """One user and group: the notes by conversation, and the one section that each success writes of them."""

    notes: dict[int, Note] = field(default_factory=dict)
    changes: int = 0
    changes_read: int = 0
    consolidated_at: int | None = None
    version: int = 0
    sources: frozenset[int] = frozenset()
    is_withheld: bool = False

    @property
    def is_dirty(self) -> bool:
        return self.changes > self.changes_read

    def is_due(self, now: int) -> bool:
        """Whether it is consolidated by itself."""
        has_cooled = self.consolidated_at is None or now - self.consolidated_at >= COOLDOWN_HOURS * HOUR
        return self.is_dirty and has_cooled

    def upsert(self, number: int, made: Note) -> None:
        before = self.notes.get(number)
        if before is not None and before.state == "kept" and before.through > made.through:
            return
        if made.is_worth_it or (before is not None and before.is_worth_it):
            self.changes += 1
        kept = before or made
        self.notes[number] = replace(
            made, used=kept.used, last_used=kept.last_used, selected_at=kept.selected_at
        )

    def use(self, number: int, now: int) -> None:
        note = self.notes.get(number)
        if note is not None and note.state == "kept":
            self.notes[number] = replace(note, used=note.used + 1, last_used=now)

    def withhold(self, number: int) -> None:
        """Something in its conversation is forgotten."""
        self.notes[number] = replace(self.notes[number], state="withheld", selected_at=None)
        self._lose()
        self.is_withheld |= number in self.sources

    def delete(self, number: int) -> None:
        """Its conversation is forgotten."""
        del self.notes[number]
        self._lose()
        self.is_withheld |= number in self.sources
        self.sources -= {number}

    def reset(self) -> None:
        """All that a success has left goes, and the next one reads everything as added."""
        self.notes = {number: replace(note, selected_at=None) for number, note in self.notes.items()}
        self.sources, self.is_withheld, self.consolidated_at = frozenset(), False, None
        self.changes += 1
        self.version += 1

    def _lose(self) -> None:
        # A place that never had a note has nothing to lose.
        self.changes += 1 if self.changes else 0

    def selection(self, now: int) -> list[int]:
        """Those used or made lately, the most used first, then by last use, by source time and by id."""
        oldest = now - MAX_UNUSED_DAYS * DAY
        fresh = [number for number, note in self.notes.items() if note.has_words and note.freshness >= oldest]
        return sorted(fresh, key=self._rank, reverse=True)[:MAX_INPUTS]

    def _rank(self, number: int) -> tuple[int, int, int, int]:
        note = self.notes[number]
        return note.used, note.freshness, note.source_updated_at, number

    def diff(self, now: int) -> Diff:
        """A refreshed one is added until a success has consumed it; one that fell out is removed."""
        chosen = self.selection(now)
        known = [one for one in chosen if self.notes[one].selected_at == self.notes[one].source_updated_at]
        gone = [one for one, note in self.notes.items() if note.selected_at is not None and one not in chosen]
        return {
            "added": [one for one in chosen if one not in known],
            "retained": known,
            "removed": sorted(gone, key=self._rank, reverse=True),
        }

    def succeed(self, read: "Place", read_at: int, now: int) -> None:
        """A run that read the place as it was then has ended well."""
        chosen = read.selection(read_at)
        self.changes_read = read.changes
        self.consolidated_at = now
        if chosen:
            self.version += 1
            self.sources, self.is_withheld = frozenset(chosen), False
        for number, note in self.notes.items():
            consumed = read.notes[number].source_updated_at if number in chosen else None
            self.notes[number] = self._pruned(replace(note, selected_at=consumed), now)

    def _pruned(self, note: Note, now: int) -> Note:
        is_old = note.freshness < now - MAX_UNUSED_DAYS * DAY
        return (
            replace(note, is_worth_it=False)
            if is_old and note.selected_at is None and note.has_words
            else note
        )
