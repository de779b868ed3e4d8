"""Text inside of the elements that a session begins with: visible, in lines, and no markup of its own."""

from collections.abc import Sequence

from shepherd_memory.text.visible import visible_text

INDENT = "  "
"""Before every line of a text but perhaps its first, so that none can pose as something else."""

LIGHTEST = 4
"""No character weighs less: so many of them, and no more, can fit into a room."""


def lines_of(text: str) -> Sequence[str]:
    """The lines with anything in them, by all that ends a line anywhere."""
    lines = [line.replace("\x1f", " ").rstrip() for line in visible_text(text).splitlines()]
    kept = [line for line in lines if line]
    return [kept[0].lstrip(), *kept[1:]] if kept else []


def escape_xml(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape_xml(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def escape_attribute(text: str) -> str:
    """The same for what stands between quotation marks, in one line."""
    return escape_xml(" ".join(visible_text(text).split())).replace('"', "&quot;")
