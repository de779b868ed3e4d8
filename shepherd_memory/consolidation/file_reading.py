"""Listing, reading and searching memory files: texts by path, wherever they come from."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.tokens import UNITS, weigh

FILE, FOLDER = "file", "folder"
ANY, ON_SAME_LINE, WITHIN_LINES = "any", "all_on_same_line", "all_within_lines"
MATCH_MODES = (ANY, ON_SAME_LINE, WITHIN_LINES)

MAX_LISTED = 2000
MAX_FOUND = 200
MAX_TOKENS = 20_000
MAX_QUERIES = 32
MAX_QUERY_CHARS = 500
MAX_CONTEXT_LINES = 50
MAX_WINDOW_LINES = 100
MAX_PATH_CHARS = 512
MAX_MATCH_CHARS = 4000
_MAX_LINE = 2**31


@dataclass(frozen=True)
class FileEntry:
    """What stands directly in a folder: a file, or another folder."""

    path: str
    type: str


@dataclass(frozen=True)
class FileListing:
    """Entries of a folder by name; `next_cursor` is empty where no more follow."""

    path: str
    entries: tuple[FileEntry, ...] = ()
    next_cursor: str = ""


@dataclass(frozen=True)
class FileText:
    """Lines of a file from `start_line` on, the first being 1; `next_line` is 0 where no more follow."""

    path: str
    text: str
    start_line: int
    line_count: int
    next_line: int = 0


@dataclass(frozen=True)
class FileMatch:
    """Lines of a file that match, with those around them: `text` begins at `start_line`."""

    path: str
    line: int
    start_line: int
    text: str
    matched_queries: tuple[str, ...]


@dataclass(frozen=True)
class FileMatches:
    """Matches by path and line; `next_cursor` is empty where no more follow."""

    matches: tuple[FileMatch, ...] = ()
    next_cursor: str = ""


def checked_path(raw: object) -> str:
    """`raw` as a path relative to the memory files, or InvalidInput; empty is the folder of all of them."""
    if not isinstance(raw, str):
        raise InvalidInput(f"path takes text, not {type(raw).__name__}")
    if len(raw) > MAX_PATH_CHARS:
        raise InvalidInput(f"path is longer than {MAX_PATH_CHARS} characters")
    if canonical_text(raw) != raw or not raw.isprintable() or "\\" in raw:
        raise InvalidInput("path has a control character or a backslash in it: folders end with /")
    if raw.startswith("/"):
        raise InvalidInput(f"path {raw!r} is absolute: give it relative to the memory files")
    path = raw.removesuffix("/")
    if any(not part or part.startswith(".") for part in path.split("/")) and path:
        raise InvalidInput(f"path {raw!r} has an empty or hidden part, or leads upwards")
    return path


def list_files(
    files: Mapping[str, str], path: str = "", cursor: str = "", max_results: int = 200
) -> FileListing:
    """What stands directly in a folder, by name; a file's path lists that file."""
    place, after = checked_path(path), _checked_text("cursor", cursor)
    most = _checked_number("max_results", max_results, 1, MAX_LISTED)
    entries = sorted(_entries(files, place), key=lambda one: one.path)
    if not entries and place:
        raise _not_found(place)
    found = [one for one in entries if one.path > after]
    shown = tuple(found[:most])
    return FileListing(place, shown, shown[-1].path if len(found) > most else "")


def _entries(files: Mapping[str, str], place: str) -> set[FileEntry]:
    if place in files:
        return {FileEntry(place, FILE)}
    prefix = f"{place}/" if place else ""
    names = (name.removeprefix(prefix) for name in files if name.startswith(prefix))
    return {FileEntry(prefix + name.split("/")[0], FOLDER if "/" in name else FILE) for name in names}


