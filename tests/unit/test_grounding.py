# ruff: noqa: RUF001 - Russian letters look like Latin ones.
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.text.grounding import REFUSED, STORED, UNCONFIRMED, Proposition, judge
from shepherd_memory.text.grounding.languages import LANGUAGES, pattern, table
from shepherd_memory.text.grounding.plain import NOT_PLAIN
from tests.bench.report_grounding import decision_on, decisions_on_questions, swapped_cases
from tests.unit.grounding_corpus import FORGED_QUESTIONS, GROUNDED, HONEST_QUESTIONS
from tests.unit.grounding_corpus import REFUSED as UNGROUNDED
from tests.unit.verdict_corpus import PARTS, TUNED, Example, examples, measure

SAID_ON = datetime(2026, 2, 10, tzinfo=UTC)


def decide(said: str, key: str, value: str, quote: str = "", subject: str = "self") -> str:
    """The verdict on a fact that quotes the whole statement, unless another quote is given."""
    claim = Proposition(key, value, key.endswith("?"), 1, quote or said, subject)
    return judge(claim, [said], [SAID_ON]).decision


def is_found(said: str, value: str) -> bool:
    """Whether every word and number of a value is in what was said, plainly said or not."""
    return judge(Proposition("thing", value, False, 1, said, "self"), [said], [SAID_ON]).reason in (
        "",
        NOT_PLAIN,
    )


def part(name: str) -> list[Example]:
    return [one for one in examples() if one.part == name]


def test_the_corpus_is_large_enough_and_a_quarter_of_it_was_written_last() -> None:
    found = list(examples())
    assert len(found) >= 400
    assert len(found) - len(part(TUNED)) >= len(found) / 4
    assert {one.verdict for one in found} == {STORED, UNCONFIRMED, REFUSED}


@pytest.mark.parametrize("name", PARTS)
def test_what_is_stored_should_be_and_little_is_lost(name: str) -> None:
    figures = measure(part(name))
    assert figures.precision >= 0.97
    assert figures.recall >= 0.93


def test_what_was_said_is_rarely_refused_without_quote_and_subject() -> None:
    refused = [case for case in GROUNDED if decision_on(case) == REFUSED]
    assert len(refused) <= 0.02 * len(GROUNDED)


def test_what_was_not_said_is_rarely_stored_without_quote_and_subject() -> None:
    stored = [case for case in UNGROUNDED if decision_on(case) == STORED]
    assert len(stored) <= 0.02 * len(UNGROUNDED)


@pytest.mark.parametrize("why", ["invented", "embellished", "about the assistant", "transient"])
def test_nothing_invented_is_stored(why: str) -> None:
    assert [case for case in UNGROUNDED if case.why == why and decision_on(case) == STORED] == []


def test_a_value_from_another_conversation_is_not_stored() -> None:
    cases = list(swapped_cases())[::53]
    assert sum(decision_on(case) == STORED for case in cases) <= 0.002 * len(cases)


def test_a_question_asks_in_words_of_its_own() -> None:
    assert REFUSED not in decisions_on_questions(HONEST_QUESTIONS)


def test_a_question_says_nothing_that_the_user_did_not() -> None:
    assert STORED not in decisions_on_questions(FORGED_QUESTIONS)


