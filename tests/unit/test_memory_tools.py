"""Which tools are those of a memory, under whatever name a client has for them."""

import pytest

from shepherd_memory.text.memory_tools import MEMORY_TOOLS, is_memory_tool, looks_returned
from shepherd_memory.tools import ALL_TOOLS


def test_every_tool_is_known_by_name() -> None:
    assert set(ALL_TOOLS) == MEMORY_TOOLS


@pytest.mark.parametrize(
    "name",
    [
        "search_memory",
        "mcp__shepherd__search_memory",
        "mcp__my-memory__recall",
        "shepherd__list_facts",
        "shepherd.get_fact",
        "shepherd_recall",
        "shepherd-memory_forget",
        "shepherd/set_fact",
        "mcp_shepherd_search_memory",
        "mcp_memory_recall",
        "memory_search_memory",
        "search_memory_mcp_shepherd",
        "recall_mcp_memory",
        "Search_Memory",
    ],
)
def test_a_prefix_makes_no_other_tool_of_it(name: str) -> None:
    assert is_memory_tool(name)


@pytest.mark.parametrize(
    "name",
    ["", None, 7, "read_file", "mcp__files__search", "research_memory", "recall_all", "product_recall"],
)
def test_other_tools_are_none_of_them(name: object) -> None:
    assert not is_memory_tool(name)


def test_a_result_is_known_by_how_it_begins() -> None:
    assert looks_returned("Found 2 memories:\n1. [relevance 0.90, 2026-09-21] user: hi")
    assert looks_returned("Found 1 memory, best first:\n1. [fact city, 2026-09-21] city: Rome")
    assert looks_returned("2 facts:\ncity = Rome (since 2026-09-21)\npet = Rex (since 2026-09-21)")
    assert not looks_returned("Found 2 files:\n1. a.py")
