"""A session that was started is handed on the one before it: once, at the tail of its first message."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

import pytest

from shepherd_memory.injection import handing_on
from shepherd_memory.injection.handing_on import HandingRules
from shepherd_memory.injection.prompting import Injected
from shepherd_memory.intake.messages import text_of
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import from_us, iso
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.text.block_seal import RECORD_NOTE, strip_content
from shepherd_memory.text.tokens import estimate_tokens
from tests.contract.given import ManualClock, memory, user_says

BIKE = "My bike is a Brompton, and it is racing green"
CAT = "The cat is called Momo"


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock, agent_name="Julian") as opened:
        yield opened


def answers(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def talk(service: Service, session_id: str = "before", group: str = "main", user_id: str = "ada") -> None:
    said = [user_says(BIKE, id="m1", name="Ada"), answers("A fine bike.", id="m2"), user_says(CAT, id="m3")]
    service.remember(user_id, said, session_id, group=group)


def start(service: Service, **how: Any) -> str:
    return service.start_session("ada", takeover=True, **how).session_id


def first_prompt(service: Service, session_id: str, text: str = "hello", **how: Any) -> Injected:
    return service.inject("ada", [user_says(text)], session_id=session_id, **how)


def record_in(injected: Injected, place: int = 0) -> ElementTree.Element | None:
    """The element at the tail of a message, if there is one."""
    text = text_of(injected.messages[place]["content"])
    assert text.count("<previous-session ") == text.count("</previous-session>") <= 1
    if RECORD_NOTE not in text:
        return None
    start, end = text.index("<previous-session "), text.index("</previous-session>")
    return ElementTree.fromstring(text[start:end] + "</previous-session>")


def lines_in(injected: Injected, place: int = 0) -> list[str]:
    record = record_in(injected, place)
    return [] if record is None else (record.text or "").strip("\n").split("\n")


def texts_of(service: Service, user_id: str = "ada", group: str = "main") -> list[str]:
    return [document.text for document in service.documents(user_id, group=group)]


@pytest.mark.every_scheme
def test_the_first_message_is_told_of_the_session_before(service: Service, clock: ManualClock) -> None:
    talk(service)
    clock.advance(60)
    injected = first_prompt(service, start(service))
    record = record_in(injected)
    assert record is not None
    assert record.attrib == {
        "category": "transcript",
        "session-id": "before",
        "message-count": "3",
        "total-count": "3",
        "ended": iso(clock() - 60_000_000).replace(".000000", "").replace("+00:00", "Z"),
    }
    assert lines_in(injected) == [
        f"[human — Ada]: {BIKE}",
        "[agent — Julian]: A fine bike.",
        f"[human — ada]: {CAT}",
    ]
    assert injected.messages[0]["content"].startswith(f"hello\n\n{RECORD_NOTE}\n<previous-session ")


@pytest.mark.every_scheme
def test_every_later_prompt_has_the_same_bytes_also_in_another_process(
    service: Service, url: str, clock: ManualClock
) -> None:
    talk(service)
    session_id = start(service)
    messages: list[Any] = [user_says("hello")]
    before: list[Any] = []
    with memory(url, clock, agent_name="Other", session_rehydration_tokens=500) as other:
        for number in range(6):
            sent = (service, other)[number % 2].inject("ada", messages, session_id=session_id).messages
            assert sent[: len(before)] == before
            service.remember("ada", messages[-1:], session_id)
            messages, before = [*messages, answers("I see."), user_says(f"and number {number}?")], sent
    assert sum(text_of(one["content"]).count("<previous-session ") for one in before) == 1


def test_sessions_that_begin_with_the_same_words_have_each_its_own(service: Service) -> None:
    talk(service)
    first = start(service)
    assert BIKE in first_prompt(service, first, "hi").messages[0]["content"]
    service.remember("ada", [user_says("I moved to Oslo")], first)
    second = start(service)
    assert [line[-15:] for line in lines_in(first_prompt(service, second, "hi"))] == ["I moved to Oslo"]
    again = service.inject("ada", [user_says("hi"), answers("Hi."), user_says("so?")], session_id=first)
    assert lines_in(again)[0].endswith(BIKE)


def test_only_what_was_started_is_handed_anything(service: Service) -> None:
    talk(service)
    assert record_in(first_prompt(service, "free-form")) is None
    assert record_in(first_prompt(service, "")) is None
    assert record_in(first_prompt(service, start(service, previous="none"))) is None


def test_only_the_first_message_of_a_session_is_told(service: Service) -> None:
    talk(service)
    messages = [user_says("hello"), answers("Hello."), user_says("and now?")]
    injected = service.inject("ada", messages, session_id=start(service))
    assert record_in(injected, 0) is None
    assert record_in(injected, 2) is None


def test_zero_tokens_hand_on_nothing(url: str, clock: ManualClock) -> None:
    with memory(url, clock, session_rehydration_tokens=0) as service:
        talk(service)
        assert record_in(first_prompt(service, start(service))) is None


def test_a_session_is_handed_on_that_the_caller_names(service: Service) -> None:
    talk(service)
    service.remember("ada", [user_says("I moved to Oslo")], "later")
    assert lines_in(first_prompt(service, start(service)))[-1].endswith("I moved to Oslo")
    assert lines_in(first_prompt(service, start(service, previous="before")))[0].endswith(BIKE)


def test_messages_stand_in_the_order_in_which_they_were_said(service: Service, clock: ManualClock) -> None:
    times = {name: iso(clock() + at * 1_000_000) for at, name in enumerate(("one", "two", "three"))}
    for name in ("two", "three", "one"):
        service.remember("ada", [user_says(name, created_at=times[name])], "before")
    assert [line[-3:] for line in lines_in(first_prompt(service, start(service)))] == ["one", "two", "ree"]


def test_images_tools_and_empty_messages_are_left_out(service: Service) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    call = {"id": "t", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    said = [
        user_says(BIKE),
        {"role": "user", "content": [image]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t", "content": "found"},
        answers(" \u200b "),
        answers("I see."),
    ]
    service.remember("ada", said, "before")
    record = record_in(first_prompt(service, start(service)))
    assert record is not None
    assert (record.attrib["message-count"], record.attrib["total-count"]) == ("2", "2")


def test_a_transcript_that_is_handed_in_is_told_like_documents(service: Service) -> None:
    told = first_prompt(service, start(service, previous="none")).messages
    transcript = [
        {
            "role": "user",
            "speakerType": "human",
            "speakerName": "Marcus",
            "text": "The password: hunter2hunter2",
        },
        {
            "role": "assistant",
            "speakerType": "agent",
            "blocks": [
                {"type": "text", "text": "One."},
                {"type": "tool_use", "name": "Read"},
                {"type": "text", "text": "Two."},
            ],
        },
        {"role": "user", "text": None},
        "nonsense",
        {"role": "user", "text": told[0]["content"]},
    ]
    injected = first_prompt(service, start(service, previous_transcript=transcript))
    marcus, *rest = lines_in(injected)
    assert marcus.startswith("[human — Marcus]: The password: [redacted:")
    assert rest == ["[agent — Julian]: One.", "  Two.", "[human — ada]: hello"]


@pytest.mark.every_scheme
def test_what_is_handed_on_is_never_stored_or_handed_on_again(service: Service) -> None:
    talk(service)
    session_id = start(service)
    part = {"type": "text", "text": "hello"}
    for content in ("hello", [part], [{"type": "input_text", "text": "hello"}]):
        injected = service.inject("ada", [{"role": "user", "content": content}], session_id=session_id)
        assert record_in(injected) is not None
        assert strip_content(injected.messages[0]["content"]) == content
        service.remember_exchange(
            "ada", injected.messages, text_of(injected.messages[0]["content"]), session_id
        )
        service.remember("ada", injected.messages, session_id)
    assert not any("<previous-session" in text or RECORD_NOTE in text for text in texts_of(service))
    third = first_prompt(service, start(service))
    assert "Brompton" not in third.messages[0]["content"]
    assert "hello" in lines_in(third)[0]


def test_recall_does_not_repeat_what_is_handed_on(service: Service) -> None:
    talk(service)
    session_id = start(service)
    messages = [user_says("What bike do I have?")]
    first = service.inject("ada", messages, session_id=session_id)
    assert first.messages[0]["content"].count("Brompton") == 1
    later = [*messages, answers("A Brompton."), user_says("Which colour is my Brompton bike?")]
    second = service.inject("ada", later, session_id=session_id)
    assert "racing green" not in second.messages[2]["content"]


def test_recall_tells_what_was_left_out_of_a_long_message(service: Service) -> None:
    long = "filler words here. " * 400
    service.remember("ada", [user_says(f"{long}The safe stands behind the bookshelf. {long}")], "before")
    session_id = start(service)
    injected = first_prompt(service, session_id, "Where does the safe stand?")
    record = injected.messages[0]["content"].partition("</previous-session>")
    assert " […] " in record[0]
    assert "bookshelf" not in record[0]
    assert "behind the bookshelf" in record[2]


def test_what_is_handed_on_takes_nothing_of_what_memories_may_take(url: str, clock: ManualClock) -> None:
    with memory(url, clock, rag_max_conversation_tokens=200, rag_max_tokens=100) as service:
        talk(service)
        service.remember("ada", [user_says("My dentist is Doctor Weiss")], "other")
        session_id = start(service, previous="before")
        messages = [user_says("hello")]
        first = service.inject("ada", messages, session_id=session_id)
        assert first.block is not None
        assert first.block.tokens > 100
        later = [*messages, answers("Hello."), user_says("Who is my dentist, Doctor Weiss?")]
        assert (
            "Weiss"
            in service.inject("ada", later, session_id=session_id).messages[2]["content"].split("\n\n")[1]
        )


@pytest.mark.every_scheme
def test_a_message_that_is_forgotten_leaves_at_once_and_the_others_stay(service: Service) -> None:
    talk(service)
    session_id = start(service)
    messages: list[Any] = [user_says("hello")]
    first_prompt(service, session_id)
    later = [*messages, answers("Hello."), user_says("and now?")]
    service.inject("ada", later, session_id=session_id)
    (bike,) = [one for one in service.documents("ada") if one.text == BIKE]
    service.forget("ada", document=bike.id)
    injected = service.inject("ada", later, session_id=session_id)
    assert lines_in(injected) == ["[agent — Julian]: A fine bike.", f"[human — ada]: {CAT}"]
    assert injected.messages == service.inject("ada", later, session_id=session_id).messages


def test_a_session_that_is_forgotten_leaves_at_once(service: Service) -> None:
    talk(service)
    session_id = start(service)
    first_prompt(service, session_id)
    service.forget("ada", session="before")
    later = [user_says("hello"), answers("Hello."), user_says("and now?")]
    for messages in (later[:1], later):
        assert record_in(service.inject("ada", messages, session_id=session_id)) is None


def test_what_was_handed_in_and_is_forgotten_leaves_at_once(service: Service) -> None:
    talk(service)
    transcript = [{"role": "user", "text": BIKE}, {"role": "user", "text": "Something else"}]
    session_id = start(service, previous_transcript=transcript)
    assert len(lines_in(first_prompt(service, session_id))) == 2
    (bike,) = [one for one in service.documents("ada") if one.text == BIKE]
    service.forget("ada", document=bike.id)
    later = [user_says("hello"), answers("Hello."), user_says("and now?")]
    assert lines_in(service.inject("ada", later, session_id=session_id)) == ["[human — ada]: Something else"]
    service.forget("ada", session=session_id)
    assert "Something else" not in str(service.inject("ada", later, session_id=session_id).messages)


def test_an_erased_user_who_begins_again_is_handed_nothing(service: Service) -> None:
    talk(service)
    session_id = start(service)
    first_prompt(service, session_id)
    service.erase("ada")
    service.start_session("ada", session_id=session_id)
    assert record_in(first_prompt(service, session_id)) is None


@pytest.mark.every_scheme
def test_nothing_of_another_user_or_group_is_handed_on(service: Service) -> None:
    talk(service, user_id="bob")
    talk(service, group="club")
    assert record_in(first_prompt(service, start(service))) is None
    for group in ("club", "other", "main"):
        here = service.start_session("ada", group=group, takeover=True).session_id
        found = record_in(first_prompt(service, here, group=group)) is not None
        assert found == (group == "club")
    for user_id, group in (("ada", "main"), ("ada", "other"), ("eve", "club"), ("unknown", "main")):
        assert service.previous_session(user_id, group=group) is None
        assert service.previous_session(user_id, group=group, session_id="before") is None
    previous = service.previous_session("ada", group="club")
    assert previous is not None
    assert (previous.session_id, previous.message_count) == ("before", 3)


def test_of_the_model_s_window_at_most_a_quarter_is_taken(service: Service) -> None:
    service.remember("ada", [user_says(f"This is statement number {n}.") for n in range(100)], "before")
    for window, most in ((0, 2000), (100_000, 2000), (2000, 500), (200, 50)):
        block = first_prompt(service, start(service, previous="before"), context_window=window).block
        assert estimate_tokens(block.text if block else "") <= most + 20


@pytest.mark.every_scheme
def test_documents_of_the_categories_that_are_asked_for_stand_before_it(url: str, clock: ManualClock) -> None:
    with memory(url, clock, session_rehydration_context="both") as service:
        service.add_document("ada", "Marcus prefers tea", category="knowledge", type="learning")
        service.add_document(
            "ada", "Chose the name Julian", category="identity", type="marker", group="global"
        )
        service.add_document("ada", "of another group", category="identity", type="marker", group="club")
        service.add_document("bob", "of another user", category="identity", type="marker")
        talk(service)
        session_id = start(service)
        text = first_prompt(service, session_id).messages[0]["content"]
        assert text.startswith(
            f"hello\n\n{RECORD_NOTE}\n"
            '<context category="identity" document-count="1">\n- Chose the name Julian\n</context>\n'
            '<context category="knowledge" document-count="1">\n- Marcus prefers tea\n</context>\n'
            "<previous-session "
        )
        assert strip_content(text) == "hello"
        (tea,) = [one for one in service.documents("ada") if "tea" in one.text]
        service.forget("ada", document=tea.id)
        assert "tea" not in first_prompt(service, session_id).messages[0]["content"]


def test_the_previous_session_is_the_newest_other_one_that_is_not_active(
    service: Service, clock: ManualClock
) -> None:
    assert service.previous_session("ada") is None
    talk(service)
    service.add_document("ada", "without a session", category="knowledge")
    clock.advance(60)
    running = start(service)
    service.remember("ada", [user_says("I moved to Oslo")], running)
    previous = service.previous_session("ada")
    assert previous is not None
    assert (previous.session_id, previous.message_count, previous.total_count) == ("before", 3, 3)
    assert previous.ended == from_us(clock() - 60_000_000)
    assert previous.text.startswith(f"{RECORD_NOTE}\n<previous-session ")
    service.end_session("ada", running)
    assert service.previous_session("ada").session_id == running  # type: ignore[union-attr]
    assert service.previous_session("ada", current="x").session_id == running  # type: ignore[union-attr]
    started = service.previous_session("ada", current=running)
    assert started is not None
    assert started.session_id == "before"
    assert service.previous_session("ada", session_id="before", budget_tokens=20) is None
    assert service.previous_session("ada", session_id="nobody's") is None


@pytest.mark.every_scheme
def test_a_session_of_a_folder_follows_one_of_that_folder(service: Service, clock: ManualClock) -> None:
    places = ["/work/a", "/work/ab", "/work/a/deep", "", "/else"]
    for number, cwd in enumerate(places):
        session_id = start(service, session_id=f"s{number}", cwd=cwd)
        service.remember("ada", [user_says(f"said in {number}")], session_id)
        service.end_session("ada", session_id)
        clock.advance(60)

    def found(cwd: str) -> str:
        previous = service.previous_session("ada", cwd=cwd)
        return previous.session_id if previous else ""

    assert [found(cwd) for cwd in ("", "/work/a", "/work/a/", "/work/ab", "/work/abc", "/work")] == [
        *("s4", "s2", "s2", "s1", "", "s2")
    ]
    service.forget("ada", session="s2")
    assert found("/work/a") == "s0"
    assert lines_in(first_prompt(service, start(service, cwd="/work/ab"))) == ["[human — ada]: said in 1"]


def test_a_session_that_nothing_is_left_of_is_passed_over(service: Service, clock: ManualClock) -> None:
    talk(service)
    clock.advance(60)
    service.remember("ada", [user_says("I moved to Oslo")], "later")
    (oslo,) = service.documents("ada", session_id="later")
    service.forget("ada", document=oslo.id)
    assert service.previous_session("ada").session_id == "before"  # type: ignore[union-attr]


@dataclass
class CountingConnection:
    """A connection that counts the characters of text that were read through it."""

    inner: Connection
    read: int = 0
    queries: list[str] = field(default_factory=list)

    def rows(self, query: str, **values: Any) -> list[Row]:
        rows = self.inner.rows(query, **values)
        self.read += sum(len(value) for row in rows for value in row if isinstance(value, str))
        return rows

    def row(self, query: str, **values: Any) -> Row | None:
        return self.inner.row(query, **values)


def test_a_very_long_session_is_not_read_whole(service: Service) -> None:
    service.remember(
        "ada", [user_says(f"{number} " + "many words " * 1000) for number in range(400)], "before"
    )
    with service.database.read() as connection:
        counting: Any = CountingConnection(connection)
        told = handing_on.tell_named(counting, "ada", "before", HandingRules(2000), "main")
    assert told is not None
    assert told.total_count == 400
    assert counting.read < 400_000


def test_what_was_handed_on_is_in_the_log_and_counts_as_no_use(service: Service) -> None:
    talk(service)
    first_prompt(service, start(service))
    said = service.documents("ada", session_id="before")
    assert {one.entry_id for one in service.why("ada")} == {document.id for document in said}
    assert {document.use_count for document in said} == {0}


def resumed(service: Service, **how: Any) -> str:
    """The session `before`, made active again."""
    return service.resume_session("ada", "before", **how).session.session_id


@pytest.mark.every_scheme
def test_a_resumed_session_is_told_what_was_said_in_it_before(service: Service, clock: ManualClock) -> None:
    talk(service)
    start(service)
    session_id = resumed(service)
    messages: list[Any] = [user_says("where were we?")]
    before: list[Any] = []
    for number in range(3):
        injected = service.inject("ada", messages, session_id=session_id)
        assert injected.messages[: len(before)] == before
        assert [line.partition(": ")[2] for line in lines_in(injected)] == [BIKE, "A fine bike.", CAT]
        record = record_in(injected)
        assert record is not None
        assert record.attrib["session-id"] == "before"
        service.remember("ada", messages[-1:], session_id)
        messages, before = [*messages, answers("I see."), user_says(f"number {number}")], injected.messages
    assert texts_of(service) == [BIKE, "A fine bike.", CAT, "where were we?", "number 0", "number 1"]


def test_a_resumed_session_goes_on_from_a_message(service: Service) -> None:
    talk(service)
    injected = first_prompt(service, resumed(service, at="m1"))
    assert lines_in(injected) == [f"[human — Ada]: {BIKE}"]


def test_what_is_forgotten_leaves_a_resumed_session_and_what_was_said_since_does_not_come_in(
    service: Service,
) -> None:
    talk(service)
    session_id = resumed(service)
    assert len(lines_in(first_prompt(service, session_id))) == 3
    service.remember("ada", [user_says("hello"), answers("Said since")], session_id)
    bike = next(one for one in service.documents("ada") if one.text == BIKE)
    service.forget("ada", document=bike.id)
    messages = [user_says("hello"), answers("Said since"), user_says("more")]
    again = service.inject("ada", messages, session_id=session_id)
    assert [line.partition(": ")[2] for line in lines_in(again)] == ["A fine bike.", CAT]


def test_of_a_long_session_half_the_window_is_brought_back_with_a_note(service: Service) -> None:
    said = [user_says(f"{number} " + "many words " * 100, id=str(number)) for number in range(100)]
    service.remember("ada", said, "before")
    session_id = resumed(service)
    small = first_prompt(service, session_id, "one", context_window=8_000)
    text = small.messages[0]["content"]
    assert 3_000 < estimate_tokens(text) <= 4_000 + 50
    lines = lines_in(small)
    assert lines[0] == f"[… {100 - len(lines) + 1} earlier messages left out …]"
    assert lines[-1].startswith("[human — ada]: 99 many words")
    unknown = first_prompt(service, session_id, "two").messages[0]["content"]
    assert 7_000 < estimate_tokens(unknown) <= 8_000 + 50


def test_a_client_that_sends_its_messages_again_gets_them_back_once(service: Service) -> None:
    talk(service)
    session_id = resumed(service)
    sent = service.inject(
        "ada", [user_says(BIKE), answers("A fine bike."), user_says(CAT)], session_id=session_id
    )
    assert record_in(sent) is None
