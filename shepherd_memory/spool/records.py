"""One exchange as a line of a spool file: a checksum, then JSON."""

import zlib
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from shepherd_memory.intake.exchange import AnsweredExchange, Exchange, ResponseLink
from shepherd_memory.text.groups import MAIN_GROUP

CHECKSUM_CHARS = 8


class DamagedLine(Exception):
    """A line that cannot be read: only a part of it was written, or the disk changed it."""


@dataclass(frozen=True)
class Record:
    """What waits to be stored, and whose it is."""

    user_id: str
    answered: AnsweredExchange


def line_of(fields: dict[str, Any]) -> bytes:
    """One line with its checksum."""
    content = orjson.dumps(fields)
    return b"%08x %s\n" % (zlib.crc32(content), content)


def fields_of(line: bytes) -> dict[str, Any]:
    """What `line_of` was given, or DamagedLine."""
    checksum, _, content = line.rstrip(b"\n").partition(b" ")
    if len(checksum) != CHECKSUM_CHARS or b"%08x" % zlib.crc32(content) != checksum:
        raise DamagedLine("its checksum is wrong")
    try:
        fields = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise DamagedLine("it is not JSON") from error
    if not isinstance(fields, dict):
        raise DamagedLine("it is not an object")
    return fields


def encode(record: Record) -> bytes:
    """A record as a line."""
    answered = record.answered
    return line_of(
        {
            "user_id": record.user_id,
            "said_at": answered.said_at,
            "session_id": answered.session_id,
            **asdict(answered.exchange),
            "answer": answered.answer,
            **asdict(answered.link),
            "group": answered.group,
            "provider": answered.provider,
            "cwd": answered.cwd,
        }
    )


def decode(line: bytes) -> Record:
    """The record in a line, or DamagedLine."""
    fields = fields_of(line)
    text = {name: fields.get(name) for name in ("user_id", "session_id", "opening", "text", "name")}
    numbers = {name: fields.get(name) for name in ("said_at", "place")}
    answer = fields.get("answer")
    # Lines of older versions have none of these.
    link = {name: fields.get(name, "") for name in ("previous", "response", "block_key")}
    place = (fields.get("group", MAIN_GROUP), fields.get("provider", ""), fields.get("cwd", ""))
    is_whole = (
        all(isinstance(value, str) for value in (*text.values(), *link.values(), *place))
        and all(type(value) is int for value in numbers.values())
        and (answer is None or isinstance(answer, str))
    )
    if not is_whole:
        raise DamagedLine("something is missing in it")
    exchange = Exchange(
        fields["opening"], fields["place"], fields["text"], fields["name"], fields.get("is_last") is True
    )
    answered = AnsweredExchange(
        exchange, answer, fields["session_id"], fields["said_at"], ResponseLink(**link), *place
    )
    return Record(fields["user_id"], answered)
