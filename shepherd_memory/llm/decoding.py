"""Content-Encoding undone, piece by piece, for a response that is passed on encoded."""

import zlib
from typing import Protocol

READABLE = ("gzip", "x-gzip", "deflate", "identity")
"""The codings that can be asked of a provider whose answer is to be read."""

MAX_OUTPUT_BYTES = 64 * 1024 * 1024
_MAX_CODINGS = 5
_SLICE = 16 * 1024
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f"


class _Coding(Protocol):
    def decode(self, data: bytes, most: int) -> bytes:
        """At most `most` bytes of what `data` stands for; raises zlib.error."""


class Decoder:
    """Gives the plain bytes of what it is fed; never raises."""

    def __init__(self, codings: list[_Coding], max_output_bytes: int = MAX_OUTPUT_BYTES) -> None:
        self.broken = False
        """The data is not what its coding says."""
        self.exhausted = False
        """There is more of it than anyone needs, as in a decompression bomb."""
        self._codings = codings
        self._room = [max_output_bytes] * len(codings)

    def feed(self, data: bytes) -> bytes:
        """What `data` adds to the plain bytes; nothing any more once broken or exhausted."""
        if self.broken or self.exhausted:
            return b""
        for level, coding in enumerate(self._codings):
            data = self._decode(level, coding, data)
        return data

    def _decode(self, level: int, coding: _Coding, data: bytes) -> bytes:
        room = self._room[level]
        try:
            # One byte more than there is room for tells a full measure from an overflow.
            plain = coding.decode(data, room + 1)
        except zlib.error:
            self.broken = True
            return b""
        if len(plain) > room:
            self.exhausted = True
            plain = plain[:room]
        self._room[level] = room - len(plain)
        return plain


def decoder_for(encoding: str, max_output_bytes: int = MAX_OUTPUT_BYTES) -> Decoder | None:
    """A decoder for this Content-Encoding; None if a coding in it cannot be read."""
    names = [name for name in (part.strip().lower() for part in encoding.split(",")) if name]
    if not set(names) <= set(READABLE):
        return None
    # The header lists the codings in the order in which they were applied.
    codings = [_CODINGS[name]() for name in reversed(names) if name != "identity"]
    return Decoder(codings, max_output_bytes) if len(codings) <= _MAX_CODINGS else None


class _Gzip:
    """One gzip member or several, and what may follow them: padding, or bytes that every client ignores."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._is_over = False

    def decode(self, data: bytes, most: int) -> bytes:
        plain = bytearray()
        # In slices, because each member copies all that follows it: many small ones would cost the square.
        for start in range(0, len(data), _SLICE):
            self._decode_slice(data[start : start + _SLICE], plain, most)
        return bytes(plain)

    def _decode_slice(self, data: bytes, plain: bytearray, most: int) -> None:
        while data and len(plain) < most and not self._is_over:
            if self._member.eof:
                data = data.lstrip(b"\0")
                self._begin_member(data)
                continue
            plain += self._member.decompress(data, most - len(plain))
            data = self._member.unused_data

    def _begin_member(self, data: bytes) -> None:
        if data.startswith(_GZIP_MAGIC):
            self._member = zlib.decompressobj(_GZIP)
        elif data:
            self._is_over = True


class _Deflate:
    """A zlib stream as the standard has it, or the bare deflate data that some servers send."""

    def __init__(self) -> None:
        self._head = b""
        self._stream: zlib._Decompress | None = None

    def decode(self, data: bytes, most: int) -> bytes:
        if self._stream is None:
            data = self._head + data
            if len(data) < 2:
                self._head = data
                return b""
            self._stream = zlib.decompressobj(zlib.MAX_WBITS if _has_zlib_header(data) else -zlib.MAX_WBITS)
        return b"" if self._stream.eof else self._stream.decompress(data, most)


def _has_zlib_header(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0


_CODINGS: dict[str, type[_Coding]] = {"gzip": _Gzip, "x-gzip": _Gzip, "deflate": _Deflate}
