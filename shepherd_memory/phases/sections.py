"""Sections: pieces of consolidated memory, each with the conversations that it is made of."""

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from shepherd_memory.memory import documents, entries
from shepherd_memory.memory.documents import PHASE2, NewDocument
from shepherd_memory.storage import prompt_blocks, tombstones, users
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.rows import build
from shepherd_memory.text.ids import digest_of
from shepherd_memory.text.words import has_words, words

KEPT, WITHHELD = "kept", "withheld"
AGENT, USER = "agent", "user"

MEMORY_FILE = "MEMORY.md"
SUMMARY_FILE = "memory_summary.md"
SKILLS_FOLDER = "skills"
SKILL_FILE = "SKILL.md"
NOTES_FOLDER = "notes"

DOCUMENT_SESSION = "shepherd:memory"
"""What the documents of sections have for a session: nobody said them in any."""


@dataclass(frozen=True)
class MemorySection:
    """A piece of a memory file; withheld ones have no words until they are written anew."""

    group_name: str
    id: StoredId
    file: str
    heading: str
    body: str
    project: str
    place: int
    written_by: str
    state: str
    version: int
    updated_at: datetime
    sources: tuple[StoredId, ...] = ()
    """The conversations that it is made of; one that was written by hand may have none."""

    @property
    def is_pinned(self) -> bool:
        """Whether a person wrote it: consolidation reads it and never changes it."""
        return self.written_by == USER

    @property
    def text(self) -> str:
        """What it is found by."""
        return f"{self.heading}\n\n{self.body}"


@dataclass(frozen=True)
class NewSection:
    """A section before it is stored, with the words that it is found by; `stated_at` as its newest source."""

    file: str
    heading: str
    body: str
    stated_at: int
    project: str = ""
    place: int = 0
    written_by: str = AGENT
    sources: tuple[StoredId, ...] = ()
    terms: Counter[str] = field(default_factory=Counter)


_COLUMNS = "group_name, id, file, heading, body, project, place, written_by, state, version, updated_at"


def current(connection: Connection, user_id: str, group: str) -> list[MemorySection]:
    """All sections of a group as they are now, withheld ones too, in the order of their files."""
    return _read(connection, user_id, group, "ended_version is null")


def in_use(connection: Connection, user_id: str, group: str, file: str = "") -> list[MemorySection]:
    """Those that may be shown; of one file, if it is named."""
    found = _read(connection, user_id, group, f"ended_version is null and state = '{KEPT}'", file)
    return found


def every(connection: Connection, user_id: str, group: str, file: str = "") -> list[MemorySection]:
    """All sections of a group, current and past; of one file, if it is named."""
    return _read(connection, user_id, group, "version > 0", file)


def at_version(connection: Connection, user_id: str, group: str, version: int) -> list[MemorySection]:
    """The sections of a group as a version had them, less what was forgotten since."""
    condition = (
        f"version <= :version and (ended_version is null or ended_version > :version) and state = '{KEPT}'"
    )
    return _read(connection, user_id, group, condition, version=version)


def _read(
    connection: Connection,
    user_id: str,
    group: str,
    condition: str,
    file: str = "",
    **parameters: int,
) -> list[MemorySection]:
    of_file = " and file = :file" if file else ""
    rows = connection.rows(
        f"select {_COLUMNS} from memory_sections where user_id = :user_id and group_name = :group"
        f" and {condition}{of_file} order by file, place, id",
        user_id=user_id,
        group=group,
        **({"file": file} if file else {}),
        **parameters,
    )
    sources = _sources(connection, user_id, group) if rows else {}
    return [build(MemorySection, (*row, sources.get(row[1], ()))) for row in rows]


def _sources(connection: Connection, user_id: str, group: str) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for section_id, conversation_id in connection.rows(
        "select section_id, conversation_id from section_sources where user_id = :user_id"
        " and group_name = :group order by section_id, conversation_id",
        user_id=user_id,
        group=group,
    ):
        found[section_id] = (*found.get(section_id, ()), conversation_id)
    return found


