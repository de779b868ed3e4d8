"""Editing memory files by hand: a text becomes sections again, and those that did not change stay."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from shepherd_memory.consolidation.files import (
    APPLIES_TO,
    MEMORY_TITLE,
    nested,
    render_skill,
)
from shepherd_memory.errors import InvalidInput
from shepherd_memory.phases.sections import (
    MEMORY_FILE,
    NOTES_FOLDER,
    SKILL_FILE,
    SKILLS_FOLDER,
    SUMMARY_FILE,
    MemorySection,
)
from shepherd_memory.phases.summary import VERSION
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.redaction import redact

MAX_SECTIONS = 200
MAX_HEADING_CHARS = 200
MAX_SECTION_CHARS = 8000
MAX_NAME_CHARS = 100
_ALIKE = 0.5
_SECTION = re.compile(r"^##[ \t]+", re.MULTILINE)
_COMPARED_CHARS = 2000


@dataclass(frozen=True)
class EditedSection:
    """A section as a person wrote it, and the one that it was before; None for a new one."""

    heading: str
    body: str
    project: str = ""
    before: MemorySection | None = None

    @property
    def is_changed(self) -> bool:
        one = self.before
        return one is None or (self.heading, self.body, self.project) != _written(one)


def check_editable(path: str) -> None:
    """InvalidInput unless a file is made of sections."""
    parts = path.split("/")
    is_skill = len(parts) == 3 and parts[0] == SKILLS_FOLDER and parts[2] == SKILL_FILE
    is_note = len(parts) == 2 and parts[0] == NOTES_FOLDER and path.endswith(".md")
    if path not in (MEMORY_FILE, SUMMARY_FILE) and not is_skill and not is_note:
        raise InvalidInput(
            f"{path!r} is not edited by hand: {MEMORY_FILE}, {SUMMARY_FILE},"
            f" {SKILLS_FOLDER}/NAME/{SKILL_FILE} and {NOTES_FOLDER}/NAME.md are"
        )
    if any(len(part) > MAX_NAME_CHARS for part in parts) or redact(path) != path:
        raise InvalidInput(
            f"a name in the path is longer than {MAX_NAME_CHARS} characters, or looks like a secret"
        )


def edited(path: str, text: str, before: Sequence[MemorySection]) -> list[EditedSection]:
    """The sections of a file as its new text has them, each with the one that it was."""
    clean = redact(canonical_text(text)).replace("\r\n", "\n").strip()
    has_many = path in (MEMORY_FILE, SUMMARY_FILE)
    written = _split(path, clean) if has_many else [_single(path, clean, before)]
    if len(written) > MAX_SECTIONS:
        raise InvalidInput(f"{path} has {len(written)} sections: at most {MAX_SECTIONS} are kept")
    for one in written:
        _check(one)
    return _matched(written, before)


def _check(one: EditedSection) -> None:
    if not one.heading or len(one.heading) > MAX_HEADING_CHARS:
        raise InvalidInput(f"a heading has 1 to {MAX_HEADING_CHARS} characters: {one.heading[:80]!r}")
    if not one.body or len(one.body) > MAX_SECTION_CHARS:
        raise InvalidInput(
            f"the section {one.heading!r} has {len(one.body)} characters: 1 to {MAX_SECTION_CHARS} are kept;"
            " divide it by `## ` headings, or remove its heading too"
        )


def _split(path: str, text: str) -> list[EditedSection]:
    first, *parts = _SECTION.split(text)
    title = VERSION if path == SUMMARY_FILE else MEMORY_TITLE
    if first.strip() not in ("", title):
        raise InvalidInput(f"{path} has text before its first heading: begin each section with `## `")
    return [_section(part) for part in parts]


def _section(part: str) -> EditedSection:
    heading, _, rest = part.partition("\n")
    first, _, body = rest.strip().partition("\n")
    if first.startswith(APPLIES_TO):
        return EditedSection(heading.strip(), nested(body), first.removeprefix(APPLIES_TO).strip())
    return EditedSection(heading.strip(), nested(rest))


def _single(path: str, text: str, before: Sequence[MemorySection]) -> EditedSection:
    """A file of one section: a skill is called as its folder, a note as its first heading."""
    name = path.split("/")[1].removesuffix(".md")
    if text.startswith("---\n"):
        return EditedSection(before[0].heading if before else name, text)
    first, _, rest = text.partition("\n")
    if not first.startswith("# "):
        return EditedSection(before[0].heading if before else name, text)
    is_skill = path.startswith(f"{SKILLS_FOLDER}/")
    return EditedSection(name if is_skill else first[2:].strip(), rest.strip())


def _written(section: MemorySection) -> tuple[str, str, str]:
    """A section as its text reads in the file."""
    if section.file in (MEMORY_FILE, SUMMARY_FILE):
        return section.heading, nested(section.body), section.project
    single = _single(section.file, render_skill(section).strip(), [section])
    return single.heading, single.body, single.project


def _matched(written: Sequence[EditedSection], before: Sequence[MemorySection]) -> list[EditedSection]:
    """Each with what it was: the same, one of that heading, or the first left that reads much alike."""
    found: dict[int, MemorySection] = {}
    left = list(before)
    for is_same in (_is_same, _is_named_alike, _reads_alike):
        for at, one in enumerate(written):
            match = next((old for old in left if at not in found and is_same(one, old)), None)
            if match is not None:
                found[at] = match
                left.remove(match)
    return [
        EditedSection(one.heading, one.body, one.project, found.get(at)) for at, one in enumerate(written)
    ]


def _is_same(one: EditedSection, old: MemorySection) -> bool:
    return (one.heading, one.body, one.project) == _written(old)


def _is_named_alike(one: EditedSection, old: MemorySection) -> bool:
    return one.heading == old.heading


def _reads_alike(one: EditedSection, old: MemorySection) -> bool:
    texts = one.body[:_COMPARED_CHARS], _written(old)[1][:_COMPARED_CHARS]
    return SequenceMatcher(None, *texts, autojunk=False).ratio() >= _ALIKE
