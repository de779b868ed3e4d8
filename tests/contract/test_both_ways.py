"""A session that came in both ways, through a server and as a transcript: each message is stored once."""

import io
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.conversations.conversation_text import ConversationText
from shepherd_memory.memory import sessions
from shepherd_memory.service import Service
from tests.contract.given import NOON, ManualClock, drain, memory, user_says
from tests.endpoint import ScriptedEndpoint, user_text
from tests.transcripts import BEGAN, MINUTE, agent_line, append, codex_lines, user_line, write

ADA = "ada"
THREAD = "0b5e6f0a-1c2d-4e3f-8a9b-0c1d2e3f4a5b"
ROLLOUT = f"rollout-2026-09-21T10-00-00-{THREAD}"


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with memory(url, clock, endpoint.url) as opened:
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "base" / "kettle" / f"{THREAD}.jsonl"


def turn(number: int) -> list[dict[str, Any]]:
    """A turn as Claude Code writes it: a prompt, a tool, an answer."""
    return [
        user_line(number, f"my wish_{number} is tea_{number}"),
        agent_line(number + 1, tool="Bash"),
        agent_line(number + 2, f"Answer {number}:\n\nthe kettle boils."),
    ]


def chat(
    service: Service, clock: ManualClock, *numbers: int, group: str = "main", session: str = THREAD
) -> None:
    """The same turns as a server hears them: all that was said so far, and the answer."""
    said: list[dict[str, Any]] = []
    for number in numbers:
        reminder = {"type": "text", "text": "<system-reminder>\nBe brief.\n</system-reminder>"}
        typed = {"type": "text", "text": f"my wish_{number} is tea_{number}\n"}
        said.append(user_says([reminder, typed]))
        answer = f"Answer {number}:\n\nthe kettle boils."
        service.remember_exchange(ADA, said, answer, session, group=group)
        said.append({"role": "assistant", "content": answer})
    clock.now = max(clock.now, NOON)


def texts(service: Service, group: str = "main") -> Counter[str]:
    return Counter(" ".join(one.text.split()) for one in service.documents(ADA, group=group))


def once(*numbers: int, tools: bool = True) -> Counter[str]:
    found = Counter(
        text
        for number in numbers
        for text in (f"my wish_{number} is tea_{number}", f"Answer {number}: the kettle boils.")
    )
    return found + Counter(f"[Bash: boil --number {number + 1}]" for number in numbers if tools)


def read(service: Service, path: Path, *numbers: int) -> None:
    lines = [line for number in numbers for line in turn(number)]
    service.transcripts.ingest(ADA, write(path, lines))


Step = Callable[[Service, ManualClock, Path], None]
WAYS: dict[str, list[Step]] = {
    "live first": [lambda s, c, p: chat(s, c, 0, 4, session=p.stem), lambda s, c, p: read(s, p, 0, 4)],
    "transcript first": [lambda s, c, p: read(s, p, 0, 4), lambda s, c, p: chat(s, c, 0, 4, session=p.stem)],
    "in turns": [
        lambda s, c, p: chat(s, c, 0, session=p.stem),
        lambda s, c, p: read(s, p, 0, 4),
        lambda s, c, p: chat(s, c, 0, 4, session=p.stem),
    ],
}


@pytest.mark.every_scheme
@pytest.mark.parametrize("way", WAYS)
def test_each_message_is_stored_once_whichever_came_first(
    service: Service, clock: ManualClock, path: Path, way: str
) -> None:
    for step in WAYS[way]:
        step(service, clock, path)
    assert texts(service) == once(0, 4)
    for step in WAYS[way]:
        step(service, clock, path)
    service.transcripts.ingest(ADA, path, reimport=True)
    assert texts(service) == once(0, 4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["01JD7X9K2M4N6P8Q0R2S4T6V8W", "thread_6hBqkTz81xPw0LmN"])
def test_an_id_of_another_form_is_the_same_text_in_both_ways(
    service: Service, clock: ManualClock, tmp_path: Path, way: str, name: str
) -> None:
    path = tmp_path / "base" / "kettle" / f"{name}.jsonl"
    for _ in range(2):
        for step in WAYS[way]:
            step(service, clock, path)
            service.transcripts.poll()
    assert texts(service) == once(0, 4)
    (found,) = service.conversations(ADA)
    assert (found.source, found.entries) == ("claude-code", 6)
    assert service.forget(ADA, session=name).documents == 6
    assert service.documents(ADA) == []


