"""What a chat leaves on disk: found by its owner alone, without secrets, and gone when it is deleted."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.config import private_files, state_folder
from shepherd_memory.errors import InvalidInput, ShepherdError
from shepherd_memory.memory import saved_chats
from shepherd_memory.memory.saved_chats import MAX_HISTORY_LINES, VERSION, InputHistory, SavedChat
from shepherd_memory.text.canonical import dump_json, load_json
from shepherd_memory.text.ids import digest_of

PLACE = "/home/ada/work"
SECRET = "sk-ant-api03-" + "Zx9Yw8Vu7Ts6" * 7 + "-AA"
needs_permissions = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


def said(role: str, content: str, number: int = 0, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "id": f"m{number}", **more}


def calling(number: int, *ids: str) -> dict[str, Any]:
    function = {"name": "get_fact", "arguments": '{"key": "city"}'}
    return said("assistant", "", number, tool_calls=[{"id": one, "function": function} for one in ids])


CHAT = SavedChat(
    "s1",
    [
        said("user", "Where do I live? naïve ☕ 你好", 1, created_at="2026-02-14T09:31:00Z"),
        calling(2, "c1"),
        said("tool", "city: Bonn", 3, tool_call_id="c1", name="get_fact"),
        said("assistant", "In Bonn.", 4),
    ],
    frozenset({"m1", "m4"}),
)


def files() -> list[Path]:
    return [path for path in state_folder().rglob("*") if path.is_file()]


def chat_files() -> list[Path]:
    return [path for path in files() if path.suffix == ".json"]


def kept_name(session_id: str) -> str:
    return f"{digest_of(session_id)}{saved_chats.KEPT}.json"


def only_file() -> Path:
    (found,) = (path for path in files() if path.suffix == ".json")
    return found


def test_a_chat_is_loaded_as_it_was_saved() -> None:
    saved_chats.save("ada", PLACE, "lab", CHAT)
    assert saved_chats.load("ada", PLACE, "lab") == CHAT


def test_where_nothing_was_saved_there_is_nothing_to_load() -> None:
    assert saved_chats.load("ada", PLACE, "lab") is None


def test_each_user_folder_and_provider_has_its_own() -> None:
    saved_chats.save("ada", PLACE, "lab", CHAT)
    for other in (("bob", PLACE, "lab"), ("ada", "/home/ada", "lab"), ("ada", PLACE, "cloud")):
        assert saved_chats.load(*other) is None
    mine = SavedChat("s2", [said("user", "bob's words")])
    saved_chats.save("bob", PLACE, "lab", mine)
    assert saved_chats.load("ada", PLACE, "lab") == CHAT
    assert saved_chats.load("bob", PLACE, "lab") == mine


def test_a_folder_is_the_same_by_whatever_path_it_is_reached(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    saved_chats.save("ada", str(tmp_path / "real"), "lab", CHAT)
    assert saved_chats.load("ada", str(tmp_path / "link"), "lab") == CHAT


@pytest.mark.parametrize("user_id", ["../../etc", "a/b", "ada\n", "☕", "a" * 256])
def test_a_users_id_never_becomes_a_path(user_id: str) -> None:
    saved_chats.save(user_id, PLACE, "../lab", CHAT)
    assert saved_chats.load(user_id, PLACE, "../lab") == CHAT
    assert all(path.parent.parent == state_folder() / "chats" for path in files())


def test_secrets_are_in_no_file() -> None:
    messages = [said("user", f"my key is {SECRET}", 1), said("assistant", f"so it is {SECRET}", 2)]
    saved_chats.save("ada", PLACE, "lab", SavedChat("s1", messages))
    InputHistory("ada").add(f"/provider add lab --api-key {SECRET}")
    assert files()
    for path in files():
        assert SECRET.encode() not in path.read_bytes()
        assert SECRET[20:60].encode() not in path.read_bytes()
    loaded = saved_chats.load("ada", PLACE, "lab")
    assert loaded is not None
    assert "[redacted:" in loaded.messages[0]["content"]


def test_nobody_else_may_read_what_is_saved() -> None:
    saved_chats.save("ada", PLACE, "lab", CHAT)
    InputHistory("ada").add("hello")
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files())
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in files()} == {0o700}


def test_text_that_no_file_can_hold_is_made_storable() -> None:
    saved_chats.save("ada", PLACE, "lab", SavedChat("s1", [said("user", "half \ud800 and \0", 1)]))
    InputHistory("ada").add("half \ud800 and \0")
    loaded = saved_chats.load("ada", PLACE, "lab")
    assert loaded is not None
    assert loaded.messages[0]["content"] == "half \ufffd and \ufffd"
    assert InputHistory("ada").entries() == ["half \ufffd and \ufffd"]


def test_what_a_newer_version_wrote_is_refused_and_left_alone() -> None:
    saved_chats.save("ada", PLACE, "lab", CHAT)
    newer = dump_json(load_json(only_file().read_text()) | {"version": VERSION + 1})
    only_file().write_text(newer)
    with pytest.raises(InvalidInput, match="a newer shepherd wrote it"):
        saved_chats.load("ada", PLACE, "lab")
    assert only_file().read_text() == newer


def message_file(*messages: object) -> bytes:
    return dump_json({"version": VERSION, "session_id": "s", "messages": list(messages)}).encode()


BROKEN = {
    "empty": b"",
    "cut": dump_json({"version": VERSION, "session_id": "s", "messages": []}).encode()[:-5],
    "binary": bytes(range(256)),
    "another encoding": '{"version": 1, "é": 1}'.encode("latin-1"),
    "a list": b"[1, 2]",
    "a number": b"7",
    "null": b"null",
    "without a version": b'{"session_id": "s", "messages": []}',
    "a version that is none": b'{"version": "x", "session_id": "s", "messages": []}',
    "without messages": b'{"version": 1, "session_id": "s"}',
    "messages that are none": b'{"version": 1, "session_id": "s", "messages": 7}',
    "a number as message": message_file(7),
    "a text as message": message_file("hello"),
    "a list as message": message_file([["role", "user"]]),
    "no role": message_file({"content": "x", "id": "m"}),
    "another role": message_file(said("system", "obey")),
    "no content": message_file({"role": "user", "id": "m"}),
    "parts as content": message_file({"role": "user", "id": "m", "content": [{"type": "text", "text": "x"}]}),
    "no id": message_file({"role": "user", "content": "x"}),
    "calls that are none": message_file({**said("assistant", "x"), "tool_calls": [7]}),
    "calls without a name": message_file({**said("assistant", "x"), "tool_calls": [{"function": {}}]}),
    "a lone surrogate": b'{"version": 1, "session_id": "s", "messages": ["\\ud800"]}',
    "endless nesting": b"[" * 100_000,
    "huge": b'{"version": 1, "messages": "' + b"x" * 10_000_000,
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=list(BROKEN))
def test_a_file_that_cannot_be_read_is_said_to_be_so_and_can_be_written_anew(content: bytes) -> None:
    saved_chats.save("ada", PLACE, "lab", CHAT)
    only_file().write_bytes(content)
    with pytest.raises(InvalidInput, match=r"cannot be read as a saved chat .* move it away"):
        saved_chats.load("ada", PLACE, "lab")
    saved_chats.forget_said("ada", {"m1"}, {"anything"})
    saved_chats.save("ada", PLACE, "lab", CHAT)
    assert saved_chats.load("ada", PLACE, "lab") == CHAT


def test_a_folder_in_the_place_of_the_file_is_said_to_be_so() -> None:
    saved_chats.save("ada", PLACE, "lab", CHAT)
    path = only_file()
    path.unlink()
    path.mkdir()
    with pytest.raises(InvalidInput, match="cannot be read"):
        saved_chats.load("ada", PLACE, "lab")


@needs_permissions
def test_a_folder_that_cannot_be_written_is_an_error_for_a_chat_and_none_for_history() -> None:
    state_folder().mkdir(parents=True)
    state_folder().chmod(0o500)
    with pytest.raises(OSError, match="Permission denied"):
        saved_chats.save("ada", PLACE, "lab", CHAT)
    history = InputHistory("ada")
    history.add("one")
    history.add("two")
    assert history.entries() == ["one", "two"]
    state_folder().chmod(0o700)


def test_a_file_in_the_place_of_the_folder_is_an_error_for_a_chat_and_none_for_history() -> None:
    state_folder().parent.mkdir(parents=True, exist_ok=True)
    state_folder().write_text("")
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        saved_chats.save("ada", PLACE, "lab", CHAT)
    history = InputHistory("ada")
    history.add("one")
    history.add("two")
    assert history.entries() == ["one", "two"]
    assert saved_chats.forget("ada") == 0


def test_forgetting_a_user_removes_everything_of_theirs_and_of_nobody_else() -> None:
    for user_id in ("ada", "bob"):
        saved_chats.save(user_id, PLACE, "lab", CHAT)
        saved_chats.save(user_id, PLACE, "cloud", CHAT)
        InputHistory(user_id).add("hello")
    assert saved_chats.forget("ada") == 3
    assert saved_chats.load("ada", PLACE, "lab") is None
    assert InputHistory("ada").entries() == []
    assert saved_chats.load("bob", PLACE, "lab") == CHAT
    assert InputHistory("bob").entries() == ["hello"]
    assert len({path.parent for path in files()}) == 1
    assert saved_chats.forget("ada") == 0


def test_a_history_that_is_open_does_not_bring_back_what_was_erased() -> None:
    history = InputHistory("ada")
    history.add("before")
    saved_chats.forget("ada")
    assert history.entries() == []
    history.add("after")
    assert InputHistory("ada").entries() == ["after"]


def test_forgetting_a_session_removes_its_chats_and_what_cannot_be_read() -> None:
    saved_chats.save("ada", PLACE, "lab", CHAT)
    saved_chats.save("ada", PLACE, "cloud", SavedChat("s2", CHAT.messages))
    saved_chats.save("bob", PLACE, "lab", CHAT)
    assert saved_chats.forget("ada", "s1") == 1
    assert saved_chats.load("ada", PLACE, "lab") is None
    assert saved_chats.load("ada", PLACE, "cloud") is not None
    assert saved_chats.load("bob", PLACE, "lab") == CHAT


def named(session_id: str, text: str = "hello") -> SavedChat:
    return SavedChat(session_id, [said("user", text, 1)])


def test_an_earlier_chat_of_the_same_folder_is_still_found_by_its_session() -> None:
    for chat in (CHAT, named("s2"), named("s3")):
        saved_chats.save("ada", PLACE, "lab", chat)
    assert saved_chats.load("ada", PLACE, "lab") == named("s3")
    assert saved_chats.of_session("ada", "s1") == CHAT
    assert saved_chats.of_session("ada", "s2") == named("s2")
    for user_id, group in (("bob", "main"), ("ada", "team")):
        assert saved_chats.of_session(user_id, "s1", group) is None
    saved_chats.save("ada", PLACE, "lab", CHAT)
    assert saved_chats.load("ada", PLACE, "lab") == saved_chats.of_session("ada", "s1") == CHAT
    assert sorted(load_json(path.read_text())["session_id"] for path in chat_files()) == ["s1", "s2", "s3"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in chat_files())


def test_one_that_is_put_aside_is_not_the_one_to_continue() -> None:
    saved_chats.put_aside("ada", "s1")
    assert files() == []
    saved_chats.save("ada", PLACE, "lab", CHAT)
    saved_chats.save("ada", PLACE, "lab", CHAT, "team")
    saved_chats.put_aside("ada", "s1")
    assert saved_chats.load("ada", PLACE, "lab") is None
    assert saved_chats.of_session("ada", "s1") == CHAT
    assert saved_chats.load("ada", PLACE, "lab", "team") == CHAT


def test_what_is_forgotten_leaves_earlier_chats_too() -> None:
    for group in ("main", "team"):
        saved_chats.save("ada", PLACE, "lab", CHAT, group)
        saved_chats.save("ada", PLACE, "lab", named("s2"), group)
    saved_chats.forget_said("ada", {"m1"}, {"hello"})
    kept = saved_chats.of_session("ada", "s1")
    assert kept is not None
    assert [one["id"] for one in kept.messages] == ["m2", "m3", "m4"]
    assert saved_chats.of_session("ada", "s1", "team") == CHAT
    assert saved_chats.forget("ada", "s1") == 1
    assert saved_chats.of_session("ada", "s1") is None
    assert saved_chats.of_session("ada", "s1", "team") == CHAT
    assert saved_chats.forget("ada") == 3
    assert files() == []


def test_of_earlier_chats_the_newest_are_kept_and_no_last_one_goes() -> None:
    saved_chats.save("ada", "/another/folder", "lab", named("elsewhere"))
    for number in range(saved_chats.MAX_KEPT_CHATS + 3):
        saved_chats.save("ada", PLACE, "lab", named(f"s{number}"))
    assert len(chat_files()) == saved_chats.MAX_KEPT_CHATS + 2
    assert [saved_chats.of_session("ada", f"s{number}") is None for number in range(4)] == [True] * 2 + [
        False
    ] * 2
    assert saved_chats.of_session("ada", "elsewhere") == named("elsewhere")
    kept = [path for path in chat_files() if saved_chats.KEPT in path.name]
    large = max(kept, key=lambda path: path.stat().st_mtime_ns)
    times = large.stat().st_atime_ns, large.stat().st_mtime_ns
    os.truncate(large, saved_chats.MAX_KEPT_BYTES)
    os.utime(large, ns=times)
    saved_chats.save("ada", PLACE, "lab", named("last"))
    assert not large.exists()
    assert {path for path in kept if path.exists()} == {*kept} - {large}
    assert kept_name("s52") in {path.name for path in chat_files()}


def test_a_groups_chats_and_what_was_typed_are_its_own() -> None:
    theirs = SavedChat("s1", [said("user", "of the team", 1)])
    saved_chats.save("ada", PLACE, "lab", CHAT)
    saved_chats.save("ada", PLACE, "lab", theirs, "team")
    InputHistory("ada").add("of main")
    InputHistory("ada", group="team").add("of the team")
    assert saved_chats.load("ada", PLACE, "lab") == CHAT
    assert saved_chats.load("ada", PLACE, "lab", "team") == theirs
    assert saved_chats.load("ada", PLACE, "lab", "other") is None
    assert InputHistory("ada").entries() == ["of main"]
    assert InputHistory("ada", group="team").entries() == ["of the team"]
    assert InputHistory("ada", group="other").entries() == []
    saved_chats.forget_said("ada", {"m1"}, {"of main", "of the team"}, "other")
    assert saved_chats.forget("ada", "s1", "other") == 0
    saved_chats.forget_said("ada", {"m1"}, {"of main", "of the team"}, "team")
    assert saved_chats.load("ada", PLACE, "lab", "team") == SavedChat("s1", [])
    assert InputHistory("ada", group="team").entries() == []
    assert saved_chats.load("ada", PLACE, "lab") == CHAT
    assert InputHistory("ada").entries() == ["of main"]


def test_a_chat_that_cannot_be_read_is_forgotten_with_a_session_of_its_group_alone() -> None:
    saved_chats.save("ada", PLACE, "lab", CHAT, "team")
    (file,) = [path for path in files() if path.suffix == ".json"]
    file.write_bytes(b"{")
    assert saved_chats.forget("ada", "s1") == 0
    assert saved_chats.forget("ada", "s1", "other") == 0
    assert saved_chats.forget("ada", "s1", "team") == 1
    saved_chats.save("ada", PLACE, "lab", CHAT, "team")
    assert saved_chats.forget("ada") == 1


def test_deleted_texts_leave_chats_and_history() -> None:
    saved_chats.save("ada", PLACE, "lab", CHAT)
    history = InputHistory("ada")
    for line in ("In Bonn.", "  In Bonn. ", "/In Bonn.", "In Bonn or not"):
        history.add(line)
    saved_chats.forget_said("ada", {"m4"}, {"In Bonn."})
    loaded = saved_chats.load("ada", PLACE, "lab")
    assert loaded is not None
    assert [one["content"] for one in loaded.messages] == [CHAT.messages[0]["content"], "", "city: Bonn"]
    assert history.entries() == ["In Bonn or not"]
    assert all(b"In Bonn." not in path.read_bytes() for path in files())


def test_a_call_whose_answer_was_deleted_is_not_loaded() -> None:
    saved_chats.save("ada", PLACE, "lab", CHAT)
    saved_chats.forget_said("ada", {"m3"}, {"city: Bonn"})
    loaded = saved_chats.load("ada", PLACE, "lab")
    assert loaded is not None
    assert [one["id"] for one in loaded.messages] == ["m1", "m4"]


ROUNDS = {
    "two calls, one answer": ([calling(1, "a", "b"), said("tool", "x", 2, tool_call_id="a")], []),
    "an answer without a call": ([said("tool", "x", 1, tool_call_id="a"), said("user", "y", 2)], ["m2"]),
    "an answer to another call": ([calling(1, "a"), said("tool", "x", 2, tool_call_id="b")], []),
    "an answer to what is no call": (
        [said("assistant", "y", 1), said("tool", "x", 2, tool_call_id="a")],
        ["m1"],
    ),
    "a whole round": (
        [calling(1, "a", "b"), *(said("tool", "x", n, tool_call_id=one) for n, one in ((2, "b"), (3, "a")))],
        ["m1", "m2", "m3"],
    ),
}


@pytest.mark.parametrize(("messages", "expected"), ROUNDS.values(), ids=list(ROUNDS))
def test_only_whole_rounds_of_tools_are_loaded(messages: list[dict[str, Any]], expected: list[str]) -> None:
    saved_chats.save("ada", PLACE, "lab", SavedChat("s", messages))
    loaded = saved_chats.load("ada", PLACE, "lab")
    assert loaded is not None
    assert [one["id"] for one in loaded.messages] == expected


def test_what_cannot_be_removed_is_said() -> None:
    saved_chats.save("ada", PLACE, "lab", CHAT)
    folder = only_file().parent
    (folder / saved_chats.LOCK).unlink()
    (folder / saved_chats.LOCK).mkdir()
    with pytest.raises(ShepherdError, match="remove it by hand"):
        saved_chats.forget("ada")
    with pytest.raises(ShepherdError, match="remove it by hand"):
        saved_chats.forget_said("ada", {"m1"}, {"x"})


def test_history_keeps_the_last_of_each_line_newest_last() -> None:
    history = InputHistory("ada")
    for line in ("one", "two", "three\nlines\nlong", "one"):
        history.add(line)
    assert InputHistory("ada").entries() == ["two", "three\nlines\nlong", "one"]


def test_history_is_bounded() -> None:
    path = InputHistory("ada")
    path.add("first")
    file = next(one for one in files() if one.name == saved_chats.HISTORY)
    file.write_bytes(b"".join(f'"{number}"\n'.encode() for number in range(MAX_HISTORY_LINES * 3)))
    InputHistory("ada").add("last")
    entries = InputHistory("ada").entries()
    assert len(entries) == MAX_HISTORY_LINES
    assert entries[-1] == "last"
    assert file.read_bytes().count(b"\n") == MAX_HISTORY_LINES


def test_lines_of_a_history_that_cannot_be_read_are_left_out() -> None:
    InputHistory("ada").add("one")
    file = next(one for one in files() if one.name == saved_chats.HISTORY)
    file.write_bytes(file.read_bytes() + b'\xff\n7\n{"a": 1}\n"tw')
    assert InputHistory("ada").entries() == ["one"]
    InputHistory("ada").add("three")
    assert InputHistory("ada").entries() == ["one", "three"]


@pytest.mark.parametrize("user_id", ["unknown", "", " "])
def test_nothing_is_kept_for_nobody(user_id: str) -> None:
    history = InputHistory(user_id)
    history.add("hello")
    assert history.entries() == ["hello"]
    assert files() == []


def test_a_history_that_is_not_to_be_kept_is_in_no_file() -> None:
    history = InputHistory("ada", is_kept=False)
    history.add("hello")
    assert history.entries() == ["hello"]
    assert files() == []


ADDING = """
import sys
from shepherd_memory.memory import saved_chats
from shepherd_memory.memory.saved_chats import InputHistory, SavedChat
sys.stdin.readline()
for number in range(40):
    InputHistory("ada").add(f"{sys.argv[1]} {number}")
    message = {"role": "user", "content": sys.argv[1] * 1000, "id": "m"}
    saved_chats.save("ada", "/home/ada", "lab", SavedChat("s", [message]))
"""


@pytest.fixture
def two_writers() -> Iterator[list["subprocess.Popen[str]"]]:
    started = [
        subprocess.Popen([sys.executable, "-c", ADDING, name], stdin=subprocess.PIPE, text=True)
        for name in ("left", "right")
    ]
    yield started
    for process in started:
        process.kill()
        process.communicate()


def test_two_processes_lose_none_of_each_others_lines(two_writers: list["subprocess.Popen[str]"]) -> None:
    for process in two_writers:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.wait(60) for process in two_writers] == [0, 0]
    expected = {f"{name} {number}" for name in ("left", "right") for number in range(40)}
    assert set(InputHistory("ada").entries()) == expected
    loaded = saved_chats.load("ada", "/home/ada", "lab")
    assert loaded is not None
    assert loaded.messages[0]["content"] in ("left" * 1000, "right" * 1000)
    assert sorted(path.name for path in files() if path.suffix == ".tmp") == []


def test_what_a_killed_writer_left_is_cleared_away(tmp_path: Path) -> None:
    target = tmp_path / "chat.json"
    (tmp_path / ".chat.json.tmp").write_bytes(b"half")
    private_files.replace(target, b"whole")
    assert target.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [target]
