"""The chat screen of the TUI, driven by keys and mouse: a real chat before the scripted provider."""

import itertools
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from textual import events as keys
from textual.pilot import Pilot

from shepherd_memory.chat.session import Options, open_chat
from shepherd_memory.config import load_config, state_folder
from shepherd_memory.errors import DatabaseError, SessionRunning
from shepherd_memory.frontends.cli import cli
from shepherd_memory.frontends.terminal.interrupts import InterruptRouter
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.frontends.tui import app as tui_app
from shepherd_memory.frontends.tui.app import TuiApp
from shepherd_memory.frontends.tui.chat.answer_view import AnswerView
from shepherd_memory.frontends.tui.chat.messages import CollapsibleText
from shepherd_memory.frontends.tui.chat.prompt import Prompt
from shepherd_memory.frontends.tui.chat.recall_panel import RecallPanel
from shepherd_memory.frontends.tui.chat.screen import PLAIN_START, ScreenStart
from shepherd_memory.frontends.tui.chat.scrollback import Scrollback
from shepherd_memory.frontends.tui.chat.status_line import StatusLine
from shepherd_memory.frontends.tui.help_screen import HelpScreen
from shepherd_memory.frontends.tui.memory import MemoryScreen
from shepherd_memory.memory.saved_chats import InputHistory
from shepherd_memory.service import open_service
from tests.provider import CUT, RESET, ScriptedProvider, ToolCall, chat, openai_stream
from tests.terminal.chat_site import ANN, ChatSite
from tests.terminal.snapshots import screen_text
from tests.terminal.tui_driving import driven, until, until_it_looks_like

SMALL, LARGE = (80, 24), (120, 40)


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
def site(tmp_path: Path, provider: ScriptedProvider) -> ChatSite:
    """A provider in use, with memory, and keywords alone to find it by."""
    folder = tmp_path / "site"
    folder.mkdir()
    site = ChatSite(folder, provider)
    site.configure(memory=True, embedding_engine="none")
    return site


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@dataclass
class Hands:
    """A person before the screen."""

    app: TuiApp
    pilot: Pilot[None]

    def seen(self) -> str:
        return screen_text(self.app)

    def one(self, kind: type[Any]) -> Any:
        return self.app.chat.query_one(kind)

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        await until(condition, lambda: f"not {what}:\n{self.seen()}")

    async def sees(self, *texts: str) -> None:
        await self.until(lambda: all(text in self.seen() for text in texts), f"{texts} on the screen")

    async def press(self, *pressed: str) -> None:
        await self.pilot.press(*pressed)

    async def type(self, text: str) -> None:
        await self.pilot.press(*("space" if letter == " " else letter for letter in text))

    async def say(self, text: str) -> None:
        self.one(Prompt).put(text)
        await self.pilot.press("enter")

    async def answered(self) -> None:
        """Nothing is worked on, and nothing waits."""
        turns = self.app.chat.turns
        await self.until(lambda: not turns.current and not turns.waiting, "answered")
        await self.pilot.pause()


@asynccontextmanager
async def opened(
    site: ChatSite,
    size: tuple[int, int] = SMALL,
    resume: bool = False,
    around: Callable[[Any], Any] = lambda part: part,
    start: ScreenStart = PLAIN_START,
    **options: Any,
) -> AsyncIterator[Hands]:
    """The screen before a chat; `around` may stand between it and its service and session."""
    with ExitStack() as stack:
        service = stack.enter_context(
            open_service(load_config(site.path, {}), config_path=site.path, worker=False)
        )
        chosen = Options(**{"place": str(site.home), **options})
        session = stack.enter_context(open_chat(service, ANN, chosen, resume=resume))
        with suppress(SessionRunning):
            session.start()
        invocation = Invocation(site.path, service=service, user_id=ANN, group=chosen.group, commands=cli)
        history, signals = InputHistory(ANN, chosen.memory, session.group), InterruptRouter()
        app = TuiApp(around(service), around(session), invocation, history, signals, start)
        # To draw each step of a movement costs more than most of what is tested.
        app.animation_level = "none"
        async with app.run_test(size=size, notifications=True) as pilot:
            yield Hands(app, pilot)


