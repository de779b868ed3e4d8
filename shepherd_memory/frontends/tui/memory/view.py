"""One kind of memory on the screen: its lines in the list, its page, and what can be done with it."""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from textual.content import Content

from shepherd_memory.frontends.tui.memory.listing import Column
from shepherd_memory.frontends.tui.memory.user_memory import UserMemory

T = TypeVar("T")


class View(ABC, Generic[T]):
    """How one kind of memory is shown."""

    title: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]
    actions: ClassVar[frozenset[str]]
    """The keys' actions that make sense here."""

    empty: ClassVar[str]
    """What stands in a list without a line."""

    @abstractmethod
    def identity(self, item: T) -> object:
        """What stays the same when the item changes: the cursor finds it again by that."""

    @abstractmethod
    def cells(self, item: T) -> tuple[str, ...]:
        """Its line in the list."""

    @abstractmethod
    def words(self, item: T) -> str:
        """What a search looks for words in."""

    @abstractmethod
    def page(self, memory: UserMemory, item: T) -> Content:
        """All about it; reads from the database."""

    def matches(self, item: T, query: str) -> bool:
        """Whether every word of a query stands in it somewhere."""
        words = self.words(item).casefold()
        return all(word in words for word in query.casefold().split())
