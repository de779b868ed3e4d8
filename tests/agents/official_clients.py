"""The official clients of all wire formats behind one form, and what a provider says to each."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import anthropic
import openai

from tests.endpoint import Answer
from tests.provider import (
    MODEL,
    USAGE,
    Piece,
    Step,
    Stream,
    ToolCall,
    anthropic_answer,
    anthropic_error,
    anthropic_events,
    anthropic_stream,
    openai_answer,
    openai_error,
    openai_events,
    openai_stream,
    responses_answer,
    responses_events,
    responses_stream,
)
from tests.server.serving import ANTHROPIC, OPENAI

CLIENT_KEY = "sk-mine"
OPTIONS: Mapping[str, Any] = {"api_key": CLIENT_KEY, "max_retries": 0, "timeout": 60.0}
ARGUMENTS = {"city": "Oslo", "days": 2}
RESULT = '{"sky": "rain"}'
REASON = "Two and two."
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
X_PROVIDER = {"took": 3}

Messages = list[Any]


@dataclass(frozen=True)
class Turn:
    """What a model said: as text, why it stopped, its tool calls by id, and as the history has it."""

    text: str
    end: str
    calls: Mapping[str, tuple[str, Any]]
    messages: Messages


@dataclass(frozen=True)
class Reasoned:
    """An answer with the reasoning before it; `extras` is the provider's own field, wherever it stood."""

    text: str
    reasoning: Any
    extras: Sequence[Any]


def said(content: Any) -> Messages:
    """A conversation in which the user says this."""
    return [{"role": "user", "content": content}]


