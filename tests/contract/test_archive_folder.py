"""The folder of archives says what the database says, and nobody else's file is ever touched."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from shepherd_memory.archives.mirror import LOCK, UNFINISHED, MirrorRules, UserMirror
from shepherd_memory.errors import InvalidInput
from shepherd_memory.service import Service
from tests.contract.given import ManualClock, memory, user_says

DAY = "2027-01-15"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archives"


@pytest.fixture
def service(url: str, clock: ManualClock, folder: Path) -> Iterator[Service]:
    with memory(url, clock, archive_folder=str(folder)) as opened:
        yield opened


def hold(service: Service, *said: str, name: str = "", user_id: str = "ada", group: str = "main") -> str:
    """A session in which this was said, and which has ended."""
    life = service.start_session(user_id, group=group, takeover=True)
    service.remember(user_id, [user_says(text) for text in said], life.session_id, group=group)
    service.end_session(user_id, life.session_id, group=group)
    call_it(service, life.session_id, name, user_id)
    return life.session_id


def call_it(service: Service, session_id: str, name: str, user_id: str = "ada") -> None:
    with service.database.write() as tx:
        tx.execute(
            "update sessions set name = :name where user_id = :user_id and session_id = :id",
            name=name,
            user_id=user_id,
            id=session_id,
        )
        tx.execute("update users set seq = seq + 1 where user_id = :user_id", user_id=user_id)


def files(root: Path) -> dict[str, str]:
    """What is in a folder, but the lock."""
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != LOCK
    }


@pytest.mark.every_scheme
def test_a_session_has_its_file_from_its_end_on_and_the_file_follows_it(
    service: Service, folder: Path
) -> None:
    life = service.start_session("ada")
    service.remember("ada", [user_says("My bike is green")], life.session_id)
    assert service.archive_keeper.beat()
    assert files(folder) == {}
    service.end_session("ada", life.session_id)
    call_it(service, life.session_id, "The bike")
    service.archive_keeper.beat()
    assert list(files(folder)) == [f"ada/main/{DAY}-the-bike.md"]
    # Made active again, it keeps its file.
    service.start_session("ada", session_id=life.session_id)
    service.remember("ada", [user_says("And it has a bell")], life.session_id)
    call_it(service, life.session_id, "Bell")
    service.archive_keeper.beat()
    (name, text), *rest = files(folder).items()
    assert (name, rest) == (f"ada/main/{DAY}-bell.md", [])
    assert "a bell" in text
    assert text.encode() == b"".join(service.archive("ada", life.session_id))


def test_a_session_has_its_file_from_its_first_compaction_on(service: Service, folder: Path) -> None:
    thread = "0b9d5a0e-6a53-4a6e-8a2c-0d7c3c1f9a11"
    service.remember("ada", [user_says("My bike is green")], thread)
    service.remember("ada", [user_says("At work")], "other", group="work")
    service.archive_keeper.beat()
    assert files(folder) == {}
    service.begin_archive("ada", thread, group="work")
    service.begin_archive("bob", thread)
    assert files(folder) == {}
    service.begin_archive("ada", thread)
    assert list(files(folder)) == [f"ada/main/{DAY}-conversation-1200.md"]
    service.remember("ada", [user_says("It has a bell")], thread)
    service.archive_keeper.beat()
    (text,) = files(folder).values()
    assert "a bell" in text


def test_a_session_that_takes_the_name_of_another_that_goes_on_leaves_it_its_file(
    service: Service, folder: Path, clock: ManualClock
) -> None:
    service.remember("ada", [user_says("the first")], "one")
    clock.advance(1)
    service.remember("ada", [user_says("the second")], "two")
    service.begin_archive("ada", "two")
    service.begin_archive("ada", "one")
    texts = files(folder)
    assert "the first" in texts[f"ada/main/{DAY}-conversation-1200.md"]
    assert "the second" in texts[f"ada/main/{DAY}-conversation-1200-2.md"]


def test_a_file_that_cannot_be_written_anew_is_removed_for_what_was_forgotten(
    service: Service, url: str, folder: Path
) -> None:
    session_id = hold(service, "My bike is green", "It has a bell")
    service.archive_keeper.beat()
    gone = service.documents("ada", session_id=session_id)[0]

    def is_full(point: str) -> None:
        if point == "writing":
            raise OSError(28, "No space left on device")

    with memory(url, ManualClock()) as elsewhere:
        elsewhere.forget("ada", document=gone.id, only=True)
    with pytest.raises(OSError, match="No space left"):
        UserMirror(service.database, "ada", folder, folder / "ada").agree(MirrorRules(fault=is_full))
    assert files(folder) == {}
    service.archive_keeper.follow("ada")
    (text,) = files(folder).values()
    assert ("green" in text, "a bell" in text) == (False, True)


def test_files_and_folders_are_for_their_owner_alone(service: Service, folder: Path) -> None:
    hold(service, "hello")
    service.archive_keeper.beat()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    assert modes.pop(f"{DAY}-conversation-1200.md") == 0o600
    assert (modes["ada"], modes["main"]) == (0o700, 0o700)


def test_what_is_forgotten_leaves_the_files_in_the_same_call(service: Service, folder: Path) -> None:
    session_id = hold(service, "My bike is green", "It has a bell")
    hold(service, "Something else")
    service.archive_keeper.beat()
    service.forget("ada", document=service.documents("ada", session_id=session_id)[0].id)
    assert "green" not in "".join(files(folder).values())
    assert "a bell" in "".join(files(folder).values())
    service.forget("ada", session=session_id)
    assert "a bell" not in "".join(files(folder).values())
    assert len(files(folder)) == 1


def test_sessions_of_one_name_have_a_file_each_and_bad_names_stay_inside(
    service: Service, folder: Path
) -> None:
    for name in ("Tax", "tax", "税金", "../../x", "", "", "n" * 200, "🚲"):
        hold(service, f"about {name}", name=name)
    service.archive_keeper.beat()
    names = {Path(name).name for name in files(folder)}
    assert names == {
        f"{DAY}-{rest}.md"
        for rest in (
            "tax",
            "tax-2",
            "税金",
            "x",
            "conversation-1200",
            "conversation-1200-2",
            "conversation-1200-3",
            "n" * 50,
        )
    }
    assert not [path for path in folder.parent.rglob("*.md") if folder not in path.parents]


@pytest.mark.parametrize("user_id", ["../x", "/etc", "a/b", "Ada", "x" * 256, "con", "ü"])
def test_any_id_of_a_user_has_a_folder_below_the_configured_one(
    service: Service, folder: Path, user_id: str
) -> None:
    hold(service, "hello", user_id=user_id)
    hold(service, "hello", user_id="ada")
    service.archive_keeper.beat()
    assert len(files(folder)) == 2
    assert len(list(folder.iterdir())) == 3
    service.erase(user_id)
    assert list(files(folder)) == [f"ada/main/{DAY}-conversation-1200.md"]


def test_somebodys_own_file_is_neither_replaced_nor_removed_and_no_link_is_followed(
    service: Service, folder: Path, tmp_path: Path
) -> None:
    place = folder / "ada" / "main"
    place.mkdir(parents=True)
    aim = tmp_path / "aim"
    aim.write_text("mine")
    (place / f"{DAY}-TAX.md").write_text("my own notes")
    (place / f"{DAY}-tax-2.md").symlink_to(aim)
    (place / UNFINISHED).symlink_to(aim)
    os.mkfifo(place / f"{DAY}-tax-3.md")
    hold(service, "My taxes", name="Tax")
    service.archive_keeper.beat()
    assert "My taxes" in (place / f"{DAY}-tax-4.md").read_text()
    service.erase("ada")
    assert sorted(path.name for path in place.iterdir()) == [
        f"{DAY}-TAX.md",
        f"{DAY}-tax-2.md",
        f"{DAY}-tax-3.md",
    ]
    assert (place / f"{DAY}-TAX.md").read_text() == "my own notes"
    assert aim.read_text() == "mine"


def test_a_link_in_the_place_of_a_folder_is_said_and_left(
    service: Service, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder.mkdir()
    (folder / "ada").symlink_to(tmp_path / "elsewhere")
    hold(service, "hello")
    hold(service, "hello", user_id="bob")
    assert not service.archive_keeper.beat()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert "symbolic link" in service.problems()[0]
    assert list(files(folder)) == [f"bob/main/{DAY}-conversation-1200.md"]
    (folder / "ada").unlink()
    assert service.archive_keeper.beat()
    assert service.problems() == ()
    assert len(files(folder)) == 2


def test_a_folder_that_cannot_be_written_is_said_and_hinders_nothing_else(
    service: Service, folder: Path
) -> None:
    folder.write_text("no folder")
    session_id = hold(service, "My bike is green")
    assert not service.archive_keeper.beat()
    assert "files in archive_folder are behind" in service.status().problems[0]
    assert service.forget("ada", session=session_id).documents == 1
    folder.unlink()
    hold(service, "hello")
    assert service.archive_keeper.beat()
    assert service.status().problems == ()
    assert len(files(folder)) == 1


def test_only_what_has_changed_is_written_again(service: Service, folder: Path) -> None:
    ids = [hold(service, f"number {number}", name=f"n{number}") for number in range(3)]
    mirror = UserMirror(service.database, "ada", folder, folder / "ada")
    assert mirror.agree(MirrorRules()).written == 3
    assert mirror.agree(MirrorRules()).written == 0
    call_it(service, ids[1], "renamed")
    done = mirror.agree(MirrorRules())
    assert (done.archives, done.written, done.removed) == (3, 1, 1)
    service.remember("ada", [user_says("more")], ids[2])
    assert mirror.agree(MirrorRules()).written == 1


@pytest.mark.every_scheme
def test_each_group_has_a_folder_of_its_own_and_an_export_shows_what_the_group_sees(
    service: Service, folder: Path, tmp_path: Path
) -> None:
    for group in ("main", "work", "Home", "global"):
        hold(service, f"said in {group}", name=group, group=group)
    hold(service, "bobs own", user_id="bob")
    service.archive_keeper.beat()
    everything, work = tmp_path / "all", tmp_path / "work"
    service.export_archives("ada", everything)
    assert files(everything) == files(folder / "ada")
    assert len(files(everything)) == 4
    service.export_archives("ada", work, group="work")
    assert sorted(files(work)) == [f"global/{DAY}-global.md", f"work/{DAY}-work.md"]
    assert "bobs own" not in "".join(files(everything).values())


def test_an_export_is_repeated_into_the_same_folder_and_leaves_the_files_of_others(
    service: Service, tmp_path: Path
) -> None:
    target = tmp_path / "export"
    gone = hold(service, "first", name="one")
    hold(service, "second", name="two")
    hold(service, "bobs", name="one", user_id="bob")
    service.export_archives("bob", target)
    service.export_archives("ada", target)
    assert sorted(files(target)) == [f"main/{DAY}-one-2.md", f"main/{DAY}-one.md", f"main/{DAY}-two.md"]
    service.forget("ada", session=gone)
    done = service.export_archives("ada", target)
    assert (done.archives, done.written, done.removed) == (1, 0, 1)
    assert "bobs" in files(target)[f"main/{DAY}-one.md"]
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot write to"):
        service.export_archives("ada", tmp_path / "file")


@pytest.mark.every_scheme
def test_erasing_a_user_leaves_no_file_of_theirs_and_says_so(
    service: Service, url: str, clock: ManualClock, folder: Path
) -> None:
    hold(service, "My bike is green")
    hold(service, "At work", group="work")
    hold(service, "bobs", user_id="bob")
    service.archive_keeper.beat()
    (folder / "ada" / "main" / "notes.txt").write_text("mine")
    assert service.erase("ada").rows["archive files"] == 2
    assert [name for name in files(folder) if name.startswith("ada")] == ["ada/main/notes.txt"]
    # Also when a process without the folder erases.
    with memory(url, clock) as elsewhere:
        elsewhere.erase("bob")
    assert service.archive_keeper.beat()
    assert list(files(folder)) == ["ada/main/notes.txt"]


def test_folders_of_users_of_another_database_stay(
    service: Service, other_url: str, clock: ManualClock, folder: Path
) -> None:
    with memory(other_url, clock, archive_folder=str(folder)) as other:
        hold(other, "said there", user_id="eve")
        other.archive_keeper.beat()
    hold(service, "said here")
    service.archive_keeper.beat()
    assert len(files(folder)) == 2
