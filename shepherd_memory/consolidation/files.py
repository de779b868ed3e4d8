"""Memory files: rendered from sections and from outputs whenever somebody looks, and never stored."""

import re
import string
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from shepherd_memory.phases import sections
from shepherd_memory.phases.outputs import COLUMNS, Output
from shepherd_memory.phases.sections import MEMORY_FILE, NOTES_FOLDER, SUMMARY_FILE, MemorySection
from shepherd_memory.phases.summary import VERSION, render
from shepherd_memory.phases.summary_rows import SummaryScope, read_conversations, read_profile
from shepherd_memory.storage.clock import iso, to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import ids_of_group
from shepherd_memory.storage.rows import build
from shepherd_memory.work.kinds import SUMMARY

RAW_FILE = "raw_memories.md"
OUTPUTS_FOLDER = "rollout_summaries"
MEMORY_TITLE = "# Memory"
RAW_TITLE = "# Raw memories"
APPLIES_TO = "applies_to: cwd="
"""How a section begins that is of one project."""

MAX_SLUG_CHARS = 60
MAX_SLUG_BYTES = 180
"""With the rest of the name below the 255 bytes that file systems have for one."""

_BASE_62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ID_DIGITS = 4
_HEADING = re.compile(r"^#{1,2}(?=\s)", re.MULTILINE)

OutputIn = tuple[Output, str]
"""An output, and the folder that its conversation was held in."""


def slug_of(text: str) -> str:
    """`text` as part of a file's name: lower case, what is no letter or digit as `_`; it may be empty."""
    plain = unicodedata.normalize("NFKC", text).lower()
    slug = "".join(sign if sign.isalnum() else "_" for sign in plain[:MAX_SLUG_CHARS])
    return slug.encode("utf-8", "ignore")[:MAX_SLUG_BYTES].decode("utf-8", "ignore").strip("_")


def stem_of(output: Output) -> str:
    """The name of an output's file without its ending: when the conversation ended, which, and about what."""
    moment = f"{output.source_updated_at:%Y-%m-%dT%H-%M-%S}"
    slug = slug_of(output.slug)
    return f"{moment}-{_base_62(output.conversation_id)}" + (f"-{slug}" if slug else "")


def _base_62(number: int) -> str:
    digits = ""
    while number > 0:
        number, digit = divmod(number, len(_BASE_62))
        digits = _BASE_62[digit] + digits
    return digits.rjust(_ID_DIGITS, _BASE_62[0])


def path_of(output: Output) -> str:
    """Where the file of an output stands."""
    return f"{OUTPUTS_FOLDER}/{stem_of(output)}.md"


def render_section(section: MemorySection) -> str:
    """A section under its heading; headings within it are lower ones, so that it stays one section."""
    project = f"{APPLIES_TO}{section.project}\n\n" if section.project else ""
    return f"## {section.heading}\n\n{project}{nested(section.body)}"


def nested(body: str) -> str:
    """A body that begins no section of its own."""
    return _HEADING.sub("###", body.strip())


def render_memory(found: Sequence[MemorySection]) -> str:
    """`MEMORY.md`; empty without sections."""
    return _joined(MEMORY_TITLE, map(render_section, found)) if found else ""


def render_summary(found: Sequence[MemorySection]) -> str:
    """`memory_summary.md`, whose first line says its version; empty without sections."""
    return _joined(VERSION, map(render_section, found)) if found else ""


def render_skill(section: MemorySection) -> str:
    """A file of one section, a skill or a note: its heading, unless it begins with fields of its own."""
    body = section.body.strip()
    return f"{body}\n" if body.startswith("---\n") else f"# {section.heading}\n\n{body}\n"


def render_output(output: Output, cwd: str) -> str:
    """What was made of one conversation, with what is known of it."""
    return f"{_about(output, cwd)}\n{output.summary.strip()}\n"


def render_raw(outputs: Sequence[OutputIn]) -> str:
    """`raw_memories.md`: what was made of all conversations, the latest first; empty without any."""
    latest = sorted(outputs, key=lambda one: _age(one[0]), reverse=True)
    return _joined(RAW_TITLE, (_raw(*one) for one in latest)) if latest else ""


def _age(output: Output) -> tuple[int, int]:
    return to_us(output.source_updated_at), output.conversation_id


def _raw(output: Output, cwd: str) -> str:
    about = f"## Conversation {output.conversation_id}\n\n{_about(output, cwd)}file: {path_of(output)}\n"
    return f"{about}\n{nested(output.raw_memory)}"


