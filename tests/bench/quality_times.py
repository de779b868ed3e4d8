"""Questions about a time alone: how many are answered, and whether by what was said then."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import fmean

from shepherd_memory.service import Service
from tests.bench.figures import write_table
from tests.bench.quality_data import Corpus, Turn

MONTHS = {
    "English": "January February March April May June July August September October November December",
    "German": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "French": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "Spanish": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "Portuguese": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
}
ASKED = {
    "English": "What happened in {}?",
    "German": "Was war im {}?",
    "French": "Qu'est-ce qui s'est passé en {} ?",
    "Spanish": "¿Qué pasó en {}?",
    "Portuguese": "O que aconteceu em {}?",
}
LIMIT = 10


def report(service: Service, corpora: Sequence[Corpus]) -> None:
    """Ask for each month of each conversation, in each language."""
    rows = [_row(service, language, corpora) for language in MONTHS]
    head = ("", "questions", "answered", "of the hits, said then")
    write_table("questions about a month and nothing else, LoCoMo", head, rows)


def _row(service: Service, language: str, corpora: Sequence[Corpus]) -> tuple[str, ...]:
    answered, shares = [], []
    for corpus in corpora:
        said = {(turn.at.year, turn.at.month) for turn in corpus.turns}
        for year, month in sorted(said):
            name = f"{MONTHS[language].split()[month - 1]} {_of_year(language)}{year}"
            found = service.recall(corpus.name, ASKED[language].format(name), LIMIT, now=_after(corpus.turns))
            answered.append(bool(found.hits))
            shares += [(hit.created_at.year, hit.created_at.month) == (year, month) for hit in found.hits]
    right = f"{100 * fmean(shares):.0f} %" if shares else "-"
    return language, str(len(answered)), str(sum(answered)), right


def _of_year(language: str) -> str:
    return "de " if language in ("Spanish", "Portuguese") else ""


def _after(turns: Sequence[Turn]) -> datetime:
    return max(turn.at for turn in turns) + timedelta(days=1)
