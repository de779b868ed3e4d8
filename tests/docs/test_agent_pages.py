"""The pages about agents have the very lines with which `make test-agents` runs them."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.agents.programs import CLIENTS, CODEX_CONFIG, claude_environment

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "howto" / "agents"
INDEX = ROOT / "docs" / "howto" / "agents.md"
SERVER = "http://127.0.0.1:8765"
PAGE_NAMES = {"langchain_openai": "langchain"}


@pytest.mark.parametrize("program", sorted(CLIENTS.glob("*/ask.*")), ids=lambda path: path.parent.name)
def test_the_page_of_a_client_has_the_program_that_is_tested(program: Path) -> None:
    name = PAGE_NAMES.get(program.parent.name, program.parent.name).replace("_", "-")
    page = (PAGES / f"{name}.md").read_text("utf-8")
    assert f"```\n\n`{program.name}`" in page
    assert re.search(rf"^```\w+\n{re.escape(program.read_text('utf-8'))}```$", page, re.MULTILINE)


def test_the_page_of_codex_has_the_provider_that_is_tested() -> None:
    (block,) = re.findall(r"^```toml\n(.*?)^```$", (PAGES / "codex.md").read_text("utf-8"), re.M | re.S)
    written, tested = tomllib.loads(block), tomllib.loads(CODEX_CONFIG.format(url=SERVER, more=""))
    assert written["model_providers"] == tested["model_providers"]
    assert written["model_provider"] in written["model_providers"]


def test_the_page_of_claude_code_sets_the_variables_that_are_tested() -> None:
    page = (PAGES / "claude-code.md").read_text("utf-8")
    for name, value in claude_environment(SERVER, "none").items():
        assert f"export {name}={value}\n" in page
        assert f'"{name}": "{value}"' in page


def test_the_overview_links_to_every_page() -> None:
    linked = set(re.findall(r"\(agents/([\w-]+)\.md\)", INDEX.read_text("utf-8")))
    assert linked == {page.stem for page in PAGES.glob("*.md")}
