"""Two servers on one Postgres database: what one of them stores, the other knows at once."""

from typing import Any

import pytest

from tests.acceptance.server_site import CHAT, Server, Site
from tests.provider import ToolCall, chat, openai_answer

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
few_or_many = pytest.mark.parametrize("rounds", [8, pytest.param(50, marks=pytest.mark.thorough)])
TOOL = ToolCall("call_1", "look", "{}")


@pytest.fixture
def site(site: Site) -> Site:
    site.provider.default = chat("Understood.")
    # Room for all of it: this is about what is there, not about what is best.
    site.settings.set(rag_max_results=200, rag_max_tokens=20_000, embedding_engine="onnx")
    return site


@pytest.fixture
def pair(site: Site) -> tuple[Server, Server]:
    return site.serve(), site.serve()


def prompt(site: Site) -> str:
    """What the user's last message was when it reached the provider."""
    messages = site.provider.exchanges[-1].received.json["messages"]
    return str([message for message in messages if message["role"] == "user"][-1]["content"])


@few_or_many
def test_what_one_is_told_the_other_recalls_at_once(
    rounds: int, site: Site, pair: tuple[Server, Server]
) -> None:
    for number in range(rounds):
        told, asked = pair[number % 2], pair[1 - number % 2]
        name = f"Quagga{number}x"
        assert told.chat(f"The name of boat {number} is {name}.", "steve").memory == "on"
        assert asked.chat(f"What is the name of boat {number}?", "steve").memory == "on"
        assert name in prompt(site)
        assert asked.chat(f"What is the name of boat {number}?", "carla").memory == "on"
        assert "Quagga" not in prompt(site)


@few_or_many
def test_what_is_stored_through_the_memory_of_one_is_recalled_through_that_of_the_other(
    rounds: int, site: Site, pair: tuple[Server, Server]
) -> None:
    for number in range(rounds):
        told, asked = pair[number % 2], pair[1 - number % 2]
        messages = [{"role": "user", "content": f"The colour of door {number} is ochre{number}x."}]
        stored = told.ask("POST", "/v1/memory/remember", {"user": "steve", "messages": messages})
        assert stored.status == 200, stored.body
        found = asked.ask("GET", f"/v1/memory/recall?user=steve&limit=100&query=door+{number}")
        assert found.status == 200, found.body
        assert f"ochre{number}x".encode() in found.body
        nothing = asked.ask("GET", f"/v1/memory/recall?user=carla&limit=100&query=door+{number}")
        assert b"ochre" not in nothing.body


def test_a_fact_that_was_deleted_through_one_is_not_put_into_a_prompt_by_the_other(
    site: Site, pair: tuple[Server, Server]
) -> None:
    for number in range(10):
        first, second = pair[number % 2], pair[1 - number % 2]
        path = f"/v1/memory/facts/town_{number}"
        put = first.ask("PUT", path, {"value": f"Ghent{number}x", "user": "steve"})
        assert put.status == 200, put.body
        second.chat(f"Which town do I live in, number {number}?", "steve")
        assert f"Ghent{number}x" in prompt(site)
        assert first.ask("DELETE", f"{path}?user=steve").status == 200
        second.chat(f"And which town is it now, number {number}?", "steve")
        assert f"Ghent{number}x" not in prompt(site)


def tool_loop(question: str, rounds: int) -> list[dict[str, Any]]:
    function = {"name": TOOL.name, "arguments": TOOL.arguments}
    once: list[dict[str, Any]] = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": TOOL.id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": TOOL.id, "content": "nothing yet"},
    ]
    return [{"role": "user", "content": question}, *once * rounds]


def test_a_tool_loop_that_goes_back_and_forth_between_them_keeps_its_block(
    site: Site, pair: tuple[Server, Server]
) -> None:
    """As behind a load balancer: the prompt's beginning stays the same, and the provider's cache holds."""
    pair[0].chat("My bicycle is called Rosinante.", "steve")
    site.provider.default = openai_answer(None, TOOL)
    prompts = []
    for number in range(6):
        # What is stored meanwhile must not come into it.
        pair[0].chat(f"Another bicycle is called Bucephalus{number}.", "steve")
        messages = tool_loop("What is my bicycle called?", number)
        reply = pair[number % 2].ask("POST", CHAT, {"model": "m", "user": "steve", "messages": messages})
        assert reply.memory == "on"
        prompts.append(prompt(site))
    assert "Rosinante" in prompts[0]
    assert set(prompts) == {prompts[0]}


def test_one_exchange_that_both_are_told_is_remembered_once(site: Site, pair: tuple[Server, Server]) -> None:
    for server in pair * 3:
        server.chat("My bicycle is called Rosinante.", "steve")
    assert site.said("steve") == [
        ("user", "My bicycle is called Rosinante."),
        ("assistant", "Understood."),
    ]
