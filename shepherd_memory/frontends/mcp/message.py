"""A message as it came: made readable where the SDK is too strict, refused where it is too lenient."""

import json

import msgspec
import orjson

from shepherd_memory.errors import InvalidInput
from shepherd_memory.text.canonical import dump_json


class _Head(msgspec.Struct):
    id: str | int | msgspec.UnsetType = msgspec.UNSET


def readable(message: bytes) -> bytes:
    """The same without halves of surrogate pairs, NaN and the like; what is no JSON stays as it is."""
    try:
        orjson.loads(message)
    except orjson.JSONDecodeError:
        message = _mended(message)
    _check_id(message)
    return message


def _mended(message: bytes) -> bytes:
    try:
        return dump_json(json.loads(message)).encode()
    except (ValueError, RecursionError):
        return message


def _check_id(message: bytes) -> None:
    """Else the SDK takes a request with a strange id for a notification, and nobody gets an answer."""
    try:
        msgspec.json.decode(message, type=_Head)
    except msgspec.ValidationError:
        raise InvalidInput("a message is one object, and its id text or a whole number") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