@pytest.mark.parametrize("name", ["chat", "my-weekly-planning-notes"])
def test_a_name_that_two_sessions_may_have_by_chance_joins_nothing(
    service: Service, clock: ManualClock, tmp_path: Path, name: str
) -> None:
    chat(service, clock, 0, session=name)
    read(service, tmp_path / "base" / "kettle" / f"{name}.jsonl", 0)
    service.transcripts.poll()
    assert texts(service)["my wish_0 is tea_0"] == 2
    assert {one.source for one in service.conversations(ADA)} == {"live", "claude-code"}


@pytest.mark.every_scheme
def test_codex_names_its_file_by_a_time_and_the_id_that_a_server_knows(
    service: Service, clock: ManualClock, tmp_path: Path
) -> None:
    path = write(tmp_path / "sessions" / "2026" / f"{ROLLOUT}.jsonl", codex_lines(2))
    for _ in range(2):
        service.transcripts.ingest(ADA, path)
        clock.advance(60)
        said: list[dict[str, Any]] = []
        for number in range(3):
            said.append(user_says(f"my pot_{number} is blue_{number}"))
            service.remember_exchange(ADA, said, f"So{number}.", THREAD)
    stored = [one for one in service.documents(ADA) if one.role == "user"]
    assert sorted(one.text for one in stored) == [f"my pot_{n} is blue_{n}" for n in range(3)]
    assert {one.session_id for one in stored} == {ROLLOUT, THREAD}
    with service.database.read() as connection:
        (session,) = sessions.listing(connection, ADA)
    assert session.session_id == ROLLOUT
    for name in (ROLLOUT, THREAD):
        assert len(service.documents(ADA, session_id=name)) == service.session_size(ADA, name).documents == 10
        assert len(list(service.transcripts.read(ADA, name))) == 10


def told(service: Service, clock: ManualClock, path: Path, way: str) -> Conversation:
    """What comes in both ways, in the order of a way; the one conversation that it is."""
    for step in WAYS[way]:
        step(service, clock, path)
        service.transcripts.poll()
    (found,) = service.conversations(ADA)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_its_conversation_is_one_and_counts_each_message_once(
    service: Service, clock: ManualClock, path: Path, way: str
) -> None:
    found = told(service, clock, path, way)
    assert (found.source, found.entries, found.status) == ("claude-code", 6, "processing")
    service.transcripts.ingest(ADA, path, reimport=True)
    service.transcripts.poll()
    (found,) = service.conversations(ADA)
    assert (found.source, found.entries) == ("claude-code", 6)


@pytest.mark.every_scheme
@pytest.mark.parametrize("way", WAYS)
def test_a_strategy_reads_it_as_the_transcript_has_it(
    service: Service, clock: ManualClock, path: Path, way: str
) -> None:
    found = told(service, clock, path, way)
    entries = [
        (entry.role, " ".join(entry.text.split())) for entry in ConversationText(service.database, ADA, found)
    ]
    assert [entry for entry in entries if entry[0] != "tool"] == [
        pair
        for number in (0, 4)
        for pair in (
            ("user", f"my wish_{number} is tea_{number}"),
            ("assistant", f"[Bash: boil --number {number + 1}]"),
            ("assistant", f"Answer {number}: the kettle boils."),
        )
    ]


@pytest.mark.parametrize("way", WAYS)
def test_each_statement_is_extracted_once(
    service: Service, clock: ManualClock, path: Path, endpoint: ScriptedEndpoint, way: str
) -> None:
    for step in WAYS[way]:
        step(service, clock, path)
        drain(service, clock)
    for _ in range(3):
        service.transcripts.poll()
        drain(service, clock)
    asked = "\n".join(user_text(received.json) for received in endpoint.requests)
    assert [asked.count(f"wish_{number} is") for number in (0, 4)] == [1, 1]
    assert [one.status for one in service.conversations(ADA)] == ["archived"]


def test_a_live_conversation_that_was_handed_on_before_its_file_came_stays_the_one(
    service: Service, clock: ManualClock, path: Path
) -> None:
    clock.now = BEGAN + 3 * MINUTE
    service.remember_exchange(ADA, [user_says("my wish_0 is tea_0")], "Answer 0:\nthe kettle boils.", THREAD)
    more = [user_says(f"wish {number}", id=f"m{number}") for number in range(4)]
    service.remember(ADA, more, THREAD)
    clock.advance(7200)
    for _ in range(2):
        drain(service, clock)
        service.transcripts.poll()
    (live,) = service.conversations(ADA)
    assert (live.source, live.status, live.entries) == ("live", "archived", 6)
    read(service, path, 0)
    service.transcripts.poll()
    assert service.conversations(ADA) == [live]
    append(path, [user_line(9, "my wish_9 was heard by nobody"), *turn(10)])
    service.transcripts.ingest(ADA, path)
    latest, first = service.conversations(ADA)
    assert (first, latest.source, latest.entries) == (live, "claude-code", 4)


