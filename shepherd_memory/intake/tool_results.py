"""What a memory tool returned is taken out of messages before anything of them is stored."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from shepherd_memory.text.memory_tools import RESULT_ROLES, is_memory_tool, looks_returned

MEMORY_RESULT = "what a memory tool returned is not stored"
CALL_TYPES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "function_call", "mcp_call"})
RESULT_TYPES = frozenset({"tool_result", "mcp_tool_result", "function_call_output", "mcp_call_output"})
_CALL_IDS = ("tool_call_id", "tool_use_id", "call_id", "id")


def called_tools(messages: Iterable[object]) -> dict[str, str]:
    """The names of the tools that were called in messages of any wire format, by the id of the call."""
    return {
        str(call["id"]): str(call["name"])
        for message in messages
        if isinstance(message, Mapping)
        for call in _calls(message)
        if isinstance(call["id"], str) and isinstance(call["name"], str)
    }


def _calls(message: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield {"id": call.get("id"), "name": function.get("name")}
    for part in (message, *_parts(message)):
        if isinstance(part, Mapping) and _type_of(part) in CALL_TYPES:
            yield {"id": part.get("call_id") or part.get("id"), "name": part.get("name")}


def _parts(message: Mapping[Any, Any]) -> Sequence[Any]:
    content = message.get("content")
    return content if isinstance(content, list | tuple) else ()


def _type_of(part: Mapping[Any, Any]) -> str:
    kind = part.get("type")
    return kind if isinstance(kind, str) else ""


def unnamed_calls(messages: Iterable[object], calls: Mapping[str, str]) -> set[str]:
    """The ids of calls that these messages have only the results of."""
    return {
        given
        for message in messages
        if isinstance(message, Mapping)
        for result in _results(message)
        if (given := _call_id(result)) and given not in calls and not result.get("name")
    }


def _results(message: Mapping[Any, Any]) -> list[Mapping[Any, Any]]:
    """The parts of a message that are tools' results; a message of a tool is one itself."""
    role = message.get("role")
    if isinstance(role, str) and role in RESULT_ROLES:
        return [message]
    return [part for part in _parts(message) if isinstance(part, Mapping) and _type_of(part) in RESULT_TYPES]


def without_memory_results(message: Mapping[Any, Any], calls: Mapping[str, str]) -> Mapping[Any, Any] | None:
    """The message without what memory tools returned; None if it is nothing else."""
    returned = [id(result) for result in _results(message) if _is_of_memory(result, calls)]
    if not returned:
        return message
    kept = [part for part in _parts(message) if id(part) not in returned]
    return {**message, "content": kept} if kept else None


def _is_of_memory(result: Mapping[Any, Any], calls: Mapping[str, str]) -> bool:
    name = result.get("name") or calls.get(_call_id(result))
    return is_memory_tool(name) or looks_returned(_text_in(result))


def _call_id(result: Mapping[Any, Any]) -> str:
    given = next((result[name] for name in _CALL_IDS if result.get(name)), "")
    return given if isinstance(given, str) else ""


def _text_in(result: Mapping[Any, Any]) -> str:
    content = result.get("content", result.get("output"))
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))
