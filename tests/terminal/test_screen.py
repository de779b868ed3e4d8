from datetime import UTC, datetime

import pytest

from shepherd_memory.frontends.terminal.safe_text import escape_block, escape_line, safe_json
from shepherd_memory.frontends.terminal.tables import aligned, clip, width
from shepherd_memory.frontends.terminal.times import age, local
from tests.terminal.shell import good, on_terminal


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode 日本 👩‍👩‍👧", "plain ünïcode 日本 👩‍👩‍👧"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("\ud800", "\\ud800"),
    ],
)
def test_a_line_cannot_drive_the_terminal(text: str, shown: str) -> None:
    assert escape_line(text) == shown


def test_a_block_keeps_its_lines_and_nothing_else() -> None:
    assert escape_block("a\n\tb\x1bc\r") == "a\n\tb\\x1bc\\r"


def test_json_is_escaped_as_json() -> None:
    assert safe_json('"\x9b"') == '"\\u009b"'


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("", 0)])
def test_width_is_counted_in_columns(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "size", "shown"), [("abcdef", 6, "abcdef"), ("abcdefg", 6, "abcde…"), ("日本語", 5, "日本…")]
)
def test_clipped_text_fits(text: str, size: int, shown: str) -> None:
    assert clip(text, size) == shown
    assert width(shown) <= size


def test_the_widest_column_gives_way_first() -> None:
    lines = list(aligned([("ID", "TEXT"), ("1", "x" * 100)], 20))
    assert lines == ["ID  TEXT", f"1   {'x' * 15}…"]
    assert all(width(line) <= 20 for line in lines)


def test_a_tiny_terminal_still_gets_something() -> None:
    assert list(aligned([("a" * 50, "b" * 50)], 3)) == ["aa…  bb…"]


def test_a_time_is_local_and_the_ends_of_the_calendar_are_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(local(datetime(2026, 2, 14, 9, 31, tzinfo=UTC))) == len("2026-02-14 09:31")
    assert local(datetime.max.replace(tzinfo=UTC)).startswith("9999-12-31")
    assert local(datetime.min.replace(tzinfo=UTC)).startswith("0001-01-01")
    assert local(None) == ""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (59, "59 s"), (119, "119 s"), (720, "12 min"), (10_800, "3 h"), (259_200, "3 d")],
)
def test_an_age_has_one_unit(seconds: float, said: str) -> None:
    assert age(seconds) == said


def test_a_table_fits_the_terminal_and_memories_cannot_drive_it() -> None:
    good("facts", "set", "title", f"\x1b]0;owned\x07\x9b2J {'long ' * 100}")
    good("documents", "add", f"\x1b[2J\x07 first\nsecond {'long ' * 100}")
    for args in (["facts"], ["documents"]):
        code, seen = on_terminal(*args, columns=70)
        assert code == 0
        assert all(width(line) <= 70 for line in seen.splitlines())
        assert seen.splitlines()[0].split()[0] in ("KEY", "ID")
        assert "…" in seen
    for args in (
        ["facts"],
        ["facts", "get", "title"],
        ["facts", "--json"],
        ["documents", "show", "2"],
        ["memory", "export"],
    ):
        _, seen = on_terminal(*args)
        assert "long" in seen
        assert not {"\x1b", "\x9b", "\x07"} & set(seen)


def test_a_pipe_gets_whole_values() -> None:
    value = f"\x1b[1m {'long ' * 100}end\nof it"
    good("facts", "set", "title", value)
    assert good("facts", "get", "title").stdout == "{}\n".format(value.replace("\x1b", "\\x1b"))
    assert good("facts").stdout.split("\t")[1].endswith("end\\nof it")
