"""Whether key, subject and quote are about the same person or animal."""

import re
from dataclasses import dataclass
from functools import lru_cache

from shepherd_memory.text.grounding.languages import Languages, any_phrase, pattern, table
from shepherd_memory.text.grounding.moods import Doubt
from shepherd_memory.text.grounding.quantities import find_quantities
from shepherd_memory.text.grounding.reading import Actor, Clause, Reading, Span
from shepherd_memory.text.grounding.relations import (
    AMBIGUOUS,
    EXACT,
    NONE,
    SERVING,
    Mention,
    best_fit,
    find_mentions,
    kinds_of_key,
)
from shepherd_memory.text.words import fold, stems

SOMEBODY_ELSE = "about somebody else"
THE_ASSISTANT = "about the assistant"
NOT_CLEAR = "not clear whom it is about"


@dataclass(frozen=True)
class Subject:
    """Whom a model says that a proposal is about."""

    role: str
    kinds: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


SELF, ASSISTANT, NOBODY, SOMEBODY, OTHER, UNSAID = "self", "assistant", "nobody", "somebody", "other", ""
_GENERIC = {
    "relative": "family",
    "relatives": "family",
    "person": "person",
    "human": "person",
    "animal": "pet",
}
_NAME = re.compile(r"[^\W\d_][\w'-]*")
_WORD = re.compile(r"\w+")
_NO_WORD = re.compile(r"[\W_]+")


def read_subject(given: str) -> Subject:
    """What a model wrote for the subject: `self`, `daughter Lena`, `pet: Rex`, `somebody else`."""
    folded = _NO_WORD.sub(" ", fold(given)).strip()
    if not folded:
        return Subject(UNSAID)
    for role in (SOMEBODY, ASSISTANT, NOBODY, SELF):
        if pattern("persons", role, ("en",)).fullmatch(folded):
            return Subject(role)
    kinds = kinds_of_key(folded) | {_GENERIC[word] for word in folded.split() if word in _GENERIC}
    names = frozenset(fold(name) for name in _NAME.findall(given) if not name[0].islower())
    spoken = frozenset(name for name in names if not kinds_of_key(name) and name not in _GENERIC)
    if kinds or spoken:
        return Subject(OTHER, kinds, spoken)
    for role in (SELF, SOMEBODY, ASSISTANT, NOBODY):
        if pattern("persons", role, ("en",)).search(folded):
            return Subject(role)
    return Subject(OTHER, frozenset(), frozenset(folded.split()))


# "From now on your name is Juno": what the user calls the assistant.
_ASSISTANT_NAME = re.compile(
    r"(?:(?:(?:ai|virtual|digital) ?)?assistant|chat ?bot|ai ?bot|ai|llm)(?: s)? (?:nick)?name"
    r"|name of (?:the |my )?(?:assistant|chat ?bot|ai)"
)
_USER = re.compile(
    r"\b(?:user|nutzer|usuari|utilisat|utilizador|i|my|me|ich|mein\w*|yo|mi|je|mon|ma|eu|meu|minha)\b"
    r"|nutzer|usuari|utilisat|utilizador|пользовател|ユーザー|用户|我|私"
)
_WHO = re.compile(r"^\W*(?:who|whom|wer|wen|wem|quien(?:es)?|qui|quem|кто|кого|кому)\b|誰|だれ|谁")


def names_assistant(key: str) -> bool:
    """Whether a fact's key asks for the name of the assistant."""
    return _ASSISTANT_NAME.fullmatch(key.replace("_", " ")) is not None


@dataclass(frozen=True)
class Topic:
    """Whom a key or a question names, and whether it asks who does something."""

    text: str
    kinds: frozenset[str]
    asks_who: bool = False
    question: str = ""

    def names_any(self, names: frozenset[str]) -> bool:
        spoken = set(_WORD.findall(self.text))
        # A key has lost the apostrophe of "Anna's".
        return any(name in spoken or f"{name}s" in spoken for name in names)


def read_topic(about: str, value: str, is_question: bool) -> Topic:
    """Whom a fact's key names, or a pair's question and answer."""
    folded = fold(about).replace("_", " ")
    if not is_question:
        return Topic(folded, kinds_of_key(folded))
    mentioned = find_mentions(f"{folded} {fold(value)}")
    kinds = frozenset(one.kind for one in mentioned)
    return Topic(f"{folded} {fold(value)}", kinds, _WHO.search(folded) is not None, folded)


