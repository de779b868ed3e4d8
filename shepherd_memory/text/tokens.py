"""How much of a prompt a text takes, without knowing the model's tokenizer."""

import math
import string
from collections.abc import Sequence

UNITS = 14
"""Weights are whole numbers, this many to a token, so that they add up without rounding."""

_LIGHT, _HEAVY, _PER_BYTE = 4, 14, 7
_LIGHT_BYTES = (string.ascii_letters + " \n").encode()
_ASCII_BYTES = bytes(range(128))


def weigh(text: str) -> int:
    """The weight of `text`; that of two texts joined is the sum of theirs.

    Letters and spaces count 3.5 to a token. Digits and signs count one each, as the dates and brackets of a
    block really do. Beyond ASCII half a token a byte: 1 for é or ж, 1.5 for 猫, 2 for an emoji.
    """
    encoded = text.encode("utf-8", "surrogatepass")
    rest = encoded.translate(None, _LIGHT_BYTES)
    wide = rest.translate(None, _ASCII_BYTES)
    return _LIGHT * (len(encoded) - len(rest)) + _HEAVY * (len(rest) - len(wide)) + _PER_BYTE * len(wide)


def estimate_tokens(text: str) -> int:
    """At least as many tokens as `text` usually has.

    `estimate_mean_tokens`, which statistics fall back to, is too low for dates and for Chinese or Japanese,
    where a budget must hold as well.
    """
    return -(-weigh(text) // UNITS)


def estimate_mean_tokens(text: str) -> int:
    """A token for every four bytes of UTF-8: near the truth for English, not far from it for the rest."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / 4)


def fair_shares(needs: Sequence[int], room: int) -> list[int]:
    """`room` divided so that none gets more than it needs, and what it leaves goes to the others evenly."""
    shares = [0] * len(needs)
    waiting = len(needs)
    for index in sorted(range(len(needs)), key=needs.__getitem__):
        shares[index] = min(needs[index], max(room, 0) // waiting)
        room -= shares[index]
        waiting -= 1
    return shares
