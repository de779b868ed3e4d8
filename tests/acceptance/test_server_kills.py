"""A server that is killed under load: whatever was delivered is remembered, once, and under its user."""

import json
import random
import re
import secrets
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from shepherd_memory.service import Service
from tests.acceptance.kills import KILLS, SEED
from tests.acceptance.processes import kill, wait_until
from tests.acceptance.server_site import BROKEN, CHAT, MESSAGES, RESPONSES, Reply, Server, Site
from tests.acceptance.statements import SAID, answering, answers_of, drain
from tests.endpoint import Call, ScriptedEndpoint, Step
from tests.provider import (
    ToolCall,
    anthropic_answer,
    anthropic_stream,
    openai_answer,
    openai_stream,
    responses_answer,
    responses_stream,
)

CLIENTS = 8
USERS = 4
FEWEST_EXCHANGES = 25 * KILLS
EXCHANGES_A_CONVERSATION = 3
HEARD = re.compile(r"heard_(\d+)_[0-9a-f]{8}")
TOOL = ToolCall("call_1", "look", '{"up": "it"}')
WIRES: dict[str, tuple[Any, Any]] = {
    CHAT: (openai_answer, openai_stream),
    MESSAGES: (anthropic_answer, anthropic_stream),
    RESPONSES: (responses_answer, responses_stream),
}


@dataclass(frozen=True)
class Model:
    """Answers each time in other words, as models do; with tools at hand it uses one first."""

    def perform(self, call: Call) -> None:
        self._step(call).perform(call)

    def _step(self, call: Call) -> Step:
        body: dict[str, Any] = call.received.json
        whole, stream = WIRES[call.received.path]
        if "tools" in body and not _has_tool_result(_messages(body)[-1]):
            said: list[Any] = ["Let me look. ", TOOL]
        else:
            said = ["I see: ", f"heard_{_number(body)}_{secrets.token_hex(4)}", ", noted."]
        if body.get("stream"):
            return cast(Step, stream(*said))
        calls = [piece for piece in said if isinstance(piece, ToolCall)]
        text = "".join(piece for piece in said if isinstance(piece, str))
        return cast(Step, whole(text, *calls))


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = body["input"] if "input" in body else body["messages"]
    return messages


def _has_tool_result(message: dict[str, Any]) -> bool:
    if message.get("type") == "function_call_output":
        return True
    return message["role"] == "tool" or "tool_result" in json.dumps(message["content"])


def _number(body: dict[str, Any]) -> str:
    """What the user said last begins their message; memory is behind it."""
    texts = [_text(message) for message in _messages(body) if message.get("role") == "user"]
    found = [match for match in map(SAID.search, texts) if match]
    return found[-1][1]


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else json.dumps(content)


@dataclass
class Town:
    """Where the server is now, and what the clients have had from it."""

    server: Server
    delivered: dict[int, str] = field(default_factory=dict)
    """The answer to each number, of those that came whole."""
    broken: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)


class Client:
    """Holds conversations, and repeats a request that was not answered, as the official clients do."""

    def __init__(self, town: Town, number: int) -> None:
        self._town = town
        self._number = number
        self._history: list[dict[str, Any]] = []

    def talk(self) -> None:
        """Until the test is over; what was begun is brought to its end."""
        turn = 0
        while not self._town.is_over.is_set():
            if turn % EXCHANGES_A_CONVERSATION == 0:
                self._history = []
            self._exchange(turn * CLIENTS + self._number, turn)
            turn += 1

    def _exchange(self, number: int, turn: int) -> None:
        wire, streams, uses_tool = list(WIRES)[turn % 3], turn % 4 < 2, turn % 5 == 0
        said = {"role": "user", "content": sentence(number)}
        messages = [*self._history, said]
        fields: dict[str, Any] = {"stream": streams}
        if uses_tool:
            fields["tools"] = [{"name": TOOL.name, "type": "function", "function": {"name": TOOL.name}}]
            self._deliver(number, wire, messages, fields)
            messages = [*messages, *_tool_round(wire)]
        reply = self._deliver(number, wire, messages, fields)
        heard = HEARD.search(reply.body.decode())
        assert heard, reply.body
        assert int(heard[1]) == number
        self._town.delivered[number] = answer = f"I see: {heard[0]}, noted."
        self._history += [said, {"role": "assistant", "content": answer}]

    def _deliver(self, number: int, wire: str, messages: list[Any], fields: dict[str, Any]) -> Reply:
        named = {"metadata": {"user_id": owner(number)}} if wire == MESSAGES else {"user": owner(number)}
        held = {"input" if wire == RESPONSES else "messages": messages}
        body = {"model": "scripted-1", "max_tokens": 99, **named, **fields, **held}
        while True:
            server = self._town.server
            try:
                reply = server.ask("POST", wire, body)
            except BROKEN:
                self._town.broken += 1
                wait_until(lambda old=server: self._town.server is not old, "another server")
                continue
            assert reply.status == 200, reply.body
            assert reply.memory == "on"
            return reply


