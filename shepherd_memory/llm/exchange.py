"""One exchange with a server over HTTP: what is sent, and the bounded, decoded answer that comes back."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import requests

from shepherd_memory.errors import AnswerCutOff, EndpointMisconfigured, EndpointUnavailable, ItemRejected
from shepherd_memory.llm import failures
from shepherd_memory.llm.answer import (
    MAX_TEXT_CHARS,
    AnswerParser,
    AnswerTooLong,
    PartBuffer,
    WholeBuffer,
    json_object,
    json_value,
)
from shepherd_memory.llm.cancellation import Call
from shepherd_memory.llm.decoding import decoder_for
from shepherd_memory.llm.dialect import Dialect
from shepherd_memory.llm.failures import Failure, HttpReply, failure_of
from shepherd_memory.llm.http import FAILURES, Connections, Login, body_pieces, failure_reason, is_timeout
from shepherd_memory.llm.request import Completion, ModelRequest, Part
from shepherd_memory.llm.sse import EventReader
from shepherd_memory.llm.target import Target, api_url
from shepherd_memory.llm.wires import wire_of
from shepherd_memory.text.reasoning import without_all_reasoning
from shepherd_memory.text.tokens import estimate_mean_tokens

_MAX_ERROR_BYTES = 64 * 1024
_JSON = "application/json"
_STREAM = f"text/event-stream, {_JSON}"

Dialects = dict[tuple[str, str], Dialect]
"""What each server, or each model of one, was found to understand."""


class HttpExchange:
    """One HTTP exchange with a target, limited and cancelled by its `Call`."""

    def __init__(self, connections: Connections, call: Call, target: Target) -> None:
        self._connections = connections
        self._call = call
        self._target = target
        self._name = target.name
        self._url = api_url(target)
        self._wire = wire_of(target.wire)

    def parts(self, request: ModelRequest, dialects: Dialects) -> Iterator[Part]:
        """Ask, and again in a lesser dialect where one is refused; `dialects` keeps what is understood."""
        # Per server: a chat learns it once, whichever model it is switched to.
        known = (self._url, "")
        dialect = dialects.get(known, Dialect())
        while True:
            body = self._wire.body(self._target.model, request, dialect, streams=True)
            with self._bounded(), self._send("POST", self._wire.path, body, _STREAM) as response:
                if 200 <= response.status_code < 300:
                    dialects[known] = dialect
                    yield from self._read(response)
                    return
                failure = self._failure(response)
            dialect = self._lesser(dialect, failure, request, streams=True)

    def complete(self, request: ModelRequest, dialects: Dialects) -> Completion:
        """The whole answer, asked for in the best dialect that is not refused."""
        # Per model: one may take a schema where its neighbour on the same server does not.
        known = (self._url, self._target.model)
        dialect = dialects.get(known, Dialect())
        while True:
            body = self._wire.body(self._target.model, request, dialect, streams=False)
            reply = self._post(self._wire.path, body)
            failure = failure_of(self._target, reply)
            if failure is None:
                completion = self._completion(reply, request)
                # Only now: an item that is refused in every dialect says nothing about the server.
                dialects[known] = dialect
                return completion
            dialect = self._lesser(dialect, failure, request, streams=False)

    def post_json(self, path: str, body: dict[str, Any], quoted: list[str]) -> object:
        """The JSON that is answered to JSON; an error repeats nothing of what is `quoted` in the body."""
        reply = self._post(path, body)
        failure = failure_of(self._target, reply)
        if failure is not None:
            raise failure.error(quoted)
        return json_value(reply.body.strip())

    def get(self, path: str) -> bytes:
        """What the API has at a path, or an EndpointError."""
        with self._bounded(), self._send("GET", path, None, _STREAM) as response:
            if not 200 <= response.status_code < 300:
                raise self._failure(response).error()
            return _joined(self._pieces(response), self._target.kind.max_body_bytes, cut=True)

    def check(self, path: str) -> None:
        """Raise an EndpointError if the API does not answer at a path as it should."""
        # Through the proxy that the environment names, even to this machine: as curl would ask.
        with self._send("GET", path, None, _JSON, bypasses_proxy=False) as response:
            if response.status_code >= 300:
                raise failures.refused_check(self._target, path, response.status_code)

    def _post(self, path: str, body: dict[str, Any]) -> HttpReply:
        with self._bounded(), self._send("POST", path, body, _JSON) as response:
            reply = self._reply(response)
        if self._call.cut_because:
            # Where a body ends with the connection, a cut looks like its regular end.
            raise failures.cut_short(self._target, self._call)
        return reply

    def _send(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None,
        accepted: str,
        bypasses_proxy: bool = True,
    ) -> requests.Response:
        url, key = api_url(self._target, path), self._target.key
        login = Login(url, self._wire.login(key) if key else {})
        headers = {"Accept": accepted, **self._wire.headers, **self._target.memory_headers}
        try:
            return self._connections.send(self._call, method, url, login, headers, body, bypasses_proxy)
        except FAILURES as error:
            shown_path = path if method == "GET" else ""
            raise failures.unreachable(self._target, self._call, error, shown_path) from error

    def _lesser(self, dialect: Dialect, failure: Failure, request: ModelRequest, streams: bool) -> Dialect:
        """What to ask in after a refusal; its error, if that is not about the dialect."""
        if self._wire.has_dialects:
            lesser = dialect.after(failure.rejected(), request, streams)
            if lesser is not None:
                return lesser
        raise failure.error(_texts(request, "user"))

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        try:
            yield
        except AnswerTooLong as error:
            raise failures.too_long(self._target, MAX_TEXT_CHARS) from error

    def _read(self, response: requests.Response) -> Iterator[Part]:
        kind = response.headers.get("content-type", "").lower()
        if "text/html" in kind:
            raise EndpointMisconfigured(
                f"{self._name} answers with a page for browsers; check {self._target.kind.address}"
            )
        buffer = PartBuffer(self._wire.parser.reasons_in_text)
        parser = self._wire.parser(buffer)
        begun, pieces = _until_begun(self._pieces(response))
        # What does not say that it is a stream may be one all the same.
        if begun.startswith(b"{") and "event-stream" not in kind:
            body = _joined(pieces, self._target.kind.max_body_bytes)
            yield from self._read_whole(body, parser, buffer)
        else:
            yield from self._read_stream(pieces, parser, buffer)

    def _read_stream(
        self, pieces: Iterator[bytes], parser: AnswerParser, buffer: PartBuffer
    ) -> Iterator[Part]:
        reader = EventReader(parser)
        for piece in pieces:
            reader.feed(piece)
            yield from buffer.take()
            self._raise_for(reader, parser)
            if reader.ended:
                break
        reader.finish()
        yield from buffer.take()
        self._raise_for(reader, parser)
        yield from self._end(parser, buffer, reader.ended)

    def _read_whole(self, body: bytes, parser: AnswerParser, buffer: PartBuffer) -> Iterator[Part]:
        message = json_object(body.strip())
        if message is None:
            raise failures.broken_off(self._target, "not a whole answer")
        parser.take_body(message)
        if parser.problem is not None:
            raise failures.failure_within(self._target, parser.problem).error()
        yield from buffer.take()
        yield from self._end(parser, buffer, is_announced=True)

    def _end(self, parser: AnswerParser, buffer: PartBuffer, is_announced: bool) -> list[Part]:
        if not parser.is_complete(is_announced):
            raise failures.broken_off(self._target, "its end is missing")
        return buffer.end(parser)

    def _raise_for(self, reader: EventReader, parser: AnswerParser) -> None:
        if reader.has_dropped:
            raise AnswerTooLong
        if parser.problem is not None:
            raise failures.failure_within(self._target, parser.problem).error()

    def _completion(self, reply: HttpReply, request: ModelRequest) -> Completion:
        buffer = WholeBuffer(takes_tool_calls=True)
        parser = self._wire.parser(buffer)
        parser.take_body(json_object(reply.body.strip()) or {})
        parser.finish()
        if not (buffer.has_text or buffer.calls):
            raise ItemRejected(f"unusable answer: {self._name} sent no {self._wire.answer_field}")
        content = buffer.content.text()
        text = without_all_reasoning(content)
        truncated = parser.reason == parser.cut_reason
        if truncated and not (text or buffer.calls):
            limit = self._target.kind.max_tokens
            raise AnswerCutOff(f"unusable answer: none before the token limit; raise {limit}")
        sent, received = parser.prompt_tokens, parser.completion_tokens
        return Completion(
            self._without_key(text),
            sum(map(estimate_mean_tokens, _texts(request))) if sent is None else sent,
            estimate_mean_tokens(content) if received is None else received,
            estimated=sent is None or received is None,
            truncated=truncated,
            tool_calls=tuple(buffer.calls),
        )

    def _without_key(self, text: str) -> str:
        """A text in which the server does not tell us our own key: what it says may be stored."""
        key = self._target.api_key
        return text.replace(key, "(key)") if key else text

    def _failure(self, response: requests.Response) -> Failure:
        reply = self._reply(response)
        failure = failure_of(self._target, reply)
        assert failure is not None, "only what is no answer is asked for its failure"
        return failure

    def _reply(self, response: requests.Response) -> HttpReply:
        headers = {name.lower(): value for name, value in response.headers.items()}
        if 200 <= response.status_code < 300:
            body = _joined(self._pieces(response), self._target.kind.max_body_bytes)
        else:
            body = self._beginning(response)
        return HttpReply(response.status_code, headers, body)

    def _beginning(self, response: requests.Response) -> bytes:
        """What an error says; to a person its status says enough, where no more of it can be read."""
        kind = self._target.kind
        limit = _MAX_ERROR_BYTES if kind.is_provider else kind.max_body_bytes
        try:
            return _joined(self._pieces(response), limit, cut=True)
        except EndpointUnavailable:
            # A job is not judged by half an error: it would lose a try, or pause extraction.
            if not kind.is_provider:
                raise
            return b""

    def _pieces(self, response: requests.Response) -> Iterator[bytes]:
        """The decoded body, each piece of it as soon as it is there."""
        encoding = response.headers.get("content-encoding", "")
        decoder = decoder_for(encoding)
        if decoder is None:
            raise failures.broken_off(self._target, "an encoding that cannot be read")
        try:
            for data in body_pieces(response):
                yield decoder.feed(data) if encoding else data
                if decoder.exhausted:
                    raise AnswerTooLong
                if decoder.broken:
                    raise failures.broken_off(self._target, "not what its encoding says")
        except FAILURES as error:
            raise self._interrupted(error) from error

    def _interrupted(self, error: Exception) -> EndpointUnavailable:
        if is_timeout(error):
            self._call.expire()
        if self._call.cut_because:
            return failures.cut_short(self._target, self._call)
        return failures.broken_off(self._target, failure_reason(error))


def _texts(request: ModelRequest, role: str = "") -> list[str]:
    """What the messages say, all of them or those of one role."""
    chosen = (message for message in request.messages if not role or message.get("role") == role)
    return [text for text in (message.get("content") for message in chosen) if isinstance(text, str)]


def _until_begun(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes that are not blank, and the pieces from there on."""
    for piece in pieces:
        if begun := piece.lstrip():
            return begun, chain([begun], pieces)
    return b"", iter(())


def _joined(pieces: Iterator[bytes], max_bytes: int, cut: bool = False) -> bytes:
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > max_bytes and cut:
            break
        if len(body) > max_bytes:
            raise AnswerTooLong
    return bytes(body[:max_bytes])
