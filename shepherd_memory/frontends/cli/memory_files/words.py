"""What commands about memory files say when there are none."""

from collections.abc import Container
from typing import TYPE_CHECKING

from shepherd_memory.frontends.terminal.output import print_note
from shepherd_memory.phases.sections import MEMORY_FILE

if TYPE_CHECKING:
    from shepherd_memory.service import Service


def print_what_to_do(service: "Service", user_id: str, files: Container[str]) -> None:
    """As long as nothing was consolidated: how it is, or what has to be set first."""
    if MEMORY_FILE in files:
        return
    off = service.why_no_consolidation()
    how = f"first, {off}" if off else "`shepherd memory process`, then `shepherd memory process --phase 2`"
    print_note(f"{MEMORY_FILE} of {user_id} is not written yet: {how}")
