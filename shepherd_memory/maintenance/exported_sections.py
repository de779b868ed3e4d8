"""Consolidated memory as lines of an export: the state of each group with its versions, and its sections."""

from collections import Counter
from typing import Any

from shepherd_memory.consolidation.editing import check_editable
from shepherd_memory.consolidation.file_reading import checked_path
from shepherd_memory.errors import InvalidInput
from shepherd_memory.maintenance.line_columns import JSON, MOMENT, MOMENT_OR_NONE, NUMBER, TEXT
from shepherd_memory.memory import entries
from shepherd_memory.phases.sections import AGENT, KEPT, USER
from shepherd_memory.storage.clock import iso, parse_us
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.canonical import dump_canonical, load_json
from shepherd_memory.text.ids import storable_id

CONSOLIDATION = "consolidation"
CONSOLIDATION_COLUMNS = {
    "group_name": TEXT,
    "input_watermark": NUMBER,
    "success_watermark": NUMBER,
    "version": NUMBER,
    "outcome": TEXT,
    "model": TEXT,
    "dirty_since": MOMENT_OR_NONE,
    "consolidated_at": MOMENT_OR_NONE,
    "versions": JSON,
}
"""`versions` has a list for each change that is still known: number, time, who made it, note."""

_WATERMARKS = ("input_watermark", "success_watermark")

SECTION = "section"
SECTION_COLUMNS = {
    "group_name": TEXT,
    "file": TEXT,
    "heading": TEXT,
    "body": TEXT,
    "project": TEXT,
    "place": NUMBER,
    "written_by": TEXT,
    "version": NUMBER,
    "ended_version": NUMBER,
    "updated_at": MOMENT,
    "stated_at": MOMENT,
    "use_count": NUMBER,
    "last_used_at": MOMENT_OR_NONE,
    "sources": JSON,
}
"""`ended_version` is 0 while it is current; `sources` has a session and a time in it for each one."""

MAX_HEADING_CHARS = 200
MAX_BODY_CHARS = 16_000
"""Twice what may be written: what takes the place of a secret may be longer."""

Line = dict[str, Any]


def consolidation_rows(connection: Connection, user_id: str, group: str) -> list[Row]:
    """What is known of the consolidation of each group that a group sees."""
    among, seen = seen_from(group)
    columns = [name for name in CONSOLIDATION_COLUMNS if name not in ("group_name", *_WATERMARKS, "versions")]
    # Watermarks are ids of this database: all that they say elsewhere is whether the group is dirty.
    rows = connection.rows(
        "select group_name, case when input_watermark > success_watermark then 1 else 0 end, 0,"
        f" {', '.join(columns)} from consolidations where user_id = :user_id{among} order by group_name",
        user_id=user_id,
        **seen,
    )
    versions: dict[str, list[list[Any]]] = {}
    for name, version, made_at, *more in connection.rows(
        "select group_name, version, made_at, written_by, note from memory_versions"
        f" where user_id = :user_id{among} order by group_name, version",
        user_id=user_id,
        **seen,
    ):
        versions.setdefault(name, []).append([version, iso(made_at), *more])
    return [(*row, dump_canonical(versions.get(row[0], []))) for row in rows]


def section_rows(connection: Connection, user_id: str, group: str) -> list[Row]:
    """The sections that a group sees, past ones too, in the order in which they were written.

    What is withheld stays out, and so does what rests on a conversation that is no longer there.
    """
    among, seen = seen_from(group)
    of_document = "from documents d where d.user_id = s.user_id and d.id = s.id"
    rows = connection.rows(
        "select id, (select count(*) from section_sources c where c.user_id = s.user_id"
        " and c.section_id = s.id), group_name, file, heading, body, project, place, written_by, version,"
        f" coalesce(ended_version, 0), updated_at, coalesce((select created_at {of_document}), updated_at),"
        f" coalesce((select use_count {of_document}), 0), (select last_used_at {of_document})"
        f" from memory_sections s where user_id = :user_id and state = '{KEPT}'{among} order by id",
        user_id=user_id,
        **seen,
    )
    sources = _sources(connection, user_id)
    known = ((number, count, values, sources.get(number, [])) for number, count, *values in rows)
    return [(*values, dump_canonical(found)) for _, count, values, found in known if len(found) == count]


