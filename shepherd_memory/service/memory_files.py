"""The memory files of a user and group: read, searched, edited, and their history."""

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from shepherd_memory.consolidation import hand_changes
from shepherd_memory.consolidation.editing import MAX_SECTION_CHARS, check_editable, edited
from shepherd_memory.consolidation.file_reading import (
    FileListing,
    FileMatches,
    FileText,
    checked_path,
    list_files,
    read_file,
    search_files,
)
from shepherd_memory.consolidation.files import MemoryFiles, files_in_use, is_note, render_file, slug_of
from shepherd_memory.errors import DatabaseError, InvalidInput, NotFound, VersionChanged
from shepherd_memory.mirrors.memory_files import MemoryFileMirror, MirroredFiles, is_free_for
from shepherd_memory.phases import dirtiness, sections, usage
from shepherd_memory.phases.dirtiness import MemoryVersion
from shepherd_memory.phases.sections import NOTES_FOLDER, SUMMARY_FILE, USER, MemorySection, NewSection
from shepherd_memory.service.arguments import check_known_user, empty_for_unknown_user, is_known_user
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import ids_of_group
from shepherd_memory.text.canonical import as_text, canonical_text
from shepherd_memory.text.groups import MAIN_GROUP, checked_group
from shepherd_memory.text.redaction import redact

MAX_FILE_CHARS = 2_000_000
MAX_NOTE_CHARS = MAX_SECTION_CHARS
MAX_NUMBER = 2**31 - 1
NOTE_NAME_CHARS = 200


@dataclass(frozen=True)
class EditableFile:
    """A file as it is before it is edited: its text, empty for a new one, and the version of the files."""

    path: str
    text: str
    version: int


