"""Pairs of what a user said and what a model proposed, with the verdict that the guard should give."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from shepherd_memory.memory.fact_keys import normalise_key
from shepherd_memory.text.grounding import REFUSED, STORED, Proposition, Verdict, judge

PATH = Path(__file__).with_name("verdict_corpus.jsonl")
TUNED, *_ = PARTS = (
    "tuned",
    "last",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
    "twenty-first",
    "twenty-second",
    "twenty-third",
    "twenty-fourth",
    "twenty-fifth",
    "twenty-sixth",
    "twenty-seventh",
    "twenty-eighth",
)


@dataclass(frozen=True)
class Example:
    """One pair; `part` says whether the rules were tuned on it."""

    claim: Proposition
    said: tuple[str, ...]
    verdict: str
    kind: str
    part: str

    def judged(self) -> Verdict:
        return judge(self.claim, self.said)


def examples() -> Iterator[Example]:
    for line in PATH.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        about = row.get("question") or normalise_key(row["key"])
        claim = Proposition(
            about, row["value"], "question" in row, row["statement"], row["quote"], row["subject"]
        )
        yield Example(claim, tuple(row["said"]), row["verdict"], row["kind"], row["part"])


@dataclass(frozen=True)
class Figures:
    """How often each verdict was given where another was expected."""

    counts: Counter[tuple[str, str]]

    def number(self, *, expected: tuple[str, ...] = (), given: tuple[str, ...] = ()) -> int:
        return sum(
            count
            for (wanted, got), count in self.counts.items()
            if (not expected or wanted in expected) and (not given or got in given)
        )

    @property
    def precision(self) -> float:
        """Of what is stored, how much should be."""
        return self.number(expected=(STORED,), given=(STORED,)) / self.number(given=(STORED,))

    @property
    def recall(self) -> float:
        """Of what should be stored or kept, how much is one or the other."""
        kept = self.number() - self.number(given=(REFUSED,)) - self._wrongly_kept
        return kept / (self.number() - self.number(expected=(REFUSED,)))

    @property
    def _wrongly_kept(self) -> int:
        return self.number(expected=(REFUSED,)) - self.number(expected=(REFUSED,), given=(REFUSED,))


def measure(chosen: Iterable[Example]) -> Figures:
    """Hold the guard's verdicts against the expected ones."""
    return Figures(Counter((one.verdict, one.judged().decision) for one in chosen))
