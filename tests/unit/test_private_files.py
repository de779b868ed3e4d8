"""What shepherd leaves on the disk is its owner's alone, whatever the umask, and becomes so again."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from shepherd_memory import open_service
from shepherd_memory.config import Config, default_config_path, own_folders, private_files, set_value
from shepherd_memory.memory.saved_chats import InputHistory


@pytest.fixture
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def everything_in(folder: Path) -> list[Path]:
    return [folder, *folder.rglob("*")]


@pytest.mark.parametrize("umask", [0, 0o022, 0o077], indirect=True)
def test_settings_data_and_state_are_for_their_owner_alone(umask: int) -> None:
    set_value(default_config_path(), "user_id", "steve")
    with open_service(Config(embedding_engine="none"), worker=False) as service:
        service.set_fact("steve", "town", "Ghent")
        InputHistory("steve").add("hello")
        made = [path for folder in own_folders() for path in everything_in(folder)]
        assert {path.name for path in made} >= {"config.toml", "memory.db", "memory.db-wal", "chats"}
        assert {mode_of(path) for path in made if path.is_dir()} == {0o700}
        assert {mode_of(path) for path in made if path.is_file()} == {0o600}


@pytest.mark.parametrize("umask", [0, 0o022, 0o077, 0o777], indirect=True)
def test_a_folder_is_made_with_all_above_it(tmp_path: Path, umask: int) -> None:
    private_files.make_folder(tmp_path / "a" / "b" / "c")
    private_files.make_folder(tmp_path / "a" / "b" / "c")
    assert [mode_of(tmp_path / name) for name in ("a", "a/b", "a/b/c")] == [0o700] * 3


def test_what_was_open_to_others_is_closed_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    config = Config(embedding_engine="none")
    with open_service(config, worker=False) as service:
        service.set_fact("steve", "town", "Ghent")
        path = Path(service.database.url.removeprefix("sqlite:///"))
    path.chmod(0o666)
    path.parent.chmod(0o755)
    for _ in range(2):
        with open_service(config, worker=False):
            assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert f"{path.parent} was open to other accounts (mode 0755)" in told[0]
    assert f"{path} was open to other accounts (mode 0666)" in told[1]


def test_a_folder_that_is_not_ours_stays_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)
    set_value(folder / "config.toml", "user_id", "steve")
    config = Config(embedding_engine="none", memory_database=str(folder / "memory.db"))
    with open_service(config, worker=False):
        assert mode_of(folder) == 0o755
