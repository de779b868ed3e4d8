"""Earlier sessions are found again, named, put aside and resumed; what is refused changes nothing."""

import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.errors import InvalidInput, NotFound, SessionBusy, SessionEnded
from shepherd_memory.memory.session_catalog import SessionSummary
from shepherd_memory.service import Service
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import from_us
from shepherd_memory.text.groups import MAIN_GROUP
from tests.contract.given import ManualClock, everything_of, memory, user_says
from tests.transcripts import user_line, write

ADA = "ada"


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock) as opened:
        yield opened


def started(
    service: Service, clock: ManualClock, *texts: str, group: str = MAIN_GROUP, user: str = ADA
) -> str:
    """A session in which this was said, one after the other; it is the active one."""
    session_id = service.start_session(user, group=group, takeover=True, agent_name="Julian").session_id
    say(service, clock, session_id, *texts, group=group, user=user)
    return session_id


def say(
    service: Service,
    clock: ManualClock,
    session_id: str,
    *texts: str,
    group: str = MAIN_GROUP,
    user: str = ADA,
) -> None:
    for text in texts:
        clock.advance(1)
        service.use_session(user, session_id, group=group)
        answer = {"role": "assistant", "content": f"I see: {text}"}
        service.remember(user, [user_says(text, id=f"said {text}"), answer], session_id, group=group)


def listed(service: Service, group: str = MAIN_GROUP, **page: int) -> list[SessionSummary]:
    return list(service.list_sessions(ADA, group=group, **page).sessions)


def active(service: Service, group: str = MAIN_GROUP) -> str:
    life = service.active_session(ADA, group=group)
    return life.session_id if life else ""


def rows(service: Service) -> dict[str, list[tuple[Any, ...]]]:
    return everything_of(service.database, ADA)


@pytest.mark.every_scheme
def test_a_session_is_cleared_listed_resumed_and_takes_chat_again(
    service: Service, clock: ManualClock
) -> None:
    tax = started(service, clock, "The tax return is due in May")
    clock.advance(60)
    entry = service.clear_session(ADA, "Tax")
    assert (entry.session_id, entry.name, entry.archived_at) == (tax, "Tax", from_us(clock()))
    assert entry.created_at < entry.archived_at
    assert active(service) == ""
    with pytest.raises(SessionEnded, match="cleared"):
        service.use_session(ADA, tax)
    trip = started(service, clock, "We fly to Japan")
    found = listed(service)
    assert [(one.session_id, one.name, one.status, one.message_count) for one in found] == [
        (trip, "", "active", 2),
        (tax, "Tax", "ended", 2),
    ]
    assert (found[1].preview, found[1].history_id) == ("The tax return is due in May", entry.id)
    recency = found[1].last_activity_at
    resumed = service.resume_session(ADA, "Tax", save_current_as="Japan 日本")
    assert (resumed.session.session_id, resumed.session.status, resumed.was_active) == (tax, "active", False)
    assert resumed.saved is not None
    assert (resumed.saved.session_id, resumed.saved.name) == (trip, "Japan 日本")
    assert active(service) == tax
    assert [one.name for one in service.session_history(ADA)] == ["Japan 日本"]
    assert {one.session_id: one.last_activity_at for one in listed(service)}[tax] == recency
    say(service, clock, tax, "And the receipts?")
    assert listed(service)[0].session_id == tax
    assert listed(service)[0].last_activity_at > recency


def test_without_a_name_the_current_session_keeps_its_own_or_is_given_one(
    service: Service, clock: ManualClock
) -> None:
    first = started(service, clock, "One")
    second = started(service, clock, "Two")
    saved = service.resume_session(ADA, first).saved
    assert saved is not None
    assert (saved.session_id, saved.name) == (second, "conversation-1200")
    service.rename_session(ADA, first, "The first")
    again = service.resume_session(ADA, str(saved.id)).saved
    assert again is not None
    assert (again.session_id, again.name) == (first, "The first")


def test_a_session_in_which_nothing_was_said_is_not_kept_without_a_name(
    service: Service, clock: ManualClock
) -> None:
    first = started(service, clock, "One")
    started(service, clock)
    assert service.resume_session(ADA, first).saved is None
    assert [one.session_id for one in listed(service)] == [first]
    started(service, clock)
    assert service.resume_session(ADA, first, save_current_as="Empty").saved is not None


def test_to_resume_the_active_session_keeps_it(service: Service, clock: ManualClock) -> None:
    session_id = started(service, clock, "One")
    resumed = service.resume_session(ADA, session_id)
    assert (resumed.was_active, resumed.saved, active(service)) == (True, None, session_id)


