"""A folder of memory files says what the database says, and what a person changed there is left alone."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from shepherd_memory.errors import InvalidInput
from shepherd_memory.mirrors.folder_names import folder_name
from shepherd_memory.mirrors.manifest import NAME
from shepherd_memory.mirrors.memory_files import (
    CHANGED,
    FOREIGN,
    LOCK,
    UNFIT,
    WRITTEN_AT_ONCE,
    LeftFile,
    MemoryFileMirror,
)
from shepherd_memory.phases import dirtiness, sections
from shepherd_memory.phases.sections import NewSection
from shepherd_memory.service import Service
from shepherd_memory.storage import users
from tests.consolidation_endpoint import agent, writes
from tests.contract.given import ManualClock, memory, user_says
from tests.contract.test_consolidation import consolidate, note_of
from tests.contract.test_phases import noting
from tests.endpoint import ScriptedEndpoint

OURS = {LOCK, NAME}
TEA = "# Memory\n\n## Tea\n\nAda drinks tea.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.fixture
def service(url: str, clock: ManualClock, folder: Path) -> Iterator[Service]:
    with memory(url, clock, memory_files_folder=str(folder)) as opened:
        yield opened


def texts(root: Path) -> dict[str, str]:
    """What is in the files below a folder, but those that tell ours from others."""
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in OURS
    }


def write(service: Service, text: str = TEA, user_id: str = "ada", group: str = "main") -> None:
    """Memory files, as a process writes them that keeps no folder."""
    with memory(service.config.memory_database, ManualClock()) as elsewhere:
        elsewhere.edit_memory_file(user_id, "MEMORY.md", text, group=group)


def store(service: Service, file: str) -> None:
    """A section in a file of any name, as an import may bring it."""
    with service.database.write() as tx:
        number = users.lock(tx, "ada", 1)
        version = dirtiness.next_version(tx, "ada", "main", "agent", "imported", 1)
        sections.add(tx, "ada", "main", number, NewSection(file, "Tea", "imported", 1), version, 1)


def mirror_of(service: Service, root: Path, user_id: str = "ada") -> MemoryFileMirror:
    return MemoryFileMirror(service.database, user_id, root, 5)


@pytest.mark.every_scheme
def test_the_folder_follows_consolidation_and_loses_at_once_what_is_forgotten(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, folder: Path, tmp_path: Path
) -> None:
    settings = {"memory_phase1_max_age_days": 365}
    with noting(url, clock, endpoint, memory_files_folder=str(folder), **settings) as service:
        endpoint.default = agent(writes())
        for session in ("monday", "tuesday"):
            note_of(service, clock, session)
        consolidate(service, clock)
        assert service.memory_file_keeper.beat()
        place = folder / "ada" / "main"
        assert texts(place) == service.memory_file_tree("ada")
        assert len(texts(place)) == 5, "two files of sections, two of notes, and one of all notes"
        exported = tmp_path / "exported"
        assert service.export_memory_files("ada", exported).files == 5
        assert texts(exported) == texts(place)
        assert "Ada drinks tea." in texts(place)["MEMORY.md"]
        # In the same call.
        service.forget("ada", session="monday")
        assert "MEMORY.md" not in texts(place)
        assert len([name for name in texts(place) if name.startswith("rollout_summaries")]) == 1
        # By a process that keeps no folder.
        with memory(url, clock, endpoint.url) as elsewhere:
            elsewhere.forget("ada", session="tuesday")
        assert service.memory_file_keeper.beat()
        assert texts(folder) == {}
        assert service.export_memory_files("ada", exported).removed == 5
        assert texts(exported) == {}


@pytest.mark.every_scheme
def test_each_user_and_group_has_a_folder_and_a_group_takes_what_it_sees(
    service: Service, folder: Path, tmp_path: Path
) -> None:
    groups = ("main", "work", "Häuser ~", "global")
    for group in groups:
        write(service, f"## Here\n\nsaid in {group}\n", group=group)
    write(service, "## Bob\n\nbobs own\n", user_id="../bob")
    service.memory_file_keeper.beat()
    assert set(texts(folder)) == {
        *(f"ada/{folder_name(group)}/MEMORY.md" for group in groups),
        f"{folder_name('../bob')}/main/MEMORY.md",
    }
    assert not [path for path in tmp_path.rglob("*.md") if folder not in path.parents]
    everything, work = tmp_path / "all", tmp_path / "work"
    assert mirror_of(service, everything).agree(everything).files == len(groups)
    assert texts(everything) == texts(folder / "ada")
    service.mirror_memory_files("ada", work, group="work")
    assert set(texts(work)) == {"work/MEMORY.md", "global/MEMORY.md"}
    service.reset_memory_files("ada", everything=True, group="global")
    assert service.mirror_memory_files("ada", work, group="work").removed == 1
    assert set(texts(work)) == {"work/MEMORY.md"}
    alone = tmp_path / "alone"
    service.export_memory_files("ada", alone, group="work")
    assert "said in work" in texts(alone)["MEMORY.md"]


def test_what_changes_by_hand_reaches_the_folder_in_the_same_call(service: Service, folder: Path) -> None:
    path = service.add_memory_note("ada", "milk", name="Milk")
    service.edit_memory_file("ada", "MEMORY.md", TEA)
    assert set(texts(folder)) == {f"ada/main/{path}", "ada/main/MEMORY.md"}
    service.delete_memory_file("ada", path)
    assert texts(folder) == {"ada/main/MEMORY.md": TEA}
    assert not (folder / "ada" / "main" / "notes").exists()
    service.reset_memory_files("ada", everything=True)
    assert texts(folder) == {}
    assert not (folder / "ada" / "main").exists()


def test_files_and_folders_are_for_their_owner_alone(service: Service, folder: Path) -> None:
    service.add_memory_note("ada", "milk")
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")} == {0o600, 0o700}
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_dir()}
    assert modes == {0o700}


def test_a_file_that_somebody_changed_or_brought_is_named_and_left_until_it_is_gone(
    service: Service, folder: Path, tmp_path: Path
) -> None:
    root, aim = tmp_path / "mirror", tmp_path / "aim"
    aim.write_text("mine")
    write(service, TEA)
    kept = service.add_memory_note("ada", "milk", name="Milk")
    other = service.add_memory_note("ada", "bread", name="Bread")
    service.mirror_memory_files("ada", root)
    place = root / "main"
    (place / kept).write_text("milk and honey")
    (place / "diary.md").write_text("my own")
    (place / other).unlink()
    (place / other).symlink_to(aim)
    (place / "skills").symlink_to(tmp_path)
    service.delete_memory_file("ada", kept)
    write(service, "## Coffee\n\nNow coffee.\n")
    done = service.mirror_memory_files("ada", root)
    named = (LeftFile(f"main/{kept}", CHANGED), LeftFile(f"main/{other}", CHANGED))
    assert set(done.left) == set(named)
    assert (done.files, done.written, done.removed) == (1, 1, 0)
    assert (place / kept).read_text() == "milk and honey"
    assert ((place / "diary.md").read_text(), aim.read_text()) == ("my own", "mine")
    (place / kept).unlink()
    (place / other).unlink()
    done = service.mirror_memory_files("ada", root)
    assert (done.left, done.files, (place / other).is_symlink()) == ((), 2, False)
    service.reset_memory_files("ada", everything=True)
    service.mirror_memory_files("ada", root)
    assert texts(root) == {"main/diary.md": "my own"}


def test_a_file_in_the_place_of_ours_is_left_and_does_not_hinder_the_others(
    service: Service, tmp_path: Path
) -> None:
    root = tmp_path / "mirror"
    (root / "main").mkdir(parents=True)
    (root / "main" / "MEMORY.md").write_text("my own")
    write(service)
    note = service.add_memory_note("ada", "milk")
    done = service.mirror_memory_files("ada", root)
    assert done.left == (LeftFile("main/MEMORY.md", FOREIGN),)
    assert set(texts(root)) == {"main/MEMORY.md", f"main/{note}"}
    assert (root / "main" / "MEMORY.md").read_text() == "my own"


@pytest.mark.parametrize("name", ["../../x.md", "/etc/x.md", "a\\b.md", ".hidden", "n" * 300, "memory.MD"])
def test_a_name_that_no_file_may_have_is_said_and_stays_inside(
    service: Service, tmp_path: Path, name: str
) -> None:
    root = tmp_path / "deep" / "mirror"
    write(service)
    store(service, name)
    done = service.mirror_memory_files("ada", root)
    assert done.left == (LeftFile(f"main/{name}", UNFIT),)
    assert texts(tmp_path / "deep") == {"mirror/main/MEMORY.md": TEA}


def test_a_link_in_the_place_of_a_folder_is_not_followed(
    service: Service, folder: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.mkdir()
    (folder / "ada").symlink_to(elsewhere)
    write(service)
    write(service, user_id="bob")
    assert not service.memory_file_keeper.beat()
    assert list(elsewhere.iterdir()) == []
    assert "symbolic link" in service.problems()[0]
    assert texts(folder) == {"bob/main/MEMORY.md": TEA}
    (folder / "ada").unlink()
    assert service.memory_file_keeper.beat()
    assert service.problems() == ()


def test_a_folder_that_cannot_be_written_is_said_and_hinders_nothing_else(
    service: Service, folder: Path, tmp_path: Path
) -> None:
    folder.write_text("no folder")
    service.remember("ada", [user_says("My bike is green")], "chat")
    write(service)
    assert not service.memory_file_keeper.beat()
    assert "files in memory_files_folder are behind" in service.status().problems[0]
    assert service.forget("ada", session="chat").documents == 1
    assert service.edit_memory_file("ada", "MEMORY.md", "## Tea\n\nNone.\n") == 2
    with pytest.raises(InvalidInput, match="cannot write to"):
        service.export_memory_files("ada", folder)
    folder.unlink()
    assert service.memory_file_keeper.beat()
    assert service.status().problems == ()
    assert len(texts(folder)) == 1


def test_a_full_disk_leaves_no_file_that_may_say_what_was_forgotten(service: Service, tmp_path: Path) -> None:
    root = tmp_path / "mirror"
    write(service)
    note = service.add_memory_note("ada", "milk")
    mirror_of(service, root).agree(root)
    write(service, "## Tea\n\nNone any more.\n")

    def is_full(point: str) -> None:
        if point == "writing":
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        MemoryFileMirror(service.database, "ada", root, 5, is_full).agree(root)
    assert set(texts(root)) == {f"main/{note}"}
    mirror_of(service, root).agree(root)
    assert "None any more" in texts(root)["main/MEMORY.md"]


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("point", ["listed", "writing", "written", "replaced"])
def test_a_mirror_that_ends_anywhere_knows_its_files_again(
    service: Service, tmp_path: Path, point: str
) -> None:
    root = tmp_path / "mirror"
    write(service)
    mirror_of(service, root).agree(root)
    write(service, "## Coffee\n\nNow coffee.\n")
    service.add_memory_note("ada", "milk")

    def end(reached: str) -> None:
        if reached == point:
            raise Killed

    with pytest.raises(Killed):
        MemoryFileMirror(service.database, "ada", root, 5, end).agree(root)
    assert texts(root).get("main/MEMORY.md") in (TEA, "# Memory\n\n## Coffee\n\nNow coffee.\n")
    done = mirror_of(service, root).agree(root)
    assert done.left == ()
    assert texts(root / "main") == service.memory_file_tree("ada")


def test_only_what_has_changed_is_written_again_and_more_than_a_step_takes_several(
    service: Service, tmp_path: Path
) -> None:
    root, number = tmp_path / "mirror", WRITTEN_AT_ONCE + 10
    for at in range(number):
        store(service, f"notes/{at}.md")
    write(service)
    assert service.mirror_memory_files("ada", root).written == number + 1
    assert service.mirror_memory_files("ada", root).written == 0
    write(service, "## Tea\n\nNone.\n")
    done = service.mirror_memory_files("ada", root)
    assert (done.files, done.written, done.removed) == (number + 1, 1, 0)


def test_an_export_goes_into_an_empty_folder_or_an_earlier_export_alone(
    service: Service, tmp_path: Path
) -> None:
    write(service)
    write(service, user_id="bob")
    write(service, group="work")
    target = tmp_path / "export"
    target.mkdir()
    assert service.export_memory_files("ada", target).written == 1
    assert service.export_memory_files("ada", target).written == 0
    for user_id, group in (("bob", "main"), ("ada", "work")):
        with pytest.raises(InvalidInput, match="name another folder"):
            service.export_memory_files(user_id, target, group=group)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "diary.md").write_text("my own")
    with pytest.raises(InvalidInput, match="is not empty"):
        service.export_memory_files("ada", mine)
    assert os.listdir(mine) == ["diary.md"]
    both = tmp_path / "both"
    service.mirror_memory_files("ada", both)
    with pytest.raises(InvalidInput, match="of another user or group"):
        service.mirror_memory_files("bob", both)


def test_a_list_that_makes_no_sense_is_said(service: Service, tmp_path: Path) -> None:
    write(service)
    root = tmp_path / "mirror"
    service.mirror_memory_files("ada", root)
    (root / "main" / NAME).write_text("{}")
    with pytest.raises(InvalidInput, match="cannot be read"):
        service.mirror_memory_files("ada", root)


@pytest.mark.every_scheme
def test_erasing_a_user_leaves_no_file_of_theirs_and_names_what_was_changed_by_hand(
    service: Service, url: str, clock: ManualClock, folder: Path
) -> None:
    for user_id, group in (("ada", "main"), ("ada", "work"), ("bob", "main")):
        service.edit_memory_file(user_id, "MEMORY.md", TEA, group=group)
    changed = folder / "ada" / "work" / "MEMORY.md"
    changed.write_text("mine now")
    receipt = service.erase("ada")
    assert receipt.rows["memory files"] == 1
    assert "1 memory files in" in receipt.note
    assert texts(folder) == {"ada/work/MEMORY.md": "mine now", "bob/main/MEMORY.md": TEA}
    # Also when a process without the folder erases.
    with memory(url, clock) as elsewhere:
        elsewhere.erase("bob")
    assert service.memory_file_keeper.beat()
    assert texts(folder) == {"ada/work/MEMORY.md": "mine now"}


def test_folders_of_users_of_another_database_stay(
    service: Service, other_url: str, clock: ManualClock, folder: Path
) -> None:
    with memory(other_url, clock, memory_files_folder=str(folder)) as other:
        other.edit_memory_file("eve", "MEMORY.md", TEA)
    write(service)
    service.memory_file_keeper.beat()
    assert set(texts(folder)) == {"ada/main/MEMORY.md", "eve/main/MEMORY.md"}
