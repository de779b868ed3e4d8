"""Whether a clause is asserted: no question, hypothesis, wish, play or made-up story."""

import re
from dataclasses import dataclass

from shepherd_memory.text.grounding.languages import pattern
from shepherd_memory.text.grounding.reading import Clause, Reading, Span

ASKED = "asked, not said"
SUPPOSED = "supposed, not said"
WISHED = "wished or planned, not so"
MADE_UP = "made up"
UNSURE = "said with doubt"
REPORTED = "reported by the user"


@dataclass(frozen=True)
class Doubt:
    """Why something may not be stored as it is; `is_firm` when it may not even be kept."""

    reason: str
    is_firm: bool
    detail: str = ""


def mood_of(reading: Reading, clause: Clause, about: str, value: str) -> Doubt | None:
    """Why a clause does not assert what it says, for a folded key or question and value; None if it does."""
    return (
        _made_up(reading, clause, about)
        or _asked(reading, clause, value)
        or _supposed(reading, clause)
        or _wished(reading, clause, about, value)
        or _unsure(reading, clause, about, value)
        or _reported(reading, clause, value)
    )


def _search(reading: Reading, entry: str, span: Span) -> re.Match[str] | None:
    return pattern("moods", entry, reading.languages).search(reading.text, *span)


_WORK = re.compile(
    r"\b(?:novel|book|story|stories|film|movie|game|writing|writes|screenplay|script|hobby|hobbies|project|favou?rite|fiction"
    r"|character|campaign|roman|novela|livro|libro|livre|книг\w*|роман\w*)s?\b|小説|物語|小说|故事"
)


def _made_up(reading: Reading, clause: Clause, about: str) -> Doubt | None:
    sentence = reading.sentences[clause.sentence]
    if _search(reading, "pretend", (0, max(clause.end, sentence[0]))):
        return Doubt(MADE_UP, is_firm=True)
    if composed := _search(reading, "compose", (0, clause.end)):
        return Doubt(MADE_UP, is_firm=composed.start() >= sentence[0])
    if _WORK.search(about):
        return None
    told = _search(reading, "fiction", sentence)
    if "character" in clause.actor.kinds or told:
        # "I'm a midwife, but in our campaign…": what stands before the work may be so.
        return Doubt(MADE_UP, is_firm=told is None or told.start() < clause.end)
    return Doubt(MADE_UP, is_firm=True) if _is_under_heading(reading.text, clause) else None


# Before a heading only a few signs are looked at: marks of Markdown, spaces, the end of another sentence.
_BEGINS = re.compile(r"(?:^|[\n.!?。])[ \t\u3000*_#>\"'(\[]{0,6}$")
_HEADS = re.compile(r"[ \t*_)\]]{0,4}(?:[.:\n。\u2013\u2014]|\s-\s|$)|(?<=[\u3040-\u9fff])[\s\u3000]")
_JOINS_HEADINGS = re.compile(r"[,;.]? ")
_ENDS_LINE = re.compile(r"[ \t*_)\]]{0,4}(?:[:\n]|$)")
MAX_BEFORE_HEADING = 8


def _is_under_heading(text: str, clause: Clause) -> bool:
    """Whether a heading of a play, chapter or character sheet stands before: "Act 1. I live in Verona."."""
    sheets = pattern("moods", "sheet").finditer(text, 0, clause.start)
    if any(_ENDS_LINE.match(text, one.end()) for one in sheets):
        return True
    joined = -1
    for one in pattern("moods", "heading").finditer(text, 0, clause.end):
        before = text[max(0, one.start() - MAX_BEFORE_HEADING) : one.start()]
        if joined == one.start() or _BEGINS.search(before):
            if _HEADS.match(text, one.end()):
                return True
            separator = _JOINS_HEADINGS.match(text, one.end())
            joined = separator.end() if separator else -1
    return False