def _sources(connection: Connection, user_id: str) -> dict[int, list[list[str]]]:
    found: dict[int, list[list[str]]] = {}
    for section_id, session_id, moment in connection.rows(
        "select s.section_id, c.session_id, c.first_message_at from section_sources s join conversations c"
        " on c.user_id = s.user_id and c.group_name = s.group_name and c.id = s.conversation_id"
        " where s.user_id = :user_id order by s.section_id, s.conversation_id",
        user_id=user_id,
    ):
        found.setdefault(section_id, []).append([session_id, iso(moment) or ""])
    return found


def check_consolidation(values: Line) -> None:
    """Refuse the state of a group that none of ours could be, and bring its versions to our form."""
    raw = load_json(values["versions"])
    if not isinstance(raw, list):
        raise InvalidInput("versions takes a list")
    read = [_version(one, values["version"]) for one in raw]
    numbers = [number for number, *_ in read]
    if numbers != sorted(set(numbers)):
        raise InvalidInput("the versions of a group follow each other")
    values["versions"] = read


def _version(raw: Any, last: int) -> tuple[int, int, str, str]:
    match raw:
        case [int(number), str(made_at), "agent" | "user" as author, str(note)] if 1 <= number <= last:
            moment = parse_us(made_at)
            if moment is not None:
                return number, moment, author, note
    raise InvalidInput(f"a version has a number up to {last}, a time, agent or user, and a note: {raw!r:.80}")


def check_section(values: Line) -> None:
    """Refuse a section that none of ours could be, and bring its sources to our form."""
    check_editable(checked_path(values["file"]))
    if values["written_by"] not in (AGENT, USER):
        raise InvalidInput(f"written_by takes {AGENT} or {USER}")
    heading = values["heading"]
    if not 1 <= len(heading) <= MAX_HEADING_CHARS or "\n" in heading:
        raise InvalidInput(f"the heading of a section is a line of 1 to {MAX_HEADING_CHARS} characters")
    if not 1 <= len(values["body"]) <= MAX_BODY_CHARS:
        raise InvalidInput(f"the body of a section has 1 to {MAX_BODY_CHARS} characters")
    if values["version"] < 1 or 0 < values["ended_version"] <= values["version"]:
        raise InvalidInput("a section begins with a version, and ends with a later one")
    raw = load_json(values["sources"])
    if not isinstance(raw, list) or not (raw or values["written_by"] == USER):
        raise InvalidInput("sources takes a list; only what was written by hand has an empty one")
    values["sources"] = tuple(_source(one) for one in raw)


def _source(raw: Any) -> tuple[str, int]:
    match raw:
        case [str(session_id), str(said_at)]:
            moment = parse_us(said_at)
            if moment is not None:
                return storable_id(session_id), moment
    raise InvalidInput(f"a source is a session and a time in it, not {raw!r:.80}")


class FileVersions:
    """Of which version the files of each group were when they were exported, for the sections that follow."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._newest: dict[str, tuple[int, int]] = {}

    def read(self, name: str, values: Line) -> Line:
        """A line with what is to be known of its file, and a section with the words that it is found by."""
        if name == CONSOLIDATION:
            made_at = {number: moment for number, moment, *_ in values["versions"]}
            if values["version"] in made_at:
                self._newest[values["group_name"]] = values["version"], made_at[values["version"]]
        if name != SECTION:
            return {**values, "now": self._now}
        newest = self._newest.get(values["group_name"], (0, 0))
        return {**values, "newest": newest, "now": self._now, "terms": _terms(values)}


def _terms(values: Line) -> Counter[str]:
    is_found = not values["ended_version"]
    return entries.terms_of(f"{values['heading']}\n\n{values['body']}") if is_found else Counter()
