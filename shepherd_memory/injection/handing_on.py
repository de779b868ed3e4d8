"""What a new session is handed on: the session before it, and what is known, as far as is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shepherd_memory.config import Config
from shepherd_memory.injection.previous_session import ContextSection, PreviousSession, tell_session
from shepherd_memory.injection.session_reader import SessionReader, read_context, read_handed_in
from shepherd_memory.intake.handed_in import read_transcript
from shepherd_memory.memory import session_lives, session_openings, threads
from shepherd_memory.memory.session_lives import SessionLife
from shepherd_memory.storage import prompt_blocks
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.block_seal import RECORD_NOTE
from shepherd_memory.text.tokens import estimate_tokens

CONTEXT_SHARE = 4
"""Each category takes at most a quarter of the budget."""

WINDOW_SHARE = 4
"""All of it takes at most a quarter of the model's context window."""

RESUMED_WINDOW_SHARE = 2
"""A session that is resumed may take half of the window with what was said in it before."""

RESUMED_TIMES = 4
"""Where nobody says how large the window is, so many times what is handed on otherwise."""

MAX_RESUMED_TOKENS = 32_000

CONTEXTS = {
    "none": (),
    "identity": ("identity",),
    "knowledge": ("knowledge",),
    "both": ("identity", "knowledge"),
}


@dataclass(frozen=True)
class HandedOn:
    """What stands above the facts of a block: its text, the documents in it, and marks of what is none.

    `global_id` is that of the global memory, if the text begins with it; `notes` are those of
    conversations that it tells, by group, session and their id there.
    """

    text: str = ""
    document_ids: tuple[int, ...] = ()
    shortened_ids: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    global_id: int = 0
    notes: tuple[tuple[str, str, str], ...] = ()

    @property
    def whole_ids(self) -> frozenset[int]:
        """The documents of which nothing was left out."""
        return frozenset(self.document_ids).difference(self.shortened_ids)

    @property
    def tokens(self) -> int:
        return estimate_tokens(f"{self.text}\n") if self.text else 0


NOTHING = HandedOn()


@dataclass(frozen=True)
class HandingRules:
    """How much is handed on, what an agent is called who has no name, and which categories are asked for.

    `resumed_tokens`: how much of a session that is resumed is brought back; `global_tokens` and
    `summary_tokens`: how much of the global memory, and of the summary, which lists no conversation of fewer
    messages than `min_messages`. All together take at most `all_tokens`; None: nobody knows the window.
    """

    tokens: int
    agent_name: str = ""
    categories: tuple[str, ...] = ()
    resumed_tokens: int = 0
    global_tokens: int = 0
    all_tokens: int | None = None
    summary_tokens: int = 0
    min_messages: int = 1


def handing_rules(config: Config, context_window: int = 0, max_tokens: int | None = None) -> HandingRules:
    """What the configuration says, for a model with such a window; 0: nobody says how large it is."""
    wanted = config.session_rehydration_tokens if max_tokens is None else max_tokens
    most = context_window // WINDOW_SHARE if context_window else None
    tokens = wanted if most is None else min(wanted, most)
    resumed = wanted if max_tokens is not None else _resumed_tokens(wanted, context_window)
    categories = CONTEXTS[config.session_rehydration_context]
    shared = config.global_memory_tokens if most is None else min(config.global_memory_tokens, most)
    summary = config.memory_summary_tokens if config.memory_use else 0
    return HandingRules(
        tokens,
        config.agent_name,
        categories,
        resumed,
        shared,
        most,
        summary if most is None else min(summary, most),
        config.min_conversation_messages,
    )


def _resumed_tokens(wanted: int, context_window: int) -> int:
    room = context_window // RESUMED_WINDOW_SHARE if context_window else wanted * RESUMED_TIMES
    return min(room, MAX_RESUMED_TOKENS) if wanted else 0


