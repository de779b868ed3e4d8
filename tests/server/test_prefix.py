"""Whatever a conversation goes through, each request begins with the one before it, blocks included."""

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.given import examples
from tests.provider import ScriptedProvider, chat
from tests.server.calling import call
from tests.server.serving import ANTHROPIC, OPENAI, Running, StartServer

numbers = itertools.count()


@dataclass(frozen=True)
class Wire:
    """A wire format: its provider, its path, the member that holds the messages, the type of a text part."""

    current: str
    path: str
    holder: str
    part: str
    tool_round: list[dict[str, Any]]


WIRES = {
    "openai": Wire(
        OPENAI,
        "/v1/chat/completions",
        "messages",
        "text",
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "t", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": "t", "content": "found"},
        ],
    ),
    "responses": Wire(
        OPENAI,
        "/v1/responses",
        "input",
        "input_text",
        [
            {"type": "function_call", "call_id": "t", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "t", "output": "found"},
        ],
    ),
    "anthropic": Wire(
        ANTHROPIC,
        "/v1/messages",
        "messages",
        "text",
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "found"}]},
        ],
    ),
}
TEXTS = ["yes", "hi", "And my city?", "What about the dog?", "Tell me more about the red bike, please", ""]
LEARNED = [("city", "Lisbon"), ("city", "Oslo"), ("dog", "Rex"), ("bike", "red"), ("tea", "green")]


@dataclass
class Sent:
    """One request: as the client wrote it, as the provider got it, and what had happened until then."""

    asked: bytes
    forwarded: bytes
    learned: int
    forgotten: int


@dataclass
class Client:
    """A client of two servers on one database, which goes back and forth in its conversation."""

    wire: Wire
    servers: tuple[Running, Running]
    provider: ScriptedProvider
    user_id: str
    messages: list[dict[str, Any]] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    learned: int = 0
    forgotten: int = 0

    def send(self, server: int) -> None:
        written = json.dumps(self.messages, separators=(",", ":"), ensure_ascii=False)
        is_anthropic = self.wire.current == ANTHROPIC
        who = {"metadata": {"user_id": self.user_id}} if is_anthropic else {"user": self.user_id}
        rest = json.dumps({"model": "m", "max_tokens": 9, **who})[1:]
        body = f'{{"{self.wire.holder}":{written},{rest}'.encode()
        self.provider.forget()
        reply = call(
            self.servers[server].url, "POST", self.wire.path, body, {"Content-Type": "application/json"}
        )
        assert reply.status == 200
        assert reply.header("x-shepherd-memory") == "on"
        (request,) = self.provider.requests
        self.sent.append(Sent(body, request.body, self.learned, self.forgotten))

    def say(self, text: str, as_parts: bool, server: int) -> None:
        content = [{"type": self.wire.part, "text": text}] if as_parts and text else text
        self.messages.append({"role": "user", "content": content})
        self.send(server)
        self.messages.append({"role": "assistant", "content": "I see."})

    def use_tool(self, server: int) -> None:
        """The answer becomes a tool call, whose result is sent."""
        if not self.messages:
            return
        self.messages.pop()
        self.messages += self.wire.tool_round
        self.send(server)
        self.messages.append({"role": "assistant", "content": "I see."})

    def regenerate(self, server: int) -> None:
        if self.messages:
            answer = self.messages.pop()
            self.send(server)
            self.messages.append(answer)

    def edit(self, place: int, text: str, server: int) -> None:
        """Go back to something said, and say it otherwise."""
        places = [at for at, one in enumerate(self.messages) if is_said(one)]
        if places:
            del self.messages[places[place % len(places)] :]
            self.say(text, False, server)

    def rewrite(self, place: int) -> None:
        """Write a message as a string that was a list of parts, or the other way round."""
        said = [one for one in self.messages if is_said(one) and one["content"]]
        if said:
            one = said[place % len(said)]
            text = one["content"]
            parts = [{"type": self.wire.part, "text": text}]
            one["content"] = parts if isinstance(text, str) else text[0]["text"]

    def learn(self, which: int) -> None:
        service = self.servers[0].service
        key, value = LEARNED[which % len(LEARNED)]
        service.set_fact(self.user_id, key, value)
        service.remember(self.user_id, [{"role": "user", "content": f"My {key} is {value}"}], f"s{which}")
        self.learned += 1

    def forget(self, which: int) -> None:
        key, _ = LEARNED[which % len(LEARNED)]
        self.servers[1].service.forget(self.user_id, fact=key)
        self.forgotten += 1