def test_a_session_that_nobody_started_is_resumed_too(service: Service, clock: ManualClock) -> None:
    service.remember(ADA, [user_says("From a client of mine")], "my own id")
    assert service.resume_session(ADA, "my own id").session.status == "active"
    assert active(service) == "my own id"


def test_the_same_name_twice_is_two_entries_and_has_to_be_told_apart(
    service: Service, clock: ManualClock
) -> None:
    ids = []
    for text in ("One", "Two"):
        ids.append(started(service, clock, text))
        service.clear_session(ADA, "Tax")
    assert [entry.name for entry in service.session_history(ADA)] == ["Tax", "Tax"]
    before = rows(service)
    with pytest.raises(InvalidInput, match="2 sessions are named 'Tax'; give the id of one") as refused:
        service.resume_session(ADA, "Tax")
    assert all(session_id in str(refused.value) for session_id in ids)
    assert rows(service) == before
    service.rename_session(ADA, ids[0], "Tax of last year")
    assert service.resume_session(ADA, "Tax").session.session_id == ids[1]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("税金", "税金"),
        ("../../x", "../../x"),
        ("👩‍👩‍👧 100% _", "👩‍👩‍👧 100% _"),
        ("  two\nlines\t\x1b[31m ", "two lines [31m"),
        ("\u202egnp.exe", "gnp.exe"),
        ("می‌خواهم", "می‌خواهم"),
        ("", "conversation-1200"),
        ("Key sk-ant-api03-" + "aB3" * 30, "Key [redacted:anthropic-key]"),
        ("x" * 200, "x" * 200),
    ],
)
def test_a_name_is_any_unicode_without_control_characters(
    service: Service, clock: ManualClock, given: str, kept: str
) -> None:
    session_id = started(service, clock, "One")
    assert service.clear_session(ADA, given).name == kept
    assert [one.name for one in listed(service)] == [kept]
    for name in filter(None, (given, kept)):
        assert service.resume_session(ADA, name).session.session_id == session_id


REFUSED: list[tuple[str, Callable[[Service, dict[str, str]], object]]] = [
    ("clear", lambda s, ids: s.clear_session(ADA, "x" * 201)),
    ("clear", lambda s, ids: s.clear_session(ADA, 7)),  # type: ignore[arg-type]
    ("clear", lambda s, ids: s.clear_session(ADA, "Tax", session_id="nobody's")),
    ("clear", lambda s, ids: s.clear_session(ADA, "Tax", session_id=ids["team"])),
    ("clear", lambda s, ids: s.clear_session(ADA, "Tax", session_id=ids["bob"])),
    ("clear", lambda s, ids: s.clear_session(ADA, "Tax", group="empty")),
    ("resume", lambda s, ids: s.resume_session(ADA, "nobody's", save_current_as="Mine")),
    ("resume", lambda s, ids: s.resume_session(ADA, "", save_current_as="Mine")),
    ("resume", lambda s, ids: s.resume_session(ADA, "999999")),
    ("resume", lambda s, ids: s.resume_session(ADA, "9" * 300)),
    ("resume", lambda s, ids: s.resume_session(ADA, "%")),
    ("resume", lambda s, ids: s.resume_session(ADA, ids["team"], save_current_as="Mine")),
    ("resume", lambda s, ids: s.resume_session(ADA, ids["team entry"])),
    ("resume", lambda s, ids: s.resume_session(ADA, "Team talk")),
    ("resume", lambda s, ids: s.resume_session(ADA, ids["bob"])),
    ("resume", lambda s, ids: s.resume_session(ADA, ids["old"], save_current_as="x" * 201)),
    ("resume", lambda s, ids: s.resume_session(ADA, ids["old"], at="no message")),
    ("resume", lambda s, ids: s.resume_session(ADA, ids["old"], at="said Now")),
    ("rename", lambda s, ids: s.rename_session(ADA, ids["old"], " ")),
    ("rename", lambda s, ids: s.rename_session(ADA, ids["old"], "x" * 201)),
    ("rename", lambda s, ids: s.rename_session(ADA, ids["team"], "Mine")),
    ("rename", lambda s, ids: s.rename_session(ADA, "Old%", "Mine")),
    ("read", lambda s, ids: s.read_session(ADA, ids["bob"])),
    ("read", lambda s, ids: s.read_session(ADA, ids["old"], first=0)),
    ("read", lambda s, ids: s.read_session(ADA, ids["old"], count=201)),
    ("read", lambda s, ids: s.read_session(ADA, ids["old"], group="team")),
    ("rebuild", lambda s, ids: s.rebuild_chat(ADA, ids["team"], 100)),
    ("find", lambda s, ids: s.find_session(ADA, ids["team"])),
]