class OpenAIWire:
    """The openai client and `/v1/chat/completions`."""

    name = "openai"
    provider = OPENAI
    holder = "messages"
    library: ModuleType = openai
    errors: Mapping[int, type[Exception]] = {
        400: openai.BadRequestError,
        401: openai.AuthenticationError,
        403: openai.PermissionDeniedError,
        404: openai.NotFoundError,
        409: openai.ConflictError,
        422: openai.UnprocessableEntityError,
        429: openai.RateLimitError,
        500: openai.InternalServerError,
        503: openai.InternalServerError,
    }
    worst_code = 500
    breaking_off: type[Exception] = openai.APIConnectionError
    stream_error = b'data: {"error":{"type":"overloaded_error","message":"later"}}\n\n'
    stream_error_type: type[Exception] = openai.APIError
    ends = ("stop", "tool_calls")
    usage: Any = USAGE
    reasoning: str | Mapping[str, str] = REASON
    tools: Any = (
        {
            "type": "function",
            "function": {
                "name": "weather",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            },
        },
    )
    image: Any = (
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
    )
    other_paths: Sequence[tuple[str, str, str, Any]] = (
        ("get", "/things/7%2F8?after=a%20b&limit=2", "/v1/things/7%2F8?after=a%20b&limit=2", None),
        ("put", "/things/7", "/v1/things/7", {"a": 1}),
        ("delete", "/things/7", "/v1/things/7", None),
        ("post", "/moderations", "/v1/moderations", {"input": "Hi", "user": "steve"}),
    )

    def connect(self, url: str, **options: Any) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{url}/v1", **{**OPTIONS, **options})

    def connect_async(self, url: str, **options: Any) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=f"{url}/v1", **{**OPTIONS, **options})

    def create(self, client: Any, messages: Sequence[Any], user: str | None, **options: Any) -> Any:
        """A chat; of an asynchronous client it is to be awaited, and so is `raw`."""
        return client.chat.completions.create(**self._asking(messages, user, options))

    def create_raw(self, client: Any, messages: Sequence[Any], user: str | None) -> Any:
        """A chat with the headers of its response."""
        return client.chat.completions.with_raw_response.create(**self._asking(messages, user, {}))

    def _asking(self, messages: Sequence[Any], user: str | None, options: Mapping[str, Any]) -> Any:
        return {"model": MODEL, "messages": messages, **({"user": user} if user else {}), **options}

    def text_of(self, answer: Any) -> str:
        return str(answer.choices[0].message.content)

    def end_and_usage(self, answer: Any) -> tuple[str, Any]:
        return answer.choices[0].finish_reason, answer.usage.model_dump(exclude_none=True)

    def text_in(self, event: Any) -> str | None:
        """What one event of a stream adds; None if it is about something else."""
        return event.choices[0].delta.content if event.choices else None

    def texts_of_stream(self, pieces: Iterable[str]) -> list[str | None]:
        """What `text_in` finds in a stream of these pieces, event by event."""
        return ["", *pieces, None]

    def helper_texts(self, client: Any, messages: Sequence[Any], user: str) -> tuple[str, str]:
        """The text of a stream by the client's own helper: in events, and put together."""
        with client.chat.completions.stream(**self._asking(messages, user, {})) as stream:
            texts = [event.delta for event in stream if event.type == "content.delta"]
            return "".join(texts), self.text_of(stream.get_final_completion())

    def turn(self, client: Any, messages: Sequence[Any], user: str, *, stream: bool) -> Turn:
        """One round of a conversation with tools."""
        answer = self.create(client, messages, user, tools=self.tools, stream=stream)
        if stream:
            return _streamed_turn(answer)
        choice = answer.choices[0]
        calls = {
            call.id: (call.function.name, json.loads(call.function.arguments))
            for call in choice.message.tool_calls or ()
        }
        return Turn(str(choice.message.content), choice.finish_reason, calls, [choice.message])

    def history(self, text: str, call_id: str, name: str) -> Messages:
        """What the model said, as a client writes it: a text and a tool call."""
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
        return [{"role": "assistant", "content": text, "tool_calls": [call]}]

    def results(self, call_ids: Iterable[str]) -> Messages:
        """What the tools gave, as messages."""
        return [{"role": "tool", "tool_call_id": one, "content": RESULT} for one in call_ids]

    def reasoned(self, client: Any, user: str, *, stream: bool, **options: Any) -> Reasoned:
        answer = self.create(client, said("2+2?"), user, stream=stream, **options)
        if not stream:
            message = answer.choices[0].message
            return Reasoned(self.text_of(answer), message.reasoning_content, [answer.x_provider])
        chunks = list(answer)
        text = "".join(self.text_in(chunk) or "" for chunk in chunks)
        reasoning = chunks[1].choices[0].delta.reasoning_content
        return Reasoned(text, reasoning, [chunk.x_provider for chunk in chunks])

    def answer(self, *pieces: str | ToolCall) -> Answer:
        """What a provider sends: a whole answer with these texts and tool calls."""
        texts = [piece for piece in pieces if isinstance(piece, str)]
        calls = [piece for piece in pieces if isinstance(piece, ToolCall)]
        return openai_answer("".join(texts) if texts else None, *calls)

    def stream(self, *pieces: Piece) -> Step:
        return openai_stream(*pieces)

    def events(self, *pieces: Piece) -> Stream:
        """The same for who wants to change it."""
        return Stream(openai_events(pieces))

    def error(self, code: int, message: str = "", headers: Mapping[str, str] | None = None) -> Answer:
        return openai_error(code, message, kind="lucklessness", headers=headers)

    def reasoned_answer(self) -> Answer:
        return openai_answer("Four.", reasoning_content=REASON, more={"x_provider": X_PROVIDER})

    def reasoned_stream(self, *pieces: str) -> Step:
        return openai_stream({"reasoning_content": REASON}, *pieces, more={"x_provider": X_PROVIDER})

    def check_error(self, error: Any, code: int, message: str) -> None:
        """Everything that the client reads out of a refusal."""
        assert (error.status_code, error.type) == (code, "lucklessness")
        assert error.message.endswith(message)
        assert error.request_id == "req_scripted"

    def is_broken_off(self, error: BaseException) -> bool:
        """Whether a client tells in this way that a connection ended before the answer did."""
        return isinstance(error, openai.APIConnectionError)

    def key_in(self, headers: Mapping[str, str]) -> str:
        return headers["authorization"].removeprefix("Bearer ")


def _streamed_turn(chunks: Iterable[Any]) -> Turn:
    """A turn put together from the parts of its tool calls, as the client leaves it to its users."""
    text, end, calls = "", "", list[dict[str, str]]()
    for chunk in chunks:
        choice = chunk.choices[0]
        text, end = text + (choice.delta.content or ""), choice.finish_reason or end
        for part in choice.delta.tool_calls or ():
            if part.id:
                calls.append({"id": part.id, "name": part.function.name, "arguments": ""})
            calls[part.index]["arguments"] += part.function.arguments
    found = {call["id"]: (call["name"], json.loads(call["arguments"])) for call in calls}
    asked = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": call["arguments"]},
        }
        for call in calls
    ]
    return Turn(text, end, found, [{"role": "assistant", "content": text, "tool_calls": asked}])