@pytest.mark.parametrize(
    ("said", "key", "value", "quote", "subject", "verdict"),
    [
        ("Meine Tochter heißt Lena", "daughter_name", "Lena", "Meine Tochter heißt Lena", "daughter", STORED),
        (
            "We adopted a puppy. He's called Biscuit",
            "dog_name",
            "Biscuit",
            "He's called Biscuit",
            "dog",
            STORED,
        ),
        (
            "My manager Joost met my husband Erik",
            "husband_name",
            "Erik",
            "my husband Erik",
            "husband",
            STORED,
        ),
        (
            "My manager Joost met my husband Erik",
            "husband_name",
            "Joost",
            "My manager Joost met my husband Erik",
            "husband",
            REFUSED,
        ),
        ("A minha irmã mora em Faro", "location", "Faro", "A minha irmã mora em Faro", "self", REFUSED),
        ("A minha irmã mora em Faro", "location", "Faro", "A minha irmã mora em Faro", "sister", REFUSED),
        ("I don't drink alcohol", "alcohol", "does not drink", "I don't drink alcohol", "self", STORED),
        ("Soy enfermera", "occupation", "nurse", "Soy enfermera", "self", UNCONFIRMED),
        (
            "From: Ann Lee\nTo: bob@example.org\nSubject: hi\n\nI live in Miami.",
            "city",
            "Miami",
            "I live in Miami",
            "self",
            REFUSED,
        ),
        ("$ whoami\nalice\n\nWhy is that?", "name", "alice", "alice", "self", REFUSED),
    ],
)
def test_quote_subject_and_key_must_agree(
    said: str, key: str, value: str, quote: str, subject: str, verdict: str
) -> None:
    assert decide(said, key, value, quote, subject) == verdict


def test_a_claim_of_two_neighbouring_statements_is_never_stored() -> None:
    said = ["I'm Rex's owner.", "I'm allergic to chicken."]
    for quote in ("", "I'm Rex. I'm allergic to chicken."):
        assert (
            judge(Proposition("info", "I'm Rex. I'm allergic to chicken.", quote=quote), said).decision
            != STORED
        )


def test_a_quote_is_found_whatever_its_spaces_case_and_marks() -> None:
    said = "Well,  I live\nin “Old” Oslo."
    assert decide(said, "city", "Oslo", "i live in “old” oslo") != REFUSED
    assert decide(said, "city", "Oslo", "'I live in “Old” Oslo'") != REFUSED


def test_a_quote_that_is_not_there_or_not_in_one_piece_is_refused() -> None:
    said = "I live in Oslo, I work in Bergen."
    assert decide(said, "city", "Oslo", "I live in Bergen") == REFUSED
    assert decide(said, "city", "Oslo", "I live in Oslo ... in Bergen") == REFUSED


def test_a_quote_from_another_statement_than_the_one_named_is_not_stored() -> None:
    said = ["Hello there", "I live in Oslo"]
    verdicts = [
        judge(Proposition("city", "Oslo", statement=n, quote="I live in Oslo"), said).decision for n in (1, 2)
    ]
    assert verdicts == [UNCONFIRMED, STORED]


def test_a_quote_is_supplied_where_the_value_stands_in_exactly_one_sentence() -> None:
    assert judge(Proposition("city", "Oslo"), ["Hi! I live in Oslo. Bye."]).decision == STORED
    twice = judge(Proposition("city", "Oslo"), ["I live in Oslo.", "I love to live in Oslo."])
    assert (twice.decision, twice.reason) == (UNCONFIRMED, "without a quote")
    assert judge(Proposition("surname", "Jobs"), ["I'm Steve"]).decision == REFUSED


def test_a_value_much_longer_than_its_quote_is_refused() -> None:
    assert decide("I like hiking", "hobby", "hiking " * 6) == REFUSED


def test_an_address_that_is_not_in_the_quote_is_refused() -> None:
    said = "Our wiki is at https://wiki.example.org/home"
    assert decide(said, "wiki", "https://wiki.example.org/home") != REFUSED
    assert decide(said, "wiki", "https://evil.example.org/home") == REFUSED


def test_the_named_statement_is_the_one_it_rests_on() -> None:
    said = ["I live in Oslo", "How is the weather?", "As I said, I live in Oslo", "Thanks"]
    assert judge(Proposition("city", "Oslo", statement=1, quote="I live in Oslo"), said).statement == 0
    assert judge(Proposition("city", "Oslo", quote="I live in Oslo"), said).statement == 2


@pytest.mark.parametrize("subject", ["assistant", "somebody else", "stranger"])
def test_what_is_about_somebody_else_is_refused(subject: str) -> None:
    assert decide("I live in Oslo", "city", "Oslo", subject=subject) == REFUSED


