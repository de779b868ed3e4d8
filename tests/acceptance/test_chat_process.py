"""`shepherd chat` as a process: in pipes, killed, hung up, on a full disk, and what it leaves behind."""

import json
import os
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.acceptance.combinations import every_value
from tests.acceptance.processes import wait_until
from tests.acceptance.secrets_said import TOKENS, Hoard
from tests.endpoint import ScriptedEndpoint, held, reply
from tests.provider import CUT, ScriptedProvider, ToolCall, chat, openai_error, openai_stream
from tests.terminal.chat_site import CHAT, PROMPT, ChatSite, json_lines, say
from tests.terminal.pty_screen import DEAF_TO_HANGUPS, Terminal, terminal

MUCH = 1024 * 1024
NEVER = threading.Event()


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
def chats(tmp_path: Path, provider: ScriptedProvider) -> ChatSite:
    """A provider in use, with memory; no embedding model, whose loading is no matter here."""
    folder = tmp_path / "site"
    folder.mkdir()
    site = ChatSite(folder, provider)
    site.configure(memory=True, embedding_engine="none", chat_flush_timeout=5)
    return site


def _ignore_hangups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in events]


# Pipes.


def test_a_question_on_stdin_is_answered_on_stdout_and_nothing_else(chats: ChatSite) -> None:
    done = chats.piped(stdin="Hello?\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Hello there.\n", b"")
    assert chats.heard() == ["Hello?"]


def test_prompt_and_stdin_are_one_question(chats: ChatSite) -> None:
    chats.configure(memory=False)
    assert chats.piped("What is this?", stdin="a file\n").returncode == 0
    assert chats.heard() == ["What is this?\n\na file"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("Hello?",), 0),
        pytest.param(("--json", "Hello?"), 0, marks=pytest.mark.thorough),
        ((), 2),
        pytest.param(("--json",), 0, marks=pytest.mark.thorough),
    ],
)
def test_an_input_that_is_closed_is_an_empty_one(
    chats: ChatSite, options: tuple[str, ...], code: int
) -> None:
    with chats.open_pipes(*options, stdin=None, preexec_fn=lambda: os.close(0)) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert b"unexpected" not in errors
    assert chats.heard() == (["Hello?"] if "Hello?" in options else [])


def test_a_key_without_a_server_is_refused_and_one_in_the_environment_is_not(chats: ChatSite) -> None:
    refused = chats.piped("--key", "sk-1", "Hello?")
    assert refused.returncode == 2
    assert b"--server" in refused.stderr
    with chats.open_pipes("Hello?", variables={"SHEPHERD_KEY": "sk-1"}) as process:
        assert process.communicate(timeout=60)[0] == b"Hello there.\n"


def test_a_hangup_that_was_ignored_before_stays_ignored(chats: ChatSite, provider: ScriptedProvider) -> None:
    more = threading.Event()
    provider.script(openai_stream("begun", more, " and done"))
    with chats.open_pipes("Hello?", stdin=subprocess.DEVNULL, preexec_fn=_ignore_hangups) as process:
        assert process.stdout is not None
        assert process.stdout.read(5) == b"begun"
        process.send_signal(signal.SIGHUP)
        more.set()
        assert process.stdout.read() == b" and done\n"
        assert process.wait(60) == 0


def test_a_megabyte_is_one_question(chats: ChatSite) -> None:
    chats.lab["context_window"] = 10 * MUCH
    chats.configure(memory=False)
    assert chats.piped(stdin="x" * MUCH).returncode == 0
    assert chats.heard() == ["x" * MUCH]


@pytest.mark.parametrize(
    ("stdin", "code", "said"),
    [
        (b"", 2, b"there is nothing to ask"),
        (b" \n\t", 2, b"there is nothing to ask"),
        (b"\xff\xfe broken", 2, b"not UTF-8"),
    ],
)
def test_what_cannot_be_asked_is_refused(chats: ChatSite, stdin: bytes, code: int, said: bytes) -> None:
    done = chats.piped(stdin=stdin)
    assert done.returncode == code
    assert said in done.stderr
    assert b"Traceback" not in done.stderr
    assert done.stdout == b""


def test_a_provider_that_fails_is_exit_code_5(chats: ChatSite, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("some words", CUT))
    done = chats.piped("Hello?")
    assert done.returncode == 5
    assert done.stdout == b"some words\n"
    assert done.stderr.count(b"\n") == 1
    assert b"broke off" in done.stderr


