"""Times as people read them."""

from contextlib import suppress
from datetime import datetime


def local(time: datetime | None) -> str:
    """A time in the local time zone: 2026-02-14 09:31."""
    if time is None:
        return ""
    with suppress(OverflowError, ValueError, OSError):  # at the ends of the calendar there is no other zone
        time = time.astimezone()
    return time.replace(tzinfo=None).isoformat(" ", "minutes")


def age(seconds: float) -> str:
    """A length of time in the one unit that fits it: 40 s, 12 min, 3 h, 2 d."""
    units = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    size, unit = next((pair for pair in units if seconds >= 2 * pair[0]), units[-1])
    return f"{int(seconds // size)} {unit}"