def remember(site: ChatSite) -> None:
    """A memory with a fact, and with something to find."""
    said = {
        "id": "m1",
        "role": "user",
        "content": "I just moved to Lisbon, so the cat had to come along.",
        "created_at": "2026-02-10T08:00:00Z",
    }
    with site.service() as service:
        service.remember(ANN, [said], "tuesday")
        service.set_fact(ANN, "cat", "Tom, a grey one")


ANSWER = """## Moving

You **moved to Lisbon** with *the cat*, so:

1. Register at the `Junta`.
2. Get a number:
   - bring a passport

| Office | Opens |
|---|---|
| Junta | 9:00 |

```python
def days(deadline):
    return deadline - today()
```

See [the portal](https://eportugal.gov.pt).
"""


@driven
async def test_an_answer_is_shown_while_it_still_comes_in(site: ChatSite, provider: ScriptedProvider) -> None:
    gate = threading.Event()
    provider.script(openai_stream("The first ", gate, "and the *rest*."))
    async with opened(site) as hands:
        await hands.type("Hello there?")
        await hands.press("enter")
        await hands.sees("Hello there?", "The first")
        assert "rest" not in hands.seen()
        gate.set()
        await hands.sees("The first and the rest.")
        await hands.answered()


@driven
@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (LARGE, "120x40")])
async def test_the_chat_looks_as_it_should(
    site: ChatSite, provider: ScriptedProvider, size: tuple[int, int], name: str
) -> None:
    remember(site)
    provider.script(openai_stream(*ANSWER.splitlines(keepends=True)))
    async with opened(site, size) as hands:
        await hands.say("What does my cat need after we moved to Lisbon?")
        await hands.sees("the portal")
        await hands.answered()
        await until_it_looks_like(hands.app, f"tui-chat-{name}")
        await hands.press("f1")
        await hands.until(lambda: isinstance(hands.app.screen, HelpScreen))
        await hands.sees("Keys and commands")
        await until_it_looks_like(hands.app, f"tui-help-{name}")


@driven
async def test_an_empty_chat_looks_as_it_should_in_light_and_dark(site: ChatSite) -> None:
    async with opened(site) as hands:
        await hands.sees("Hello.", "lab · scripted-1 · ann", "memory on")
        await until_it_looks_like(hands.app, "tui-empty-80x24")
        dark = hands.app.screen.styles.background
        await hands.press("ctrl+t")
        await hands.until(lambda: hands.app.screen.styles.background != dark)
        assert not hands.app.current_theme.dark
        await until_it_looks_like(hands.app, "tui-empty-80x24")


@driven
async def test_light_or_dark_is_what_was_chosen_the_last_time(site: ChatSite) -> None:
    for was_dark in (True, False, True):
        async with opened(site) as hands:
            assert hands.app.current_theme.dark == was_dark
            await hands.press("ctrl+t")
            await hands.until(lambda: hands.app.current_theme.dark != was_dark)  # noqa: B023
        assert (state_folder() / "tui-look").stat().st_mode & 0o777 == 0o600


@driven
async def test_a_look_that_cannot_be_kept_is_shown_all_the_same(site: ChatSite) -> None:
    (state_folder() / "tui-look").mkdir(parents=True)
    async with opened(site) as hands:
        await hands.press("ctrl+t")
        await hands.until(lambda: not hands.app.current_theme.dark)


@driven
async def test_a_line_of_an_answer_is_drawn_once(site: ChatSite, provider: ScriptedProvider) -> None:
    gate = threading.Event()
    provider.script(openai_stream("One **bold** line.\n\n" * 100, gate, "\n\nAnd the end."))
    async with opened(site) as hands:
        await hands.say("Many")
        await hands.sees("One bold line.")
        reply = hands.one(AnswerView)
        await hands.until(lambda: reply.region.height > 150, "all lines")
        before = reply.render_lines(reply.region.reset_offset)[0]
        gate.set()
        await hands.answered()
        await hands.sees("And the end.")
        assert reply.render_lines(reply.region.reset_offset)[0] is before


