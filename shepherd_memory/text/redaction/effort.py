"""A limit to what the search for secrets spends on a text, whatever it is made of."""

WINDOW_CHARS = 4096
RATE = 600
"""What every window may cost, in tries of a pattern; ordinary text needs less than a tenth."""
BURST = 60_000
"""What a text may cost beyond that, wherever it is dense: a text of a few pages is never too dense."""

_MATCH = 10
_CHARS_PER_TRY = 8
_HIT = 20


class Effort:
    """What was spent on each window of a text.

    A count and not a clock: the same text is always treated alike, on a slow machine too.
    """

    def __init__(self, chars: int) -> None:
        windows = chars // WINDOW_CHARS + 1
        self._spent = [0] * windows
        self._left = BURST + RATE * windows
        self._broken_off: set[int] = set()

    @property
    def total(self) -> int:
        return sum(self._spent)

    def spend(self, position: int, tries: int) -> None:
        self._spent[position // WINDOW_CHARS] += tries
        self._left -= tries

    def is_used_up(self, position: int) -> bool:
        """Whether a window has cost more than its share, and the text more than all shares and the burst."""
        if self._left > 0 or self._spent[position // WINDOW_CHARS] <= RATE:
            return False
        self._broken_off.add(position // WINDOW_CHARS)
        return True

    def broken_off(self) -> list[tuple[int, int]]:
        """The windows that were not searched to their end."""
        return [(window * WINDOW_CHARS, (window + 1) * WINDOW_CHARS) for window in sorted(self._broken_off)]


def allowance(chars: int) -> int:
    """What one search of a text can cost at most, by and large."""
    return BURST + 2 * RATE * (chars // WINDOW_CHARS + 1)


def next_window(position: int) -> int:
    return (position // WINDOW_CHARS + 1) * WINDOW_CHARS


def cost_of_match(chars: int, is_secret: bool) -> int:
    """A judge looks at what a pattern matched, and what stands around a secret is searched again."""
    return _MATCH + min(chars, 2000) // _CHARS_PER_TRY + (_HIT if is_secret else 0)
