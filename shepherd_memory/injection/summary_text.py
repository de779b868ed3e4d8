"""The summary of a memory as a session is told of it: an element with as many lines as there is room for."""

from collections.abc import Sequence

from shepherd_memory.injection.previous_session import ContextSection
from shepherd_memory.injection.xml_text import escape_xml
from shepherd_memory.phases.summary import VERSION, SummaryLine, SummarySection
from shepherd_memory.text.tokens import UNITS, weigh

OPENING, CLOSING = f'<memory-summary version="{VERSION}">', "</memory-summary>"


def tell_summary(sections: Sequence[SummarySection], max_tokens: int) -> ContextSection | None:
    """As many lines, the session's project first, as `max_tokens` have room for; None if for none."""
    room = max_tokens * UNITS - weigh(f"{OPENING}\n{CLOSING}\n")
    # By their places: a model may have called a section as another one is called.
    taken: dict[int, list[SummaryLine]] = {}
    for at, section in sorted(enumerate(sections), key=lambda one: not one[1].project):
        for line in section.lines:
            heading = 0 if at in taken else weigh(_heading(section))
            need = heading + weigh(f"{escape_xml(line.text)}\n")
            if need > room:
                break
            taken.setdefault(at, []).append(line)
            room -= need
    if not taken:
        return None
    text = "".join(_heading(sections[at]) + _listed(taken[at]) for at in sorted(taken))
    lines = [line for at in sorted(taken) for line in taken[at]]
    documents = [number for line in lines for number in line.document_ids]
    whole = {number for line in lines for number in line.whole_ids}
    cut = [number for number in documents if number not in whole]
    used = [line.note for line in lines if line.note is not None]
    return ContextSection(f"{OPENING}\n{text}{CLOSING}", tuple(documents), tuple(cut), tuple(used))


def _heading(section: SummarySection) -> str:
    return f"## {escape_xml(section.heading)}\n"


def _listed(lines: Sequence[SummaryLine]) -> str:
    return "".join(f"{escape_xml(line.text)}\n" for line in lines)
