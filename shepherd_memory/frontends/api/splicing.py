"""A request's body edited in place: what is not changed stays byte for byte what the client sent."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from shepherd_memory.text.json_spans import Member, is_empty, members, starts_of_elements


@dataclass(frozen=True)
class SplicePoint:
    """What goes to the end of the message at `place`: text into its text, a part into its list of parts.

    A text in place of the list of messages is the message at place 0.
    """

    place: int
    addition: str | Mapping[str, Any]


class _Edit(NamedTuple):
    start: int
    end: int
    replacement: bytes


def splice(
    body: bytes,
    *,
    without: Collection[str] = (),
    model: str | None = None,
    tails: Sequence[SplicePoint] = (),
    holder: str = "messages",
) -> bytes:
    """The body without these members, with this value in its `model` if it has one, and with these tails.

    `holder`: the member that holds the messages.
    """
    if not without and model is None and not tails:
        return body
    found = list(members(body, body.index(b"{")))
    kept = [member for member in found if member.key not in without]
    edits = list(_removals(found, without))
    if model is not None:
        edits += _replacements(body, kept, "model", _encoded(model))
    if tails:
        edits += _additions(body, _last(kept, holder), tails)
    return _edited(body, sorted(edits)) if edits else body


def _removals(found: Sequence[Member], without: Collection[str]) -> Iterator[_Edit]:
    """Each goes with the comma before it, or, if nothing stays before it, with the comma after it."""
    follows_kept = False
    for place, member in enumerate(found):
        if member.key not in without:
            follows_kept = True
        elif follows_kept:
            yield _Edit(found[place - 1].end, member.end, b"")
        else:
            is_last = place + 1 == len(found)
            yield _Edit(member.start, member.end if is_last else found[place + 1].start, b"")


def _replacements(body: bytes, kept: Iterable[Member], key: str, value: bytes) -> Iterator[_Edit]:
    for member in kept:
        if member.key == key and body[member.value : member.end] != value:
            yield _Edit(member.value, member.end, value)


def _additions(body: bytes, held: Member, tails: Sequence[SplicePoint]) -> Iterator[_Edit]:
    ordered = sorted(tails, key=lambda tail: tail.place)
    for content, tail in zip(_contents(body, held, [tail.place for tail in ordered]), ordered, strict=True):
        before_closing = content.end - 1
        yield _Edit(before_closing, before_closing, _continuation(body, content.value, tail.addition))


def _contents(body: bytes, held: Member, places: Sequence[int]) -> Iterator[Member]:
    """Where the words of the messages at these places stand."""
    if body.startswith(b'"', held.value) and list(places) == [0]:
        yield held
        return
    for message in starts_of_elements(body, held.value, places):
        yield _last(members(body, message), "content")


def _last(found: Iterable[Member], key: str) -> Member:
    """The member that a parser takes: of several with one key, the last."""
    named = [member for member in found if member.key == key]
    if not named:
        raise ValueError(f"there is no {key!r}")
    return named[-1]


def _continuation(body: bytes, content: int, addition: str | Mapping[str, Any]) -> bytes:
    if isinstance(addition, str) and body.startswith(b'"', content):
        return _encoded(addition)[1:-1]
    if isinstance(addition, Mapping) and body.startswith(b"[", content) and not is_empty(body, content):
        return b"," + _encoded(dict(addition))
    raise ValueError("the content is not of the kind that this can be added to")


def _encoded(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        # Half of a surrogate pair, which a client can escape in a model's name and UTF-8 cannot hold.
        return json.dumps(value).encode()


def _edited(body: bytes, edits: Iterable[_Edit]) -> bytes:
    # A view, so that what is kept of a large body is copied once and not twice.
    view = memoryview(body)
    pieces: list[bytes | memoryview] = []
    end = 0
    for edit in edits:
        pieces += [view[end : edit.start], edit.replacement]
        end = edit.end
    return b"".join([*pieces, view[end:]])
