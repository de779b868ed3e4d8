"""The keyboard while nobody reads it: what is typed then is kept for the next line, and not shown."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

Settings = list[Any]
"""As `termios` has them; empty where there is no terminal, or no termios (Windows)."""


class Keyboard:
    """The terminal's settings, as they were found and as a chat needs them.

    Left as it is, a terminal shows what is typed in the middle of an answer, and turns Enter into Ctrl-J.
    """

    def __init__(self) -> None:
        self._found = _settings()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the keys for whoever reads next; Ctrl-C interrupts as ever."""
        self.keep()
        try:
            yield
        finally:
            _set(self._found)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """In between as it was: for what reads lines by itself, such as a command that asks."""
        _set(self._found)
        try:
            yield
        finally:
            self.keep()

    def keep(self) -> None:
        """Do so again, where somebody else may have changed it: a shell does when a job was stopped."""
        _set(_quiet(self._found))


def _settings() -> Settings:
    with suppress(ImportError, OSError, ValueError):
        import termios

        with suppress(termios.error):
            return termios.tcgetattr(sys.stdin)
    return []


def _quiet(found: Settings) -> Settings:
    if not found:
        return found
    import termios

    settings = list(found)
    settings[0] &= ~termios.ICRNL
    settings[3] &= ~(termios.ECHO | termios.ICANON)
    return settings


def _set(settings: Settings) -> None:
    if not settings:
        return
    import termios

    # A terminal that is gone has none.
    with suppress(termios.error, OSError, ValueError):
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)
