"""`shepherd chat --resume`, /resume and /clear NAME: earlier conversations are gone on with as they were."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.provider import ScriptedProvider, chat
from tests.terminal.chat_site import ANN, CHAT, PROMPT, ChatSite, say
from tests.terminal.pty_screen import Terminal, terminal

BIKE, BOAT = "My bike is a green Brompton", "My boat is called Nausicaa"


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
    site.configure(memory=True, embedding_engine="none", chat_flush_timeout=5, rag_relevance_threshold=1.0)
    return site


def sent(site: ChatSite) -> list[tuple[str, str]]:
    """The messages of the last prompt, without what memory adds."""
    body: dict[str, Any] = [one.json for one in site.provider.requests if one.body][-1]
    return [(one["role"], one["content"].split("\n\n")[-1]) for one in body["messages"]]


def sent_whole(site: ChatSite) -> Any:
    """The messages of the last prompt, with what memory adds."""
    return [one.json for one in site.provider.requests if one.body][-1]["messages"]


def ids(site: ChatSite) -> dict[str, str]:
    with site.service() as service:
        return {one.preview: one.session_id for one in service.list_sessions(ANN).sessions}


def assert_answered(screen: Terminal, text: str) -> None:
    say(screen, text)
    screen.wait_for("Good.")
    screen.wait_for_line(PROMPT)


def test_a_session_is_gone_on_with_by_its_name_with_all_that_was_said(site: ChatSite) -> None:
    for said in (BIKE, BOAT):
        assert site.piped("--fresh", said).returncode == 0
    before = ids(site)
    with site.service() as service:
        service.rename_session(ANN, before[BIKE], "Bikes 🚲")
    done = site.piped("--resume", "Bikes 🚲", "What colour is it?")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Good.\n", b"")
    assert sent(site)[-3:] == [("user", BIKE), ("assistant", "Good."), ("user", "What colour is it?")]
    assert BOAT not in str(sent(site))
    assert ids(site) == before
    with site.service() as service:
        assert service.read_session(ANN, before[BIKE]).total == 4
        assert service.active_session(ANN) is None


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--resume", "nothing-like-it", "Hello?"), "there is no session 'nothing-like-it' here"),
        (("--resume",), "say which one: --resume ID or NAME"),
        (("--resume", "x", "--continue", "Hello?"), "give one of them"),
        (("--nomemory", "--memory-mode", "read-only", "Hello?"), "--nomemory begins no session"),
        (("--resume", "x", "--nomemory", "Hello?"), "a chat without memory"),
    ],
)
def test_what_cannot_be_resumed_is_said_and_nothing_is_asked(
    site: ChatSite, options: tuple[str, ...], told: str
) -> None:
    done = site.piped(*options)
    assert done.returncode in (2, 3)
    assert told in done.stderr.decode()
    assert not [one for one in site.provider.requests if one.body]
    assert ids(site) == {}


def test_a_chat_that_only_reads_is_told_of_the_memory_and_adds_nothing(site: ChatSite) -> None:
    with site.service() as service:
        service.set_fact(ANN, "city", "Lisbon")
    assert site.piped("--memory-mode", "read-only", BIKE).returncode == 0
    assert "city=Lisbon" in str(sent_whole(site))
    assert ids(site) == {}
    assert site.piped("--memory-mode", "off", BIKE).returncode == 0
    assert "Lisbon" not in str(sent_whole(site))
    assert ids(site) == {}


def test_a_chat_in_a_group_is_remembered_there_and_nowhere_else(site: ChatSite) -> None:
    with site.service() as service:
        service.set_fact(ANN, "city", "Lisbon")
        service.set_fact(ANN, "town", "Porto", group="team")
    assert site.piped("--group", "team", BIKE).returncode == 0
    assert ["town=Porto" in str(sent_whole(site)), "Lisbon" in str(sent_whole(site))] == [True, False]
    with site.service() as service:
        assert [one.text for one in service.documents(ANN, group="team")] == [BIKE, "Good."]
        assert [one.group_name for one in service.list_sessions(ANN).sessions] == ["team"]
        assert not service.list_sessions(ANN, group="other").sessions
    assert site.piped("--group", "team", "--continue", BOAT).returncode == 0
    assert BIKE in str(sent_whole(site))
    assert site.piped("--continue", BOAT).returncode == 0
    assert BIKE not in str(sent_whole(site))
    refused = site.piped("--group", "no/such", BOAT)
    assert (refused.returncode, b"group" in refused.stderr) == (2, True)


@pytest.mark.parametrize(("user", "group"), [("bob", "main"), (ANN, "team")], ids=["user", "group"])
def test_a_session_of_another_user_or_group_is_not_found(site: ChatSite, user: str, group: str) -> None:
    with site.service() as service:
        said = [{"role": "user", "content": BIKE, "id": "m1"}]
        service.remember(user, said, "their-session", group=group)
        done = site.piped("--resume", "their-session", "Hello?")
        assert done.returncode == 3
        assert "there is no session 'their-session' here" in done.stderr.decode()
        assert service.read_session(user, "their-session", group=group).total == 1


def test_a_script_does_not_end_a_conversation_that_runs_elsewhere(site: ChatSite) -> None:
    site.piped(BIKE)
    with site.service() as service:
        running = service.start_session(ANN).session_id
        done = site.piped("--resume", ids(site)[BIKE], "Hello?")
        assert done.returncode == 1
        assert f"the session {running} is active already" in done.stderr.decode()
        active = service.active_session(ANN)
        assert active is not None
        assert active.session_id == running


def test_a_long_session_comes_back_as_far_as_there_is_room(site: ChatSite) -> None:
    site.lab["context_window"] = 2000
    site.configure()
    with site.service() as service:
        said = [
            {"role": role, "content": f"{number} " + "word " * 60, "id": f"m{number}"}
            for number, role in enumerate(["user", "assistant"] * 20)
        ]
        service.remember(ANN, said, "long-session")
    with terminal(*CHAT, "--resume", "long-se", environment=site.environment()) as screen:
        screen.wait_for("older ones did not fit, and stay remembered")
        screen.wait_for_line(PROMPT)
        assert_answered(screen, "And then?")
        say(screen, "exit")
        assert screen.exit_code() == 0
    roles = [role for role, _ in sent(site)]
    assert 3 <= len(roles) < 20
    assert sent(site)[-2][1].startswith("39 ")


def test_a_person_chooses_names_and_comes_back(site: ChatSite) -> None:
    site.piped("--fresh", BIKE)
    site.piped("--fresh", BOAT)
    with terminal(*CHAT, "--resume", environment=site.environment()) as screen:
        screen.wait_for("NAME AND BEGINNING", BOAT, BIKE, "which one?")
        screen.type("Brompton\r")
        screen.wait_for("1   ")
        screen.type("1\r")
        screen.wait_for("2 messages are back")
        screen.wait_for_line(PROMPT)
        assert_answered(screen, "What colour is it?")
        assert sent(site)[-3][1] == BIKE
        say(screen, f"/resume {ids(site)[BOAT][:8]}")
        screen.wait_for("the conversation before is kept as 'conversation-")
        screen.wait_for_line(PROMPT)
        say(screen, "/clear Boats")
        screen.wait_for("Start a new conversation?")
        screen.type("y\r")
        screen.wait_for("a new session begins")
        screen.wait_for_line(PROMPT)
        say(screen, "/resume nothing-like-it")
        screen.wait_for("there is no session 'nothing-like-it' here")
        screen.wait_for_line(PROMPT)
        say(screen, "/sessions search Nausicaa")
        screen.wait_for("Boats: My boat")
        screen.wait_for_line(PROMPT)
        say(screen, "exit")
        assert screen.exit_code() == 0
    with site.service() as service:
        assert service.find_session(ANN, "Boats").session_id == ids(site)[BOAT]


def test_calls_of_tools_come_back_where_this_machine_has_them(site: ChatSite) -> None:
    site.piped(BIKE)
    session_id = ids(site)[BIKE]
    path = next(path for path in site.home.rglob("*.json") if session_id in path.read_text())
    table = json.loads(path.read_text())
    call = {"id": "c1", "type": "function", "function": {"name": "recall", "arguments": "{}"}}
    table["messages"][1:1] = [
        {"role": "assistant", "content": "", "tool_calls": [call], "id": "t1"},
        {"role": "tool", "content": "nothing", "tool_call_id": "c1", "id": "t2"},
    ]
    path.write_text(json.dumps(table))
    assert site.piped("--resume", session_id, "Hello?").returncode == 0
    assert [role for role, _ in sent(site)][-5:] == ["user", "assistant", "tool", "assistant", "user"]
    with site.service() as service:
        later = [
            {"role": "user", "content": "Said elsewhere", "id": "e1"},
            {"role": "assistant", "content": "Good.", "id": "e2"},
        ]
        service.remember(ANN, later, session_id)
    assert site.piped("--resume", session_id, "Hello?").returncode == 0
    assert "tool" not in [role for role, _ in sent(site)]
    assert "Said elsewhere" in str(sent(site))
