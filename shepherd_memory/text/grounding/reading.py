"""A user's message, read: its sentences and clauses, and who acts in each of them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from shepherd_memory.text.grounding.dates import MONTH
from shepherd_memory.text.grounding.foreign import Stretch, foreign_stretches
from shepherd_memory.text.grounding.languages import Languages, detect, pattern, table
from shepherd_memory.text.grounding.relations import FAMILY, Mention, find_mentions, fits
from shepherd_memory.text.words import fold

Span = tuple[int, int]

# Beyond this the middle of a message is a paste, and no model is shown it.
MAX_CHARACTERS = 16_000


@dataclass(frozen=True)
class Actor:
    """Who acts in a clause: the user, or somebody of these kinds or names."""

    is_user: bool = True
    kinds: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    is_sure: bool = True


USER = Actor()


@dataclass(frozen=True)
class Clause:
    """A clause of folded text; its number is that of its sentence."""

    start: int
    end: int
    sentence: int
    actor: Actor


@dataclass(frozen=True)
class Reading:
    """One message: folded text and what was found in it."""

    text: str
    languages: Languages
    capitals: frozenset[str]
    sentences: tuple[Span, ...]
    clauses: tuple[Clause, ...]
    mentions: tuple[Mention, ...]
    foreign: tuple[Stretch, ...]

    def clauses_in(self, span: Span) -> list[Clause]:
        """The clauses that a stretch of the text touches."""
        return [clause for clause in self.clauses if clause.start < span[1] and span[0] < clause.end]

    def sentences_in(self, span: Span) -> list[Span]:
        """The sentences that a stretch of the text touches."""
        return [one for one in self.sentences if one[0] < span[1] and span[0] < one[1]]

    def mentions_in(self, span: Span) -> list[Mention]:
        """Who is mentioned in a stretch of the text."""
        return [one for one in self.mentions if span[0] <= one.start and one.end <= span[1]]


_CAPITALISED = re.compile(r"[^\W\d_a-z][\w'-]*")


# One work item has at most twenty statements, and each of its proposals asks for one or all of them.
@lru_cache(maxsize=64)
def read(message: str) -> Reading:
    """Read a message of the user; of a very long one the beginning and the end."""
    if len(message) > MAX_CHARACTERS:
        message = f"{message[: MAX_CHARACTERS // 2]}\n{message[-MAX_CHARACTERS // 2 :]}"
    text = fold(message)
    languages = detect(text, message)
    capitals = frozenset(fold(word) for word in _CAPITALISED.findall(message) if not word[0].islower())
    mentions = tuple(find_mentions(text, languages))
    sentences = tuple(_pieces(text, _sentence_end(languages), (0, len(text))))
    parser = _ClauseReader(text, languages, capitals, mentions)
    clauses = tuple(clause for number, span in enumerate(sentences) for clause in parser.read(span, number))
    return Reading(
        text, languages, capitals, sentences, clauses, mentions, foreign_stretches(text, languages)
    )


# After one letter a full stop is rather an initial.
_ENDS = (
    r"(?<=[!?。؟।])|(?<=[^\d\s.]{2}\.)(?<!\b[dm]r\.)(?<!\bmrs\.)(?<!\bst\.)(?<!\bprof\.)(?<!\bsra\.)\s+"
    r"|(?<=[)\"”»」]\.)\s+|(?<=\d{3}\.)\s+|(?<=:\d\d\.)\s+|(?<=…)\s+|(?<=\.\.\.)\s+|\n+|(?<=[\w,;:.])\s+(?=¿)"
)
_EMOJI = "[\U0001f300-\U0001faff\u2600-\u27bf]"


@lru_cache
def _sentence_end(languages: Languages) -> re.Pattern[str]:
    """Marks and line breaks; after a number ("3. März") or an emoji only what begins a sentence shows it."""
    begins = [
        pattern(of, entry, languages).pattern
        for of, entry in (
            ("moods", "question_start"),
            ("moods", "question_word"),
            ("persons", "first"),
            ("persons", "possessive"),
            ("plain", "request"),
        )
    ]
    begin = rf"(?:o\s)?(?:{'|'.join(begins)})"
    # In German a full stop makes an ordinal of a number; at the beginning of a line it numbers a list.
    word = begin if "de" in languages else rf"(?!{MONTH}\b)\w"
    ends = r"(?<=[^\n]\d\.)|(?<=\d [a-z]\.)|(?<=\d[a-z]\.)"
    # Japanese and Chinese have no space within a sentence.
    after_emoji = r"\w" if {"ja", "zh"} & set(languages) else begin
    return re.compile(rf"{_ENDS}|(?:{ends})\s+(?={word})|(?<={_EMOJI})\ufe0f?\s+(?={after_emoji})")


def _pieces(text: str, separator: re.Pattern[str], span: Span) -> Iterator[Span]:
    start = span[0]
    for match in separator.finditer(text, *span):
        if text[start : match.start()].strip():
            yield start, match.start()
            start = match.end()
    if text[start : span[1]].strip():
        yield start, span[1]


def _join(patterns: Iterable[re.Pattern[str]]) -> str:
    return "|".join(one.pattern for one in patterns)


# "As my editor" says what something is used as, and begins no clause.
_ROLE = r"as (?:my|our) (?:\w+ ){0,2}\w+(?:\W*$|[,.;!?)]|\s(?:and|but|for|on|in|at|since|because)\b)"


@lru_cache
def _clause_end(languages: Languages) -> re.Pattern[str]:
    """Punctuation; conjunctions before a new subject; relative words; in English, "I", "she" and the like."""
    starts = _join(pattern("persons", name, languages) for name in ("first", "possessive", "third"))
    joined = rf"\s(?!{_ROLE})(?=(?:{pattern('persons', 'joiner', languages).pattern})\s+(?:{starts}))"
    verb = pattern("persons", "third_verb", languages).pattern
    beside = rf"\s(?=(?:{pattern('persons', 'joiner', languages).pattern})\s+(?:\w+\s+){{1,2}}(?:{verb}))"
    contrast = rf"\s(?=(?:{pattern('denial', 'contrast', languages).pattern}))"
    # In Russian a dash is the verb: "моя сестра - врач".
    dash = "" if "ru" in languages else r"|[\u2013\u2014]|\s-\s"
    ends = [rf"(?<!\d)[,;:]|[,;:](?!\d)|[()、]{dash}", joined, beside, contrast]
    spaced = tuple(one for one in languages if one in ("en", "es", "fr", "pt", "ru"))
    if spaced:
        ends.append(rf"\s(?=(?:{pattern('persons', 'relative', spaced).pattern}))")
    if "en" in languages:
        ends.append(r"(?<!\bif)(?<!\band)(?<!\bor)\s(?=(?:i|he|she|we|they)\b)")
        ends.append(rf"\s(?={pattern('persons', 'after_person', ('en',)).pattern})")
    if {"ja", "zh"} & set(languages):
        ends.append(r"(?<=[\u3040-\u30ff\u3400-\u9fff\d])\s+(?=[\u3040-\u30ff\u3400-\u9fff])")
    ends.append(rf"\s(?={pattern('moods', 'if', tuple(set(languages) & {'en', 'ru'})).pattern})")
    return re.compile("|".join(ends))


@lru_cache
def _owned_start(languages: Languages) -> re.Pattern[str]:
    """The beginning of a clause that starts with "my" or the like."""
    return re.compile(rf"\W*(?:{pattern('persons', 'possessive', languages).pattern})\s")


_WORD = re.compile(r"\w+")
_STOP = re.compile("[.!?。]")
_NEXT_WORDS = re.compile(r"(?:'s)?\W{1,3}((?:\w+ ?){1,2})")
_WORD_BEFORE = re.compile(r"(?<!\w)(\w++)\W{1,3}(?:\w+ )?$")
_FIRST_WORDS = re.compile(r"\W*+(?:(?:and|but|und|y|et|e|и|\u0430)\s)?((?:[\w'-]++ ){1,3})")


class _ClauseReader:
    """Cuts sentences into clauses and remembers who was spoken of last."""

    def __init__(
        self, text: str, languages: Languages, capitals: frozenset[str], mentions: tuple[Mention, ...]
    ) -> None:
        self._text, self._languages, self._capitals, self._mentions = text, languages, capitals, mentions
        self._last: Actor | None = None

    def read(self, span: Span, number: int) -> Iterator[Clause]:
        actor: Actor | None = None
        for start, end in _pieces(self._text, _clause_end(self._languages), span):
            actor = self._actor((start, end), actor)
            if actor.kinds:
                self._last = actor
            yield Clause(start, end, number, actor)

    def _find(self, name: str, span: Span) -> re.Match[str] | None:
        return pattern("persons", name, self._languages).search(self._text, *span)

    def _actor(self, span: Span, before: Actor | None) -> Actor:
        if fragment := self._fragment(span, before):
            return fragment
        mention = self._acting_mention(span, before is None)
        first = self._first_person(span)
        if mention and (first is None or mention.start < first):
            return self._other(mention, first)
        if first is not None:
            return USER
        return self._referred(span) or self._named(span) or self._somebody(span, before) or before or USER

    def _fragment(self, span: Span, before: Actor | None) -> Actor | None:
        """Somebody in a clause that left out its verb: "I'm from Ulm, my wife from Bern"."""
        if before is None or not self._is_spaced():
            return None
        text = self._text[span[0] : span[1]]
        owner = _owned_start(self._languages).match(text)
        mention = next((one for one in self._mentions if span[0] <= one.start < span[1]), None)
        if owner is None or mention is None or mention.start > span[0] + owner.end():
            return None
        rest = [word for word in _WORD.findall(self._text[mention.end : span[1]])]
        has_verb = self._find("third_verb", (mention.end, span[1])) is not None
        is_more = any(word not in self._capitals for word in rest) and len(rest) > 1
        if has_verb or not is_more or self._first_person(span) is not None:
            return None
        return Actor(False, frozenset({mention.kind}), self._names_at(mention), is_sure=False)

    def _somebody(self, span: Span, before: Actor | None) -> Actor | None:
        """Somebody who is not known, in a verb that the user would not use of themself."""
        if before is not None and not before.is_user:
            return None
        return Actor(False, is_sure=False) if self._find("person_verb", span) else None

    def _first_person(self, span: Span) -> int | None:
        """Where the user acts or feels, apart from "my sister", "我姐姐"."""
        for match in pattern("persons", "first", self._languages).finditer(self._text, *span):
            owned = any(match.start() <= one.start <= match.end() + 2 for one in self._mentions)
            if not (owned and match[0][:1] in "我私僕俺咱うわぼ"):
                return match.start()
        return None

    def _acting_mention(self, span: Span, is_first: bool) -> Mention | None:
        """The person or animal that the clause begins with, if it is one who acts."""
        inside = [one for one in self._mentions if span[0] <= one.start < span[1]]
        if not inside or inside[0].kind == FAMILY:
            return None
        mention = inside[0]
        lead = self._text[span[0] : mention.start].strip()
        if len(lead.split()) > 4 or not self._may_act(mention, lead, span):
            return None
        has_verb = self._find("third_verb", (mention.end, span[1])) is not None
        return mention if is_first or has_verb or not self._is_spaced() else None

    def _is_spaced(self) -> bool:
        return not {"ja", "zh"} & set(self._languages)

    def _may_act(self, mention: Mention, lead: str, span: Span) -> bool:
        if "ja" in self._languages:
            after = _JAPANESE_ENDING.sub("", self._text[mention.end : mention.end + 8])
            return after.startswith(("は", "が", "も", "の", "って"))
        own = pattern("persons", "possessive", self._languages)
        bare = own.sub(" ", lead).split()
        bare = [word for word in bare if not pattern("persons", "joiner", self._languages).fullmatch(word)]
        if "zh" in self._languages:
            return not pattern("persons", "before", self._languages).search("".join(bare))
        before = pattern("persons", "before", self._languages)
        return (
            not any(before.fullmatch(word) for word in bare)
            and self._find("first", (span[0], mention.start)) is None
        )

    def _other(self, mention: Mention, first: int | None) -> Actor:
        between = self._text[mention.end : first] if first is not None else ""
        joined = [word for word in _WORD.findall(between) if word not in self._capitals]
        if first is not None and len(joined) == 1 and self._joins(joined[0]):
            return USER
        return Actor(False, frozenset({mention.kind}), self._names_at(mention), is_sure=first is None)

    def _joins(self, word: str) -> bool:
        return word in ("and", "und", "y", "e", "et", "и", "和", "跟", "with", "mit", "plus", "avec")

    def _names_at(self, mention: Mention) -> frozenset[str]:
        """The names that stand next to a mention: "my sister Lena", "Erik, my husband"."""
        after = _NEXT_WORDS.match(self._text[mention.end : mention.end + 60])
        before = _WORD_BEFORE.search(self._text[max(0, mention.start - 40) : mention.start])
        near = (after[1].split() if after else []) + ([before[1]] if before else [])
        own = pattern("persons", "possessive", self._languages)
        return frozenset(word for word in near if word in self._names() and not own.fullmatch(word))

    def _referred(self, span: Span) -> Actor | None:
        """Whom "she", "who" or "it" at the beginning of a clause means."""
        lead = self._text[span[0] : span[1]].split()[:3]
        at_start = (span[0], min(span[1], span[0] + len(" ".join(lead)) + 2))
        last = max(
            (one for one in self._mentions if one.end <= span[0]), key=lambda one: one.start, default=None
        )
        if pronoun := self._find("third", at_start):
            return self._meant(last, pronoun[0]) or Actor(False, is_sure=pronoun[0] in _ENGLISH_PERSONS)
        if last is not None and self._hangs_on(last, span):
            return self._spoken_of(last)
        if self._starts_with("relative", span) and "en" in self._languages:
            return Actor(False)
        if last is not None and self._find("thing", at_start) and fits("pet", last.kind):
            return self._spoken_of(last)
        return None

    def _hangs_on(self, mention: Mention, span: Span) -> bool:
        """Whether a clause goes on about the mention before it: "my sister, who…", "a sister living in…"."""
        between = self._text[mention.end : span[0]]
        if self._starts_with("relative", span):
            return not _STOP.search(between)
        return self._starts_with("after_person", span) and len(between.split()) < 2 and "," not in between

    def _starts_with(self, name: str, span: Span) -> bool:
        found = self._find(name, span)
        return found is not None and not self._text[span[0] : found.start()].strip()

    def _meant(self, last: Mention | None, pronoun: str) -> Actor | None:
        """Whom a pronoun means: who acted last, or who was mentioned since; a "he" is nobody's sister."""
        if last is None:
            return None
        named = [self._spoken_of(last), *([self._last] if self._last else [])]
        meant = [one for one in named if self._may_be_called(one, pronoun)]
        if not meant:
            return Actor(False, is_sure=False)
        kinds, names = (
            frozenset[str]().union(*sets)
            for sets in zip(*((one.kinds, one.names) for one in meant), strict=True)
        )
        return Actor(False, kinds, names)

    def _may_be_called(self, actor: Actor, pronoun: str) -> bool:
        """Whether a pronoun may mean somebody, as far as their gender is known."""
        others = {"m": "she", "f": "he"}
        genders = {table("relations").get(kind, {}).get("gender") for kind in actor.kinds}
        return not genders or any(
            gender is None or not pattern("persons", others[gender], self._languages).fullmatch(pronoun)
            for gender in genders
        )

    def _spoken_of(self, mention: Mention) -> Actor:
        return Actor(False, frozenset({mention.kind}), self._names_at(mention))

    def _named(self, span: Span) -> Actor | None:
        """Somebody whose name begins the clause: "Ana mora em Faro"."""
        if self._find("possessive", span):
            return None
        lead = _FIRST_WORDS.match(self._text[span[0] : span[1]])
        named = lead[1].split() if lead else []
        verb = pattern("persons", "third_verb", self._languages)
        for count in (1, 2):
            if len(named) > count and verb.fullmatch(named[count]) and set(named[:count]) <= self._names():
                kinds = {one.kind for one in self._mentions if set(named[:count]) & self._names_at(one)}
                is_copula = named[count] in _COPULAS
                return Actor(
                    False, frozenset(kinds), frozenset(named[:count]), is_sure=bool(kinds) or not is_copula
                )
        return None

    def _names(self) -> frozenset[str]:
        return self._capitals - _function_words(self._languages)


