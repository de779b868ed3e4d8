"""The example file and the reference page say what the code does."""

import re
import tomllib
from pathlib import Path

import pytest

from shepherd_memory.config import PROVIDER_FIELDS, SETTINGS, Provider, Setting, load_config, variable
from shepherd_memory.config.keys import RESERVED_NAMES
from tests.docs.live_keys import live

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config" / "shepherd.toml"
REFERENCE = ROOT / "docs" / "reference" / "config.md"


def common_cells(setting: Setting) -> str:
    default = setting.show(setting.default) or '""'
    return f"| `{setting.key}` | {setting.rule.takes} | `{default}` | {setting.doc} |"


def test_the_example_has_every_key_at_its_default() -> None:
    table = tomllib.loads(EXAMPLE.read_text("utf-8"))
    assert table == {key: setting.default for key, setting in SETTINGS.items()}
    assert list(table) == list(SETTINGS)
    load_config(EXAMPLE, {})


def test_every_key_in_the_example_has_a_comment() -> None:
    lines = EXAMPLE.read_text("utf-8").splitlines()
    keys = [number for number, line in enumerate(lines) if re.match(r"\w+ = ", line)]
    assert len(keys) == len(SETTINGS)
    assert all(lines[number - 1].startswith("# ") for number in keys)


def test_the_commented_provider_is_a_valid_one_with_every_field() -> None:
    text = "\n".join(re.findall(r"^# (\[providers\..*|\w+ = .*)$", EXAMPLE.read_text("utf-8"), re.MULTILINE))
    ((name, table),) = tomllib.loads(text)["providers"].items()
    assert set(table) == set(PROVIDER_FIELDS)
    Provider(name, **table)


@pytest.mark.parametrize("key", SETTINGS)
def test_the_reference_has_every_key_as_the_code_has_it(key: str) -> None:
    line = f"{common_cells(SETTINGS[key])} `{variable(key)}` | {live(key)} |"
    assert line in REFERENCE.read_text("utf-8").splitlines()


def test_the_reference_explains_each_key_that_a_running_process_reads_anew_only_in_part() -> None:
    _, _, about = REFERENCE.read_text("utf-8").partition("## Changing it under a running process")
    explained = set(re.findall(r"^\| `(\w+)` \|", about, re.MULTILINE))
    assert explained == {key for key in SETTINGS if live(key) == "in part"}


@pytest.mark.parametrize("field", PROVIDER_FIELDS)
def test_the_reference_has_every_field_of_a_provider(field: str) -> None:
    assert common_cells(PROVIDER_FIELDS[field]) in REFERENCE.read_text("utf-8").splitlines()


@pytest.mark.parametrize("word", RESERVED_NAMES)
def test_the_reference_has_every_word_of_the_provider_command(word: str) -> None:
    assert f"`{word}`" in REFERENCE.read_text("utf-8")