def versions_that_say(
    connection: Connection, user_id: str, group: str, file: str, heading: str, body: str
) -> set[int]:
    """The versions of a group in which a section of exactly this text began."""
    rows = connection.rows(
        "select version from memory_sections where user_id = :user_id and group_name = :group"
        " and file = :file and heading = :heading and body = :body",
        user_id=user_id,
        group=group,
        file=file,
        heading=heading,
        body=body,
    )
    return {int(version) for (version,) in rows}


def add(
    tx: Connection,
    user_id: str,
    group: str,
    section_id: int,
    new: NewSection,
    version: int,
    now: int,
) -> None:
    """Store a section of a version under an id that also becomes that of its document."""
    add_past(tx, user_id, group, section_id, new, version, None, now)
    _add_document(tx, user_id, group, section_id, new, now)


def add_past(
    tx: Connection,
    user_id: str,
    group: str,
    section_id: int,
    new: NewSection,
    version: int,
    ended_version: int | None,
    now: int,
) -> None:
    """The same for one that is part of the history alone: it has no document."""
    tx.execute(
        "insert into memory_sections (user_id, group_name, id, file, heading, body, project, place,"
        " written_by, state, version, ended_version, updated_at) values (:user_id, :group, :id, :file,"
        f" :heading, :body, :project, :place, :written_by, '{KEPT}', :version, :ended_version, :now)",
        user_id=user_id,
        group=group,
        id=section_id,
        file=new.file,
        heading=new.heading,
        body=new.body,
        project=new.project,
        place=new.place,
        written_by=new.written_by,
        version=version,
        ended_version=ended_version,
        now=now,
    )
    tx.insert_many(
        "section_sources",
        ("user_id", "group_name", "section_id", "conversation_id"),
        [(user_id, group, section_id, source) for source in dict.fromkeys(new.sources)],
    )


def _document_name() -> str:
    """What the document of a section is called: nothing that tells its id."""
    return f"{PHASE2}:{uuid.uuid4().hex}"


def _add_document(
    tx: Connection, user_id: str, group: str, section_id: int, new: NewSection, now: int
) -> None:
    text = f"{new.heading}\n\n{new.body}"
    document = NewDocument(
        DOCUMENT_SESSION,
        _document_name(),
        text,
        new.stated_at,
        type="learning",
        category="knowledge",
        role="assistant",
        speaker_type="agent",
        group_name=group,
        source=PHASE2,
        source_file=new.file,
        cwd=new.project,
    )
    if documents.insert(tx, user_id, section_id, [document], now):
        entry = entries.Entry(
            section_id,
            entries.DOCUMENT,
            DOCUMENT_SESSION,
            "assistant",
            "",
            new.stated_at,
            new.terms or entries.terms_of(text),
            group,
        )
        entries.add(tx, user_id, [entry], now)


def end(tx: Connection, user_id: str, section: MemorySection, version: int) -> None:
    """A version has it no longer, or otherwise: it is part of the history. Blocks that told it stay."""
    tx.execute(
        "update memory_sections set ended_version = :version where user_id = :user_id and id = :id",
        user_id=user_id,
        id=section.id,
        version=version,
    )
    if section.state == WITHHELD:
        delete(tx, user_id, [section.id], section.group_name)
    _remove_document(tx, user_id, section)


def move(tx: Connection, user_id: str, section: MemorySection, place: int) -> None:
    """Put a section elsewhere in its file."""
    tx.execute(
        "update memory_sections set place = :place where user_id = :user_id and group_name = :group"
        " and id = :id and place <> :place",
        user_id=user_id,
        group=section.group_name,
        id=section.id,
        place=place,
    )


def delete(tx: Connection, user_id: str, section_ids: Iterable[int], group: str) -> None:
    """Remove sections for good, whether they are current or of the history; their documents are apart."""
    named = [{"user_id": user_id, "group": group, "id": one} for one in section_ids]
    of_one = "where user_id = :user_id and group_name = :group"
    tx.execute_many(f"delete from section_sources {of_one} and section_id = :id", named)
    tx.execute_many(f"delete from memory_sections {of_one} and id = :id", named)


