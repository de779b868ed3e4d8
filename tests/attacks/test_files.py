"""What happens to our files from outside, and what a command prints of hostile ones."""

import os
import stat
from pathlib import Path

import pytest

from tests.acceptance.server_site import Site
from tests.provider import chat

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@on_sqlite
def test_settings_that_are_emptied_under_a_running_server_stay_in_force(site: Site) -> None:
    site.provider.default = chat("Understood.")
    server = site.serve()
    assert server.chat("I like tea.", "steve").memory == "on"
    before = site.settings.path.read_text()
    os.truncate(site.settings.path, 0)
    assert server.chat("I like coffee.", "steve").memory == "on"
    assert "is empty" in server.problems()
    site.settings.path.write_text(before)
    assert server.chat("I like cocoa.", "steve").memory == "on"
    assert server.problems() == ""


@on_sqlite
def test_no_umask_and_no_mode_opens_our_files_to_others(site: Site, tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    database.chmod(0o666)
    umask = os.umask(0)
    try:
        told = site.shepherd("facts", "set", "town", "Ghent", "--user", "steve")
    finally:
        os.umask(umask)
    assert "open to other accounts" in told
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("memory.db*")} == {0o600}


@on_sqlite
def test_a_memory_drives_no_terminal_through_a_pipe(site: Site) -> None:
    hostile = "\x1b[2J\x1b]52;c;aGk=\x07\x9b31m \u202e"
    site.shepherd("facts", "set", "town", hostile, "--user", "steve")
    printed = site.shepherd("facts", "get", "town", "--user", "steve")
    assert "\\x1b[2J" in printed
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(printed)
