"""What the first message of a conversation is told: the global memory, a summary, the session before."""

from dataclasses import dataclass, replace

from shepherd_memory.injection.global_text import tell_global
from shepherd_memory.injection.handing_on import NOTHING, HandedOn, HandingRules, hand_on, joined
from shepherd_memory.injection.previous_session import ContextSection
from shepherd_memory.injection.summary_text import tell_summary
from shepherd_memory.memory import global_memory
from shepherd_memory.memory.session_lives import SessionLife
from shepherd_memory.phases.summary_rows import SummaryScope, folder_of, read_summary
from shepherd_memory.storage.database import Connection


@dataclass(frozen=True)
class Beginning:
    """Where a conversation begins: in a group, perhaps in a session, which has a `life` if it was started.

    `is_stored`: the session is known, so that it may have a folder.
    """

    group: str
    session_id: str = ""
    life: SessionLife | None = None
    is_stored: bool = False


def begin(connection: Connection, user_id: str, place: Beginning, rules: HandingRules) -> HandedOn:
    """Each part has a budget of its own; all of them together have that of the model's window."""
    shared = _global(connection, user_id, rules)
    rules = _less(rules, shared.tokens)
    summary = _summary(connection, user_id, place, rules)
    told = joined([summary]) if summary else NOTHING
    rules = _less(rules, told.tokens)
    if place.life is not None and rules.tokens > 0:
        told = hand_on(connection, user_id, place.life, rules, summary)
    text = "\n".join(filter(None, (shared.text, told.text)))
    return replace(told, text=text, global_id=shared.global_id)


def _less(rules: HandingRules, taken: int) -> HandingRules:
    """What is left of the window once so many tokens are taken."""
    if rules.all_tokens is None or not taken:
        return rules
    left = max(0, rules.all_tokens - taken)
    tokens, summary = min(rules.tokens, left), min(rules.summary_tokens, left)
    return replace(rules, all_tokens=left, tokens=tokens, summary_tokens=summary)


def _global(connection: Connection, user_id: str, rules: HandingRules) -> HandedOn:
    """The global memory, which all groups begin with."""
    found = global_memory.get(connection, user_id) if rules.global_tokens else None
    text = tell_global(found.text, found.updated_at, rules.global_tokens) if found else ""
    return HandedOn(text, global_id=found.id) if found and text else NOTHING


def _summary(
    connection: Connection, user_id: str, place: Beginning, rules: HandingRules
) -> ContextSection | None:
    """What was talked about last. The facts stand in the same block, below: they are not said twice."""
    if not rules.summary_tokens:
        return None
    session_id, group = place.session_id, place.group
    cwd = folder_of(connection, user_id, session_id, group) if place.is_stored else ""
    scope = SummaryScope(group, cwd, session_id, rules.min_messages)
    return tell_summary(read_summary(connection, user_id, scope), rules.summary_tokens)