@driven
async def test_thoughts_are_one_line_until_they_are_opened(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    provider.script(openai_stream({"reasoning_content": "Six times seven."}, "It is 42."))
    async with opened(site) as hands:
        await hands.say("What is the answer?")
        await hands.sees("thought for", "It is 42.")
        assert "Six times seven." not in hands.seen()
        await hands.pilot.click(CollapsibleText)
        await hands.sees("Six times seven.")
        hands.one(CollapsibleText).focus()
        await hands.press("enter")
        await hands.until(lambda: "Six times seven." not in hands.seen())


@driven
async def test_a_tool_call_is_one_line_with_its_answer_below(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    remember(site)
    call = ToolCall("c1", "get_fact", '{"key": "cat"}')
    provider.script(openai_stream(call), openai_stream("Tom is grey."))
    async with opened(site, memtools=True) as hands:
        await hands.say("Which colour?")
        await hands.sees("get_fact →", "Tom is grey.")
        await hands.pilot.click(CollapsibleText)
        await hands.sees('{"key": "cat"}')


@driven
@pytest.mark.parametrize("end", [CUT, RESET], ids=["cut", "reset"])
async def test_an_answer_that_breaks_off_is_told_and_the_chat_goes_on(
    site: ChatSite, provider: ScriptedProvider, end: Any
) -> None:
    provider.script(openai_stream("Half of ", end), chat("Whole."))
    async with opened(site) as hands:
        await hands.say("One")
        await hands.sees("broke off")
        await hands.say("Two")
        await hands.sees("Whole.")
        await hands.answered()


@driven
async def test_escape_stops_a_provider_that_hangs(site: ChatSite, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("Wait ", threading.Event()), chat("Here again."))
    async with opened(site) as hands:
        await hands.say("One")
        await hands.sees("Wait")
        await hands.press("escape")
        await hands.sees("cancelled")
        provider.wait_until_left(0)
        await hands.say("Two")
        await hands.sees("Here again.")


@driven
async def test_what_is_sent_meanwhile_waits_and_is_answered_in_order(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    provider.script(openai_stream("One ", gate, "done."), chat("Two done."), chat("Three done."))
    async with opened(site) as hands:
        for text in ("first", "second", "third", "fourth"):
            await hands.say(text)
        await hands.sees("queued 1  second", "queued 3  fourth", "3 queued")
        await hands.press("ctrl+x")
        await hands.until(lambda: hands.one(Prompt).text == "fourth")
        hands.one(Prompt).put("")
        gate.set()
        await hands.sees("Three done.")
        await hands.answered()
        assert [text.partition("\n")[0] for text in site.heard()] == ["first", "second", "third"]


@driven
async def test_up_takes_a_waiting_prompt_back(site: ChatSite, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("One ", threading.Event()))
    async with opened(site) as hands:
        await hands.say("first")
        await hands.say("second")
        await hands.sees("queued 1  second")
        await hands.press("up")
        await hands.until(lambda: hands.one(Prompt).text == "second")
        assert not hands.app.chat.turns.waiting


@driven
async def test_a_paste_of_many_lines_is_one_message_and_the_input_grows(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    async with opened(site) as hands:
        prompt = hands.one(Prompt)
        assert prompt.size.height == 1
        prompt.post_message(keys.Paste("one\r\ntwo\rthree\x1b[31m\nfour"))
        await hands.until(lambda: prompt.size.height == 4)
        assert prompt.text == "one\ntwo\nthree[31m\nfour"
        prompt.post_message(keys.Paste("\n" * 50))
        await hands.until(lambda: prompt.size.height == 8)
        await hands.press("enter")
        await hands.answered()
        assert site.heard()[0].startswith("one\ntwo\nthree[31m\nfour")


@driven
@pytest.mark.parametrize("key", ["shift+enter", "alt+enter", "ctrl+j"])
async def test_there_are_keys_for_a_new_line(site: ChatSite, key: str) -> None:
    async with opened(site) as hands:
        await hands.type("one")
        await hands.press(key)
        await hands.type("two")
        assert hands.one(Prompt).text == "one\ntwo"


@driven
async def test_keys_of_a_shell_edit_the_line(site: ChatSite) -> None:
    async with opened(site) as hands:
        await hands.type("world")
        await hands.press("ctrl+a")
        await hands.type("hello ")
        await hands.press("ctrl+e", "!", "ctrl+a", "ctrl+d")
        assert hands.one(Prompt).text == "ello world!"
        await hands.press("ctrl+k")
        assert hands.one(Prompt).text == ""
        await hands.type("gone")
        await hands.press("ctrl+u")
        assert hands.one(Prompt).text == ""


@driven
async def test_history_is_shared_with_other_chats_and_keeps_what_was_being_typed(site: ChatSite) -> None:
    InputHistory(ANN).add("from the chat")
    async with opened(site) as hands:
        await hands.say("from here")
        await hands.answered()
        await hands.type("a draft")
        prompt = hands.one(Prompt)
        await hands.press("up")
        assert prompt.text == "from here"
        await hands.press("up", "up")
        assert prompt.text == "from the chat"
        await hands.press("down", "down")
        assert prompt.text == "a draft"
    assert InputHistory(ANN).entries() == ["from the chat", "from here"]


@driven
async def test_a_slash_shows_the_commands_and_tab_completes(site: ChatSite) -> None:
    remember(site)
    async with opened(site) as hands:
        await hands.type("/fa")
        await hands.sees("/facts   Show and change facts.")
        await hands.press("tab", "enter")
        await hands.sees("Tom, a grey one")
        await hands.say("/nosuch thing")
        await hands.sees("there is no /nosuch")


@driven
async def test_a_table_of_a_command_fits_beside_the_panel(site: ChatSite) -> None:
    with site.service() as service:
        service.set_fact(ANN, "motto", "very long words " * 20)
    async with opened(site, LARGE) as hands:
        await hands.say("/facts")
        await hands.sees("motto")
        row = next(line for line in hands.seen().splitlines() if "motto" in line)
        assert "…" in row
        assert "user" in row


@driven
async def test_clear_begins_a_new_session_on_an_empty_page(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    provider.script(chat("Remember me."))
    async with opened(site) as hands:
        await hands.say("Hello?")
        await hands.sees("Remember me.")
        session_id = hands.app.chat.session.session_id
        await hands.say("/clear")
        await hands.sees("Start a new conversation? What you talked about is remembered.")
        await hands.press("escape")
        await hands.until(lambda: "Start a new" not in hands.seen(), "the chat as it was")
        assert hands.app.chat.session.session_id == session_id
        await hands.say("/clear")
        await hands.sees("Start a new conversation?")
        await hands.press("y")
        await hands.sees("a new session begins")
        await hands.until(lambda: "Remember me." not in hands.seen(), "an empty page")
        assert hands.app.chat.session.session_id != session_id


@driven
async def test_the_panel_says_what_was_recalled_and_why(site: ChatSite) -> None:
    remember(site)
    async with opened(site, LARGE) as hands:
        await hands.say("What does my cat think of Lisbon?")
        await hands.answered()
        await hands.sees("Facts", "cat: Tom, a grey one", "Recalled", "document · 2026-02-10", "shares words")


@driven
async def test_the_panel_says_why_nothing_was_recalled(site: ChatSite) -> None:
    async with opened(site, LARGE) as hands:
        await hands.say("Anything?")
        await hands.answered()
        await hands.sees("Nothing recalled:")


@driven
async def test_the_panel_hides_where_there_is_no_room_and_comes_when_asked_for(site: ChatSite) -> None:
    async with opened(site, LARGE) as hands:
        panel = hands.one(RecallPanel)
        await hands.until(lambda: panel.display)
        await hands.pilot.resize_terminal(80, 24)
        await hands.until(lambda: not panel.display)
        await hands.press("f3")
        await hands.until(lambda: panel.display)
        await hands.press("ctrl+b")
        await hands.until(lambda: not panel.display)


@driven
@pytest.mark.parametrize("size", [(40, 12), (20, 5), (200, 60)])
async def test_any_size_of_window_will_do(
    site: ChatSite, provider: ScriptedProvider, size: tuple[int, int]
) -> None:
    provider.default = openai_stream(ANSWER)
    async with opened(site, size) as hands:
        await hands.say("Hello?")
        await hands.answered()
        await hands.press("f3")
        await hands.pilot.resize_terminal(*SMALL)
        await hands.sees("the portal")
        await hands.pilot.resize_terminal(*size)
        await hands.press("f3", "f1", "escape", "f2")
        await hands.until(lambda: isinstance(hands.app.screen, MemoryScreen))


@driven
async def test_it_follows_the_end_unless_one_has_scrolled_away(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    lines = [f"Line {number}.\n\n" for number in range(100)]
    provider.script(openai_stream(*lines, gate, "The very end."))
    async with opened(site) as hands:
        await hands.say("Tell me")
        await hands.sees("Line 99.")
        await hands.press("pageup", "pageup")
        await hands.until(lambda: "Line 99." not in hands.seen())
        place = hands.one(Scrollback).scroll_y
        gate.set()
        await hands.answered()
        assert hands.one(Scrollback).scroll_y == place
        await hands.press("ctrl+end")
        await hands.sees("The very end.")


@driven
async def test_an_answer_of_a_hundred_thousand_characters_arrives_whole(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    paragraphs = [f"Paragraph {number} {'has words ' * 27}\n\n" for number in range(350)]
    provider.script(openai_stream(*("".join(paragraphs[at : at + 10]) for at in range(0, 350, 10))))
    async with opened(site) as hands:
        await hands.say("All of it")
        await hands.answered()
        await hands.sees("Paragraph 349 has")
        assert len(hands.app.chat.query_one(Scrollback).last_answer) > 90_000


@driven
async def test_an_answer_arrives_whole_however_late_the_timers_of_textual_are(
    site: ChatSite, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = itertools.count()
    monkeypatch.setattr("textual._time.get_time", lambda: time.monotonic() + 0.005 * next(calls))
    provider.script(openai_stream(*(f"Paragraph {number} {'has words ' * 20}\n\n" for number in range(20))))
    async with opened(site) as hands:
        await hands.say("All of it")
        await hands.answered()
        await hands.sees("Paragraph 19 has")


@driven
async def test_what_a_model_says_drives_nothing(site: ChatSite, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("[bold red]x[/] \x1b[31mred \x07 [click](file:///etc/passwd) [/nothing]"))
    async with opened(site) as hands:
        await hands.say("[reverse]Hi[/] \x1b]0;title\x07")
        await hands.sees("[reverse]Hi[/]", "\\x1b[31mred \\x07", "[bold red]x[/]", "(file:///etc/passwd)")
        meta = [
            style
            for line in hands.one(AnswerView).render_lines(hands.one(AnswerView).region.reset_offset)
            for style in line
        ]
        assert not any(segment.style and "@click" in segment.style.meta for segment in meta)


@driven
async def test_a_marked_text_is_copied_without_the_breaks_of_the_screen(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    long = " ".join(f"word{number}" for number in range(30))
    provider.script(openai_stream(long))
    async with opened(site) as hands:
        await hands.say("Say it")
        await hands.sees("word29")
        await hands.answered()
        hands.app.screen.text_select_all()
        assert long in (hands.app.screen.get_selected_text() or "")
        hands.app.screen.clear_selection()
        await hands.press("ctrl+y")
        assert hands.app.clipboard == long


@driven
async def test_without_a_provider_it_says_what_to_do_and_commands_work(site: ChatSite) -> None:
    site.path.write_text(
        f'user_id = "{ANN}"\nmemory_database = "{site.database}"\nembedding_engine = "none"\n'
    )
    async with opened(site) as hands:
        await hands.sees("no provider is in use", "no provider: /provider add")
        await hands.say("Hello?")
        await hands.answered()
        await hands.say(f"/provider add lab --base-url {site.provider.url} --memory")
        await hands.answered()
        await hands.say("/provider lab use")
        await hands.sees("lab")
        await hands.answered()
        await hands.say("Hello again?")
        await hands.sees("Hello there.")


@driven
async def test_a_chat_goes_on_where_it_was_left(site: ChatSite, provider: ScriptedProvider) -> None:
    provider.script(chat("The first answer."))
    async with opened(site) as hands:
        await hands.say("Remember this chat")
        await hands.sees("The first answer.")
        await hands.answered()
    async with opened(site, resume=True) as hands:
        await hands.sees("Remember this chat", "The first answer.", "2 messages of last time")


@driven
async def test_without_memory_nothing_is_stored_and_the_line_says_so(site: ChatSite) -> None:
    async with opened(site, memory=False) as hands:
        await hands.sees("memory off")
        await hands.say("Keep nothing of this")
        await hands.answered()
    assert site.said() == []
    assert InputHistory(ANN).entries() == []


class Broken:
    """Something of ours, of which one method does not work as long as `problem` says so."""

    def __init__(self, part: Any, method: str, problem: Exception) -> None:
        self._part = part
        self._method = method
        self.problem: Exception | None = problem

    def __getattr__(self, name: str) -> Any:
        return self._fail if name == self._method and self.problem else getattr(self._part, name)

    def _fail(self, *_: Any, **__: Any) -> None:
        assert self.problem is not None
        raise self.problem


@driven
async def test_bad_health_is_red_and_the_help_says_why(site: ChatSite) -> None:
    def around(part: Any) -> Any:
        return Broken(part, "status", DatabaseError("the disk is gone"))

    async with opened(site, around=around) as hands:
        await hands.sees("not well: F1 says why")
        assert hands.one(StatusLine).has_class("-red")
        await hands.press("f1")
        await hands.sees("the disk is gone")


@driven
async def test_a_defect_in_a_thread_is_told_and_the_screen_stays(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    broken: list[Broken] = []

    def around(part: Any) -> Any:
        broken.append(Broken(part, "ask", ZeroDivisionError("by zero")))
        return broken[-1]

    provider.script(chat("Fine."))
    async with opened(site, around=around) as hands:
        await hands.say("One")
        await hands.sees("unexpected ZeroDivisionError")
        broken[-1].problem = None
        await hands.say("Two")
        await hands.sees("Fine.")


@driven
async def test_the_memory_screen_opens_and_closes(site: ChatSite) -> None:
    remember(site)
    async with opened(site) as hands:
        await hands.press("f2")
        await hands.until(lambda: isinstance(hands.app.screen, MemoryScreen))
        await hands.sees("Tom, a grey one")
        await hands.press("ctrl+o")
        await hands.until(lambda: hands.app.screen is hands.app.chat)
        assert hands.app.focused is hands.one(Prompt)


@driven
@pytest.mark.parametrize(
    "pressed", [("ctrl+q",), ("ctrl+c", "ctrl+c"), ("ctrl+d",), ("/", "e", "x", "i", "t", "enter")], ids=str
)
async def test_it_can_be_left_while_an_answer_comes_in(
    site: ChatSite, provider: ScriptedProvider, pressed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tui_app, "TWICE_SECONDS", 600.0)  # a busy machine takes long from key to key
    provider.script(openai_stream("Wait ", threading.Event()))
    async with opened(site) as hands:
        await hands.say("I live in Lisbon")
        await hands.sees("Wait")
        await hands.press(*pressed)
        await hands.until(lambda: hands.app.return_code is not None, "leaving")
    assert site.said() == ["I live in Lisbon"]


@driven
async def test_one_ctrl_c_says_how_to_leave(site: ChatSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tui_app, "TWICE_SECONDS", 600.0)  # or it is gone before a busy machine comes to look
    async with opened(site) as hands:
        await hands.press("ctrl+c")
        await hands.sees("Ctrl+C once more quits")
