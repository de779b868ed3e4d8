"""What becomes of conversations: each statement is extracted once, in its turn and with its own time."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.clock import from_us, to_us
from shepherd_memory.service import Service
from shepherd_memory.transcripts import processing
from tests.contract.given import ManualClock, drain, facts_of, memory, user_says, work
from tests.endpoint import ScriptedEndpoint, user_text
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
    return [one.status for one in reversed(service.transcripts.conversations(ADA))]


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
    found = list(reversed(service.transcripts.conversations(ADA)))
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
        assert statuses(service) == ["archived", "processing"]
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
    assert service.transcripts.session(ADA, "teapot/session.jsonl") == found[1].session_id


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


def test_a_conversation_in_which_the_user_said_nothing_is_archived_without_an_item(
    service: Service, path: Path
) -> None:
    take_in(service, path, [line for line in exchange(0, 20) if line["type"] == "assistant"])
    service.transcripts.poll()
    service.transcripts.poll()
    assert (statuses(service), service.items(ADA)) == (["archived"], [])


def test_more_conversations_than_a_poll_looks_at_are_all_extracted(
    service: Service,
    tmp_path: Path,
    clock: ManualClock,
    endpoint: ScriptedEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processing, "AT_ONCE", 2)
    for number in range(5):
        first = number * 100
        take_in(service, tmp_path / "base" / "kettle" / f"s{number}.jsonl", exchange(first, first + 6))
    extract_all(service, clock)
    assert len(asked_about(endpoint)) == 15
    assert set(asked_about(endpoint).values()) == {1}


def test_a_long_session_does_not_keep_others_from_being_extracted(
    service: Service, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processing, "AT_ONCE", 2)
    many = [line for hour in range(6) for line in exchange(hour * 100, hour * 100 + 6)]
    take_in(service, tmp_path / "base" / "kettle" / "long.jsonl", many)
    take_in(service, tmp_path / "base" / "kettle" / "short.jsonl", exchange(9000, 9006))
    service.transcripts.poll()
    service.transcripts.poll()
    assert {item.key for item in service.items(ADA)} == {"long", "short"}


def test_a_secret_that_was_cut_off_while_an_answer_grew_is_not_kept(service: Service, path: Path) -> None:
    whole = "the key is sk-ant-" + "api03-Zq8vT2nLx4WcR7yKp1Bd" * 4
    take_in(service, path, [user_line(0), agent_line(1, whole[:19]), agent_line(1, whole)])
    texts = [document.text for document in service.documents(ADA)]
    assert not any("sk-ant-" in text for text in texts)
    assert any("[redacted:" in text for text in texts)
