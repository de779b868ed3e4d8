"""A block, once given, stays with its message: the same bytes in every later prompt, in every process."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from shepherd_memory.errors import DatabaseUnavailable
from shepherd_memory.injection.injector import InjectionRequest, PruneSchedule
from shepherd_memory.injection.prompt_injection import MAX_RENEWED, PromptInjection
from shepherd_memory.injection.prompting import CERTAIN, Injected
from shepherd_memory.injection.stored_blocks import KEPT_BLOCKS, KEPT_DAYS
from shepherd_memory.recall import Recalled
from shepherd_memory.service import Service
from shepherd_memory.storage.database import Database
from tests.contract.given import ManualClock, everything_of, memory, user_says

BIKE = "My bike is a Brompton, and it is racing green"
ASKED = "What bike do I have?"
DAY_SECONDS = 86_400


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock) as opened:
        yield opened


@pytest.fixture
def ada(service: Service) -> Service:
    service.set_fact("ada", "city", "Lisbon")
    service.remember("ada", [user_says(BIKE, id="m1")], "before")
    return service


def answers(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def opening(text: str = ASKED) -> list[Any]:
    return [user_says(text)]


def next_turn(messages: list[Any], text: str) -> list[Any]:
    return [*messages, answers("I see."), user_says(text)]


def block_rows(service: Service, user_id: str) -> list[tuple[Any, ...]]:
    return everything_of(service.database, user_id)["prompt_blocks"]


@pytest.mark.every_scheme
def test_each_earlier_message_gets_back_what_it_got(ada: Service, clock: ManualClock) -> None:
    messages = opening()
    before: list[Any] = []
    for number in range(5):
        sent = ada.inject("ada", messages).messages
        assert sent[: len(before)] == before
        before = sent
        clock.advance(600)
        ada.set_fact("ada", f"key {number}", f"value {number}")
        ada.remember("ada", [user_says(f"{ASKED} It is number {number}")], f"other {number}")
        messages = next_turn(messages, f"And what is key {number}?")
    assert BIKE in before[0]["content"]


def test_a_message_that_got_nothing_gets_nothing_later(service: Service) -> None:
    service.remember("ada", [user_says("The car is in the garage")], "before")
    messages = opening("Tell me something about otters")
    assert service.inject("ada", messages).block is None
    service.set_fact("ada", "animal", "otters")
    later = service.inject("ada", next_turn(messages, "Which animal do I like?"))
    assert later.messages[0] == messages[0]
    assert later.block is not None


@pytest.mark.every_scheme
def test_another_process_gives_back_the_same(ada: Service, url: str, clock: ManualClock) -> None:
    first = ada.inject("ada", opening())
    with memory(url, clock) as other:
        second = other.inject("ada", next_turn(opening(), "And the city?"))
        assert second.messages[0] == first.messages[0]
        third = ada.inject("ada", next_turn(next_turn(opening(), "And the city?"), "Thanks"))
        assert third.messages[:3] == second.messages


def test_two_processes_that_answer_at_once_give_the_same(ada: Service, url: str, clock: ManualClock) -> None:
    asked = InjectionRequest("ada", opening(), "", "main")
    with memory(url, clock) as other:

        def find_late(*arguments: Any) -> Recalled:
            """The other process answers while this one is still looking."""
            found = ada.injector.find(*arguments)
            other.set_fact("ada", "bike", "Brompton")
            given.append(other.inject("ada", opening()).messages)
            return found

        given: list[Any] = []
        late = replace(ada.injector, find=find_late)
        assert PromptInjection(late, asked).run().messages == given[0]
        assert "bike=Brompton" in given[0][0]["content"]


def test_the_same_request_again_gets_the_same(ada: Service, clock: ManualClock) -> None:
    first = ada.inject("ada", opening())
    ada.remember("ada", [user_says(ASKED), answers("A Brompton.")], "now")
    clock.advance(5)
    assert ada.inject("ada", opening()).messages == first.messages


def test_what_was_told_meanwhile_is_known_when_another_conversation_begins_alike(service: Service) -> None:
    service.remember("ada", [user_says("The car is in the garage")], "before")
    assert service.inject("ada", opening()).block is None
    service.remember("ada", [user_says(BIKE)], "another")
    known = service.inject("ada", opening())
    assert known.block is not None
    assert BIKE in known.block.text
    service.remember("ada", [user_says("The weather is fine")], "a third")
    assert service.inject("ada", opening()).messages == known.messages, "what tells the same is the same"
    service.set_fact("ada", "bike", "sold")
    assert "bike=sold" in repr(service.inject("ada", opening()).messages)


@pytest.mark.every_scheme
def test_blocks_are_kept_for_thirty_days_after_their_last_use(ada: Service, clock: ManualClock) -> None:
    first = ada.inject("ada", opening())
    for _ in range(3):
        clock.advance((KEPT_DAYS - 1) * DAY_SECONDS)
        again = ada.inject("ada", [*opening(), answers("One moment."), *TOOL_ROUND])
        assert again.messages[0] == first.messages[0]
    clock.advance((KEPT_DAYS + 1) * DAY_SECONDS)
    restarted = replace(ada.injector, pruning=PruneSchedule())
    PromptInjection(restarted, InjectionRequest("ada", opening("Something else?"), "", "main")).run()
    assert len(block_rows(ada, "ada")) == 1


TOOL_ROUND = [
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "look"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "found"},
]


@pytest.mark.every_scheme
def test_a_user_has_ten_thousand_blocks_at_most(ada: Service, clock: ManualClock) -> None:
    ada.inject("bob", opening())
    with ada.database.write() as tx:
        columns = ("user_id", "group_name", "key", "previous", "kept", "told", "seq", "used_at")
        tx.insert_many(
            "prompt_blocks",
            columns,
            [
                ("ada", "main", f"key {number}", "", "", "", 0, clock.now)
                for number in range(KEPT_BLOCKS + 50)
            ],
        )
        tx.insert_many("prompt_blocks", columns, [("bob", "main", "his", "", "", "", 0, clock.now)])
    clock.advance(1)
    first = ada.inject("ada", opening())
    assert len(block_rows(ada, "ada")) <= KEPT_BLOCKS
    assert len(block_rows(ada, "bob")) == 1
    again = ada.inject("ada", next_turn(opening(), "And the city?"))
    assert again.messages[0] == first.messages[0], "the newest is kept"


@pytest.mark.every_scheme
def test_forgetting_takes_back_just_the_blocks_that_tell_it(ada: Service, clock: ManualClock) -> None:
    first = ada.inject("ada", opening())
    other = ada.inject("ada", opening("Hello there"))
    assert BIKE in repr(first.messages)
    assert BIKE not in repr(other.messages)
    clock.advance(1)
    ada.forget("ada", document=2)
    assert BIKE not in repr(block_rows(ada, "ada"))
    renewed = ada.inject("ada", next_turn(opening(), "And now?"))
    assert "Brompton" not in repr(renewed.messages)
    assert "city=Lisbon" in renewed.messages[0]["content"], "the message gets a new one"
    again = ada.inject("ada", next_turn(next_turn(opening(), "And now?"), "And then?"))
    assert again.messages[:3] == renewed.messages, "which stays, too"
    kept = ada.inject("ada", next_turn(opening("Hello there"), "And now?"))
    assert kept.messages[0] == other.messages[0]


def test_many_blocks_taken_back_cost_a_few_recalls(url: str, clock: ManualClock) -> None:
    with memory(url, clock, rag_relevance_threshold=0.0, rag_max_results=1) as service:
        said = [user_says(f"The tram number {number} is green", id=f"m{number}") for number in range(12)]
        service.remember("ada", said, "trams")
        messages: list[Any] = []
        for number in range(12):
            messages = [*messages, answers("I see."), user_says(f"What about tram number {number} now?")]
            service.inject("ada", messages)
        service.forget("ada", session="trams")
        calls: list[str] = []

        def find(user_id: str, query: str, *rest: Any) -> Recalled:
            calls.append(query)
            return service.injector.find(user_id, query, *rest)

        counting = replace(service.injector, find=find)
        asked = InjectionRequest(
            "ada", [*messages, answers("I see."), user_says("Well then, thank you")], "", "main"
        )
        sent = PromptInjection(counting, asked).run()
    assert "is green" not in repr(sent.messages)
    assert len(calls) <= 2 * (MAX_RENEWED + 1)


def test_what_an_earlier_block_told_is_not_told_again(ada: Service) -> None:
    messages = opening()
    first = ada.inject("ada", messages)
    assert "city=Lisbon" in repr(first.messages)
    messages = next_turn(messages, "Tell me about my bike, the Brompton, racing green")
    second = ada.inject("ada", messages)
    assert second.block is None
    assert repr(second.messages).count(BIKE) == 1
    ada.set_fact("ada", "city", "Oslo")
    third = ada.inject("ada", next_turn(messages, "And where do I live?"))
    assert third.block is not None
    assert third.block.text.startswith("[facts: city=Oslo]"), "but what has changed since is"


def test_a_conversation_has_a_budget_beyond_which_only_the_certain_is_told(
    url: str, clock: ManualClock
) -> None:
    limits = {"rag_max_conversation_tokens": 300, "rag_relevance_threshold": 0.0, "rag_max_tokens": 200}
    with memory(url, clock, **limits) as service:
        for number in range(30):
            text = f"The lighthouse number {number} stands on a rock far out in the sea " * 4
            service.remember("ada", [user_says(text, id=f"m{number}")], f"s{number}")
        service.remember("ada", [user_says("Grandma Ottilie baked gingerbread")], "cake")
        messages: list[Any] = []
        spent = 0
        for number in range(8):
            asked = f"Which lighthouse has the number {number}, and where does the rock stand?"
            messages = [*messages, answers("Well."), user_says(asked)]
            injected = service.inject("ada", messages)
            tokens = sum(block.tokens for block in injected.blocks.values())
            assert tokens <= 300 or all(hit.confidence >= CERTAIN for hit in injected.recalled.hits[:1])
            spent = max(spent, tokens)
        assert spent > 200
        certain = service.inject("ada", next_turn(messages, "Grandma Ottilie baked gingerbread?"))
        assert certain.block is not None
        assert "Ottilie baked" in certain.block.text
        uncertain = service.inject(
            "ada", next_turn(messages, "Is there any other rock in any other sea near here?")
        )
        assert uncertain.block is None


def test_a_prompt_that_could_not_wait_has_nothing_in_its_place_for_good(ada: Service) -> None:
    first = ada.inject("ada", opening())
    messages = next_turn(opening(), "What is my city?")
    ada.set_fact("ada", "city", "Oslo")
    injection = PromptInjection(ada.injector, InjectionRequest("ada", messages, "", "main"))
    assert injection.abandon() == {}
    injection.run()
    assert injection.abandon() == first.blocks, "what was found by then is given back"
    later = ada.inject("ada", next_turn(messages, "Hello?"))
    assert later.messages[2] == messages[2]


class ReadOnly:
    """A database that can be read and not written to."""

    def __init__(self, database: Database) -> None:
        self.read = database.read

    def write(self) -> Any:
        raise DatabaseUnavailable("read only")


def test_what_the_database_does_not_take_is_the_same_in_this_process(ada: Service) -> None:
    injector = replace(ada.injector, database=cast(Database, ReadOnly(ada.database)))

    def inject(messages: list[Any]) -> Injected:
        return PromptInjection(injector, InjectionRequest("ada", messages, "", "main")).run()

    first = inject(opening())
    assert BIKE in repr(first.messages)
    assert first.request == ""
    assert block_rows(ada, "ada") == []
    again = inject(next_turn(opening(), "And the city?"))
    assert again.messages[0] == first.messages[0]
    ada.forget("ada", document=2)
    assert BIKE not in repr(inject(next_turn(opening(), "And the city?")).messages)


def test_a_conversation_goes_on_after_a_key_without_its_earlier_messages(ada: Service) -> None:
    first = ada.inject("ada", opening(), session_id="chain")
    key = first.turns[-1].key
    ada.remember("ada", [user_says("My bike also has a bell", id="m7")], "chain")
    second = ada.inject("ada", opening("What is my bike like?"), session_id="chain", after=key)
    assert second.block is None, "told before, or said in the session that the model sees"
    ada.set_fact("ada", "city", "Oslo")
    third = ada.inject("ada", opening("Where do I live?"), after=second.turns[-1].key)
    assert third.block is not None
    assert "city=Oslo" in third.block.text
    assert ada.inject("bob", opening("Where do I live?"), after=key).block is None


@pytest.mark.every_scheme
def test_neither_another_user_nor_another_group_gets_a_block(ada: Service) -> None:
    first = ada.inject("ada", opening())
    ada.remember("bob", [user_says("The car is in the garage")], "chat")
    messages = next_turn(opening(), "And the city?")
    assert ada.inject("bob", messages).messages[0] == messages[0]
    assert ada.inject("ada", messages, group="work").messages[0] == messages[0]
    assert ada.inject("ada", messages).messages[0] == first.messages[0]


def test_what_was_handed_in_stays_as_it_is(ada: Service) -> None:
    messages = next_turn(opening(), "And the city?")
    ada.inject("ada", opening())
    before = copy.deepcopy(messages)
    ada.inject("ada", messages)
    assert messages == before
