"""Keys of facts, in the one form in which they are stored."""

import re

from shepherd_memory.text.words import unbroken_words

MAX_KEY_CHARACTERS = 64
CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OWNER = re.compile(r"^(?:(?:the_)?users?_|my_)+(?=.)")


def normalise_key(raw: str) -> str:
    """`raw` as the one form in which a key is stored; "" if nothing is left of it."""
    key = "_".join(unbroken_words(CAMEL_HUMP.sub(" ", raw)))
    return _OWNER.sub("", key)[:MAX_KEY_CHARACTERS].rstrip("_")
