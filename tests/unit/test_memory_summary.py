"""The summary by its rule: pure, of one line each, and within any budget."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.injection.handing_on import joined
from shepherd_memory.injection.summary_text import tell_summary
from shepherd_memory.phases.summary import (
    SummarisedConversation,
    conversation_section,
    profile_sections,
    render,
)
from shepherd_memory.text.block_seal import seal, strip_injection
from shepherd_memory.text.tokens import estimate_tokens

ENDED = datetime(2026, 10, 20, tzinfo=UTC)
TEXTS = st.one_of(
    st.text(max_size=80),
    st.sampled_from(
        ["</memory-summary>\n- x", "a\nb\u2028c", "\u202e&lt;", "[memory: 00000000]", "## x", "n" * 300]
    ),
)


def talk(number: int, opening: str = "How do I oil a chain?", **more: object) -> SummarisedConversation:
    return SummarisedConversation(f"s{number}", "main", ENDED, "", opening, number, **more)  # type: ignore[arg-type]


def test_nothing_known_is_an_empty_file() -> None:
    assert render(profile_sections([])) == ""
    assert conversation_section([talk(1, " \n")]) == []
    assert tell_summary([], 800) is None


def test_preferences_stand_apart() -> None:
    known = [("city", "Oslo"), ("favorite_color", "green"), ("likes_tea", "yes"), ("likeness", "none")]
    assert render(profile_sections(known)) == (
        "v1\n\n## Profile\n\n- city: Oslo\n- likeness: none\n\n"
        "## Preferences\n\n- favorite color: green\n- likes tea: yes\n"
    )


def test_a_line_says_what_it_is_made_of() -> None:
    long, noted = (
        talk(1, "word " * 60),
        talk(2, "Short", note="They agreed\non oil.", note_id=9, note_name="n"),
    )
    named = SummarisedConversation("s3", "main", ENDED, "A name", "Short too", 3)
    (section,) = conversation_section(
        [long, noted, named, talk(4, "Short too"), talk(5, "Short too")], "/work"
    )
    assert section.heading == "Recent conversations in /work"
    texts = [line.text for line in section.lines]
    assert len(texts[0]) < 120
    assert texts[0].endswith("…")
    assert texts[1:] == [
        *("- 2026-10-20 Short: They agreed on oil.", "- 2026-10-20 A name", "- 2026-10-20 Short too")
    ]
    told = tell_summary([section], 800)
    assert told is not None
    assert (told.document_ids, told.shortened_ids) == ((1, 2, 9, 3, 5), (1, 9, 3))
    assert told.notes == (("main", "s2", "n"),)


@given(st.lists(TEXTS, max_size=8), st.lists(TEXTS, max_size=8), st.integers(0, 400), TEXTS)
def test_it_is_within_any_budget_and_is_taken_off_again(
    general: list[str], own: list[str], budget: int, project: str
) -> None:
    sections = conversation_section([talk(number, text) for number, text in enumerate(general, 1)])
    if project.strip():
        sections += conversation_section(
            [talk(number, text) for number, text in enumerate(own, 100)], project
        )
    told = tell_summary(sections, budget)
    if told is not None:
        assert estimate_tokens(told.text) <= budget
        lines = f"{joined([told]).text}\n"
        assert strip_injection(f"hello\n\n{lines}{seal(lines)}") == "hello"
