"""`shepherd tui` as a process on a real terminal, and the terminal after it."""

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.endpoint import ScriptedEndpoint, hang
from tests.provider import ScriptedProvider, chat, openai_stream
from tests.terminal.chat_site import ChatSite
from tests.terminal.pty_screen import ALT_ENTER, DEAF_TO_HANGUPS, ENTER, ESCAPE, Terminal, ctrl, terminal
from tests.terminal.shell import process

TUI = (sys.executable, "-m", "shepherd_memory", "tui")
OTHER_SCREEN, USUAL_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
def site(tmp_path: Path, provider: ScriptedProvider) -> ChatSite:
    folder = tmp_path / "site"
    folder.mkdir()
    site = ChatSite(folder, provider)
    site.configure(memory=True, embedding_engine="none", chat_flush_timeout=5)
    return site


def on_terminal(site: ChatSite, *options: str, **more: Any) -> AbstractContextManager[Terminal]:
    return terminal(*TUI, *options, environment=site.environment(), **more)


def assert_as_before(screen: Terminal, before: list[Any]) -> None:
    """The terminal is set as it was, and shows the page that it showed."""
    assert screen.settings() == before
    assert screen.raw.rindex(USUAL_SCREEN) > screen.raw.rindex(OTHER_SCREEN)
    for mode in (b"1000", b"1003", b"1006", b"2004"):
        assert screen.raw.rindex(b"\x1b[?%bl" % mode) > screen.raw.rindex(b"\x1b[?%bh" % mode)
    assert screen.raw.rindex(b"\x1b[?25h") > screen.raw.rindex(b"\x1b[?25l")


