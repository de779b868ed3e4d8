"""The ranking page has the weights that ranking has, and its example is what the command shows."""

import re
from pathlib import Path

import pytest

from shepherd_memory.config import Config
from shepherd_memory.frontends.terminal.hits import MEANINGS
from shepherd_memory.recall import keywords, ranking
from tests.docs.ranking_example import PAGE, shown, written

# The model computes in 8 bits, which not every processor rounds alike.
TOLERANCE = 0.06

NUMBER = re.compile(r"-?\d+\.\d+")


def test_the_example_is_what_the_command_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("SHEPHERD_CONFIG", "set by the example, and taken back after it")
    seen, said = shown(tmp_path), written()
    how = "`python -m tests.docs.ranking_example` writes the page anew"
    assert _words(seen) == _words(said), how
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (seen, said)]
    assert numbers[0] == pytest.approx(numbers[1], abs=TOLERANCE), how


def _words(text: str) -> list[str]:
    return NUMBER.sub("#", text).split()


@pytest.mark.parametrize("part", MEANINGS)
def test_the_page_has_the_weight_of_the_part(part: str) -> None:
    weight = getattr(ranking, f"{part.upper()}_WEIGHT", None)
    expected = -ranking.ROLE_PENALTY["assistant"] if weight is None else weight
    assert f"| `{part}` | {expected} |" in PAGE.read_text("utf-8")


def test_the_page_has_the_other_figures() -> None:
    page = " ".join(PAGE.read_text("utf-8").split())
    assert f"and -{ranking.ROLE_PENALTY['tool']} for tools" in page
    assert f"`1 / (1 + days / {ranking.RECENCY_DAYS:g})`" in page
    assert f"lends {keywords.NEXT_WEIGHT} of its own, the one after it {keywords.SECOND_WEIGHT}" in page
    assert f"| {Config().rag_relevance_threshold} | the default |" in page
