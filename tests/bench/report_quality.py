"""Recall quality on LoCoMo and on sets made here, on each backend: `make bench-quality`.

python -m tests.bench.report_quality [path of locomo_dev.json]
"""

import sys
from collections.abc import Mapping, Sequence
from statistics import median

from shepherd_memory import Config, open_service
from tests.bench import quality_confidence, quality_shares, quality_times
from tests.bench.figures import each_backend, write_line, write_table
from tests.bench.quality import DEPTHS, Outcome, ask, differences, fill, remembered_vectors
from tests.bench.quality_data import FILE, Corpus, find_locomo, made_corpora, read_locomo

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
HEAD = ("", "questions", *(f"R@{depth}" for depth in DEPTHS), "MRR")


def main(arguments: Sequence[str]) -> None:
    path = find_locomo(arguments[0] if arguments else None)
    if path is None or not path.is_file():
        write_line(f"{FILE} is not here (shared/data beside the checkout, or SHEPHERD_DATA): skipped")
        return
    locomo, made = read_locomo(path), made_corpora()
    with each_backend() as urls:
        outcomes = {backend: _measure(backend, url, locomo, made) for backend, url in urls.items()}
    if len(outcomes) == 2:
        one, other = outcomes.values()
        write_line(f"rankings that differ by more than ties: {differences(one, other)} of {one.count()}")


def _measure(backend: str, url: str, locomo: Sequence[Corpus], made: Sequence[Corpus]) -> Outcome:
    with open_service(Config(memory_database=url)) as service:
        fill(service, [*locomo, *made])
        with remembered_vectors(service) as embedder:
            each = {corpus.name: ask(service, [corpus]) for corpus in locomo}
            others = {corpus.name: ask(service, [corpus]) for corpus in made}
        outcome = _joined(list(each.values()))
        _write(backend, outcome, each, others)
        recall, embedding = outcome.milliseconds, 1000 * median(embedder.seconds)
        write_line(f"rows: {_rows(locomo)} of LoCoMo, {_rows(made)} made here")
        write_line(
            f"a recall: {recall:.2f} ms of CPU, and {embedding:.2f} ms for the query's embedding (median)"
        )
        if backend == "sqlite":
            quality_shares.report(service, {"LoCoMo": locomo, "made here": made})
            quality_confidence.report(service, locomo, made)
            quality_times.report(service, locomo)
    return outcome


def _write(
    backend: str, outcome: Outcome, each: Mapping[str, Outcome], others: Mapping[str, Outcome]
) -> None:
    categories = [_row(name, outcome, category) for category, name in CATEGORIES.items()]
    write_table(f"LoCoMo on {backend}, by category", HEAD, [*categories, _row("all", outcome)])
    write_table(f"LoCoMo on {backend}, by conversation", HEAD, [_row(*item) for item in each.items()])
    write_table(f"made here, on {backend}", HEAD, [_row(*item) for item in others.items()])


def _row(name: str, outcome: Outcome, category: int | None = None) -> tuple[str, ...]:
    return (name, str(outcome.count(category)), *outcome.figures(category))


def _rows(corpora: Sequence[Corpus]) -> str:
    return ", ".join(str(len(corpus.turns)) for corpus in corpora)


def _joined(outcomes: Sequence[Outcome]) -> Outcome:
    return Outcome(
        [asked for each in outcomes for asked in each.questions],
        [places for each in outcomes for places in each.places],
        [hits for each in outcomes for hits in each.answers],
        [seconds for each in outcomes for seconds in each.seconds],
    )


if __name__ == "__main__":
    main(sys.argv[1:])