_AUXILIARY = "(?:is|are|am|was|were|do|does|did|can|could|should|would|will|has|have|shall)"
_ENGLISH_QUESTION = re.compile(
    rf"\W*(?:(?:what|who|whose|which|where|why|how|when)(?:'s)?\s+(?:\w+\s+)?(?:{_AUXILIARY}|much|many)\b"
    rf"|{_AUXILIARY}\s+(?:i|you|he|she|it|we|they|my|the|there|this|that|anyone|someone)\b)"
)
_REQUEST = re.compile(
    r"\W*(?:(?:please|hey|hi|ok|now|and|then|can you|could you)[\s,]+)*"
    r"(?:write|tell|give|show|explain|describe|create|generate|list|draw|compose|suggest|recommend|compare|find|translate|summari[sz]e|simulate|draft)\b"
)
_ASKS_FOR_OWN = re.compile(r"\W*(?:(?:what|who)(?:'s| is)?|is|are|was|were)\s+(?:my|our)\b")
_LEAD = re.compile(r"[\s\"'(¿-]*")
_CUT = re.compile(r"[,;:()、\u2013\u2014]|\s-\s")
_STANDING = re.compile(r"\b(?:always|never|from now on|in (?:the )?future|every time|remember|first)\b")


def _is_question(reading: Reading, sentence: Span) -> bool:
    text = reading.text[sentence[0] : sentence[1]].rstrip(" \t\"'”»)」")
    if text.endswith(("?", "؟")) or _search(reading, "question_end", sentence):
        return True
    if "en" not in reading.languages:
        return False
    return bool(_ENGLISH_QUESTION.match(text) or (_REQUEST.match(text) and not _STANDING.search(text)))


def _asked(reading: Reading, clause: Clause, value: str) -> Doubt | None:
    sentence = reading.sentences[clause.sentence]
    if not _is_question(reading, sentence) or _is_told(reading, clause, sentence):
        return None
    at = reading.text.find(value, clause.start, clause.end) if value else -1
    if at > 0 and _is_owned(reading, clause, at) and not _asks_for_own(reading, sentence):
        return Doubt(ASKED, is_firm=False)
    return Doubt(ASKED, is_firm=True)


def _is_owned(reading: Reading, clause: Clause, at: int) -> bool:
    """Whether "my" stands at most three words before a place."""
    if {"ja", "zh"} & set(reading.languages):
        return False
    owned = [*pattern("persons", "possessive", reading.languages).finditer(reading.text, clause.start, at)]
    return bool(owned) and len(reading.text[owned[-1].end() : at].split()) <= 3


def _asks_for_own(reading: Reading, sentence: Span) -> bool:
    return _ASKS_FOR_OWN.match(reading.text[slice(*sentence)]) is not None


def _is_told(reading: Reading, clause: Clause, sentence: Span) -> bool:
    """Whether a clause of a question tells: "I just moved to Lyon, where…", "…since I'm vegan?"."""
    others = reading.clauses_in(sentence)
    told = reading.text[slice(*_before_and_in(reading, clause))].lstrip(" ,;")
    if pattern("moods", "reason", reading.languages).match(told):
        return True
    if clause is others[-1] or _starts_asking(reading, sentence):
        return False
    between = reading.text[clause.end : others[-1].start]
    if _search(reading, "question_word", (clause.start, clause.end)) or _is_tag(reading, others[-1]):
        return False
    is_unspaced = bool({"ja", "zh"} & set(reading.languages))
    return _CUT.search(between) is not None or (is_unspaced and bool(between) and between.isspace())


def _is_tag(reading: Reading, clause: Clause) -> bool:
    """Whether a clause only asks whether the one before it is so: "…, right?"."""
    text = reading.text[clause.start : clause.end].strip(" \t?!,.")
    return pattern("moods", "tag", reading.languages).fullmatch(text) is not None


def _starts_asking(reading: Reading, sentence: Span) -> bool:
    lead = _LEAD.match(reading.text[sentence[0] : sentence[1]])
    start = sentence[0] + (lead.end() if lead else 0)
    begins = pattern("moods", "question_start", reading.languages).match(reading.text, start)
    return begins is not None or reading.text[sentence[0] : start].strip().startswith("¿")


