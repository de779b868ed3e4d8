"""The workspace of one consolidation: files to read, and sections that are staged until the run ends well."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from shepherd_memory.consolidation.files import (
    APPLIES_TO,
    MemoryFiles,
    files_of,
    nested,
)
from shepherd_memory.consolidation.selection import Selection
from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.phases.answer import storable_note
from shepherd_memory.phases.sections import (
    KEPT,
    MEMORY_FILE,
    SKILL_FILE,
    SKILLS_FOLDER,
    SUMMARY_FILE,
    MemorySection,
)
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.text.tokens import estimate_tokens

MAX_SECTIONS = 200
MAX_SECTION_CHARS = 8_000
MAX_HEADING_CHARS = 200
MAX_PROJECT_CHARS = 1_000
MAX_WRITES = 1_000
"""Writes of one run: a model that goes round in circles comes to an end."""

LEAST_SUMMARY_SHARE = 4
"""However long the person's sections of the summary are, others may have one part in so many of it."""

_SKILL_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
_FIELDS = re.compile(r"---[ \t]*\n(.*?)(?:^---[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_DESCRIPTION = re.compile(r"^description:[ \t]*(.+)$", re.MULTILINE)

SectionName = tuple[str, str]
"""The path of a section's file, and its heading."""


@dataclass(frozen=True)
class StagedSection:
    """A section as the agent wrote it."""

    file: str
    heading: str
    body: str
    project: str
    sources: tuple[StoredId, ...]


@dataclass(frozen=True)
class Changes:
    """What a run changes: sections that are written, and those whose place they take or that are deleted."""

    written: tuple[StagedSection, ...] = ()
    ended: tuple[MemorySection, ...] = ()


@dataclass
class Workspace:
    """The files of a run. Nothing that is written here is seen by anybody until the run is stored.

    `sections` are those that the agent may see; `is_deleted` tells whether a text that rests on these
    conversations says what the user has deleted; `summary_tokens` is how long the summary may be for a
    session.
    """

    selection: Selection
    sections: Sequence[MemorySection]
    summary_tokens: int
    is_deleted: Callable[[Sequence[str], Sequence[int]], bool] = lambda texts, sources: False
    staged: dict[SectionName, StagedSection] = field(default_factory=dict)
    ended: dict[int, MemorySection] = field(default_factory=dict)
    writes: int = 0

    @property
    def shown(self) -> list[MemorySection]:
        """The stored sections that are still as they were."""
        return [one for one in self.sections if one.state == KEPT and one.id not in self.ended]

    @property
    def withheld(self) -> list[MemorySection]:
        """Those that lost their words because something in a source was forgotten."""
        return [one for one in self.sections if one.state != KEPT]

    def files(self) -> MemoryFiles:
        """All files as they would be if the run ended now."""
        readable = [(one.output, one.cwd) for one in self.selection.readable]
        return files_of(self._all_sections(), readable)

    def _all_sections(self) -> list[MemorySection]:
        sample = [_as_section(one, place) for place, one in enumerate(self.staged.values(), start=10_000)]
        return [*self.shown, *sample]

    def write_section(
        self, path: object, heading: object, text: object, sources: object, project: object = ""
    ) -> str:
        """Write a section of MEMORY.md or memory_summary.md, in the place of one with the same heading."""
        if path not in (MEMORY_FILE, SUMMARY_FILE):
            raise InvalidInput(
                f"path takes {MEMORY_FILE} or {SUMMARY_FILE}: skills are written by write_skill"
            )
        title = _line("heading", heading, MAX_HEADING_CHARS)
        return self._write(str(path), title, text, sources, project)

    def write_skill(self, name: object, text: object, sources: object) -> str:
        """Write a skill, in the place of one with the same name."""
        if not isinstance(name, str) or not _SKILL_NAME.fullmatch(name):
            raise InvalidInput(
                "name takes up to 80 lower-case letters, digits, - and _, a letter or digit first"
            )
        return self._write(f"{SKILLS_FOLDER}/{name}/{SKILL_FILE}", name, text, sources)

    def _write(self, path: str, heading: str, text: object, sources: object, project: object = "") -> str:
        self.writes += 1
        if self.writes > MAX_WRITES:
            raise InvalidInput(f"this run has written {MAX_WRITES} times: call finish")
        section = _section(path, heading, _text(text), project, self._sources(sources))
        if self.is_deleted((heading, section.body, section.project), section.sources):
            raise InvalidInput("the text says something that the user has deleted: leave that out")
        self._stage(section)
        return f"staged: {path}, {heading!r}"

    def _stage(self, section: StagedSection) -> None:
        path, heading = section.file, section.heading
        before = self._named(path, heading)
        if before is not None and before.is_pinned:
            raise InvalidInput(
                f"{heading!r} was edited by the user and stays as it is: write another section"
            )
        if before is None and (path, heading) not in self.staged and self._count() >= MAX_SECTIONS:
            raise InvalidInput(f"there are {MAX_SECTIONS} sections: delete or join some first")
        if before is not None:
            self.ended[before.id] = before
        self.staged[path, heading] = section

    def delete_section(self, path: object, heading: object) -> str:
        """Take a section, or a skill by its name, out of its file."""
        title = _line("heading", heading, MAX_HEADING_CHARS)
        if self.staged.pop((str(path), title), None) is not None:
            return f"deleted: {title!r}"
        found = self._named(str(path), title)
        if found is None:
            raise NotFound(f"{path} has no section {title!r}: list and read the files first")
        if found.is_pinned:
            raise InvalidInput(f"{title!r} was edited by the user and stays")
        self.ended[found.id] = found
        return f"deleted: {title!r}"

    def start_again(self) -> None:
        """Take back all that was written and deleted."""
        self.staged.clear()
        self.ended.clear()

    def problem(self) -> str:
        """Why the run cannot end yet; empty if it can."""
        found = self._all_sections()
        for file in (MEMORY_FILE, SUMMARY_FILE):
            if not any(one.file == file for one in found):
                return f"{file} has no section yet: write one with write_section"
        summary = [one for one in found if one.file == SUMMARY_FILE]
        projects = dict.fromkeys(one.project for one in summary)
        problems = (self._excess([one for one in summary if one.project == name], name) for name in projects)
        return next(filter(None, problems), "")

    def _excess(self, part: Sequence[MemorySection], project: str) -> str:
        """That a part of the summary is too long, as far as it is the agent's to shorten."""
        pinned = sum(_tokens(one) for one in part if one.is_pinned)
        written = sum(_tokens(one) for one in part if not one.is_pinned)
        room = max(self.summary_tokens - pinned, self.summary_tokens // LEAST_SUMMARY_SHARE)
        if written <= room:
            return ""
        which = f"its part for {project!r}" if project else "its general part"
        return f"{SUMMARY_FILE} is too long: {which} has {written} tokens, and {room} fit; shorten it"

    def changes(self) -> Changes:
        """What is to be stored. Withheld sections go: what is left of them has been written anew, or not."""
        gone = {one.id: one for one in self.withheld} | self.ended
        return Changes(tuple(self.staged.values()), tuple(gone.values()))

    def _count(self) -> int:
        return len(self.shown) + len(self.staged)

    def _named(self, path: str, heading: str) -> MemorySection | None:
        return next((one for one in self.shown if (one.file, one.heading) == (path, heading)), None)

    def _sources(self, raw: object) -> tuple[int, ...]:
        known = {one.conversation_id for one in self.selection.chosen}
        given = raw if isinstance(raw, list) else [raw]
        numbers = {place: _number(one) for place, one in enumerate(given)}
        unknown = [given[place] for place, number in numbers.items() if number not in known]
        named = [number for number in numbers.values() if number is not None]
        if unknown or not named:
            listed = ", ".join(repr(one)[:40] for one in unknown[:5]) or "none"
            raise InvalidInput(
                f"sources takes numbers of conversations that are added or retained, not {listed}"
            )
        return tuple(dict.fromkeys(named))


def _number(raw: object) -> int | None:
    if isinstance(raw, str) and raw.isascii() and raw.isdecimal() and len(raw) < 19:
        return int(raw)
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None


def storable_line(raw: object) -> str:
    """A text in one line, without secrets."""
    return " ".join(storable_note(str(raw), "").raw_memory.split())


def _line(name: str, raw: object, most: int) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidInput(f"{name} takes a line of text")
    if len(raw) > most:
        raise InvalidInput(f"{name} has at most {most} characters, this one has {len(raw)}")
    text = storable_line(raw).lstrip("# ")
    if not text or not text.isprintable():
        raise InvalidInput(f"{name} takes a line of printable text")
    return text


def _text(raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidInput("text takes what the section says; delete_section takes one away")
    if len(raw) > MAX_SECTION_CHARS:
        raise InvalidInput(
            f"a section has at most {MAX_SECTION_CHARS} characters, this has {len(raw)}: shorten or split it"
        )
    return nested(storable_note(raw, "").raw_memory)


def _section(path: str, heading: str, text: str, project: object, sources: tuple[int, ...]) -> StagedSection:
    """A section as it is kept: nothing in its text passes for its project, or for the fields of its file."""
    is_skill = path.endswith(f"/{SKILL_FILE}")
    stated, body = ("", _plain_skill(heading, text)) if is_skill else _without_project(text)
    if not body:
        raise InvalidInput("nothing of the text can be kept")
    named = project or stated
    place = _line("project", named, MAX_PROJECT_CHARS) if named else ""
    return StagedSection(path, heading, body, place, sources)


def _without_project(text: str) -> tuple[str, str]:
    """The project that a text begins with, as sections are shown, and the rest."""
    project = ""
    while text.startswith(APPLIES_TO):
        first, _, text = text.partition("\n")
        project, text = first.removeprefix(APPLIES_TO).strip(), text.strip()
    return project, text


def _plain_skill(name: str, text: str) -> str:
    """A skill with its name and description as its only fields: others could ask agents for permissions."""
    fields = _FIELDS.match(text)
    if fields is None:
        return text
    described = _DESCRIPTION.search(fields[1])
    rest = text[fields.end() :].strip()
    return rest and f"---\nname: {name}\ndescription: {described[1] if described else name}\n---\n\n{rest}"


def _tokens(section: MemorySection) -> int:
    return estimate_tokens(f"## {section.heading}\n{section.body}\n")


def _as_section(one: StagedSection, place: int) -> MemorySection:
    return MemorySection(
        "", 0, one.file, one.heading, one.body, one.project, place, "agent", KEPT, 0, from_us(0), one.sources
    )


def without_unsendable(sections: Sequence[MemorySection], unsendable: Collection[int]) -> list[MemorySection]:
    """The sections that whoever consolidates may see: none of a conversation that may not be sent there."""
    return [one for one in sections if not set(one.sources) & set(unsendable)]
