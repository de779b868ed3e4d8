"""Which stretches of a message are not the user's own words: pastes, quotations, text to be worked on."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from shepherd_memory.text.grounding.languages import Languages, pattern

PASTED, QUOTED, SET_OFF = "pasted", "quoted", "set off"


@dataclass(frozen=True)
class Stretch:
    """A stretch of folded text that somebody else wrote."""

    start: int
    end: int
    why: str


_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*(?:>|\|)(?!>>).*$", re.MULTILINE)
_PROMPT = r"(?:[\w.-]+@[\w.-]+[^\n$#%]{0,60}[$#%]|\$|>>>|ps [a-z]:\\[^\n>]*>|[a-z]:\\[^\n>]*>|%)"
# A command with what it printed, up to an empty line.
_TERMINAL = re.compile(rf"^[ \t]*{_PROMPT}[ \t]\S[^\n]*(?:\n(?![ \t]*\n)[^\n]+)*", re.MULTILINE)
_OUTPUT_STARTS = (
    r"\[?\d{4}-\d\d-\d\d[t ]\d\d:\d\d",
    r"\[?\d\d:\d\d:\d\d",
    r"\[?(?:info|debug|warn(?:ing)?|error|trace|fatal)[ :\]]",
    r"traceback \(|file \"[^\"\n]*\", line \d|at [\w.$]+\(|[\w.]*(?:error|exception): ",
    r"[d-][rwx-]{9}[ .]|total \d+$|pid +\w|user +pid",
    r"commit [0-9a-f]{7,}|author: |diff --git|@@ |[+-]{3} [ab]/",
    r"(?:get|post|put|delete) /\S+ http",
    r"[a-z_][a-z0-9_]*=\S|\{\"|\}|\"\w+\": |[\w.]+ = [\"'\[{\d]|[\w.]+\([^\n]*\);",
    r"(?:def|class|function|public|private|#include|export|const|var) [\w{(\"'*.]+.*[:;{(]\s*$",
)
_OUTPUT = re.compile(rf"^[ \t]*(?:{'|'.join(_OUTPUT_STARTS)})[^\n]*$", re.MULTILINE)
_NUMBER_OR_FENCE = re.compile(r"\s*(?:\d|`{3}|~{3})")
_MARKS = re.compile(
    r"\"[^\"\n]{3,1000}+\"|“[^“”\n]{3,1000}+”|„[^„“”\n]{3,1000}+[“”]|«[^«»\n]{3,1000}+»"
    r"|「[^「」\n]{2,500}+」|『[^『』\n]{2,500}+』|(?<![\w'])'[^'\n]{12,1000}+'(?!\w)"
)
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
MAX_TITLE_WORDS = 8
MAX_TITLE_CHARACTERS = 20
"""What is longer and stands in quotation marks is no title: somebody wrote it."""


def foreign_stretches(folded: str, languages: Languages) -> tuple[Stretch, ...]:
    """All of them; they may overlap."""
    return tuple([*_pasted(folded, languages), *_spoken(folded, languages)])


def _pasted(folded: str, languages: Languages) -> Iterator[Stretch]:
    for lines in (_FENCE, _QUOTED_LINE, _TERMINAL, _OUTPUT):
        yield from (Stretch(match.start(), match.end(), PASTED) for match in lines.finditer(folded))
    mail = _mail_start(folded)
    if mail is not None:
        below = _POINTS_UP.search(folded, mail)
        yield Stretch(mail, below.start() if below else len(folded), PASTED)
    if work := _to_work_on(folded, languages):
        yield work
    yield from _set_off(folded)


@cache
def _lines(entry: str) -> re.Pattern[str]:
    """The lines that begin with a phrase of letters, in any language: mail is often in another one."""
    before, after = _LINE_ENDS[entry]
    return re.compile(f"^{before}(?:{pattern('mail', entry).pattern}){after}", re.MULTILINE)


_LINE_ENDS = {
    "header": (r"[ \t*>]*", r"[ \t*]*:[ \t*]*\S[^\n]*$"),
    "forwarded": (r"[^\n]{0,120}", r"[^\n]*$"),
    "greeting": (r"[ \t]*", r"[ ,]*[^\n,]{0,60}(?:,[^\n]*)?$"),
    "hello": (r"[ \t]*", r" [^\n,]{1,60}(?:,[^\n]*)?$"),
    "closing": (r"[ \t]*", r"[^\n]{0,40}$"),
}


def _mail_start(folded: str) -> int | None:
    headers = [match.start() for match in _lines("header").finditer(folded)]
    if len(headers) > 1 and folded.count("\n", headers[0], headers[1]) < 4:
        return headers[0]
    if forwarded := _lines("forwarded").search(folded):
        return forwarded.start()
    for entry in ("greeting", "hello"):
        greeting = _lines(entry).search(folded)
        # Who begins with "Hello" greets the assistant.
        is_letter = greeting is not None and (entry == "greeting" or folded[: greeting.start()].strip())
        if greeting and is_letter and _lines("closing").search(folded, greeting.end()):
            return greeting.start()
    return None


def _to_work_on(folded: str, languages: Languages) -> Stretch | None:
    """What follows "translate this:" and the like."""
    colon = folded.find(":")
    while 0 <= colon < 400:
        line = (
            max(folded.rfind("\n", 0, colon), folded.rfind(". ", 0, colon), folded.rfind("。", 0, colon)) + 1
        )
        asks = pattern("moods", "text_work", languages).search(folded, line, colon)
        # A code block has its own end.
        if asks and not _NUMBER_OR_FENCE.match(folded[colon + 1 : colon + 20]):
            return Stretch(colon + 1, len(folded), PASTED)
        colon = folded.find(":", colon + 1)
    return None


# A line that begins so speaks of what was pasted above it.
_POINTS_UP = re.compile(r"^[ \t]*[\^↑]", re.MULTILINE)

# Between such lines stands what was copied from somewhere, or a part of what the user wrote at length.
_RULE = re.compile(r"^[ \t]*(?:-{3,}|={3,}|\*{3,}|_{3,}|~{3,}|#{3,}|\+{3,})[ \t]*(?:\n|\Z)", re.MULTILINE)
_POINTS = re.compile(
    r"\b(?:this|these|below|following|diese\w?|folgende\w?|est[aeo]s?|eso|siguiente|cett?e?|suivante?|ess[ae]|isto|isso|seguinte|эт\w{1,2}|ca|cela)\b|\b(?:it|das)(?=\W*$)"
    r"|この|これ|以下|这"
)
MAX_LINE = 400


def _set_off(folded: str) -> Iterator[Stretch]:
    """What stands between lines of dashes, and what a line hands over that points to it and asks for work."""
    rules = list(_RULE.finditer(folded))
    if rules:
        lead = folded[: rules[0].start()].rstrip().rpartition("\n")[2]
        is_handed = lead.endswith((":", "?")) or _hands_over(lead)
        end = rules[-1].start() if len(rules) > 1 else len(folded)
        yield Stretch(rules[0].end(), end, PASTED if is_handed else SET_OFF)
    line_end = folded.find("\n")
    first = folded[: max(line_end, 0)]
    if 0 < line_end < MAX_LINE and (_hands_over(first) or _asks_about_text(first)):
        yield Stretch(line_end, len(folded), SET_OFF)


def _hands_over(line: str) -> bool:
    # In any language: what is handed over is often in another one than the request.
    asks = pattern("moods", "text_work").search(line)
    return asks is not None and _POINTS.search(line) is not None


def _asks_about_text(line: str) -> bool:
    """Whether a line asks for work on a letter or the like: "translate the letter of a candidate"."""
    asks = pattern("moods", "text_work").search(line)
    return asks is not None and pattern("plain", "text").search(line) is not None


def _spoken(folded: str, languages: Languages) -> Iterator[Stretch]:
    """What stands in quotation marks because somebody says it; a title does not."""
    for match in _MARKS.finditer(folded):
        if _is_speech(folded, match, languages):
            yield Stretch(match.start(), match.end(), QUOTED)


def _is_speech(folded: str, match: re.Match[str], languages: Languages) -> bool:
    before = folded[max(0, match.start() - 50) : match.start()]
    after = folded[match.end() : match.end() + 20]
    said = pattern("moods", "said", languages)
    if said.search(before) or said.search(after):
        return True
    inside = match[0][1:-1]
    if len(inside.split()) > MAX_TITLE_WORDS or len(_UNSPACED.findall(inside)) > MAX_TITLE_CHARACTERS:
        return True
    speaks = pattern("persons", "first", languages).search(inside) or pattern(
        "persons", "possessive", languages
    ).search(inside)
    return speaks is not None and (len(inside.split()) > 2 or (len(inside) > 6 and " " not in inside))
