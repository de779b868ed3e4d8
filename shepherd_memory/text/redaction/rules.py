"""Rules: which pattern to try where, and who decides on a match."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from shepherd_memory.text.redaction.patterns import Pattern, Span, lazy

Judge = Callable[[re.Match[str]], Span | None]


@dataclass(frozen=True)
class SecretRule:
    """A pattern, tried only where one of its anchors stands.

    The pattern starts at the anchor; that of a `floating` rule merely holds it, and searches the whole text.
    `judge` gets each match and returns the span to hide, or None. A pattern either cannot start inside its
    own run of characters or repeats within bounds, so that no text takes quadratic time.
    """

    kind: str
    anchors: frozenset[str]
    pattern: Pattern
    judge: Judge
    floating: bool

    def spans(self, text: str, searched: str, anchors: Iterable[str]) -> Iterator[Span]:
        if self.floating:
            yield from filter(None, map(self.judge, self.pattern().finditer(text)))
            return
        for anchor in anchors:
            yield from self._anchored(text, searched, anchor)

    def _anchored(self, text: str, searched: str, anchor: str) -> Iterator[Span]:
        pattern = self.pattern()
        # str.find is many times faster than letting the pattern search.
        position = searched.find(anchor)
        while position >= 0:
            match = pattern.match(text, position)
            span = self.judge(match) if match else None
            if span:
                yield span
            position = searched.find(anchor, max(position + 1, _resume(match, span)))


def _resume(match: re.Match[str] | None, span: Span | None) -> int:
    """Go on behind a match, but inside a refused value: `password: password=...` names two."""
    if span:
        return span[1]
    return match.end() if match and "bare" not in match.re.groupindex else 0


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

    def spans(self, text: str, searched: str, within: str) -> list[tuple[int, int, int, str]]:
        """Find anchors in `searched`, a text or its lower case, but only those that `within` has at all."""
        present = self._present(within) if within else set()
        if not present:
            return []
        return [
            (*span, self.first_rank + place, self.rules[place].kind)
            for place in {place for anchor in present for place in self.users[anchor]}
            for span in self.rules[place].spans(text, searched, present & self.rules[place].anchors)
        ]

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
    return RuleTable(first_rank, rules, _by_character(users), users)


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
) -> SecretRule:
    return SecretRule(kind, frozenset(anchors.split()), lazy(pattern, flags), judge or secret_span, floating)


def secret_span(match: re.Match[str]) -> Span:
    return match.span("secret" if "secret" in match.re.groupindex else 0)