def _about(output: Output, cwd: str) -> str:
    known = {
        "conversation": str(output.conversation_id),
        "session": output.session_id,
        "updated_at": iso(to_us(output.source_updated_at)),
        "cwd": cwd,
        "task_outcome": output.task_outcome,
    }
    return "".join(f"{name}: {' '.join(value.split())}\n" for name, value in known.items() if value)


def _joined(first: str, parts: Iterator[str]) -> str:
    return "\n\n".join([first, *(part.strip() for part in parts)]) + "\n"


class MemoryFiles(Mapping[str, str]):
    """The files of one user and group by path, each rendered when it is looked at."""

    def __init__(self, texts: Mapping[str, Callable[[], str]], outputs: Mapping[str, Output]) -> None:
        self._texts = texts
        self.outputs = outputs
        """By the paths of their files, under the ids that the group is shown."""

    def __getitem__(self, path: str) -> str:
        return self._texts[path]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def files_of(
    found: Sequence[MemorySection],
    outputs: Sequence[OutputIn],
    rule_summary: Callable[[], str] | None = None,
) -> MemoryFiles:
    """The files of sections and of outputs; `rule_summary` stands in for a summary that nobody wrote."""
    texts: dict[str, Callable[[], str]] = {}
    for file in dict.fromkeys(one.file for one in found):
        texts[file] = partial(render_file, file, [one for one in found if one.file == file])
    if SUMMARY_FILE not in texts and rule_summary is not None:
        texts[SUMMARY_FILE] = rule_summary
    if outputs:
        texts[RAW_FILE] = partial(render_raw, outputs)
    for output, cwd in outputs:
        texts[path_of(output)] = partial(render_output, output, cwd)
    return MemoryFiles(texts, {path_of(output): output for output, _ in outputs})


def render_file(path: str, found: Sequence[MemorySection]) -> str:
    """A file of sections, by its path."""
    if path == MEMORY_FILE:
        return render_memory(found)
    if path == SUMMARY_FILE:
        return render_summary(found)
    return "\n".join(map(render_skill, found))


def read_files(
    connection: Connection, user_id: str, group: str, rule_summary: Callable[[], str] | None = None
) -> MemoryFiles:
    """The files of exactly this group: what is in use."""
    found = sections.in_use(connection, user_id, group)
    ids = ids_of_group(connection, user_id, group)
    outputs = [(ids.shown(output), cwd) for output, cwd in _outputs(connection, user_id, group)]
    return files_of(found, outputs, rule_summary)


def files_in_use(connection: Connection, user_id: str, group: str, min_messages: int) -> MemoryFiles:
    """The same; until a summary is written, one made by a rule, of conversations of so many messages."""
    summary = _rule_summary(connection, user_id, group, min_messages)
    return read_files(connection, user_id, group, partial(str, summary) if summary else None)


def _rule_summary(connection: Connection, user_id: str, group: str, min_messages: int) -> str:
    if sections.in_use(connection, user_id, group, SUMMARY_FILE):
        return ""
    scope = SummaryScope(group, "", "", min_messages)
    profile = read_profile(connection, user_id, scope)
    return render([*profile, *read_conversations(connection, user_id, scope)])


def groups_with_files(connection: Connection, user_id: str) -> list[str]:
    """The groups of which there may be files, by name."""
    tables = ("memory_sections", "conversation_outputs", "facts", "conversations")
    query = " union ".join(f"select group_name from {table} where user_id = :user_id" for table in tables)
    return sorted(str(name) for (name,) in connection.rows(query, user_id=user_id))


def _outputs(connection: Connection, user_id: str, group: str) -> list[OutputIn]:
    columns = ", ".join(f"o.{name}" for name in COLUMNS.split(", "))
    rows = connection.rows(
        f"select {columns}, coalesce(c.cwd, '') from conversation_outputs o left join conversations c"
        " on c.user_id = o.user_id and c.group_name = o.group_name and c.id = o.conversation_id"
        " where o.user_id = :user_id and o.group_name = :group and o.state = 'kept'"
        f" and o.outcome = 'succeeded' and o.strategy = '{SUMMARY}'"
        " order by o.source_updated_at desc, o.conversation_id desc",
        user_id=user_id,
        group=group,
    )
    return [(build(Output, row[:-1]), row[-1]) for row in rows]


def is_note(path: str) -> bool:
    """Whether a file is a note that somebody added."""
    return path.startswith(f"{NOTES_FOLDER}/")
