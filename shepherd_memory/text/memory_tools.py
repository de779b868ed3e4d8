"""The tools of a memory by name, and what they return: it is recalled already, and never stored again."""

import re

MEMORY_TOOLS = frozenset(
    {
        "search_memory",
        "store_memory",
        "clear_memory",
        "set_fact",
        "get_fact",
        "clear_fact",
        "recall",
        "list_facts",
        "fact_history",
        "forget",
        "clear_session",
        "list_sessions",
        "resume_session",
        "search_sessions",
        "read_session",
        "rename_session",
        "list_memory_files",
        "read_memory_file",
        "search_memory_files",
        "add_memory_note",
    }
)

RESULT_ROLES = frozenset({"tool", "function"})
"""Of messages in which a tool answers."""

_SERVER = re.compile(
    r"^.*(?:__|[./:])|^shepherd(?:[_-]memory)?[_-]|^mcp[_-][^_]+_|_mcp_.*$", re.DOTALL | re.IGNORECASE
)
"""How clients add a server to the name: `mcp__memory__`, `memory.`, `mcp_memory_`, `_mcp_memory` after it."""

_TWO_WORDS = tuple(f"{sign}{name}" for name in sorted(MEMORY_TOOLS) if "_" in name for sign in "_-")
"""Names that are plain enough behind any server's: `memory_search_memory`."""

_RESULT = re.compile(
    r"(?:Found \d+ memor(?:y|ies)(?:, best first)?:\n1\. \[|\d+ facts?(?:, the first \d+)?:\n\S+ = "
    r"|(?:Found \d+ conversation\(s\)|Saved conversations|Other conversations):\n- \["
    r"|No saved conversations found\.|Messages \d+ to \d+ of \d+ in session "
    r"|Resuming session \S+\. The next message "
    r"|\d+ (?:entry|entries) in the memory files|Lines \d+ to \d+ of \d+ in the memory file "
    r"|The memory file .{1,600} is empty\.|Found \d+ match(?:es)? in the memory files:"
    r"|Added the memory note "
    r"|[\[{][^\0]{0,300}?\"uri\"\s*:\s*\"shepherd://(?:files|sessions)/)"
)


def is_memory_tool(name: object) -> bool:
    """Whether a tool of this name is one of ours, under whatever name a client knows the server by."""
    if not isinstance(name, str):
        return False
    known = name.lower()
    return known in MEMORY_TOOLS or _SERVER.sub("", known) in MEMORY_TOOLS or known.endswith(_TWO_WORDS)


def looks_returned(text: str) -> bool:
    """Whether a tool's result of which nobody says the tool reads like one of ours."""
    return _RESULT.match(text.lstrip()) is not None
