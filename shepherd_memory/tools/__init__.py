"""The memory as tools of a model: their definitions, and what they answer."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shepherd_memory.config.identity import is_known
from shepherd_memory.errors import InvalidInput, NotFound, SessionConflict, ShepherdError
from shepherd_memory.service import UNKNOWN_USER
from shepherd_memory.text.canonical import as_text
from shepherd_memory.text.groups import MAIN_GROUP, checked_group
from shepherd_memory.text.ids import checked_user_id
from shepherd_memory.tools.advanced import ADVANCED_TOOLS
from shepherd_memory.tools.basic import BASIC_TOOLS
from shepherd_memory.tools.files import FILE_TOOLS
from shepherd_memory.tools.sessions import SESSION_TOOLS
from shepherd_memory.tools.tool import ERROR, Arguments, Effect, Tool, ToolOutput

if TYPE_CHECKING:
    from shepherd_memory.service import Service

__all__ = ["ALL_TOOLS", "ERROR", "TOOLS", "Effect", "Tool", "ToolOutput", "answer", "execute"]

_OFFERED: Mapping[str, Tool] = {tool.name: tool for tool in (*BASIC_TOOLS, *SESSION_TOOLS, *FILE_TOOLS)}

TOOLS: list[dict[str, Any]] = [tool.definition for tool in _OFFERED.values()]
"""The basic ones, those for conversations and those for memory files, for the `tools` of a chat request."""

ALL_TOOLS: Mapping[str, Tool] = {
    tool.name: tool for tool in (*BASIC_TOOLS, *ADVANCED_TOOLS, *SESSION_TOOLS, *FILE_TOOLS)
}
"""By name: these, and those for agents."""

logger = logging.getLogger(__name__)


def execute(
    service: "Service",
    user_id: str,
    name: str,
    arguments: object,
    group: str = MAIN_GROUP,
    session_id: str = "",
) -> str:
    """What a tool of `TOOLS` answers, for the model: an error begins with `Error:`, and none is raised.

    `arguments` are an object or its JSON text. Whose memory it is, which group's, and in which session the
    tool is called, only the caller says: a `_user_id` among the arguments counts for nothing.
    """
    return answer(service, user_id, name, arguments, _OFFERED, group, session_id).text


def answer(
    service: "Service",
    user_id: str,
    name: str,
    arguments: object,
    offered: Mapping[str, Tool] = ALL_TOOLS,
    group: str = MAIN_GROUP,
    session_id: str = "",
) -> ToolOutput:
    """The same of any tool that is offered, and as data where there is some."""
    try:
        if not is_known(checked_user_id(user_id)):
            raise InvalidInput(UNKNOWN_USER)
        tool = offered.get(name)
        if tool is None:
            raise InvalidInput(f"there is no tool {as_text(name)[:80]!r}; there are {', '.join(offered)}")
        return tool.call(service, user_id, Arguments(arguments, checked_group(group), session_id))
    except (InvalidInput, NotFound, SessionConflict) as error:
        return ToolOutput(f"{ERROR} {error}")
    except ShepherdError as error:
        logger.warning("a tool failed: %s", error)
        return ToolOutput(f"{ERROR} the memory cannot be used now; go on without it")