def test_what_is_refused_is_said_in_words_and_changes_nothing(service: Service, clock: ManualClock) -> None:
    ids = {"bob": started(service, clock, "Bob's", user="bob"), "old": started(service, clock, "Then")}
    service.clear_session(ADA, "Old one")
    ids["team"] = started(service, clock, "Team", group="team")
    ids["team entry"] = str(service.clear_session(ADA, "Team talk", group="team").id)
    started(service, clock, "Now")
    before = rows(service)
    for name, call in REFUSED:
        with pytest.raises((NotFound, InvalidInput)) as refused:
            call(service, ids)
        assert len(str(refused.value)) > 20, name
        assert "Bob's" not in str(refused.value)
        assert rows(service) == before, name


def test_nothing_is_resumed_while_a_request_is_answered_but_from_within_it(
    service: Service, clock: ManualClock
) -> None:
    old, now = started(service, clock, "Then"), started(service, clock, "Now")
    before = rows(service)
    with service.session_keeper.using(ADA, now, MAIN_GROUP):
        with pytest.raises(SessionBusy, match="wait for its end, then resume"):
            service.resume_session(ADA, old)
        assert rows(service) == before
        assert service.resume_session(ADA, old, asked_in=now).session.session_id == old


def test_a_place_that_leads_nowhere_is_made_free_and_a_new_session_begins(
    service: Service, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    old = started(service, clock, "Then")
    with service.database.write() as tx:
        users.lock(tx, ADA, clock())
        tx.execute("update active_sessions set session_id = 'gone' where user_id = 'ada'")
    assert service.active_session(ADA) is None
    assert "the session gone has a place and is not there" in caplog.text
    assert rows(service)["active_sessions"] == []
    with pytest.raises(NotFound, match="there is no active session here to clear"):
        service.clear_session(ADA, "Nothing")
    assert service.start_session(ADA).session_id != old


def test_main_lists_and_reads_all_groups_and_others_their_own_and_global(
    service: Service, clock: ManualClock
) -> None:
    ids = {
        group: started(service, clock, f"Said in {group}", group=group)
        for group in ("main", "team", "other", "global")
    }
    for group, seen in (("main", set(ids)), ("team", {"team", "global"}), ("global", {"global"})):
        assert {one.group_name for one in listed(service, group)} == seen
        assert service.list_sessions(ADA, group=group).total == len(seen)
        assert {one.group_name for one in service.search_sessions(ADA, "said", group=group).sessions} == seen
        for other, session_id in ids.items():
            if other in seen:
                assert service.read_session(ADA, session_id, group=group).group_name == other
            else:
                with pytest.raises(NotFound):
                    service.read_session(ADA, session_id, group=group)
    assert service.list_sessions("bob").total == 0


def test_a_list_comes_in_pages_with_the_newest_message_first(service: Service, clock: ManualClock) -> None:
    ids = [started(service, clock, f"Number {number}") for number in range(5)]
    pages = [listed(service, limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [[ids.index(one.session_id) for one in page] for page in pages] == [[4, 3], [2, 1], [0]]
    assert service.list_sessions(ADA, limit=2).total == 5


def test_a_session_in_which_only_the_agent_spoke_is_listed_with_its_greeting(service: Service) -> None:
    service.remember(ADA, [{"role": "assistant", "content": "Good morning,\nAda"}], "greeted")
    assert [one.preview for one in listed(service)] == ["Good morning, Ada"]


def test_a_search_goes_by_session_with_its_best_hit_and_their_number(
    service: Service, clock: ManualClock
) -> None:
    bike = started(service, clock, "The bicycle is green", "Where is the bicycle pump?", "Lunch was good")
    started(service, clock, "Nothing of interest")
    service.clear_session(ADA, "Bicycle of a friend")
    found = service.search_sessions(ADA, "bicycle")
    assert found.total == 2
    best, by_name = found.sessions
    assert best.session_id == bike
    assert best.match is not None
    assert best.match.hits >= 2
    assert "bicycle" in best.match.snippet
    assert by_name.match is not None
    assert (by_name.name, by_name.match.hits) == ("Bicycle of a friend", 0)
    assert not service.search_sessions(ADA, "submarine").sessions
    assert not service.search_sessions("bob", "bicycle").sessions


def test_what_was_said_in_several_sessions_is_found_in_each(service: Service, clock: ManualClock) -> None:
    ids = [started(service, clock, "The bicycle has a flat tyre") for _ in range(2)]
    ids.append(started(service, clock, "The bicycle has a flat tyre", group="team"))
    found = service.search_sessions(ADA, "bicycle tyre")
    assert {one.session_id for one in found.sessions} == set(ids)
    assert [one.session_id for one in service.search_sessions(ADA, "tyre", group="team").sessions] == ids[2:]


def test_a_long_session_hides_no_other(service: Service, clock: ManualClock) -> None:
    service.remember(ADA, [user_says(f"The bicycle {number} is ready") for number in range(1100)], "long")
    service.remember(ADA, [user_says("A shop that sold me the bicycle and lots of bells")], "short")
    found = service.search_sessions(ADA, "bicycle").sessions
    assert {one.session_id: one.match and one.match.hits for one in found} == {"long": 50, "short": 1}


@pytest.mark.parametrize("query", ["%", "_", "bicyc%", "100\\%", "", "'; drop table sessions"])
def test_wildcards_in_a_search_stand_for_themselves(service: Service, clock: ManualClock, query: str) -> None:
    started(service, clock, "The bicycle is green")
    assert service.search_sessions(ADA, query).sessions == ()
    service.clear_session(ADA, "100\\% sure_")
    found = [one.name for one in service.search_sessions(ADA, query).sessions]
    assert found == (["100\\% sure_"] if query in ("%", "_", "100\\%") else [])


def test_a_search_that_takes_too_long_says_so(service: Service, clock: ManualClock) -> None:
    started(service, clock, "The bicycle is green")
    gate = threading.Event()
    blocking = [threading.Thread(target=service.session_searches.within, args=(60, gate.wait)) for _ in "12"]
    for thread in blocking:
        thread.start()
    try:
        found = service.search_sessions(ADA, "bicycle", seconds=0.05)
        while not found.timed_out:
            # Until both of the threads are taken, a search may still get one.
            found = service.search_sessions(ADA, "bicycle", seconds=0.05)
        assert found.sessions == ()
    finally:
        gate.set()
        for thread in blocking:
            thread.join()
    assert service.search_sessions(ADA, "bicycle").total == 1


def test_a_session_is_read_page_by_page_in_the_order_in_which_it_was_said(
    service: Service, clock: ManualClock
) -> None:
    session_id = started(service, clock, "One", "Two", "Three")
    first = service.read_session(ADA, session_id, count=4)
    assert [one.text for one in first.messages] == ["One", "I see: One", "Two", "I see: Two"]
    assert (first.total, first.next_first) == (6, 5)
    rest = service.read_session(ADA, session_id, first=5, count=4)
    assert [one.text for one in rest.messages] == ["Three", "I see: Three"]
    assert rest.next_first is None
    assert service.read_session(ADA, session_id, first=7).messages == ()


def test_a_page_of_very_long_messages_ends_before_it_is_full(service: Service, clock: ManualClock) -> None:
    session_id = started(service, clock)
    service.remember(ADA, [user_says("x " * 300_000, id=str(number)) for number in range(3)], session_id)
    page = service.read_session(ADA, session_id)
    assert (len(page.messages), page.next_first, page.total) == (1, 2, 3)


def test_a_chat_is_rebuilt_within_its_room_and_begins_with_the_user(
    service: Service, clock: ManualClock
) -> None:
    session_id = started(service, clock, *(f"Message number {number}" for number in range(20)))
    whole = service.rebuild_chat(ADA, session_id, 10_000)
    assert (len(whole.messages), whole.left_out) == (40, 0)
    part = service.rebuild_chat(ADA, session_id, 100)
    assert 0 < len(part.messages) < 40
    assert part.left_out == 40 - len(part.messages)
    assert part.messages[0].role == "user"
    assert part.messages[-1].text == "I see: Message number 19"


def test_a_session_resumed_at_a_message_goes_on_from_there(service: Service, clock: ManualClock) -> None:
    session_id = started(service, clock, "One", "Two", "Three")
    service.resume_session(ADA, session_id, at="said Two")
    rebuilt = service.rebuild_chat(ADA, session_id, 10_000)
    assert [one.text for one in rebuilt.messages] == ["One", "I see: One", "Two"]
    told = service.previous_session(ADA, current=session_id)
    assert told is not None
    assert told.message_count == 3
    assert "Three" not in told.text
    assert service.read_session(ADA, session_id).total == 6
    service.resume_session(ADA, session_id)
    assert service.rebuild_chat(ADA, session_id, 10_000).left_out == 0


def test_names_and_entries_travel_with_an_export(
    service: Service, other_url: str, clock: ManualClock
) -> None:
    tax = started(service, clock, "The tax return")
    service.clear_session(ADA, "Tax 税")
    service.remember(ADA, [user_says("From a client of mine")], "my own id")
    service.rename_session(ADA, "my own id", "Mine")
    service.resume_session(ADA, tax)
    lines = io.BytesIO(b"".join(service.export(ADA)))
    with memory(other_url, clock) as other:
        other.import_lines("eve", lines)
        listed_there = {one.session_id: one.name for one in other.list_sessions("eve").sessions}
        assert listed_there == {tax: "Tax 税", "my own id": "Mine"}
        assert other.resume_session("eve", "Mine").session.session_id == "my own id"
        assert [entry.session_id for entry in other.session_history("eve")] == [tax]


def test_what_is_forgotten_or_erased_is_in_no_list_search_or_history(
    service: Service, clock: ManualClock
) -> None:
    tax = started(service, clock, "The tax return", "The receipts")
    service.clear_session(ADA, "Tax")
    first = service.documents(ADA, session_id=tax)[0]
    service.forget(ADA, document=first.id)
    assert "tax return" not in repr(service.read_session(ADA, tax).messages[0].text)
    service.forget(ADA, session=tax)
    assert (listed(service), service.session_history(ADA)) == ([], [])
    assert service.search_sessions(ADA, "receipts").sessions == ()
    with pytest.raises(NotFound):
        service.resume_session(ADA, "Tax")


def test_a_session_that_came_in_both_ways_is_listed_and_found_once(
    service: Service, clock: ManualClock, tmp_path: Path
) -> None:
    thread = "0b7a3b6e-5b0e-4b0e-9b0e-0b7a3b6e5b0e"
    path = write(tmp_path / "project" / f"{thread}.jsonl", [user_line(0, "The lighthouse is red")])
    service.transcripts.ingest(ADA, path)
    service.remember(ADA, [user_says("The lighthouse is tall")], f"{thread}@live")
    (one,) = listed(service)
    assert one.message_count == 2
    (found,) = service.search_sessions(ADA, "lighthouse").sessions
    assert found.match is not None
    assert found.match.hits == 2
    resumed = service.resume_session(ADA, one.session_id)
    assert [entry.session_id for entry in listed(service)] == [resumed.session.session_id]


@pytest.mark.every_scheme
def test_the_beginning_of_an_id_stands_for_it_within_user_and_group(
    service: Service, clock: ManualClock
) -> None:
    for session, group, user in (
        ("boat-one_1", MAIN_GROUP, ADA),
        ("boat-other", "team", ADA),
        ("boat-one%2", MAIN_GROUP, "bob"),
    ):
        service.remember(user, [user_says("A boat", id="m1")], session, group=group)
    for beginning in ("boat-on", "boat-one…", "boat-one_1"):
        assert service.find_session(ADA, beginning).session_id == "boat-one_1"
    for wrong in ("boat-o", "boat-ot", "boat-one%", "______…", "…"):
        with pytest.raises(NotFound):
            service.find_session(ADA, wrong)
    service.remember(ADA, [user_says("Another", id="m2")], "boat-one_2")
    before = rows(service)
    with pytest.raises(InvalidInput, match="boat-one_1, boat-one_2"):
        service.resume_session(ADA, "boat-one")
    assert rows(service) == before


def test_main_sees_all_groups_of_its_user_and_others_themselves_and_global(
    service: Service, clock: ManualClock
) -> None:
    active = service.start_session("ada", group="work").session_id
    service.remember("ada", [user_says("The release is on Friday")], active, group="work")
    service.remember("ada", [user_says("My bike is green")], "bikes")
    service.set_fact("ada", "town", "Porto", group="home")
    service.remember("bob", [user_says("I am Bob")], "bobs", group="bobs")
    assert [(one.name, one.session_id, one.sessions) for one in service.groups("ada")] == [
        ("main", "", 1),
        ("global", "", 0),
        ("home", "", 0),
        ("work", active, 1),
    ]
    said = service.documents("ada", group="work")[-1].created_at
    assert [one.last_activity_at for one in service.groups("ada", group="work")] == [said, None]
    for group in ("work", "home", "nobodys"):
        assert [one.name for one in service.groups("ada", group=group)] == [group, "global"]
    assert [one.name for one in service.groups("ada", group="global")] == ["global"]
    assert [one.name for one in service.groups("eve")] == ["main", "global"]
    clock.advance(16 * 60)
    assert [one.session_id for one in service.groups("ada", group="work")] == ["", ""]