@pytest.mark.parametrize("subject", ["self", "user", "The user", "I", ""])
def test_the_user_is_named_in_many_ways(subject: str) -> None:
    assert (
        judge(Proposition("city", "Oslo", False, 1, "I live in Oslo", subject), ["I live in Oslo"]).decision
        == STORED
    )


@pytest.mark.parametrize(
    "subject", ["daughter", "daughter Lena", "Lena", "relative: daughter (Lena)", "self"]
)
def test_a_relative_is_named_in_many_ways(subject: str) -> None:
    assert decide("My daughter Lena is 7", "daughter_age", "7", subject=subject) == STORED


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
        ("Ich wiege 82 Kilo", "82 kg"),
        ("Corro 40 kilómetros por semana", "40 km per week"),
        ("每周一开会", "Monday"),
    ],
)
def test_quantities_are_found_in_another_format(said: str, claim: str) -> None:
    assert is_found(said, claim)


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
    assert decide(said, "thing", claim) != STORED


@pytest.mark.parametrize(
    ("said", "claim", "is_said"),
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
    said: str, claim: str, is_said: bool
) -> None:
    assert is_found(said, claim) is is_said


def test_missing_words_are_named() -> None:
    said = "I'm an engineer at ACME"
    assert judge(Proposition("job", "senior engineer at ACME", quote=said), [said]).detail == "senior"


@pytest.mark.parametrize("value", ["", "  ", "unknown", "N/A", "not specified"])
def test_a_claim_that_says_nothing_is_refused(value: str) -> None:
    assert decide("unknown, not specified, N/A", "name", value) == REFUSED


def test_yes_and_no_stand_for_the_key() -> None:
    said = "I'm vegetarian, and I don't have a car."
    assert decide(said, "vegetarian", "yes") == STORED
    assert decide(said, "has_car", "No") == STORED
    assert decide(said, "has_car", "true") == REFUSED
    assert decide(said, "married", "yes") == UNCONFIRMED


def test_names_are_never_taken_for_derived_words() -> None:
    assert decide("I walk a lot", "surname", "Walker") != STORED
    assert decide("I teach maths", "occupation", "teacher") == STORED


def test_compounds_are_found_in_either_spelling() -> None:
    assert decide("I use VS Code", "editor", "VSCode") == STORED
    assert decide("I use VSCode", "editor", "VS Code") == STORED


def test_the_middle_of_a_very_long_message_is_taken_for_a_paste() -> None:
    paste = "lorem ipsum. " * 20_000
    assert decide(f"I'm Steve. {paste}", "name", "Steve", "I'm Steve") != REFUSED
    assert decide(f"{paste} I'm Steve. {paste}", "name", "Steve", "I'm Steve") == REFUSED


@pytest.mark.parametrize(
    "name", ["relations", "persons", "moods", "denial", "cues", "words", "mail", "plain"]
)
def test_every_phrase_of_the_tables_is_a_pattern_of_a_known_language(name: str) -> None:
    for entry, phrases in table(name).items():
        if entry not in ("unit", "weekday", "thing"):
            assert set(phrases) <= {*LANGUAGES, "within", "key", "noun", "gender"}
        assert pattern(name, entry).search("") is None


def test_a_quote_of_nothing_but_odd_spaces_is_none() -> None:
    assert decide("", "city", "Porto", "\x1f") == REFUSED
    assert decide("I live in Porto", "city", "Porto", "\x1f") == STORED