def test_a_prompt_is_answered_and_the_terminal_is_as_it_was(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    provider.script(openai_stream("It is **very** ", "nice there."))
    with on_terminal(site) as screen:
        before = screen.settings()
        screen.wait_for("Hello.", "memory on")
        screen.type(f"all of this{ctrl('u')}I live in Lisbon{ALT_ENTER}now{ENTER}")
        screen.wait_for("I live in Lisbon", "It is very nice there.")
        screen.type(ctrl("q"))
        assert screen.exit_code() == 0
        assert_as_before(screen, before)
    assert site.said() == ["I live in Lisbon\nnow"]


def test_it_goes_on_with_a_session_of_a_group_and_says_what_it_cannot_find(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    with site.service() as service:
        service.remember("ann", [{"role": "user", "content": "My bike is green"}], "bikes", group="team")
    with on_terminal(site, "--resume", "bikes") as screen:
        screen.wait_for("there is no session 'bikes' here")
        assert screen.exit_code() == 3
        assert OTHER_SCREEN not in screen.raw
    with on_terminal(site, "--resume", "bikes", "--group", "team", "--wake") as screen:
        screen.wait_for("My bike is green", "Hello there.")
        screen.type(ctrl("q"))
        assert screen.exit_code() == 0
    assert "My bike is green" in str(provider.requests[-1].json["messages"])


@pytest.mark.parametrize(("mode", "is_told"), [("read-only", True), ("off", False)])
def test_in_a_session_of_another_memory_mode_nothing_is_remembered(
    site: ChatSite, provider: ScriptedProvider, mode: str, is_told: bool
) -> None:
    provider.default = chat("Good.")
    with site.service() as service:
        service.set_fact("ann", "city", "Lisbon")
    with on_terminal(site, "--memory-mode", mode) as screen:
        screen.wait_for("Hello.")
        screen.type(f"I like tea{ENTER}")
        screen.wait_for("I like tea", "Good.")
        screen.type(ctrl("q"))
        assert screen.exit_code() == 0
    assert ("city=Lisbon" in str(provider.requests[-1].json["messages"])) == is_told
    assert site.said() == []


def test_a_paste_is_one_message(site: ChatSite, provider: ScriptedProvider) -> None:
    with on_terminal(site) as screen:
        screen.wait_for("Hello.")
        screen.paste("one\ntwo\nthree")
        screen.wait_for("three")
        screen.type(ENTER)
        screen.wait_for("Hello there.")
        screen.type(ctrl("q"))
        assert screen.exit_code() == 0
    assert [text.partition("\n\n")[0] for text in site.heard()] == ["one\ntwo\nthree"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_ends_it_in_order_while_it_starts(site: ChatSite, number: signal.Signals) -> None:
    with on_terminal(site) as screen:
        before = screen.settings()
        while not handles_hangups(screen.pid):
            os.sched_yield()
        screen.send_signal(number)
        # Interrupted in some imports, Python ends by the signal itself, which a shell shows as the same code.
        assert screen.exit_code() in {128 + number, *([-number] if number == signal.SIGINT else [])}
        assert screen.settings() == before
        assert b"Aborted" not in screen.raw


def handles_hangups(pid: int) -> bool:
    """As only a program does that has said so."""
    caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    assert caught is not None
    return bool(int(caught[1], 16) >> signal.SIGHUP - 1 & 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_ends_it_in_order_while_an_answer_comes_in(
    site: ChatSite, provider: ScriptedProvider, number: signal.Signals
) -> None:
    provider.script(openai_stream("Wait ", threading.Event()))
    with on_terminal(site) as screen:
        before = screen.settings()
        screen.wait_for("Hello.")
        screen.type(f"I live in Lisbon{ENTER}")
        screen.wait_for("Wait")
        screen.send_signal(number)
        assert screen.exit_code() == 128 + number
        assert_as_before(screen, before)
        assert screen.left_behind() == []
    assert site.said() == ["I live in Lisbon"]


def test_a_window_that_is_closed_ends_it_and_loses_nothing(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    provider.script(openai_stream("Wait ", threading.Event()))
    with on_terminal(site) as screen:
        screen.wait_for("Hello.")
        screen.type(f"I live in Lisbon{ENTER}")
        screen.wait_for("Wait")
        screen.hang_up()
        screen.exit_code()
    assert site.said() == ["I live in Lisbon"]


def test_a_window_that_is_closed_is_noticed_where_hangups_are_ignored(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    provider.script(openai_stream(*("word " * 20 for _ in range(200)), threading.Event()))
    with terminal(*DEAF_TO_HANGUPS, *TUI, environment=site.environment()) as screen:
        screen.wait_for("Hello.")
        screen.type(f"I live in Lisbon{ENTER}")
        screen.wait_for("word")
        screen.hang_up()
        assert screen.exit_code() == 128 + signal.SIGHUP
    assert site.said() == ["I live in Lisbon"]


def test_a_provider_that_goes_away_leaves_the_screen_alone(site: ChatSite) -> None:
    with ScriptedProvider() as gone:
        site.lab["base_url"] = gone.url
        site.configure()
    with on_terminal(site) as screen:
        before = screen.settings()
        screen.wait_for("Hello.")
        screen.type(f"Anybody?{ENTER}")
        screen.wait_for("Anybody?", "lab")
        screen.wait_until(
            lambda lines: any("reach" in line or "connect" in line for line in lines), "a reason"
        )
        screen.type(ctrl("q"))
        assert screen.exit_code() == 0
        assert_as_before(screen, before)


def test_the_wait_for_memory_is_shown_and_ctrl_c_ends_it(site: ChatSite, provider: ScriptedProvider) -> None:
    provider.script(chat("Nice."))
    with ScriptedEndpoint() as endpoint:
        endpoint.default = hang()
        site.configure(
            memory_extraction_endpoint=endpoint.url, memory_extraction_model="m", chat_flush_timeout=600
        )
        with on_terminal(site) as screen:
            screen.wait_for("Hello.")
            screen.type(f"I live in Lisbon{ENTER}")
            screen.wait_for("Nice.")
            screen.type(ctrl("q"))
            screen.wait_for("remembering … ", "Ctrl-C leaves it for later")
            screen.type(ctrl("c"))
            screen.wait_for("it goes on at the next start")
            assert screen.exit_code() == 0


def test_escape_and_a_smaller_window_work(site: ChatSite, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("Wait ", threading.Event()))
    with on_terminal(site, columns=120, lines=40) as screen:
        screen.wait_for("Hello.", "What memory told")
        screen.type(f"Hello?{ENTER}")
        screen.wait_for("Wait")
        screen.type(ESCAPE)
        screen.wait_for("cancelled")
        screen.resize(40, 12)
        screen.wait_for("cancelled", gone="What memory told")
        screen.type(ctrl("q"))
        assert screen.exit_code() == 0


def test_its_log_is_for_its_user_alone(site: ChatSite) -> None:
    environment = {**site.environment(), "SHEPHERD_DEBUG": "1"}
    log = site.home / "shepherd" / "tui.log"
    log.parent.mkdir()
    log.touch(mode=0o644)
    for _ in range(2):
        with terminal(*TUI, environment=environment) as screen:
            screen.wait_for("scripted-1")
            screen.type(ctrl("q"))
            assert screen.exit_code() == 0
        assert log.stat().st_mode & 0o777 == 0o600
        log.unlink()


FAILING = """
from shepherd_memory.frontends.cli import main
from shepherd_memory.frontends.tui.chat.input_lines import Hint

def show(self, commands):
    secret = "nobody may see this"
    if commands:
        raise RuntimeError("out of\\x1b[31m order")

Hint.show = show
main()
"""


@pytest.mark.parametrize("debug", [False, True])
def test_a_failure_nobody_expected_is_one_line_on_a_terminal_that_is_as_it_was(
    site: ChatSite, debug: bool
) -> None:
    log = site.home / "shepherd" / "tui.log"
    options = ("--debug",) if debug else ()
    with terminal(sys.executable, "-c", FAILING, *options, "tui", environment=site.environment()) as screen:
        before = screen.settings()
        screen.wait_for("Hello.")
        screen.type("/")
        assert screen.exit_code() == 1
        assert_as_before(screen, before)
        said = screen.raw[screen.raw.rindex(USUAL_SCREEN) :].decode()
    assert (
        r"shepherd: unexpected RuntimeError: out of\x1b[31m order; `shepherd tui --continue` goes on" in said
    )
    assert str(log) in said
    assert "nobody may see this" not in said
    assert "Traceback" not in said
    assert log.exists() == debug
    if debug:
        assert "RuntimeError: out of" in log.read_text()


@pytest.mark.parametrize("is_closed", [False, True])
def test_without_a_terminal_it_says_what_to_use(is_closed: bool) -> None:
    ended = process("tui", preexec_fn=(lambda: os.close(0)) if is_closed else None)
    assert ended.returncode == 2
    assert ended.stderr == "shepherd: this needs a terminal; `shepherd chat` works without one\n"
