"""Ids of rows as a group is shown them: numbers that tell nothing of how much other groups store."""

import hmac
import inspect
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from functools import cached_property, lru_cache, wraps
from hashlib import sha256
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, cast, get_args, get_origin

from shepherd_memory.errors import NoSuchRow
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.text.groups import MAIN_GROUP, NamedByMain, checked_group
from shepherd_memory.text.ids import checked_user_id

_MARK: Final = "the id of a row"

StoredId = Annotated[int, _MARK]
"""The id of a row: in every dataclass that the service shows, each such number has this type."""

HALF_BITS = 26
MAX_SHOWN_ID = (1 << 2 * HALF_BITS) - 1
"""Every program that reads JSON keeps so large a number exactly."""

_HALF = (1 << HALF_BITS) - 1
ROUNDS = 6
"""With four, some thousand known pairs would tell it from chance; with six it takes more than there are."""

T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])
Change = Callable[[int], int]


class GroupIds:
    """Translates the ids of one user's rows for one group.

    What the group is shown is a permutation of all ids under a key of its own, so that neither their order
    nor the gaps between them say anything. `main` sees all groups: it has no key, and sees ids as they are.
    """

    def __init__(self, key: bytes = b"") -> None:
        self._key = key
        self._rounds = [key + bytes((at,)) for at in range(ROUNDS)]

    def shown(self, value: T, kind: Any = None) -> T:
        """A value as the group sees it; `kind` is its type where that is not a dataclass's."""
        return cast(T, _changed(value, kind, self.shown_id)) if self._key else value

    def given(self, value: T, kind: Any = None) -> T:
        """The same back: a value that has ids which the group was shown, with those of the rows."""
        return cast(T, _changed(value, kind, self.given_id)) if self._key else value

    def shown_id(self, row_id: int) -> int:
        """What the group calls a row."""
        return self._walk(row_id, self._encipher)

    def given_id(self, shown: int) -> int:
        """The row that the group calls so; there is hardly ever one, but for a number that it was shown."""
        return self._walk(shown, self._decipher)

    def _walk(self, number: int, step: Change) -> int:
        """0 is no row; where a step leads there, one more leads on."""
        if not self._key or not 0 < number <= MAX_SHOWN_ID:
            return number
        found = step(number)
        return found or step(found)

    def _encipher(self, number: int) -> int:
        left, right = number >> HALF_BITS, number & _HALF
        for key in self._rounds:
            left, right = right, left ^ _mixed(key, right)
        return left << HALF_BITS | right

    def _decipher(self, number: int) -> int:
        left, right = number >> HALF_BITS, number & _HALF
        for key in reversed(self._rounds):
            left, right = right ^ _mixed(key, left), left
        return left << HALF_BITS | right


def _mixed(key: bytes, half: int) -> int:
    """One round of a Feistel network; all keys are of one length, and so are all halves."""
    return int.from_bytes(sha256(key + half.to_bytes(4, "big")).digest()[:4], "big") & _HALF


def new_secret() -> str:
    """What the keys of a user's groups are made of; it is never shown, and goes with the user."""
    return os.urandom(16).hex()


def ids_of_group(connection: Connection, user_id: str, group: str) -> GroupIds:
    """How a group of the user is shown ids."""
    if group == MAIN_GROUP:
        return GroupIds()
    row = connection.row("select id_secret from users where user_id = :user_id", user_id=user_id)
    # Without a user there is nothing to show, and nothing that could be named.
    secret = (row and row[0]) or new_secret()
    return GroupIds(hmac.digest(secret.encode(), group.encode(), "sha256"))


def ids_shown(connection: Connection, user_id: str, group: str) -> GroupIds:
    """How whoever looks at a group is shown ids: `main` sees its own also where it names another."""
    return GroupIds() if isinstance(group, NamedByMain) else ids_of_group(connection, user_id, group)


