"""Claude Code from npm with our hooks in its settings: one session takes up where the one before it ended."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import tomli_w

from tests.agents.agent_site import ASKED, CONFIGURED, KNOWN, NOTED, TOLD, OpenSite
from tests.agents.programs import Program, claude_code
from tests.agents.test_claude_code import says
from tests.endpoint import Body, Step, by_content
from tests.provider import ScriptedProvider, chat
from tests.terminal.shell import data, good

pytestmark = pytest.mark.usefixtures("_node")

SECONDS = 240
"""For a hook, on a machine that does other things too; usually it has two."""


@pytest.fixture
def claude(home: Path, provider: ScriptedProvider, config_path: Path, tmp_path: Path) -> Program:
    """Claude Code with hooks, and nothing else of ours between it and its provider."""
    settings = {
        "user_id": CONFIGURED,
        "memory_database": str(tmp_path / "memory.db"),
        "embedding_engine": "none",
    }
    config_path.write_text(tomli_w.dumps(settings))
    return hooked(claude_code(home, provider.url, "none"), home)


def hooked(claude: Program, home: Path) -> Program:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLAUDE_CONFIG_DIR", str(home / ".claude"))
        good("hooks", "install", "claude-code")
    settings = home / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace('"timeout": 5', f'"timeout": {SECONDS}'))
    return replace(claude, environment={**claude.environment, "SHEPHERD_HOOKS_MAX_SECONDS": str(SECONDS)})


def answers(provider: ScriptedProvider, *steps: Step) -> None:
    left: Iterator[Step] = iter(steps)

    def choose(body: Body) -> Step:
        return next(left) if body.get("stream") else chat("A title")

    provider.default = by_content(choose)


def last_prompt(provider: ScriptedProvider) -> str:
    *_, request = (one for one in provider.requests if one.method == "POST" and one.json.get("stream"))
    return "\n".join(_texts(request.json["messages"]))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _texts(value.get("content", value.get("text")))
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str):
        yield value


def told_of(prompt: str) -> str:
    """What the prompt says of the session before."""
    end = "</previous-session>"
    element = prompt[prompt.index("<previous-session") : prompt.index(end) + len(end)]
    return ElementTree.fromstring(element).text or ""


def said() -> list[tuple[str, str]]:
    return [(row["role"], row["text"]) for row in data("documents", "list")]


def test_what_it_is_told_in_one_session_greets_it_in_the_next(
    claude: Program, provider: ScriptedProvider
) -> None:
    good("facts", "set", "city", "Lisbon")
    answers(provider, says(NOTED), says(KNOWN), says("No idea."))
    assert claude.run(TOLD) == NOTED
    assert "<previous-session" not in last_prompt(provider)
    assert claude.run(ASKED) == KNOWN
    prompt = last_prompt(provider)
    assert told_of(prompt).split("\n") == ["", f"[human — {CONFIGURED}]: {TOLD}", f"[agent]: {NOTED}", ""]
    assert "[facts: city=Lisbon]" in prompt
    # What the hook said is in no document, and so in no session after it.
    assert said() == [("user", TOLD), ("assistant", NOTED), ("user", ASKED), ("assistant", KNOWN)]
    elsewhere = claude.folder.with_name("elsewhere")
    elsewhere.mkdir()
    assert replace(claude, folder=elsewhere).run("And here?") == "No idea."
    assert "<previous-session" not in last_prompt(provider)


def test_compaction_loses_no_word(claude: Program, provider: ScriptedProvider) -> None:
    answers(provider, says(NOTED), says(KNOWN), says("A summary."), says("Green."))
    claude.run(TOLD)
    claude.run("--continue", ASKED)
    claude.run("--continue", "/compact")
    assert claude.run("--continue", "And its colour?") == "Green."
    assert "A summary." in last_prompt(provider)
    assert TOLD not in last_prompt(provider)
    assert said() == [
        ("user", TOLD),
        ("assistant", NOTED),
        ("user", ASKED),
        ("assistant", KNOWN),
        ("user", "/compact"),
        ("user", "And its colour?"),
        ("assistant", "Green."),
    ]


def test_beside_the_server_nothing_of_what_a_hook_said_is_remembered(open_site: OpenSite, home: Path) -> None:
    site = open_site()
    claude = hooked(claude_code(home, site.url, "none"), home)
    site.answer(says(NOTED), says(KNOWN))
    assert claude.run(TOLD) == NOTED
    assert claude.run(ASKED) == KNOWN
    assert TOLD in told_of(last_prompt(site.provider))
    assert set(site.documents(CONFIGURED)) == {
        ("user", TOLD),
        ("assistant", NOTED),
        ("user", ASKED),
        ("assistant", KNOWN),
    }
