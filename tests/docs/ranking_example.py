"""The worked example of the ranking page; `python -m tests.docs.ranking_example` writes it there anew."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.terminal.shell import on_terminal

PAGE = Path(__file__).parents[2] / "docs" / "ranking.md"

_EXAMPLE = re.compile(
    r"(?<=^## An example\n)(.*?^```sh\n)(.*?)(^```\n\n```text\n)(.*?)(?=^```$)", re.M | re.S
)
_STYLE = re.compile("\x1b\\[[0-9;]*m")


def written() -> str:
    """What the page says that the command shows."""
    return _found()[4]


def shown(folder: Path) -> str:
    """What it shows."""
    *before, command = _found()[2].strip().split("\n")
    os.environ["SHEPHERD_CONFIG"] = str(folder / "config.toml")
    (folder / "config.toml").write_text(f'user_id = "steve"\nmemory_database = "{folder}/memory.db"\n')
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    told = "\n".join(before)
    subprocess.run(["bash", "-euc", told], env={**os.environ, "PATH": path}, check=True, capture_output=True)
    code, seen = on_terminal(*shlex.split(command)[1:], columns=100)
    assert code == 0, seen
    return _STYLE.sub("", seen)


def _found() -> re.Match[str]:
    found = _EXAMPLE.search(PAGE.read_text("utf-8"))
    assert found, "the page has its example under this heading"
    return found


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    with tempfile.TemporaryDirectory() as folder:
        new = shown(Path(folder))
    text = PAGE.read_text("utf-8")
    start, end = _found().span(4)
    PAGE.write_text(text[:start] + new + text[end:], encoding="utf-8")
