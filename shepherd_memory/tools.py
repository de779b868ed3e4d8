"""The memory as tools of a model: their definitions, and what they answer."""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from shepherd_memory import forgetting
from shepherd_memory.canonical import as_text
from shepherd_memory.clock import now_us
from shepherd_memory.errors import InvalidInput, ShepherdError
from shepherd_memory.facts import Fact, fact_key
from shepherd_memory.identity import is_known
from shepherd_memory.ids import checked_user_id
from shepherd_memory.service import UNKNOWN_USER

if TYPE_CHECKING:
    from shepherd_memory.recall import Hit
    from shepherd_memory.service import Service

ERROR: Final = "Error:"
SOURCE = "tool"
DEFAULT_RESULTS, MOST_RESULTS = 5, 50
LONGEST_SHOWN = 1000
"""Characters of one memory in an answer: it goes into a prompt."""

logger = logging.getLogger(__name__)


def _tool(name: str, description: str, **parameters: dict[str, Any]) -> dict[str, Any]:
    """A definition in the form of OpenAI's function calling; a parameter with a default may be left out."""
    needed = [parameter for parameter, schema in parameters.items() if "default" not in schema]
    schema = {"type": "object", "properties": parameters, "required": needed}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


TOOLS: list[dict[str, Any]] = [
    _tool(
        "search_memory",
        "Search what is remembered about this user: facts, questions and answers, past conversations. "
        "Search before you say that you do not know something about the user, and before you ask them for it "
        "again. Ask with 2 to 5 keywords, not a sentence; if nothing is found, try other words.",
        query=_text("Keywords, such as: dog name; holiday plans 2025; favourite editor"),
        max_results={
            "type": "integer",
            "description": "At most so many memories.",
            "minimum": 1,
            "maximum": MOST_RESULTS,
            "default": DEFAULT_RESULTS,
        },
    ),
    _tool(
        "store_memory",
        "Remember something about this user as a question and its answer, for what needs a sentence. For a "
        "single value use set_fact.",
        question=_text("The short question that it answers, such as: Why did the user leave Berlin?"),
        answer=_text("The answer, complete in itself, with names and dates."),
    ),
    _tool(
        "clear_memory",
        "Delete a remembered question with its answers, when the user asks to forget it.",
        question=_text("The question, exactly as it was stored."),
    ),
    _tool(
        "set_fact",
        "Remember a single value about this user; it replaces the value that the key had.",
        key=_text("A short name in snake_case, such as: home_city"),
        value=_text("The value, such as: Lisbon"),
    ),
    _tool(
        "get_fact",
        "Look up one fact about this user by its key. If you do not know the key, use search_memory.",
        key=_text("The key, such as: home_city"),
    ),
    _tool(
        "clear_fact",
        "Delete a fact with its history, when the user asks to forget it.",
        key=_text("The key, such as: home_city"),
    ),
]
"""For the `tools` of a chat request."""


def execute(service: "Service", user_id: str, name: str, arguments: object) -> str:
    """What a tool answers, for the model: an error begins with `Error:`, and none is raised.

    `arguments` are an object or its JSON text. Whose memory it is only the caller says: a `_user_id` among
    the arguments counts for nothing.
    """
    try:
        if not is_known(checked_user_id(user_id)):
            raise InvalidInput(UNKNOWN_USER)
        call = _CALLS.get(name)
        if call is None:
            raise InvalidInput(f"there is no tool {as_text(name)[:80]!r}; there are {', '.join(_CALLS)}")
        return call(service, user_id, Arguments(arguments))
    except InvalidInput as error:
        return f"{ERROR} {error}"
    except ShepherdError as error:
        logger.warning("a tool failed: %s", error)
        return f"{ERROR} the memory cannot be used now; go on without it"