def disagreement(
    reading: Reading, clauses: list[Clause], value: Span | None, topic: Topic, subject: Subject
) -> Doubt | None:
    """Why key, subject and the clauses of a value do not agree; None if they do."""
    if subject.role == ASSISTANT or names_assistant(topic.text):
        is_told = names_assistant(topic.text) and any(_addresses(reading, one) for one in clauses)
        return Doubt(THE_ASSISTANT, is_firm=not is_told)
    if subject.role == SOMEBODY and not topic.kinds:
        return Doubt(SOMEBODY_ELSE, is_firm=not _is_meant(reading, clauses, topic))
    named = _named_kinds(reading, topic, subject)
    if named or _is_about_named(topic, subject):
        return _about_other(reading, clauses, value, topic, subject, named)
    if value and _is_name_of_other(reading, value, topic):
        return Doubt(SOMEBODY_ELSE, is_firm=True)
    return _about_user(reading, clauses, topic, subject)


def _is_meant(reading: Reading, clauses: list[Clause], topic: Topic) -> bool:
    """Whether a question asks who it is, or names who or what is spoken of: "When is Telma away?"."""
    if topic.asks_who or any(topic.names_any(clause.actor.names) for clause in clauses):
        return True
    said = {stem for one in clauses for stem in stems(reading.text[one.start : one.end])}
    is_of_user = _USER.search(topic.question) is not None
    return bool(topic.question) and not is_of_user and not said.isdisjoint(stems(topic.question))


def _is_name_of_other(reading: Reading, value: Span, topic: Topic) -> bool:
    """Whether a name stands next to whom it belongs to: "with my brother Pavel"."""
    asks_name = any_phrase(table("cues")["name"]["key"]).search(topic.text) is not None
    owner = _owner(reading, value) if asks_name else None
    return owner is not None and set(reading.text[slice(*value)].split()) <= reading.capitals


def _is_about_named(topic: Topic, subject: Subject) -> bool:
    return subject.role == OTHER and topic.names_any(subject.names)


def _named_kinds(reading: Reading, topic: Topic, subject: Subject) -> frozenset[str]:
    """The kinds that the key names, without words that here mean a thing."""
    mentioned = frozenset(one.kind for one in reading.mentions)
    return frozenset(
        kind
        for kind in topic.kinds
        if kind not in AMBIGUOUS or best_fit(frozenset({kind}), mentioned | subject.kinds)
    )


def _about_user(reading: Reading, clauses: list[Clause], topic: Topic, subject: Subject) -> Doubt | None:
    if subject.role == OTHER:
        is_firm = not _is_meant(reading, clauses, topic)
        return Doubt(SOMEBODY_ELSE, is_firm=is_firm, detail="the key does not name them")
    if any(_tells_assistant(reading, clause) for clause in clauses):
        return Doubt(THE_ASSISTANT, is_firm=True)
    doubts = [doubt for clause in clauses if (doubt := _other_acts(clause.actor, topic))]
    if doubts:
        return max(doubts, key=lambda doubt: doubt.is_firm)
    speaks = any(_speaks_of_user(reading, clause) for clause in clauses)
    if not speaks and (subject.role == NOBODY or _follows_other(reading, clauses[0])):
        return Doubt(NOT_CLEAR, is_firm=False)
    return None


_DROPS_PRONOUNS = frozenset(["es", "pt", "ru", "ja", "zh"])


def _follows_other(reading: Reading, clause: Clause) -> bool:
    """Whether a clause without a subject may go on about somebody of the sentence before."""
    return bool(_DROPS_PRONOUNS & set(reading.languages)) and _before(reading, clause) is not None


def _before(reading: Reading, clause: Clause) -> Mention | None:
    """Who was mentioned last in the sentence before, if that sentence does not say "I" of something else."""
    if clause.sentence == 0:
        return None
    return next(reversed(reading.mentions_in(reading.sentences[clause.sentence - 1])), None)


def _other_acts(actor: Actor, topic: Topic) -> Doubt | None:
    if actor.is_user or topic.names_any(actor.names):
        return None
    return Doubt(SOMEBODY_ELSE, is_firm=actor.is_sure and not actor.kinds & SERVING)


def _addresses(reading: Reading, clause: Clause) -> bool:
    """Whether a clause speaks to the assistant: "I'll call you Hector"."""
    return (
        pattern("persons", "addressed", reading.languages).search(reading.text, clause.start, clause.end)
        is not None
    )


def _tells_assistant(reading: Reading, clause: Clause) -> bool:
    """Whether a clause begins with "you" and has no "I"."""
    lead = reading.text[clause.start : clause.end].lstrip()
    begins = pattern("persons", "second", reading.languages).match(lead)
    return begins is not None and not _speaks_of_user(reading, clause)


def _speaks_of_user(reading: Reading, clause: Clause) -> bool:
    return any(
        pattern("persons", name, reading.languages).search(reading.text, clause.start, clause.end)
        for name in ("first", "possessive")
    )


