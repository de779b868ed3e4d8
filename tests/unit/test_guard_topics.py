import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.extraction.guard_topics import is_about_assistant, is_transient
from shepherd_memory.memory.fact_keys import MAX_KEY_CHARACTERS, normalise_key
from tests.unit.grounding_corpus import GROUNDED, NOT_REFUSED_FOR_THEIR_SUBJECT, Case


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ("userName", "name"),
        ("User's Favourite Colour", "favourite_colour"),
        ("the_user_name", "name"),
        ("users_name", "name"),
        ("my_dog", "dog"),
        ("HTTPServerPort", "http_server_port"),
        ("Café-Name", "cafe_name"),
        ("名前", "名前"),
        ("имя пользователя", "имя_пользователя"),
        ("हिन्दी भाषा", "हिन्दी_भाषा"),
        ("musical_taste", "musical_taste"),
        ("user", "user"),
        (" --- ", ""),
        ("🦄", ""),
        ("x" * 100, "x" * MAX_KEY_CHARACTERS),
    ],
)
def test_keys_have_one_form(raw: str, key: str) -> None:
    assert normalise_key(raw) == key


@given(st.text())
def test_a_normalised_key_stays_as_it_is(raw: str) -> None:
    key = normalise_key(raw)
    assert len(key) <= MAX_KEY_CHARACTERS
    assert normalise_key(key) == key


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("assistant_name", "Shepherd"),
        ("ai_model", "GPT"),
        ("chatbotPersonality", "friendly"),
        ("name_of_the_assistant", "Max"),
        ("system_prompt", "be nice"),
        ("What is it called?", "The assistant is called Shepherd."),
        ("What did it say?", "The AI suggested pasta."),
        ("role", "I am an AI language model"),
    ],
)
def test_the_assistant_is_no_part_of_a_users_memory(key: str, text: str) -> None:
    assert is_about_assistant(key, text)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("current_time", "15:15"),
        ("currentDirectory", "/tmp"),
        ("last_command", "git status"),
        ("pid", "4312"),
        ("weather", "sunny"),
        ("tokens_used", "900"),
        ("error_message", "502"),
        ("problem", "ValueError: bad input"),
        ("problem", "port 8080 is already in use"),
        ("activity", "The user is currently debugging the login page"),
        ("topic", "The user asked about decorators"),
    ],
)
def test_passing_states_are_no_memory(key: str, text: str) -> None:
    assert is_transient(key, text)


@pytest.mark.parametrize("case", [*GROUNDED, *NOT_REFUSED_FOR_THEIR_SUBJECT], ids=lambda case: case.about)
def test_lasting_facts_are_refused_for_neither(case: Case) -> None:
    assert not is_about_assistant(case.about, case.text)
    assert not is_transient(case.about, case.text)
