"""Clauses, and which parts of them are denied: "I like jazz but not country"."""

import re
from collections.abc import Iterator

from shepherd_memory.text.words import any_of

FIRST_PERSON_SUBJECT = any_of(
    r"""
    i we my our ich wir mein\w* unser\w* yo mi mis soy tengo vivo trabajo je j mon ma mes nous я мы мо[йяие]
    io eu minha meu ik mijn
    """
)
_CONTRAST = any_of("but although though whereas while however aber sondern pero sino mais но")
_REASON = any_of("because since until weil porque потому")
_AND = any_of("and so und y et и e given_that now_that that")
_CLAUSE_END = re.compile(
    rf"[,;:()\u2013\u2014](?!\s?\d)|、|\s-\s|(?=\b{_CONTRAST}\b)|\b{_REASON}\b"
    rf"|\b{_AND}\s+(?=(?:{FIRST_PERSON_SUBJECT}|the|it|they|he|she)\b)"
)
_CHANGE = re.compile(r"\b((?:switch|mov|migrat|chang|upgrad|transition)\w*) from\b(.{1,60}?)\bto\b")


def clauses(sentence: str) -> list[str]:
    """A folded sentence cut at its commas and conjunctions; "switched from A to B" is "not A but B"."""
    plain = _CHANGE.sub(r"\1, not \2 but to", sentence)
    return [part for part in _CLAUSE_END.split(plain) if part.strip()]


_PARTICLE = any_of(
    r"""
    (?:do|does|did|is|are|was|were|has|have|had|wo|would|ca|could|should|must|need|ai)n'?t
    not never no none nobody nothing neither nor without cannot no_longer instead_of rather_than unlike
    against quit stopped gave_up (?<=i_)used_to (?<=we_)used_to
    nicht nie niemals kein\w{0,2} ohne nunca jamas sin pas jamais sans aucune? niente
    не нет без никогда non nao niet geen
    """
)
_DISLIKE = any_of(
    "hate hates hated hating dislike dislikes disliked avoid avoids avoided avoiding loathe detest despise"
)
_NEGATION = rf"\b{_PARTICLE}\b|没有?|不(?![错同过但仅])|(?P<dislike>\b{_DISLIKE}\b)"
_NEGATOR = re.compile(_NEGATION)
_CHOICE = re.compile(r"\b(?:prefer|pick|chose|choos|select|opt)")
_NEGATOR_IN_CHOICE = re.compile(rf"{_NEGATION}|\bover\b")
# Japanese and Korean deny at the end of a clause.
_FINAL_NEGATION = re.compile(r"(?:ません|ない|なかった)(?:でした|です)?\W*$|지 ?않\w*\W*$|없\w{0,2}\W*$")
_NO_NEGATION = re.compile(
    r"\b(?:can'?t|cannot) (?:believe|wait)\b|\bnot (?:only|just|a secret)\b"
    r"|\b(?:don'?t|never) (?:forget|worry|mind)\b|\bno (?:problem|worries|doubt|idea)\b"
    r"|\bwhy (?:don't|not)\b|\bnot sure (?:if|whether)\b|\bnothing (?:beats|like|better)\b"
    # Portuguese "no" is "in the".
    r"|\b(?:moro|moramos|trabalho|trabalhamos|estou|nasci|vivo|cresci) no\b"
)


def polarised(clause: str, denied: bool = False) -> Iterator[tuple[str, bool]]:
    """The parts of a folded clause, each with whether it is denied; a list goes on as it began."""
    denied = (denied and goes_on(clause)) or _FINAL_NEGATION.search(clause) is not None
    negator, position = _NEGATOR_IN_CHOICE if _CHOICE.search(clause) else _NEGATOR, 0
    for match in negator.finditer(_NO_NEGATION.sub(lambda idiom: " " * len(idiom[0]), clause)):
        yield clause[position : match.start()], denied
        # "don't hate" is no dislike: a verb of dislike turns what is around it, a particle denies it.
        denied = not denied if match["dislike"] else True
        position = match.end()
    yield clause[position:], denied


_OWN_SUBJECT = re.compile(
    rf"^\s*{_CONTRAST}\b|'(?:s|m|re|d|ve)\b|"
    rf"\b(?:i|we|you|he|she|it|they|my|our|is|are|was|am|ich|wir|er|sie|es|yo|je|il|elle|я|он|она)\b"
)


def goes_on(clause: str) -> bool:
    """Whether a clause is only the next entry of the list that the clause before it began."""
    return len(clause.split()) <= 5 and _OWN_SUBJECT.search(clause) is None