def _about_other(
    reading: Reading,
    clauses: list[Clause],
    value: Span | None,
    topic: Topic,
    subject: Subject,
    named: frozenset[str],
) -> Doubt | None:
    if (
        named
        and subject.kinds
        and best_fit(named, subject.kinds) == NONE
        and best_fit(subject.kinds, named) == NONE
    ):
        return Doubt(SOMEBODY_ELSE, is_firm=True, detail="key and subject differ")
    if not named:
        return _about_named(reading, clauses, subject)
    fit = _fit_of_value(reading, clauses, value, named, topic)
    if fit == EXACT:
        return None
    return Doubt(SOMEBODY_ELSE, is_firm=True) if fit == NONE else Doubt(NOT_CLEAR, is_firm=False)


def _about_named(reading: Reading, clauses: list[Clause], subject: Subject) -> Doubt | None:
    for clause in clauses:
        spoken = set(_WORD.findall(reading.text[clause.start : clause.end])) | clause.actor.names
        if not subject.names & spoken and clause.actor.is_user:
            return Doubt(NOT_CLEAR, is_firm=False)
    return None


def _fit_of_value(
    reading: Reading, clauses: list[Clause], value: Span | None, named: frozenset[str], topic: Topic
) -> int | None:
    """How well those whom the value belongs to fit the key; None when that cannot be told."""
    owner = _owner(reading, value) if value else None
    if owner:
        return best_fit(named, frozenset({owner.kind})) if owner.kind != "family" else None
    fits = [_fit_of_actor(named, clause.actor) for clause in clauses if clause.actor.kinds]
    if fits:
        return None if None in fits else min(fit for fit in fits if fit is not None)
    inside = frozenset(
        one.kind for clause in clauses for one in reading.mentions_in((clause.start, clause.end))
    )
    if value is None and inside:
        return best_fit(named, inside) or None
    if any(topic.names_any(clause.actor.names) for clause in clauses):
        return EXACT
    spoken_of = _before(reading, clauses[0])
    if spoken_of and not inside and not _speaks_of_user(reading, clauses[0]):
        return _fit_or_unknown(named, spoken_of)
    follows = value and len(inside) == 1 and not reading.text[slice(*value)].strip().isdigit()
    return best_fit(named, inside) or None if follows else None


def _fit_of_actor(named: frozenset[str], actor: Actor) -> int | None:
    """None when a pronoun may as well mean somebody else: "my son got a hamster. He is 4"."""
    fit = best_fit(named, actor.kinds)
    is_other = any(best_fit(named, frozenset({kind})) == NONE for kind in actor.kinds)
    return None if fit != NONE and is_other else fit


def _fit_or_unknown(named: frozenset[str], mention: Mention) -> int | None:
    return best_fit(named, frozenset({mention.kind})) or None


@lru_cache
def _link(languages: Languages) -> re.Pattern[str]:
    """What may stand between a person and their name."""
    return re.compile(rf"(?:'s|\W|{pattern('persons', 'link', languages).pattern})*")


def _owner(reading: Reading, value: Span) -> Mention | None:
    """The person or animal that a name or number next to them belongs to."""
    near = reading.mentions_in(reading.sentences_in(value)[0])
    before = next((one for one in reversed(near) if one.end <= value[0]), None)
    after = next((one for one in near if one.start >= value[1]), None)
    if after and _is_counted(reading, value, after):
        return after
    if before and _link(reading.languages).fullmatch(reading.text[before.end : value[0]]):
        return before
    if after and _is_next(reading, reading.text[value[1] : after.start]):
        return after
    return before if before and _only_names(reading, reading.text[before.end : value[0]]) else None


def _is_counted(reading: Reading, value: Span, after: Mention) -> bool:
    """Whether a number stands right before whom it counts: "两个妹妹", "two sisters"."""
    is_number = bool(find_quantities(reading.text[slice(*value)])[0])
    return is_number and not reading.text[value[1] : after.start].strip()


# A conjunction or preposition alone: "34 and my daughter".
_JOINS = re.compile(r"\W*(?:\w{1,4})?\W*")


@lru_cache
def _link_to_person(languages: Languages) -> re.Pattern[str]:
    """What may stand between a value and the person that it belongs to."""
    own = pattern("persons", "possessive", languages).pattern
    verb = r"(?:(?:is|was|ist|es|est|e|это|是|は)\s+)?"
    return re.compile(rf"\W{{0,3}}{verb}(?:(?:{own})\s*(?:\w+\s)?|(?:\w+\s)?)")


def _is_next(reading: Reading, gap: str) -> bool:
    """Whether a mention follows a value at once: "two young kids", "Erik, my husband"."""
    is_link = _link_to_person(reading.languages).fullmatch(gap) is not None
    return not gap.strip() or (is_link and _JOINS.fullmatch(gap) is None)


def _only_names(reading: Reading, gap: str) -> bool:
    return all(
        word in reading.capitals or _link(reading.languages).fullmatch(word) for word in _WORD.findall(gap)
    )
