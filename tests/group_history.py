"""One group's history among that of others, and what it is shown made comparable."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shepherd_memory.service import Service
from shepherd_memory.storage.group_ids import ids_of_group
from tests.grouped_memory import ALPHA, GLOBAL, MAIN, USER

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""Of the numbers in the names of files."""


class AmongOthers:
    """A service that is used by two other groups before each use that is made of it, now more, now less."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._turns = itertools.count()

    def __getattr__(self, name: str) -> Any:
        turn = next(self._turns)
        for number in range(turn % 4):
            group = (ALPHA, MAIN)[number % 2]
            said = {"role": "user", "content": f"The {number}th thing of turn {turn}."}
            self._service.remember(USER, [said], "aside", group=group)
            self._service.set_fact(USER, "turn", f"the {turn}th", group=group)
            self._service.add_context(USER, f"Which turn is after {turn}?", f"{turn + 1}", group=group)
        return getattr(self._service, name)


@dataclass(frozen=True)
class Shown:
    """The ids of a user's rows by what a group calls them."""

    rows: Mapping[int, int]

    @classmethod
    def read(cls, service: Service, group: str) -> "Shown":
        with service.database.read() as connection:
            # Files of `global` are named as that group calls their rows, whoever reads them.
            names = [ids_of_group(connection, USER, one) for one in (GLOBAL, group)]
            ((last,),) = connection.rows("select seq from users where user_id = :user", user=USER)
        return cls({known.shown_id(number): number for known in names for number in range(1, last + 1)})

    def ordered(self, texts: Iterable[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        """Named texts with each row by its place among all rows that are in any of them."""
        given = list(texts)
        words = re.compile(r"(?<![0-9A-Za-z])[0-9A-Za-z]+")
        found = {self._row(word) for _, text in given for word in words.findall(text)} - {0}
        places = {number: f"row{place}" for place, number in enumerate(sorted(found))}
        return [
            (name, words.sub(lambda word: places.get(self._row(word[0]), word[0]), text))
            for name, text in given
        ]

    def _row(self, word: str) -> int:
        """The row that a number stands for, as it is, in a message's id or in a file's name; 0 for none."""
        numbers = (_number(word, base) for base in (10, 16, 62))
        return next(filter(None, (self.rows.get(number, 0) for number in numbers)), 0)


def _number(word: str, base: int) -> int:
    """A word as a number with so many digits; 0 if it is none."""
    places = [DIGITS.find(sign) for sign in (word if base == len(DIGITS) else word.upper())]
    if not all(0 <= place < base for place in places):
        return 0
    return sum(place * base**at for at, place in enumerate(reversed(places)))
