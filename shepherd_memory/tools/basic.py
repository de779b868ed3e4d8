"""The six tools that every model gets: search, store and clear."""

from dataclasses import replace
from typing import TYPE_CHECKING

from shepherd_memory.memory.facts import Fact, fact_key
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.tools.tool import (
    Arguments,
    Effect,
    Tool,
    ToolOutput,
    count,
    counted,
    name_shown,
    shortened,
    taking,
    text,
)

if TYPE_CHECKING:
    from shepherd_memory.maintenance.forgetting import ForgettingPlan, Forgotten
    from shepherd_memory.recall import Hit
    from shepherd_memory.service import Service

SOURCE = "tool"
DEFAULT_RESULTS, MAX_RESULTS = 5, 50


def search_memory(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    query = given.text("query")
    found = service.recall(
        user_id, query, given.count("max_results", DEFAULT_RESULTS, MAX_RESULTS), group=given.group
    )
    if not found.hits:
        return ToolOutput(f"No memories match {query!r}: {found.reason}.")
    service.note_reading(user_id, found.hits, group=given.group)
    heading = f"Found {counted(len(found.hits), 'memory', 'memories')}:"
    return ToolOutput("\n".join([heading, *(_shown(place, hit) for place, hit in enumerate(found.hits, 1))]))


def _shown(place: int, hit: "Hit") -> str:
    return (
        f"{place}. [relevance {hit.confidence:.2f}, {hit.created_at.date()}{labelled(hit.group)}] {said(hit)}"
    )


def labelled(group: str) -> str:
    """What is said of a group behind a comma: nothing of `main`."""
    return "" if group == MAIN_GROUP else f", group {group}"


def said(hit: "Hit") -> str:
    """What was found, on one line; a document with who said it."""
    speaker = name_shown(hit.speaker_name or hit.role)
    who = f"{speaker}: " if hit.kind == "document" and speaker else ""
    return who + shortened(f"Q: {hit.pair[0]} A: {hit.pair[1]}" if hit.pair else hit.text)


def store_memory(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    question = given.text("question", "key")
    service.add_context(user_id, question, given.text("answer", "value"), source=SOURCE, group=given.group)
    return ToolOutput(f"Stored: {question}")


def clear_memory(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    question = given.text("question", "key")
    plan = service.plan_forgetting(user_id, question=question, group=given.group)
    gone = service.forget(user_id, question=question, group=given.group)
    if not gone.total:
        return ToolOutput(f"Not found: there is no memory {question!r}.")
    return ToolOutput(f"Deleted: {question}{what_else(replace(gone, context=1), plan)}")


def set_fact(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    key, value = given.text("key"), given.text("value")
    fact = service.set_fact(user_id, key, value, source=SOURCE, group=given.group)
    return ToolOutput(f"Stored: {fact.key} = {fact.value}")


def get_fact(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    key = given.text("key")
    fact = service.get_fact(user_id, key, group=given.group) or spelled_alike(
        service, user_id, key, given.group
    )
    return ToolOutput(f"{fact.key} = {fact.value}") if fact else no_such_fact(key)


def spelled_alike(service: "Service", user_id: str, key: str, group: str) -> Fact | None:
    """The fact whose key differs from this one by underscores only."""
    wanted = fact_key(key).replace("_", "")
    known = service.facts(user_id, group=group)
    return next((fact for fact in known if fact.key.replace("_", "") == wanted), None)


def no_such_fact(key: str) -> ToolOutput:
    return ToolOutput(f"Not found: there is no fact {key!r}.")


def clear_fact(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    key = given.text("key")
    plan = service.plan_forgetting(user_id, fact=key, group=given.group)
    gone = service.forget(user_id, fact=key, group=given.group)
    return ToolOutput(f"Deleted: {key}{what_else(gone, plan)}") if gone.total else no_such_fact(key)


def what_else(gone: "Forgotten", plan: "ForgettingPlan") -> str:
    """What went with the one thing, and what says the same and is still there; empty if it was alone."""
    alone = f"\nWith all that hangs together: {counts(gone)}." if gone.total > 1 else ""
    names = ", ".join(f"{one.kind} {one.id}" for one in plan.same[:MAX_RESULTS])
    return alone + (f"\nSaying the same, and still there: {names}." if names else "")


def counts(gone: "Forgotten | ForgettingPlan") -> str:
    """How many of each kind."""
    parts = [
        counted(gone.facts, "fact", "facts"),
        counted(gone.context, "answer", "answers"),
        counted(gone.documents, "document", "documents"),
    ]
    return ", ".join(part for part in parts if not part.startswith("0 "))


BASIC_TOOLS = (
    Tool(
        "search_memory",
        "Search the memory",
        Effect.READS,
        "Search what is remembered about this user: facts, questions and answers, past conversations. "
        "Search before you say that you do not know something about the user, and before you ask them for it "
        "again. Ask with 2 to 5 keywords, not a sentence; if nothing is found, try other words.",
        taking(
            query=text("Keywords, such as: dog name; holiday plans 2025; favourite editor"),
            max_results=count("At most so many memories.", DEFAULT_RESULTS, MAX_RESULTS),
        ),
        search_memory,
    ),
    Tool(
        "store_memory",
        "Remember an answer",
        Effect.WRITES,
        "Remember something about this user as a question and its answer, for what needs a sentence. For a "
        "single value use set_fact.",
        taking(
            question=text("The short question that it answers, such as: Why did the user leave Berlin?"),
            answer=text("The answer, complete in itself, with names and dates."),
        ),
        store_memory,
    ),
    Tool(
        "clear_memory",
        "Forget an answer",
        Effect.DELETES,
        "Delete a remembered question with its answers, when the user asks to forget it.",
        taking(question=text("The question, exactly as it was stored.")),
        clear_memory,
    ),
    Tool(
        "set_fact",
        "Remember a fact",
        Effect.WRITES,
        "Remember a single value about this user; it replaces the value that the key had.",
        taking(
            key=text("A short name in snake_case, such as: home_city"),
            value=text("The value, such as: Lisbon"),
        ),
        set_fact,
    ),
    Tool(
        "get_fact",
        "Look up a fact",
        Effect.READS,
        "Look up one fact about this user by its key. If you do not know the key, use search_memory.",
        taking(key=text("The key, such as: home_city")),
        get_fact,
    ),
    Tool(
        "clear_fact",
        "Forget a fact",
        Effect.DELETES,
        "Delete a fact with its history, when the user asks to forget it.",
        taking(key=text("The key, such as: home_city")),
        clear_fact,
    ),
)
