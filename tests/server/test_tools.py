"""The memory tools over HTTP: whose memory they touch is the request's matter, never the model's."""

import json
from typing import Any

import pytest
import requests

from shepherd_memory.tools import TOOLS
from tests.server.memory_client import Client
from tests.server.serving import StartServer


@pytest.fixture
def ada(server: StartServer) -> Client:
    return Client(server(), "ada")


def run(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    answer = client.post("/v1/tools/execute", {"name": name, "arguments": arguments})
    assert answer.status_code == 200
    return dict(answer.json())


def test_the_definitions_can_be_passed_on_to_a_chat(ada: Client) -> None:
    assert ada.get("/v1/tools").json() == {"tools": TOOLS}


def test_a_tool_answers_in_text(ada: Client) -> None:
    assert run(ada, "set_fact", key="city", value="Rome") == {
        "result": "Stored: city = Rome",
        "is_error": False,
    }
    assert run(ada, "get_fact", key="city")["result"] == "city = Rome"


def test_arguments_may_be_the_text_that_the_model_wrote(ada: Client) -> None:
    run(ada, "set_fact", key="city", value="Rome")
    call = {"name": "get_fact", "arguments": json.dumps({"key": "city"})}
    assert ada.post("/v1/tools/execute", call).json()["result"] == "city = Rome"


@pytest.mark.parametrize(("name", "arguments"), [("get_fact", {}), ("nothing", {}), ("get_fact", "{")])
def test_what_the_model_did_wrong_is_told_to_the_model(ada: Client, name: str, arguments: object) -> None:
    answer = ada.post("/v1/tools/execute", {"name": name, "arguments": arguments})
    assert answer.status_code == 200
    assert answer.json()["is_error"]
    assert answer.json()["result"].startswith("Error:")


def test_what_the_program_did_wrong_is_told_to_the_program(ada: Client) -> None:
    assert ada.post("/v1/tools/execute", {"arguments": {}}).status_code == 400
    assert ada.post("/v1/tools/execute", {"name": "get_fact", "arguments": [1]}).status_code == 400


def test_without_a_user_there_is_no_memory_to_search(ada: Client) -> None:
    call = {"name": "search_memory", "arguments": {"query": "city"}}
    answer = requests.post(f"{ada.running.url}/v1/tools/execute", json=call, timeout=60)
    assert answer.json()["is_error"]
    assert "the user is unknown" in answer.json()["result"]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool["function"]["name"])
def test_no_tool_shows_or_changes_the_memory_of_another(ada: Client, tool: dict[str, Any]) -> None:
    run(ada, "set_fact", key="city", value="Rome")
    run(ada, "store_memory", question="Where?", answer="In Rome")
    before = list(ada.running.service.export("ada"))[1:]
    arguments = {"query": "Rome city", "question": "Where?", "answer": "x", "key": "city", "value": "x"}
    answer = run(ada.of("bob"), tool["function"]["name"], **arguments, _user_id="ada", user="ada")
    assert "Rome" not in answer["result"].replace("Rome city", "")
    assert list(ada.running.service.export("ada"))[1:] == before
