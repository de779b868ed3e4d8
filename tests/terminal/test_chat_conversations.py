"""Conversations as a person at `shepherd chat` has them: handed on, greeted with, and never ended unasked."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.provider import ScriptedProvider, chat
from tests.terminal.chat_site import ANN, CHAT, PROMPT, ChatSite, say
from tests.terminal.pty_screen import Terminal, terminal

BIKE = "My bike is a green Brompton"
QUESTION = "Start a new conversation? What you talked about is remembered. [y/N]:"


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as provider:
        provider.default = chat("Good.")
        yield provider


@pytest.fixture
def site(tmp_path: Path, provider: ScriptedProvider) -> ChatSite:
    folder = tmp_path / "site"
    folder.mkdir()
    site = ChatSite(folder, provider)
    # By words recall would find it too.
    site.configure(memory=True, embedding_engine="none", chat_flush_timeout=5, rag_relevance_threshold=1.0)
    return site


def prompts(site: ChatSite) -> list[str]:
    return [
        json.dumps(one.json["messages"], ensure_ascii=False) for one in site.provider.requests if one.body
    ]


@contextmanager
def asked(site: ChatSite, *options: str) -> Iterator[Terminal]:
    """A chat that asks something before it begins."""
    with terminal(*CHAT, *options, environment=site.environment()) as screen:
        screen.wait_for(QUESTION)
        yield screen


def test_one_question_is_told_of_the_last_one_unless_it_is_fresh(site: ChatSite) -> None:
    assert site.piped(BIKE).returncode == 0
    assert site.piped("Hello?").stdout == b"Good.\n"
    assert f"[human — {ANN}]: {BIKE}" in prompts(site)[-1]
    assert site.piped("--fresh", "Hello?").returncode == 0
    assert "<previous-session" not in prompts(site)[-1]
    assert site.said() == [BIKE, "Hello?", "Hello?"]


def test_one_question_never_asks_and_never_ends_another(site: ChatSite) -> None:
    with site.service() as service:
        running = service.start_session(ANN).session_id
        done = site.piped("Hello?")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"Good.\n", b"")
        active = service.active_session(ANN)
        assert active is not None
        assert active.session_id == running


def test_the_model_greets_first_if_it_is_to(site: ChatSite, provider: ScriptedProvider) -> None:
    site.piped(BIKE)
    provider.script(chat("Welcome back."), chat("It is green."))
    done = site.piped("--wake", "What colour is it?")
    assert done.stdout == b"Welcome back.\nIt is green.\n"
    assert BIKE in prompts(site)[-2]
    assert site.said() == [BIKE, "What colour is it?"]
    provider.script(chat("Hello again."))
    assert site.piped("--wake").stdout == b"Hello again.\n"
    provider.script(chat("Hello."))
    lines = site.piped("--wake", "--json").stdout.decode().splitlines()
    assert [json.loads(line)["event"] for line in lines][-1] == "response_complete"


@pytest.mark.parametrize(
    "options",
    [("--fresh", "--continue"), ("--server", "http://127.0.0.1:1", "--wake")],
    ids=["both", "server"],
)
def test_options_that_do_not_go_together_are_refused(site: ChatSite, options: tuple[str, ...]) -> None:
    done = site.piped(*options, "Hello?")
    assert done.returncode == 2
    assert b"--fresh" in done.stderr


def test_a_conversation_elsewhere_ends_only_if_the_person_says_so(site: ChatSite) -> None:
    with site.on_terminal() as first:
        say(first, BIKE)
        first.wait_for("Good.")
        first.wait_for_line(PROMPT)
        with asked(site) as second:
            second.wait_for("a conversation is running elsewhere: ")
            second.type("n\r")
            second.wait_for("then this chat stays beside it")
            second.wait_for_line(PROMPT)
            say(second, "exit")
            assert second.exit_code() == 0
        with asked(site, "--wake") as second:
            second.type("y\r")
            second.wait_for("told of your last conversation", "Good.")
            second.wait_for_line(PROMPT)
            say(first, "Still there?")
            first.wait_for("this conversation was ended elsewhere (replaced)")
            say(second, "exit")
            assert second.exit_code() == 0
        say(first, "exit")
        assert first.exit_code() == 0
    assert BIKE in prompts(site)[-1]
    assert site.said() == [BIKE]
