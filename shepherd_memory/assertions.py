"""What a user asserts in a message: its clauses, without questions, requests, quotations and pasted text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shepherd_memory.words import STOP_WORDS, fold, words


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
            for text, denied in polarised(clause, denied):
                found.append(Assertion(text, denied, others, number))
    return found


def polarised(clause: str, denied: bool = False) -> Iterator[tuple[str, bool]]:
    """The parts of a folded clause, each with whether it is denied; a list goes on as it began."""
    denied = denied and _goes_on(clause)
    position = 0
    pattern = _NEGATOR_OF_PREFERENCE if "prefer" in clause else _NEGATOR
    for negator in pattern.finditer(_IDIOM.sub(_blank, clause)):
        yield clause[position : negator.start()], denied
        # "don't hate" is no dislike: a verb of dislike turns what is around it, a particle denies it.
        denied = not denied if negator["dislike"] else True
        position = negator.end()
    yield clause[position:], denied


def clauses(sentence: str) -> list[str]:
    """A folded sentence cut at its commas and conjunctions."""
    return [part for part in _CLAUSE_END.split(sentence) if part and part.strip()]


_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_PASTED = re.compile(
    r"\b(?:translate|summari[sz]e|rewrite|rephrase|paraphrase|proofread|edit|correct|improve|review|explain|"
    r"analy[sz]e|fix|debug|refactor|ubersetz\w*|traduis|traduce|traduci)\b[^:\n]{0,80}:\s.*",
    re.DOTALL,
)
_SPOKEN = re.compile(
    r"\b(?:said|says|say|wrote|writes|told|tells|asked|asks|reads|replied|answered|sagte|dijo|dit)\b[^\"'“„«\n]{0,40}"
    r"(?:\"[^\"\n]{0,1000}\"|'[^\n]{0,1000}'|“[^”\n]{0,1000}”|„[^“”\n]{0,1000}[“”]|«[^»\n]{0,1000}»)"
)
_QUOTE = re.compile(r"\"[^\"\n]{3,1000}\"|“[^”\n]{3,1000}”")
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|my|me|we|our)\b")


def _own_words(message: str) -> str:
    """`message` folded, without code blocks and what somebody else said or wrote."""
    text = fold(_QUOTED_LINE.sub("", _FENCE.sub("\n", message)))
    for foreign in (_PASTED, _SPOKEN):
        text = foreign.sub(" ", text)
    return _QUOTE.sub(lambda quote: " " if _is_speech(quote[0]) else quote[0], text)


def _is_speech(quote: str) -> bool:
    return len(quote.split()) > 2 and _FIRST_PERSON.search(quote) is not None


_SENTENCE_END = re.compile(
    r"(?<=[!?。！？؟।])|(?<=[^\d\s]{2}\.)(?<!\bdr\.)(?<!\bmr\.)(?<!\bmrs\.)(?<!\bst\.)\s+|(?<=\d\.)\s+(?=i\b|my\b)|\n+"
)


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]


_SUBJECT = (
    r"(?:i|we|my|our|ich|wir|mein\w*|unser\w*|yo|mi|mis|soy|tengo|vivo|trabajo|je|j|mon|ma|mes|nous|я|мы|мо[йяие]|"
    r"io|eu|minha|meu|ik|mijn)"
)
_CLAUSE_END = re.compile(
    rf"[,;:()–—](?!\s?\d)|[、，；]|\s-\s|\b(?:but|although|though|because|since|whereas|while|until|however|aber|sondern|weil|"
    rf"pero|sino|porque|mais|car|но|потому)\b|\b(?:and|so|und|y|et|и|e|given that|now that|that)\s+(?={_SUBJECT}\b|the\b|it\b|they\b|he\b|she\b)"
)
_QUESTION = re.compile(
    r".*[?？؟]\s*$|^[\s¿]*(?:(?:what|who|whose|which|where|why|how|when)(?:'s)?\s+(?:\w+\s+)?"
    r"(?:is|are|am|was|were|do|does|did|can|could|should|would|will|has|have|much|many)\b"
    r"|(?:is|are|am|was|were|do|does|did|can|could|should|would|will|has|shall)\s+(?:i|you|he|she|it|we|they|my|the|there|this|that|[^\W\d_]+\s+\w+ing)\b)",
    re.DOTALL,
)
_REQUEST = re.compile(
    r"^\s*(?:(?:please|hey|hi|ok|now|and|then)[\s,]+)*(?:write|tell|give|show|explain|describe|imagine|pretend|act|create|"
    r"generate|list|draw|compose|suggest|recommend|compare|find|help|translate|summari[sz]e|roleplay|simulate)\b"
)
_STANDING = re.compile(r"\b(?:always|never|from now on|in (?:the )?future|every time|remember)\b")
_ASSERTING = re.compile(
    rf"^\s*(?:(?:since|because|given that|now that|but|and|so|also|btw|as|when|that|just)\s+)*(?:{_SUBJECT}\b|(?:as|being) an?\b|[我私])"
)
_ASKED_POSSESSION = re.compile(r"^\s*(?:(?:what|who)(?:'s)?\s*)?(?:is|are|was|were|isn't)?\s*(?:my|our)\b")
_POSSESSION = re.compile(r"\b(?:my|our)(?:\s+(?!and\b|or\b|for\b|to\b|with\b|so\b|if\b)[\w.]+){1,4}")
_UNREAL = re.compile(
    r"^\s*(?:and |but |so )?(?:if (?:i|we|my|he|she|they|it|there)\b|suppos\w+\b|imagine\b|pretend\b|let'?s (?:say|pretend|assume)\b|"
    r"assum(?:e|ing)\b|what if\b|(?:i|we) wish\b|act as\b|wenn ich\b)"
)
_TO_ASSISTANT = re.compile(
    r"^\s*(?:and |but |so )?(?:you are|you're|your (?:name|role|job|task)\b|(?:i'll|i will|let me) (?:call|name) you\b)"
)


def _asserted_clauses(sentence: str) -> list[str]:
    if _UNREAL.match(sentence):
        return []
    if _is_asking(sentence):
        return _told_while_asking(sentence)
    return [
        clause
        for clause in clauses(sentence)
        if not _TO_ASSISTANT.match(clause) and not _UNREAL.match(clause)
    ]


def _is_asking(sentence: str) -> bool:
    if _QUESTION.match(sentence):
        return True
    return _REQUEST.match(sentence) is not None and not _STANDING.search(sentence)


def _told_while_asking(sentence: str) -> list[str]:
    """What a question takes for granted: "I just moved to Lyon, where…", "…my daughter Anna…"."""
    told = [clause for clause in clauses(sentence) if _ASSERTING.match(clause)]
    if not told and not _ASKED_POSSESSION.match(sentence):
        told = [possession[0] for possession in _POSSESSION.finditer(sentence)]
    return told


_NEGATION = (
    r"(?:\b(?:do|does|did|is|are|was|were|has|have|had|wo|would|ca|could|should|must|need|ai)n'?t\b|\b(?:not|never|no|none|"
    r"nobody|nothing|neither|nor|without|cannot|no longer|instead of|rather than|unlike|decided against|against|"
    r"quit|stopped|gave up|nicht|nie|niemals|kein\w{0,2}|ohne|nunca|jamas|sin|pas|jamais|sans|aucune?|"
    r"не|нет|без|никогда|non|nao|niet|geen)\b|没有?|不(?![错同过但仅])|(?P<dislike>\b(?:hat(?:e|es|ed|ing)|dislik(?:e|es|ed|ing)|"
    r"avoid(?:s|ed|ing)?|loath(?:e|es|ed)|detest(?:s|ed)?|despis(?:e|es|ed))\b))"
)
_NEGATOR = re.compile(_NEGATION)
_NEGATOR_OF_PREFERENCE = re.compile(rf"{_NEGATION}|\bover\b")
_IDIOM = re.compile(
    r"\b(?:can'?t|cannot) (?:believe|wait)\b|\bnot (?:only|just)\b|\b(?:don'?t|never) (?:forget|worry|mind)\b|"
    r"\bno (?:problem|worries|doubt|idea)\b|\bwhy (?:don't|not)\b|\bnot sure (?:if|whether)\b"
)
_OWN_SUBJECT = re.compile(
    r"\b(?:i|we|you|he|she|it|they|my|our|is|are|was|am|ich|wir|er|sie|es|yo|je|il|elle|я|он|она|'s|'m|'re|'d|'ve)\b"
)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _goes_on(clause: str) -> bool:
    return _OWN_SUBJECT.search(clause) is None and len(clause.split()) <= 5


# Whom a clause with such a subject is about, and the wider words that also name them.
_RELATION_NAMES = """
wife husband fiance fiancee girlfriend boyfriend : spouse partner family married marriage
son daughter baby kid child kids children : child children kid kids son daughter family
mother mom mum father dad : parent parents family
brother sister : sibling siblings family
grandmother grandfather grandma grandpa : grandparent grandparents family
grandparents parents in-laws : family parent parents grandparent grandparents
cousin uncle aunt nephew niece : family relative relatives
friend buddy mate : friend friends
boss manager supervisor : boss manager supervisor
colleague coworker teammate : colleague colleagues coworker coworkers team
neighbour neighbor roommate flatmate housemate landlord : neighbour neighbor roommate flatmate housemate
client customer : client clients customer customers
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
_MINE = r"(?:my|our|meine?|unsere?|mi|mon|ma|мо[йя])"
_OTHER_SUBJECT = re.compile(
    rf"^\s*(?:(?:and|but|so|also|well|then|и|und|y|et)\s+)*{_MINE}\s+((?:[\w-]+\s+){{0,2}}?)({'|'.join(_RELATIONS)})\b('s)?(?:\s+([^\W\d_]+))?"
)
_THIRD_PERSON = re.compile(r"^\s*(?:(?:and|but|so|also)\s+)*(?:he|she|his|her|он|она)\b")
_INCLUDES_USER = re.compile(r"\b(?:i|me|we|us|myself|ich|wir|yo|je|nous|я|мы|нам)\b")


def _others(clause: str, before: frozenset[str]) -> frozenset[str]:
    """The words by which a claim may name whom `clause` is about; empty when that is the user."""
    if _INCLUDES_USER.search(clause):
        return frozenset()
    if subject := _OTHER_SUBJECT.match(clause):
        return _RELATIONS[subject[2]] | (set(words(subject[4] or "")) - STOP_WORDS)
    if _THIRD_PERSON.match(clause):
        return before or frozenset({"he", "she", "his", "her"})
    return before if _goes_on(clause) else frozenset()
