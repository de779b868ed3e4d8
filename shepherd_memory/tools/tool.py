"""What a tool is: its definition, what a model passes to it, what it does to the memory, what it answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from shepherd_memory.errors import InvalidInput
from shepherd_memory.text.canonical import as_text
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.visible import visible_text

if TYPE_CHECKING:
    from shepherd_memory.service import Service

ERROR: Final = "Error:"
MAX_SHOWN_CHARS = 1000
"""Characters of one memory in an answer: it goes into a prompt."""

MAX_NAME_CHARS = 100

Schema = Mapping[str, Any]


class Effect(Enum):
    """What a call does to the memory; no call does more when it is made again."""

    READS = "reads"
    WRITES = "writes"
    DELETES = "deletes"


class Arguments:
    """What a model passes to a tool, which may be anything: an object, or its JSON text.

    `group`, and the `session_id` of the chat in which it is called, are not the model's to say: whoever runs
    the tool does.
    """

    def __init__(self, raw: object, group: str = MAIN_GROUP, session_id: str = "") -> None:
        self._values = _decoded(raw)
        self.group = group
        self.session_id = session_id

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

    def text_or_nothing(self, name: str) -> str:
        """The same, but it may be left out or empty."""
        return self.text(name) if self.has(name) else ""

    def has(self, name: str) -> bool:
        """Whether it is given, and not empty."""
        return self._values.get(name) not in (None, "")

    def texts(self, name: str) -> list[str]:
        """Some texts; one alone may come without its list."""
        given = self._values.get(name)
        listed = given if isinstance(given, list | tuple) else [given]
        if not listed or not all(isinstance(one, str) and one.strip() for one in listed):
            raise InvalidInput(f"{name} takes a list of texts")
        return [as_text(one) for one in listed]

    def count(self, name: str, default: int, most: int, least: int = 1) -> int:
        """A number, brought between `least` and `most`."""
        given = self._values.get(name, default)
        if not _is_number(given):
            raise InvalidInput(f"{name} takes a whole number from {least} to {most}")
        return int(max(least, min(given, most)))

    def share(self, name: str) -> float | None:
        """A number, brought between 0 and 1; None if it is left out."""
        given = self._values.get(name)
        if given is None:
            return None
        if not _is_number(given):
            raise InvalidInput(f"{name} takes a number from 0 to 1")
        return float(max(0, min(given, 1)))

    def row_id(self, name: str) -> int:
        """The number of a memory, which may come as text."""
        given = self.text(name)
        if not given.isdecimal() or len(given) > 18:
            raise InvalidInput(f"{name} takes a number such as recall shows; got {given[:80]!r}")
        return int(given)

    def flag(self, name: str) -> bool:
        """Yes or no, as a truth value or its name; no if it is left out."""
        given = self._values.get(name)
        if given is None or isinstance(given, bool):
            return bool(given)
        if isinstance(given, str) and given.strip().lower() in _TRUTHS:
            return _TRUTHS[given.strip().lower()]
        raise InvalidInput(f"{name} takes true or false")

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of a few words."""
        given = self.text(name).lower()
        if given not in choices:
            raise InvalidInput(f"{name} takes {', '.join(choices)}; got {given[:80]!r}")
        return given


_TRUTHS: Mapping[str, bool] = {"true": True, "false": False, "": False}


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and given == given


def _decoded(raw: object) -> Mapping[Any, Any]:
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


@dataclass(frozen=True)
class ToolOutput:
    """Short text for the model, and the same as data where a program may want it."""

    text: str
    data: Mapping[str, Any] | None = None

    @property
    def is_error(self) -> bool:
        return self.text.startswith(ERROR)


@dataclass(frozen=True)
class Tool:
    """One tool. `parameters` and `output` are JSON schemas; without `output` it answers in text only."""

    name: str
    title: str
    effect: Effect
    description: str
    parameters: Schema
    call: Callable[["Service", str, Arguments], ToolOutput]
    output: Schema | None = None

    @property
    def definition(self) -> dict[str, Any]:
        """The form of OpenAI's function calling."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def taking(optional: Sequence[str] = (), **parameters: Schema) -> Schema:
    """The schema of arguments; those with a default may be left out, and those in `optional`."""
    needed = [name for name in parameters if "default" not in parameters[name] and name not in optional]
    return _object_schema(parameters, needed, additionalProperties=False)


def holding(**properties: Schema) -> Schema:
    """The schema of an object in an answer; everything in it is always there."""
    return _object_schema(properties, list(properties))


def _object_schema(properties: Mapping[str, Schema], needed: list[str], **more: Any) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": needed, **more}


def text(description: str = "", **more: Any) -> Schema:
    """The schema of a text."""
    return {"type": "string", **({"description": description} if description else {}), **more}


def count(description: str, default: int, most: int, least: int = 1) -> Schema:
    """The schema of a number from `least` to `most`."""
    return {
        "type": "integer",
        "description": description,
        "minimum": least,
        "maximum": most,
        "default": default,
    }


def flag(description: str) -> Schema:
    """The schema of yes or no."""
    return {"type": "boolean", "description": description, "default": False}


def many(items: Schema) -> Schema:
    """The schema of a list."""
    return {"type": "array", "items": items}


def shortened(memory: str, longest: int = MAX_SHOWN_CHARS) -> str:
    """A memory on one line, cut where it is too long for a prompt."""
    line = " ".join(memory.split())
    return line if len(line) <= longest else f"{line[:longest]}…"


def name_shown(name: str) -> str:
    """Who said something, on one line: clients write anything into a name."""
    return shortened(visible_text(name), MAX_NAME_CHARS)


def counted(number: int, one: str, several: str) -> str:
    """`1 memory`, `2 memories`."""
    return f"{number} {one if number == 1 else several}"
