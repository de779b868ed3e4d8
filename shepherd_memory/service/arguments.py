"""Checks of the arguments that every method of the service takes."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar, cast

from shepherd_memory.config.identity import is_known
from shepherd_memory.errors import InvalidInput
from shepherd_memory.storage.clock import parse_us
from shepherd_memory.text.ids import checked_user_id

UNKNOWN_USER = "the user is unknown: nothing is stored or searched without a user_id"
NO_LIMIT = 1_000_000_000

# With Concatenate mypy would no longer let callers write user_id=….
Method = TypeVar("Method", bound=Callable[..., Any])


def is_known_user(user_id: str) -> bool:
    """Whether this is a user whose memory may be touched; an id that cannot be one is an error."""
    return is_known(checked_user_id(user_id))


def check_known_user(user_id: str) -> None:
    """Raise InvalidInput for an unknown user: nothing can be stored for one."""
    if not is_known_user(user_id):
        raise InvalidInput(UNKNOWN_USER)


def empty_for_unknown_user(empty: Callable[[], object]) -> Callable[[Method], Method]:
    """Make a method return `empty()` for an unknown user, without touching the database."""

    def decorate(method: Method) -> Method:
        @wraps(method)
        def checked(self: object, user_id: str, *args: Any, **kwargs: Any) -> Any:
            return method(self, user_id, *args, **kwargs) if is_known_user(user_id) else empty()

        return cast("Method", checked)

    return decorate


def time_us(value: datetime | str | None, default: int) -> int:
    """A time that a caller gives, in microseconds; `default` where none is given."""
    if value is None:
        return default
    moment = parse_us(value)
    if moment is None:
        raise InvalidInput(f"{value!r} is not a time: give a datetime or ISO 8601")
    return moment
