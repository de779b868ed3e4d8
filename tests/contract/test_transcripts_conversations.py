"""What becomes of conversations: each statement is extracted once, in its turn and with its own time."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.conversations import conversation, life_cycle, turns
from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.conversations.turns import TokenAllowance
from shepherd_memory.extraction import queue
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import from_us, to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.transcripts import files, ingestion
from shepherd_memory.transcripts.library import Library
from shepherd_memory.work import claims, ledger
from shepherd_memory.work.ledger import TokenCost
from tests.contract.given import ManualClock, drain, facts_of, memory, user_says, work
from tests.endpoint import ScriptedEndpoint, by_content, echo, raw_reply, user_text
from tests.transcripts import BEGAN, MINUTE, agent_line, append, exchange, user_line, write

ADA = "ada"
DAY_SECONDS = 86_400


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with memory(url, clock, endpoint.url) as opened:
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "base" / "kettle" / "session.jsonl"


def take_in(service: Service, path: Path, lines: list[dict[str, Any]], **options: Any) -> None:
    service.transcripts.ingest(ADA, write(path, lines), **options)


def statuses(service: Service) -> list[str]:
    return [one.status for one in reversed(service.conversations(ADA))]


def extract_all(service: Service, clock: ManualClock, rounds: int = 20) -> None:
    """Poll and work in turns until nothing moves."""
    for _ in range(rounds):
        moved = service.transcripts.poll()
        drain(service, clock)
        moved += service.transcripts.poll()
        if not moved:
            return
    raise AssertionError("conversations still move")


def asked_about(endpoint: ScriptedEndpoint) -> Counter[str]:
    """How often each statement was handed to the endpoint."""
    texts = [user_text(received.json) for received in endpoint.requests]
    return Counter(found for text in texts for found in re.findall(r"wish_\d+(?= is)", text))


def wishes(*numbers: int) -> dict[str, int]:
    return {f"wish_{number}": 1 for number in numbers}


def test_what_the_user_said_is_extracted_once_with_the_time_at_which_it_was_said(
    service: Service, path: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    take_in(service, path, exchange(0, 12))
    assert work(service) == []
    extract_all(service, clock)
    assert asked_about(endpoint) == wishes(0, 2, 4, 6, 8, 10)
    facts = {fact.key: fact for fact in service.facts(ADA)}
    assert {key: fact.value for key, fact in facts.items()} == {
        f"wish_{number}": f"tea_{number}" for number in range(0, 12, 2)
    }
    assert [to_us(facts[f"wish_{number}"].stated_at) for number in (0, 10)] == [BEGAN, BEGAN + 10 * MINUTE]
    assert facts["wish_4"].session_id == "session"
    assert statuses(service) == ["archived"]


@pytest.mark.every_scheme
def test_a_conversation_goes_through_its_states_in_order(
    service: Service, path: Path, clock: ManualClock
) -> None:
    clock.now = BEGAN + 12 * MINUTE
    take_in(service, path, exchange(0, 12))
    assert (service.transcripts.poll(), statuses(service)) == (0, ["active"])
    clock.now = BEGAN + 11 * MINUTE + 61 * MINUTE
    assert service.transcripts.poll() == 2
    assert statuses(service) == ["processing"]
    assert (service.transcripts.poll(), statuses(service)) == (0, ["processing"])
    drain(service, clock)
    assert (service.transcripts.poll(), statuses(service)) == (1, ["archived"])
    append(path, exchange(12, 20))
    service.transcripts.ingest(ADA, path)
    assert statuses(service) == ["archived", "active"]


def test_what_is_said_before_a_conversation_was_handed_on_belongs_to_it(
    url: str, path: Path, clock: ManualClock
) -> None:
    with memory(url, clock) as service:
        take_in(service, path, exchange(0, 4))
        service.transcripts.poll()
        assert statuses(service) == ["skipped"]
        append(path, exchange(4, 8))
        service.transcripts.ingest(ADA, path)
        assert statuses(service) == ["active"]
        service.transcripts.poll()
        assert statuses(service) == ["ready"]
        assert service.transcripts.health(ADA).lag_seconds == 0
        clock.advance(90)
        assert service.transcripts.health(ADA).lag_seconds == 90


def test_gaps_cut_a_file_into_conversations_and_short_ones_are_skipped(
    service: Service, path: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    take_in(service, path, [*exchange(0, 6), *exchange(66, 70), *exchange(130, 136), *exchange(195, 200)])
    found = list(reversed(service.conversations(ADA)))
    # From 5 to 66 is more than an hour, from 135 to 195 is not.
    assert [one.entries for one in found] == [6, 4, 11]
    assert found[2].last_message_at == from_us(BEGAN + 199 * MINUTE)
    extract_all(service, clock)
    assert statuses(service) == ["archived", "skipped", "archived"]
    assert not {"wish_66", "wish_68"} & asked_about(endpoint).keys()


def test_without_an_endpoint_a_conversation_stays_ready_and_one_that_comes_later_gets_it(
    url: str, path: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock) as service:
        take_in(service, path, exchange(0, 12))
        service.transcripts.poll()
        assert statuses(service) == ["ready"]
        assert (service.transcripts.poll(), statuses(service)) == (0, ["ready"])
    with memory(url, clock, endpoint.url) as service:
        assert work(service) == []
        extract_all(service, clock)
        assert asked_about(endpoint) == wishes(0, 2, 4, 6, 8, 10)


def set_items(service: Service, status: str) -> None:
    with service.database.write() as tx:
        tx.execute("update jobs set status = :status", status=status)


def test_a_failed_item_keeps_its_conversation_until_it_is_tried_again_or_dropped(
    service: Service, path: Path, clock: ManualClock
) -> None:
    take_in(service, path, exchange(0, 12))
    service.transcripts.poll()
    set_items(service, "failed")
    assert (service.transcripts.poll(), statuses(service)) == (0, ["processing"])
    (item,) = service.items(ADA)
    service.retry(ADA, item.id)
    drain(service, clock)
    service.transcripts.poll()
    assert statuses(service) == ["archived"]


def test_a_dropped_item_archives_its_conversation(service: Service, path: Path) -> None:
    take_in(service, path, exchange(0, 12))
    service.transcripts.poll()
    (item,) = service.items(ADA)
    assert service.drop(ADA, item.id)
    service.transcripts.poll()
    assert (statuses(service), service.facts(ADA)) == (["archived"], [])


@pytest.mark.every_scheme
def test_above_the_daily_cap_a_conversation_waits_for_tomorrow(
    url: str, tmp_path: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_extraction_daily_tokens=10) as service:
        for number in (0, 100):
            path = tmp_path / "base" / "kettle" / f"session{number}.jsonl"
            take_in(service, path, exchange(number, number + 8))
        service.transcripts.poll()
        work(service)
        service.transcripts.poll()
        assert statuses(service) == ["archived", "ready"]
        assert service.transcripts.poll() == 0
        clock.advance(DAY_SECONDS)
        extract_all(service, clock)
        assert statuses(service) == ["archived", "archived"]
        assert set(asked_about(endpoint).values()) == {1}


def test_a_live_session_of_the_same_id_never_extracts_what_was_taken_in(
    service: Service, path: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    take_in(service, path, exchange(0, 12))
    result = service.remember(ADA, [user_says("my wish_77 is cocoa", id="live")], "session")
    assert result.session_id == "session@live"
    assert not service.extract(ADA, "session")
    drain(service, clock)
    assert asked_about(endpoint) == wishes(77)
    extract_all(service, clock)
    assert asked_about(endpoint) == wishes(0, 2, 4, 6, 8, 10, 77)
    assert facts_of(service, ADA)["wish_77"] == "cocoa"


def test_a_file_named_like_a_live_session_gets_a_session_of_its_own(
    service: Service, path: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    service.remember(ADA, [user_says("my wish_77 is cocoa", id="live")], "session")
    take_in(service, path, exchange(0, 12))
    (file,) = service.transcripts.files(ADA)
    assert file.session_id.startswith("session@")
    service.remember(ADA, [user_says("my wish_78 is milk", id="more")], "session")
    extract_all(service, clock)
    assert asked_about(endpoint) == wishes(0, 2, 4, 6, 8, 10, 77, 78)


def test_two_files_of_the_same_name_are_two_sessions(service: Service, tmp_path: Path) -> None:
    for folder in ("kettle", "teapot"):
        take_in(service, tmp_path / "base" / folder / "session.jsonl", exchange(0, 6))
    found = service.transcripts.files(ADA)
    assert len({file.session_id for file in found}) == 2
    assert [len(list(service.transcripts.read(ADA, file.session_id))) for file in found] == [6, 6]
    assert service.transcripts.session(ADA, "teapot/session.jsonl") == (found[1].session_id, "main")


def test_conversations_whose_times_are_not_in_order_are_extracted_once(
    service: Service, path: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    take_in(service, path, [*exchange(500, 508), *exchange(0, 8), *exchange(1000, 1008)])
    extract_all(service, clock)
    clock.advance(DAY_SECONDS)
    extract_all(service, clock)
    assert asked_about(endpoint) == wishes(*(base + n for base in (0, 500, 1000) for n in (0, 2, 4, 6)))
    # Going back in time is no gap.
    assert statuses(service) == ["archived"] * 2


def test_a_line_out_of_order_does_not_split_a_conversation(service: Service, path: Path) -> None:
    take_in(service, path, [*exchange(0, 4), user_line(99, at=BEGAN - 500 * MINUTE), *exchange(4, 8)])
    assert [one.entries for one in service.conversations(ADA)] == [9]


def test_a_line_of_a_conversation_that_is_done_does_not_split_the_one_it_stands_in(
    service: Service, path: Path, clock: ManualClock
) -> None:
    take_in(service, path, exchange(100, 108))
    extract_all(service, clock)
    append(path, [*exchange(0, 4), user_line(999, at=BEGAN + 103 * MINUTE), *exchange(4, 8)])
    service.transcripts.ingest(ADA, path)
    assert {one.status: one.entries for one in service.conversations(ADA)} == {
        "archived": 9,
        "active": 8,
    }


def test_a_line_without_a_time_was_said_with_the_one_before_or_with_the_first_that_has_one(
    service: Service, path: Path
) -> None:
    lines = [user_line(1, timestamp=None), agent_line(5), user_line(2), agent_line(3, timestamp=None)]
    take_in(service, path, lines)
    append(path, [user_line(4, timestamp=None)])
    service.transcripts.ingest(ADA, path)
    said = [to_us(one.created_at) - BEGAN for one in service.transcripts.read(ADA, "session")]
    assert said == [minutes * MINUTE for minutes in (5, 5, 2, 2, 2)]


@pytest.mark.parametrize("when", ["waiting", "done"])
def test_a_file_that_is_read_anew_is_neither_extracted_twice_nor_forgotten(
    service: Service, path: Path, clock: ManualClock, endpoint: ScriptedEndpoint, when: str
) -> None:
    take_in(service, path, exchange(0, 12))
    service.transcripts.poll()
    if when == "done":
        drain(service, clock)
    service.transcripts.ingest(ADA, path, reimport=True)
    extract_all(service, clock)
    assert asked_about(endpoint) == wishes(0, 2, 4, 6, 8, 10)
    assert statuses(service) == ["archived"]
    service.transcripts.ingest(ADA, path, reimport=True)
    extract_all(service, clock)
    assert asked_about(endpoint) == wishes(0, 2, 4, 6, 8, 10)


def test_a_conversation_in_which_the_user_said_nothing_is_wanted_by_none(
    service: Service, path: Path
) -> None:
    take_in(service, path, [line for line in exchange(0, 20) if line["type"] == "assistant"])
    service.transcripts.poll()
    service.transcripts.poll()
    assert (statuses(service), service.items(ADA)) == (["skipped"], [])


def test_more_conversations_than_a_poll_looks_at_are_all_extracted(
    service: Service,
    tmp_path: Path,
    clock: ManualClock,
    endpoint: ScriptedEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(life_cycle, "AT_ONCE", 2)
    for number in range(5):
        first = number * 100
        take_in(service, tmp_path / "base" / "kettle" / f"s{number}.jsonl", exchange(first, first + 6))
    extract_all(service, clock)
    assert len(asked_about(endpoint)) == 15
    assert set(asked_about(endpoint).values()) == {1}


def test_a_long_session_does_not_keep_others_from_being_extracted(
    service: Service, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life_cycle, "AT_ONCE", 2)
    many = [line for hour in range(6) for line in exchange(hour * 100, hour * 100 + 6)]
    take_in(service, tmp_path / "base" / "kettle" / "long.jsonl", many)
    take_in(service, tmp_path / "base" / "kettle" / "short.jsonl", exchange(9000, 9006))
    service.transcripts.poll()
    service.transcripts.poll()
    assert {item.key for item in service.items(ADA)} == {"long", "short"}


def test_all_conversations_of_a_session_are_handed_on_at_once_but_for_what_lies_between_them(
    service: Service, path: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    long = [line for hour in range(0, 8, 2) for line in exchange(hour * 100, hour * 100 + 6)]
    short = [line for hour in range(1, 8, 2) for line in exchange(hour * 100, hour * 100 + 2)]
    take_in(service, path, sorted([*long, *short], key=lambda line: str(line["timestamp"])))
    service.transcripts.poll()
    assert statuses(service) == ["processing", "skipped"] * 4
    assert len(service.items(ADA)) == 4
    extract_all(service, clock)
    assert asked_about(endpoint) == wishes(*(hour * 100 + n for hour in range(0, 8, 2) for n in (0, 2, 4)))
    assert statuses(service) == ["archived", "skipped"] * 4


@pytest.mark.every_scheme
def test_a_user_with_many_conversations_leaves_others_their_places(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life_cycle, "AT_ONCE", 4)
    for number in range(9):
        take_in(service, tmp_path / "base" / "kettle" / f"s{number}.jsonl", exchange(0, 6))
    for number in range(2):
        path = write(tmp_path / "bobs" / "teapot" / f"s{number}.jsonl", exchange(900, 906))
        service.transcripts.ingest("bob", path)
    service.transcripts.poll()
    assert (len(service.items(ADA)), len(service.items("bob"))) == (2, 2)


def finish_one(service: Service, clock: ManualClock) -> str:
    """End the next item; whose it was."""
    claimed = claims.claim(service.database, queue.KIND, "worker", clock(), clock() + MINUTE)
    assert claimed is not None
    with service.database.write() as tx:
        assert claims.finish(tx, claimed, "done", clock())
        ledger.record(tx, claimed.user_id, ledger.EXTRACTION, TokenCost(calls=1, prompt_tokens=100), clock())
    return claimed.user_id


@pytest.mark.every_scheme
def test_a_single_place_that_gets_free_goes_to_who_holds_the_fewest(
    service: Service, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life_cycle, "AT_ONCE", 3)
    for number in range(9):
        take_in(service, tmp_path / "base" / "kettle" / f"s{number}.jsonl", exchange(0, 6))
    service.transcripts.poll()
    service.transcripts.ingest("bob", write(tmp_path / "bobs" / "t" / "b.jsonl", exchange(900, 906)))
    finish_one(service, clock)
    service.transcripts.poll()
    assert (len(service.items("bob")), len(service.items(ADA, "waiting"))) == (1, 2)


def test_more_users_than_places_are_all_served_though_the_first_have_older_conversations(
    service: Service, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life_cycle, "AT_ONCE", 2)
    users = [f"user{number}" for number in range(5)]
    for at, user_id in enumerate(users):
        for number in range(6):
            lines = exchange(at * 1000 + number * 100, at * 1000 + number * 100 + 6)
            service.transcripts.ingest(user_id, write(tmp_path / user_id / "t" / f"s{number}.jsonl", lines))
    served = []
    for _ in users:
        service.transcripts.poll()
        clock.advance(30)
        served.append(finish_one(service, clock))
    assert set(served) == set(users)


def test_conversations_beyond_those_that_a_poll_looks_at_get_their_turn_later(
    service: Service,
    tmp_path: Path,
    clock: ManualClock,
    endpoint: ScriptedEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "LOOKED_AT", 2)
    for first in (0, 100, 200, 300, 400):
        take_in(service, tmp_path / "base" / "kettle" / f"s{first}.jsonl", exchange(first, first + 6))
    service.transcripts.poll()
    assert [item.key for item in service.items(ADA)] == ["s0", "s100"]
    extract_all(service, clock)
    assert len(asked_about(endpoint)) == 15
    assert set(asked_about(endpoint).values()) == {1}


@pytest.mark.parametrize("queue_limit", [0, 3])
def test_a_user_over_the_daily_cap_holds_nobodys_place(
    url: str,
    tmp_path: Path,
    clock: ManualClock,
    endpoint: ScriptedEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    queue_limit: int,
) -> None:
    monkeypatch.setattr(life_cycle, "AT_ONCE", 3)
    limits = {"memory_extraction_daily_tokens": 10, "memory_extraction_queue_limit": queue_limit}
    with memory(url, clock, endpoint.url, **limits) as service:
        for number in range(6):
            take_in(service, tmp_path / "base" / "kettle" / f"s{number}.jsonl", exchange(0, 6))
        service.transcripts.poll()
        work(service)
        service.transcripts.ingest("bob", write(tmp_path / "bobs" / "t" / "b.jsonl", exchange(50, 56)))
        service.transcripts.poll()
        assert [item.status for item in service.items("bob")] == ["waiting"]
        work(service)
        assert facts_of(service, "bob")["wish_50"] == "tea_50"
        for _ in range(6):
            clock.advance(DAY_SECONDS)
            service.transcripts.poll()
            work(service)
        service.transcripts.poll()
        assert statuses(service) == ["archived"] * 6
        assert service.status().items["dropped"] == 0


def test_a_conversation_that_no_answer_can_be_had_for_is_given_up_though_the_day_is_over_each_time(
    url: str, tmp_path: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = by_content(lambda body: raw_reply("no") if "wish_0 " in user_text(body) else echo())
    with memory(url, clock, endpoint.url, memory_extraction_daily_tokens=10) as service:
        take_in(service, tmp_path / "base" / "kettle" / "first.jsonl", exchange(0, 6))
        take_in(service, tmp_path / "base" / "kettle" / "second.jsonl", exchange(50, 56))
        for _ in range(8):
            service.transcripts.poll()
            work(service)
            service.transcripts.poll()
            clock.advance(DAY_SECONDS)
        assert facts_of(service, ADA)["wish_50"] == "tea_50"
        assert [item.key for item in service.items(ADA, "failed")] == ["first"]


@pytest.mark.parametrize("queue_limit", [0, 9])
def test_what_waits_for_tomorrow_in_a_chat_holds_no_place_of_transcripts(
    url: str,
    path: Path,
    clock: ManualClock,
    endpoint: ScriptedEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    queue_limit: int,
) -> None:
    monkeypatch.setattr(life_cycle, "AT_ONCE", 2)
    limits = {"memory_extraction_daily_tokens": 10, "memory_extraction_queue_limit": queue_limit}
    with memory(url, clock, endpoint.url, **limits) as service:
        for number in range(4):
            service.remember("bob", [user_says(f"my wish_{number} is cocoa")], f"chat{number}")
        work(service)
        take_in(service, path, exchange(50, 56))
        service.transcripts.poll()
        assert statuses(service) == ["processing"]


def test_a_secret_that_was_cut_off_while_an_answer_grew_is_not_kept(service: Service, path: Path) -> None:
    whole = "the key is sk-ant-" + "api03-Zq8vT2nLx4WcR7yKp1Bd" * 4
    take_in(service, path, [user_line(0), agent_line(1, whole[:19]), agent_line(1, whole)])
    texts = [document.text for document in service.documents(ADA)]
    assert not any("sk-ant-" in text for text in texts)
    assert any("[redacted:" in text for text in texts)


def test_a_queue_with_a_limit_drops_nothing_that_was_taken_in(
    url: str, tmp_path: Path, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(
        url, clock, endpoint.url, memory_extraction_queue_limit=5, memory_extraction_max_turns=2
    ) as service:
        for number in range(50):
            first = number * 100
            take_in(service, tmp_path / "base" / "kettle" / f"s{number}.jsonl", exchange(first, first + 6))
        service.remember(ADA, [user_says("my wish_7 is cocoa")], "live")
        service.transcripts.poll()
        items = service.items(ADA)
        assert (len(items), items[0].key) == (5, "live")
        held = claims.claim(service.database, queue.KIND, "elsewhere", clock(), clock() + MINUTE)
        service.transcripts.poll()
        assert len(service.items(ADA)) == 5, "what runs may have to wait again"
        assert held is not None
        with service.database.write() as tx:
            claims.release(tx, held, clock(), "", None)
        extract_all(service, clock, rounds=60)
        assert service.status().items["dropped"] == 0
        assert asked_about(endpoint) == wishes(7, *(n * 100 + at for n in range(50) for at in (0, 2, 4)))


def test_without_a_limit_no_more_is_handed_on_than_can_be_done_soon(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life_cycle, "AT_ONCE", 3)
    for number in range(5):
        take_in(service, tmp_path / "base" / "kettle" / f"s{number}.jsonl", exchange(0, 6))
    for _ in range(3):
        service.transcripts.poll()
        assert len(service.items(ADA)) == 3


def test_what_a_conversation_got_after_the_poll_found_it_is_extracted_too(
    service: Service,
    path: Path,
    clock: ManualClock,
    endpoint: ScriptedEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found_at = []
    find = turns.next_to_queue

    def find_and_grow(
        connection: Connection, kind: str, allowance: TokenAllowance, limit: int
    ) -> list[tuple[str, Conversation]]:
        found = find(connection, kind, allowance, limit)
        if found and not found_at:
            found_at.append(clock())
            append(path, exchange(12, 20))
            service.transcripts.ingest(ADA, path)
            life_cycle.poll(service.database, MINUTE, [service.worker.strategy], clock())
        return found

    monkeypatch.setattr(turns, "next_to_queue", find_and_grow)
    take_in(service, path, exchange(0, 12))
    extract_all(service, clock)
    assert found_at
    assert asked_about(endpoint) == wishes(*range(0, 20, 2))


def test_more_conversations_than_are_ended_at_once_are_ready_in_one_poll(
    url: str, path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life_cycle, "ENDED_AT_ONCE", 2)
    with memory(url, clock) as service:
        take_in(service, path, [line for hour in range(5) for line in exchange(hour * 100, hour * 100 + 6)])
        assert service.transcripts.poll() == 5
        assert statuses(service) == ["ready"] * 5


@pytest.mark.every_scheme
def test_the_lag_is_that_of_the_conversation_that_has_waited_longest(
    url: str, path: Path, clock: ManualClock
) -> None:
    with memory(url, clock) as service:
        take_in(service, path, exchange(0, 6))
        service.transcripts.poll()
        clock.advance(90)
        with service.database.write() as tx:
            tx.execute_many(
                "insert into conversations (user_id, id, file_key, session_id, first_document,"
                " last_document, first_message_at, last_message_at, entries, status, updated_at)"
                " values ('ada', :id, 'f', 's', 0, 0, :now, :now, 9, 'ready', :now)",
                [{"id": 10_000 + number, "now": clock()} for number in range(1000)],
            )
        assert service.transcripts.health(ADA).lag_seconds == 90


def test_a_file_whose_reader_was_killed_is_not_counted_as_being_read(
    service: Service, path: Path, clock: ManualClock
) -> None:
    take_in(service, path, exchange(0, 6))
    with service.database.write() as tx:
        assert files.claim(tx, ADA, "kettle/session.jsonl", "t", 1, 1, clock(), clock() + MINUTE)
    assert service.transcripts.health(ADA).ingesting == 1
    clock.advance(61)
    assert service.transcripts.health(ADA).ingesting == 0


def test_the_worker_is_woken_when_something_was_handed_on(
    service: Service, path: Path, clock: ManualClock
) -> None:
    woken: list[int] = []
    library = Library(
        service.database, lambda: service.config, clock, lambda: None, lambda: woken.append(len(woken))
    )
    library.serve([service.worker.strategy])
    library.poll()
    assert not woken
    take_in(service, path, exchange(0, 12))
    library.poll()
    assert len(woken) == 1
    library.poll()
    assert len(woken) == 1


def test_a_session_that_is_forgotten_while_its_file_is_read_stays_forgotten(
    service: Service, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion, "BATCH_ENTRIES", 3)
    forgotten: list[int] = []

    def forget(size: int) -> None:
        if not forgotten:
            forgotten.append(service.forget(ADA, session="session").documents)

    write(path, exchange(0, 12))
    assert service.transcripts.ingest(ADA, path, progress=forget).outcome == "busy"
    assert forgotten == [3]
    assert service.transcripts.ingest(ADA, path).entries == 0
    append(path, exchange(12, 14))
    assert service.transcripts.ingest(ADA, path).entries == 2
    read = service.transcripts.read(ADA, "session")
    assert [to_us(one.created_at) for one in read] == [BEGAN + 12 * MINUTE, BEGAN + 13 * MINUTE]
    assert service.transcripts.ingest(ADA, path).outcome == "unchanged"


def test_what_was_not_read_yet_when_its_session_was_forgotten_stays_out_of_a_reimport(
    service: Service, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion, "BATCH_ENTRIES", 3)
    write(path, exchange(0, 12))
    service.transcripts.ingest(ADA, path, should_stop=lambda: True)
    assert service.forget(ADA, session="session").documents == 3
    assert service.transcripts.ingest(ADA, path, reimport=True).entries == 0
    append(path, exchange(12, 14))
    for _ in range(2):
        again = service.transcripts.ingest(ADA, path, reimport=True)
        assert (again.entries, again.skipped["forgotten"]) == (2, 12)
    # Who was erased begins anew.
    service.erase(ADA)
    assert service.transcripts.ingest(ADA, path).entries == 0
    assert service.transcripts.ingest(ADA, path, reimport=True).entries == 14


def test_a_file_that_is_written_anew_after_it_was_forgotten_does_not_bring_it_back(
    service: Service, path: Path
) -> None:
    take_in(service, path, exchange(0, 12))
    service.forget(ADA, session="session")
    append(path, exchange(12, 14))
    service.transcripts.ingest(ADA, path)
    # The same words under other ids, as an agent writes them that copies a session.
    write(path, [line | {"uuid": f"copy-{at}"} for at, line in enumerate(exchange(0, 11))])
    assert service.transcripts.ingest(ADA, path).outcome == "rewritten"
    assert list(service.transcripts.read(ADA, "session")) == []


@pytest.mark.every_scheme
def test_entries_are_put_beside_what_was_handed_on_and_the_last_conversation(
    service: Service, path: Path
) -> None:
    take_in(service, path, [line for hour in range(4) for line in exchange(hour * 100, hour * 100 + 6)])
    with service.database.write() as tx:
        found = conversation.of_session(tx, ADA, "session")
        for one, status in zip(found, ("skipped", "archived", "ready"), strict=False):
            conversation.set_status(tx, ADA, one.id, "active", status, 1)
        wanted = conversation.for_grouping(tx, ADA, "session")
    assert [one.id for one in wanted] == [found[1].id, found[3].id]
