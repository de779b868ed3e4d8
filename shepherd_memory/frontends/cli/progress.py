"""How far something is, on a terminal; into a pipe nothing."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

Step = Callable[[int], None]

BAR_COLUMNS = 16
"""So that all of it fits into 80 columns."""

MAX_STEPS = 500
"""Callers report every line; the bar is redrawn less often."""


@contextmanager
def progress_bar(label: str, length: int, *, is_size: bool = False) -> Iterator[Step]:
    """Takes numbers of what was done, bytes or others; draws a bar with its rate if somebody is watching."""
    if length <= 0 or not sys.stderr.isatty():
        yield lambda number: None
        return
    begun = time.monotonic()
    with click.progressbar(
        length=length,
        label=label,
        width=BAR_COLUMNS,
        file=sys.stderr,
        show_pos=not is_size,
        show_percent=True,
        update_min_steps=max(1, length // MAX_STEPS),
        item_show_func=lambda shown: shown,
    ) as bar:
        done = 0

        def step(number: int) -> None:
            nonlocal done
            number = min(number, length - done)
            done += number
            rate = round(done / max(time.monotonic() - begun, 0.001))
            pace = f"{size(done)} of {size(length)}, {size(rate)}/s" if is_size else f"{rate:,}/s"
            bar.update(number, pace)

        yield step
        bar.update_min_steps = 1
        bar.update(0)  # draws what was too little to be drawn


def size(number: int) -> str:
    """So many bytes as people read them: 1.2 GB, 40.1 MB."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if number >= unit:
            return f"{number / unit:.1f} {name}"
    return f"{number} B"
