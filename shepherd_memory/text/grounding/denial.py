"""Which parts of a clause are denied: "I like jazz but not country"."""

import re
from collections.abc import Iterator

from shepherd_memory.text.grounding.languages import LANGUAGES, Languages, pattern

# In these a clause is denied as a whole, wherever its particle stands.
_WHOLE_CLAUSE = {
    "ja": pattern("denial", "particle", ("ja",)),
    "de": re.compile(r"\b(?:nicht|nie|niemals)\b|\bkein(?:e|en|s|er)?\W*$"),
    "ru": re.compile(
        r"\b(?:я|мы|он|она) (?:\w{1,12} )?не \w+(?: (?:вообще|совсем|никогда|уже))?\W*$"
        r"|\b\u0443 \w+(?: \w+)? нет\W*$"
    ),
}
# Between these the first is denied and the second asserted: "10日じゃなかった11日です".
_NOT_BUT = re.compile("(?:では|じゃ)な(?:くて?|かった)[、, ]*(?=.)")

# "I switched from A to B": A is no longer so.
_CHANGE = re.compile(
    r"\b(?:switch|mov|migrat|chang|upgrad|transition)\w* from\b(?P<en>.{1,60}?)\bto\b"
    r"|\bvon\b(?P<de>.{1,40}?)\b(?:nach|zu|auf)\b.{1,40}?\b(?:gezogen|umgezogen|gewechselt|umgestiegen)\b"
    r"|\b(?:cambi|mud|pas)\w+ d[eoa]\b(?P<es>.{1,40}?)\b(?:a|al|para)\b"
    r"|\b(?:pass|chang|demenag)\w+ de\b(?P<fr>.{1,40}?)\b(?:a|vers)\b"
    r"|\b(?:переш|переех|смен)\w+ (?:\u0441|из)\b(?P<ru>.{1,40}?)\b(?:на|в)\b"
    r"|\b(?:replac|swapp)\w* (?P<was>.{1,40}?) (?:with|by|for)\b"
    r"|\b(?:reempla|cambi|sustitu|substitu|remplac|замени)\w+ (?P<old>.{1,40}?) (?:por|par|на)\b"
    r"|(?P<alt>\b.{1,40}?) durch .{1,40}? (?:ersetzt|abgelost)\b"
    r"|从(?P<zh>.{1,12}?)(?:搬到|换到|换成|转到)|(?P<ja>.{1,12}?)から.{1,12}?(?:に引っ越|に移|に変え)"
)


def polarised(
    clause: str, denied: bool = False, languages: Languages = LANGUAGES
) -> Iterator[tuple[str, bool]]:
    """The parts of a folded clause, each with whether it is denied; a list goes on as it began."""
    start = 0
    for turn in _NOT_BUT.finditer(clause) if "ja" in languages else ():
        yield clause[start : turn.start()], True
        start, denied = turn.end(), False
    clause = clause[start:]
    denied = (denied and goes_on(clause, languages)) or _is_denied_whole(clause, languages)
    changed, position = _CHANGE.search(clause), 0
    for start, end, is_dislike in _negators(clause, languages):
        yield clause[position:start], denied
        # "don't hate" is no dislike: a verb of dislike turns what is around it, a particle denies it.
        denied = not denied if is_dislike else True
        position = end
    if changed is None or changed.start(changed.lastgroup or 0) < position:
        yield clause[position:], denied
        return
    left = changed.span(changed.lastgroup or 0)
    yield from (
        (clause[position : left[0]], denied),
        (clause[left[0] : left[1]], True),
        (clause[left[1] :], denied),
    )


def _is_denied_whole(clause: str, languages: Languages) -> bool:
    bare = _without_harmless(clause, languages)
    return any(one in languages and rule.search(bare) is not None for one, rule in _WHOLE_CLAUSE.items())


def _without_harmless(clause: str, languages: Languages) -> str:
    return pattern("denial", "harmless", languages).sub(lambda idiom: " " * len(idiom[0]), clause)


def _negators(clause: str, languages: Languages) -> list[tuple[int, int, bool]]:
    bare = _without_harmless(clause, languages)
    found = [(*match.span(), True) for match in pattern("denial", "dislike", languages).finditer(bare)]
    particles = [pattern("denial", "particle", languages), pattern("denial", "past", languages)]
    if pattern("denial", "choosing", languages).search(bare):
        particles.append(pattern("denial", "choice", languages))
    for particle in particles:
        found += [(*match.span(), False) for match in particle.finditer(bare)]
    found.sort()
    return [one for i, one in enumerate(found) if i == 0 or one[0] >= found[i - 1][1]]


def is_denying(text: str, languages: Languages = LANGUAGES) -> bool:
    """Whether anything in folded text is denied."""
    return any(denied for _, denied in polarised(text, False, languages))


def goes_on(clause: str, languages: Languages = LANGUAGES) -> bool:
    """Whether a clause is only the next entry of the list that the clause before it began."""
    if len(clause.split()) > 5 or pattern("denial", "contrast", languages).match(clause.strip()):
        return False
    names = ("first", "possessive", "third", "third_verb")
    return not any(pattern("persons", name, languages).search(clause) for name in names)
