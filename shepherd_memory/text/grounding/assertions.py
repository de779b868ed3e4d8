"""What a user asserts in a message: its clauses, without questions, requests, quotations and pasted text."""

import re
from dataclasses import dataclass

from shepherd_memory.text.grounding.denial import FIRST_PERSON_SUBJECT, clauses, goes_on, polarised
from shepherd_memory.text.words import STOP_WORDS, any_of, fold, words

# Beyond this, the middle of a message is a paste; people say what they want before or after it.
MAX_CHARACTERS = 100_000


@dataclass(frozen=True)
class Assertion:
    """A stretch of one clause: folded text, whether it is denied, and whom it is about if not the user."""

    text: str
    denied: bool
    others: frozenset[str]
    sentence: int


def assertions(message: str) -> list[Assertion]:
    """The stretches of `message` in which its author asserts something, in order."""
    found: list[Assertion] = []
    others: frozenset[str] = frozenset()
    for number, sentence in enumerate(_sentences(_own_words(message))):
        denied = False
        for clause in _asserted_clauses(sentence):
            others = _others(clause, others)
            parts = list(polarised(clause, denied))
            found += [Assertion(text, is_denied, others, number) for text, is_denied in parts]
            denied = parts[-1][1]
    return found


_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_TEXT_WORK = any_of(
    r"""
    translate summari[sz]e rewrite rephrase paraphrase proofread edit correct improve review explain
    analy[sz]e fix debug refactor ubersetz\w* traduis traduce traduci
    """
)
_PASTED = re.compile(rf"\b{_TEXT_WORK}\b[^:\n]{{0,80}}:\s.*", re.DOTALL)
_SAID = any_of("said says say wrote writes told tells asked asks reads replied answered sagte dijo dit")
_SPOKEN = re.compile(
    rf"\b{_SAID}\b[^\"'“„«\n]{{0,40}}"
    r"(?:\"[^\"\n]{0,1000}\"|'[^\n]{0,1000}'|“[^”\n]{0,1000}”|„[^“”\n]{0,1000}[“”]|«[^»\n]{0,1000}»)"
)
_QUOTE = re.compile(r"\"[^\"\n]{3,1000}\"|“[^“”\n]{3,1000}”")
_FIRST_PERSON = re.compile(r"\b(?:i|my|me|we|our)\b")


def _own_words(message: str) -> str:
    """`message` folded, without code blocks and what somebody else said or wrote."""
    if len(message) > MAX_CHARACTERS:
        message = f"{message[: MAX_CHARACTERS // 2]}\n{message[-MAX_CHARACTERS // 2 :]}"
    text = fold(_QUOTED_LINE.sub("", _FENCE.sub("\n", message)))
    for foreign in (_PASTED, _SPOKEN):
        text = foreign.sub(" ", text)
    return _QUOTE.sub(lambda quote: " " if _is_speech(quote[0]) else quote[0], text)


def _is_speech(quote: str) -> bool:
    return len(quote.split()) > 2 and _FIRST_PERSON.search(quote) is not None


# After a digit a full stop is rather an ordinal ("3. März"), after one letter an initial.
_SENTENCE_END = re.compile(
    r"(?<=[!?。؟।])|(?<=[^\d\s]{2}\.)(?<!\b[dm]r\.)(?<!\bmrs\.)(?<!\bst\.)(?<!\bprof\.)\s+"
    r"|(?<=\d\.)\s+(?=i\b|my\b)|\n+"
)


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]


_AUXILIARY = any_of("is are am was were do does did can could should would will has have shall")
_ASKED_SUBJECT = any_of(r"i you he she it we they my the there this that \w+_\w+ing")
_QUESTION = re.compile(
    rf"^[\s¿]*(?:(?:what|who|whose|which|where|why|how|when)(?:'s)?\s+(?:\w+\s+)?(?:{_AUXILIARY}|much|many)\b"
    rf"|{_AUXILIARY}\s+{_ASKED_SUBJECT}\b)"
)
_REQUEST_VERB = any_of(
    r"""
    write tell give show explain describe imagine pretend act create generate list draw compose suggest
    recommend compare find help translate summari[sz]e roleplay simulate
    """
)
_REQUEST = re.compile(rf"^\s*+(?:(?:please|hey|hi|ok|now|and|then)[\s,]+)*{_REQUEST_VERB}\b")
_STANDING = re.compile(r"\b(?:always|never|from now on|in (?:the )?future|every time|remember)\b")
_LINK = any_of("since because given_that now_that but and so also btw as when that just")
_TELLING = re.compile(rf"^\s*(?:{_LINK}\s+)*(?:{FIRST_PERSON_SUBJECT}\b|(?:as|being) an?\b|[我私])")
_ASKED_POSSESSION = re.compile(
    r"^\s*+(?:(?:what|who)(?:'s)?\s*+)?(?:(?:is|are|was|were|isn't)\s*+)?(?:my|our)\b"
)
_POSSESSION = re.compile(r"\b(?:my|our)(?:\s+(?!and\b|or\b|for\b|to\b|with\b|so\b|if\b)[\w.]+){1,4}")
_SUPPOSED = any_of(
    r"""
    if_(?:i|we|my|he|she|they|it|there) suppos\w+ imagine pretend let'?s_(?:say|pretend|assume) assum(?:e|ing)
    what_if (?:i|we)_wish i(?:'m)?_wonder\w* act_as wenn_ich
    """
)
_UNREAL = re.compile(rf"^\s*(?:and |but |so )?{_SUPPOSED}\b")
_TO_ASSISTANT = re.compile(
    r"^\s*(?:and |but |so )?"
    r"(?:you are|you're|your (?:name|role|job|task)|(?:i'll|i will|let me) (?:call|name) you)\b"
)


