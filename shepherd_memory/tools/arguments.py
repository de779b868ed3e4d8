"""What a model passes to a tool, which may be anything."""

from collections.abc import Mapping
from typing import Any

import msgspec

from shepherd_memory.errors import InvalidInput
from shepherd_memory.text.canonical import as_text


class Arguments:
    """The arguments of one call: an object, or its JSON text."""

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

    def text_or_nothing(self, name: str) -> str:
        """The same, but it may be left out or empty."""
        return "" if self._values.get(name) in (None, "") else self.text(name)

    def count(self, name: str, default: int, most: int) -> int:
        """A number, brought between 1 and `most`."""
        given = self._values.get(name, default)
        if not _is_number(given):
            raise InvalidInput(f"{name} takes a whole number from 1 to {most}")
        return int(max(1, min(given, most)))

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

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of a few words."""
        given = self.text(name).lower()
        if given not in choices:
            raise InvalidInput(f"{name} takes {', '.join(choices)}; got {given[:80]!r}")
        return given


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and given == given


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
