"""The tools that an assistant used, as names and as one line each."""

from collections.abc import Mapping
from itertools import islice

from shepherd_memory.text.canonical import canonical_text

MAX_NAME_CHARS = 100
MAX_ARGUMENT_CHARS = 100
"""Characters of an argument that are shown."""

TELLING = (
    "description",
    "command",
    "cmd",
    "file_path",
    "notebook_path",
    "pattern",
    "query",
    "url",
    "path",
)
"""Arguments that say best what a call was for, the best first."""

_LOOKED_AT = 1000
"""Characters of an argument in which its first line with something on it is looked for."""

_MAX_ARGUMENTS = 20


def tool_name(name: object) -> str:
    """A tool's name as it can be stored; "" if it has none."""
    return _first_line(name, MAX_NAME_CHARS) if isinstance(name, str) else ""


def tool_line(name: str, arguments: object) -> str:
    """A call in one line: "[Bash: Run the tests]", "[Edit: /src/main.py]", "[TodoWrite]"."""
    told = _argument(arguments)
    return f"[{name}: {told}]" if told else f"[{name}]"


def patched_file(patch: str) -> str:
    """The first file that a patch in Codex's format changes; "" if it is no such patch."""
    if not patch.startswith("*** Begin Patch"):
        return ""
    lines = patch[:_LOOKED_AT].splitlines()
    return next(
        (line.partition(" File: ")[2] for line in lines if line.startswith("*** ") and " File: " in line), ""
    )


def _argument(arguments: object) -> str:
    if isinstance(arguments, str):
        return _first_line(arguments, MAX_ARGUMENT_CHARS)
    if not isinstance(arguments, Mapping):
        return ""
    for key in TELLING:
        if told := _told(arguments.get(key)):
            return told
    for value in islice(arguments.values(), _MAX_ARGUMENTS):
        if isinstance(value, str) and (told := _first_line(value, MAX_ARGUMENT_CHARS)):
            return told
    return ""


def _told(value: object) -> str:
    """An argument in one line; a command may be a list of words."""
    if isinstance(value, list):
        words = [word[:_LOOKED_AT] for word in islice(value, _MAX_ARGUMENTS) if isinstance(word, str)]
        # A shell's own name and flag say nothing: the script is what was run.
        value = words[-1] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    return _first_line(value, MAX_ARGUMENT_CHARS) if isinstance(value, str) else ""


def _first_line(text: str, longest: int) -> str:
    start = text[:_LOOKED_AT].strip()
    line = canonical_text(start.splitlines()[0].rstrip()) if start else ""
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
