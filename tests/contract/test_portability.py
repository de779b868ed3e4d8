"""Export and import: lossless between any two databases, careful with what is there, clear about errors."""

import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.maintenance import portability
from shepherd_memory.memory import rejections
from shepherd_memory.service import Service
from shepherd_memory.storage import users
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.work import ledger
from tests.contract.given import (
    NOON,
    ManualClock,
    drain,
    everything_of,
    examples,
    facts_of,
    memory,
    pairs_of,
    texts_of,
    user_says,
    work,
)
from tests.endpoint import ScriptedEndpoint, reply

numbers = itertools.count()


def export(service: Service, user_id: str) -> bytes:
    return b"".join(service.export(user_id))


def take_in(service: Service, user_id: str, data: bytes) -> portability.Imported:
    return service.import_lines(user_id, io.BytesIO(data))


def body(data: bytes) -> bytes:
    """Everything after the header, which tells the time of the export."""
    return data.split(b"\n", 1)[1]


def furnish(service: Service, clock: ManualClock, user_id: str, endpoint_used: bool = False) -> None:
    """Some of everything."""
    for value in ("Bonn", "Rome"):
        clock.advance(1)
        service.set_fact(user_id, "city", value)
    service.set_fact(user_id, "gone", "x")
    service.forget(user_id, fact="gone")
    service.add_context(user_id, "Where?", "There")
    service.add_document(user_id, "a plan", session_id="files", extra={"a": [1, 2.5, None, "ü"]})
    service.remember(user_id, [user_says("hello", id="m1"), user_says("bye", id="m2", mood="sad")], "chat")
    service.remember(user_id, [user_says("later")], "chat", extract=False)
    service.forget(user_id, document=service.documents(user_id)[-1].id)
    with service.database.write() as tx:
        row_id = users.lock(tx, user_id, clock())
        where = Provenance(clock(), "live", "chat", "m1")
        refused = rejections.NewRejection("fact", "pet", "Rex", "not said by the user", "rex", where)
        rejections.insert(tx, user_id, row_id, refused, clock())
        ledger.record(tx, user_id, ledger.EXTRACTION, ledger.TokenCost(2, 1, 30, 4), clock())


@pytest.mark.every_scheme
def test_a_user_comes_back_byte_for_byte_on_any_database(
    url: str, other_url: str, tmp_path: Path, clock: ManualClock
) -> None:
    with memory(url, clock) as service:
        furnish(service, clock, "ada")
        furnish(service, clock, "bob")
        first = export(service, "ada")
    for number, place in enumerate([other_url, f"{tmp_path}/sqlite.db", other_url]):
        with memory(place, ManualClock(clock() + 86_400_000_000)) as service:
            assert take_in(service, f"ada {number}", first).lines["fact"] == 1
            second = export(service, f"ada {number}")
            assert body(second) == body(first)
            first = second


