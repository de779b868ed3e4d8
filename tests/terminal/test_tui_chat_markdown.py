"""Markdown for a terminal: its lines, and how a growing text is cut into pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Size
from textual.selection import Selection

from shepherd_memory.frontends.tui.chat.answer_view import AnswerView
from shepherd_memory.frontends.tui.chat.chunks import LINES, SIZE, Chunk, MarkdownChunks
from shepherd_memory.frontends.tui.chat.markdown import laid_out

MARKDOWN = st.text(alphabet="ab *_`#->|[]()!~1.\n\t\\<&é猫", max_size=400)


def lines(text: str, width: int = 40) -> list[str]:
    return [line.content.plain.rstrip() for line in laid_out(text, width)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Title\n\nWords", ["Title", "", "Words"]),
        ("one\ntwo", ["one", "two"]),
        ("- a\n- b\n  - c", ["• a", "• b", "  ◦ c"]),
        ("3. a\n4. b", ["3. a", "4. b"]),
        ("> said\n> so", ["▌ said", "▌ so"]),
        ("```\nx = 1\n\ny = 2\n```", [" x = 1", "", " y = 2"]),
        ("| a | b |\n|---|---|\n| 1 | 22 |", ["a │ b", "──┼───", "1 │ 22"]),
        ("**a** *b* ~~c~~ `d`", ["a b c d"]),
        ("[here](javascript:alert(1))", ["here (javascript:alert(1))"]),
        ("![cat](http://x/cat.png)", ["[image: cat] http://x/cat.png"]),
        ("<b>bold</b>", ["<b>bold</b>"]),
        ("[red]not markup[/red]", ["[red]not markup[/red]"]),
    ],
)
def test_each_kind_of_block_has_its_lines(text: str, shown: list[str]) -> None:
    assert lines(text) == shown


def test_a_line_that_is_broken_by_the_screen_says_so() -> None:
    found = laid_out("- several words that are longer than the line is", 20)
    assert [line.goes_on for line in found] == [True, True, False]
    assert all(line.content.plain.startswith("  ") for line in found[1:])


@given(MARKDOWN, st.integers(4, 60))
def test_no_line_is_wider_than_the_screen(text: str, width: int) -> None:
    # A mark before a list in a list in a quote takes its room, however narrow the screen is.
    assert all(line.content.cell_length <= max(width, 40) for line in laid_out(text, width))


def pieces(text: str, size: int) -> list[Chunk]:
    chunks = MarkdownChunks()
    closed = [chunk for at in range(0, len(text), size) for chunk in chunks.feed(text[at : at + size])]
    return [*closed, chunks.open]


@given(st.text(alphabet="ab -*`|\n#.1", max_size=4_000), st.integers(1, 500))
def test_pieces_are_short_and_have_every_word(text: str, size: int) -> None:
    found = pieces(text, size)
    assert all(len(chunk.text) <= SIZE + 200 for chunk in found)
    assert sum(chunk.text.count("a") for chunk in found) >= text.count("a")


def test_a_text_is_cut_between_paragraphs() -> None:
    text = "".join(f"Paragraph {number}.\n\n" for number in range(200))
    found = pieces(text, 7)
    assert "".join(chunk.text for chunk in found) == text
    assert all(chunk.text.endswith("\n\n") for chunk in found[:-1])
    assert not any(chunk.joined for chunk in found[1:])


def test_code_that_is_cut_stays_code() -> None:
    code = "".join(f"line_{number} = 1\n" for number in range(300))
    found = pieces(f"```python\n{code}```\n", 50)
    assert all(chunk.text.startswith("```python\n") for chunk in found)
    shown = [line for chunk in found for line in lines(chunk.text)]
    assert shown == [f" line_{number} = 1" for number in range(300)]
    assert max(chunk.text.count("\n") for chunk in found) <= LINES + 3


@pytest.mark.parametrize("before", ["", "Like so:\n", "Like so:\n\n"])
def test_code_looks_the_same_wherever_it_is_cut(before: str) -> None:
    for length in range(20, 80):
        code = "".join(f"line_{number} = 1\n" for number in range(length))
        text = f"{before}```python\n{code}```\n\nThat is all.\n"
        assert shown(text) == lines(text)


def test_a_table_that_ends_at_a_cut_has_its_head_once() -> None:
    for length in range(20, 40):
        rows = "".join(f"| {number} | x |\n" for number in range(length))
        *_, last, blank, after = shown(f"| n | x |\n|---|---|\n{rows}\nThat is all.\n")
        assert (last, blank, after) == (f"{length - 1} │ x", "", "That is all.")


def test_line_ends_of_any_kind_are_line_ends() -> None:
    text = "```\r\nx = 1\r\n```\r\n\r\nThat is all.\r\n"
    assert shown(text) == shown(text, 1) == [" x = 1", "", "That is all."]


def shown(text: str, size: int = 50) -> list[str]:
    """What stands on the screen after all of it has come in."""
    reply = AnswerView()
    for at in range(0, len(text), size):
        reply.add(text[at : at + size])
    reply.get_content_height(Size(40, 20), Size(40, 20), 40)
    selection = reply.get_selection(Selection(None, None))
    assert selection is not None
    return selection[0].split("\n")


def test_a_table_that_is_cut_has_its_head_again() -> None:
    rows = "".join(f"| {number} | x |\n" for number in range(200))
    found = pieces(f"| n | x |\n|---|---|\n{rows}", 50)
    assert len(found) > 3
    assert all(chunk.text.startswith("| n | x |\n|---|---|\n") for chunk in found)


def test_a_list_is_cut_between_its_items() -> None:
    found = pieces("".join(f"- item {number}\n" for number in range(300)), 50)
    assert [line for chunk in found for line in lines(chunk.text)] == [f"• item {n}" for n in range(300)]


@pytest.mark.parametrize("text", ["x" * 50_000, "```" + "x" * 50_000, "`" * 5_000, "> " * 5_000, "[" * 5_000])
def test_a_text_without_a_place_to_cut_is_cut_all_the_same(text: str) -> None:
    assert all(len(chunk.text) <= SIZE + 200 for chunk in pieces(text, 1_000))