@given(st.text(), st.lists(st.text(), max_size=3), st.text(), st.text(), st.text())
def test_any_text_gets_a_verdict(
    value: str, statements: list[str], key: str, quote: str, subject: str
) -> None:
    verdict = judge(Proposition(key, value, quote=quote, subject=subject), statements)
    assert verdict.decision in (STORED, UNCONFIRMED, REFUSED)
    assert (verdict.decision == STORED) is (verdict.reason == "")
    assert verdict.decision == REFUSED or verdict.statement is not None


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("My name is Carla", "name", "Carla"),
        ("I live in Porto", "city", "Porto"),
        ("I'm allergic to peanuts", "allergies", "peanuts"),
        ("I'm a nurse", "occupation", "nurse"),
        ("I work at ACME", "employer", "ACME"),
        ("Ich heiße Jan", "name", "Jan"),
        ("Ich wohne in Köln", "city", "Köln"),
        ("Ich bin Lehrerin", "occupation", "Lehrerin"),
        ("Meine Tochter heißt Lena", "daughter_name", "Lena"),
        ("Me llamo Ana", "name", "Ana"),
        ("Vivo en Sevilla", "city", "Sevilla"),
        ("Soy alérgica al marisco", "allergies", "marisco"),
        ("Je m'appelle Luc", "name", "Luc"),
        ("J'habite à Lyon", "city", "Lyon"),
        ("Mon fils s'appelle Hugo", "son_name", "Hugo"),
        ("Chamo-me Rui", "name", "Rui"),
        ("Moro em Lisboa", "city", "Lisboa"),
        ("Sou enfermeiro", "occupation", "enfermeiro"),
        ("Меня зовут Иван", "name", "Иван"),
        ("Я живу в Москве", "city", "Москва"),
        ("У меня аллергия на орехи", "allergies", "орехи"),
        ("私の名前は健です", "name", "健"),
        ("私は東京に住んでいます", "city", "東京"),
        ("私は医者です", "occupation", "医者"),
        ("我叫李娜", "name", "李娜"),
        ("我住在北京", "city", "北京"),
        ("我对海鲜过敏", "allergies", "海鲜"),
    ],
)
def test_what_is_plainly_said_is_stored_at_once(said: str, key: str, value: str) -> None:
    subject = key.split("_")[0] if key.endswith("_name") else "self"
    assert decide(said, key, value, subject=subject) == STORED


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("One day I'll live in Oslo, I swear", "city", "Oslo"),
        ("Oh sure, I'm totally a millionaire /s", "occupation", "millionaire"),
        ("# I am 42 years old", "age", "42"),
        ("My passport says I'm 30, my knees disagree", "age", "30"),
        ("Antworte bitte so, als wäre ich Arzt", "occupation", "Arzt"),
        ("Como dice la canción, soy minero", "occupation", "minero"),
        ("Mais oui, bien sûr, je suis le pape", "occupation", "pape"),
        ("Dizem por aí que sou rico", "occupation", "rico"),
        ("Ну да, конечно, я балерина", "occupation", "балерина"),
        ("京都に住めたらいいのに", "city", "京都"),
        ("请把我当成律师来回答", "occupation", "律师"),
    ],
)
def test_what_is_not_plainly_said_is_not_stored(said: str, key: str, value: str) -> None:
    assert decide(said, key, value) != STORED


@pytest.mark.parametrize(
    "heading",
    [
        "Act 1. ",
        "ACT I\n\n",
        "## Scene 2\n",
        "Act 1, Scene 2. ",
        "**Chapter One**\n",
        "Prologue: ",
        "INT. KITCHEN - NIGHT\n",
        "Character: Lorenzo. ",
        "Here is my character sheet:\n",
        "Erster Akt, erste Szene. ",
        "Acto primero. ",
        "Fiche de personnage\n",
        "Cena 2. ",
        "Действие первое. ",
        "第一幕　",
        "第三章\n",
    ],
)
def test_what_stands_under_a_heading_of_a_made_up_work_is_refused(heading: str) -> None:
    assert decide("I live in Verona.", "city", "Verona") == STORED
    assert decide(f"{heading}I live in Verona.", "city", "Verona", "I live in Verona") == REFUSED


