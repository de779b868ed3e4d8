"""The spool: what is put there is on the disk, readable by its owner alone, and given out once, in order."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.errors import DatabaseUnavailable
from shepherd_memory.intake.exchange import AnsweredExchange, Exchange, ResponseLink, read_answered
from shepherd_memory.spool.files import SpoolFile
from shepherd_memory.spool.records import DamagedLine, Record, decode, encode, fields_of, line_of
from shepherd_memory.spool.replay import Replayer
from shepherd_memory.spool.spool import Spool, name_of

NOW = 1_800_000_000_000_000
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def said(text: str, said_at: int = NOW) -> AnsweredExchange:
    return AnsweredExchange(Exchange("opening", 0, text, ""), "I see.", "", said_at)


class Room:
    """A folder for spools of one database, and how large they may be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.max_bytes = 1_000_000

    def open(self, database: str = "db") -> Spool:
        return Spool(self.folder, database, lambda: self.max_bytes, lambda: NOW)

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*"))


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path / "state" / "spool")


@pytest.fixture
def spool(room: Room) -> Iterator[Spool]:
    with closing(room.open()) as opened:
        yield opened


def put(spool: Spool, *texts: str, user: str = "ada") -> list[bool]:
    futures = [spool.put(user, lambda text=text: said(text)) for text in texts]  # type: ignore[misc]
    return [future.result() for future in futures]


def left_by(room: Room, *texts: str, user: str = "ada") -> Path:
    """The file of a process that has ended."""
    with closing(room.open()) as spool:
        for text in texts:
            assert put(spool, text, user=user) == [True]
    [file] = room.files
    return file


def replayed(spool: Spool, store: Callable[[str, AnsweredExchange], object] | None = None) -> list[str]:
    """What is stored of what waits: user and text."""
    stored: list[str] = []

    def take(user_id: str, answered: AnsweredExchange) -> None:
        if store is not None:
            store(user_id, answered)
        stored.append(f"{user_id}: {answered.exchange.text}")

    Replayer(spool, take).store_waiting()
    return stored


@given(TEXT, TEXT, TEXT, st.none() | TEXT, st.integers(0, 2**53), st.builds(ResponseLink, TEXT, TEXT, TEXT))
def test_a_record_is_read_as_it_was_written(
    user: str, session: str, text: str, answer: str | None, at: int, link: ResponseLink
) -> None:
    exchange = Exchange("opening", 3, text, "Ada")
    record = Record(user, AnsweredExchange(exchange, answer, session, at, link, "team", "lab", text))
    line = encode(record)
    assert line.count(b"\n") == 1
    assert decode(line) == record


def test_a_line_of_an_older_version_is_read() -> None:
    fields = fields_of(encode(Record("ada", said("tea"))))
    for name in ("previous", "response", "block_key", "group", "provider", "cwd"):
        del fields[name]
    assert decode(line_of(fields)) == Record("ada", said("tea"))
    with pytest.raises(DamagedLine):
        decode(line_of(fields | {"previous": 5}))


@given(st.binary())
def test_no_line_is_read_that_is_not_whole(content: bytes) -> None:
    line = encode(Record("ada", said("tea")))
    for broken in (content, line[: len(content) % len(line)], line.replace(b"tea", b"tee")):
        with pytest.raises(DamagedLine):
            decode(broken)


def test_only_its_owner_may_look(room: Room, spool: Spool) -> None:
    umask = os.umask(0)
    try:
        assert put(spool, "tea") == [True]
    finally:
        os.umask(umask)
    assert stat.S_IMODE(room.folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in room.files] == [0o600]


def test_no_secret_is_in_it(room: Room, spool: Spool) -> None:
    messages = [
        {
            "role": "user",
            "name": "key sk-proj-abcdefghijklmnopqrstuvwxyz123456",
            "content": "my password is hunter2",
        }
    ]
    session = "sk-proj-abcdefghijklmnopqrstuvwxyz123456"
    answer = "So your password is hunter2"
    assert spool.put("ada", lambda: read_answered(messages, answer, session, NOW)).result()
    written = b"".join(file.read_bytes() for file in room.files)
    assert b"password" in written
    assert b"hunter2" not in written
    assert b"sk-proj" not in written


def test_what_waits_is_given_out_once_and_in_the_order_of_each_user(spool: Spool) -> None:
    for number in range(3):
        put(spool, f"tea {number}")
        put(spool, f"cake {number}", user="bob")
    assert spool.holds("ada")
    assert not spool.holds("carla")
    assert spool.state().records == 6
    stored = replayed(spool)
    assert [one for one in stored if "ada" in one] == [f"ada: tea {number}" for number in range(3)]
    assert [one for one in stored if "bob" in one] == [f"bob: cake {number}" for number in range(3)]
    assert replayed(spool) == []
    assert not spool.holds("ada")
    assert spool.state().records == spool.state().bytes == 0


def test_the_room_of_what_is_stored_is_used_again(room: Room, spool: Spool) -> None:
    room.max_bytes = 400
    for number in range(20):
        assert put(spool, f"tea {number}") == [True]
        assert replayed(spool) == [f"ada: tea {number}"]


def test_a_full_spool_says_so_until_there_is_room(room: Room, spool: Spool) -> None:
    room.max_bytes = 500
    kept = put(spool, *(f"tea {number}" for number in range(10)))
    assert kept[0]
    assert not kept[-1]
    assert "is full" in spool.state().problem
    assert len(replayed(spool)) == sum(kept)
    assert spool.state().problem == ""


