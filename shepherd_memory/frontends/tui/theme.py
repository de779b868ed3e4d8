"""Light or dark: what the user chose last, for the next time."""

import logging

from shepherd_memory.config import private_files, state_folder

logger = logging.getLogger("shepherd_memory.frontends.tui.look")

NAME = "tui-look"
LIGHT, DARK = "light", "dark"


def is_light() -> bool:
    """Whether light was chosen; dark if nothing was."""
    try:
        return (state_folder() / NAME).read_text(encoding="utf-8", errors="replace").strip() == LIGHT
    except OSError:
        return False


def remember(light: bool) -> None:
    """Keep the choice. Where that cannot be, the next time begins as this one did."""
    path = state_folder() / NAME
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        private_files.replace(path, f"{LIGHT if light else DARK}\n".encode())
    except OSError as error:
        logger.warning("the look could not be kept: %s", error)
