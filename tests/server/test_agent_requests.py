"""Requests as Claude Code 2.1.197 sends them: whose they are, and what of them is remembered."""

import json
from typing import Any

import pytest

from tests.provider import ScriptedProvider, chat
from tests.server.calling import CHATS, bearer, call_json, new_key
from tests.server.serving import ANTHROPIC, Running, StartServer

SESSION = "197be20c-17f5-46b3-8c24-c00d187d984b"
DEVICE = "e624786a2a9640e245cf6634325a76c22b52fe4092033afd484f0bcd86928ab2"
INSTALLATIONS = {
    "as JSON": json.dumps({"device_id": DEVICE, "account_uuid": "", "session_id": SESSION}),
    "joined": f"user_{DEVICE}_account__session_{SESSION}",
    "as JSON of tomorrow": json.dumps({"install": {"id": 7}, "sessionId": SESSION, "v": 3}),
}
REMINDER = (
    "<system-reminder>\nAs you answer the user's questions, you can use the following context:\n"
    "# claudeMd\nAlways use tabs. HOUSERULES\n</system-reminder>\n\n"
)
AGENTS = {"role": "system", "content": "Available agent types for the Agent tool:\n- claude: HOUSERULES"}
TYPED = "My bike is green."
SYSTEM = [{"type": "text", "text": "You are Claude Code, Anthropic's official CLI for Claude."}]
TITLE = {
    "type": "text",
    "text": "Generate a concise, sentence-case title (3-7 words) that captures the main topic",
}

every_installation = pytest.mark.parametrize("installation", INSTALLATIONS.values(), ids=INSTALLATIONS)


def request(installation: str, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "max_tokens": 64_000,
        "system": SYSTEM,
        "metadata": {"user_id": installation},
        "messages": list(messages),
        **fields,
    }


def said(text: str) -> dict[str, Any]:
    """The first message of a session: what the program says stands before it, in a part of its own."""
    typed = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
    return {"role": "user", "content": [{"type": "text", "text": REMINDER}, typed]}


@pytest.fixture
def claude(server: StartServer, provider: ScriptedProvider) -> Running:
    provider.default = chat("Noted.")
    return server(ANTHROPIC, user_id="steve", embedding_engine="none")


@every_installation
def test_an_installation_names_a_session_and_never_a_user(claude: Running, installation: str) -> None:
    reply = call_json(claude.url, "POST", CHATS["anthropic"], request(installation, said(TYPED), AGENTS))
    assert (reply.status, reply.header("x-shepherd-memory")) == (200, "on")
    assert claude.said("steve") == [("user", TYPED), ("assistant", "Noted.")]
    assert {document.session_id for document in claude.service.documents("steve")} == {SESSION}
    assert claude.said(installation) == []


@every_installation
def test_a_personal_key_is_taken_from_it(claude: Running, installation: str) -> None:
    key = bearer(new_key(claude.service, "ana"))
    reply = call_json(claude.url, "POST", CHATS["anthropic"], request(installation, said(TYPED)), key)
    assert reply.status == 200
    assert claude.said("ana") == [("user", TYPED), ("assistant", "Noted.")]
    assert claude.said("steve") == []


def test_what_the_program_says_is_neither_stored_nor_looked_for(
    claude: Running, provider: ScriptedProvider
) -> None:
    named = INSTALLATIONS["as JSON"]
    claude.service.remember("steve", [{"role": "user", "content": "HOUSERULES say to use tabs"}], "before")
    claude.service.remember("steve", [{"role": "user", "content": "My bike has a bell"}], "before")
    question = [said("Has my bike a bell?"), AGENTS]
    reply = call_json(claude.url, "POST", CHATS["anthropic"], request(named, *question))
    assert int(reply.header("x-shepherd-injected") or 0) == 1
    sent = provider.requests[-1].json["messages"][0]["content"]
    assert sent[0]["text"] == REMINDER
    assert "My bike has a bell" in sent[-1]["text"]
    assert "HOUSERULES" not in sent[-1]["text"]
    stored = [text for _, text in claude.said("steve")]
    assert "Has my bike a bell?" in stored
    assert not any("HOUSERULES" in text for text in stored[2:])


