"""What a hook prints: once, in one piece, and the best there is when its time is up."""

import os
import threading
from typing import TextIO

LOCK_SECONDS = 0.1
"""How long a thread whose time is up waits for one that prints already."""


class HookOutput:
    """Standard output of a hook, written by the thread that answers or by the one that watches the time."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._is_written = False
        self._offered = ""

    def offer(self, text: str) -> None:
        """This is what there is to print until something better comes."""
        self._offered = text

    def write(self) -> bool:
        """Print what was offered last, unless something is printed already; whether there was anything."""
        if not self._lock.acquire(timeout=LOCK_SECONDS):
            return False
        try:
            text = "" if self._is_written else self._offered
            self._is_written = True
            # In one piece: a process that is ended in the middle of it would leave half of a JSON object.
            os.write(self._stream.fileno(), text.encode())
            return bool(text)
        finally:
            self._lock.release()
