"""What the answer reader makes of good, sloppy and hostile answers."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.errors import ItemRejected
from shepherd_memory.extraction.answer import (
    MAX_ANSWER_CHARS,
    MAX_ENTRIES,
    MAX_TEXT_CHARS,
    ExtractionAnswer,
    read_answer,
)
from shepherd_memory.extraction.evidence import Evidence

STEVE = ExtractionAnswer(facts=(("name", "Steve"),))
PLAIN = '{"facts": {"name": "Steve"}, "context": []}'


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        '{"facts": [{"key": "name", "value": "Steve"}], "context": []}',
        '{"facts": [{"name": "Steve"}]}',
        '{"Facts": {"name": " Steve "}, "Context": null}',
        f"```json\n{PLAIN}\n```",
        f"```\n{PLAIN}\n```",
        f"Sure, here is what I found {{really}}:\n\n{PLAIN}\n\nLet me know {{if}} you need more!",
        '{"facts": {"name": "Steve",}, "context": [],}',
        "{'facts': {'name': 'Steve'}, 'context': []}",
        "{'facts': {'name': 'Steve'}, 'context': None}",
        '{facts: {name: "Steve"}, context: []}',
        '{"facts": {"name": "Steve"}, // what he said\n "context": []}',
        '{"facts": {"name": "Bob", "name": "Steve"}}',
        '{"facts": {"name": "Steve"}, "context": "none"}',
        '{"facts": {"name": "\\u0053teve"}}',
        '{"facts": {"name": "Draft"}}\nOn reflection:\n' + PLAIN,
        '{"facts": ["name: Steve"]}',
        '{"facts": ["- name = Steve"]}',
        '{"facts": "name: Steve"}',
        '{"facts": [["name", "Steve"]]}',
        '{"facts": [{"attribute": "name", "value": "Steve"}]}',
        '{"facts": {"attribute": "name", "value": "Steve"}}',
        '{"facts": [{"fact": "name: Steve"}]}',
        '{"facts": [{"type": "name", "content": "Steve"}]}',
        '{"memory": [{"content": "name: Steve"}]}',
        '{"attribute": "name", "value": "Steve"}',
        '{"memories": {"name": "Steve"}}',
        '{"memories": ["name: Steve"]}',
        '{"memories": [{"key": "name", "value": "Steve"}]}',
        f'{{"result": {PLAIN}}}',
        '{"result": [{"key": "name", "value": "Steve"}]}',
        '[{"key": "name", "value": "Steve"}]',
        '[{"name": "Steve"}]',
        '["name: Steve"]',
        'Here [as asked]:\n```json\n[{"key": "name", "value": "Steve"}]\n```',
        PLAIN + '\nSources: [{"q": "who?", "a": "me"}]',
    ],
)
def test_a_fact_is_read_however_it_is_dressed_up(text: str) -> None:
    assert read_answer(text) == STEVE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "NONE",
        '"none"',
        "None.",
        "null",
        "{}",
        "[]",
        "```json\n{}\n```",
        "```\nNONE\n```",
        "**None**",
        "No facts.",
        "No new facts found.",
        "There is nothing to remember.",
        '{"facts": {}, "context": []}',
        '{"facts": [], "context": []}',
        '{"facts": null, "context": null}',
        '{"memories": []}',
        '{"result": null}',
        '{"result": "NONE"}',
    ],
)
def test_nothing_to_remember_is_an_empty_answer(text: str) -> None:
    assert read_answer(text) == ExtractionAnswer()


@pytest.mark.parametrize(
    "text",
    [
        "I cannot help with that.",
        "The user's name is Steve",
        '{"name": "Steve"}',
        '{"facts"',
        '{"facts": {"name": "Ste',
        '{"facts": {"name" "Steve"}}',
        '{"facts": {"name": Steve}}',
        "42",
        "[[[",
        '{"a":' * 100_00,
        '{"facts":' + "[" * 100_000,
        "{" * MAX_ANSWER_CHARS,
        "\n" * MAX_ANSWER_CHARS + "x",
        "x" * (MAX_ANSWER_CHARS + 1),
    ],
)
def test_what_makes_no_sense_is_the_items_fault(text: str) -> None:
    with pytest.raises(ItemRejected, match="unusable answer"):
        read_answer(text)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("42", "42"),
        ("-7", "-7"),
        ("3.50", "3.50"),
        ("1e3", "1e3"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("true", "true"),
        ("False", "false"),
        ('["red", "blue", 3]', "red, blue, 3"),
        (r'"C:\Users\new"', "C:\\Users\new"),
        (r'"50\% of \d"', r"50\% of \d"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"half \ud83d pair"', "half \ufffd pair"),
        (r'"nul \u0000 inside"', "nul \ufffd inside"),
        ("'it\\'s \"his\"'", 'it\'s "his"'),
        ('"two\nlines"', "two\nlines"),
    ],
)
def test_values_keep_the_form_in_which_they_were_written(written: str, kept: str) -> None:
    assert read_answer(f'{{"facts": {{"x": {written}}}}}').facts == (("x", kept),)


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("NaN", "not a number"),
        ("-Infinity", "not a number"),
        ("null", "no value"),
        ('""', "empty"),
        ("[]", "empty"),
        ('[["a"]]', "nested too deeply"),
        ('[{"a": 1}]', "nested too deeply"),
        ('{"a": {"b": 1}}', "nested too deeply"),
        (json.dumps("x" * (MAX_TEXT_CHARS + 1)), f"longer than {MAX_TEXT_CHARS} characters"),
    ],
)
def test_an_entry_that_cannot_be_used_is_skipped_and_the_rest_kept(written: str, why: str) -> None:
    answer = read_answer(f'{{"facts": {{"x": {written}, "name": "Steve"}}}}')
    assert answer == ExtractionAnswer(facts=(("name", "Steve"),), skipped=(f"fact 1: {why}",))


def test_a_nested_object_gives_a_fact_for_each_of_its_values() -> None:
    answer = read_answer('{"facts": {"address": {"city": "Ulm", "zip": 89073}}}')
    assert answer.facts == (("address_city", "Ulm"), ("address_zip", "89073"))


@pytest.mark.parametrize(
    "entry",
    [
        '[{"q": "Which editor?", "a": "vim"}]',
        '[{"question": "Which editor?", "answer": "vim"}]',
        '[{"Q": "Which editor?", "A": "vim", "confidence": 1}]',
        '[["Which editor?", "vim"]]',
        '{"q": "Which editor?", "a": "vim"}',
        '[{"q": "Which editor?", "a": "vim"}, {"q": "Which editor?", "a": "vim"}]',
        '{"Which editor?": "vim"}',
    ],
)
def test_context_is_read_in_its_usual_shapes(entry: str) -> None:
    assert read_answer(f'{{"context": {entry}}}') == ExtractionAnswer(context=(("Which editor?", "vim"),))


def test_facts_and_pairs_of_a_bare_list_are_told_apart() -> None:
    answer = read_answer('[{"key": "name", "value": "Steve"}, {"q": "Which editor?", "a": "vim"}]')
    assert answer == ExtractionAnswer(facts=(("name", "Steve"),), context=(("Which editor?", "vim"),))


def test_an_object_on_each_line_is_an_entry() -> None:
    answer = read_answer('{"key": "name", "value": "Steve"}\n{"key": "city", "value": "Ulm"}')
    assert answer.facts == (("name", "Steve"), ("city", "Ulm"))


@pytest.mark.parametrize(
    ("sections", "skipped"),
    [
        ('"facts": 5', ("fact 1: not a pair",)),
        ('"facts": ["Steve"]', ("fact 1: not a pair",)),
        ('"facts": [{"key": "name"}]', ("fact 1: no value",)),
        ('"facts": [{"key": {"a": 1}, "value": "x"}]', ("fact 1: nested too deeply",)),
        ('"context": ["vim"]', ("context 1: not a pair",)),
        ('"context": [{"q": "Which editor?"}]', ("context 1: no value",)),
        ('"context": [{"q": "Which?", "a": {"x": 1}}]', ("context 1: nested too deeply",)),
        ('"context": true', ("context 1: not a pair",)),
    ],
)
def test_wrong_types_are_skipped_with_a_reason(sections: str, skipped: tuple[str, ...]) -> None:
    assert read_answer("{" + sections + "}") == ExtractionAnswer(skipped=skipped)


@pytest.mark.parametrize(
    ("text", "facts", "context"),
    [
        ('{"facts": {"name": "Steve", "emplo', ["name"], 0),
        ('{"facts": {"name": "Steve", "employer": "AC', ["name"], 0),
        ('{"facts": {"name": "Steve", "age": 4', ["name"], 0),
        ('{"facts": {"name": "Steve", "pets": ["Rex", "To', ["name"], 0),
        ('{"facts": {"name": "Steve"', ["name"], 0),
        ('{"facts": [{"key": "name", "value": "Steve"}, {"key": "age", "value": "4', ["name"], 0),
        ('```json\n{"facts": {"name": "Steve"}, "context": [{"q": "a?", "a": "b"}, {"q": "c', ["name"], 1),
    ],
)
def test_a_cut_off_answer_gives_its_complete_entries(text: str, facts: list[str], context: int) -> None:
    answer = read_answer(text)
    assert [key for key, _ in answer.facts] == facts
    assert len(answer.context) == context
    assert answer.skipped == ("the answer was cut off",)
    assert answer.cut_off


def test_a_model_that_runs_away_is_bounded() -> None:
    many = {f"key_{n}": "x" for n in range(MAX_ENTRIES + 50)}
    answer = read_answer(json.dumps({"facts": many}))
    assert len(answer.facts) == MAX_ENTRIES
    assert answer.skipped == (f"fact {MAX_ENTRIES + 1} and later: more than {MAX_ENTRIES} entries",)


def test_reasons_do_not_quote_the_entry() -> None:
    answer = read_answer('{"facts": {"diagnosis": [["migraine"]]}}')
    assert "diagnosis" not in str(answer.skipped)
    assert "migraine" not in str(answer.skipped)


@given(st.text())
def test_no_text_raises_anything_but_item_rejected(text: str) -> None:
    with suppress(ItemRejected):
        read_answer(text)


pieces = st.sampled_from(
    [
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        ":",
        ",",
        "\\",
        "\\u12",
        "//",
        "\n",
        "facts",
        "context",
        "q",
        "a",
        "1",
        "NaN",
        "x",
    ]
)


@given(st.lists(pieces, max_size=60).map("".join))
def test_no_broken_json_raises_anything_but_item_rejected(text: str) -> None:
    with suppress(ItemRejected):
        read_answer('{"facts": ' + text)


words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40
).filter(lambda text: text == text.strip())
wrappings = st.sampled_from(
    ["{}", "```json\n{}\n```", "Here you are:\n{}", "{}\nAnything else?", "Well:\n```\n{}\n```\nDone."]
)


@given(st.dictionaries(words, words, max_size=10), wrappings, st.booleans())
def test_any_facts_come_back_from_any_wrapping(
    facts: dict[str, str], wrapping: str, ascii_only: bool
) -> None:
    text = json.dumps({"facts": facts, "context": []}, ensure_ascii=ascii_only)
    assert dict(read_answer(wrapping.replace("{}", text)).facts) == facts


@given(st.dictionaries(words, words, max_size=10))
def test_python_literals_come_back_too(facts: dict[str, str]) -> None:
    text = repr({"facts": list({"key": k, "value": v} for k, v in facts.items())})
    if "\\x" not in text and "\\U" not in text:
        assert dict(read_answer(text).facts) == facts


@pytest.mark.parametrize(
    "entry",
    [
        '{"key": "city", "value": "Ulm", "n": 2, "quote": "I live in Ulm", "subject": "self"}',
        '{"key": "city", "value": "Ulm", "statement": "2", "evidence": "I live in Ulm", "about": "self"}',
        '{"Key": "city", "Value": "Ulm", "Number": "[2]", "Quote": " I live in Ulm ", "who": ["self"]}',
    ],
)
def test_what_a_fact_rests_on_is_read_under_several_names(entry: str) -> None:
    answer = read_answer(f'{{"facts": [{entry}], "context": []}}')
    assert answer == ExtractionAnswer(facts=(("city", "Ulm"),))
    assert answer.evidence == {("city", "Ulm"): Evidence(2, "I live in Ulm", "self")}


def test_what_a_pair_rests_on_is_read() -> None:
    answer = read_answer(
        '{"context": [{"q": "Where?", "a": "Ulm", "n": 1, "quote": "in Ulm", "subject": "self"}]}'
    )
    assert answer.evidence == {("Where?", "Ulm"): Evidence(1, "in Ulm", "self")}


def test_a_subject_may_be_an_object() -> None:
    text = '{"facts": [{"key": "a", "value": "b", "subject": {"relation": "daughter", "name": "Lena"}}]}'
    assert read_answer(text).evidence[("a", "b")].subject == "daughter Lena"


def test_a_value_with_its_evidence_may_stand_in_a_map() -> None:
    answer = read_answer('{"facts": {"city": {"value": "Ulm", "quote": "I live in Ulm", "n": 1}}}')
    assert answer.facts == (("city", "Ulm"),)
    assert answer.evidence == {("city", "Ulm"): Evidence(1, "I live in Ulm", "")}


def test_an_answer_without_evidence_is_read_as_before() -> None:
    assert read_answer('{"facts": {"city": "Ulm"}}').evidence == {}
