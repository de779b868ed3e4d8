"""A message as it came: made readable where other programs write JSON less strictly than the SDK reads it."""

import json

import orjson

from shepherd_memory.canonical import dump_json


def readable(message: bytes) -> bytes:
    """The same without halves of surrogate pairs, NaN and the like; what is no JSON stays as it is."""
    try:
        orjson.loads(message)
    except orjson.JSONDecodeError:
        return _mended(message)
    return message


def _mended(message: bytes) -> bytes:
    try:
        return dump_json(json.loads(message)).encode()
    except (ValueError, RecursionError):
        return message