def with_group_ids(method: Method) -> Method:
    """Let a method of the service show its `group` ids as the group knows them, and take them so."""
    kinds = {name: kind for name, kind in inspect.get_annotations(method).items() if holds_ids(kind)}
    returned = kinds.pop("return", None)
    names = tuple(inspect.signature(method).parameters)[2:]

    @wraps(method)
    def translated(self: Any, user_id: str, *args: Any, **options: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | options
        ids = _IdsOfCall(self.database, user_id, given.get("group", MAIN_GROUP))
        named = {name: given[name] for name in kinds if given.get(name) is not None}
        if ids.are_of_main:
            return method(self, user_id, *args, **options)
        rows = {name: ids.of_group.given(one, kinds[name]) for name, one in named.items()}
        try:
            found = method(self, user_id, **given | rows)
        except NoSuchRow as error:
            raise NoSuchRow(error.what, ids.of_group.shown_id(error.row_id)) from error
        return found if returned is None or not found else ids.of_group.shown(found, returned)

    translated.__dict__["translates_ids"] = True
    return cast("Method", translated)


class _IdsOfCall:
    """Read once in a call, when they are needed first: a user may come to be in it."""

    def __init__(self, database: Database, user_id: str, group: object) -> None:
        self._database = database
        self._user_id = checked_user_id(user_id)
        self._group = checked_group(group)
        self.are_of_main = self._group == MAIN_GROUP or isinstance(self._group, NamedByMain)

    @cached_property
    def of_group(self) -> GroupIds:
        with self._database.read() as connection:
            return ids_of_group(connection, self._user_id, self._group)


@lru_cache(maxsize=1024)
def holds_ids(kind: Any) -> bool:
    """Whether a value of this type can have ids of rows in it."""
    if get_origin(kind) is Annotated:
        return _MARK in kind.__metadata__ or holds_ids(kind.__origin__)
    if is_dataclass(kind):
        return hasattr(kind, "with_ids") or bool(_id_fields(cast(Hashable, kind)))
    return any(map(holds_ids, get_args(kind))) if get_origin(kind) is not Callable else False


@lru_cache(maxsize=256)
def _id_fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((one.name, one.type) for one in fields(kind) if holds_ids(cast(Hashable, one.type)))


def _changed(value: Any, kind: Any, change: Change) -> Any:
    """A value of this type with every id in it changed."""
    if is_dataclass(value) and not isinstance(value, type):
        return _with_fields(value, change)
    if value is None or isinstance(value, str | bytes) or (kind is not None and not holds_ids(kind)):
        return value
    if isinstance(value, int):
        return change(value) if kind is not None else value
    if isinstance(value, Mapping):
        inner = _inner(kind)[-1]
        return {name: _changed(one, inner, change) for name, one in value.items()}
    if isinstance(value, tuple):
        kinds = _inner(kind)
        each = kinds if len(kinds) == len(value) and kinds[-1] is not ... else kinds[:1] * len(value)
        return tuple(_changed(one, what, change) for one, what in zip(value, each, strict=True))
    changed = (_changed(one, _inner(kind)[0], change) for one in value)
    return changed if not isinstance(value, list | set | frozenset | range) else _alike(value, changed)


def _alike(value: Any, changed: Iterable[Any]) -> Any:
    return list(changed) if isinstance(value, range) else type(value)(changed)


def _with_fields(value: Any, change: Change) -> Any:
    if hasattr(value, "with_ids"):
        return value.with_ids(change)
    found = _id_fields(cast(Hashable, type(value)))
    if not found:
        return value
    # As `replace` does it, in a third of the time: a page may have a thousand of them.
    other = copy(value)
    for name, kind in found:
        object.__setattr__(other, name, _changed(getattr(value, name), kind, change))
    return other


@lru_cache(maxsize=256)
def _inner(kind: Any) -> tuple[Any, ...]:
    """The types of what a container has in it."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(one for one in get_args(kind) if holds_ids(one) and get_origin(one) is not Annotated)
    return get_args(kind) or (None,)
