"""A backend that this tree does not know needs two entry points to run the contract tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PACKAGE = """
from contextlib import contextmanager

import shepherd_sqlite
from tests.databases import DatabaseSource


def connect(url):
    return shepherd_sqlite.connect(url.replace("third://", "sqlite:///"))


class ThirdDatabases(DatabaseSource):
    def create(self, folder):
        return f"third://{folder}/third.db"

    def remove(self, url):
        pass

    def dump(self, url):
        raise NotImplementedError


@contextmanager
def open_source(folder):
    yield ThirdDatabases()
"""

ENTRY_POINTS = """
[shepherd_memory.backends]
third = shepherd_third:connect

[shepherd_memory.test_databases]
third = shepherd_third:open_source
"""


def test_contract_tests_run_on_a_scheme_that_only_entry_points_name(tmp_path: Path) -> None:
    (tmp_path / "shepherd_third.py").write_text(PACKAGE)
    installed = tmp_path / "shepherd_third-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: shepherd-third\nVersion: 0\n")
    (installed / "entry_points.txt").write_text(ENTRY_POINTS)
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "SHEPHERD_TEST_SCHEMES": "third",
    }
    command = [sys.executable, "-m", "pytest", "-v", "-p", "pytest_timeout", "-p", "no:cacheprovider"]
    # One takes a database without tables, the other two borrow one that is used again.
    files = [f"tests/contract/test_{name}.py" for name in ("exchanges", "vectors", "status")]
    run = subprocess.run([*command, *files], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    schemes = re.findall(r"\[.*?(sqlite|postgresql|third).*?\] PASSED", run.stdout)
    assert len(schemes) > 20
    assert set(schemes) == {"third"}