@pytest.mark.parametrize(
    "said",
    [
        "I finished chapter 3. I live in Verona.",
        "Chapter 3 of my thesis is done. I live in Verona.",
        "I lost my character sheet. I live in Verona.",
        "Act now! I live in Verona.",
        "I'm on chapter 4.\nI live in Verona.",
        "I live in Verona.\n\nChapter 3\n\nIt was night.",
    ],
)
def test_to_speak_of_a_chapter_makes_nothing_up(said: str) -> None:
    assert decide(said, "city", "Verona", "I live in Verona") != REFUSED


@pytest.mark.parametrize(
    ("said", "key", "value", "following"),
    [
        ("I live in Oslo.", "city", "Oslo", "Sorry, I meant Bergen."),
        ("Vivo en Gijón.", "city", "Gijón", "Perdona, ya no: desde enero vivo en Oviedo."),
        ("Ich wohne in Ulm.", "city", "Ulm", "Tippfehler, Köln."),
    ],
)
def test_what_the_next_message_takes_back_is_not_stored(
    said: str, key: str, value: str, following: str
) -> None:
    claim = Proposition(key, value, False, 1, said, "self")
    assert judge(claim, [said, "No, I have no car."]).decision == STORED
    assert judge(claim, [said, following]).decision == UNCONFIRMED


def test_relatives_by_marriage_are_other_people() -> None:
    for relative, key in (("belle-sœur", "sister_name"), ("belle-mère", "mother_name")):
        assert decide(f"Ma {relative} s'appelle Odile.", key, "Odile", subject="self") == REFUSED


@pytest.mark.parametrize(
    ("said", "key", "value", "quote"),
    [
        ("I'm 45, although no, 46 already.", "age", "45", "I'm 45"),
        ("I live in Leeds, well, Bradford really.", "city", "Leeds", "I live in Leeds"),
        ("My daughter is four, she just turned five.", "daughter_age", "four", "My daughter is four"),
        ("Mein Sohn ist sieben, ach Quatsch, acht.", "son_age", "sieben", "Mein Sohn ist sieben"),
        ("Ich wohne in Kiel, genauer gesagt in Kronshagen.", "city", "Kiel", "Ich wohne in Kiel"),
        ("Vivo en Lugo, bueno, en las afueras.", "city", "Lugo", "Vivo en Lugo"),
        ("Ma fille a six ans, non sept.", "daughter_age", "six ans", "Ma fille a six ans"),
        ("Moro em Santos, aliás, em São Vicente.", "city", "Santos", "Moro em Santos"),
        ("Мне 45, хотя нет, уже 46.", "age", "45", "Мне 45"),
        ("私は45歳です。いえ、46歳になりました。", "age", "45歳", "私は45歳です"),
        ("我住在北京，准确说是廊坊。", "city", "北京", "我住在北京"),
        ("我今年45岁，不，46岁了。", "age", "45岁", "我今年45岁"),
        ("The flight is at 6:40, my bad, 16:40.", "flight_time", "6:40", "The flight is at 6:40"),
        ("I'm 45, silly me, 46.", "age", "45", "I'm 45"),
    ],
)
def test_what_is_taken_back_at_once_is_not_stored(said: str, key: str, value: str, quote: str) -> None:
    subject = key.split("_")[0] if "_" in key else "self"
    assert decide(quote, key, value, quote, subject) == STORED
    assert decide(said, key, value, quote, subject) != STORED


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("I'm 45 and have two kids now.", "age", "45"),
        ("Meine Tochter ist vier und hat jetzt zwei Katzen.", "daughter_age", "vier"),
        ("我今年45岁，现在有两只猫了。", "age", "45岁"),
    ],
)
def test_another_number_of_something_else_takes_nothing_back(said: str, key: str, value: str) -> None:
    assert decide(said, key, value, "", "daughter" if "daughter" in key else "self") == STORED


def test_a_letter_may_go_on_in_the_line_of_its_greeting() -> None:
    letter = "Dear customer, I am Ade and I live in Lagos. Send me your details."
    assert decide(f"Is this real?\n\n{letter}\nYours, Ade", "city", "Lagos", "I live in Lagos") == REFUSED
    assert (
        decide("Is this real?\n\nHi Bea, I live in Lagos.\nCheers", "city", "Lagos", "I live in Lagos")
        == REFUSED
    )