def hand_on(
    connection: Connection,
    user_id: str,
    life: SessionLife,
    rules: HandingRules,
    summary: ContextSection | None = None,
) -> HandedOn:
    """What a session that was started is told of what was before it, in its group, below a summary."""
    group = life.group_name
    found = [
        read_context(connection, user_id, category, rules.tokens // CONTEXT_SHARE, group)
        for category in rules.categories
    ]
    sections = [section for section in found if section is not None]
    left = rules.tokens - sum(estimate_tokens(f"{section.text}\n") for section in sections)
    previous = tell_previous(connection, user_id, life, replace(rules, tokens=left))
    return joined([*([summary] if summary else []), *sections, *([previous] if previous else [])])


def is_handed_in(
    connection: Connection, user_id: str, session_id: str, marks: Sequence[str], group: str
) -> bool:
    """Whether all that has these marks is still in the transcript that a session was started with."""
    if not marks:
        return True
    transcript = read_transcript(session_openings.handed_in(connection, user_id, session_id, group))
    return set(marks) <= {prompt_blocks.text_mark(message.text, group) for message in transcript}


@dataclass(frozen=True)
class PreviousRequest:
    """Which session is asked for: one by its id, or the one before `current`, perhaps of a project."""

    session_id: str = ""
    current: str = ""
    cwd: str = ""


def find_previous(
    connection: Connection, user_id: str, asked: PreviousRequest, rules: HandingRules, group: str
) -> PreviousSession | None:
    """The session that is asked for; None if the group has none, or nothing was said in it."""
    life = session_lives.get(connection, user_id, asked.current, group) if asked.current else None
    if not asked.session_id and life is not None and life.status != session_lives.UNSTARTED:
        return tell_previous(connection, user_id, life, rules)
    session_id = asked.session_id or session_lives.newest_other(
        connection, user_id, asked.current, group, asked.cwd
    )
    return tell_named(connection, user_id, session_id, rules, group)


def tell_previous(
    connection: Connection, user_id: str, life: SessionLife, rules: HandingRules
) -> PreviousSession | None:
    """What was said in a session that is resumed, else the transcript handed in, else what it follows."""
    session_id, group = life.session_id, life.group_name
    through = session_openings.resumed_through(connection, user_id, session_id, group)
    if through is not None:
        room = replace(rules, tokens=rules.resumed_tokens)
        return tell_named(connection, user_id, session_id, room, group, through)
    stored = session_openings.handed_in(connection, user_id, session_id, group)
    if transcript := read_transcript(stored):
        names = {"human": user_id, "agent": life.agent_name or rules.agent_name}
        return tell_session(read_handed_in(transcript, names, group), rules.tokens)
    return tell_named(connection, user_id, life.previous_session, rules, group)


def tell_named(
    connection: Connection,
    user_id: str,
    session_id: str,
    rules: HandingRules,
    group: str,
    through: int | None = None,
) -> PreviousSession | None:
    """One session of a group; None if there is none, or nothing was said in it, or there is no room."""
    life = session_lives.get(connection, user_id, session_id, group) if session_id else None
    if life is None or rules.tokens <= 0:
        return None
    names = {"human": user_id, "agent": life.agent_name or rules.agent_name}
    # What an agent said here may have come in through a server, as a transcript, or in part as each.
    parts = threads.parts(connection, user_id, session_id, group)
    record = SessionReader(connection, user_id, group, names, through).session(session_id, parts)
    return None if record is None else tell_session(record, rules.tokens)


def joined(parts: Sequence[ContextSection | PreviousSession]) -> HandedOn:
    """These parts as one record."""
    if not parts:
        return NOTHING
    texts = [part.text.removeprefix(f"{RECORD_NOTE}\n") for part in parts]
    return HandedOn(
        "\n".join([RECORD_NOTE, *texts]),
        tuple(dict.fromkeys(number for part in parts for number in part.document_ids)),
        tuple(dict.fromkeys(number for part in parts for number in part.shortened_ids)),
        tuple(mark for part in parts if isinstance(part, PreviousSession) for mark in part.marks),
        notes=tuple(note for part in parts if isinstance(part, ContextSection) for note in part.notes),
    )
