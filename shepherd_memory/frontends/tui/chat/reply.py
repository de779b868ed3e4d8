"""An answer of the model, as it comes in."""

from textual.containers import Vertical

from shepherd_memory.frontends.tui.chat.chunks import Chunk, Chunks
from shepherd_memory.frontends.tui.chat.prose import Prose


class Reply(Vertical):
    """Markdown that grows at its end: only the last piece is laid out again."""

    DEFAULT_CSS = """
    Reply { height: auto; margin-top: 1; padding: 0 1 0 2; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._chunks = Chunks()
        self._last: Prose | None = None
        self._text: list[str] = []

    @property
    def text(self) -> str:
        """All of it, as the model wrote it."""
        return "".join(self._text)

    def add(self, text: str) -> None:
        """More of the answer."""
        self._text.append(text)
        for done in self._chunks.feed(text):
            self._show(done)
            self._last = None
        if self._chunks.open.text:
            self._show(self._chunks.open)

    def _show(self, chunk: Chunk) -> None:
        if self._last is None:
            self._last = Prose(chunk)
            self.mount(self._last)
        else:
            self._last.show(chunk)