class ResponsesWire(OpenAIWire):
    """The openai client and `/v1/responses`."""

    name = "responses"
    holder = "input"
    ends = ("completed", "completed")
    usage: Any = (11, 7)
    reasoning: str | Mapping[str, str] = REASON
    tools: Any = (
        {
            "type": "function",
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            "strict": False,
        },
    )
    image: Any = (
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "low"},
    )
    other_paths: Sequence[tuple[str, str, str, Any]] = (
        ("get", "/responses/resp_1?include=a", "/v1/responses/resp_1?include=a", None),
        ("delete", "/responses/resp_1", "/v1/responses/resp_1", None),
        ("post", "/responses/resp_1/cancel", "/v1/responses/resp_1/cancel", {}),
        ("post", "/responses/compact", "/v1/responses/compact", {"input": "Hi"}),
    )

    def create(self, client: Any, messages: Sequence[Any], user: str | None, **options: Any) -> Any:
        return client.responses.create(**self._asking(messages, user, options))

    def create_raw(self, client: Any, messages: Sequence[Any], user: str | None) -> Any:
        return client.responses.with_raw_response.create(**self._asking(messages, user, {}))

    def _asking(self, messages: Sequence[Any], user: str | None, options: Mapping[str, Any]) -> Any:
        return {"model": MODEL, "input": messages, **({"user": user} if user else {}), **options}

    def text_of(self, answer: Any) -> str:
        return str(answer.output_text)

    def end_and_usage(self, answer: Any) -> tuple[str, Any]:
        return answer.status, (answer.usage.input_tokens, answer.usage.output_tokens)

    def text_in(self, event: Any) -> str | None:
        return event.delta if event.type == "response.output_text.delta" else None

    def texts_of_stream(self, pieces: Iterable[str]) -> list[str | None]:
        return [None, None, None, None, *pieces, None, None, None]

    def helper_texts(self, client: Any, messages: Sequence[Any], user: str) -> tuple[str, str]:
        with client.responses.stream(**self._asking(messages, user, {})) as stream:
            texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
            return "".join(texts), self.text_of(stream.get_final_response())

    def turn(self, client: Any, messages: Sequence[Any], user: str, *, stream: bool) -> Turn:
        answer = self._whole(client, messages, user, stream=stream, tools=self.tools)
        calls = {
            item.call_id: (item.name, json.loads(item.arguments))
            for item in answer.output
            if item.type == "function_call"
        }
        return Turn(self.text_of(answer), answer.status, calls, list(answer.output))

    def _whole(self, client: Any, messages: Sequence[Any], user: str, *, stream: bool, **options: Any) -> Any:
        answer = self.create(client, messages, user, stream=stream, **options)
        if not stream:
            return answer
        (last,) = (event for event in answer if event.type == "response.completed")
        return last.response

    def history(self, text: str, call_id: str, name: str) -> Messages:
        call = {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"}
        return [{"role": "assistant", "content": text}, call]

    def results(self, call_ids: Iterable[str]) -> Messages:
        return [{"type": "function_call_output", "call_id": one, "output": RESULT} for one in call_ids]

    def reasoned(self, client: Any, user: str, *, stream: bool, **options: Any) -> Reasoned:
        answer = self._whole(client, said("2+2?"), user, stream=stream, **options)
        extras = [] if stream else [answer.x_provider]
        return Reasoned(self.text_of(answer), answer.output[0].content[0].text, extras)

    def answer(self, *pieces: str | ToolCall) -> Answer:
        texts = [piece for piece in pieces if isinstance(piece, str)]
        calls = [piece for piece in pieces if isinstance(piece, ToolCall)]
        return responses_answer(*(["".join(texts)] if texts else []), *calls)

    def stream(self, *pieces: Piece) -> Step:
        return responses_stream(*pieces)

    def events(self, *pieces: Piece) -> Stream:
        return Stream(responses_events(pieces))

    def reasoned_answer(self) -> Answer:
        return responses_answer(REASONING_ITEM, "Four.", x_provider=X_PROVIDER)

    def reasoned_stream(self, *pieces: str) -> Step:
        return responses_stream(REASONING_ITEM, *pieces)


REASONING_ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": REASON}],
}


