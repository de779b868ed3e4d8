"""Memories in prompts: at the tail of the last words, the same in a tool loop, never deleted ones."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shepherd_memory.injection.log import KEPT_INJECTIONS
from shepherd_memory.recall.cache import IndexCache
from shepherd_memory.service import Service
from shepherd_memory.text.block_seal import strip_injection
from shepherd_memory.text.tokens import estimate_tokens
from tests.contract.given import ManualClock, everything_of, examples, memory, user_says
from tests.contract.recalling import check_indexes, rows_holding

QUESTION = "What instrument does my daughter play?"
SAID = "My daughter plays the violin every Sunday"


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock) as opened:
        yield opened


@pytest.fixture
def furnished(service: Service) -> Service:
    service.remember("ada", [user_says(SAID, id="m1"), user_says("The car is in the garage")], "chat")
    service.set_fact("ada", "city", "Lisbon")
    service.add_context("ada", "What does the daughter play?", "The violin, as an instrument")
    return service


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def last_text(messages: list[Any]) -> str:
    text: str = messages[-1]["content"]
    return text


def test_only_the_last_user_message_changes_and_only_at_its_tail(furnished: Service) -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        user_says("Hello"),
        assistant("Hi!"),
        user_says(QUESTION),
    ]
    before = copy.deepcopy(messages)
    injected = furnished.inject("ada", messages)
    assert messages == before, "what was handed in stays as it is"
    assert injected.messages[:3] == before[:3]
    assert injected.block is not None
    assert last_text(injected.messages) == f"{QUESTION}\n\n{injected.block.text}"
    assert strip_injection(last_text(injected.messages)) == QUESTION
    assert "city=Lisbon" in injected.block.text
    assert SAID in injected.block.text
    assert "Assistant: The violin, as an instrument" in injected.block.text


def test_verbatim_documents_alone_are_enough(service: Service) -> None:
    service.remember("ada", [user_says(SAID, name="Ada"), user_says("The car is red")], "chat")
    block = service.inject("ada", [user_says(QUESTION)]).block
    assert block is not None
    assert block.text.startswith("[context: (2027-01-15) Ada: My daughter plays the violin every Sunday")


def test_without_memory_nothing_changes(service: Service) -> None:
    messages = [user_says(QUESTION)]
    for user in ("ada", "unknown", ""):
        injected = service.inject(user, messages)
        assert (injected.messages, injected.block) == (messages, None)
        assert injected.reason
        assert everything_of(service.database, user)["users"] == []
    service.remember("ada", [user_says("The car is in the garage")], "chat")
    unrelated = service.inject("ada", [user_says("quantum chromodynamics lecture")])
    assert unrelated.block is None
    assert service.why("ada") == []


TOOL_LOOPS: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "look"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "found"},
    ],
    "anthropic": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "found"}]},
    ],
}

CHANGES: dict[str, Callable[[Service], object]] = {
    "nothing": lambda service: None,
    "a better memory": lambda service: service.remember("ada", [user_says(f"{QUESTION} The drums!")], "new"),
    "a new fact": lambda service: service.set_fact("ada", "pet", "Rex"),
    "a fact has another value": lambda service: service.set_fact("ada", "city", "Oslo"),
    "something else is forgotten": lambda service: service.forget("ada", document=2),
    "another user's erasure": lambda service: service.erase("bob"),
}


@pytest.mark.parametrize("wire", TOOL_LOOPS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_tool_loop_gets_the_same_bytes_whatever_changed_meanwhile(
    furnished: Service, clock: ManualClock, wire: str, change: str
) -> None:
    first = furnished.inject("ada", [user_says(QUESTION)])
    for turn in range(1, 3):
        clock.advance(1)
        CHANGES[change](furnished)
        again = furnished.inject("ada", [user_says(QUESTION), *TOOL_LOOPS[wire] * turn])
        assert again.messages[0] == first.messages[0]
        assert again.messages[1:] == TOOL_LOOPS[wire] * turn, "tool results are never touched"
    assert len({entry.request for entry in furnished.why("ada")}) == 1, "it is one use"


def test_a_tool_loop_that_got_nothing_first_gets_nothing_later(service: Service) -> None:
    service.remember("ada", [user_says("The car is in the garage")], "chat")
    assert service.inject("ada", [user_says(QUESTION)]).block is None
    service.remember("ada", [user_says(SAID)], "chat2")
    again = service.inject("ada", [user_says(QUESTION), *TOOL_LOOPS["openai"]])
    assert again.messages[0] == user_says(QUESTION)


DELETIONS: dict[str, tuple[str, Callable[[Service], object]]] = {
    "document": (SAID, lambda service: service.forget("ada", document=1)),
    "session": (SAID, lambda service: service.forget("ada", session="chat")),
    "fact": ("Lisbon", lambda service: service.forget("ada", fact="city")),
    "context": (
        "as an instrument",
        lambda service: service.forget("ada", context=service.context("ada")[0].id),
    ),
    "user": (SAID, lambda service: service.erase("ada")),
}


@pytest.mark.parametrize("what", DELETIONS)
def test_what_was_deleted_is_not_in_the_next_request_of_a_tool_loop(
    furnished: Service, clock: ManualClock, what: str
) -> None:
    text, delete = DELETIONS[what]
    first = furnished.inject("ada", [user_says(QUESTION)])
    assert text in repr(first.messages)
    clock.advance(1)
    delete(furnished)
    loop = [user_says(QUESTION), *TOOL_LOOPS["openai"]]
    second = furnished.inject("ada", loop)
    assert text not in repr(second.messages)
    assert furnished.inject("ada", loop).messages == second.messages


@pytest.mark.every_scheme
@pytest.mark.parametrize("wire", TOOL_LOOPS)
def test_another_process_tells_a_tool_loop_the_same(
    furnished: Service, url: str, clock: ManualClock, wire: str
) -> None:
    first = furnished.inject("ada", [user_says(QUESTION)])
    furnished.remember("ada", [user_says(f"{QUESTION} The drums!")], "new")
    with memory(url, clock) as other:
        again = other.inject("ada", [user_says(QUESTION), *TOOL_LOOPS[wire]])
        assert again.messages[0] == first.messages[0]
        assert again.told == first.told
        assert other.inject("bob", [user_says(QUESTION), *TOOL_LOOPS[wire]]).block is None


@pytest.mark.parametrize("what", DELETIONS)
def test_what_was_deleted_is_in_no_block_that_another_process_finds(
    furnished: Service, url: str, clock: ManualClock, what: str
) -> None:
    text, delete = DELETIONS[what]
    furnished.inject("ada", [user_says(QUESTION)])
    assert text in repr(everything_of(furnished.database, "ada")["prompt_blocks"])
    clock.advance(1)
    delete(furnished)
    assert text not in repr(everything_of(furnished.database, "ada")["prompt_blocks"])
    with memory(url, clock) as other:
        again = other.inject("ada", [user_says(QUESTION), *TOOL_LOOPS["openai"]])
        assert text not in repr(again.messages)


def test_a_fact_that_was_deleted_and_set_anew_is_not_told_as_it_was(
    furnished: Service, clock: ManualClock
) -> None:
    furnished.inject("ada", [user_says(QUESTION)])
    clock.advance(1)
    furnished.forget("ada", fact="city")
    clock.advance(1)
    furnished.set_fact("ada", "city", "Oslo")
    again = furnished.inject("ada", [user_says(QUESTION), *TOOL_LOOPS["openai"]])
    assert "Lisbon" not in repr(again.messages)
    assert "city=Oslo" in repr(again.messages)


def test_what_the_prompt_shows_already_is_left_out_for_the_next_best(url: str, clock: ManualClock) -> None:
    secret = "ghp_" + "aB3dE5fG7hI9" * 3
    shown = [f"violin lesson number {number}" for number in range(5)]
    conversation = [user_says(text) for text in shown] + [user_says(f"  violin with {secret}  ")]
    with memory(url, clock, rag_relevance_threshold=0.0) as service:
        service.remember("ada", conversation, "now")
        service.remember("ada", [user_says("The violin was made in Cremona")], "earlier")
        injected = service.inject("ada", [*conversation, user_says("Tell me about the violin")])
    assert injected.block is not None
    assert "Cremona" in injected.block.text
    assert "lesson" not in injected.block.text
    assert "redacted" not in injected.block.text


@pytest.mark.every_scheme
def test_use_is_counted_and_explained(furnished: Service, clock: ManualClock) -> None:
    clock.advance(60)
    injected = furnished.inject("ada", [user_says(QUESTION)], session_id="chat9")
    assert injected.block is not None
    told = furnished.why("ada", injected.request)
    assert {entry.kind for entry in told} == {"fact", "context", "document"}
    assert {(entry.session_id, entry.query) for entry in told} == {("chat9", QUESTION)}
    assert all(entry.injected_at.minute == 1 for entry in told)
    by_kind = {entry.kind: entry for entry in told}
    assert by_kind["document"].text == SAID
    assert by_kind["document"].score > 0
    (fact,), (pair,) = furnished.facts("ada"), furnished.context("ada")
    used, unused = furnished.documents("ada")
    for row in (fact, pair, used):
        assert row.use_count == 1
        assert row.last_used_at is not None
        assert row.last_used_at.minute == 1
    assert (unused.use_count, unused.last_used_at) == (0, None)
    furnished.inject("ada", [user_says("And what does my daughter play?")])
    assert furnished.documents("ada")[0].use_count == 2
    assert len({entry.request for entry in furnished.why("ada")}) == 2
    assert furnished.why("bob") == []
    assert furnished.why("ada", "no such request") == []
    check_indexes(furnished.database)


def test_using_a_memory_leaves_what_is_cached_valid(furnished: Service) -> None:
    furnished.inject("ada", [user_says(QUESTION)])
    cache: IndexCache = furnished._recall._cache
    before = cache.last_seen("ada", "")
    furnished.inject("ada", [user_says(QUESTION)])
    after = cache.last_seen("ada", "")
    assert before is not None
    assert after is not None
    assert after.ids is before.ids, "nothing was loaded again"


def test_the_log_holds_no_secret_and_nothing_that_was_forgotten(furnished: Service) -> None:
    secret = "ghp_" + "aB3dE5fG7hI9" * 3
    furnished.inject("ada", [user_says(f"{QUESTION} My token is {secret}")], session_id="x")
    assert furnished.why("ada")
    assert rows_holding(furnished.database, secret) == []
    asked = f"{QUESTION} I mean Philomena."
    furnished.inject("ada", [user_says(asked)])
    furnished.remember("ada", [user_says(asked, id="q")], "later")
    assert "injections" in rows_holding(furnished.database, "Philomena")
    (document,) = furnished.documents("ada", session_id="later")
    furnished.forget("ada", document=document.id)
    assert rows_holding(furnished.database, "Philomena") == []


def test_the_log_is_bounded(furnished: Service) -> None:
    with furnished.database.write() as tx:
        tx.execute("update users set seq = seq + 20000")
        tx.execute_many(
            "insert into injections (user_id, id, request, session_id, query, kind, entry_id, score,"
            " confidence, injected_at) values ('ada', :id, 'r', '', 'q', 'document', 1, 1, 1, 0)",
            [{"id": 100 + number} for number in range(KEPT_INJECTIONS + 50)],
        )
    furnished.inject("ada", [user_says(QUESTION)])
    counts = furnished.row_counts("ada")
    assert counts["injections"] == KEPT_INJECTIONS
    assert furnished.why("ada")[0].query == QUESTION


def test_the_budget_holds_whatever_is_stored(url: str, clock: ManualClock) -> None:
    with memory(url, clock, rag_relevance_threshold=0.0, rag_max_results=5) as service:
        for number in range(40):
            service.set_fact("ada", f"key{number}", f"value {number} " * 8)
        service.remember("ada", [user_says(f"violin {number} " * 200) for number in range(5)], "chat")
        full = service.inject("ada", [user_says("violin")]).block
        assert full is not None
        assert 300 < full.tokens <= 600
        assert estimate_tokens(f"\n\n{full.text}") <= 600
        assert full.fact_keys
        assert full.entry_ids
    with memory(url, clock, rag_relevance_threshold=0.0, rag_max_tokens=0) as service:
        assert service.inject("ada", [user_says("violin")]).block is None


ODD = st.one_of(
    st.none(),
    st.text(max_size=20),
    st.integers(),
    st.binary(max_size=5),
    st.lists(st.one_of(st.text(max_size=5), st.none(), st.dictionaries(st.text(max_size=5), st.integers()))),
    st.floats(),
)
MESSAGES = st.lists(
    st.one_of(
        ODD,
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "tool", "system"]), "content": ODD}
        ),
    ),
    max_size=5,
)


def test_any_messages_come_back_with_all_but_one_the_same_objects(furnished: Service) -> None:
    @settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
    @given(messages=MESSAGES)
    def check(messages: list[Any]) -> None:
        result = furnished.inject("ada", messages).messages
        assert len(result) == len(messages)
        changed = [at for at, (old, new) in enumerate(zip(messages, result, strict=True)) if old is not new]
        assert len(changed) <= 1
        assert all(messages[at]["role"] == "user" for at in changed)

    check()
    check_indexes(furnished.database)


def test_two_users_with_the_same_question_get_their_own(furnished: Service) -> None:
    furnished.remember("bob", [user_says("My daughter plays the trumpet")], "chat")
    for _ in range(2):
        for user, mine, other in (("ada", "violin", "trumpet"), ("bob", "trumpet", "violin")):
            for loop in ([], TOOL_LOOPS["openai"]):
                text = repr(furnished.inject(user, [user_says(QUESTION), *loop]).messages)
                assert mine in text
                assert other not in text
