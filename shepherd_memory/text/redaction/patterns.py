"""Regular expressions that are compiled when they are first used."""

import re
from collections.abc import Callable
from functools import cache, partial

Pattern = Callable[[], re.Pattern[str]]


def lazy(pattern: str, flags: int = 0) -> Pattern:
    """Call the result to get the compiled pattern; all 136 of them take 60 ms, and a text needs few."""
    return cache(partial(re.compile, pattern, flags))