def test_what_is_said_twice_is_stored_twice(service: Service, clock: ManualClock, path: Path) -> None:
    said = [user_says("yes"), {"role": "assistant", "content": "Done."}, user_says("yes")]
    service.remember_exchange(ADA, said[:1], "Done.", THREAD)
    lines = [user_line(0, "yes"), agent_line(1, "Done."), user_line(2, "yes"), agent_line(3, "Done.")]
    service.transcripts.ingest(ADA, write(path, lines))
    service.remember_exchange(ADA, said, "Done.", THREAD)
    assert texts(service) == Counter({"yes": 2, "Done.": 2})


def test_a_list_without_ids_is_known_by_what_its_session_has_in_the_other_way(
    service: Service, clock: ManualClock, path: Path
) -> None:
    read(service, path, 0, 4)
    stored = texts(service)
    said = [
        message
        for number in (0, 4)
        for message in (
            user_says(f"my wish_{number} is tea_{number}"),
            {"role": "assistant", "content": f"Answer {number}:\n\nthe kettle boils."},
        )
    ]
    for end in (1, 2, 4, 4):
        assert service.remember(ADA, said[:end], THREAD).stored == 0
    assert texts(service) == stored
    assert service.remember(ADA, [*said, user_says("thanks")], THREAD).stored == 1
    assert service.remember(ADA, [*said, user_says("thanks")], THREAD).stored == 0
    assert texts(service) == stored + Counter(["thanks"])


BLOCKS = ("First I looked it up.", "It is\nblue.")


@pytest.mark.parametrize("first", ["live", "transcript"])
def test_an_answer_of_several_blocks_is_one_message_for_a_server(
    service: Service, clock: ManualClock, path: Path, first: str
) -> None:
    lines = [user_line(0, "What colour?"), *(agent_line(n, text) for n, text in enumerate(BLOCKS, 1))]

    def live() -> None:
        service.remember_exchange(ADA, [user_says("What colour?")], "\n\n".join(BLOCKS), THREAD)

    def file() -> None:
        service.transcripts.ingest(ADA, write(path, lines))

    for step in (live, file, live) if first == "live" else (file, live, file):
        step()
    stored = " ".join(" ".join(one.text.split()) for one in service.documents(ADA))
    assert stored == "What colour? First I looked it up. It is blue."


THREE = ("First I looked it up.", "It is\nblue.", "Or green?")


@pytest.mark.every_scheme
@pytest.mark.parametrize("read_before", [1, 2])
def test_of_an_answer_that_comes_while_its_blocks_are_read_each_is_stored_once(
    service: Service, clock: ManualClock, path: Path, read_before: int
) -> None:
    lines = [
        *turn(0),
        user_line(4, "What colour?"),
        *(agent_line(n, text) for n, text in enumerate(THREE, 5)),
    ]
    service.transcripts.ingest(ADA, write(path, lines[: 4 + read_before]))
    said = [
        user_says("my wish_0 is tea_0"),
        {"role": "assistant", "content": "Answer 0:\n\nthe kettle boils."},
        user_says("What colour?"),
    ]
    for _ in range(2):
        service.remember_exchange(ADA, said, "\n\n".join(THREE), THREAD)
        service.transcripts.ingest(ADA, write(path, lines))
    service.transcripts.ingest(ADA, path, reimport=True)
    asked = Counter({"What colour?": 1})
    assert texts(service) - once(0) - asked in (
        Counter(" ".join(block.split()) for block in THREE),
        Counter([THREE[0], "It is blue. Or green?"]),
    )
    (found,) = service.recall(ADA, "green", threshold=0.0, kinds=["document"]).hits[:1]
    assert "Or green?" in found.text
    service.transcripts.poll()
    assert sum(one.entries for one in service.conversations(ADA)) == 7


@pytest.mark.parametrize("asked", ["Is it?", "Is it not?"])
def test_an_answer_that_begins_like_an_earlier_one_stays_whole(
    service: Service, clock: ManualClock, path: Path, asked: str
) -> None:
    service.transcripts.ingest(ADA, write(path, [user_line(0, "Is it?"), agent_line(1, "Yes.")]))
    service.remember_exchange(ADA, [user_says("Is it?")], "Yes.", THREAD)
    answer = "Yes.\n\nIt is blue."
    service.remember_exchange(
        ADA, [user_says("Is it?"), {"role": "assistant", "content": "Yes."}, user_says(asked)], answer, THREAD
    )
    assert "Yes. It is blue." in texts(service)


