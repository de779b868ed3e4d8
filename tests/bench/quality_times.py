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
    "Russian": "январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре",
    "Japanese": " ".join(f"{month}月" for month in range(1, 13)),
    "Chinese": " ".join(f"{month}月" for month in range(1, 13)),
    "Portuguese": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
}
ASKED = {
    "English": "What happened in {}?",
    "German": "Was war im {}?",
    "French": "Qu'est-ce qui s'est passé en {} ?",
    "Spanish": "¿Qué pasó en {}?",
    "Portuguese": "O que aconteceu em {}?",
    "Russian": "Что было в {} года?",
    "Japanese": "{}に何がありましたか",
    "Chinese": "{}发生了什么",
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
            asked = ASKED[language].format(_named(language, year, month))
            found = service.recall(corpus.name, asked, LIMIT, now=_after(corpus.turns))
            answered.append(bool(found.hits))
            shares += [(hit.created_at.year, hit.created_at.month) == (year, month) for hit in found.hits]
    right = f"{100 * fmean(shares):.0f} %" if shares else "-"
    return language, str(len(answered)), str(sum(answered)), right


def _named(language: str, year: int, month: int) -> str:
    name = MONTHS[language].split()[month - 1]
    if language in ("Japanese", "Chinese"):
        return f"{year}年{name}"
    return f"{name} de {year}" if language in ("Spanish", "Portuguese") else f"{name} {year}"


def _after(turns: Sequence[Turn]) -> datetime:
    return max(turn.at for turn in turns) + timedelta(days=1)