_JAPANESE_ENDING = re.compile("^(?:たち|達|さん|ちゃん|くん)+")
_ENGLISH_PERSONS = frozenset(["he", "she", "he's", "she's", "his", "her"])
_COPULAS = frozenset(
    ["is", "was", "ist", "war", "es", "esta", "era", "fue", "est", "etait", "foi", "был", "была"]
)


@lru_cache
def _function_words(languages: Languages) -> frozenset[str]:
    return frozenset(fold(" ".join(table("words")["function"].get(one, "") for one in languages)).split())


_UNSPACED_SUBJECT = re.compile(r"([^\W\d]{1,8}?)(?:は|が|住在|叫|是|在)")
_COPULA = re.compile(r"\s(?:is|are|was|ist|sind|war|es|son|era|est|sont|e|sao|это)\s|'s\s")
_ADVERBS = re.compile("^(?:现在|目前|平时|今年|一直|从小|已经|也|都|还|就|今は|今|今年)+")


def owned_noun(reading: Reading, clause: Clause) -> str:
    """What a clause that does not begin with the user says something of: "my boat", "保姆"; "" if unknown."""
    text = reading.text[clause.start : clause.end].strip()
    if {"ja", "zh"} & set(reading.languages):
        subject = _UNSPACED_SUBJECT.match(_ADVERBS.sub("", text))
        noun = subject[1] if subject else ""
        return "" if pattern("persons", "first", reading.languages).match(noun) and len(noun) < 3 else noun
    owner = pattern("persons", "possessive", reading.languages).match(text)
    verb = _COPULA.search(text)
    return text[owner.end() : verb.start()] if owner and verb and verb.start() > owner.end() else ""
