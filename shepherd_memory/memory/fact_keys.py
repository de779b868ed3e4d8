"""Keys of facts, in the one form in which they are stored."""

import re

from shepherd_memory.text.words import unbroken_words

MAX_KEY_CHARACTERS = 64
MAX_PROPOSED_CHARACTERS = 40
"""Of a key that an extraction proposes. Nothing grounds it, and in a longer one a sentence could stand."""

CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OWNER = re.compile(r"^(?:(?:the_)?users?_|my_)+(?=.)")


def normalise_key(raw: str) -> str:
    """`raw` as the one form in which a key is stored; "" if nothing is left of it."""
    key = "_".join(unbroken_words(CAMEL_HUMP.sub(" ", raw)))
    return _OWNER.sub("", key)[:MAX_KEY_CHARACTERS].rstrip("_")


def is_short_name(key: str) -> bool:
    """Whether a normalised key names something, and no more than that."""
    return len(key) <= MAX_PROPOSED_CHARACTERS and any(character.isalpha() for character in key)