def read_file(
    files: Mapping[str, str],
    path: str,
    line_offset: int = 1,
    max_lines: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> FileText:
    """Lines of a file from `line_offset` on: `max_lines` of them (0: all), as far as the tokens go.

    A line that is longer than that by itself is cut.
    """
    place = _file_path(files, path)
    begin = _checked_number("line_offset", line_offset, 1, _MAX_LINE)
    most = _checked_number("max_lines", max_lines, 0, _MAX_LINE) or _MAX_LINE
    room = _checked_number("max_tokens", max_tokens, 1, MAX_TOKENS) * UNITS
    lines = _lines(files[place])
    if begin > max(1, len(lines)):
        raise InvalidInput(f"{place} has {len(lines)} lines: line_offset {begin} is behind its end")
    shown = _that_fit(lines[begin - 1 : begin - 1 + most], room)
    end = begin + len(shown)
    return FileText(place, "".join(shown), begin, len(lines), end if end <= len(lines) else 0)


def _that_fit(lines: Sequence[str], room: int) -> list[str]:
    shown: list[str] = []
    for line in lines:
        room -= weigh(line)
        if room < 0:
            break
        shown.append(line)
    return shown or [_cut(line, room + weigh(line)) for line in lines[:1]]


def _cut(line: str, room: int) -> str:
    """As much of a line as surely fits: no character weighs more than two tokens."""
    return line[: max(1, room // (2 * UNITS))]


def _lines(text: str) -> list[str]:
    """The lines of a text with their ends; only a newline ends one, as in an editor."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    return lines if lines[-1] else lines[:-1]


def search_files(
    files: Mapping[str, str],
    queries: Sequence[str],
    match_mode: str = ANY,
    path: str = "",
    cursor: str = "",
    context_lines: int = 0,
    case_sensitive: bool = False,
    normalized: bool = False,
    max_results: int = MAX_FOUND,
    line_count: int = 5,
    max_tokens: int = MAX_TOKENS,
) -> FileMatches:
    """Lines of the files in a folder, or of one file, that hold any or all of the queries.

    `all_within_lines` finds the shortest runs of at most `line_count` lines that hold all. `normalized` looks
    at letters and digits alone, so that `dark-mode` finds "Dark mode".
    """
    search = _Search(
        _checked_queries(queries),
        _checked_mode(match_mode),
        _checked_number("context_lines", context_lines, 0, MAX_CONTEXT_LINES),
        _checked_flag("case_sensitive", case_sensitive),
        _checked_flag("normalized", normalized),
        _checked_number("line_count", line_count, 1, MAX_WINDOW_LINES),
    )
    most = _checked_number("max_results", max_results, 1, MAX_FOUND)
    searched, after = _searched(files, checked_path(path)), _checked_cursor(cursor)
    found = (
        match
        for name in searched
        if name >= after[0]
        for match in search.in_file(name, files[name])
        if (name, match.line) > after
    )
    room = _checked_number("max_tokens", max_tokens, 1, MAX_TOKENS) * UNITS
    return _page(list(islice(found, most + 1)), most, room)


def _page(found: Sequence[FileMatch], most: int, room: int) -> FileMatches:
    """The first matches, as many as an answer has room for; at least one."""
    shown = 0
    while shown < min(most, len(found)) and (not shown or room > 0):
        room -= weigh(found[shown].text)
        shown += 1
    more = len(found) > shown
    last = found[shown - 1] if more else None
    return FileMatches(tuple(found[:shown]), f"{last.line}:{last.path}" if last else "")


@dataclass(frozen=True)
class _Search:
    queries: tuple[str, ...]
    mode: str
    context_lines: int
    case_sensitive: bool
    normalized: bool
    line_count: int

    def in_file(self, path: str, text: str) -> Iterator[FileMatch]:
        lines = _lines(text)
        wanted = [self._plain(query) or query for query in self.queries]
        plain = [self._plain(line) for line in lines]
        hits = [frozenset(at for at, query in enumerate(wanted) if query in line) for line in plain]
        for begin, end in self._runs(hits):
            first = max(0, begin - self.context_lines)
            shown = "".join(lines[first : end + 1 + self.context_lines])
            matched = sorted(frozenset[int]().union(*hits[begin : end + 1]))
            names = tuple(self.queries[at] for at in matched)
            yield FileMatch(path, begin + 1, first + 1, shown[:MAX_MATCH_CHARS], names)

    def _plain(self, text: str) -> str:
        plain = text if self.case_sensitive else text.casefold()
        if self.normalized:
            plain = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", plain)))
        return plain

    def _runs(self, hits: Sequence[frozenset[int]]) -> Iterator[tuple[int, int]]:
        """The first and the last line of each match."""
        if self.mode == WITHIN_LINES:
            yield from self._windows(hits)
            return
        needed = len(self.queries) if self.mode == ON_SAME_LINE else 1
        yield from ((at, at) for at, hit in enumerate(hits) if len(hit) >= needed)

    def _windows(self, hits: Sequence[frozenset[int]]) -> Iterator[tuple[int, int]]:
        ends = {begin: self._end(hits, begin) for begin, hit in enumerate(hits) if hit}
        whole = [(begin, end) for begin, end in ends.items() if end is not None]
        # One in which a shorter one ends is not shortest.
        last_begins = {end: begin for begin, end in whole}
        yield from ((begin, end) for begin, end in whole if last_begins[end] == begin)

    def _end(self, hits: Sequence[frozenset[int]], begin: int) -> int | None:
        seen: frozenset[int] = frozenset()
        for at in range(begin, min(begin + self.line_count, len(hits))):
            seen |= hits[at]
            if len(seen) == len(self.queries):
                return at
        return None


def _searched(files: Mapping[str, str], place: str) -> list[str]:
    inside = [name for name in files if not place or name == place or name.startswith(f"{place}/")]
    if not inside and place:
        raise _not_found(place)
    return sorted(inside)


def _file_path(files: Mapping[str, str], raw: object) -> str:
    place = checked_path(raw)
    if place not in files:
        raise _not_found(place)
    return place


def _not_found(place: str) -> NotFound:
    return NotFound(f"there is no memory file {place!r}: list the files for their paths")


def _checked_text(name: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_PATH_CHARS + 20:
        raise InvalidInput(f"{name} takes what the last answer gave as next_cursor")
    return value


def _checked_cursor(raw: object) -> tuple[str, int]:
    """The path and the line of the last match that was seen."""
    line, colon, path = _checked_text("cursor", raw).partition(":")
    if raw and not (colon and line.isascii() and line.isdecimal() and len(line) < 12):
        raise InvalidInput("cursor takes what the last answer gave as next_cursor")
    return path, int(line or 0)


def _checked_number(name: str, value: object, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidInput(f"{name} takes a whole number from {least} to {most}")
    return value


def _checked_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} takes true or false")
    return value


def _checked_mode(value: object) -> str:
    if not isinstance(value, str) or value not in MATCH_MODES:
        raise InvalidInput(f"match_mode takes one of {', '.join(MATCH_MODES)}")
    return value


def _checked_queries(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not 1 <= len(value) <= MAX_QUERIES:
        raise InvalidInput(f"queries takes a list of 1 to {MAX_QUERIES} texts")
    for query in value:
        if not isinstance(query, str) or not query.strip() or len(query) > MAX_QUERY_CHARS:
            raise InvalidInput(f"queries takes texts of 1 to {MAX_QUERY_CHARS} characters, not blank ones")
    return tuple(dict.fromkeys(value))
