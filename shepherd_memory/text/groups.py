"""Groups: who sees whose memories, and what a group's name may be."""

from functools import lru_cache

from shepherd_memory.errors import InvalidInput

MAX_GROUP_CHARS = 256

MAIN_GROUP = "main"
"""The group that sees all of its user's groups."""

GLOBAL_GROUP = "global"
"""The group that all others see; it is written from `main`, or by hand."""


class NamedByMain(str):
    """A group that `main` names: it is told of the group what `main` sees, ids as they are among it."""

    __slots__ = ()


def checked_group(raw: object) -> str:
    """`raw` as a group's name, or InvalidInput: a name is never changed into another."""
    if not isinstance(raw, str):
        raise InvalidInput(f"a group's name is text, not {type(raw).__name__}")
    if raw not in (MAIN_GROUP, GLOBAL_GROUP):
        _check_name(raw)
    return raw


@lru_cache(maxsize=1024)
def _check_name(raw: str) -> None:
    # Late: commands that use `main` start without them.
    from shepherd_memory.text.canonical import canonical_text
    from shepherd_memory.text.redaction import redact

    if not raw or raw != raw.strip():
        raise InvalidInput("a group's name is not empty, and has no blanks around it")
    if len(raw) > MAX_GROUP_CHARS:
        raise InvalidInput(f"a group's name has at most {MAX_GROUP_CHARS} characters")
    if canonical_text(raw) != raw or not raw.isprintable():
        raise InvalidInput("a group's name has no control characters in it")
    if "/" in raw or "\\" in raw or raw in (".", ".."):
        raise InvalidInput("a group's name is no path: it has no slashes")
    if redact(raw) != raw:
        raise InvalidInput("a group's name looks like a password or key: give it another")


def visible(group: str) -> tuple[str, ...] | None:
    """The groups that this one sees, the nearest first; None: all of its user's."""
    if group == MAIN_GROUP:
        return None
    return (group,) if group == GLOBAL_GROUP else (group, GLOBAL_GROUP)


def may_act_in(group: str, named: str) -> bool:
    """Whether whoever belongs to a group may name this one, to read, write or forget there."""
    return group in (MAIN_GROUP, named)


def nearness(group: str, other: str) -> tuple[int, str]:
    """Orders groups as this one looks at them: itself, then `global`, then the others by name."""
    return (0 if other == group else 1 if other == GLOBAL_GROUP else 2), other