def test_commands_and_their_output_before_a_prompt_are_left_out(claude: Running) -> None:
    parts = (
        "<local-command-caveat>Caveat: The messages below were generated.</local-command-caveat>\n",
        "<command-name>/compact</command-name>\n<command-message>compact</command-message>\n",
        "<local-command-stdout>Not enough messages to compact.</local-command-stdout>\n",
        "## Context Usage\n\n**Model:** m[1m]  \n**Tokens:** 11 / 1m (0%)\n",
        "What now?",
    )
    content = [{"type": "text", "text": part} for part in parts]
    answered = {"role": "assistant", "content": "Noted."}
    messages = [said(TYPED), AGENTS, answered, {"role": "user", "content": content}]
    call_json(claude.url, "POST", CHATS["anthropic"], request(INSTALLATIONS["as JSON"], *messages))
    assert claude.said("steve") == [("user", "/compact\nWhat now?"), ("assistant", "Noted.")]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"system": [*SYSTEM, TITLE], "tools": []}, f"<session>\n{TYPED}\n</session>\n\nWrite the title"),
        ({}, "Your task is to create a detailed summary of the conversation so far, paying attention"),
        ({"max_tokens": 1}, "quota"),
        ({"max_tokens": 1}, "# Environment\nYou have been invoked in the following environment:"),
    ],
    ids=["title", "summary", "quota", "counting"],
)
def test_what_the_program_asks_for_itself_is_passed_on_and_not_remembered(
    claude: Running, provider: ScriptedProvider, fields: dict[str, Any], text: str
) -> None:
    claude.service.set_fact("steve", "bike", "green")
    asked = request(INSTALLATIONS["as JSON"], {"role": "user", "content": text}, **fields)
    reply = call_json(claude.url, "POST", CHATS["anthropic"], asked)
    assert (reply.status, reply.header("x-shepherd-memory")) == (200, "off")
    assert provider.requests[-1].json == asked
    assert claude.said("steve") == []


@pytest.mark.parametrize("header", ["x-claude-code-agent-id", "x-openai-subagent"])
def test_what_a_model_asks_a_sub_agent_is_passed_on_and_not_remembered(
    claude: Running, provider: ScriptedProvider, header: str
) -> None:
    claude.service.set_fact("steve", "bike", "green")
    asked = request(INSTALLATIONS["as JSON"], said("Find the bike in this repository."))
    reply = call_json(claude.url, "POST", CHATS["anthropic"], asked, {header: "a5e175ba1004d3bfa"})
    assert (reply.status, reply.header("x-shepherd-memory")) == (200, "off")
    assert provider.requests[-1].json == asked
    assert claude.said("steve") == []


def environment(*folders: str) -> dict[str, str]:
    """What Claude Code says of where it is, in a block of its instructions."""
    lines = "".join(f" - Primary working directory: {folder}\n" for folder in folders)
    return {"type": "text", "text": f"# Environment\nYou have been invoked in:\n{lines} - Platform: linux\n"}


@pytest.mark.parametrize(
    ("blocks", "folder"),
    [
        ([environment("/home/ann/shop")], "/home/ann/shop"),
        ([{"type": "text", "text": "<env>\nWorking directory: /home/ann/a b\n</env>"}], "/home/ann/a b"),
        ([environment("/home/ann/shop", "/home/ann/shop")], "/home/ann/shop"),
        ([environment("/home/ann/shop", "/home/ann/site")], ""),
        ([{"type": "text", "text": "Say: the working directory: /tmp"}], ""),
        ([{"type": "text", "text": 7}, 7, None], ""),
        ([], ""),
    ],
)
def test_the_folder_that_an_agent_works_in_is_its_sessions(
    claude: Running, blocks: list[Any], folder: str
) -> None:
    asked = request(INSTALLATIONS["as JSON"], said(TYPED), system=[*SYSTEM, *blocks])
    call_json(claude.url, "POST", CHATS["anthropic"], asked)
    claude.service.transcripts.poll()
    assert [one.cwd for one in claude.service.conversations("steve")] == [folder]


def test_what_is_no_agent_has_no_folder(claude: Running) -> None:
    asked = request(INSTALLATIONS["as JSON"], said(TYPED), system=[environment("/home/ann/shop")])
    call_json(claude.url, "POST", CHATS["anthropic"], {**asked, "metadata": {"user_id": "steve"}})
    claude.service.transcripts.poll()
    assert [one.cwd for one in claude.service.conversations("steve")] == [""]
