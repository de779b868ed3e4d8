"""Rules: which pattern to try where, and who decides on a match."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from shepherd_memory.redaction.findings import Span
from shepherd_memory.redaction.patterns import Pattern, lazy

Judge = Callable[[re.Match[str]], Span | None]


@dataclass(frozen=True)
class Rule:
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
    """Rules in order of rank; ranks start at `first_rank`."""

    first_rank: int
    rules: tuple[Rule, ...]
    anchors: frozenset[str]

    def spans(self, text: str, searched: str, within: str) -> list[tuple[int, int, int, str]]:
        """Find anchors in `searched`, a text or its lower case, but only those that `within` has at all."""
        present = {anchor for anchor in self.anchors if anchor in within}
        return [
            (*span, rank, rule.kind)
            for rank, rule in enumerate(self.rules, self.first_rank)
            if (anchors := present & rule.anchors)
            for span in rule.spans(text, searched, anchors)
        ]


def table(first_rank: int, *rules: Rule) -> RuleTable:
    return RuleTable(first_rank, rules, frozenset().union(*(rule.anchors for rule in rules)))


def rule(
    kind: str,
    anchors: str,
    pattern: str,
    judge: Judge | None = None,
    flags: int = re.ASCII,
    floating: bool = False,
) -> Rule:
    return Rule(kind, frozenset(anchors.split()), lazy(pattern, flags), judge or secret_span, floating)


def secret_span(match: re.Match[str]) -> Span:
    return match.span("secret" if "secret" in match.re.groupindex else 0)
