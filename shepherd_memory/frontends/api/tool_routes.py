"""The memory tools over HTTP, for programs that run a model's tool calls themselves."""

from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from shepherd_memory import tools
from shepherd_memory.frontends.api.operations import BodyInput, ForUser, Operation, OperationInput, routes_of


class ToolCall(ForUser, frozen=True, kw_only=True):
    """What a model asks for."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    arguments: Annotated[
        dict[str, Any] | str,
        Meta(description="An object, or its JSON text, as in a model's `tool_calls`."),
    ] = "{}"


@dataclass(frozen=True)
class Tools:
    """Definitions for the `tools` of a chat request."""

    tools: list[dict[str, Any]]


@dataclass(frozen=True)
class ToolResult:
    """The content of a `tool` message; an error begins with `Error:`."""

    result: str
    is_error: bool


def list_tools(given: BodyInput[OperationInput, None]) -> Tools:
    return Tools(tools.TOOLS)


def execute(given: BodyInput[OperationInput, ToolCall]) -> ToolResult:
    result = tools.execute(given.service, given.user_id, given.body.name, given.body.arguments, given.group)
    return ToolResult(result, result.startswith(tools.ERROR))


TOOL_OPERATIONS = [
    Operation("GET", "/v1/tools", "The memory tools, for a model.", Tools, list_tools),
    Operation("POST", "/v1/tools/execute", "Run one of them.", ToolResult, execute, body=ToolCall),
]

TOOL_ROUTES = routes_of(TOOL_OPERATIONS)