@pytest.mark.parametrize(
    ("said", "question", "answer"),
    [
        ("my dog is Rex", "What is the user's dog?", "Rex"),
        ("my dog is Rex", "What is the user's dog's name?", "Rex"),
        ("my wife is Ann", "Who is the user's wife?", "Ann"),
    ],
)
def test_a_verb_that_question_and_statement_share_is_still_the_verb(
    said: str, question: str, answer: str
) -> None:
    assert judge(Proposition(question, answer, is_question=True), [said]).decision == STORED


@pytest.mark.parametrize(
    ("said", "key", "value", "quote"),
    [
        (
            "hey, quick one: I work at Fairphone as a firmware engineer, can you help me write a note?",
            "employer",
            "Fairphone",
            "I work at Fairphone as a firmware engineer",
        ),
        ("our dog Biscuit ate half a candle 🐶 what should I watch for?", "dog_name", "Biscuit", ""),
        (
            "mi jefa se llama Inmaculada y le gusta que todo vaya en PDF, conviérteme esto",
            "¿Cómo se llama mi jefa?",
            "Inmaculada",
            "mi jefa se llama Inmaculada",
        ),
        (
            "ипотека у меня 38 тысяч, составь бюджет",
            "mortgage_payment",
            "38 тысяч",
            "ипотека у меня 38 тысяч",
        ),
        ("我的车牌号是苏E7K382，怎么查违章？", "license_plate", "苏E7K382", "我的车牌号是苏E7K382"),
    ],
)
def test_who_asks_for_something_may_say_more_around_it(said: str, key: str, value: str, quote: str) -> None:
    subject = "dog Biscuit" if key == "dog_name" else "self"
    assert decide(said, key, value, quote, subject) == STORED


@pytest.mark.parametrize(
    ("said", "key", "value", "quote"),
    [
        ("I live in Malta, once the visa comes through. Any tips?", "city", "Malta", "I live in Malta"),
        ("I live in Boise. Make it Nampa. What's the weather?", "city", "Boise", "I live in Boise"),
        ("Can you polish this caption: I live in Oahu", "city", "Oahu", "I live in Oahu"),
        (
            "translate the letter of a candidate\n\nHi, I work at Wolt in Helsinki",
            "employer",
            "Wolt",
            "I work at Wolt in Helsinki",
        ),
        ("我在合肥上班，老家是芜湖的，清明怎么走？", "hometown", "合肥", "我在合肥上班"),
    ],
)
def test_but_not_what_limits_it_takes_it_back_or_is_somebody_elses(
    said: str, key: str, value: str, quote: str
) -> None:
    assert decide(said, key, value, quote) != STORED


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("The painter is vegan.", "diet", "vegan"),
        ("the guest has diabetes, what should I cook?", "health_condition", "diabetes"),
        ("o cara tem diabetes, o que cozinho?", "health_condition", "diabetes"),
        ("der Gast hat Asthma, was koche ich?", "health_condition", "Asthma"),
        ("mi inquilino tiene asma, ¿qué hago?", "health_condition", "asma"),
        ("mein Mieter hat Asthma, was tun?", "health_condition", "Asthma"),
        ("квартирант у меня диабетик, что приготовить?", "health_condition", "диабетик"),
        ("私の患者は糖尿病です。何を食べればいい？", "health_condition", "糖尿病"),
        ("租客是素食者，推荐什么菜？", "diet", "素食者"),
        ("our intern uses Vim, what plugin should I show them?", "editor", "Vim"),
        ("The candidate has a PhD. Write an invitation.", "degree", "PhD"),
        ("o João tem 12 anos, que livro compro?", "Quantos anos o usuário tem?", "12 anos"),
        ("o Porto é lindo, que restaurantes há?", "Onde o usuário mora?", "Porto"),
        ("la Habana es linda, ¿qué visito?", "¿Dónde vive la usuaria?", "Habana"),
        ("el tenis es caro, ¿qué raqueta compro?", "¿Qué deporte practica el usuario?", "tenis"),
        ("toca el piano, ¿qué libro le compro?", "¿Qué instrumento toca el usuario?", "piano"),
    ],
)
def test_whoever_the_tables_do_not_know_is_no_thing_of_the_user(said: str, key: str, value: str) -> None:
    quote = said.partition(",")[0].partition("，")[0].partition("。")[0]
    assert decide(said, key, value, quote) != STORED


