"""One exchange with a provider over HTTP: what is posted, and the parts read from what comes back."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import requests

from shepherd_memory.config import PROVIDER_FIELDS
from shepherd_memory.config.providers import Provider, api_url
from shepherd_memory.errors import EndpointError, EndpointMisconfigured, EndpointUnavailable, ItemRejected
from shepherd_memory.llm.answer import MAX_TEXT_CHARS, AnswerParser, AnswerTooLong, PartBuffer, json_object
from shepherd_memory.llm.cancellation import Call
from shepherd_memory.llm.decoding import decoder_for
from shepherd_memory.llm.dialect import Dialect
from shepherd_memory.llm.http import (
    FAILURES,
    Connections,
    Login,
    certificate_error,
    failure_reason,
    is_bad_address,
    is_timeout,
)
from shepherd_memory.llm.refusals import Refusal
from shepherd_memory.llm.request import ModelRequest, Part
from shepherd_memory.llm.sse import EventReader
from shepherd_memory.llm.wires import wire_of

LONGEST_BODY = 16 * 1024 * 1024
_LONGEST_REFUSAL = 64 * 1024
_ONE_READ = 64 * 1024
_ACCEPTED = "text/event-stream, application/json"


class Exchange:
    """A provider, asked over some connections under the eyes of one call."""

    def __init__(self, connections: Connections, call: Call, provider: Provider) -> None:
        self._connections = connections
        self._call = call
        self._provider = provider
        self._name = provider.name
        self._key = provider.api_key.strip()
        self._wire = wire_of(provider.type)
        self._url = api_url(provider)

    def parts(self, request: ModelRequest, dialects: dict[str, Dialect]) -> Iterator[Part]:
        """Ask, and again in a lesser dialect where one is refused; `dialects` keeps what is understood."""
        dialect = dialects.get(self._url, Dialect())
        while True:
            body = self._wire.body(request, dialect)
            with self._send("POST", self._wire.path, body) as response:
                if response.ok and response.status_code < 300:
                    dialects[self._url] = dialect
                    yield from self._bounded(self._read(response))
                    return
                refusal = self._refusal(response)
            lesser = self._wire.lesser(dialect, refusal.status, refusal.text())
            if lesser is None:
                raise refusal.error(self._name, self._key)
            dialect = lesser

    def get(self, path: str) -> bytes:
        """What the API has at a path, or an EndpointError."""
        with self._send("GET", path) as response:
            if response.status_code != 200:
                raise self._refusal(response).error(self._name, self._key)
            return _joined(self._pieces(response), LONGEST_BODY, cut=True)

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> requests.Response:
        headers = {"Accept": _ACCEPTED, **self._wire.headers}
        url = api_url(self._provider, path)
        try:
            return self._connections.send(self._call, method, url, self._login(url), headers, body)
        except FAILURES as error:
            raise self._unreachable(error) from error

    def _login(self, url: str) -> Login:
        return Login(url, self._wire.login(self._key) if self._key else {})

    def _bounded(self, parts: Iterator[Part]) -> Iterator[Part]:
        try:
            yield from parts
        except AnswerTooLong as error:
            longest = f"{MAX_TEXT_CHARS:,} characters"
            raise ItemRejected(
                f"{self._name}: the answer is longer than {longest}; ask for a shorter one"
            ) from error

    def _read(self, response: requests.Response) -> Iterator[Part]:
        kind = response.headers.get("content-type", "").lower()
        if "text/html" in kind:
            raise EndpointMisconfigured(
                f"{self._name} answers with a page for browsers; check its type and base_url"
            )
        buffer = PartBuffer(self._wire.parser.reasons_in_text)
        parser = self._wire.parser(buffer)
        begun, pieces = _until_begun(self._pieces(response))
        # What does not say that it is a stream may be one all the same.
        if begun.startswith(b"{") and "event-stream" not in kind:
            yield from self._read_whole(_joined(pieces, LONGEST_BODY), parser, buffer)
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
            raise self._broke_off("not a whole answer")
        parser.take_body(message)
        if parser.problem is not None:
            raise Refusal(200, problem=parser.problem).error(self._name, self._key)
        yield from buffer.take()
        yield from self._end(parser, buffer, is_announced=True)

    def _end(self, parser: AnswerParser, buffer: PartBuffer, is_announced: bool) -> list[Part]:
        if not parser.is_complete(is_announced):
            raise self._broke_off("its end is missing")
        return buffer.end(parser)

    def _raise_for(self, reader: EventReader, parser: AnswerParser) -> None:
        if reader.has_dropped:
            raise AnswerTooLong
        if parser.problem is not None:
            raise Refusal(200, problem=parser.problem).error(self._name, self._key)

    def _refusal(self, response: requests.Response) -> Refusal:
        headers = {name.lower(): value for name, value in response.headers.items()}
        try:
            body = _joined(self._pieces(response), _LONGEST_REFUSAL, cut=True)
        except EndpointUnavailable:
            # Its status says enough.
            body = b""
        return Refusal(response.status_code, body, headers)

    def _pieces(self, response: requests.Response) -> Iterator[bytes]:
        """The body, each piece of it as soon as it is there."""
        decoder = decoder_for(response.headers.get("content-encoding", ""))
        if decoder is None:
            raise self._broke_off("an encoding that cannot be read")
        is_plain = not response.headers.get("content-encoding")
        while data := self._next_bytes(response):
            yield data if is_plain else decoder.feed(data)
            if decoder.exhausted:
                raise AnswerTooLong
            if decoder.broken:
                raise self._broke_off("not what its encoding says")

    def _next_bytes(self, response: requests.Response) -> bytes:
        try:
            # Any other way to read waits until so many bytes, or a whole chunk of the server's, are there.
            data: bytes = response.raw.read1(_ONE_READ, decode_content=False)
        except FAILURES as error:
            if is_timeout(error):
                raise self._too_late() from error
            raise self._broke_off(failure_reason(error)) from error
        return data

    def _unreachable(self, error: Exception) -> EndpointError:
        if is_timeout(error):
            return self._too_late()
        if is_bad_address(error):
            return EndpointMisconfigured(f"{self._name}: its base_url cannot be used as an address")
        shown = PROVIDER_FIELDS["base_url"].show(self._url)
        if trouble := certificate_error(error):
            return EndpointMisconfigured(f"{self._name}: {shown}: {trouble}; check its base_url and the CA")
        why = failure_reason(error)
        return EndpointUnavailable(f"{self._name}: cannot reach {shown} ({why}); is the server running?")

    def _too_late(self) -> EndpointUnavailable:
        self._call.expire()
        return EndpointUnavailable(
            f"{self._name}: {self._call.cut_because}; try again later", item_may_be_at_fault=True
        )

    def _broke_off(self, why: str) -> EndpointUnavailable:
        return EndpointUnavailable(
            f"the answer of {self._name} broke off ({why}); try again", item_may_be_at_fault=True
        )


def _until_begun(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes that are not blank, and the pieces from there on."""
    for piece in pieces:
        if begun := piece.lstrip():
            return begun, chain([begun], pieces)
    return b"", iter(())


def _joined(pieces: Iterator[bytes], longest: int, cut: bool = False) -> bytes:
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > longest and cut:
            break
        if len(body) > longest:
            raise AnswerTooLong
    return bytes(body[:longest])
