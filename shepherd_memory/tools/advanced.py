"""Further tools, for agents that look into a memory and keep it in order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from shepherd_memory.maintenance.forgetting import Forgotten
from shepherd_memory.memory.entries import CONTEXT, DOCUMENT, FACT
from shepherd_memory.memory.facts import Fact, PastFact
from shepherd_memory.storage.clock import iso, to_us
from shepherd_memory.tools.basic import (
    DEFAULT_RESULTS,
    MAX_RESULTS,
    counts,
    labelled,
    no_such_fact,
    said,
    spelled_alike,
    what_else,
)
from shepherd_memory.tools.tool import (
    Arguments,
    Effect,
    Tool,
    ToolOutput,
    count,
    counted,
    flag,
    holding,
    many,
    shortened,
    taking,
    text,
)

if TYPE_CHECKING:
    from shepherd_memory.maintenance.forgetting import ForgettingPlan
    from shepherd_memory.maintenance.related import RelatedMemory
    from shepherd_memory.recall import Hit
    from shepherd_memory.service import Service

SESSION = "session"
KINDS = (FACT, CONTEXT, DOCUMENT, SESSION)
DEFAULT_FACTS, MAX_FACTS = 50, 500
MAX_VALUE_CHARS = 200
"""Characters of a fact in a list, where it stands beside many."""

MOMENT = text("ISO 8601, UTC")
NUMBER = {"type": "number"}


def recall(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    query = given.text("query")
    most = given.count("max_results", DEFAULT_RESULTS, MAX_RESULTS)
    found = service.recall(
        user_id, query, most, given.share("min_confidence"), explain=True, group=given.group
    )
    names = _fact_keys(service, user_id, found.hits, given.group)
    hits = [_hit(hit, names.get(hit.id, "") if hit.kind == FACT else "") for hit in found.hits]
    data = {"abstained": found.abstained, "reason": found.reason, "hits": hits}
    if not hits:
        return ToolOutput(f"Nothing recalled for {query!r}: {found.reason}.", data)
    service.note_reading(user_id, found.hits, group=given.group)
    heading = f"Found {counted(len(hits), 'memory', 'memories')}, best first:"
    return ToolOutput(
        "\n".join([heading, *(_explained(place, hit) for place, hit in enumerate(hits, 1))]), data
    )


def _fact_keys(service: "Service", user_id: str, hits: Sequence["Hit"], group: str) -> Mapping[int, str]:
    """By row id: a fact is known to everybody else by its key."""
    if not any(hit.kind == FACT for hit in hits):
        return {}
    return {fact.id: fact.key for fact in service.facts(user_id, group=group)}


def _hit(hit: "Hit", key: str) -> dict[str, Any]:
    return {
        "kind": hit.kind,
        "id": key or str(hit.id),
        "text": said(hit),
        "date": _moment(hit.created_at),
        "session": hit.session_id,
        "group": hit.group,
        "confidence": round(hit.confidence, 3),
        "score": round(hit.score, 3),
        "parts": {name: round(part, 3) for name, part in (hit.parts or {}).items() if round(part, 3)},
    }


def _explained(place: int, hit: Mapping[str, Any]) -> str:
    parts = " + ".join(f"{name} {part:g}" for name, part in hit["parts"].items())
    session = f", session {hit['session']}" if hit["session"] else ""
    about = f"{hit['kind']} {hit['id']}, {hit['date'][:10]}, confidence {hit['confidence']:.2f}{session}"
    about += labelled(hit["group"])
    return f"{place}. [{about}] {hit['text']}\n   score {hit['score']:g} = {parts or '0'}"


def list_facts(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    wanted = given.text_or_nothing("contains").casefold()
    most = given.count("max_results", DEFAULT_FACTS, MAX_FACTS)
    known = service.facts(user_id, group=given.group)
    found = [fact for fact in known if wanted in f"{fact.key} {fact.value}".casefold()]
    shown = [_fact(fact) for fact in found[:most]]
    data = {"facts": shown, "total": len(found)}
    if not shown:
        return ToolOutput("There are no such facts." if wanted else "There are no facts yet.", data)
    more = f", the first {most}" if len(found) > most else ""
    lines = (
        f"{fact['key']} = {fact['value']} (since {fact['stated_at'][:10]}{labelled(fact['group'])})"
        for fact in shown
    )
    return ToolOutput("\n".join([f"{counted(len(found), 'fact', 'facts')}{more}:", *lines]), data)


def _fact(fact: Fact) -> dict[str, str]:
    value = shortened(fact.value, MAX_VALUE_CHARS)
    return {"key": fact.key, "value": value, "stated_at": _moment(fact.stated_at), "group": fact.group_name}


def fact_history(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    key = given.text("key")
    past = service.fact_history(user_id, key, group=given.group)
    if not past and (fact := spelled_alike(service, user_id, key, given.group)):
        past = service.fact_history(user_id, fact.key, group=given.group)
    if not past:
        return no_such_fact(key)
    return ToolOutput("\n".join([f"{past[0].key}, oldest first:", *map(_past, past)]))


def _past(fact: PastFact) -> str:
    begun, value = fact.stated_at.date(), shortened(fact.value)
    return f"{begun} to {fact.ended_at.date()}: {value}" if fact.ended_at else f"since {begun}: {value}"


def forget(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    kind = given.choice("kind", KINDS)
    which: Any = given.row_id("id") if kind in (CONTEXT, DOCUMENT) else given.text("id")
    only, same = given.flag("only"), given.flag("same")
    plan = service.plan_forgetting(user_id, only=only, group=given.group, **{kind: which})
    if given.flag("preview") and plan.total:
        return _preview(plan)
    gone = service.forget(user_id, only=only, same=same, group=given.group, **{kind: which})
    if not gone.total:
        return ToolOutput(f"Not found: there is no {kind} {str(which)!r}.")
    left = replace(plan, same=[]) if same else plan
    if kind == SESSION:
        return ToolOutput(f"Deleted {counts(gone)}.{what_else(Forgotten(), left)}")
    return ToolOutput(f"Deleted {kind} {which}.{what_else(gone, left)}")


def _preview(plan: "ForgettingPlan") -> ToolOutput:
    """What would go, for the user to be asked about."""
    lines = [f"Nothing is deleted yet. This would go ({counts(plan)}):", *map(_related, plan.goes)]
    if plan.same:
        lines += ["This says the same, and goes only with `same`:", *map(_related, plan.same)]
    return ToolOutput("\n".join(lines))


def _related(memory: "RelatedMemory") -> str:
    return f"- {memory.kind} {memory.id}, {memory.said_at.date()}: {shortened(memory.text, MAX_VALUE_CHARS)}"


def _moment(moment: datetime) -> str:
    return iso(to_us(moment)) or ""


ADVANCED_TOOLS = (
    Tool(
        "recall",
        "Recall with explanation",
        Effect.READS,
        "Search like search_memory, and say of each memory its kind, id, date and session, how certain it is "
        "and what its score is made of. Use it to explain why something was recalled, or to find the id of "
        "what to forget. Ask with 2 to 5 keywords.",
        taking(
            optional=["min_confidence"],
            query=text("Keywords, such as: dog name"),
            max_results=count("At most so many memories.", DEFAULT_RESULTS, MAX_RESULTS),
            min_confidence={
                "type": "number",
                "description": "Only memories at least so certain; 0 shows whatever comes nearest.",
                "minimum": 0,
                "maximum": 1,
            },
        ),
        recall,
        holding(
            abstained={"type": "boolean"},
            reason=text("Why nothing was recalled"),
            hits=many(
                holding(
                    kind=text(enum=[FACT, CONTEXT, DOCUMENT]),
                    id=text("The key of a fact, the number of anything else"),
                    text=text(),
                    date=MOMENT,
                    session=text("Empty if it was said in none"),
                    group=text("The group of the memory that it is in"),
                    confidence=NUMBER,
                    score=NUMBER,
                    parts={"type": "object", "additionalProperties": NUMBER},
                )
            ),
        ),
    ),
    Tool(
        "list_facts",
        "List the facts",
        Effect.READS,
        "List the facts known about this user, by key. Use it for an overview; for one thing use get_fact or "
        "search_memory.",
        taking(
            contains=text("Only facts with this text in key or value; empty: all.", default=""),
            max_results=count("At most so many facts.", DEFAULT_FACTS, MAX_FACTS),
        ),
        list_facts,
        holding(
            facts=many(holding(key=text(), value=text(), stated_at=MOMENT, group=text())),
            total={"type": "integer", "description": "How many there are; not all may be shown"},
        ),
    ),
    Tool(
        "fact_history",
        "Look up earlier values",
        Effect.READS,
        "Show the values that a fact had over time, oldest first: where the user lived before, for example.",
        taking(key=text("The key, such as: home_city")),
        fact_history,
    ),
    Tool(
        "forget",
        "Forget one thing",
        Effect.DELETES,
        "Delete one memory for good, when the user asks to forget it: a fact with its history, a question "
        "with its answer, a document, or a session. What hangs together goes together: the statements that "
        "it rests on, and all that was learnt from them; preview shows that. recall shows kinds and ids.",
        taking(
            optional=["only", "same", "preview"],
            kind=text("What it is.", enum=list(KINDS)),
            id=text("The key of a fact, the number of a context or document, the name of a session."),
            only=flag("Delete this alone, and leave what it rests on."),
            same=flag("Also delete what says the same elsewhere."),
            preview=flag("Delete nothing yet: say what would go, and what says the same."),
        ),
        forget,
    ),
)
