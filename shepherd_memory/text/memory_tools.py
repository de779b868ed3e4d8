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
    }
)

RESULT_ROLES = frozenset({"tool", "function"})
"""Of messages in which a tool answers."""

_PREFIX = re.compile(r"^.*(?:__|[./:])|^shepherd(?:[_-]memory)?[_-]", re.DOTALL)
"""What clients put before a tool's name: `mcp__shepherd__`, `shepherd.`, `shepherd_`."""

_RESULT = re.compile(
    r"(?:Found \d+ memor(?:y|ies)(?:, best first)?:\n1\. \[|\d+ facts?(?:, the first \d+)?:\n\S+ = "
    r"|(?:Found \d+ conversation\(s\)|Saved conversations|Other conversations):\n- \["
    r"|No saved conversations found\.|Messages \d+ to \d+ of \d+ in session "
    r"|Resuming session \S+\. The next message )"
)


def is_memory_tool(name: object) -> bool:
    """Whether a tool of this name is one of ours, under whatever name a client knows the server by."""
    return isinstance(name, str) and (name in MEMORY_TOOLS or _PREFIX.sub("", name) in MEMORY_TOOLS)


def looks_returned(text: str) -> bool:
    """Whether a tool's result of which nobody says the tool reads like one of ours."""
    return _RESULT.match(text.lstrip()) is not None
