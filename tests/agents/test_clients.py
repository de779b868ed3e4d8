"""Libraries and tools for models: each a program of a dozen lines in `clients` that knows only a base URL."""

from pathlib import Path

import pytest

from tests.agents.agent_site import ASKED, CONFIGURED, KNOWN, NOTED, TOLD, OpenSite
from tests.agents.installation import CLIENTS
from tests.agents.programs import client
from tests.endpoint import Received
from tests.provider import chat
from tests.terminal.shell import good

NAMES = sorted(path.parent.name for path in CLIENTS.glob("*/ask.*"))
WITHOUT_USER = {"llm"}
"""Clients that have no field for the user."""


@pytest.fixture(autouse=True)
def _node_for_javascript(request: pytest.FixtureRequest, name: str) -> None:
    if (CLIENTS / name / "ask.mjs").exists():
        request.getfixturevalue("_node")


def last_user_text(request: Received) -> str:
    message = (request.json.get("input") or request.json["messages"])[-1]
    assert message["role"] == "user"
    return str(message["content"])


@pytest.mark.parametrize("user", ["ana", CONFIGURED], ids=["with a personal key", "without keys"])
@pytest.mark.parametrize("name", NAMES)
def test_what_it_is_told_in_one_process_it_knows_in_the_next(
    open_site: OpenSite, home: Path, name: str, user: str
) -> None:
    site = open_site()
    program = client(name, home, site.url, site.new_key(user) if user == "ana" else "none")
    site.provider.script(chat(NOTED), chat(KNOWN))
    assert program.run(TOLD) == NOTED
    assert program.run(ASKED) == KNOWN
    assert f"user: {TOLD}" in last_user_text(site.sent[-1])
    assert site.documents(user) == [
        ("user", TOLD),
        ("assistant", NOTED),
        ("user", ASKED),
        ("assistant", KNOWN),
    ]
    assert site.documents(CONFIGURED if user == "ana" else "ana") == []


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_USER])
def test_whom_it_names_is_remembered_and_knows_nothing_of_others(
    open_site: OpenSite, home: Path, name: str
) -> None:
    site = open_site()
    good("remember", TOLD, "--user", CONFIGURED)
    site.provider.script(chat("I do not know."))
    assert client(name, home, site.url, "none").run(ASKED, "ben") == "I do not know."
    assert TOLD not in site.sent[-1].body.decode()
    assert site.documents("ben") == [("user", ASKED), ("assistant", "I do not know.")]
    assert site.documents(CONFIGURED) == [("user", TOLD)]
