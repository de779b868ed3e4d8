"""The global memory as a session is told of it: its beginning, within a budget."""

from collections.abc import Iterable
from datetime import UTC, datetime

from shepherd_memory.injection.xml_text import INDENT, LIGHTEST, escape_xml, lines_of, unescape_xml
from shepherd_memory.text.block_seal import GLOBAL_NOTE
from shepherd_memory.text.excerpt import shorten_end
from shepherd_memory.text.tokens import UNITS, weigh

CLOSING = "</global-memory>"


def tell_global(text: str, updated: datetime, max_tokens: int) -> str:
    """As much of the text, from its beginning, as `max_tokens` have room for; "" if for nothing.

    An XML parser can read the element. Its lines are indented, but for the note of what was left out.
    """
    opening = f'{GLOBAL_NOTE}\n<global-memory updated="{updated.astimezone(UTC):%Y-%m-%d}">\n'
    lines = [f"{INDENT}{escape_xml(line)}" for line in lines_of(text)]
    whole = "\n".join(lines)
    room = max_tokens * UNITS - weigh(f"{opening}\n{CLOSING}")
    if weigh(whole) <= room:
        return f"{opening}{whole}\n{CLOSING}" if whole else ""
    room -= weigh(_note(len(whole)))
    # Of a long text only what may fit is looked at.
    begun = shorten_end(whole[: max(room, 0) // LIGHTEST + 1], room).rstrip()
    if not begun:
        return ""
    left_out = len(unescape_xml(whole)) - len(unescape_xml(begun))
    return f"{opening}{begun}{_note(left_out)}\n{CLOSING}"


def told_lines(blocks: Iterable[str]) -> set[str]:
    """The lines of the global memory that these blocks tell, as they were written."""
    elements = (text.partition(f"{GLOBAL_NOTE}\n")[2].partition(CLOSING)[0] for text in blocks)
    return {unescape_xml(line).strip() for element in elements for line in element.split("\n")[1:]} - {""}


def _note(left_out: int) -> str:
    return f"\n[… {left_out} more characters left out …]"