class MemoryFileService(ServiceParts):
    """Shows what was consolidated as files; each is of exactly one group."""

    @empty_for_unknown_user(lambda: FileListing(""))
    def memory_files(
        self,
        user_id: str,
        *,
        path: str = "",
        cursor: str = "",
        max_results: int = 200,
        group: str = MAIN_GROUP,
    ) -> FileListing:
        """What stands directly in a folder; `cursor` is the `next_cursor` of the answer before."""
        return list_files(self._memory_files(user_id, group), path, cursor, max_results)

    def memory_file(
        self,
        user_id: str,
        path: str,
        *,
        line_offset: int = 1,
        max_lines: int = 0,
        group: str = MAIN_GROUP,
    ) -> FileText:
        """Lines of a file, at most 20,000 tokens of them; NotFound if there is none."""
        files = self._memory_files(user_id, group) if is_known_user(user_id) else {}
        return read_file(files, path, line_offset, max_lines)

    @empty_for_unknown_user(FileMatches)
    def search_memory_files(
        self,
        user_id: str,
        queries: Sequence[str],
        *,
        match_mode: str = "any",
        path: str = "",
        cursor: str = "",
        context_lines: int = 0,
        case_sensitive: bool = False,
        normalized: bool = False,
        max_results: int = 200,
        line_count: int = 5,
        group: str = MAIN_GROUP,
    ) -> FileMatches:
        """The lines that hold any or all of the queries, by file."""
        files = self._memory_files(user_id, group)
        options = (context_lines, case_sensitive, normalized, max_results, line_count)
        return search_files(files, queries, match_mode, path, cursor, *options)

    @empty_for_unknown_user(dict)
    def memory_file_tree(self, user_id: str, *, group: str = MAIN_GROUP) -> dict[str, str]:
        """All files whole, by path."""
        return dict(self._memory_files(user_id, group))

    @empty_for_unknown_user(int)
    def memory_file_version(self, user_id: str, *, group: str = MAIN_GROUP) -> int:
        """The version of the group's files, 0 before the first; each change is one more."""
        place = checked_group(group)
        with self.database.read() as connection:
            return dirtiness.get(connection, user_id, place).version

    def note_file_reading(self, user_id: str, paths: Sequence[str], *, group: str = MAIN_GROUP) -> None:
        """Count the outputs among the files that a tool was given to read as used."""
        if not is_known_user(user_id):
            return
        outputs = self._memory_files(user_id, group).outputs
        read = [outputs[path].conversation_id for path in dict.fromkeys(paths) if path in outputs]
        if read:
            with suppress(DatabaseError), self.database.write() as tx:
                if users.lock_existing(tx, user_id) is not None:
                    rows = map(ids_of_group(tx, user_id, group).given_id, read)
                    usage.count_outputs(tx, user_id, list(rows), self._clock(), group)

    def add_memory_note(self, user_id: str, note: str, *, name: str = "", group: str = MAIN_GROUP) -> str:
        """Add a note as a file of its own, which the next consolidation reads and never changes; its path.

        One that is there already is not added again.
        """
        check_known_user(user_id)
        place, text = checked_group(group), redact(canonical_text(as_text(note))).strip()
        if not text or len(text) > MAX_NOTE_CHARS:
            raise InvalidInput(f"a note has 1 to {MAX_NOTE_CHARS} characters, not {len(text)}")
        now = self._clock()
        heading = " ".join(redact(as_text(name)).split())[:NOTE_NAME_CHARS] or "Note"
        with self.database.write() as tx:
            number = users.lock(tx, user_id, now)
            same = _same_note(tx, user_id, place, heading, text)
            if same:
                return same
            path = _note_path(tx, user_id, place, heading, now)
            version = dirtiness.next_version(tx, user_id, place, USER, f"added {path}", now)
            new = NewSection(path, heading, text, now, written_by=USER)
            sections.add(tx, user_id, place, number, new, version, now)
            dirtiness.mark(tx, user_id, place, now)
        self.memory_file_keeper.follow(user_id)
        return path

    def editable_memory_file(self, user_id: str, path: str, *, group: str = MAIN_GROUP) -> EditableFile:
        """A file as a person begins to edit it; InvalidInput for one that nobody edits."""
        check_known_user(user_id)
        place, file = checked_group(group), checked_path(path)
        check_editable(file)
        with self.database.read() as connection:
            found = sections.in_use(connection, user_id, place, file)
            _check_written(file, found)
            version = dirtiness.get(connection, user_id, place).version
        return EditableFile(file, render_file(file, found) if found else "", version)

    def edit_memory_file(
        self, user_id: str, path: str, text: str, *, version: int | None = None, group: str = MAIN_GROUP
    ) -> int:
        """Replace the text of a file; the version of the files afterwards.

        Sections that change are pinned: consolidation reads them and writes them no more. `version` is the
        one that the writer has seen: VersionChanged if there is another by now.
        """
        check_known_user(user_id)
        place, file, now = checked_group(group), checked_path(path), self._clock()
        check_editable(file)
        if not isinstance(text, str) or not text.strip() or len(text) > MAX_FILE_CHARS:
            raise InvalidInput(f"a memory file has 1 to {MAX_FILE_CHARS:,} characters: delete it to empty it")
        with self.database.write() as tx:
            first = users.lock(tx, user_id, now, rows=MAX_IDS)
            _check_version(tx, user_id, place, version)
            before = sections.in_use(tx, user_id, place, file)
            _check_written(file, before)
            written = edited(file, text, before)
            stored = hand_changes.store_edit(tx, user_id, place, file, written, first, now)
        self.memory_file_keeper.follow(user_id)
        return stored

    def delete_memory_file(self, user_id: str, path: str, *, group: str = MAIN_GROUP) -> None:
        """Delete a file of sections for good, with its history; NotFound if there is none."""
        check_known_user(user_id)
        place, file = checked_group(group), checked_path(path)
        check_editable(file)
        with self.database.write() as tx:
            is_known = users.lock_existing(tx, user_id) is not None
            if not (is_known and hand_changes.delete_file(tx, user_id, place, file, self._clock())):
                raise NotFound(f"there is no memory file {file!r} that anybody wrote")
        self.memory_file_keeper.follow(user_id)

    @empty_for_unknown_user(list)
    def memory_file_history(
        self, user_id: str, *, limit: int = 100, before: int = MAX_NUMBER, group: str = MAIN_GROUP
    ) -> list[MemoryVersion]:
        """The changes of the group's files, the newest first; only those before a version."""
        for name, value in (("limit", limit), ("before", before)):
            if not isinstance(value, int) or not 1 <= value <= MAX_NUMBER:
                raise InvalidInput(f"{name} takes a whole number from 1 to {MAX_NUMBER}")
        place = checked_group(group)
        with self.database.read() as connection:
            return dirtiness.versions(connection, user_id, place, limit, before)

    @empty_for_unknown_user(str)
    def memory_file_diff(self, user_id: str, old: int, new: int, *, group: str = MAIN_GROUP) -> str:
        """What changed from one version to another, as a unified diff; what was forgotten is in neither."""
        place = checked_group(group)
        with self.database.read() as connection:
            last = dirtiness.get(connection, user_id, place).version
            for number in (old, new):
                if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= last:
                    raise NotFound(
                        f"there is no version {number!r} of the memory files: there are 0 to {last}"
                    )
            before, after = (_files_at(connection, user_id, place, number) for number in (old, new))
        return "".join(_diff(path, before, after, old, new) for path in sorted({*before, *after}))

    def reset_memory_files(self, user_id: str, *, everything: bool = False, group: str = MAIN_GROUP) -> int:
        """Delete what consolidation wrote, with all history, and have it begin anew; how many sections went.

        What was written by hand stays, unless `everything` goes.
        """
        check_known_user(user_id)
        place = checked_group(group)
        with self.database.write() as tx:
            if users.lock_existing(tx, user_id) is None:
                return 0
            gone = hand_changes.reset(tx, user_id, place, everything, self._clock())
        self.memory_file_keeper.follow(user_id)
        return gone

    def export_memory_files(self, user_id: str, folder: Path, *, group: str = MAIN_GROUP) -> MirroredFiles:
        """Write the files of one group into a folder, which is empty or has an earlier export of them."""
        check_known_user(user_id)
        place, root = checked_group(group), folder.resolve()
        with _writing(folder):
            if not is_free_for(root, user_id, place):
                raise InvalidInput(
                    f"{folder} is not empty, and holds no earlier export of these files: name another folder"
                )
            return self._mirror(user_id, root).agree_alone(place)

    def mirror_memory_files(self, user_id: str, folder: Path, *, group: str = MAIN_GROUP) -> MirroredFiles:
        """Bring a folder in step with the files of each group that this one sees, each in its own below it.

        Files that were not written there by this, or were changed since, are named and left alone.
        """
        check_known_user(user_id)
        place, root = checked_group(group), folder.resolve()
        with _writing(folder):
            return self._mirror(user_id, root).agree(root, place)

    def _mirror(self, user_id: str, root: Path) -> MemoryFileMirror:
        return MemoryFileMirror(self.database, user_id, root, self.config.min_conversation_messages)

    def _memory_files(self, user_id: str, group: str) -> MemoryFiles:
        place = checked_group(group)
        with self.database.read() as connection:
            return files_in_use(connection, user_id, place, self.config.min_conversation_messages)


