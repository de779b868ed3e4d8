"""Rules: which pattern to try where, and who decides on a match."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from shepherd_memory.text.redaction.effort import Effort, cost_of_match, next_window
from shepherd_memory.text.redaction.patterns import SLICE_CHARS, Pattern, Span, lazy

Judge = Callable[[re.Match[str]], Span | None]


RankedSpan = tuple[int, int, int, str]
"""Start, end, rank and kind of a secret."""


@dataclass(frozen=True)
class SecretRule:
    """A pattern, tried only where one of its anchors stands.

    The pattern starts at the anchor, or behind the `name` that does; that of a `floating` rule merely holds
    the anchor, and searches the whole text. `judge` gets each match and returns the span to hide, or None.
    """

    kind: str
    anchors: frozenset[str]
    pattern: Pattern
    judge: Judge
    floating: bool = False
    name: Pattern | None = None
    first: frozenset[str] = frozenset()
    """If not empty, the ASCII characters that the pattern can start with."""
    cost: int = 1
    """What a try in vain costs, in tries of a pattern that looks no further than its first characters."""

    def floating_spans(self, text: str) -> Iterator[Span]:
        """A slice at a time: no other thread runs while a pattern searches."""
        position = 0
        for end in range(SLICE_CHARS, len(text) + SLICE_CHARS, SLICE_CHARS):
            for match in self._in_slice(text, position, end):
                span = self.judge(match)
                position = match.end()
                if span:
                    yield span
            position = max(position, end)

    def _in_slice(self, text: str, start: int, end: int) -> Iterator[re.Match[str]]:
        pattern = self.pattern()
        overlap = end + _MAX_FLOATING_CHARS
        for match in pattern.finditer(text, start, overlap):
            if match.start() >= end:
                return
            whole = pattern.match(text, match.start()) if match.end() == overlap else match
            if whole:
                yield whole


# A floating pattern looks no further than this to know that it matches.
_MAX_FLOATING_CHARS = 1 << 10


class _Trial:
    """A rule on its way along a text."""

    __slots__ = ("cost", "first", "match", "rank", "resume", "rule")

    def __init__(self, rule: SecretRule, rank: int) -> None:
        self.rule = rule
        self.rank = rank
        self.match = rule.pattern().match
        self.first = rule.first
        self.cost = rule.cost
        self.resume = 0

    def cannot_start(self, character: str) -> bool:
        return bool(self.first) and character < "\x80" and character not in self.first

    def judged(self, match: re.Match[str]) -> RankedSpan | None:
        span = self.rule.judge(match)
        if span:
            self.resume = span[1]
            return (*span, self.rank, self.rule.kind)
        # Inside a refused value the search goes on: `password: password=...` names two.
        if "bare" not in match.re.groupindex:
            self.resume = match.end()
        return None


@dataclass(frozen=True)
class _Trials:
    """The rules of an anchor that stand behind the same name, or at the anchor itself."""

    name: re.Pattern[str] | None
    trials: list[_Trial]

    def spans(self, text: str, position: int, spans: list[RankedSpan]) -> int:
        """Add what the rules find at an anchor; return what it has cost."""
        start = position
        if self.name:
            named = self.name.match(text, position)
            if not named:
                return _COST_OF_NAME
            start = named.end()
        character = text[start : start + 1]
        cost = _COST_OF_NAME
        for trial in self.trials:
            if trial.resume > position or trial.cannot_start(character):
                continue
            match = trial.match(text, start)
            if match:
                cost += self._judge(trial, match, spans)
            else:
                cost += trial.cost
        return cost

    def _judge(self, trial: _Trial, match: re.Match[str], spans: list[RankedSpan]) -> int:
        span = trial.judged(match)
        if span:
            spans.append(span)
        return cost_of_match(match.end() - match.start(), span is not None)


_COST_OF_NAME = 1


@dataclass(frozen=True)
class RuleTable:
    """Rules in order of rank; ranks start at `first_rank`.

    `anchors` are under the character of each that is met least: most need not be looked for in a text.
    """

    first_rank: int
    rules: tuple[SecretRule, ...]
    anchors: Mapping[str, tuple[str, ...]]
    users: Mapping[str, tuple[int, ...]]
    """The places of the rules that an anchor belongs to."""
    floating: frozenset[str]
    """The anchors of floating rules alone, which are not tried where they stand."""

    def spans(self, text: str, searched: str, within: str, effort: Effort) -> list[RankedSpan]:
        """Find anchors in `searched`, a text or its lower case, but only those that `within` has at all."""
        present = self._present(within) if within else set()
        if not present:
            return []
        spans: list[RankedSpan] = []
        # The longest first: short ones, which a text can be full of, cannot use up the effort for them.
        for anchor in sorted(present - self.floating, key=lambda anchor: (-len(anchor), anchor)):
            self._search_at(anchor, text, searched, effort, spans)
        for place in sorted({place for anchor in present for place in self.users[anchor]}):
            rule = self.rules[place]
            if rule.floating:
                spans += [(*span, self.first_rank + place, rule.kind) for span in rule.floating_spans(text)]
        return spans

    def _search_at(
        self, anchor: str, text: str, searched: str, effort: Effort, spans: list[RankedSpan]
    ) -> None:
        groups = self._trials_of(anchor)
        # str.find is many times faster than letting a pattern search.
        position = searched.find(anchor)
        while position >= 0:
            if effort.is_used_up(position):
                position = searched.find(anchor, next_window(position))
                continue
            for group in groups:
                effort.spend(position, group.spans(text, position, spans))
            position = searched.find(anchor, position + 1)

    def _trials_of(self, anchor: str) -> list[_Trials]:
        groups: dict[Pattern | None, list[_Trial]] = {}
        for place in self.users[anchor]:
            rule = self.rules[place]
            if not rule.floating:
                groups.setdefault(rule.name, []).append(_Trial(rule, self.first_rank + place))
        return [_Trials(name() if name else None, trials) for name, trials in groups.items()]

    def narrowed(self, text: str) -> "RuleTable":
        """The same for what is a part of `text`: anchors that it has not are not looked for."""
        return replace(self, anchors=_by_character(self._present(text)))

    def _present(self, within: str) -> set[str]:
        return {
            anchor
            for character, anchors in self.anchors.items()
            if character in within
            for anchor in anchors
            if anchor in within
        }


def table(first_rank: int, *rules: SecretRule) -> RuleTable:
    users: dict[str, tuple[int, ...]] = {}
    for place, one in enumerate(rules):
        for anchor in one.anchors:
            users[anchor] = (*users.get(anchor, ()), place)
    floating = {anchor for anchor, places in users.items() if all(rules[place].floating for place in places)}
    return RuleTable(first_rank, rules, _by_character(users), users, frozenset(floating))


def _by_character(anchors: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for anchor in sorted(anchors):
        character = max(anchor, key=_rareness)
        found[character] = (*found.get(character, ()), anchor)
    return found


_OFTEN = " etaonirshldcumpfgyw-.bv/_k0123456789:xjqz"
"""Characters as often as they stand in what people and agents say, the most frequent first."""


def _rareness(character: str) -> int:
    place = _OFTEN.find(character)
    return place if place >= 0 else len(_OFTEN)


def rule(
    kind: str,
    anchors: str,
    pattern: str,
    judge: Judge | None = None,
    flags: int = re.ASCII,
    floating: bool = False,
    name: Pattern | None = None,
    first: str = "",
    cost: int = 1,
) -> SecretRule:
    compiled = lazy(pattern, flags)
    judge = judge or secret_span
    return SecretRule(
        kind, frozenset(anchors.split()), compiled, judge, floating, name, frozenset(first), cost
    )


def secret_span(match: re.Match[str]) -> Span:
    return match.span("secret" if "secret" in match.re.groupindex else 0)