class AnthropicWire:
    """The anthropic client and `/v1/messages`."""

    name = "anthropic"
    provider = ANTHROPIC
    holder = "messages"
    library: ModuleType = anthropic
    errors: Mapping[int, type[Exception]] = {
        400: anthropic.BadRequestError,
        401: anthropic.AuthenticationError,
        403: anthropic.PermissionDeniedError,
        404: anthropic.NotFoundError,
        429: anthropic.RateLimitError,
        500: anthropic.InternalServerError,
        529: anthropic.InternalServerError,
    }
    worst_code = 529
    breaking_off: type[Exception] = Exception
    """This client lets the exceptions of its HTTP library through, which not all versions have in common."""

    stream_error = (
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"later"}}\n\n'
    )
    stream_error_type: type[Exception] = anthropic.APIStatusError
    ends = ("end_turn", "tool_use")
    usage: Any = (11, 7)
    reasoning: Mapping[str, str] = {"type": "thinking", "thinking": REASON, "signature": "c2lnbmVk"}
    tools: Any = ({"name": "weather", "input_schema": {"type": "object", "properties": {}}},)
    image: Any = (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "text", "text": "What is this?"},
    )
    other_paths: Sequence[tuple[str, str, str, Any]] = (
        (
            "post",
            "/v1/messages/count_tokens",
            "/v1/messages/count_tokens",
            {"model": MODEL, "messages": said("Hi")},
        ),
        ("get", "/v1/models?limit=2", "/v1/models?limit=2", None),
    )

    def connect(self, url: str, **options: Any) -> anthropic.Anthropic:
        return anthropic.Anthropic(base_url=url, **{**OPTIONS, **options})

    def connect_async(self, url: str, **options: Any) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(base_url=url, **{**OPTIONS, **options})

    def create(self, client: Any, messages: Sequence[Any], user: str | None, **options: Any) -> Any:
        return client.messages.create(**self._asking(messages, user, options))

    def create_raw(self, client: Any, messages: Sequence[Any], user: str | None) -> Any:
        return client.messages.with_raw_response.create(**self._asking(messages, user, {}))

    def _asking(self, messages: Sequence[Any], user: str | None, options: Mapping[str, Any]) -> Any:
        named = {"metadata": {"user_id": user}} if user else {}
        return {"model": MODEL, "max_tokens": 64, "messages": messages, **named, **options}

    def text_of(self, answer: Any) -> str:
        return "".join(block.text for block in answer.content if block.type == "text")

    def end_and_usage(self, answer: Any) -> tuple[str, Any]:
        return answer.stop_reason, (answer.usage.input_tokens, answer.usage.output_tokens)

    def text_in(self, event: Any) -> str | None:
        is_text = event.type == "content_block_delta" and event.delta.type == "text_delta"
        return event.delta.text if is_text else None

    def texts_of_stream(self, pieces: Iterable[str]) -> list[str | None]:
        return [None, None, *pieces, None, None, None]

    def helper_texts(self, client: Any, messages: Sequence[Any], user: str) -> tuple[str, str]:
        with client.messages.stream(**self._asking(messages, user, {})) as stream:
            texts = "".join(stream.text_stream)
            final = stream.get_final_message()
            assert final.usage.output_tokens == 7
            return texts, self.text_of(final)

    def turn(self, client: Any, messages: Sequence[Any], user: str, *, stream: bool) -> Turn:
        message = self._whole(client, messages, user, stream=stream, tools=self.tools)
        calls = {block.id: (block.name, block.input) for block in message.content if block.type == "tool_use"}
        written = [{"role": "assistant", "content": message.content}]
        return Turn(self.text_of(message), message.stop_reason, calls, written)

    def _whole(self, client: Any, messages: Sequence[Any], user: str, *, stream: bool, **options: Any) -> Any:
        """A message, put together by the client if it comes in pieces."""
        if not stream:
            return self.create(client, messages, user, **options)
        with client.messages.stream(**self._asking(messages, user, options)) as events:
            return events.get_final_message()

    def history(self, text: str, call_id: str, name: str) -> Messages:
        used = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        return [{"role": "assistant", "content": [{"type": "text", "text": text}, used]}]

    def results(self, call_ids: Iterable[str]) -> Messages:
        return said([{"type": "tool_result", "tool_use_id": one, "content": RESULT} for one in call_ids])

    def reasoned(self, client: Any, user: str, *, stream: bool, **options: Any) -> Reasoned:
        message = self._whole(client, said("2+2?"), user, stream=stream, **options)
        extras = [] if stream else [message.x_provider]
        return Reasoned(self.text_of(message), message.content[0].model_dump(), extras)

    def answer(self, *pieces: str | ToolCall) -> Answer:
        return anthropic_answer(*pieces)

    def stream(self, *pieces: Piece) -> Step:
        return anthropic_stream(*pieces)

    def events(self, *pieces: Piece) -> Stream:
        return Stream(anthropic_events(pieces))

    def error(self, code: int, message: str = "", headers: Mapping[str, str] | None = None) -> Answer:
        return anthropic_error(code, message, headers=headers)

    def reasoned_answer(self) -> Answer:
        return anthropic_answer(self.reasoning, "Four.", x_provider=X_PROVIDER)

    def reasoned_stream(self, *pieces: str) -> Step:
        return anthropic_stream(self.reasoning, *pieces)

    def check_error(self, error: Any, code: int, message: str) -> None:
        assert error.status_code == code
        assert (error.body["type"], error.body["error"]["message"]) == ("error", message)

    def is_broken_off(self, error: BaseException) -> bool:
        return type(error).__name__ in ("RemoteProtocolError", "ReadError")

    def key_in(self, headers: Mapping[str, str]) -> str:
        return headers["x-api-key"]


Wire = OpenAIWire | AnthropicWire
WIRES: Mapping[str, Wire] = {wire.name: wire for wire in (OpenAIWire(), ResponsesWire(), AnthropicWire())}
