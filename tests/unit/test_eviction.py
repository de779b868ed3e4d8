"""What leaves a prompt that is too long, and what never does."""

import itertools
from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from shepherd_memory.chat.eviction import Message, evict, tokens_of

SIZES = st.integers(0, 200)


def user(size: int) -> Message:
    return {"role": "user", "content": "u " * size}


def final(size: int) -> Message:
    return {"role": "assistant", "content": "a " * size}


def tool_round(sizes: Sequence[int]) -> list[Message]:
    """A call of some tools, and their answers."""
    function = {"name": "get_fact", "arguments": "{}"}
    calls = [{"id": f"c{n}", "type": "function", "function": function} for n in range(len(sizes))]
    answers = [
        {"role": "tool", "content": "t " * size, "tool_call_id": f"c{n}"} for n, size in enumerate(sizes)
    ]
    return [{"role": "assistant", "content": "", "tool_calls": calls}, *answers]


ROUNDS = st.builds(tool_round, st.lists(SIZES, min_size=1, max_size=3))
UNANSWERED = st.lists(
    st.builds(
        lambda said, rounds: [user(said), *itertools.chain.from_iterable(rounds)],
        SIZES,
        st.lists(ROUNDS, max_size=4),
    ),
    min_size=1,
    max_size=3,
).map(lambda parts: list(itertools.chain.from_iterable(parts)))
"""A turn that has no final answer yet; an answer that failed makes the user say something more in it."""

TURNS = st.builds(lambda turn, answer: [*turn, final(answer)], UNANSWERED, SIZES)


@st.composite
def chats(draw: st.DrawFn) -> list[Message]:
    turns = [*draw(st.lists(TURNS, max_size=5)), draw(UNANSWERED)]
    return [{**message, "id": number} for number, message in enumerate(itertools.chain.from_iterable(turns))]


ROOM = st.integers(-100, 3000)


def size_of(messages: Sequence[Message]) -> int:
    return sum(map(tokens_of, messages))


def ids(messages: Sequence[Message]) -> list[int]:
    return [message["id"] for message in messages]


def turn_numbers(messages: Sequence[Message]) -> dict[int, int]:
    """Which turn each message is in."""
    numbers, turn = {}, 0
    for message in messages:
        numbers[message["id"]] = turn
        turn += message["role"] == "assistant" and "tool_calls" not in message
    return numbers


def rounds_of(messages: Sequence[Message]) -> list[list[int]]:
    """Each call of tools with its answers."""
    found: list[list[int]] = []
    for message in messages:
        if message.get("tool_calls"):
            found.append([])
        if message["role"] == "tool" or message.get("tool_calls"):
            found[-1].append(message["id"])
    return found


BETWEEN = [user(50), *tool_round([50]), user(50), *tool_round([50]), *tool_round([50])]


@given(chats(), ROOM)
@example([{**message, "id": number} for number, message in enumerate(BETWEEN)], 0)
def test_what_stays_is_in_its_old_order(messages: list[Message], room: int) -> None:
    kept = ids(evict(messages, room))
    assert kept == sorted(set(kept))


@given(chats(), ROOM)
def test_nothing_goes_while_everything_fits(messages: list[Message], room: int) -> None:
    if size_of(messages) <= room:
        assert evict(messages, room) == messages


@given(chats(), ROOM)
def test_everything_that_the_user_said_in_the_current_turn_stays(messages: list[Message], room: int) -> None:
    turns = turn_numbers(messages)
    current = max(turns.values())
    said = [one["id"] for one in messages if one["role"] == "user" and turns[one["id"]] == current]
    assert said
    assert set(said) <= set(ids(evict(messages, room)))


@given(chats(), ROOM)
def test_a_call_and_its_answers_stay_or_go_together(messages: list[Message], room: int) -> None:
    kept = set(ids(evict(messages, room)))
    assert all(not kept & set(one) or set(one) <= kept for one in rounds_of(messages))


@given(chats(), ROOM)
def test_complete_turns_go_whole_and_the_oldest_first(messages: list[Message], room: int) -> None:
    turns = turn_numbers(messages)
    current = max(turns.values())
    kept = set(ids(evict(messages, room)))
    stay = [all(one in kept for one in turns if turns[one] == turn) for turn in range(current)]
    go = [all(one not in kept for one in turns if turns[one] == turn) for turn in range(current)]
    assert all(is_whole or is_gone for is_whole, is_gone in zip(stay, go, strict=True))
    assert stay == sorted(stay)


@given(chats(), ROOM)
def test_rounds_of_the_current_turn_go_after_all_complete_turns_and_never_the_last(
    messages: list[Message], room: int
) -> None:
    turns = turn_numbers(messages)
    current = max(turns.values())
    kept = set(ids(evict(messages, room)))
    rounds = [one for one in rounds_of(messages) if turns[one[0]] == current]
    stay = [one[0] in kept for one in rounds]
    assert stay == sorted(stay)
    assert all(stay[-1:])
    if not all(stay):
        assert {turns[one] for one in kept} == {current}


@given(chats(), ROOM)
def test_in_the_end_it_fits_or_nothing_more_could_go(messages: list[Message], room: int) -> None:
    kept = evict(messages, room)
    if size_of(kept) > room:
        turns = turn_numbers(messages)
        current = max(turns.values())
        assert {turns[one] for one in ids(kept)} == {current}
        assert len(rounds_of(kept)) <= 1


@given(chats(), ROOM)
def test_no_more_goes_than_must(messages: list[Message], room: int) -> None:
    kept = evict(messages, room)
    gone = [one for one in messages if one["id"] not in set(ids(kept))]
    if gone:
        turns = turn_numbers(messages)
        last = gone[-1]
        rounds = [set(one) for one in rounds_of(messages) if last["id"] in one]
        in_current = turns[last["id"]] == max(turns.values())
        unit = rounds[0] if in_current else {one for one in turns if turns[one] == turns[last["id"]]}
        assert size_of(kept) + size_of([one for one in gone if one["id"] in unit]) > room


def test_an_empty_chat_stays_empty() -> None:
    assert evict([], 0) == []


def test_what_a_message_takes_counts_its_calls_too() -> None:
    (asked, _) = tool_round([3])
    assert tokens_of(asked) > tokens_of({"role": "assistant", "content": ""})