class Arguments:
    """What a model passes to a tool, which may be anything."""

    def __init__(self, raw: object) -> None:
        self._values = _object(raw)

    def text(self, *names: str) -> str:
        """The argument of this name or alias; numbers and truth values count as their text."""
        given = next((self._values[name] for name in names if self._values.get(name) is not None), None)
        if isinstance(given, bool):
            given = str(given).lower()
        if not isinstance(given, str | int | float):
            raise InvalidInput(f"{names[0]} takes text")
        if not (text := as_text(given).strip()):
            raise InvalidInput(f"{names[0]} is empty")
        return text

    def count(self, name: str, default: int, most: int) -> int:
        """A number, brought between 1 and `most`."""
        given = self._values.get(name, default)
        if isinstance(given, bool) or not isinstance(given, int | float) or given != given:
            raise InvalidInput(f"{name} takes a whole number from 1 to {most}")
        return int(max(1, min(given, most)))


def _object(raw: object) -> Mapping[Any, Any]:
    try:
        values = msgspec.json.decode(raw or "{}") if isinstance(raw, str | bytes) else raw
    except (ValueError, RecursionError) as error:
        # Also what msgspec raises for text that is not JSON.
        raise InvalidInput("the arguments are not JSON") from error
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise InvalidInput("the arguments must be an object")
    return values


def _search_memory(service: "Service", user_id: str, given: Arguments) -> str:
    query = given.text("query")
    found = service.recall(user_id, query, given.count("max_results", DEFAULT_RESULTS, MOST_RESULTS))
    if not found.hits:
        return f"No memories match {query!r}: {found.reason}."
    heading = f"Found {len(found.hits)} {'memory' if len(found.hits) == 1 else 'memories'}:"
    return "\n".join([heading, *(_shown(place, hit) for place, hit in enumerate(found.hits, 1))])


def _shown(place: int, hit: "Hit") -> str:
    said = f"Q: {hit.pair[0]} A: {hit.pair[1]}" if hit.pair else hit.text
    text = " ".join(said.split())
    shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
    who = (
        f"{hit.speaker_name or hit.role}: "
        if hit.kind == "document" and (hit.speaker_name or hit.role)
        else ""
    )
    return f"{place}. [relevance {hit.confidence:.2f}, {hit.created_at.date()}] {who}{shown}"


def _store_memory(service: "Service", user_id: str, given: Arguments) -> str:
    question = given.text("question", "key")
    service.add_context(user_id, question, given.text("answer", "value"), source=SOURCE)
    return f"Stored: {question}"


def _clear_memory(service: "Service", user_id: str, given: Arguments) -> str:
    question = given.text("question", "key")
    gone = forgetting.forget_question(service.database, user_id, question, now_us())
    return f"Deleted: {question}" if gone.total else f"Not found: there is no memory {question!r}."


def _set_fact(service: "Service", user_id: str, given: Arguments) -> str:
    fact = service.set_fact(user_id, given.text("key"), given.text("value"), source=SOURCE)
    return f"Stored: {fact.key} = {fact.value}"


def _get_fact(service: "Service", user_id: str, given: Arguments) -> str:
    key = given.text("key")
    fact = service.get_fact(user_id, key) or _spelled_alike(service, user_id, key)
    return f"{fact.key} = {fact.value}" if fact else f"Not found: there is no fact {key!r}."


def _spelled_alike(service: "Service", user_id: str, key: str) -> Fact | None:
    wanted = fact_key(key).replace("_", "")
    return next((fact for fact in service.facts(user_id) if fact.key.replace("_", "") == wanted), None)


def _clear_fact(service: "Service", user_id: str, given: Arguments) -> str:
    key = given.text("key")
    gone = service.forget(user_id, fact=key)
    return f"Deleted: {key}" if gone.total else f"Not found: there is no fact {key!r}."


_CALLS: Mapping[str, Callable[["Service", str, Arguments], str]] = {
    "search_memory": _search_memory,
    "store_memory": _store_memory,
    "clear_memory": _clear_memory,
    "set_fact": _set_fact,
    "get_fact": _get_fact,
    "clear_fact": _clear_fact,
}
