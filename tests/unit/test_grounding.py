from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.text.grounding import ground
from tests.bench.report_grounding import false_accepts, false_refusals, refused_questions, swapped_cases
from tests.unit.grounding_corpus import FORGED_QUESTIONS, GROUNDED, HONEST_QUESTIONS, REFUSED, Case


def _part(cases: list[Case], held_out: bool) -> list[Case]:
    return [case for case in cases if case.held_out is held_out]


def test_the_corpus_is_large_enough_and_a_third_of_it_is_held_out() -> None:
    for cases in (GROUNDED, REFUSED):
        assert len(cases) >= 150
        assert len(_part(cases, held_out=True)) >= len(cases) / 3


@pytest.mark.parametrize(("held_out", "most"), [(False, 0.01), (True, 0.03)])
def test_what_the_user_said_is_rarely_refused(held_out: bool, most: float) -> None:
    cases = _part(GROUNDED, held_out)
    assert len(false_refusals(cases)) <= most * len(cases)


@pytest.mark.parametrize(("held_out", "most"), [(False, 0.01), (True, 0.04)])
def test_what_the_user_did_not_say_is_rarely_accepted(held_out: bool, most: float) -> None:
    cases = _part(REFUSED, held_out)
    assert len(false_accepts(cases)) <= most * len(cases)


@pytest.mark.parametrize("why", ["invented", "embellished", "about the assistant", "transient"])
def test_nothing_invented_is_accepted(why: str) -> None:
    assert false_accepts(case for case in REFUSED if case.why == why) == []


def test_a_value_from_another_conversation_is_refused() -> None:
    cases = list(swapped_cases())[::7]
    assert len(false_accepts(cases)) <= 0.002 * len(cases)


def test_a_question_asks_in_words_of_its_own() -> None:
    assert refused_questions(HONEST_QUESTIONS) == []


def test_a_question_says_nothing_that_the_user_did_not() -> None:
    assert refused_questions(FORGED_QUESTIONS) == FORGED_QUESTIONS


@pytest.mark.parametrize(
    ("said", "claim"),
    [
        ("it was on March 3rd, 2024", "2024-03-03"),
        ("it was on 2024-03-03", "3/3/2024"),
        ("it was on 3/4/2024", "3 April 2024"),
        ("it was on 3/4/2024", "March 4th, 2024"),
        ("it was on 2024-03-03", "March 2024"),
        ("I have two kids", "2"),
        ("it costs 10k", "10,000"),
        ("I leave at 5pm", "17:00"),
        ("we raised $1.5M", "1,500,000 dollars"),
        ("we raised 1.5 million dollars", "$1.5M"),
        ("I'm twenty-five", "25"),
    ],
)
def test_quantities_are_found_in_another_format(said: str, claim: str) -> None:
    assert ground(claim, [said]).grounded


@pytest.mark.parametrize(
    ("said", "claim"),
    [
        ("it was in March 2024", "2024-03-03"),
        ("it was on March 3rd, 2024", "2024-03-30"),
        ("it costs 10k", "10"),
        ("I leave at 5pm", "05:00"),
        ("we raised $1.5M", "$15M"),
        ("build 2024.1.7", "2024.1.8"),
        ("my id is 123456789012345678901234567890", "123456789012345678901234567899"),
    ],
)
def test_other_quantities_are_not(said: str, claim: str) -> None:
    assert not ground(claim, [said]).grounded


@pytest.mark.parametrize(
    ("said", "claim", "grounded"),
    [
        ("I started last month", "2026-01", True),
        ("I started last month", "2025-12", False),
        ("we moved two years ago", "2024", True),
        ("I saw her yesterday", "2026-02-09", True),
        ("I leave next week", "2026-02-18", True),
        ("it is on Friday", "2026-02-13", True),
        ("we meet every Friday", "2026-02-13", False),
        ("we marry in July", "July 2026", True),
    ],
)
def test_relative_dates_are_resolved_against_the_day_of_the_statement(
    said: str, claim: str, grounded: bool
) -> None:
    said_on = datetime(2026, 2, 10, tzinfo=UTC)
    assert ground(claim, [said], dates=[said_on]).grounded is grounded


def test_relative_dates_need_the_day_of_the_statement() -> None:
    assert not ground("2026-01", ["I started last month"]).grounded
    assert not ground("2026-01", ["I started last month"], dates=[None]).grounded


def test_the_newest_of_equal_statements_is_named() -> None:
    said = ["I live in Oslo", "How is the weather?", "As I said, I live in Oslo", "Thanks"]
    assert ground("Oslo", said, key="city").statement == 2


def test_words_may_come_from_neighbouring_statements_but_not_from_distant_ones() -> None:
    neighbours = ["I'm a nurse.", "I work at Charité."]
    assert ground("nurse at Charité", neighbours).statement == 1
    distant = [neighbours[0], "ok", "thanks", neighbours[1]]
    assert ground("nurse at Charité", distant).missing == ("nurse", "charite")


def test_entries_of_a_list_may_come_from_anywhere() -> None:
    assert ground("pottery, chess", ["I do pottery", "ok", "thanks", "I also play chess"]).grounded


def test_missing_words_are_named() -> None:
    assert ground("senior engineer at ACME", ["I'm an engineer at ACME"]).missing == ("senior",)


@pytest.mark.parametrize("claim", ["", "  ", "unknown", "N/A", "not specified"])
def test_a_claim_that_says_nothing_is_refused(claim: str) -> None:
    assert not ground(claim, ["unknown, not specified, N/A"], key="name").grounded


def test_yes_and_no_stand_for_the_key() -> None:
    said = ["I'm vegetarian, and I don't have a car."]
    assert ground("yes", said, key="vegetarian").grounded
    assert ground("No", said, key="has_car").grounded
    assert not ground("true", said, key="has_car").grounded
    assert not ground("yes", said, key="married").grounded
    assert not ground("yes", said).grounded


def test_names_are_never_taken_for_derived_words() -> None:
    assert not ground("Walker", ["I walk a lot"], key="surname").grounded
    assert ground("teacher", ["I teach maths"], key="occupation").grounded


def test_compounds_are_found_in_either_spelling() -> None:
    assert ground("VSCode", ["I use VS Code"]).grounded
    assert ground("VS Code", ["I use VSCode"]).grounded


def test_the_middle_of_a_very_long_message_is_taken_for_a_paste() -> None:
    paste = "lorem ipsum. " * 20_000
    assert ground("Steve", [f"I'm Steve. {paste}"]).grounded
    assert ground("Steve", [f"{paste} I'm Steve."]).grounded
    assert not ground("Steve", [f"{paste} I'm Steve. {paste}"]).grounded


@given(st.text(), st.lists(st.text(), max_size=3), st.text())
def test_any_text_gets_an_answer(claim: str, statements: list[str], key: str) -> None:
    result = ground(claim, statements, key=key)
    assert result.grounded is (not result.missing)
    assert result.grounded is (result.statement is not None)
