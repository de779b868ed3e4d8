"""Blocks of a message that are written again, as they were or grown, while the message is made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shepherd_memory.text.ids import digest_of

MESSAGES = 4
BLOCKS = 32
"""What is kept of so many messages, and of so many blocks of each, is what `state` can grow to."""


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """A part of a message: a text, or a tool's call as one line."""

    text: str
    tool: str = ""
    tool_id: str = ""


@dataclass(frozen=True, slots=True)
class BlockVersion:
    """The last version of a block: how long its text was, and a digest of it."""

    length: int
    digest: str


_CALL = BlockVersion(0, "")
"""A call has an id of its own, and does not grow."""


class StreamedBlocks:
    """The blocks of the last few messages, each under the name that its first version got."""

    def __init__(self, state: Sequence[Any] = ()) -> None:
        self._messages: dict[str, dict[str, BlockVersion]] = {
            message_id: {name: BlockVersion(*version) for name, version in blocks.items()}
            for message_id, blocks in state
        }

    def state(self) -> list[Any]:
        """As JSON data, for the next reader of the same file."""
        return [
            [message_id, {name: [version.length, version.digest] for name, version in blocks.items()}]
            for message_id, blocks in self._messages.items()
        ]

    def new_in(self, message_id: str, blocks: Sequence[MessageBlock]) -> tuple[str, Sequence[MessageBlock]]:
        """The blocks that were not there yet, and the name to give them.

        If one has grown, all are given: they stand for what was given under that name before.
        """
        seen = self._seen(message_id)
        found = [_found(seen, block) for block in blocks]
        known = [name for name, _, _ in found if name in seen]
        new = [index for index, (name, _, _) in enumerate(found) if name not in seen]
        for name, _, version in found:
            if name in seen or len(seen) < BLOCKS:
                seen[name] = version
        if any(is_grown for _, is_grown, _ in found):
            return known[0], blocks
        return (found[new[0]][0] if new else ""), [blocks[index] for index in new]

    def _seen(self, message_id: str) -> dict[str, BlockVersion]:
        if message_id not in self._messages:
            self._messages[message_id] = {}
            if len(self._messages) > MESSAGES:
                del self._messages[next(iter(self._messages))]
        return self._messages[message_id]


def _found(seen: dict[str, BlockVersion], block: MessageBlock) -> tuple[str, bool, BlockVersion]:
    """The name of a block, whether it is one that was there before and has grown, and this version of it."""
    if block.tool_id:
        return block.tool_id, False, _CALL
    digest = digest_of(block.text)
    this = BlockVersion(len(block.text), digest)
    if digest in seen:
        return digest, False, seen[digest]
    for name, last in seen.items():
        if last == this:
            return name, False, last
        if 0 < last.length < this.length and digest_of(block.text[: last.length]) == last.digest:
            return name, True, this
    return digest, False, this