def _tool_round(wire: str) -> list[dict[str, Any]]:
    if wire == RESPONSES:
        call = {"call_id": TOOL.id, "name": TOOL.name, "arguments": TOOL.arguments}
        output = {"type": "function_call_output", "call_id": TOOL.id, "output": "nothing there"}
        return [{"type": "function_call", **call}, output]
    if wire == CHAT:
        function = {"name": TOOL.name, "arguments": TOOL.arguments}
        calls = [{"id": TOOL.id, "type": "function", "function": function}]
        return [
            {"role": "assistant", "content": "Let me look. ", "tool_calls": calls},
            {"role": "tool", "tool_call_id": TOOL.id, "content": "nothing there"},
        ]
    use = {"type": "tool_use", "id": TOOL.id, "name": TOOL.name, "input": json.loads(TOOL.arguments)}
    result = {"type": "tool_result", "tool_use_id": TOOL.id, "content": "nothing there"}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def sentence(number: int) -> str:
    return f"My code_{number} is zebra_{number}."


def owner(number: int) -> str:
    """Two clients speak for each user."""
    return f"user-{number % CLIENTS % USERS}"


def kill_now_and_then(town: Town, site: Site) -> None:
    """Kill the server at random moments, and start another on its database."""
    chance = random.Random(SEED)
    for _ in range(KILLS):
        enough = len(town.delivered) + chance.randint(1, 30)
        wait_until(lambda until=enough: len(town.delivered) >= until or town.is_over.is_set(), "answers")
        time.sleep(chance.uniform(0, 0.02))
        kill(town.server.process)
        town.server = site.serve()


@pytest.mark.kills
@pytest.mark.slow
def test_every_delivered_exchange_is_remembered_once_whenever_the_server_is_killed(
    site: Site, endpoint: ScriptedEndpoint
) -> None:
    sys.stdout.write(f"SHEPHERD_TEST_SEED={SEED}\n")
    endpoint.default = answering()
    site.provider.default = Model()
    town = Town(site.serve())
    with ThreadPoolExecutor(CLIENTS, "client") as pool:
        clients = [pool.submit(Client(town, number).talk) for number in range(CLIENTS)]
        try:
            kill_now_and_then(town, site)
            wait_until(
                lambda: len(town.delivered) >= FEWEST_EXCHANGES or any(c.done() for c in clients), "it"
            )
        finally:
            town.is_over.set()
        for client in clients:
            client.result()
    sys.stdout.write(f"{len(town.delivered)} exchanges, {town.broken} broken off by {KILLS} kills\n")
    assert town.broken > 0
    with site.settings.service() as service:
        drain(service)
        assert service.status().users == USERS
        undelivered = sum(assert_remembered_once(service, town, f"user-{user}") for user in range(USERS))
    sys.stdout.write(f"{undelivered} answers were stored and not delivered\n")
    assert undelivered <= town.broken


def assert_remembered_once(service: Service, town: Town, user_id: str) -> int:
    """How many answers are remembered besides those delivered: of a request that was repeated."""
    mine = [number for number in town.delivered if owner(number) == user_id]
    found = service.documents(user_id)
    said = Counter(one.text for one in found if one.role == "user")
    assert said == Counter(map(sentence, mine))
    answers = Counter(one.text for one in found if one.role == "assistant")
    delivered = {town.delivered[number] for number in mine}
    assert {answers[text] for text in delivered} == {1}
    undelivered = set(answers) - delivered
    assert all(answers[text] == 1 for text in undelivered)
    assert {int(HEARD.search(text)[1]) for text in undelivered} <= set(mine)  # type: ignore[index]
    facts = Counter((fact.key, fact.value) for fact in service.facts(user_id))
    assert facts == Counter((f"code_{number}", f"zebra_{number}") for number in mine)
    assert answers_of(service, user_id) == Counter(f"zebra_{number}" for number in mine)
    return len(undelivered)
