"""How often the guard errs on the corpus: `python -m tests.bench.report_grounding [-v]`."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

from shepherd_memory.extraction.guard_topics import is_about_assistant, is_transient
from shepherd_memory.text.grounding import ground, unsaid_in_question
from tests.unit.grounding_corpus import FORGED_QUESTIONS, GROUNDED, HONEST_QUESTIONS, REFUSED, Case

BOOLEANS = frozenset({"true", "false", "yes", "no"})


def is_accepted(case: Case) -> bool:
    """What the guard decides about one proposal."""
    if is_about_assistant(case.about, case.text) or is_transient(case.about, case.text):
        return False
    if is_question(case.about) and unsaid_in_question(case.about, case.said, case.dates):
        return False
    return ground(case.text, case.said, key=case.about, dates=case.dates).grounded


def is_question(about: str) -> bool:
    """Whether it is a context's question and not a fact's key."""
    return about.endswith(("?", "\uff1f"))


def refused_questions(cases: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of the questions about a statement that the guard refuses."""
    return [(said, question) for said, question in cases if unsaid_in_question(question, [said])]


def false_refusals(cases: Iterable[Case]) -> list[Case]:
    return [case for case in cases if not is_accepted(case)]


def false_accepts(cases: Iterable[Case]) -> list[Case]:
    return [case for case in cases if is_accepted(case)]


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


def figure(label: str, wrong: int, total: int) -> str:
    return f"{label:<44} {wrong:>5} of {total:>6}  {wrong / total:7.2%}\n"


def _part(cases: list[Case], held_out: bool) -> list[Case]:
    return [case for case in cases if case.held_out is held_out]


def main(verbose: bool) -> None:
    for held_out, part in ((False, "tuned"), (True, "held out")):
        grounded, refused = _part(GROUNDED, held_out), _part(REFUSED, held_out)
        wrongly_refused, wrongly_accepted = false_refusals(grounded), false_accepts(refused)
        sys.stdout.write(figure(f"false refusals, {part}", len(wrongly_refused), len(grounded)))
        sys.stdout.write(figure(f"false accepts, {part}", len(wrongly_accepted), len(refused)))
        if verbose:
            _write_cases([*wrongly_refused, *wrongly_accepted])
    refused_honest, refused_forged = map(refused_questions, (HONEST_QUESTIONS, FORGED_QUESTIONS))
    accepted_forged = len(FORGED_QUESTIONS) - len(refused_forged)
    sys.stdout.write(figure("false refusals, questions", len(refused_honest), len(HONEST_QUESTIONS)))
    sys.stdout.write(figure("false accepts, questions", accepted_forged, len(FORGED_QUESTIONS)))
    swapped = list(swapped_cases())
    wrongly_accepted = false_accepts(swapped)
    sys.stdout.write(
        figure("false accepts, values swapped between pairs", len(wrongly_accepted), len(swapped))
    )
    if verbose:
        _write_cases(wrongly_accepted)


def _write_cases(cases: list[Case]) -> None:
    for case in cases:
        sys.stdout.write(f"    [{case.why or 'grounded'}] {case.said} | {case.about} | {case.text}\n")


if __name__ == "__main__":
    main(verbose="-v" in sys.argv[1:])
