"""Codex from npm, changed in nothing but the provider in its configuration."""

import base64
import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agent_site import ASKED, CONFIGURED, KNOWN, NOTED, TOLD, AgentSite, OpenSite
from tests.agents.prefix import assert_kept
from tests.agents.programs import codex
from tests.endpoint import Body, Step, by_content
from tests.provider import ToolCall, chat, responses_stream
from tests.terminal.shell import good

pytestmark = pytest.mark.usefixtures("_node")

AGAIN = ("resume", "--last")
RESULT = "function_call_output"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MAX_WAIT_MS = 120_000
_numbers = count()


def runs(command: str) -> Step:
    """A call of its shell."""
    return responses_stream(ToolCall(f"call_{next(_numbers)}", "exec_command", json.dumps({"cmd": command})))


def calls(name: str, **arguments: Any) -> Step:
    """A call of a tool for sub-agents, which stand in a namespace."""
    call = {"call_id": f"call_{next(_numbers)}", "name": name, "arguments": json.dumps(arguments)}
    item = {"type": "function_call", "id": f"fc_{call['call_id']}", "status": "completed", **call}
    return responses_stream({**item, "namespace": "multi_agent_v1"})


def user_texts(site: AgentSite, at: int) -> list[str]:
    """The user's items of a request that reached the provider."""
    items: list[dict[str, Any]] = site.sent[at].json["input"]
    return [json.dumps(item["content"]) for item in items if item.get("role") == "user"]


@pytest.mark.parametrize("engine", ["onnx", "none"])
@pytest.mark.parametrize("user", ["ana", CONFIGURED], ids=["with a personal key", "without keys"])
def test_what_it_is_told_in_one_run_it_knows_in_the_next(
    open_site: OpenSite, home: Path, user: str, engine: str
) -> None:
    site = open_site(embedding_engine=engine)
    key = site.new_key(user) if user == "ana" else "none"
    agent = codex(home, site.url, key)
    site.answer(chat(NOTED), chat(KNOWN))
    assert agent.run(TOLD) == NOTED
    assert agent.run(ASKED) == KNOWN
    assert f"user: {TOLD}" in user_texts(site, -1)[-1]
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
    agent = codex(home, site.url, "none")
    site.answer(runs("echo one"), runs("echo two"), chat(KNOWN), chat("Green."))
    assert agent.run(ASKED) == KNOWN
    assert agent.run(*AGAIN, "And its colour?") == "Green."
    assert len(site.sent) == 4
    assert_kept([body for _, body in site.recorder.bodies], [request.body for request in site.sent])
    assert all(TOLD in "".join(user_texts(site, at)) for at in range(4))
    assert site.documents(CONFIGURED)[1:] == [
        ("user", ASKED),
        ("assistant", KNOWN),
        ("user", "And its colour?"),
        ("assistant", "Green."),
    ]


def test_its_own_summary_of_a_conversation_is_not_remembered(open_site: OpenSite, home: Path) -> None:
    site = open_site()
    agent = codex(home, site.url, "none", "model_auto_compact_token_limit = 10")
    site.answer(chat(NOTED), chat(KNOWN))
    assert agent.run(TOLD) == NOTED
    assert agent.run(*AGAIN, ASKED) == KNOWN
    assert "CHECKPOINT" in user_texts(site, 1)[-1]
    assert "A title" in "".join(user_texts(site, 2))
    assert site.sent[1].body == site.recorder.bodies[1][1]
    assert site.documents(CONFIGURED) == [
        ("user", TOLD),
        ("assistant", NOTED),
        ("user", ASKED),
        ("assistant", KNOWN),
    ]


def test_its_built_in_provider_asks_over_http_at_once(open_site: OpenSite, home: Path) -> None:
    site = open_site()
    base_url = f'openai_base_url = "{site.url}/v1"'
    agent = codex(home, site.url, site.new_key("ana"), base_url, provider="openai")
    site.answer(chat(NOTED))
    assert agent.run(TOLD) == NOTED
    assert site.recorder.statuses == [426, 200], "first it wants a websocket"
    assert site.documents("ana") == [("user", TOLD), ("assistant", NOTED)]


def test_what_the_model_tells_a_sub_agent_is_not_remembered(open_site: OpenSite, home: Path) -> None:
    site = open_site()
    agent = codex(home, site.url, "none")

    def choose(body: Body) -> Step:
        """The model starts a sub-agent and waits for it."""
        results = [json.loads(item["output"]) for item in body["input"] if item["type"] == RESULT]
        if "Find the heron." in json.dumps(body["input"][-1]):
            return chat("It is in AGENTS.md.")
        if not results:
            return calls("spawn_agent", message="Find the heron.")
        if "agent_id" in results[-1]:
            return calls("wait_agent", targets=[results[-1]["agent_id"]], timeout_ms=MAX_WAIT_MS)
        return chat(KNOWN)

    site.provider.default = by_content(choose)
    assert agent.run(ASKED) == KNOWN
    assert "Find the heron." in "".join(text for at in range(len(site.sent)) for text in user_texts(site, at))
    assert site.documents(CONFIGURED) == [("user", ASKED), ("assistant", KNOWN)]


def test_the_marks_around_an_image_are_not_remembered(open_site: OpenSite, home: Path) -> None:
    site = open_site()
    agent = codex(home, site.url, "none")
    (agent.folder / "bicycle.png").write_bytes(PIXEL)
    site.answer(chat(NOTED))
    assert agent.run(TOLD, "--image", "bicycle.png") == NOTED
    assert "<image" in user_texts(site, 0)[-1]
    assert site.documents(CONFIGURED) == [("user", TOLD), ("assistant", NOTED)]