def is_said(message: dict[str, Any]) -> bool:
    content = message.get("content")
    if message.get("role") != "user":
        return False
    return isinstance(content, str) or content[0]["type"] in ("text", "input_text")


def ends_of_turns(body: bytes) -> list[int]:
    """Where the messages end in which the user says something, in characters; each ends with a brace."""
    text = body.decode()
    at = text.index("[") + 1
    ends = []
    while text[at] != "]":
        message, at = json.JSONDecoder().raw_decode(text, text.index("{", at))
        if is_said(message):
            ends.append(at)
    return ends


def is_underway(body: bytes) -> bool:
    return b'"look"' in body[ends_of_turns(body)[-1] :]


def check(before: Sent, after: Sent) -> None:
    """The later request begins with the earlier one, as far as the client kept it."""
    ends = ends_of_turns(before.asked)
    kept = [end for end in ends if after.asked.decode()[:end] == before.asked.decode()[:end]]
    is_tried_again = after.asked == before.asked and after.learned == before.learned
    if not is_tried_again and not is_underway(after.asked):
        # What is asked again after something else was said begins another conversation, and may be told more.
        kept = kept[: len(ends_of_turns(after.asked)) - 1]
    if kept:
        end = ends_of_turns(before.forwarded)[len(kept) - 1]
        assert after.forwarded.decode()[:end] == before.forwarded.decode()[:end]


PLACES = st.integers(0, 7)
SERVERS = st.integers(0, 1)
STEPS = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(TEXTS), st.booleans(), SERVERS),
    st.tuples(st.just("say"), st.sampled_from(TEXTS), st.booleans(), SERVERS),
    st.tuples(st.just("use_tool"), SERVERS),
    st.tuples(st.just("regenerate"), SERVERS),
    st.tuples(st.just("edit"), PLACES, st.sampled_from(TEXTS), SERVERS),
    st.tuples(st.just("rewrite"), PLACES),
    st.tuples(st.just("learn"), PLACES),
    st.tuples(st.just("forget"), PLACES),
)


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return WIRES[request.param]


@pytest.fixture
def servers(server: StartServer, provider: ScriptedProvider, wire: Wire) -> tuple[Running, Running]:
    provider.default = chat("I see.")
    limits = {"embedding_engine": "none", "rag_relevance_threshold": 0.1, "rag_max_conversation_tokens": 120}
    return server(wire.current, **limits), server(wire.current, **limits)


def test_each_request_begins_with_the_one_before_it(
    servers: tuple[Running, Running], provider: ScriptedProvider, wire: Wire
) -> None:
    blocks: list[int] = []

    @settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=st.lists(STEPS, min_size=4, max_size=14))
    def hold(steps: list[tuple[Any, ...]]) -> None:
        client = Client(wire, servers, provider, f"user{next(numbers)}")
        client.learn(0)
        for name, *arguments in steps:
            getattr(client, name)(*arguments)
        for before, after in itertools.pairwise(client.sent):
            if before.forgotten == after.forgotten:
                check(before, after)
        blocks.append(sum(sent.forwarded.count(b"[memory: ") for sent in client.sent))

    hold()
    assert max(blocks) > 3, "there were blocks to be kept"


def test_nothing_that_is_forgotten_is_in_any_later_request(
    servers: tuple[Running, Running], provider: ScriptedProvider, wire: Wire
) -> None:
    client = Client(wire, servers, provider, f"user{next(numbers)}")
    client.learn(2)
    for number in range(4):
        client.say(f"What about the dog? {number}", bool(number % 2), number % 2)
    assert client.sent[-1].forwarded.count(b"dog=Rex") == 1
    client.forget(2)
    for number in range(2):
        client.say("And now?", False, number)
        assert b"dog=Rex" not in client.sent[-1].forwarded