MAX_IDS = 256
"""More than a file has sections: ids are reserved before the text is compared."""


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"cannot write to {folder}: {error.strerror or error}") from error


def _check_written(file: str, found: Sequence[MemorySection]) -> None:
    if file == SUMMARY_FILE and not found:
        raise InvalidInput(
            f"{SUMMARY_FILE} is made of the facts until consolidation writes one: change the facts"
        )


def _note_path(connection: Connection, user_id: str, group: str, heading: str, now: int) -> str:
    moment = datetime.fromtimestamp(now / 1_000_000, UTC)
    stem = f"{NOTES_FOLDER}/{moment:%Y-%m-%dT%H-%M-%S}-{slug_of(heading) or 'note'}"
    taken = {one.file for one in sections.every(connection, user_id, group)}
    names = (f"{stem}{f'-{count}' if count else ''}.md" for count in range(len(taken) + 1))
    return next(name for name in names if name not in taken)


def _same_note(connection: Connection, user_id: str, group: str, heading: str, text: str) -> str:
    notes = (one for one in sections.in_use(connection, user_id, group) if is_note(one.file))
    return next((one.file for one in notes if (one.heading, one.body) == (heading, text)), "")


def _check_version(connection: Connection, user_id: str, group: str, seen: int | None) -> None:
    current = dirtiness.get(connection, user_id, group).version
    if seen is not None and seen != current:
        raise VersionChanged(
            f"the memory files were changed meanwhile: they are of version {current}, not {seen!r};"
            " look at them, and change those"
        )


def _files_at(connection: Connection, user_id: str, group: str, version: int) -> dict[str, str]:
    found = sections.at_version(connection, user_id, group, version)
    paths = dict.fromkeys(one.file for one in found)
    return {path: render_file(path, [one for one in found if one.file == path]) for path in paths}


def _diff(path: str, before: dict[str, str], after: dict[str, str], old: int, new: int) -> str:
    texts = (before.get(path, "").splitlines(keepends=True), after.get(path, "").splitlines(keepends=True))
    return "".join(difflib.unified_diff(*texts, f"{path} (version {old})", f"{path} (version {new})"))
