"""Who says something is stored with it, and names change nothing in what is found."""

from collections.abc import Iterator
from typing import Any

import pytest

from shepherd_memory.service import Service
from tests.contract.given import ManualClock, memory, user_says

AGENT = {"role": "assistant", "content": "Noted."}


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock, agent_name="Julian") as opened:
        yield opened


def speakers(service: Service, **facets: Any) -> list[tuple[str, str]]:
    return [(one.speaker_type, one.speaker_name) for one in service.documents("ada", **facets)]


@pytest.mark.every_scheme
def test_a_live_message_has_the_name_of_who_says_it(service: Service) -> None:
    service.remember("ada", [user_says("My bike is green"), AGENT], "chat")
    assert speakers(service) == [("human", "ada"), ("agent", "Julian")]
    assert speakers(service, speaker_name="ada", source="live") == [("human", "ada")]
    assert speakers(service, speaker_type="agent") == [("agent", "Julian")]


def test_the_name_that_a_message_gives_itself_and_that_of_its_session_come_first(service: Service) -> None:
    session_id = service.start_session("ada", agent_name="Claudia").session_id
    service.remember("ada", [user_says("My bike is green", name="Marcus"), AGENT], session_id)
    service.deliver("ada", [user_says("And the bell?", name="Marcus")], "Brass.", session_id).store()
    assert speakers(service) == [("human", "Marcus"), ("agent", "Claudia")] * 2
    service.remember("ada", [{**AGENT, "speaker_name": "Eve", "id": "a"}], session_id)
    service.remember("ada", [{"role": "tool", "content": "42", "id": "b"}], session_id)
    assert speakers(service)[4:] == [("agent", "Eve"), ("agent", "")]


def test_an_agent_that_nobody_named_has_no_name(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        service.remember("ada", [user_says("My bike is green"), AGENT], "chat")
        assert speakers(service) == [("human", "ada"), ("agent", "")]


def test_a_secret_is_no_name_of_an_agent(url: str, clock: ManualClock) -> None:
    token = "ghp_R4nd0mT0k3nV4lu3xYzQ8sLmN2pWvB7cD1e"
    with memory(url, clock, agent_name=token) as service:
        service.remember("ada", [AGENT], "chat")
        service.remember("ada", [AGENT], service.start_session("ada", agent_name=token).session_id)
        assert not any(token in name for _, name in speakers(service))


@pytest.mark.parametrize("user_id", ["laptop:marcus", "bike", "ada"])
def test_the_users_own_name_changes_nothing_in_what_is_found(
    service: Service, user_id: str, clock: ManualClock
) -> None:
    """A word of the name in a query is about something else: a laptop, a bike."""
    said = ["My laptop is slow", "My bike is green", "The garden is wet"]
    for number, text in enumerate(said):
        service.remember(user_id, [user_says(text, id=str(number))], "chat")
        service.add_document("plain", text, session_id="chat", message_id=str(number), type="message",
                             role="user", category="transcript", source="live")  # fmt: skip
    for query in ("What about my laptop?", "Which colour is the bike?", "ada marcus garden"):
        named, plain = (
            service.recall(user, query, threshold=0, explain=True).hits for user in (user_id, "plain")
        )
        assert [(hit.text, hit.score, hit.parts, hit.speaker_name) for hit in named] == [
            (hit.text, hit.score, hit.parts, "") for hit in plain
        ]


def test_a_prompt_does_not_tell_a_provider_the_users_id(url: str, clock: ManualClock) -> None:
    with memory(url, clock, rag_relevance_threshold=0.0) as service:
        service.remember("laptop:marcus", [user_says("My bike is green")], "chat")
        injected = service.inject("laptop:marcus", [user_says("Which colour is my bike?")])
    assert injected.block is not None
    assert "user: My bike is green" in injected.block.text
    assert "marcus" not in injected.block.text
