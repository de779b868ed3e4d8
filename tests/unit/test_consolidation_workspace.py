"""The workspace of a consolidation: how much is written, by whose leave, and what is left of it."""

from datetime import UTC, datetime

import pytest

from shepherd_memory.consolidation.selection import Selection, Snapshot
from shepherd_memory.consolidation.workspace import MAX_SECTIONS, MAX_WRITES, Workspace
from shepherd_memory.errors import InvalidInput
from shepherd_memory.phases.outputs import Output
from shepherd_memory.phases.sections import MEMORY_FILE, SUMMARY_FILE, MemorySection

ENDED = datetime(2026, 10, 20, tzinfo=UTC)


def note(number: int) -> Snapshot:
    about = ("raw", "sum", "", "", "succeeded", "kept", "", "", ENDED)
    output = Output("main", number, "s", 1, ENDED, *about)
    return Snapshot(output, "", True, 1, False, None)


def section(
    heading: str, written_by: str = "agent", body: str = "b", file: str = MEMORY_FILE
) -> MemorySection:
    return MemorySection("main", 5, file, heading, body, "", 1, written_by, "kept", 1, ENDED, (1,))


def workspace(*sections: MemorySection, tokens: int = 800) -> Workspace:
    return Workspace(Selection((note(1), note(2))), sections, tokens)


def test_of_ten_thousand_writes_a_run_has_a_thousand_and_two_hundred_sections() -> None:
    made, problems = workspace(), set()
    for number in range(10_000):
        try:
            made.write_section(MEMORY_FILE, f"H{number}", "b", [1])
        except InvalidInput as error:
            problems.add(str(error))
    assert len(made.changes().written) == MAX_SECTIONS
    assert problems == {
        f"there are {MAX_SECTIONS} sections: delete or join some first",
        f"this run has written {MAX_WRITES} times: call finish",
    }


def test_a_text_that_says_what_was_deleted_is_judged_by_its_own_sources() -> None:
    asked: list[tuple[int, ...]] = []

    def is_deleted(texts: object, sources: object) -> bool:
        assert isinstance(sources, tuple)
        asked.append(sources)
        return sources == (1,)

    made = Workspace(Selection((note(1), note(2))), (), 800, is_deleted)
    with pytest.raises(InvalidInput, match="has deleted"):
        made.write_section(MEMORY_FILE, "H", "b", [1])
    made.write_section(MEMORY_FILE, "H", "b", [2])
    assert asked == [(1,), (2,)]


@pytest.mark.parametrize(("body", "is_long"), [("word " * 50, False), ("word " * 900, True)])
def test_what_a_person_wrote_takes_no_more_than_its_share_of_the_summary(body: str, is_long: bool) -> None:
    pinned = section("Mine", "user", "mine " * 900, SUMMARY_FILE)
    made = workspace(pinned, section("M"))
    made.write_section(SUMMARY_FILE, "Who", body, [1])
    assert ("too long" in made.problem()) is is_long


def test_a_section_may_say_its_project_as_it_is_shown() -> None:
    made = workspace()
    made.write_section(MEMORY_FILE, "H", "applies_to: cwd=/work/kettle\n\nBoil.", [1])
    (written,) = made.changes().written
    assert (written.project, written.body) == ("/work/kettle", "Boil.")
