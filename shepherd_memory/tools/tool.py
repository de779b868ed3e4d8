"""What a tool is: its definition, what it does to the memory, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from shepherd_memory.tools.arguments import Arguments

if TYPE_CHECKING:
    from shepherd_memory.service import Service

ERROR: Final = "Error:"
LONGEST_SHOWN = 1000
"""Characters of one memory in an answer: it goes into a prompt."""

Schema = Mapping[str, Any]


class Effect(Enum):
    """What a call does to the memory; no call does more when it is made again."""

    READS = "reads"
    WRITES = "writes"
    DELETES = "deletes"


@dataclass(frozen=True)
class Answer:
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
    call: Callable[["Service", str, Arguments], Answer]
    output: Schema | None = None

    @property
    def definition(self) -> dict[str, Any]:
        """The form of OpenAI's function calling."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def taking(optional: Sequence[str] = (), **parameters: Schema) -> Schema:
    """The schema of arguments; those with a default may be left out, and those in `optional`."""
    needed = [name for name in parameters if "default" not in parameters[name] and name not in optional]
    return _object(parameters, needed, additionalProperties=False)


def holding(**properties: Schema) -> Schema:
    """The schema of an object in an answer; everything in it is always there."""
    return _object(properties, list(properties))


def _object(properties: Mapping[str, Schema], needed: list[str], **more: Any) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": needed, **more}


def text(description: str = "", **more: Any) -> Schema:
    """The schema of a text."""
    return {"type": "string", **({"description": description} if description else {}), **more}


def count(description: str, default: int, most: int) -> Schema:
    """The schema of a number from 1 to `most`."""
    return {
        "type": "integer",
        "description": description,
        "minimum": 1,
        "maximum": most,
        "default": default,
    }


def many(items: Schema) -> Schema:
    """The schema of a list."""
    return {"type": "array", "items": items}


def shortened(memory: str, longest: int = LONGEST_SHOWN) -> str:
    """A memory on one line, cut where it is too long for a prompt."""
    line = " ".join(memory.split())
    return line if len(line) <= longest else f"{line[:longest]}…"


def counted(number: int, one: str, several: str) -> str:
    """`1 memory`, `2 memories`."""
    return f"{number} {one if number == 1 else several}"
