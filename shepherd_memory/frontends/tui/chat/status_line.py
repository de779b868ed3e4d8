"""One line that says how everything is doing: who answers whom, and how far memory is behind."""

import time
from dataclasses import dataclass, replace

from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget

from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.terminal.times import age
from shepherd_memory.maintenance.status import Status
from shepherd_memory.memory.session_lives import ACTIVE
from shepherd_memory.work import jobs

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAME_SECONDS = 0.1
GAP = "   "
MAX_NAME_CHARS = 24


@dataclass(frozen=True)
class StatusFigures:
    """What the line tells."""

    provider: str = ""
    model: str = ""
    user_id: str = ""
    memory: str = "off"
    session: str = ""
    """Which session it is, and how old; empty if it was not started."""
    session_state: str = ""
    """How it is doing."""
    tokens: int = 0
    window: int = 0
    queued: int = 0
    """Prompts of the user's that wait for their turn."""
    open_items: int = 0
    lag_seconds: float = 0.0
    problems: tuple[str, ...] = ()

    def with_status(self, status: Status) -> "StatusFigures":
        """The same with what memory says of itself now."""
        open_items = status.items.get(jobs.WAITING, 0) + status.items.get(jobs.RUNNING, 0)
        return replace(
            self, open_items=open_items, lag_seconds=status.oldest_waiting_seconds, problems=status.problems
        )


class StatusLine(Widget):
    """Provider, model and user on the left; figures on the right, the least important left out first."""

    DEFAULT_CSS = """
    StatusLine {
        height: 1;
        padding: 0 1;
        background: $panel;
        color: $foreground;
        text-wrap: nowrap;
        text-overflow: ellipsis;
        &.-red { background: $error; color: $text; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.figures = StatusFigures()
        self._since: float | None = None
        self._ticking: Timer | None = None

    def on_mount(self) -> None:
        self._ticking = self.set_interval(FRAME_SECONDS, self.refresh, pause=True)

    def show(self, figures: StatusFigures) -> None:
        """Tell these; only what changed is drawn anew."""
        if figures == self.figures:
            return
        self.figures = figures
        self.set_class(bool(figures.problems), "-red")
        self.tooltip = Content("\n".join(map(escape_line, figures.problems))) if figures.problems else None
        self.refresh()

    def wait(self, waiting: bool) -> None:
        """Turn the spinner, and count the seconds, or stop."""
        if waiting == (self._since is not None) or self._ticking is None:
            return
        self._since = time.monotonic() if waiting else None
        (self._ticking.resume if waiting else self._ticking.pause)()
        self.refresh()

    def render(self) -> Content:
        room = self.content_size.width
        left, right = self._left(), self._right()
        while len(right) > 1 and len(left) + len(GAP) + len(GAP.join(right)) > room:
            right.pop(0)
        shown = Content(GAP.join(right))
        # A name that is cut is known all the same; half a figure is none.
        names = Content(left).truncate(max(room - shown.cell_length - 1, 0), ellipsis=True)
        space = room - names.cell_length - shown.cell_length
        return Content.assemble(names, " " * max(space, 1), shown)

    def _left(self) -> str:
        figures = self.figures
        if not figures.provider:
            return "no provider: /provider add"
        names = (figures.provider, figures.model, figures.user_id)
        return " · ".join(_short(name) for name in names if name)

    def _right(self) -> list[str]:
        """The most important last: it stays where there is little room."""
        figures = self.figures
        found = [f"memory {figures.memory}"]
        if figures.session:
            state = f" · {ACTIVE}" if figures.session_state == ACTIVE else ""
            found.append(f"{figures.session}{state}")
        if figures.tokens:
            window = f"/{_thousands(figures.window)}" if figures.window else ""
            found.append(f"{_thousands(figures.tokens)}{window} tokens")
        if figures.open_items:
            lag = f", {age(figures.lag_seconds)}" if figures.lag_seconds >= 1 else ""
            found.append(f"{figures.open_items} to extract{lag}")
        if figures.queued:
            found.append(f"{figures.queued} queued")
        if figures.session_state not in ("", ACTIVE):
            found.append(figures.session_state)
        if figures.problems:
            found.append("not well: F1 says why")
        if self._since is not None:
            seconds = time.monotonic() - self._since
            found.append(f"{SPINNER[int(seconds / FRAME_SECONDS) % len(SPINNER)]} {seconds:.0f} s")
        return found


def _short(name: str) -> str:
    plain = escape_line(name)
    return plain if len(plain) <= MAX_NAME_CHARS else f"{plain[: MAX_NAME_CHARS - 1]}…"


def _thousands(number: int) -> str:
    return str(number) if number < 1000 else f"{number / 1000:.1f}k"