@pytest.mark.every_scheme
def test_importing_twice_adds_nothing(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        furnish(service, clock, "ada")
        data = export(service, "ada")
        take_in(service, "ada", data)
        assert body(export(service, "ada")) == body(data)
        for _ in range(2):
            take_in(service, "copy", data)
            assert body(export(service, "copy")) == body(data)


@pytest.mark.every_scheme
def test_an_export_holds_one_user_alone(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        furnish(service, clock, "ada")
        service.set_fact("bob", "city", "Atlantis")
        assert b"Atlantis" not in export(service, "ada")
        before = everything_of(service.database, "bob")
        take_in(service, "carol", export(service, "ada"))
        assert everything_of(service.database, "bob") == before
        assert list(map(json.loads, export(service, "nobody").splitlines()))[1:] == []


TEXT = st.text(st.characters(codec=None), min_size=1, max_size=20)
KEY = st.text(st.characters(codec=None), max_size=12).map(lambda text: "k" + text)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
MOMENT = st.datetimes().map(lambda moment: moment.isoformat())

Step = Callable[[Service, str], Any]

STEP = st.one_of(
    st.builds(lambda key, value: lambda s, u: s.set_fact(u, key, f"v{value}"), KEY, TEXT),
    st.builds(lambda key: lambda s, u: s.forget(u, fact=key), KEY),
    st.builds(lambda q, a: lambda s, u: s.add_context(u, f"q{q}", f"a{a}"), TEXT, TEXT),
    st.builds(
        lambda text, extra, at, where: (
            lambda s, u: s.add_document(
                u, text, extra=extra, created_at=at, session_id=where, source_file=text, cwd=text
            )
        ),
        TEXT,
        JSON,
        MOMENT,
        TEXT,
    ),
    st.builds(
        lambda text, more, session, wanted: (
            lambda s, u: s.remember(
                u,
                [user_says(text, more=more), {"role": "assistant", "content": text}],
                session,
                extract=wanted,
            )
        ),
        TEXT,
        JSON,
        TEXT,
        st.booleans(),
    ),
    st.builds(lambda session: lambda s, u: s.forget(u, session=session), TEXT),
)


def test_whatever_a_user_has_survives_the_way_through_another_database_and_back(
    url: str, tmp_path: Path, clock: ManualClock
) -> None:
    with (
        memory(f"{tmp_path}/one.db", clock) as one,
        memory(url, clock) as between,
        memory(f"{tmp_path}/two.db", clock) as two,
    ):

        @settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
        @given(steps=st.lists(STEP, max_size=8))
        def check(steps: list[Step]) -> None:
            user = f"user {next(numbers)}"
            for step in steps:
                clock.advance(1)
                step(one, user)
            data = export(one, user)
            for service in (between, two):
                take_in(service, user, data)
                assert body(export(service, user)) == body(data)
                data = export(service, user)
            assert [d.text for d in two.documents(user)] == [d.text for d in one.documents(user)]

        check()


def test_an_import_into_a_user_with_data_keeps_the_newest_statement_in_view(
    url: str, clock: ManualClock
) -> None:
    with memory(url, clock) as service:
        service.set_fact("old", "city", "Bonn")
        service.set_fact("old", "pet", "Rex")
        older = export(service, "old")
        clock.advance(60)
        service.set_fact("ada", "city", "Rome")
        service.set_fact("ada", "car", "red")
        clock.advance(60)
        service.set_fact("new", "city", "Oslo")
        newer = export(service, "new")
        for data in (older, newer, older, newer):
            take_in(service, "ada", data)
        assert facts_of(service, "ada") == {"city": "Oslo", "pet": "Rex", "car": "red"}
        assert [past.value for past in service.fact_history("ada", "city")] == ["Bonn", "Rome", "Oslo"]


def test_what_the_user_deleted_does_not_come_back_by_an_import(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        furnish(service, clock, "ada")
        data = export(service, "ada")
        service.forget("ada", fact="city")
        service.forget("ada", context=service.context("ada")[0].id)
        service.forget("ada", session="chat")
        take_in(service, "ada", data)
        assert facts_of(service, "ada") == {}
        assert service.fact_history("ada", "city") == []
        assert pairs_of(service, "ada") == []
        assert texts_of(service, "ada") == ["a plan"]


def test_tombstones_travel_with_the_user(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        furnish(service, clock, "ada")
        before = export(service, "ada")
        clock.advance(1)
        service.forget("ada", fact="city")
        take_in(service, "copy", export(service, "ada"))
        take_in(service, "copy", before)
        assert facts_of(service, "copy") == {}
        clock.advance(1)
        service.set_fact("copy", "city", "Oslo")
        assert facts_of(service, "copy") == {"city": "Oslo"}


def test_of_two_deletions_the_later_one_counts_after_an_import(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        for user in ("ada", "copy"):
            service.set_fact(user, "city", "Rome")
            service.forget(user, fact="city")
        clock.advance(60)
        service.set_fact("ada", "city", "Rome")
        before = export(service, "ada")
        clock.advance(60)
        service.forget("ada", fact="city")
        take_in(service, "copy", export(service, "ada"))
        take_in(service, "copy", before)
        assert facts_of(service, "copy") == {}


@pytest.mark.every_scheme
def test_what_was_deleted_there_is_deleted_here_unless_it_was_said_after_that(
    url: str, clock: ManualClock
) -> None:
    with memory(url, clock) as service:
        furnish(service, clock, "ada")
        take_in(service, "copy", export(service, "ada"))
        take_in(service, "bystander", export(service, "ada"))
        clock.advance(1)
        service.forget("ada", fact="city")
        service.forget("ada", context=service.context("ada")[0].id)
        service.forget("ada", session="chat")
        deletions = export(service, "ada")
        clock.advance(1)
        service.set_fact("copy", "food", "soup")
        take_in(service, "copy", deletions)
        assert facts_of(service, "copy") == {"food": "soup"}
        assert service.fact_history("copy", "city") == []
        assert pairs_of(service, "copy") == []
        assert texts_of(service, "copy") == ["a plan"]
        assert "chat" not in {one.session_id for one in service.list_sessions("copy").sessions}
        service.set_fact("copy", "city", "Oslo")
        take_in(service, "copy", deletions)
        assert facts_of(service, "copy") == {"food": "soup", "city": "Oslo"}
        assert len(texts_of(service, "bystander")) > 1


def test_deletions_that_are_imported_into_a_group_take_nothing_of_another(
    url: str, clock: ManualClock
) -> None:
    with memory(url, clock) as service:
        furnish(service, clock, "ada")
        before = export(service, "ada")
        for group in ("main", "work"):
            service.import_lines("copy", io.BytesIO(before), group=group)
        clock.advance(1)
        service.forget("ada", fact="city")
        service.forget("ada", session="chat")
        service.import_lines("copy", io.BytesIO(export(service, "ada")), group="work")
        assert facts_of(service, "copy") == {"city": "Rome"}
        assert service.facts("copy", group="work") == []
        assert [one.text for one in service.documents("copy", group="work")] == ["a plan"]
        assert [one.group_name for one in service.documents("copy", session_id="chat")] == ["main", "main"]


@pytest.mark.every_scheme
@pytest.mark.parametrize("by", ["fact", "document"])
def test_what_rests_on_a_statement_of_which_one_row_was_deleted_moves_with_the_user(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, by: str
) -> None:
    endpoint.default = reply({"pet": "Rex", "city": "Bonn"})
    with memory(url, clock, endpoint.url) as service:
        service.remember("ada", [user_says("My pet is Rex. My city is Bonn.")], "chat")
        work(service)
        clock.advance(1)
        before = export(service, "ada")
        service.forget("ada", only=True, **({by: "city"} if by == "fact" else {by: document_of(service)}))
        left = facts_of(service, "ada")
        assert left["pet"] == "Rex"
        data = export(service, "ada")
        for _ in range(2):
            take_in(service, "copy", data)
        assert facts_of(service, "copy") == left
        # A file that knows nothing of the deletion brings nothing back.
        service.forget("copy", fact="pet", only=True)
        for older in (before, data):
            take_in(service, "copy", older)
        assert "pet" not in facts_of(service, "copy")


def document_of(service: Service) -> int:
    (document,) = service.documents("ada")
    return document.id


@pytest.mark.every_scheme
def test_extraction_goes_on_after_an_import_where_it_was_at_the_export(
    url: str, other_url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        service.remember("ada", [user_says("my pet is Rex")], "chat")
        work(service)
        service.remember("ada", [user_says("my city is Bonn")], "chat")
        data = export(service, "ada")
    with memory(other_url, clock, endpoint.url) as service:
        take_in(service, "ada", data)
        before = len(endpoint.requests)
        drain(service, clock)
        assert facts_of(service, "ada") == {"pet": "Rex", "city": "Bonn"}
        assert len(endpoint.requests) == before + 1


def lines_of(service: Service, clock: ManualClock) -> list[dict[str, Any]]:
    user = f"source {next(numbers)}"
    furnish(service, clock, user)
    return [json.loads(line) for line in export(service, user).splitlines()]


def encoded(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def index_of(lines: list[dict[str, Any]], name: str) -> int:
    return next(index for index, line in enumerate(lines) if line.get("line") == name)


BREAKING: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("fact", lambda line: line.pop("value")),
    ("fact", lambda line: line.update(surprise=1)),
    ("fact", lambda line: line.update(value=17)),
    ("fact", lambda line: line.update(value=None)),
    ("fact", lambda line: line.update(use_count="many")),
    ("fact", lambda line: line.update(use_count=-1)),
    ("fact", lambda line: line.update(use_count=True)),
    ("fact", lambda line: line.update(use_count=2**63)),
    ("fact", lambda line: line.update(use_count=10**30)),
    ("fact", lambda line: line.update(stated_at="soon")),
    ("fact", lambda line: line.update(stated_at=1_700_000_000)),
    ("fact", lambda line: line.update(stated_at="9999-12-31T23:59:59-14:00")),
    ("fact", lambda line: line.update(key="!!!")),
    ("fact", lambda line: line.update(line="poem")),
    ("fact", lambda line: line.update(line=[])),
    ("fact", lambda line: line.update(line=None)),
    ("rejection", lambda line: line.update(kind="poem")),
    ("tombstone", lambda line: line.update(kind="poem")),
    ("document", lambda line: line.update(text=["a"])),
    ("usage", lambda line: line.update(calls=1.5)),
    ("session", lambda line: line.pop("wanted_through")),
]


def test_a_wrong_line_is_refused_by_its_number(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        lines = lines_of(service, clock)
        for number, (name, breaking) in enumerate(BREAKING):
            broken = [dict(line) for line in lines]
            index = index_of(broken, name)
            breaking(broken[index])
            with pytest.raises(InvalidInput, match=f"^line {index + 1}: "):
                take_in(service, f"ada {number}", encoded(broken))
            stored = sum(service.row_counts(f"ada {number}").values())
            assert stored == 0, "a batch is stored whole or not at all"


BAD_FILES: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda data: b"", "line 1"),
    (lambda data: b"hello\n", "line 1"),
    (lambda data: b"[]\n", "line 1"),
    (lambda data: b'{"format": "other"}\n', "line 1.*not an export"),
    (lambda data: data.replace(b'"version":4', b'"version":5', 1), "line 1.*version 5.*upgrade"),
    (lambda data: data[: len(data) - 20], r"line \d+.*middle of a line"),
    (lambda data: data + b"{\n", r"line \d+.*not JSON"),
    (lambda data: data + b"17\n", r"line \d+.*not a JSON object"),
    (lambda data: data + b'{"line": "\xff\xfe"}\n', r"line \d+.*not JSON"),
    (lambda data: data + b"[" * 100_000 + b"\n", r"line \d+.*not JSON"),
    (lambda data: data.split(b"\n", 1)[1], "line 1.*not an export"),
]


def test_a_damaged_file_is_refused_with_the_line(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        furnish(service, clock, "ada")
        whole = export(service, "ada")
        for damage, message in BAD_FILES:
            with pytest.raises(InvalidInput, match=message):
                take_in(service, "copy", damage(whole))


def test_after_an_error_the_repaired_file_can_be_imported_again(url: str, clock: ManualClock) -> None:
    count = portability.BATCH + 20
    with memory(url, clock) as service:
        service.remember("ada", [user_says(f"text {number}") for number in range(count)], "chat")
        whole = export(service, "ada")
        with pytest.raises(InvalidInput, match="line"):
            take_in(service, "copy", whole[:-30])
        assert len(service.documents("copy")) == portability.BATCH
        seen: list[int] = []
        service.import_lines("copy", io.BytesIO(whole), seen.append)
        assert sum(seen) == len(whole)
        assert body(export(service, "copy")) == body(whole)


def test_a_file_made_by_hand_cannot_smuggle_in_what_could_not_be_stored(url: str, clock: ManualClock) -> None:
    secret = "ghp_" + "aB3dE5fG7hI9" * 3
    with memory(url, clock) as service:
        lines = lines_of(service, clock)
        fact, pair = lines[index_of(lines, "fact")], lines[index_of(lines, "context")]
        document = lines[index_of(lines, "document")]
        fact.update(key="User's Home Town", value=f"key {secret}")
        pair.update(digest="0" * 32)
        document.update(text=f"{secret} \0", message_id="x" * 9999, extra={"note": secret})
        take_in(service, "ada", encoded(lines))
        assert secret.encode() not in export(service, "ada")
        assert service.get_fact("ada", "home town") is not None
        assert service.forget("ada", fact="home_town").facts == 1
        assert service.add_context("ada", pair["question"], pair["answer"]) == "refreshed"


def test_an_imported_rejection_can_be_accepted(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        furnish(service, clock, "ada")
        take_in(service, "copy", export(service, "ada"))
        (refused,) = service.rejected("copy")
        service.accept("copy", refused.id)
        assert facts_of(service, "copy")["pet"] == "Rex"
        with pytest.raises(NotFound):
            service.accept("copy", refused.id)


def test_a_tombstone_from_the_future_does_not_silence_the_user(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        header = export(service, "ada").split(b"\n")[0]
        tombstone = {
            "line": "tombstone",
            "group_name": "main",
            "kind": "fact",
            "session_id": "",
            "key": "city",
            "deleted_at": "2999-01-01T00:00:00Z",
        }
        take_in(service, "ada", header + b"\n" + encoded([tombstone]))
        assert service.set_fact("ada", "city", "Bonn").value == "Bonn"
        service.forget("ada", fact="city")
        assert service.set_fact("ada", "city", "Rome").value == "Rome"


def test_an_unknown_user_can_neither_export_nor_import(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        with pytest.raises(InvalidInput):
            service.export("unknown")
        with pytest.raises(InvalidInput):
            take_in(service, "", b"")


def test_a_running_export_shows_one_moment_and_holds_nobody_up(url: str, clock: ManualClock) -> None:
    with memory(url, ManualClock(NOON)) as service:
        service.remember("ada", [user_says(f"text {number}") for number in range(1200)], "chat")
        lines = service.export("ada")
        first = [next(lines) for _ in range(3)]
        service.set_fact("ada", "city", "Bonn")
        service.remember("ada", [user_says("new")], "chat")
        whole = b"".join([*first, *lines])
        assert whole.count(b'"line":"document"') == 1200
        assert b"Bonn" not in whole
