"""What a user changes in their memory: each change asks first, is made, and says what it did."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from textual.content import Content
from textual.screen import ModalScreen

from shepherd_memory.frontends.terminal.safe_text import escape_block
from shepherd_memory.frontends.terminal.tables import clip
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.frontends.tui.dialog import Dialog
from shepherd_memory.frontends.tui.memory import page_parts
from shepherd_memory.frontends.tui.memory.dialogs import Editor
from shepherd_memory.frontends.tui.memory.listing import cell
from shepherd_memory.frontends.tui.memory.user_memory import DocumentRow, Item, UserMemory
from shepherd_memory.frontends.tui.memory.views import reason
from shepherd_memory.maintenance.forgetting import ForgettingPlan
from shepherd_memory.maintenance.related import RelatedMemory
from shepherd_memory.memory.context import Context
from shepherd_memory.memory.facts import Fact
from shepherd_memory.memory.rejections import Rejection
from shepherd_memory.memory.sessions import SessionSize
from shepherd_memory.memory.unconfirmed import Unconfirmed

T = TypeVar("T")

STAYS_AWAY = "What you said before does not bring it back; what you say after this does."
WRONG = f"It goes alone: what you said stays, and nothing more is made of it. {STAYS_AWAY}"
SAVES = "Enter saves it as said by you now; Ctrl+J begins a new line."
MAX_EDIT_CHARS = 20_000
MAX_QUESTION_CHARS = 500
MAX_NOTICE_CHARS = 60
MAX_RELATED = 8
"""So many memories are listed of those that go together."""

Memory = Fact | Context | DocumentRow


class MemoryActions(Protocol):
    """What a change needs of the screen."""

    memory: UserMemory

    async def ask(self, dialog: ModalScreen[T]) -> T:
        """Show a dialog and wait for its answer."""

    async def look_up(self, job: Callable[[], T]) -> T | None:
        """Read in a thread; None if that failed, which the user was told."""

    async def make(self, job: Callable[[], object], done: str) -> bool:
        """Write in a thread, say that it is done and show what is there now; False if that failed."""

    def tell(self, text: str) -> None:
        """Say something to the user."""

    def take_away(self, gone: Callable[[DocumentRow], bool]) -> None:
        """Take documents out of the list that are not in the database any more."""


def _may_change(desk: MemoryActions, item: Item) -> bool:
    """Whether it is changed from here; the user is told why not."""
    if not desk.memory.may_change(item):
        desk.tell(
            f"This is of the group {page_parts.name(item.group_name)}: it is changed there, or from main."
        )
        return False
    return True


async def edit(desk: MemoryActions, item: Fact | Context) -> None:
    """Another value or answer; what was typed is not lost when it cannot be saved."""
    if not _may_change(desk, item):
        return
    old = item.value if isinstance(item, Fact) else item.answer
    if len(old) > MAX_EDIT_CHARS:
        desk.tell("This is too long to be edited here: use `shepherd facts set` or `shepherd context add`.")
        return
    shown = text = escape_block(old)
    while (written := await desk.ask(_editor(item, text))) is not None and written[1] != shown:
        text = written[1]
        if await desk.make(_saving(desk.memory, item, text), f"{_name(item)}: {_short(text)}"):
            return


def _editor(item: Fact | Context, text: str) -> Editor:
    if isinstance(item, Fact):
        return Editor(
            "Edit a fact", page_parts.name(item.key), text, f"{SAVES} The old value goes to its history."
        )
    return Editor("Edit an answer", page_parts.name(item.question), text, SAVES)


def _saving(memory: UserMemory, item: Fact | Context, text: str) -> Callable[[], object]:
    if isinstance(item, Fact):
        return lambda: memory.set_fact(item, text)
    return lambda: memory.set_answer(item, text)


async def new_fact(desk: MemoryActions) -> None:
    """A fact that nobody said."""
    key = value = ""
    while (written := await desk.ask(Editor("New fact", key, value, SAVES, names=True))) is not None:
        key, value = written
        if await desk.make(lambda: desk.memory.new_fact(key, value), f"{_short(key)}: {_short(value)}"):  # noqa: B023 # called before the next round
            return


async def delete(desk: MemoryActions, item: Memory) -> None:
    """Delete one thing for good, with what hangs together: that is shown first."""
    if not _may_change(desk, item):
        return
    plan = await desk.look_up(lambda: desk.memory.plan_forgetting(item))
    if plan is None:
        return
    buttons = [("d", "Delete")]
    buttons += [("o", "Only this")] if len(plan.goes) > 1 else []
    buttons += [("s", "The same too")] if plan.same else []
    text = Content("\n\n").join([_shown(item), Content(_consequences(item)), *_hanging_together(item, plan)])
    answer = await desk.ask(Dialog("Delete this?", text, buttons, risky=True))
    if answer:
        await _forget(desk, item, "deleted", only=answer == "o", same=answer == "s")


def _hanging_together(item: Memory, plan: ForgettingPlan) -> list[Content]:
    """What goes with a memory, and what says the same elsewhere, each under a heading."""
    own = item.key if isinstance(item, Fact) else str(item.id)
    others = [one for one in plan.goes if one.id != own]
    lists = (("It goes with what hangs together:", others), ("This says the same, and stays:", plan.same))
    return [
        Content.assemble((f"{heading}\n", "bold"), "\n".join(map(_line, found[:MAX_RELATED])), _more(found))
        for heading, found in lists
        if found
    ]


def _line(memory: RelatedMemory) -> str:
    return f"{memory.kind} {_short(memory.id)}: {_short(memory.text)}"


def _more(found: Sequence[RelatedMemory]) -> str:
    return f"\n… and {len(found) - MAX_RELATED} more" if len(found) > MAX_RELATED else ""


async def mark_wrong(desk: MemoryActions, item: Fact | Context | Unconfirmed) -> None:
    """What was never so is deleted, and what you said stays; what was right before is right again."""
    if not _may_change(desk, item):
        return
    if isinstance(item, Unconfirmed):
        await desk.make(lambda: desk.memory.refuse(item), f"{_short(item.name)}: refused")
        return
    before = await _value_before(desk, item)
    buttons, lines = [("w", "Delete it")], [_shown(item), Content(WRONG)]
    if before is not None:
        buttons.append(("r", "Restore"))
        lines.append(Content(f"Or restore what it was before: {_short(before)}"))
    answer = await desk.ask(Dialog("This is wrong", Content("\n\n").join(lines), buttons, risky=True))
    if answer == "w":
        await _forget(desk, item, "deleted as wrong; what you said before does not bring it back", only=True)
    elif answer == "r" and before is not None and isinstance(item, Fact):
        await _restore(desk, item, before)


async def restore(desk: MemoryActions, fact: Fact) -> None:
    """The value that a fact had before."""
    if not _may_change(desk, fact):
        return
    before = await _value_before(desk, fact)
    if before is None:
        desk.tell(f"{_name(fact)} never had another value.")
        return
    text = Content.assemble((f"{_name(fact)}\n", "bold"), f"{_short(fact.value)}  →  {_short(before)}")
    if await desk.ask(Dialog("Restore the value before?", text, [("r", "Restore")])):
        await _restore(desk, fact, before)


async def _value_before(desk: MemoryActions, item: Fact | Context) -> str | None:
    if not isinstance(item, Fact):
        return None
    history = await desk.look_up(lambda: desk.memory.history(item)) or []
    return next((past.value for past in reversed(history) if past.value != item.value), None)


async def _restore(desk: MemoryActions, fact: Fact, value: str) -> None:
    await desk.make(lambda: desk.memory.set_fact(fact, value), f"{_name(fact)}: {_short(value)} again")


async def accept(desk: MemoryActions, refused: Rejection | Unconfirmed) -> None:
    """Overrule the guard; what only waits to be confirmed is so with one keystroke."""
    if not _may_change(desk, refused):
        return
    if isinstance(refused, Unconfirmed):
        await desk.make(lambda: desk.memory.confirm(refused), f"{_short(refused.name)}: confirmed")
        return
    text = Content.assemble(
        (f"{page_parts.name(refused.name)}\n", "bold"),
        page_parts.bounded(refused.content, MAX_QUESTION_CHARS),
        f"\n\nIt was refused: {reason(refused)}",
        "\n\nAccepted, it is stored as said by you now.",
    )
    if await desk.ask(Dialog("Accept this?", text, [("a", "Accept")])):
        await desk.make(lambda: desk.memory.accept(refused), f"{_short(refused.name)}: accepted")


async def forget_session(desk: MemoryActions, document: DocumentRow) -> None:
    """Everything that was said in a session, and everything that was made of it."""
    session_id = document.session_id
    if not session_id:
        desk.tell("It was said in no session: d deletes it alone.")
        return
    size = await desk.look_up(lambda: desk.memory.session_size(document))
    if size is None or not _may_change(desk, document):
        return
    text = Content.assemble((f"{page_parts.name(session_id)}\n", "bold"), _what_goes(size))
    if await desk.ask(Dialog("Forget this whole session?", text, [("x", "Forget")], risky=True)):
        done = f"session {_short(session_id)}: forgotten"
        if await desk.make(lambda: desk.memory.forget_session(document), done):
            gone = session_id, document.group_name
            desk.take_away(lambda row: (row.session_id, row.group_name) == gone)


def _what_goes(size: SessionSize) -> str:
    counts = (
        (size.documents, "document"),
        (size.facts, "fact"),
        (size.pairs, "question with its answer"),
        (size.rejections, "rejection"),
    )
    goes = [f"{number:,} {word if number == 1 else _plural(word)}" for number, word in counts if number]
    back = " A fact that had another value before has that one again." if size.facts else ""
    return f"This goes, for good: {', '.join(goes) or 'nothing any more'}.{back}\n\n{STAYS_AWAY}"


def _plural(word: str) -> str:
    return "questions with their answers" if word.startswith("question") else f"{word}s"


async def _forget(
    desk: MemoryActions, item: Memory, done: str, *, only: bool = False, same: bool = False
) -> None:
    name = f"document {item.id}" if isinstance(item, DocumentRow) else _name(item)
    plan = await desk.look_up(lambda: desk.memory.plan_forgetting(item))
    goes = [] if plan is None or only else [*plan.goes, *(plan.same if same else ())]
    gone = {one.id for one in goes if one.kind == "document"}
    gone |= {str(item.id)} if isinstance(item, DocumentRow) else set()
    if await desk.make(lambda: desk.memory.forget(item, only=only, same=same), f"{name}: {done}"):
        desk.take_away(lambda row: str(row.id) in gone)


def _consequences(item: Memory) -> str:
    goes = "It goes with its history, for good." if isinstance(item, Fact) else "It goes for good."
    return f"{goes} {STAYS_AWAY}"


def _shown(item: Memory) -> Content:
    if isinstance(item, DocumentRow):
        head, text = f"{page_parts.name(item.who)}, {local(item.created_at)}", item.text
    else:
        head, text = _name(item), item.value if isinstance(item, Fact) else item.answer
    return Content.assemble((f"{head}\n", "bold"), page_parts.bounded(text, MAX_QUESTION_CHARS))


def _name(item: Fact | Context) -> str:
    return page_parts.name(item.key if isinstance(item, Fact) else item.question)


def _short(text: str) -> str:
    return clip(cell(text), MAX_NOTICE_CHARS)