@pytest.mark.every_scheme
@pytest.mark.parametrize("way", WAYS)
def test_a_forgotten_message_comes_back_in_neither_way(
    service: Service, clock: ManualClock, path: Path, way: str
) -> None:
    clock.now = NOON
    first, *rest = WAYS[way]
    first(service, clock, path)
    (gone,) = (one for one in service.documents(ADA) if one.text.startswith("my wish_0"))
    assert service.forget(ADA, document=gone.id).documents == 1
    for step in (*rest, first, *rest):
        step(service, clock, path)
    service.transcripts.ingest(ADA, path, reimport=True)
    assert texts(service) == once(0, 4) - Counter({"my wish_0 is tea_0": 1})
    service.transcripts.poll()
    assert sum(one.entries for one in service.conversations(ADA)) == 5
    clock.advance(60)
    service.remember_exchange(ADA, [user_says("my wish_0 is tea_0"), user_says("x")], None, THREAD)
    service.remember(ADA, [user_says("my wish_0 is tea_0", id="again")], THREAD)
    assert texts(service)["my wish_0 is tea_0"] == 1, "what is said again later is stored"


@pytest.mark.every_scheme
@pytest.mark.parametrize("name", [THREAD, f"{THREAD}@live"])
@pytest.mark.parametrize("way", WAYS)
def test_a_forgotten_session_is_forgotten_in_both_ways(
    service: Service, clock: ManualClock, path: Path, way: str, name: str
) -> None:
    for step in WAYS[way]:
        step(service, clock, path)
    service.transcripts.poll()
    if name != THREAD and way != "transcript first":
        name = next(one.session_id for one in service.transcripts.files(ADA))
    assert service.forget(ADA, session=name).documents == 6
    assert (service.documents(ADA), service.conversations(ADA)) == ([], [])
    for step in WAYS[way]:
        step(service, clock, path)
    service.transcripts.ingest(ADA, path, reimport=True)
    service.transcripts.poll()
    heard_again = [one for one in service.documents(ADA) if one.source != "live"]
    assert (heard_again, service.conversations(ADA, source="claude-code")) == ([], [])


def test_a_file_that_is_read_after_its_live_session_was_forgotten_brings_nothing_back(
    service: Service, clock: ManualClock, path: Path
) -> None:
    chat(service, clock, 0, 4)
    service.forget(ADA, session=THREAD)
    read(service, path, 0, 4)
    assert service.documents(ADA) == []


@pytest.mark.every_scheme
def test_neither_another_user_nor_another_group_has_a_part_in_it(
    service: Service, clock: ManualClock, path: Path
) -> None:
    read(service, path, 0)
    chat(service, clock, 0, group="team")
    assert texts(service, "team") == once(0, tools=False)
    service.remember_exchange(
        "bob", [user_says("my wish_0 is tea_0")], "Answer 0:\nthe kettle boils.", THREAD
    )
    assert len(service.documents("bob")) == 2
    service.transcripts.poll()
    assert [one.source for one in service.conversations(ADA, group="team")] == ["live"]
    assert {one.source for one in service.conversations(ADA)} == {"live", "claude-code"}
    assert [one.source for one in service.conversations("bob")] == ["live"]
    service.forget("bob", session=THREAD)
    service.forget(ADA, session=THREAD, group="team")
    assert texts(service) == once(0)
    assert [one.source for one in service.conversations(ADA)] == ["claude-code"]


@pytest.mark.every_scheme
@pytest.mark.parametrize("way", WAYS)
def test_it_is_one_after_an_export_and_import_too(
    service: Service, clock: ManualClock, path: Path, other_url: str, way: str
) -> None:
    for step in WAYS[way]:
        step(service, clock, path)
    service.transcripts.poll()
    lines = b"".join(service.export(ADA))
    with memory(other_url, clock) as other:
        for _ in range(2):
            other.import_lines(ADA, io.BytesIO(lines))
        assert texts(other) == once(0, 4)
        assert b"".join(other.export(ADA)).splitlines()[1:] == lines.splitlines()[1:]
        chat(other, clock, 0, 4)
        other.transcripts.ingest(ADA, path)
        chat(other, clock, 0, 4)
        assert texts(other) == once(0, 4)
        other.transcripts.poll()
        (one,) = other.conversations(ADA)
        assert one.entries == 6
        assert other.erase(ADA).left == {}


@pytest.mark.every_scheme
def test_the_next_session_is_handed_on_both_ways_as_one(
    service: Service, clock: ManualClock, path: Path
) -> None:
    chat(service, clock, 0)
    read(service, path, 0, 3)
    chat(service, clock, 0, 3, 6)
    previous = service.previous_session(ADA)
    assert previous is not None
    wishes = [line[-5:] for line in previous.text.split("\n") if "wish_" in line]
    assert sorted(wishes) == ["tea_0", "tea_3", "tea_6"]
    assert (previous.message_count, previous.total_count) == (6, 6)
    assert "Bash" not in previous.text
    assert service.previous_session(ADA, current=THREAD) is None
