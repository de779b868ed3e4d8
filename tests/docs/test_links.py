"""Every relative link in the documentation leads somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_CODE = re.compile(r"^```.*?^```|^ {4}.*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?\)|^\[[^\]]+\]: +<?([^\s>]+)", re.MULTILINE)
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def links(page: Path) -> Iterator[str]:
    """The targets of a page's links, without what is on the web."""
    text = _CODE.sub(lambda code: "`" if code[0].startswith("`") else "", page.read_text("utf-8"))
    targets = (inline or reference for inline, reference in _LINK.findall(text))
    return (target for target in targets if not re.match(r"[a-z]+:", target))


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings have on the usual forges."""
    headings = _HEADING.findall(re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken(page: Path) -> Iterator[str]:
    for target in links(page):
        path, _, anchor = target.partition("#")
        place = page.parent / path if path else page
        if not place.exists():
            yield f"{target}: no such file"
        elif not place.resolve().is_relative_to(ROOT):
            yield f"{target}: outside of the project"
        elif anchor and anchor not in anchors(place):
            yield f"{target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_the_page_leads_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md" and page.exists():
            reached.add(page)
            waiting += [(page.parent / target.partition("#")[0]).resolve() for target in links(page)]
    assert set(PAGES) - reached == set()


def test_a_link_in_code_does_not_count_and_one_in_text_does(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[a](a.md#b) `[c](c.md)`\n\n```\n[d](d.md)\n```\n\n[e]: e.md\n[f](https://example.org)\n")
    assert list(links(page)) == ["a.md#b", "e.md"]