def _remove_document(tx: Connection, user_id: str, section: MemorySection) -> None:
    gone = documents.delete(tx, user_id, section.id, section.group_name)
    if gone is not None:
        entries.remove(tx, user_id, gone.id, gone.text)
        users.bump_version(tx, user_id)


def drop_history(tx: Connection, user_id: str, group: str, through: int) -> None:
    """Remove versions up to one, with the sections that no later one has."""
    rows = tx.rows(
        "select id from memory_sections where user_id = :user_id and group_name = :group"
        " and ended_version <= :through",
        user_id=user_id,
        group=group,
        through=through,
    )
    delete(tx, user_id, [number for (number,) in rows], group)
    tx.execute(
        "delete from memory_versions where user_id = :user_id and group_name = :group"
        " and version <= :through",
        user_id=user_id,
        group=group,
        through=through,
    )


def forget(tx: Connection, user_id: str, found: Sequence[MemorySection]) -> None:
    """Remove sections, with their documents, from files, recall and prompts."""
    for section in found:
        _remove_document(tx, user_id, section)
        delete(tx, user_id, [section.id], section.group_name)
        _take_back(tx, user_id, section)


def mark_of(file: str, heading: str) -> str:
    """What stands for a section that is deleted: it tells nothing of it."""
    return digest_of(f"{file}\n{heading}")


def bury(tx: Connection, user_id: str, names: Iterable[tuple[str, str]], now: int, group: str) -> None:
    """Keep sections that were deleted, by their files and headings, from coming back by an import."""
    marks = {mark_of(file, heading) for file, heading in names}
    tombstones.add_all(tx, user_id, tombstones.SECTION, [(mark, "", now) for mark in sorted(marks)], group)


def forget_buried(tx: Connection, user_id: str, mark: str, when: int, group: str) -> None:
    """Remove what was deleted elsewhere: the sections with a mark that were written by then."""
    known = _read(tx, user_id, group, f"state = '{KEPT}'")
    named = [one for one in known if mark_of(one.file, one.heading) == mark]
    found = [one for one in named if to_us(one.updated_at) <= when]
    forget(tx, user_id, found)
    _drop_names(tx, user_id, found)


def forget_document(tx: Connection, user_id: str, document_id: int, group: str) -> None:
    """Remove the section that a document says, with its past. The document is the caller's to delete."""
    found = _read(tx, user_id, group, f"state = '{KEPT}'")
    names = {(one.file, one.heading) for one in found if one.id == document_id}
    named = [one for one in found if (one.file, one.heading) in names]
    forget(tx, user_id, [one for one in named if one.id != document_id])
    delete(tx, user_id, [one.id for one in named if one.id == document_id], group)
    _drop_names(tx, user_id, named)


def _drop_names(tx: Connection, user_id: str, found: Iterable[MemorySection]) -> None:
    """Out of the history: a note that a person added is called by what it says."""
    for group, file in sorted({(one.group_name, one.file) for one in found}):
        if file.startswith(f"{NOTES_FOLDER}/"):
            tx.execute(
                "update memory_versions set note = '' where user_id = :user_id and group_name = :group"
                " and note like :named",
                user_id=user_id,
                group=group,
                named=f"% {file}",
            )


def withhold(tx: Connection, user_id: str, found: Sequence[MemorySection]) -> None:
    """Take sections out of use at once, without keeping their words; past ones go for good.

    One that a person edited is no longer pinned: it is written anew without what was forgotten.
    """
    for section in found:
        _remove_document(tx, user_id, section)
        tx.execute(
            f"update memory_sections set state = '{WITHHELD}', heading = '', body = '', file = :file,"
            f" written_by = '{AGENT}' where user_id = :user_id and id = :id and ended_version is null",
            user_id=user_id,
            id=section.id,
            # The name of a skill or of a note may say what was forgotten.
            file=section.file.partition("/")[0],
        )
        _take_back(tx, user_id, section)
    past = [one.id for one in found if not _is_current(tx, user_id, one.id)]
    for section_id in past:
        delete(tx, user_id, [section_id], next(one.group_name for one in found if one.id == section_id))


