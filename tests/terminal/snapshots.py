"""What a textual app shows, as plain text, compared with a file in tests/terminal/snapshots/.

`SHEPHERD_TEST_UPDATE_SNAPSHOTS=1 pytest …` writes the files anew; look at them before you commit them.
"""

import html
import os
import re
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from textual.app import App

FOLDER = Path(__file__).with_name("snapshots")
UPDATE = "SHEPHERD_TEST_UPDATE_SNAPSHOTS"

# A piece of text in textual's own screenshot: a character is 12.2 wide, the clip path names the line.
_PIECE = re.compile(r'<text[^>]*? x="([\d.]+)"[^>]*?-line-(\d+)\)"[^>]*>(.*?)</text>', re.DOTALL)
_COLUMN = 12.2

# Frames, scrollbars and underlines look different from one version of textual to the next.
_DECORATION = re.compile("[\u2500-\u259f\u2800-\u28ff\ue000-\uf8ff]")


def screen_lines(app: App[Any]) -> list[str]:
    """The lines on the screen, with what lies on top of it, without frames, colours and trailing blanks."""
    pieces: dict[int, list[tuple[int, str]]] = {}
    for x, line, text in _PIECE.findall(app.export_screenshot()):
        shown = html.unescape(text).replace("\xa0", " ")
        pieces.setdefault(int(line), []).append((round(float(x) / _COLUMN), shown))
    lines = [_joined(sorted(pieces.get(number, ()))) for number in range(app.size.height)]
    return [_DECORATION.sub(" ", line).rstrip() for line in lines]


def _joined(pieces: list[tuple[int, str]]) -> str:
    line = ""
    for column, text in pieces:
        line += " " * (column - cell_len(line)) + text
    return line


def screen_text(app: App[Any]) -> str:
    """All lines on the screen, to look for words in."""
    return "\n".join(screen_lines(app))


def assert_looks_like(app: App[Any], name: str) -> None:
    """Compare the screen with snapshots/`name`.txt, or write that file if the environment asks for it."""
    path, seen = FOLDER / f"{name}.txt", "\n".join(screen_lines(app)).rstrip() + "\n"
    if os.environ.get(UPDATE):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(seen)
    assert path.exists(), f"there is no {path}; {UPDATE}=1 writes it"
    assert seen.splitlines() == path.read_text().splitlines(), f"{UPDATE}=1 writes {path.name} anew"
