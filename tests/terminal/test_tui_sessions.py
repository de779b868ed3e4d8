"""The TUI shows its session, says when that was ended elsewhere, and asks before it ends another."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shepherd_memory.frontends.tui.chat.status_line import StatusLine
from tests.provider import ScriptedProvider, chat
from tests.terminal.chat_site import ANN, ChatSite
from tests.terminal.test_tui_chat import LARGE, opened
from tests.terminal.tui_driving import driven


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
    site.configure(memory=True, embedding_engine="none", rag_relevance_threshold=1.0)
    return site


@driven
async def test_the_status_line_shows_the_session_and_that_it_was_ended_elsewhere(site: ChatSite) -> None:
    async with opened(site, lives=True) as hands:
        session = hands.app.chat.session
        await hands.say("Hello?")
        await hands.answered()
        shown = hands.one(StatusLine).figures.session
        assert shown.startswith(f"{session.session_id[:8]} · ")
        assert shown.endswith(" · active")
        await hands.sees(f"{session.session_id[:8]} · ", " · active")
        with site.service() as service:
            service.end_session(ANN, session.session_id)
        await hands.sees(" · ended elsewhere")
        await hands.say("Still there?")
        await hands.sees("this conversation was ended elsewhere (client): /clear starts another")
        await hands.say("/clear")
        await hands.press("y")
        await hands.sees("a new session begins", " · active")


@driven
async def test_a_new_chat_says_that_it_is_told_of_the_last_one(site: ChatSite) -> None:
    async with opened(site, lives=True) as hands:
        await hands.say("My bike is green")
        await hands.answered()
    async with opened(site, LARGE, lives=True) as hands:
        await hands.sees("It is told", "of your last conversation.")
        await hands.say("Hello?")
        await hands.answered()
    assert "[human — ann]: My bike is green" in str(site.provider.requests[-1].json["messages"])
    async with opened(site, LARGE, lives=True, fresh=True) as hands:
        await hands.sees("Hello. What you say here is remembered")
        assert "last conversation" not in hands.seen()


@pytest.mark.parametrize(("key", "is_ended"), [("y", True), ("escape", False)])
@driven
async def test_one_that_runs_elsewhere_ends_only_if_the_person_says_so(
    site: ChatSite, key: str, is_ended: bool
) -> None:
    with site.service() as service:
        other = service.start_session(ANN).session_id
        async with opened(site, LARGE, lives=True) as hands:
            await hands.sees("Start a new conversation? What you talked about is remembered.")
            await hands.sees("Another is running elsewhere, and would end.")
            await hands.press(key)
            await hands.until(lambda: "Start a new" not in hands.seen(), "the chat")
            own = hands.app.chat.session
            await hands.until(lambda: own.life.state == ("active" if is_ended else ""), "one of them active")
            await hands.say("Hello?")
            await hands.answered()
            active = service.active_session(ANN)
            assert active is not None
            assert active.session_id == (own.session_id if is_ended else other)
