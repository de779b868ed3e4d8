"""Names of the files of outputs: in their folder, one for each conversation, and such as any system takes."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.consolidation.file_reading import checked_path
from shepherd_memory.consolidation.files import OUTPUTS_FOLDER, path_of, stem_of
from shepherd_memory.phases.answer import MAX_SUMMARY_CHARS, read_note
from shepherd_memory.phases.outputs import Output

ENDED = datetime(2026, 10, 20, 8, 9, 10, tzinfo=UTC)
SLUGS = st.one_of(
    st.text(max_size=300),
    st.sampled_from(["../../x", "日本語", "", "a/b\\c", "\0", "\udc80", "..", "é" * 99]),
)


def output(number: int = 7, slug: str = "", ended: datetime = ENDED) -> Output:
    return Output("main", number, "s", 1, ended, "raw", "sum", slug, "", "succeeded", "kept", "", "", ended)


@pytest.mark.parametrize(
    ("slug", "stem"),
    [
        ("tea_time", "2026-10-20T08-09-10-0007-tea_time"),
        ("../../x", "2026-10-20T08-09-10-0007-x"),
        ("日本語", "2026-10-20T08-09-10-0007-日本語"),
        ("", "2026-10-20T08-09-10-0007"),
        ("...", "2026-10-20T08-09-10-0007"),
        ("\uff21 b", "2026-10-20T08-09-10-0007-a_b"),
    ],
)
def test_a_stem_says_when_which_and_about_what(slug: str, stem: str) -> None:
    assert stem_of(output(slug=slug)) == stem


@given(number=st.integers(1, 2**63 - 1), slug=SLUGS)
def test_a_file_stays_in_its_folder_under_a_name_that_any_system_takes(number: int, slug: str) -> None:
    path = path_of(output(number, slug))
    assert path.startswith(f"{OUTPUTS_FOLDER}/")
    assert path.count("/") == 1
    assert checked_path(path) == path
    assert len(path.split("/")[1].encode()) <= 255


@given(
    numbers=st.tuples(st.integers(1, 2**63 - 1), st.integers(1, 2**63 - 1)),
    slugs=st.tuples(SLUGS, SLUGS),
    seconds=st.integers(0, 2),
)
def test_no_two_conversations_have_one_file(
    numbers: tuple[int, int], slugs: tuple[str, str], seconds: int
) -> None:
    one = path_of(output(numbers[0], slugs[0]))
    other = path_of(output(numbers[1], slugs[1], ENDED + timedelta(seconds=seconds)))
    assert one != other or numbers[0] == numbers[1]


def test_a_summary_of_ten_thousand_lines_is_cut() -> None:
    lines = "\\n".join(f"line {number}" for number in range(10_000))
    note = read_note(f'{{"raw_memory": "r", "rollout_summary": "{lines}", "rollout_slug": "../../x"}}')
    assert len(note.summary) <= MAX_SUMMARY_CHARS + 100, "with a mark of what is left out"
    assert ("line 0\n" in note.summary, "line 9999" in note.summary) == (True, True)
    assert note.slug == "x"