def _asserted_clauses(sentence: str) -> list[str]:
    if _UNREAL.match(sentence):
        return []
    if _is_asking(sentence):
        return _told_while_asking(sentence)
    return [part for part in clauses(sentence) if not _TO_ASSISTANT.match(part) and not _UNREAL.match(part)]


def _is_asking(sentence: str) -> bool:
    if sentence.rstrip().endswith(("?", "؟")) or _QUESTION.match(sentence):
        return True
    return _REQUEST.match(sentence) is not None and not _STANDING.search(sentence)


def _told_while_asking(sentence: str) -> list[str]:
    """What a question takes for granted: "I just moved to Lyon, where…", "…my daughter Anna…"."""
    told = [clause for clause in clauses(sentence) if _TELLING.match(clause)]
    if not told and not _ASKED_POSSESSION.match(sentence):
        told = [possession[0] for possession in _POSSESSION.finditer(sentence)]
    return told


# Whom a clause with such a subject is about, and the wider words that also name them.
_RELATION_NAMES = """
wife husband fiance fiancee girlfriend boyfriend : spouse partner family married marriage
son daughter baby kid child kids children : child children kid kids son daughter family
mother mom mum father dad : parent parents family
brother sister : sibling siblings family
grandmother grandfather grandma grandpa : grandparent grandparents family
grandparents parents : family parent grandparent
cousin uncle aunt nephew niece : family relative relatives
friend buddy mate : friends
boss manager supervisor : boss manager supervisor
colleague coworker teammate : colleague colleagues coworker coworkers team
neighbour neighbor roommate flatmate housemate landlord : neighbour neighbor roommate flatmate housemate
client customer : client clients customer customers
professor teacher student pupil : professor teacher students pupils
frau mann tochter sohn mutter vater bruder schwester freund freundin chef : familie
mujer esposa esposo marido hija hijo madre padre hermano hermana amigo amiga jefe : familia
femme mari fille fils mere pere frere soeur ami amie patron : famille
жена муж дочь сын мать мама отец папа брат сестра друг подруга : семья
"""


def _relations() -> dict[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {}
    for line in _RELATION_NAMES.strip().splitlines():
        names, _, wider = line.partition(" : ")
        table |= {name: frozenset(wider.split()) | {name} for name in names.split()}
    return table


_RELATIONS = _relations()
_MINE = any_of("my our meine? unsere? mi mon ma мо[йя]")
_OTHER_SUBJECT = re.compile(
    rf"^\s*(?:(?:and|but|so|also|well|then|и|und|y|et)\s+)*{_MINE}\s+(?:[\w-]+\s+){{0,2}}?"
    rf"({any_of(' '.join(_RELATIONS))})\b(?:'s)?(?:\s+([^\W\d_]+))?"
)
_THIRD_PERSON = re.compile(r"^\s*(?:(?:and|but|so|also)\s+)*(?:he|she|his|her|он|она)\b")
_INCLUDES_USER = re.compile(r"\b(?:i|me|we|us|myself|ich|wir|yo|je|nous|я|мы|нам)\b")


def _others(clause: str, before: frozenset[str]) -> frozenset[str]:
    """The words by which a claim may name whom `clause` is about; empty when that is the user."""
    if _INCLUDES_USER.search(clause):
        return frozenset()
    if subject := _OTHER_SUBJECT.match(clause):
        return _RELATIONS[subject[1]] | (set(words(subject[2] or "")) - STOP_WORDS)
    if _THIRD_PERSON.match(clause):
        return before or frozenset({"he", "she", "his", "her"})
    return before if goes_on(clause) else frozenset()
