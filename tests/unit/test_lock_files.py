"""The lock files: they agree with pyproject.toml, and every package in them has its hashes."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BUILD = PROJECT["dependency-groups"]["build"]
RUN = [*PROJECT["project"]["dependencies"], *BUILD]
EXTRAS = PROJECT["project"]["optional-dependencies"]
DEV = [*RUN, *EXTRAS["postgres"], *(line for line in EXTRAS["dev"] if not line.startswith("shepherd-memory"))]
LOCKS = {"requirements.txt": RUN, "requirements-dev.txt": DEV}
REMEDY = "run `make lock` and commit config/"

each_lock = pytest.mark.parametrize("name", LOCKS)


@dataclass(frozen=True)
class Pin:
    """One package of a lock file: its pin, its hashes, and whether the project itself asks for it."""

    requirement: Requirement
    hashes: int
    is_direct: bool

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)


def pins(name: str) -> list[Pin]:
    lines = (ROOT / "config" / name).read_text()
    entries = re.split(r"\n(?=[a-zA-Z0-9])", "\n" + re.sub(r"^#.*\n", "", lines, flags=re.MULTILINE))[1:]
    return [
        Pin(
            Requirement(entry.partition(" \\\n")[0]),
            len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry)),
            "shepherd-memory (pyproject.toml" in entry,
        )
        for entry in entries
    ]


@each_lock
def test_a_lock_file_allows_what_the_project_asks_for(name: str) -> None:
    locked = pins(name)
    for requirement in map(Requirement, LOCKS[name]):
        versions = [pin for pin in locked if pin.name == canonicalize_name(requirement.name)]
        assert versions, f"{requirement.name} is not in config/{name}: {REMEDY}"
        for pin in versions:
            [exactly] = pin.requirement.specifier
            assert exactly.operator == "=="
            assert exactly.version in requirement.specifier, (
                f"{pin.requirement} is not {requirement}: {REMEDY}"
            )


@each_lock
def test_a_lock_file_has_nothing_that_the_project_no_longer_asks_for(name: str) -> None:
    wanted = {canonicalize_name(Requirement(line).name) for line in LOCKS[name]}
    assert {pin.name for pin in pins(name) if pin.is_direct} == wanted, REMEDY


@each_lock
def test_every_package_of_a_lock_file_has_its_hashes_and_no_index_is_named(name: str) -> None:
    locked = pins(name)
    assert len(locked) > 40
    assert all(pin.hashes for pin in locked)
    text = (ROOT / "config" / name).read_text()
    assert "index-url" not in text
    assert "find-links" not in text
    assert "://" not in text


def test_both_lock_files_pin_the_same_versions() -> None:
    dev = {str(pin.requirement) for pin in pins("requirements-dev.txt")}
    assert {str(pin.requirement) for pin in pins("requirements.txt")} <= dev