def test_a_spool_of_no_size_takes_nothing_and_makes_nothing(room: Room, spool: Spool) -> None:
    room.max_bytes = 0
    assert put(spool, "tea") == [False]
    assert room.files == []


def test_a_folder_that_cannot_be_made_loses_the_exchange_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with closing(Room(tmp_path / "state" / "spool").open()) as spool:
        assert put(spool, "tea") == [False]
        assert "cannot be written" in spool.state().problem


def test_what_a_database_refuses_waits_and_holds_up_nobody_else(spool: Spool) -> None:
    put(spool, "tea", "more tea")
    put(spool, "cake", user="bob")

    def refuse_ada(user_id: str, answered: AnsweredExchange) -> None:
        if user_id == "ada":
            raise DatabaseUnavailable("her row is held")

    assert replayed(spool, refuse_ada) == ["bob: cake"]
    assert replayed(spool) == ["ada: tea", "ada: more tea"]


def test_the_file_of_an_ended_process_is_adopted_before_anything_new(room: Room) -> None:
    left_by(room, "tea", "cake")
    with closing(room.open()) as spool:
        assert spool.adopt() == 2
        put(spool, "biscuits")
        assert replayed(spool) == ["ada: tea", "ada: cake", "ada: biscuits"]
    assert room.files == []


def test_the_file_of_a_running_process_is_never_adopted(room: Room, spool: Spool) -> None:
    put(spool, "tea")
    with closing(room.open()) as other:
        assert other.adopt() == 0
        assert replayed(other) == []
    assert replayed(spool) == ["ada: tea"]


def test_what_is_meant_for_one_database_reaches_no_other(room: Room) -> None:
    file = left_by(room, "tea")
    with closing(room.open("other")) as other:
        assert other.adopt() == 0
        # Not even under the name of the other.
        file.rename(file.with_name(file.name.replace("db-", "other-")))
        assert other.adopt() == 0
        assert replayed(other) == []


def test_a_last_record_that_was_not_written_to_its_end_is_left_out(room: Room) -> None:
    file = left_by(room, "tea", "cake")
    whole = file.read_bytes()
    lines = dict(zip(("ada: tea", "ada: cake"), whole.split(b"\n")[1:3], strict=True))
    for cut in range(1, len(whole)):
        rest = whole[:-cut]
        file.write_bytes(rest)
        with closing(room.open()) as spool:
            spool.adopt()
            assert replayed(spool) == [said for said, line in lines.items() if line in rest]
        assert room.files == []


def test_a_damaged_record_is_set_aside_and_the_others_are_stored(room: Room) -> None:
    file = left_by(room, "tea", "cake", "biscuits")
    file.write_bytes(file.read_bytes().replace(b"cake", b"c\xffke"))
    with closing(room.open()) as spool:
        spool.adopt()
        assert replayed(spool) == ["ada: tea", "ada: biscuits"]
    [aside] = room.files
    assert aside.suffix == ".damaged"
    assert b"c\xffke" in aside.read_bytes()
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600


def test_a_record_that_is_damaged_while_it_waits_is_set_aside(room: Room, spool: Spool) -> None:
    put(spool, "tea", "cake")
    [file] = room.files
    file.write_bytes(file.read_bytes().replace(b"tea", b"tee"))
    assert replayed(spool) == ["ada: cake"]


def test_any_bytes_in_the_folder_stop_nobody(room: Room) -> None:
    room.folder.mkdir(parents=True)
    for number, content in enumerate((b"", b"\n", b"\0" * 100, b"00000000 {}\n", b"{}\n" * 3)):
        (room.folder / f"db-{number}.spool").write_bytes(content)
    with closing(room.open()) as spool:
        assert spool.adopt() == 0
        assert put(spool, "tea") == [True]
        assert replayed(spool) == ["ada: tea"]


def test_what_an_erased_user_said_before_is_dropped_and_counted(room: Room, spool: Spool) -> None:
    with closing(room.open()) as other:
        put(other, "of another process")
        put(spool, "tea", "cake")
        put(spool, "bread", user="bob")
        spool.put("ada", lambda: replace(said("later"), said_at=NOW + 2)).result()
        assert spool.drop("ada", NOW + 1) == 3
        assert sorted(replayed(spool)) == ["ada: later", "bob: bread"]


def test_a_line_that_does_not_fit_on_the_disk_leaves_no_part_of_itself(tmp_path: Path) -> None:
    file = SpoolFile.create(tmp_path, "db-1", "db")
    before = file.size
    with pytest.raises(OSError, match="Bad file descriptor"):
        closed_under(file).append([b"line\n"])
    assert file.path.stat().st_size == before


def closed_under(file: SpoolFile) -> SpoolFile:
    """A file that can no longer be written to."""
    file.close()
    return file


def test_a_database_is_the_same_whoever_connects_to_it() -> None:
    url = "postgresql://localhost/memory?schema=public"
    mine = name_of("postgresql://ada:one@localhost/memory", url)
    assert mine == name_of("postgresql://bob:two@localhost/memory", url)
    assert mine != name_of("postgresql://ada@/memory?host=/run/other", url)
    assert mine != name_of("/tmp/memory.db", "sqlite:////tmp/memory.db")
