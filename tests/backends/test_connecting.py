"""Which backend a URL chooses, and what is said when it cannot be used."""

from pathlib import Path

import pytest

from shepherd_memory.errors import DatabaseRefused, DatabaseUnavailable
from shepherd_memory.storage.database import open_database


def test_an_unknown_scheme_says_what_there_is() -> None:
    with pytest.raises(DatabaseRefused, match=r"no backend for 'mongo' \(installed: postgresql, sqlite\)"):
        open_database("mongo://host/db")


def test_a_database_that_cannot_be_reached_says_so_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable) as refusal:
        open_database("postgresql://me:hunter2@127.0.0.1:9/db")
    assert "hunter2" not in str(refusal.value)
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseUnavailable):
        open_database(f"{tmp_path}/file/memory.db")
