"""Claude Code from npm, changed in nothing but its base URL."""

import json
from itertools import count
from pathlib import Path

import pytest

from tests.agents.agent_site import ASKED, CONFIGURED, KNOWN, NOTED, TOLD, AgentSite, OpenSite
from tests.agents.prefix import assert_kept
from tests.agents.programs import claude_code
from tests.endpoint import Step
from tests.provider import Piece, Stream, ToolCall, anthropic_events
from tests.terminal.shell import good

pytestmark = pytest.mark.usefixtures("_node")

_numbers = count()


def says(*pieces: Piece) -> Step:
    """A message with an id of its own: what has the same id is one message to this client."""
    named = f'"msg_{next(_numbers)}"'.encode()
    events = anthropic_events(pieces)
    return Stream(
        [one.replace(b'"msg_scripted"', named) if isinstance(one, bytes) else one for one in events]
    )


def runs(command: str) -> Step:
    """A call of its shell."""
    arguments = json.dumps({"command": command, "description": "Try it"})
    return says(ToolCall(f"toolu_{next(_numbers)}", "Bash", arguments))


def last_user_text(site: AgentSite) -> str:
    (*_, message) = [one for one in site.sent[-1].json["messages"] if one["role"] == "user"]
    return json.dumps(message["content"])


@pytest.mark.parametrize("engine", ["onnx", "none"])
@pytest.mark.parametrize("user", ["ana", CONFIGURED], ids=["with a personal key", "without keys"])
def test_what_it_is_told_in_one_run_it_knows_in_the_next(
    open_site: OpenSite, home: Path, user: str, engine: str
) -> None:
    site = open_site(embedding_engine=engine)
    key = site.new_key(user) if user == "ana" else "none"
    claude = claude_code(home, site.url, key)
    site.answer(says(NOTED), says(KNOWN))
    assert claude.run(TOLD) == NOTED
    assert claude.run(ASKED) == KNOWN
    assert f"user: {TOLD}" in last_user_text(site)
    assert site.documents(user) == [
        ("user", TOLD),
        ("assistant", NOTED),
        ("user", ASKED),
        ("assistant", KNOWN),
    ]
    assert site.documents(CONFIGURED if user == "ana" else "ana") == []


def test_a_tool_loop_and_the_turn_after_it_keep_the_prefix(open_site: OpenSite, home: Path) -> None:
    site = open_site()
    good("remember", TOLD, "--user", CONFIGURED)
    claude = claude_code(home, site.url, "none")
    site.answer(runs("echo one"), runs("echo two"), says(KNOWN), says("Green."))
    assert claude.run(ASKED) == KNOWN
    assert claude.run("--continue", "And its colour?") == "Green."
    assert len(site.sent) == 4
    assert_kept([body for _, body in site.recorder.bodies], [request.body for request in site.sent])
    assert all(TOLD in json.dumps(request.json["messages"][0]) for request in site.sent)
    assert site.documents(CONFIGURED)[1:] == [
        ("user", ASKED),
        ("assistant", KNOWN),
        ("user", "And its colour?"),
        ("assistant", "Green."),
    ]


def test_what_the_model_tells_a_sub_agent_is_not_remembered(open_site: OpenSite, home: Path) -> None:
    site = open_site()
    task = {"description": "Look", "prompt": "Find the heron.", "subagent_type": "general-purpose"}
    spawn = says(ToolCall("toolu_task", "Agent", json.dumps(task)))
    site.answer(spawn, says("It is in AGENTS.md."), says(KNOWN))
    assert claude_code(home, site.url, "none").run(ASKED) == KNOWN
    assert "Find the heron." in json.dumps(site.sent[1].json["messages"][0])
    assert site.sent[1].body == site.recorder.bodies[1][1]
    assert site.documents(CONFIGURED) == [("user", ASKED), ("assistant", KNOWN)]


def test_of_a_slash_command_only_its_name_is_remembered(open_site: OpenSite, home: Path) -> None:
    site = open_site()
    site.answer(says("It is there."))
    assert claude_code(home, site.url, "none").run("/init") == "It is there."
    assert "analyze this codebase" in last_user_text(site)
    assert site.documents(CONFIGURED) == [("user", "/init"), ("assistant", "It is there.")]