def _is_current(connection: Connection, user_id: str, section_id: int) -> bool:
    row = connection.row(
        "select 1 from memory_sections where user_id = :user_id and id = :id and ended_version is null",
        user_id=user_id,
        id=section_id,
    )
    return row is not None


def _take_back(tx: Connection, user_id: str, section: MemorySection) -> None:
    """Out of the prompts that were told it."""
    prompt_blocks.withdraw(tx, user_id, [prompt_blocks.entry_mark(section.id)])


def of_source(connection: Connection, user_id: str, conversation_id: int, group: str) -> list[MemorySection]:
    """The sections, current or past, that are made of a conversation."""
    condition = (
        "id in (select section_id from section_sources where user_id = :user_id and group_name = :group"
        " and conversation_id = :conversation_id)"
    )
    return _read(connection, user_id, group, condition, conversation_id=conversation_id)


def that_say(connection: Connection, user_id: str, value: str, group: str) -> list[MemorySection]:
    """The sections, current or past, that are made of conversations and in which a value stands."""
    plain, said = value.lower(), words(value)
    made = (one for one in _read(connection, user_id, group, "state = 'kept'") if one.sources)
    return [one for one in made if plain in _said_in(one).lower() or has_words(_said_in(one), said)]


def that_repeat(
    connection: Connection, user_id: str, messages: Iterable[str], group: str
) -> list[MemorySection]:
    """The same for those in which one of these messages is a line."""
    told = [words(text) for text in messages if tombstones.words_mark(text)]
    found = _read(connection, user_id, group, "state = 'kept'") if told else []
    return [one for one in found if one.sources and any(_repeats(_said_in(one), said) for said in told)]


def _repeats(text: str, said: Sequence[str]) -> bool:
    return has_words(text, said) and any(words(line) == said for line in (text, *text.splitlines()))


def by_hand_that_say(
    connection: Connection, user_id: str, values: frozenset[str], messages: frozenset[str], group: str
) -> list[MemorySection]:
    """The sections as they are now that a person wrote, in which a value or a message with a mark stands."""
    written = (one for one in in_use(connection, user_id, group) if one.is_pinned)
    return [
        one
        for one in written
        if tombstones.has_value(_said_in(one), values) or messages & _marks_of_lines(one)
    ]


def _said_in(section: MemorySection) -> str:
    return f"{section.text}\n{section.project}"


def _marks_of_lines(section: MemorySection) -> set[str]:
    lines = (section.text, section.body, *section.text.splitlines())
    return {mark for mark in map(tombstones.words_mark, lines) if mark}


def marked(
    connection: Connection, user_id: str, marks: frozenset[str], when: int, group: str
) -> list[MemorySection]:
    """The same for a value that only its mark is known of; not what was written after it was deleted."""
    made = (one for one in _read(connection, user_id, group, "state = 'kept'") if one.sources)
    return [
        one for one in made if to_us(one.updated_at) <= when and tombstones.has_value(_said_in(one), marks)
    ]


def withhold_source(tx: Connection, user_id: str, conversation_id: int, group: str) -> None:
    """Something in a conversation is forgotten: what is made of it waits until it is written anew."""
    withhold(tx, user_id, of_source(tx, user_id, conversation_id, group))


def lose_source(tx: Connection, user_id: str, conversation_id: int, group: str) -> None:
    """A conversation is gone: what is made of it alone goes too, and what is made of others besides waits."""
    found = of_source(tx, user_id, conversation_id, group)
    forget(tx, user_id, [one for one in found if one.sources == (conversation_id,)])
    withhold(tx, user_id, [one for one in found if one.sources != (conversation_id,)])
    tx.execute(
        "delete from section_sources where user_id = :user_id and group_name = :group"
        " and conversation_id = :conversation_id",
        user_id=user_id,
        group=group,
        conversation_id=conversation_id,
    )
