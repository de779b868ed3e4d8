"""What a scripted provider says on the Responses wire, whole and streamed."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from tests.endpoint import Answer, Body, Step, by_content
from tests.provider import CREATED, Stream, ToolCall, chat

USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 18,
}
Said = str | ToolCall
_numbers = count(1)


def responds(said: Said) -> Step:
    """A text or a tool call, on whichever wire the request came, streamed if it asks for that."""

    def choose(body: Body) -> Step:
        if "input" not in body:
            assert isinstance(said, str)
            return chat(said)
        return Stream(tuple(_events(body, said))) if body.get("stream") else _answer(body, said)

    return by_content(choose)


def _answer(body: Body, said: Said) -> Answer:
    whole = json.dumps(_response(body, "completed", _item(said))).encode()
    return Answer(200, whole, {"Content-Type": "application/json"})


def _events(body: Body, said: Said) -> Iterator[bytes]:
    item = _item(said)
    place = {"item_id": item["id"], "output_index": 0}
    yield _event("response.created", response=_response(body, "in_progress"))
    empty = {"content": []} if isinstance(said, str) else {"arguments": ""}
    yield _event(
        "response.output_item.added", output_index=0, item={**item, "status": "in_progress", **empty}
    )
    if isinstance(said, str):
        text = {**place, "content_index": 0}
        yield _event("response.content_part.added", **text, part={**item["content"][0], "text": ""})
        yield _event("response.output_text.delta", **text, delta=said)
        yield _event("response.output_text.done", **text, text=said)
        yield _event("response.content_part.done", **text, part=item["content"][0])
    else:
        yield _event("response.function_call_arguments.delta", **place, delta=said.arguments)
        yield _event("response.function_call_arguments.done", **place, arguments=said.arguments)
    yield _event("response.output_item.done", output_index=0, item=item)
    yield _event("response.completed", response=_response(body, "completed", item))


def _item(said: Said) -> dict[str, Any]:
    if isinstance(said, str):
        part = {"type": "output_text", "text": said, "annotations": []}
        return _new("message", "msg", role="assistant", content=[part])
    return _new("function_call", "fc", call_id=said.id, name=said.name, arguments=said.arguments)


def _new(kind: str, prefix: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": f"{prefix}_{next(_numbers)}", "status": "completed", **fields}


def _response(body: Body, status: str, *output: Body) -> Body:
    return {
        "id": f"resp_{next(_numbers)}",
        "object": "response",
        "created_at": CREATED,
        "model": body["model"],
        "status": status,
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "usage": USAGE if output else None,
    }


def _event(kind: str, **payload: Any) -> bytes:
    data = json.dumps({"type": kind, "sequence_number": next(_numbers), **payload})
    return f"event: {kind}\ndata: {data}\n\n".encode()
