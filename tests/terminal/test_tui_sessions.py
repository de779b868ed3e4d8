"""The TUI shows its session, says when that was ended elsewhere, and asks before it ends another."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shepherd_memory.frontends.tui.chat.screen import ScreenStart
from shepherd_memory.frontends.tui.chat.status_line import StatusLine
from tests.provider import ScriptedProvider, chat, openai_stream
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
        assert hands.one(StatusLine).figures.session.startswith(f"{session.session_id[:8]} · ")
        await hands.sees(f"{session.session_id[:8]} · ", " · active")
        with site.service() as service:
            service.end_session(ANN, session.session_id)
        await hands.sees("   ended elsewhere")
        await hands.say("Still there?")
        await hands.sees("this conversation was ended elsewhere (client): /clear starts another")
        await hands.say("/clear")
        await hands.press("y")
        await hands.sees("a new session begins", " · active")


@driven
async def test_a_small_screen_shows_that_the_session_was_ended_elsewhere(site: ChatSite) -> None:
    async with opened(site, (40, 12), lives=True) as hands:
        await hands.say("Hello?")
        await hands.answered()
        await hands.sees(" tokens")
        with site.service() as service:
            service.end_session(ANN, hands.app.chat.session.session_id)
        await hands.sees(" ended elsewhere")


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


def _talked(site: ChatSite) -> None:
    with site.service() as service:
        for session_id, said in (("bike-session", "My bike is green"), ("boat-session", "My boat is blue")):
            messages = [
                {"role": "user", "content": said, "id": f"{session_id}-1"},
                {"role": "assistant", "content": "I see.", "id": f"{session_id}-2"},
            ]
            service.remember(ANN, messages, session_id)
        service.rename_session(ANN, "boat-session", "\x1b[31mBoats\u202e 👩‍👩‍👧 " + "漢" * 150)


@pytest.mark.parametrize("size", [LARGE, (40, 12)], ids=["large", "tiny"])
@driven
async def test_a_person_filters_the_picker_and_goes_on_with_a_conversation(
    site: ChatSite, size: tuple[int, int]
) -> None:
    _talked(site)
    async with opened(site, size, lives=True) as hands:
        session = hands.app.chat.session
        await hands.say("Hello?")
        await hands.answered()
        first = session.session_id
        await hands.say("/resume")
        await hands.sees("Go on with an earlier", "Boats", "My bike is green", "2 messages")
        assert "\u202e" not in hands.seen()
        await hands.type("BIKE")
        await hands.until(lambda: "Boats" not in hands.seen(), "filtered")
        await hands.press("escape")
        await hands.until(lambda: "Go on with an earlier" not in hands.seen(), "closed")
        assert session.session_id == first
        await hands.say("/resume")
        await hands.sees("Boats", "My bike is green")
        await hands.press("down", "enter")
        await hands.sees("2 messages are back")
        assert session.session_id == "bike-session"
        await hands.say("What colour is it?")
        await hands.answered()
    sent = [one["content"] for one in site.provider.requests[-1].json["messages"]]
    assert any("My bike is green" in one for one in sent)


@driven
async def test_a_conversation_is_cleared_under_a_name_and_resumed_by_it(site: ChatSite) -> None:
    async with opened(site, LARGE, lives=True) as hands:
        session = hands.app.chat.session
        await hands.say("My bike is green")
        await hands.answered()
        first = session.session_id
        await hands.say(f"/clear {'x' * 300}")
        await hands.press("y")
        await hands.sees("at most 200 characters")
        assert session.session_id == first
        await hands.say("/clear Bikes")
        await hands.press("y")
        await hands.sees("a new session begins")
        await hands.say("/resume nothing-like-it")
        await hands.sees("there is no session 'nothing-like-it' here")
        await hands.say("/resume Bikes")
        await hands.sees("My bike is green", "2 messages are back")
        assert session.session_id == first


@driven
async def test_the_model_greets_first_and_the_person_goes_on_from_there(site: ChatSite) -> None:
    site.provider.script(openai_stream("Hello again, how is the boat?"))
    async with opened(site, LARGE, start=ScreenStart(wakes=True), lives=True) as hands:
        await hands.sees("Hello again, how is the boat?")
        await hands.say("It is well")
        await hands.answered()
        assert [one["role"] for one in hands.app.chat.session.messages[1:]] == [
            "assistant",
            "user",
            "assistant",
        ]
    with site.service() as service:
        said = [one.text for one in service.documents(ANN)]
    assert said == ["Hello again, how is the boat?", "It is well", "Good."]


@driven
async def test_the_screen_may_begin_with_the_choice_of_an_earlier_conversation(site: ChatSite) -> None:
    _talked(site)
    async with opened(site, LARGE, start=ScreenStart(chooses=True), lives=True) as hands:
        await hands.sees("Go on with an earlier", "Boats", "My bike is green")
        await hands.press("down", "enter")
        await hands.sees("2 messages are back")
        assert hands.app.chat.session.session_id == "bike-session"


@driven
async def test_a_screen_of_a_group_shows_and_changes_what_is_its_own(site: ChatSite) -> None:
    with site.service() as service:
        service.set_fact(ANN, "city", "Lisbon")
        service.set_fact(ANN, "town", "Porto", group="team")
    async with opened(site, LARGE, lives=True, group="team") as hands:
        await hands.say("/facts list")
        await hands.sees("town", "Porto")
        assert "Lisbon" not in hands.seen()
        await hands.say("/facts set street Baixa")
        await hands.sees("Baixa")
        await hands.say("/clear")
        await hands.say("Hello?")
        await hands.answered()
        assert hands.app.chat.session.group == "team"
    with site.service() as service:
        assert {one.key for one in service.facts(ANN, group="team")} == {"town", "street"}
        assert [one.group_name for one in service.list_sessions(ANN).sessions] == ["team"]
