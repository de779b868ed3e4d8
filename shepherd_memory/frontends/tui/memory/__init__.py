"""The memory screen: where a user sees, searches, corrects and reviews what is remembered of them."""

from shepherd_memory.frontends.tui.memory.screen import MemoryScreen

__all__ = ["MemoryScreen"]
