"""People and animals of a user: the words for them, and which of them is a kind of which."""

import re
from dataclasses import dataclass
from functools import cache

from shepherd_memory.text.grounding.languages import LANGUAGES, Languages, any_phrase, pattern, table

PET, PERSON, FAMILY = "pet", "person", "family"
EXACT, WIDER, NONE = 2, 1, 0

# Words that also name things: a package manager, an email client, a font family.
AMBIGUOUS = frozenset({"boss", "client", "family", "partner", "character", "stranger", "teacher", "doctor"})
# What such a person does often concerns the user: "My doctor prescribed metformin".
SERVING = frozenset({"doctor", "teacher", "client", "landlord"})


@dataclass(frozen=True)
class Mention:
    """A word for somebody, and where it stands."""

    start: int
    end: int
    kind: str


def find_mentions(folded: str, languages: Languages = LANGUAGES) -> list[Mention]:
    """The words for people and animals, in order; of two that overlap the longer one."""
    found = [
        Mention(match.start(), match.end(), kind)
        for kind in table("relations")
        for match in pattern("relations", kind, languages).finditer(folded)
    ]
    found.sort(key=lambda mention: (mention.start - mention.end, mention.start))
    kept: list[Mention] = []
    for mention in found:
        if all(mention.end <= other.start or other.end <= mention.start for other in kept):
            kept.append(mention)
    return sorted(kept, key=lambda mention: mention.start)


_WORD = re.compile(r"[^\W_]+")


@cache
def kinds_of_key(folded: str) -> frozenset[str]:
    """Whom a fact's key names: `daughter_name`, `hund`."""
    spoken = _WORD.findall(folded)
    named = frozenset(kind for kind in table("relations") if _names_in_key(kind, folded))
    for languages, owners in _OWNERS.items():
        owned = " ".join(f"{owner} {word}" for word in spoken for owner in owners)
        found = find_mentions(f"{folded.replace('_', ' ')} . {owned}", languages)
        if found:
            return named | {mention.kind for mention in found}
    return named


# Some words are a relation only after "my": "ma femme", "mein Mann". Most keys are English.
_OWNERS: dict[Languages, tuple[str, ...]] = {
    ("en",): ("my",),
    ("de",): ("meine", "mein"),
    ("es",): ("mi",),
    ("fr",): ("ma", "mon"),
    ("pt",): ("minha", "meu"),
    ("ru",): ("моя", "мой"),
    ("ja", "zh"): ("",),
}


def _names_in_key(kind: str, folded: str) -> bool:
    return any_phrase(table("relations")[kind].get("key", "")).search(folded.replace("_", " ")) is not None


@cache
def _wider(kind: str) -> frozenset[str]:
    within = table("relations").get(kind, {}).get("within", "")
    own = PERSON if kind not in (PET, "") and not _is_pet(kind) else ""
    return frozenset({within, own} - {""}) | (_wider(within) if within else frozenset())


def _is_pet(kind: str) -> bool:
    return kind == PET or table("relations").get(kind, {}).get("within") == PET


def fits(named: str, mentioned: str) -> int:
    """Whether somebody mentioned as one kind is whom a key names: EXACT, a WIDER word for them, or NONE."""
    if named == mentioned or named in _wider(mentioned):
        return EXACT
    return WIDER if mentioned in _wider(named) else NONE


def best_fit(named: frozenset[str], mentioned: frozenset[str]) -> int:
    """The best fit of any two."""
    return max((fits(one, other) for one in named for other in mentioned), default=NONE)
