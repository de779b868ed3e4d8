"""What `remember` and `add_document` take in, and what becomes of what they should not be given."""

import itertools
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shepherd_memory.errors import InvalidInput
from shepherd_memory.service import Service
from shepherd_memory.text.canonical import canonical_text
from tests.contract.given import ManualClock, drain, examples, facts_of, memory, texts_of, user_says, work
from tests.endpoint import ScriptedEndpoint

HUGE = 10**5000
SURROGATE = "a\ud800b"


def extra_of(service: Service, user_id: str) -> Any:
    (document,) = service.documents(user_id)
    return orjson.loads(document.extra) if document.extra else None


@pytest.mark.every_scheme
def test_documents_are_found_by_each_of_their_facets(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        service.remember(
            "ada",
            [
                user_says("hello", speaker_name="Ada"),
                {"role": "assistant", "content": "hi", "speaker_name": "Max"},
                {"role": "tool", "content": "42", "name": "sum"},
            ],
            "chat",
            group="work",
        )
        service.add_document("ada", "a plan", type="learning", category="knowledge", session_id="plans")
        service.add_document("ada", "I am", type="teaching", category="identity", source="import")
        assert texts_of(service, "ada", type="message") == ["hello", "hi", "42"]
        assert texts_of(service, "ada", category="knowledge") == ["a plan"]
        assert texts_of(service, "ada", session_id="plans") == ["a plan"]
        assert texts_of(service, "ada", role="assistant") == ["hi"]
        assert texts_of(service, "ada", speaker_name="Ada") == ["hello"]
        assert texts_of(service, "ada", speaker_name="sum") == ["42"]
        assert texts_of(service, "ada", speaker_type="agent", session_id="chat") == ["hi", "42"]
        assert texts_of(service, "ada", group="work") == ["hello", "hi", "42"]
        assert texts_of(service, "ada", source="import") == ["I am"]
        assert texts_of(service, "ada", type="message", role="user", session_id="plans") == []
        assert texts_of(service, "ada", limit=2) == ["hello", "hi"]
        assert texts_of(service, "ada", limit=2, newest=True) == ["a plan", "I am"]


@pytest.mark.every_scheme
def test_documents_come_in_the_order_they_were_stored_and_since_goes_by_when_they_were_said(
    url: str, clock: ManualClock
) -> None:
    with memory(url, clock) as service:
        for year in (2024, 2022, 2023):
            service.remember("ada", [user_says(str(year), created_at=f"{year}-05-01T00:00:00Z")], "chat")
        assert texts_of(service, "ada") == ["2024", "2022", "2023"]
        assert texts_of(service, "ada", since=datetime(2023, 1, 1, tzinfo=UTC)) == ["2024", "2023"]
        assert texts_of(service, "ada", since="2024-05-01T00:00:00Z") == ["2024"]
        assert texts_of(service, "ada", since="2024-05-01T02:00:00+02:00") == ["2024"]
        with pytest.raises(InvalidInput, match="yesterday"):
            service.documents("ada", since="yesterday")


@pytest.mark.every_scheme
def test_a_message_with_an_id_is_stored_once_in_its_session(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        first = service.remember("ada", [user_says("one", id="m1"), user_says("two", id="m1")], "chat")
        assert (first.stored, first.known) == (1, 1)
        assert service.remember("ada", [user_says("three", id="m1")], "chat").stored == 0
        assert service.remember("ada", [user_says("four", id="m1")], "other").stored == 1
        assert texts_of(service, "ada") == ["one", "four"]


def test_a_message_without_an_id_gets_one_from_session_position_and_content(
    url: str, clock: ManualClock
) -> None:
    with memory(url, clock) as service:
        history = [user_says("yes"), {"role": "assistant", "content": "no"}, user_says("yes")]
        for end in range(1, 4):
            service.remember("ada", history[:end], "chat")
            clock.advance(60)
        assert texts_of(service, "ada") == ["yes", "no", "yes"]
        result = service.remember("ada", history, "chat")
        assert (result.stored, result.known) == (0, 3)
        assert len(set(result.message_ids)) == 3
        assert service.remember("ada", history, "other").stored == 3


def test_what_is_said_again_later_in_a_session_is_stored_again(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        for city in ("Berlin", "Rome", "Berlin"):
            clock.advance(60)
            assert service.remember("ada", [user_says(f"my city is {city}")], "chat").stored == 1
            work(service)
        assert texts_of(service, "ada") == [f"my city is {city}" for city in ("Berlin", "Rome", "Berlin")]
        assert facts_of(service, "ada") == {"city": "Berlin"}


def test_a_list_that_comes_straight_after_itself_is_a_retry(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        said = [user_says("yes"), user_says("ok then")]
        results = [service.remember("ada", said, "chat") for _ in range(3)]
        assert [(result.stored, result.known) for result in results] == [(2, 0), (0, 2), (0, 2)]
        assert len({result.message_ids for result in results}) == 1


@pytest.mark.parametrize("mark", ["id", "created_at"])
def test_the_same_list_with_other_ids_or_times_is_no_retry(url: str, clock: ManualClock, mark: str) -> None:
    with memory(url, clock) as service:
        for day in (1, 2, 3):
            said = [user_says("yes", **{mark: f"2026-03-0{day}"}), user_says("ok then")]
            assert service.remember("ada", said, "chat").stored == 2
        assert texts_of(service, "ada") == ["yes", "ok then"] * 3


def test_a_window_that_moves_along_a_chat_stores_each_message_once(url: str, clock: ManualClock) -> None:
    said = [user_says(word) for word in ("yes", "no", "yes", "yes", "no", "why", "yes", "no", "yes")]
    with memory(url, clock) as service:
        for end in range(1, len(said) + 1):
            service.remember("ada", said[max(0, end - 4) : end], "chat")
        assert texts_of(service, "ada") == [message["content"] for message in said]


def test_what_was_deleted_in_the_middle_of_a_list_stays_out_and_nothing_is_doubled(
    url: str, clock: ManualClock
) -> None:
    said = [user_says("one"), user_says("two"), user_says("three"), user_says("four", id="m4")]
    with memory(url, clock) as service:
        service.remember("ada", said, "chat")
        for document in service.documents("ada")[1::2]:
            service.forget("ada", document=document.id)
        result = service.remember("ada", [*said, user_says("five")], "chat")
        assert (result.stored, result.known) == (1, 4)
        assert service.remember("ada", [user_says("two")], "chat").stored == 0
        assert texts_of(service, "ada") == ["one", "three", "five"]


def test_what_is_said_again_is_told_apart_by_user_group_and_session(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        for user, session, group in itertools.product(("ada", "bob"), ("a", "b"), ("main", "work")):
            assert service.remember(user, [user_says("yes")], session, group=group).stored == 1
            assert service.remember(user, [user_says("yes")], session, group=group).known == 1


@pytest.mark.every_scheme
def test_a_session_gets_a_name_when_it_has_none(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        one, two = (service.remember("ada", [user_says("hello")]) for _ in range(2))
        assert one.session_id != two.session_id
        assert len(service.documents("ada", session_id=one.session_id)) == 1


@pytest.mark.every_scheme
def test_ids_that_cannot_be_stored_as_they_are_still_find_what_they_name(
    url: str, clock: ManualClock
) -> None:
    with memory(url, clock) as service:
        for number, session in enumerate(["x" * 1000, "a\0b", SURROGATE, "日本", "sk-proj-" + "Ab1" * 16]):
            service.remember("ada", [user_says(f"text {number}")], session)
            assert texts_of(service, "ada", session_id=session) == [f"text {number}"]
            assert service.forget("ada", session=session).documents == 1


def test_a_deleted_message_that_is_handed_in_again_stays_deleted(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        service.remember("ada", [user_says("one", id="m1"), user_says("two")], "chat")
        first, second = service.documents("ada")
        assert service.forget("ada", document=first.id).documents == 1
        assert service.forget("ada", document=first.id).documents == 0
        result = service.remember("ada", [user_says("one", id="m1"), user_says("two")], "chat")
        assert (result.stored, result.known) == (0, 2)
        assert texts_of(service, "ada") == ["two"]
        service.forget("ada", document=second.id)
        assert service.remember("ada", [user_says("one", id="m1"), user_says("two")], "chat").stored == 0
        assert texts_of(service, "ada") == []


SKIPPED: list[Any] = [
    {"role": "system", "content": "be nice"},
    {"role": "developer", "content": "be terse"},
    {"role": "wizard", "content": "abracadabra"},
    {"role": None, "content": "who am I"},
    {"role": ["user"], "content": "a list"},
    {"role": {"a": 1}, "content": "a dict"},
    {"content": "no role"},
    {"role": "user"},
    {"role": "user", "content": None},
    {"role": "user", "content": ""},
    {},
    None,
    "user: hello",
    17,
    ["user", "hello"],
]


def test_what_is_no_message_of_the_conversation_is_skipped_with_a_reason(
    url: str, clock: ManualClock
) -> None:
    with memory(url, clock) as service:
        result = service.remember("ada", [*SKIPPED, user_says("hello")], "chat")
        assert result.stored == 1
        assert [skipped.index for skipped in result.skipped] == list(range(len(SKIPPED)))
        assert all(skipped.reason for skipped in result.skipped)
        assert texts_of(service, "ada") == ["hello"]
        nothing = service.remember("ada", SKIPPED, "chat")
        assert (nothing.stored, bool(nothing.reason)) == (0, True)


@pytest.mark.parametrize("messages", ["hello", b"hello", {"role": "user"}, None, 7, iter([])])
def test_messages_that_are_no_list_are_refused(url: str, clock: ManualClock, messages: Any) -> None:
    with memory(url, clock) as service, pytest.raises(InvalidInput, match="list"):
        service.remember("ada", messages, "chat")


def test_an_empty_list_stores_nothing_and_says_so(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        result = service.remember("ada", [], "chat")
        assert (result.stored, result.queued) == (0, False)
        assert result.reason
        assert sum(service.row_counts("ada").values()) == 0


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}

CONTENTS: list[tuple[Any, str]] = [
    ([{"type": "text", "text": "look"}, IMAGE, {"type": "text", "text": "here"}], "look\nhere"),
    ([IMAGE], ""),
    (["plain", {"type": "input_text", "text": "parts"}], "plain\nparts"),
    ([{"type": ["text"], "text": "odd"}, {"type": {}, "text": "odder"}], ""),
    ([None, 3, [], {"type": "text", "text": None}], ""),
    ({"type": "text", "text": "one part"}, "one part"),
    (True, "True"),
    (12.5, "12.5"),
    (b"bytes", "b'bytes'"),
    (("a", "tuple"), "a\ntuple"),
]


@pytest.mark.parametrize(("content", "text"), CONTENTS, ids=range(len(CONTENTS)))
def test_the_text_of_any_content_is_stored_and_the_rest_is_kept(
    url: str, clock: ManualClock, content: Any, text: str
) -> None:
    with memory(url, clock) as service:
        assert service.remember("ada", [{"role": "user", "content": content}], "chat").stored == 1
        assert texts_of(service, "ada") == [text]
        assert extra_of(service, "ada")["content"] is not None


def test_tool_calls_are_kept_and_named(url: str, clock: ManualClock) -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}},
        {"function": {"name": 3}},
        {"function": None},
        None,
        "sum",
    ]
    with memory(url, clock) as service:
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        assert service.remember("ada", [message], "chat").stored == 1
        (document,) = service.documents("ada")
        assert document.tool_names == "search"
        assert extra_of(service, "ada")["tool_calls"] == calls


@pytest.mark.every_scheme
def test_a_message_of_a_megabyte_is_stored_whole_and_extracted(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    text = "word " * 210_000 + "my pet is Rex"
    for keep in (True, False):
        with memory(url, clock, endpoint.url, memory_documents=keep) as service:
            user = f"ada {keep}"
            service.remember(user, [user_says(text), user_says("my city is Bonn")], "chat")
            assert [len(t) for t in texts_of(service, user)] == ([len(text), 15] if keep else [0, 0])
            drain(service, clock)
            assert facts_of(service, user)["city"] == "Bonn"
            assert max(len(request.body) for request in endpoint.requests) < 100_000


ODD_VALUES: list[tuple[Any, Any]] = [
    (math.nan, None),
    (math.inf, None),
    (2**63 - 1, 2**63 - 1),
    (2**63, str(2**63)),
    (-(2**70), str(-(2**70))),
    (numpy.float64(1.5), 1.5),
    ("nul\0", "nul\ufffd"),
    (SURROGATE, "a\ufffdb"),
    ("\ud83d\ude00", "😀"),
    (b"\xff\xfe", "\ufffd\ufffd"),
    ({1: {None: {(1, 2): True}}}, {"1": {"None": {"(1, 2)": True}}}),
    ((1, 2), [1, 2]),
    (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
]


@pytest.mark.parametrize(("value", "kept"), ODD_VALUES, ids=range(len(ODD_VALUES)))
def test_whatever_comes_along_with_a_message_is_kept_in_a_defined_form(
    url: str, clock: ManualClock, value: Any, kept: Any
) -> None:
    with memory(url, clock) as service:
        assert service.remember("ada", [user_says("hello", value=value)], "chat").stored == 1
        assert extra_of(service, "ada") == (None if kept is None else {"value": kept}) or kept is None


@pytest.mark.parametrize(
    "value", [HUGE, SURROGATE, "\0", math.nan, {HUGE: SURROGATE}, [[HUGE]], object], ids=range(7)
)
def test_no_odd_value_in_any_field_is_an_error(url: str, clock: ManualClock, value: Any) -> None:
    with memory(url, clock) as service:
        for field in ("content", "id", "speaker_name", "created_at", "other", "tool_calls", "role"):
            message = {"role": "user", "content": "hello", field: value}
            assert service.remember(field, [message, user_says("bye")], "chat").stored >= 1
            assert texts_of(service, field)[-1] == "bye"


def test_deeply_nested_values_are_cut_at_a_depth(url: str, clock: ManualClock) -> None:
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    with memory(url, clock) as service:
        assert service.remember("ada", [user_says("hello", deep=deep)], "chat").stored == 1
        loop: list[Any] = []
        loop.append(loop)
        assert service.remember("ada", [user_says("hello", loop=loop)], "chat").stored == 1


def said_at(service: Service) -> datetime:
    return service.documents("ada")[-1].created_at


def test_the_time_of_a_message_is_understood_in_every_usual_form(url: str, clock: ManualClock) -> None:
    moment = datetime(2026, 2, 14, 12, 30, tzinfo=UTC)
    forms = [
        moment,
        moment.replace(tzinfo=None),
        moment.astimezone(timezone(timedelta(hours=-8))),
        "2026-02-14T12:30:00Z",
        "2026-02-14T12:30:00",
        " 2026-02-14 12:30:00+00:00 ",
        "2026-02-14T20:30:00+08:00",
        moment.timestamp(),
        int(moment.timestamp()),
    ]
    with memory(url, clock) as service:
        for number, form in enumerate(forms):
            service.remember("ada", [user_says(f"{number}", created_at=form)], "chat")
            assert said_at(service) == moment, form


NO_TIMES = [
    "soon",
    "",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
    1e300,
    -1e300,
    HUGE,
    math.nan,
    True,
    [2026],
    SURROGATE,
]


@pytest.mark.parametrize("given_time", NO_TIMES, ids=range(len(NO_TIMES)))
def test_a_time_that_is_none_becomes_the_present_and_is_kept_beside_it(
    url: str, clock: ManualClock, given_time: Any
) -> None:
    with memory(url, clock) as service:
        service.remember("ada", [user_says("hello", created_at=given_time)], "chat")
        assert said_at(service) == datetime.fromtimestamp(clock() / 1_000_000, UTC)
        exported = b"".join(service.export("ada"))
        assert b"hello" in exported


@pytest.mark.parametrize(
    "group",
    [SURROGATE, "a\0b", "g" * 257, "", " a", "a\tb", "a/b", "a\\b", "..", "sk-proj-" + "aB3dE5fG7" * 5],
)
def test_a_group_with_a_name_that_none_may_have_is_refused(url: str, clock: ManualClock, group: str) -> None:
    with memory(url, clock) as service:
        with pytest.raises(InvalidInput, match="group's name"):
            service.remember("ada", [user_says("hello")], "chat", group=group)
        with pytest.raises(InvalidInput, match="group's name"):
            service.add_document("ada", "bye", group=group)
        assert service.documents("ada") == []


@pytest.mark.every_scheme
@pytest.mark.parametrize("group", ["Work", "arbeit für Zoë", "g" * 256])
def test_a_group_is_stored_and_found_by_its_name(url: str, clock: ManualClock, group: str) -> None:
    with memory(url, clock) as service:
        service.remember("ada", [user_says("hello")], "chat", group=group)
        service.add_document("ada", "bye", group=group)
        assert texts_of(service, "ada", group=group) == ["hello", "bye"]
        assert texts_of(service, "ada", group=group.swapcase()) == []


@pytest.mark.every_scheme
@pytest.mark.parametrize("facet", ["type", "category", "role", "speaker_name", "speaker_type", "source"])
def test_a_facet_with_odd_text_finds_nothing_and_is_no_error(
    url: str, clock: ManualClock, facet: str
) -> None:
    with memory(url, clock) as service:
        service.remember("ada", [user_says("hello")], "chat")
        for odd in (SURROGATE, "a\0b"):
            assert texts_of(service, "ada", **{facet: odd}) == []


def test_secrets_are_found_in_no_column_of_a_document(url: str, clock: ManualClock) -> None:
    secret = "sk-proj-" + "aB3dE5fG7hI9" * 4
    with memory(url, clock) as service:
        message = user_says(
            f"key {secret}",
            speaker_name=secret,
            id=secret,
            note={secret: [secret]},
            raw=secret.encode(),
        )
        service.remember("ada", [message], secret)
        service.add_document(
            "ada",
            secret,
            session_id="files",
            message_id=secret,
            role=secret,
            speaker_name=secret,
            source=secret,
            source_file=secret,
            tool_names=secret,
            cwd=secret,
            extra={secret: secret, "bytes": secret.encode()},
        )
        service.set_fact("ada", "api key", secret, source=secret)
        service.add_context("ada", secret, secret, source=secret)
        assert len(service.documents("ada")) == 2
        assert secret not in repr(service.documents("ada"))
        assert secret.encode() not in b"".join(service.export("ada"))


@pytest.mark.parametrize(
    "wrong", [{"type": "poem"}, {"category": "x"}, {"speaker_type": "dog"}, {"created_at": "never"}]
)
def test_a_document_with_a_wrong_facet_is_refused(
    url: str, clock: ManualClock, wrong: dict[str, Any]
) -> None:
    with memory(url, clock) as service:
        with pytest.raises(InvalidInput):
            service.add_document("ada", "text", **wrong)
        assert service.documents("ada") == []


def test_a_document_with_a_known_message_id_is_not_stored_again(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        first = service.add_document("ada", "one", session_id="s", message_id="m")
        assert service.add_document("ada", "two", session_id="s", message_id="m") == first
        assert service.add_document("ada", "three") != service.add_document("ada", "three")
        assert texts_of(service, "ada") == ["one", "three", "three"]


@pytest.mark.parametrize("user_id", ["a\0b", SURROGATE, "x" * 257, None, 7])
def test_a_user_id_that_cannot_be_one_is_refused_and_never_changed_into_another(
    url: str, clock: ManualClock, user_id: Any
) -> None:
    with memory(url, clock) as service:
        for call in (service.facts, service.erase, service.context, service.rejected, service.items):
            with pytest.raises(InvalidInput, match="user_id"):
                call(user_id)
        with pytest.raises(InvalidInput, match="user_id"):
            service.remember(user_id, [user_says("hello")])


TEXT = st.text(st.characters(codec=None), max_size=30)
SCALAR = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), TEXT, st.binary(max_size=5), st.datetimes()
)
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALAR | TEXT, inner, max_size=3),
    max_leaves=6,
)
PART = st.fixed_dictionaries({"type": st.just("text") | VALUE, "text": TEXT | VALUE})
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "user", "assistant", "tool", "system"]) | VALUE},
    optional={
        "content": TEXT | st.lists(PART | VALUE, max_size=3) | VALUE,
        "id": TEXT | VALUE,
        "created_at": VALUE,
        "speaker_name": TEXT | VALUE,
        "speaker_type": VALUE,
        "tool_calls": VALUE,
        "anything": VALUE,
    },
)


def test_no_list_of_messages_is_an_error_or_blocks_the_queue(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    numbers = iter(range(10**6))

    @settings(
        max_examples=examples(60),
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(messages=st.lists(MESSAGE | VALUE, max_size=4), session=st.none() | TEXT, keep=st.booleans())
    def check(messages: list[Any], session: str | None, keep: bool) -> None:
        user = f"user {next(numbers)}"
        service = services[keep]
        result = service.remember(user, messages, session)
        assert result.stored + result.known + len(result.skipped) == len(messages)
        stored = service.documents(user)
        assert len(stored) == result.stored
        for document in stored:
            assert canonical_text(document.text) == document.text
            assert document.extra is None or orjson.loads(document.extra) is not None
        again = service.remember(user, messages, result.session_id)
        assert again.stored == 0
        drain(service, clock)
        items = service.items(user)
        assert all(item.status == "done" for item in items)

    with (
        memory(url, clock, endpoint.url) as keeping,
        memory(url, clock, endpoint.url, memory_documents=False) as passing,
    ):
        services = {True: keeping, False: passing}
        check()