@pytest.mark.parametrize(
    ("said", "key", "value", "later"),
    [
        (
            "I'm a nurse, what shoes do you recommend?",
            "occupation",
            "nurse",
            "and the nursery rhyme is not for me",
        ),
        ("I use Go, write a loop", "programming_language", "Go", "I don't like that category"),
        ("My flight lands at 14:20, which train?", "flight_time", "14:20", "I have no more than 20 minutes"),
        ("My dog is Rex, what food?", "dog_name", "Rex", "my dog is hungry all the time"),
    ],
)
def test_a_later_message_of_something_else_takes_nothing_back(
    said: str, key: str, value: str, later: str
) -> None:
    subject = "dog Rex" if key == "dog_name" else "self"
    claim = Proposition(key, value, False, 1, said.split(",")[0], subject)
    assert judge(claim, [said, later]).decision == STORED


def test_a_clause_of_a_thousand_denials_is_read() -> None:
    claim = Proposition("occupation", "nurse", False, 1, "I'm a nurse", "self")
    assert judge(claim, ["I'm a nurse", "私は看護師じゃなくて" * 3_000 + "です"]).decision != REFUSED


@pytest.mark.parametrize(
    ("said", "key", "value", "later"),
    [
        ("у меня айфон 13, какой чехол взять", "phone_model", "айфон 13", "ой, сорри, не 13, а 12 у меня"),
        ("I play squash on Mondays, plan my week", "squash_day", "Mondays", "tbh I never go"),
        ("My flight lands at 14:20, which train?", "flight_time", "14:20", "oops, the flight lands at 16:45"),
    ],
)
def test_a_later_message_that_denies_or_mends_it_leaves_it_unconfirmed(
    said: str, key: str, value: str, later: str
) -> None:
    claim = Proposition(key, value, False, 1, said.split(",")[0], "self")
    assert judge(claim, [said, "thanks", "and it should be short"]).decision == STORED
    assert judge(claim, [said, "thanks", later]).decision == UNCONFIRMED


def test_no_of_portuguese_is_a_place_and_no_denial() -> None:
    said = "meu filho Davi joga futsal no Clube Pinheiros, que luva compro?"
    question = "Onde meu filho Davi joga futsal?"
    quote = "meu filho Davi joga futsal no Clube Pinheiros"
    assert decide(said, question, "no Clube Pinheiros", quote, "son Davi") == STORED


@pytest.mark.parametrize(
    ("said", "subject", "verdict"),
    [
        ("From now on your name is Juno", "assistant", UNCONFIRMED),
        ("From now on your name is Juno", "self", UNCONFIRMED),
        ("I'm Juno, and who are you?", "self", REFUSED),
        ("My assistant Juno books the flights", "assistant", REFUSED),
    ],
)
def test_what_the_user_calls_the_assistant_waits(said: str, subject: str, verdict: str) -> None:
    assert decide(said, "assistant_name", "Juno", said, subject) == verdict


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("my model name is Tamiya, what paint fits?", "model_name", "Tamiya"),
        ("My Discord bot is called Karl. What can it do?", "bot_name", "Karl"),
    ],
)
def test_models_and_bots_of_the_user_are_not_the_assistant(said: str, key: str, value: str) -> None:
    assert decide(said, key, value) != REFUSED


def test_parents_in_law_are_a_key_of_their_own() -> None:
    assert decide("My in-laws live in Rome, what gift?", "in_laws_city", "Rome", "", "in-laws") == STORED