def _before_and_in(reading: Reading, clause: Clause) -> Span:
    """The clause, with those before it that nothing but a space cuts off: "I wish" before "I had a dog"."""
    start = clause.start
    for other in reversed(reading.clauses_in((reading.sentences[clause.sentence][0], clause.start))):
        is_contrast = pattern("denial", "contrast", reading.languages).match(reading.text[start:].lstrip())
        if is_contrast or (reading.text[other.end : start].strip() and not _leads(reading, other)):
            break
        start = other.start
    return start, clause.end


def _up_to_value(reading: Reading, clause: Clause, value: str) -> Span:
    """The same up to what else is said after the value: "I'm a baker and would like to know…"."""
    start, end = _before_and_in(reading, clause)
    at = reading.text.find(value, clause.start, end) if value else -1
    joined = (
        pattern("persons", "joiner", reading.languages).search(reading.text, at + len(value), end)
        if at >= 0
        else None
    )
    return start, joined.start() if joined else end


MAX_LEADING_WORDS = 4


def _leads(reading: Reading, clause: Clause) -> bool:
    """Whether a short clause says how the next one is meant: "Ich wünschte, …", "I think, …"."""
    is_short = len(reading.text[clause.start : clause.end].split()) <= MAX_LEADING_WORDS
    return is_short and any(
        _search(reading, entry, (clause.start, clause.end)) for entry in ("wish", "plan", "doubt")
    )


def _supposed(reading: Reading, clause: Clause) -> Doubt | None:
    sentence = reading.sentences[clause.sentence]
    if _search(reading, "suppose", (sentence[0], clause.end)):
        return Doubt(SUPPOSED, is_firm=True)
    conditions = [one for one in reading.clauses_in(sentence) if _is_condition(reading, one)]
    if clause in conditions:
        return Doubt(SUPPOSED, is_firm=True)
    if not conditions:
        return None
    if _search(reading, "unreal", (clause.start, clause.end)):
        return Doubt(SUPPOSED, is_firm=True)
    is_consequence = conditions[0].start < clause.start and conditions[0] is reading.clauses_in(sentence)[0]
    return Doubt(SUPPOSED, is_firm=False) if is_consequence else None


def _is_condition(reading: Reading, clause: Clause) -> bool:
    found = _search(reading, "if", (clause.start, clause.end))
    if found is None:
        return False
    if {"ja", "zh"} & set(reading.languages):
        return True
    lead = reading.text[clause.start : found.start()].split()
    joiner = pattern("persons", "joiner", reading.languages)
    return all(joiner.fullmatch(word) for word in lead)


_DATED = re.compile(r"\b(?:date|day|deadline|month|year|time|when)\b")


def _wished(reading: Reading, clause: Clause, about: str, value: str) -> Doubt | None:
    if pattern("moods", "aim").search(about):
        return None
    span = _up_to_value(reading, clause, value)
    found = _search(reading, "wish", span) or _search(reading, "plan", span)
    if found is None or found[0] in value:
        return None
    # The day of a move that somebody wants may well be the day; and what is joined to a wish may be so.
    is_apart = value not in reading.text and _is_joined(reading, clause.start, found.start())
    return Doubt(WISHED, is_firm=_DATED.search(about) is None and not is_apart)


def _is_joined(reading: Reading, start: int, end: int) -> bool:
    return pattern("persons", "joiner", reading.languages).search(reading.text, start, end) is not None


def _unsure(reading: Reading, clause: Clause, about: str, value: str) -> Doubt | None:
    if pattern("moods", "aim").search(about):
        return None
    found = _search(reading, "doubt", _up_to_value(reading, clause, value))
    return Doubt(UNSURE, is_firm=False) if found else None


def _reported(reading: Reading, clause: Clause, value: str) -> Doubt | None:
    """Whether somebody else says it; "…told my husband Erik" still names the husband."""
    span = _up_to_value(reading, clause, value)
    at = reading.text.find(value, *span) if value else -1
    if at > 0 and _is_owned(reading, clause, at):
        return None
    first = pattern("persons", "first", reading.languages).search(reading.text, *span)
    return Doubt(REPORTED, is_firm=False) if first is None and _search(reading, "said", span) else None
