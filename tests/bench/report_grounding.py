"""How often the guard errs on its corpora: `python -m tests.bench.report_grounding [-v]`."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

from shepherd_memory.extraction.guard_topics import is_about_assistant, is_transient
from shepherd_memory.text.grounding import REFUSED, STORED, Proposition, judge
from tests.unit.grounding_corpus import FORGED_QUESTIONS, GROUNDED, HONEST_QUESTIONS, Case
from tests.unit.grounding_corpus import REFUSED as UNGROUNDED
from tests.unit.verdict_corpus import PARTS, Example, examples, measure

BOOLEANS = frozenset({"true", "false", "yes", "no"})


def decision_on(case: Case) -> str:
    """What the guard decides about a proposal without quote and subject."""
    if is_about_assistant(case.about, case.text) or is_transient(case.about, case.text):
        return REFUSED
    claim = Proposition(case.about, case.text, is_question=is_question(case.about))
    return judge(claim, case.said, case.dates).decision


def is_question(about: str) -> bool:
    """Whether it is a context's question and not a fact's key."""
    return about.endswith(("?", "\uff1f"))


def decisions_on_questions(cases: Iterable[tuple[str, str]]) -> list[str]:
    """What the guard decides about pairs whose answer is what was said, word for word."""
    return [
        judge(
            Proposition(question, said.splitlines()[-1], True, 1, said.splitlines()[-1], "self"), [said]
        ).decision
        for said, question in cases
    ]


def swapped_cases() -> Iterator[Case]:
    """Each grounded pair with the value of every other pair that was not said here.

    "yes" and "true" are left out: with a key from the user's words they are true by accident.
    """
    for case in GROUNDED:
        said = " ".join(case.said).casefold()
        for other in GROUNDED:
            if other.text in BOOLEANS or other.said == case.said:
                continue
            if other.text.casefold() not in said:
                yield replace(case, text=other.text, why="swapped")


def figure(label: str, number: int, total: int) -> str:
    return f"{label:<52} {number:>5} of {total:>6}  {number / total:7.2%}\n"


def main(verbose: bool) -> None:
    found = list(examples())
    for part in PARTS:
        _write_verdicts(part, [one for one in found if one.part == part], verbose)
    _write_old_shape(verbose)


def _write_verdicts(part: str, chosen: list[Example], verbose: bool) -> None:
    figures = measure(chosen)
    stored = figures.number(given=(STORED,))
    sys.stdout.write(
        f"{part}: {len(chosen)} pairs, {stored} stored, precision {figures.precision:.3f},"
        f" stored or unconfirmed recall {figures.recall:.3f}\n"
    )
    for (wanted, got), number in sorted(figures.counts.items()):
        sys.stdout.write(f"    expected {wanted:<12} given {got:<12} {number:>4}\n")
    for one in chosen if verbose else []:
        given = one.judged()
        if given.decision != one.verdict:
            claim = f"{one.claim.about} = {one.claim.value}"
            sys.stdout.write(
                f"    {one.verdict} > {given.decision} {list(one.said)} {claim} [{given.reason}]\n"
            )


def _write_old_shape(verbose: bool) -> None:
    wrongly_refused = [case for case in GROUNDED if decision_on(case) == REFUSED]
    wrongly_stored = [case for case in UNGROUNDED if decision_on(case) == STORED]
    swapped = list(swapped_cases())
    stored = [case for case in swapped if decision_on(case) == STORED]
    questions = decisions_on_questions(HONEST_QUESTIONS), decisions_on_questions(FORGED_QUESTIONS)
    sys.stdout.write("without quote and subject:\n")
    sys.stdout.write(figure("said, and refused", len(wrongly_refused), len(GROUNDED)))
    sys.stdout.write(figure("not said, and stored", len(wrongly_stored), len(UNGROUNDED)))
    sys.stdout.write(figure("with a value of another pair, and stored", len(stored), len(swapped)))
    sys.stdout.write(figure("honest questions, refused", questions[0].count(REFUSED), len(questions[0])))
    sys.stdout.write(figure("forged questions, stored", questions[1].count(STORED), len(questions[1])))
    for case in [*wrongly_refused, *wrongly_stored] if verbose else []:
        sys.stdout.write(f"    [{case.why or 'grounded'}] {case.said} | {case.about} | {case.text}\n")


if __name__ == "__main__":
    main(verbose="-v" in sys.argv[1:])
