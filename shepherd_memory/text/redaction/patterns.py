"""Regular expressions that are compiled when they are first used, and the spans of text that they find."""

import re
from collections.abc import Callable
from functools import cache, partial

Span = tuple[int, int]
Pattern = Callable[[], re.Pattern[str]]

SLICE_CHARS = 1 << 16
"""A long text is searched in slices, because no other thread runs while one call searches or copies it."""


def lazy(pattern: str, flags: int = 0) -> Pattern:
    """Call the result to get the compiled pattern; all 136 of them take 60 ms, and a text needs few."""
    return cache(partial(re.compile, pattern, flags))


def shifted(span: Span, offset: int) -> Span:
    return span[0] + offset, span[1] + offset