def test_no_provider_is_exit_code_5_and_says_what_to_do(chats: ChatSite) -> None:
    chats.path.write_text(f'memory_database = "{chats.database}"\n')
    done = chats.piped("Hello?")
    assert done.returncode == 5
    assert b"shepherd provider add" in done.stderr


def test_ctrl_c_is_exit_code_130(chats: ChatSite, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("begun", NEVER))
    with chats.open_pipes("Hello?", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.read(5) == b"begun"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert chats.said() == ["Hello?"]


def test_a_reader_that_has_enough_ends_it_quietly(chats: ChatSite, provider: ScriptedProvider) -> None:
    gate = threading.Event()
    provider.script(openai_stream("first ", gate, *(["word " * 1000] * 200)))
    with chats.open_pipes("Hello?", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1) == b"f"
        process.stdout.close()
        gate.set()
        seen = process.stderr.read()
        process.wait(60)
    assert b"Traceback" not in seen
    assert b"unexpected" not in seen
    assert chats.said() == ["Hello?"]


def test_a_pipe_gets_the_answer_without_colours_and_its_escapes_made_visible(
    chats: ChatSite, provider: ScriptedProvider
) -> None:
    provider.script(openai_stream({"reasoning_content": "hm"}, "a \x1b[31mred\x1b[0m\tword\r\n"))
    done = chats.piped("Hello?")
    assert (done.stdout, done.stderr) == (b"a \\x1b[31mred\\x1b[0m\tword\n", b"")


# JSON lines.


def test_every_event_is_a_line(chats: ChatSite, provider: ScriptedProvider) -> None:
    call = ToolCall("1", "set_fact", '{"key": "home_city", "value": "Lisbon"}')
    provider.script(openai_stream({"reasoning_content": "hm"}, "Noting. ", call), chat("Noted."))
    done = chats.piped("--json", "--memtools", stdin="I live in Lisbon.\n")
    assert (done.returncode, done.stderr) == (0, b"")
    events = json_lines(done.stdout)
    assert names(events) == [
        "message_added",
        "memory",
        "thought",
        "delta",
        "tool_call",
        "tool_result",
        "message_added",
        "message_added",
        "delta",
        "message_added",
        "response_complete",
    ]
    assert events[-1]["response"] == "Noted."
    assert events[-1]["cancelled"] is False


def test_several_prompts_are_one_session(chats: ChatSite, provider: ScriptedProvider) -> None:
    chats.configure(memory=False)
    lines = ['{"prompt": "one", "max_tokens": 7}', '"two"', "three", ""]
    done = chats.piped("--json", stdin="\n".join(lines))
    assert done.returncode == 0
    assert names(json_lines(done.stdout)).count("response_complete") == 3
    assert chats.heard() == ["one", "two", "three"]
    assert [len(one.json["messages"]) for one in provider.requests] == [1, 3, 5]
    assert provider.requests[0].json["max_tokens"] == 7


@pytest.mark.parametrize(
    "line",
    [
        '{"prompt": 1}',
        '{"question": "x"}',
        '{"prompt": ""}',
        "{}",
        '{"prompt": "x", "memory": 1}',
        '{"prompt": "x", "max_tokens": true}',
    ],
)
def test_a_line_that_makes_no_sense_is_said_and_the_next_one_is_answered(chats: ChatSite, line: str) -> None:
    done = chats.piped("--json", stdin=f"{line}\nHello?\n")
    events = json_lines(done.stdout)
    assert events[0]["event"] == "error"
    assert events[0]["code"] == "invalid_request"
    assert events[-1]["event"] == "response_complete"
    assert done.returncode == 0
    assert done.stderr == b""


def test_lines_of_garbage_end_nothing(chats: ChatSite) -> None:
    deep = b"[" * 100_000
    done = chats.piped("--json", stdin=b"\xff\xfe\n" + deep + b'\n\x00\n"\\ud800"\nHello?\n')
    events = json_lines(done.stdout)
    assert events[0]["event"] == "error"
    assert events[-1]["event"] == "response_complete"
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


def test_a_line_may_ask_without_memory(chats: ChatSite) -> None:
    lines = [json.dumps({"prompt": "a secret plan", "memory": False}), "a plain word"]
    assert chats.piped("--json", stdin="\n".join(lines)).returncode == 0
    assert chats.said() == ["a plain word"]


def test_a_program_that_reads_along_gets_each_line_at_once(
    chats: ChatSite, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    provider.script(openai_stream("one ", gate, "two"))
    with chats.open_pipes("--json") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Hello?\n")
        process.stdin.flush()
        lines = iter(process.stdout.readline, b"")
        assert next(line for line in lines if b'"delta"' in line)
        assert not provider.exchanges[-1].over.is_set()
        gate.set()
        assert next(line for line in lines if b"response_complete" in line)
        process.stdin.write(b"And?\n")
        process.stdin.flush()
        assert next(line for line in lines if b"Hello there." in line)
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_failure_in_json_lines_is_a_line_and_exit_code_5(
    chats: ChatSite, provider: ScriptedProvider
) -> None:
    provider.script(openai_error(401))
    done = chats.piped("--json", "Hello?")
    assert done.returncode == 5
    assert json_lines(done.stdout)[-1]["code"] == "provider_failed"


# What is left behind.


def test_without_memory_no_word_is_on_the_disk(chats: ChatSite, provider: ScriptedProvider) -> None:
    provider.default = chat("A zebra, you say.")
    with chats.on_terminal("--nomemory") as screen:
        say(screen, "my animal is the okapi")
        screen.wait_for("A zebra, you say.")
        screen.wait_for_line(PROMPT)
        say(screen, "exit")
        assert screen.exit_code() == 0
    assert chats.piped("--nomemory", "the okapi again").returncode == 0
    assert chats.piped("--nomemory", "--json", stdin="okapi lines").returncode == 0
    assert chats.files_with("okapi", "zebra") == []


def test_secrets_are_in_no_file(chats: ChatSite, provider: ScriptedProvider) -> None:
    hoard = Hoard(7)
    answered = hoard.new("github", "an answer")
    provider.default = chat(f"Is it {answered}?")
    typed = [hoard.new(kind, "what was typed") for kind in TOKENS if not kind.startswith("pem")]
    with chats.on_terminal() as screen:
        for secret in typed[:4]:
            say(screen, f"my key is {secret}")
            screen.wait_until(lambda lines: sum("Is it" in line for line in lines), "answer")
            screen.wait_for_line(PROMPT)
        say(screen, "exit")
        assert screen.exit_code() == 0
    lines = "\n".join(f"It is {secret}, please" for secret in typed[4:])
    assert chats.piped("--json", stdin=lines).returncode == 0
    assert len(chats.said()) == len(typed)
    files = [path for path in chats.path.parent.rglob("*") if path.is_file()]
    assert {str(path): hoard.found_in(path.read_bytes()) for path in files} == {
        str(path): {} for path in files
    }


# Going on.


def messages_sent(provider: ScriptedProvider) -> list[str]:
    return [message["content"] for message in provider.requests[-1].json["messages"]]


def test_a_chat_is_gone_on_with_in_its_folder_only(
    chats: ChatSite, provider: ScriptedProvider, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    assert chats.piped("the first question", cwd=here).returncode == 0
    assert chats.piped("--continue", "the second", cwd=here).returncode == 0
    assert len(messages_sent(provider)) == 3
    assert chats.piped("--continue", "elsewhere", cwd=there).returncode == 0
    assert len(messages_sent(provider)) == 1
    assert chats.piped("not gone on with", cwd=here).returncode == 0
    assert len(messages_sent(provider)) == 1


def test_a_chat_is_gone_on_with_at_its_provider_only(chats: ChatSite, provider: ScriptedProvider) -> None:
    assert chats.piped("the first question", cwd=chats.home).returncode == 0
    config = chats.path.read_text()
    chats.path.write_text(config.replace("providers.lab", "providers.den").replace('"lab"', '"den"'))
    assert chats.piped("--continue", "the second", cwd=chats.home).returncode == 0
    assert len(messages_sent(provider)) == 1
    chats.path.write_text(config)
    assert chats.piped("--continue", "the third", cwd=chats.home).returncode == 0
    assert len(messages_sent(provider)) == 3


def test_a_chat_that_was_killed_is_gone_on_with(chats: ChatSite, provider: ScriptedProvider) -> None:
    with chats.on_terminal(cwd=chats.home) as screen:
        say(screen, "the first question")
        screen.wait_for("Hello there.")
        screen.wait_for_line(PROMPT)
        screen.send_signal(signal.SIGKILL)
        assert screen.exit_code() == -signal.SIGKILL
    with chats.on_terminal("--continue", cwd=chats.home) as screen:
        screen.wait_for("2 messages of last time")
        say(screen, "the second")
        screen.wait_for("Hello there.")
        say(screen, "exit")
        assert screen.exit_code() == 0
    assert len(messages_sent(provider)) == 3
    assert chats.said() == ["the first question", "the second"]


@pytest.mark.parametrize("content", [b"", b"{", b'{"version": 99}', b"[]", b'{"version": 1, "messages": 3}'])
def test_a_saved_chat_that_cannot_be_read_is_said(chats: ChatSite, content: bytes) -> None:
    assert chats.piped("the first", cwd=chats.home).returncode == 0
    (saved,) = chats.home.rglob("chats/*/*.json")
    saved.write_bytes(content)
    done = chats.piped("--continue", "the second", cwd=chats.home)
    assert done.returncode == 2
    assert b"move it away" in done.stderr
    assert b"Traceback" not in done.stderr
    assert chats.piped("without", cwd=chats.home).returncode == 0


# Ends.


def typing(screen: Terminal) -> None:
    screen.type("half a line")
    screen.wait_for("half a line")


def answering(screen: Terminal) -> None:
    say(screen, "hold on")
    screen.wait_for("begun")


def using_a_tool(screen: Terminal) -> None:
    say(screen, "use a tool")
    screen.wait_for("search_memory", "begun")


def leaving(screen: Terminal) -> None:
    say(screen, "exit")
    screen.wait_for("remembering")


SITUATIONS = (typing, answering, using_a_tool, leaving)


@pytest.fixture
def extracting(chats: ChatSite, provider: ScriptedProvider) -> Iterator[ScriptedEndpoint]:
    """An endpoint that never answers, so that a chat has something to wait for."""
    with ScriptedEndpoint() as endpoint:
        endpoint.default = held(NEVER, reply())
        chats.configure(
            memory_extraction_endpoint=endpoint.url,
            memory_extraction_model="m",
            memory_extraction_timeout=600,
            chat_flush_timeout=600,
        )
        yield endpoint


def begin(screen: Terminal, provider: ScriptedProvider, situation: Callable[[Terminal], None]) -> None:
    """Say one thing, and come into a situation."""
    say(screen, "my home city is Lisbon")
    screen.wait_for("Hello there.")
    screen.wait_for_line(PROMPT)
    if situation is using_a_tool:
        provider.script(openai_stream(ToolCall("1", "search_memory", '{"query": "city"}')))
    provider.script(openai_stream("begun ", NEVER))
    situation(screen)


@pytest.mark.usefixtures("extracting")
@every_value(situation=SITUATIONS, number=[signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_chat_in_order(
    chats: ChatSite,
    provider: ScriptedProvider,
    situation: Callable[[Terminal], None],
    number: signal.Signals,
) -> None:
    with chats.on_terminal("--memtools") as screen:
        begin(screen, provider, situation)
        screen.send_signal(number)
        assert screen.exit_code() == 128 + number
        assert screen.settings() == screen.settings_before
        assert screen.left_behind() == []
        assert "Traceback" not in screen.text()
        assert "unexpected" not in screen.text()
    assert_kept(chats)


@pytest.mark.usefixtures("extracting")
@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_closed_window_ends_a_chat_in_order(
    chats: ChatSite, provider: ScriptedProvider, situation: Callable[[Terminal], None]
) -> None:
    with chats.on_terminal("--memtools") as screen:
        begin(screen, provider, situation)
        screen.hang_up()
        # Kernel and shell both say so, and the second may find it done: to a shell the last two are the same.
        assert screen.exit_code() in (0, 128 + signal.SIGHUP, -signal.SIGHUP)
        assert screen.left_behind() == []
    assert_kept(chats)


@pytest.mark.usefixtures("extracting")
@pytest.mark.parametrize("situation", [typing, leaving])
def test_a_closed_window_is_noticed_where_hangups_are_ignored(
    chats: ChatSite, provider: ScriptedProvider, situation: Callable[[Terminal], None]
) -> None:
    command = (*DEAF_TO_HANGUPS, *CHAT, "--memtools")
    with terminal(*command, environment=chats.environment()) as screen:
        screen.wait_for_line(PROMPT)
        begin(screen, provider, situation)
        screen.hang_up()
        assert screen.exit_code() == 128 + signal.SIGHUP
    assert_kept(chats)


@pytest.mark.usefixtures("extracting")
@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_kill_loses_nothing_that_was_said(
    chats: ChatSite, provider: ScriptedProvider, situation: Callable[[Terminal], None]
) -> None:
    with chats.on_terminal("--memtools") as screen:
        begin(screen, provider, situation)
        screen.send_signal(signal.SIGKILL)
        assert screen.exit_code() == -signal.SIGKILL
    # Stored, if not yet queued: the session is, once it has rested.
    assert chats.said()[0] == "my home city is Lisbon"


def assert_kept(chats: ChatSite) -> None:
    """What was said is stored, and waits to be extracted."""
    assert chats.said()[0] == "my home city is Lisbon"
    with chats.service() as service:
        assert len(service.items("ann")) == 1


def test_a_lost_reader_of_a_pipe_is_no_end_for_what_was_said(
    chats: ChatSite, provider: ScriptedProvider
) -> None:
    provider.script(openai_stream("begun", NEVER))
    with chats.open_pipes("--json") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Hello?\n")
        process.stdin.flush()
        assert next(line for line in iter(process.stdout.readline, b"") if b"begun" in line)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert chats.said() == ["Hello?"]


# Trouble with the database.


def test_a_locked_database_is_said_and_the_chat_goes_on(chats: ChatSite, provider: ScriptedProvider) -> None:
    with chats.on_terminal() as screen:
        other = sqlite3.connect(chats.database, isolation_level=None)
        other.execute("begin immediate")
        say(screen, "my home city is Lisbon")
        screen.wait_for("Hello there.")
        screen.wait_for("not stored yet")
        screen.wait_for_line(PROMPT)
        other.execute("rollback")
        other.close()
        say(screen, "and my dog is Rex")
        wait_until(lambda: len(chats.said()) == 2, "both are stored")
        screen.wait_for_line(PROMPT)
        say(screen, "exit")
        assert screen.exit_code() == 0
    assert chats.said() == ["my home city is Lisbon", "and my dog is Rex"]


def test_a_database_that_stays_locked_keeps_nobody_in_the_chat(chats: ChatSite) -> None:
    with chats.on_terminal() as screen:
        other = sqlite3.connect(chats.database, isolation_level=None)
        other.execute("begin immediate")
        say(screen, "my home city is Lisbon")
        screen.wait_for("not stored yet")
        screen.wait_for_line(PROMPT)
        say(screen, "exit")
        screen.wait_for("could not be stored")
        assert screen.exit_code() == 0
        assert screen.settings() == screen.settings_before
        other.close()


def test_a_full_disk_is_said_and_the_chat_goes_on(chats: ChatSite) -> None:
    with chats.on_terminal() as screen:
        say(screen, "before")
        screen.wait_for("Hello there.")
        screen.wait_for_line(PROMPT)
        process = psutil.Process(screen.pid)
        size = chats.database.with_name(f"{chats.database.name}-wal").stat().st_size
        process.rlimit(psutil.RLIMIT_FSIZE, (min(size, 1), psutil.RLIM_INFINITY))
        say(screen, "while it is full")
        screen.wait_for("not stored yet", "Hello there.")
        screen.wait_for_line(PROMPT)
        process.rlimit(psutil.RLIMIT_FSIZE, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))
        say(screen, "after")
        wait_until(lambda: len(chats.said()) == 3, "all is stored")
        screen.wait_for_line(PROMPT)
        say(screen, "exit")
        assert screen.exit_code() == 0
    assert chats.said() == ["before", "while it is full", "after"]


def test_a_disk_that_stays_full_is_said_at_the_end(chats: ChatSite) -> None:
    with chats.on_terminal() as screen:
        process = psutil.Process(screen.pid)
        process.rlimit(psutil.RLIMIT_FSIZE, (1, psutil.RLIM_INFINITY))
        say(screen, "while it is full")
        screen.wait_for("not stored yet", "Hello there.")
        screen.wait_for_line(PROMPT)
        say(screen, "exit")
        screen.wait_for("shepherd: not stored")
        screen.exit_code()
        assert screen.settings() == screen.settings_before
        assert "Traceback" not in screen.text()
