"""`shepherd chat` as a person has it: on a terminal, with keys, pastes, interruptions and answers."""

import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.endpoint import ScriptedEndpoint, Step, by_content, close, echo, hang, held, reply
from tests.provider import CUT, RESET, ScriptedProvider, ToolCall, chat, gated, openai_error, openai_stream
from tests.terminal.chat_site import CHAT, PROMPT, ChatSite, say
from tests.terminal.pty_screen import ALT_ENTER, DOWN, LEFT, TAB, UP, Terminal, ctrl, terminal


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
def site(tmp_path: Path, provider: ScriptedProvider) -> ChatSite:
    """A provider in use, without memory and without an embedding model: what is tested is the terminal."""
    folder = tmp_path / "site"
    folder.mkdir()
    site = ChatSite(folder, provider)
    site.configure(embedding_engine="none", chat_flush_timeout=5)
    return site


def command(screen: Terminal, line: str) -> None:
    """Give a command, and wait for the prompt after it.

    While a command runs the terminal is as it was found, and an Enter that is pressed then is another key.
    """
    screen.type(line)
    screen.wait_for_line(PROMPT + line)
    screen.type("\r")
    screen.wait_for_line(PROMPT)


def leave(screen: Terminal) -> None:
    say(screen, "exit")
    assert screen.exit_code() == 0


def prompts(screen: Terminal) -> int:
    return sum(line.startswith(">") for line in screen.lines())


def test_an_answer_is_shown_while_it_still_comes_in(site: ChatSite, provider: ScriptedProvider) -> None:
    gate = threading.Event()
    provider.script(openai_stream("The first ", gate, "and the rest."))
    with site.on_terminal() as screen:
        say(screen, "Hello?")
        screen.wait_for("The first", gone="rest")
        assert not provider.exchanges[-1].over.is_set()
        gate.set()
        screen.wait_for("The first and the rest.")
        screen.wait_for_line(PROMPT)
        leave(screen)


def test_thoughts_are_shown_apart_from_the_answer(site: ChatSite, provider: ScriptedProvider) -> None:
    gate = threading.Event()
    provider.script(openai_stream({"reasoning_content": "Let me think."}, gate, "42"))
    with site.on_terminal() as screen:
        say(screen, "What is the answer?")
        screen.wait_for("Let me think.")
        gate.set()
        screen.wait_until(lambda lines: "42" in lines, "answer in a line of its own")
        leave(screen)


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        (f"world{ctrl('a')}hello {ctrl('e')}!", "hello world!"),
        (f"all of this{ctrl('u')}nothing", "nothing"),
        (f"keep this not that{LEFT * 9}{ctrl('k')}", "keep this"),
        (f"one two three{ctrl('w')}four", "one two four"),
        (f"one{ALT_ENTER}two{ctrl('j')}three", "one\ntwo\nthree"),
        (f"ab{LEFT}é", "aéb"),
        ("日本語 テスト", "日本語 テスト"),
        ("👩‍👩‍👧 and e\u0301", "👩‍👩‍👧 and e\u0301"),
        (f"日本{LEFT}x", "日x本"),
        ("//help me", "/help me"),
        ("/home/ann is full", "/home/ann is full"),
    ],
)
def test_a_line_is_edited_with_the_usual_keys(site: ChatSite, keys: str, sent: str) -> None:
    with site.on_terminal() as screen:
        say(screen, keys)
        screen.wait_for("Hello there.")
        leave(screen)
    assert site.heard() == [sent]


def test_what_was_typed_in_another_run_is_called_up_again(site: ChatSite) -> None:
    with site.on_terminal() as screen:
        for text in ("the first", "the second"):
            say(screen, text)
            screen.wait_until(lambda lines: lines[-1] == "" and lines.count("Hello there."), "answer")
            screen.wait_for_line(PROMPT)
        leave(screen)
    with site.on_terminal() as screen:
        screen.type(UP)
        screen.wait_for_line("> exit")
        screen.type(UP)
        screen.wait_for_line("> the second")
        screen.type(UP + UP + DOWN)
        screen.wait_for_line("> the second")
        screen.type(ctrl("c"))
        screen.wait_for_line(PROMPT)
        screen.type(ctrl("r") + "fir")
        screen.wait_for("the first")
        screen.type("\r")
        screen.wait_for_line("> the first")
        screen.type(ctrl("e") + " again\r")
        screen.wait_for("Hello there.")
        leave(screen)
    assert site.heard()[-1] == "the first again"


def test_a_paste_of_several_lines_is_one_message(site: ChatSite) -> None:
    with site.on_terminal() as screen:
        screen.paste("def f():\n    return 1\n\nprint(f())\n")
        screen.wait_for("print(f())")
        assert site.heard() == []
        screen.type("\r")
        screen.wait_for("Hello there.")
        leave(screen)
    assert site.heard() == ["def f():\n    return 1\n\nprint(f())\n"]


def test_control_characters_in_a_paste_neither_act_nor_are_obeyed(site: ChatSite) -> None:
    with site.on_terminal() as screen:
        screen.paste("be\x03fore \x1b[2J\x1b]52;c;aGk=\x07\x04after")
        screen.wait_for("after")
        screen.type("\r")
        screen.wait_for("Hello there.")
        leave(screen)
        assert b"\x1b]52" not in screen.raw
        assert b"\x1b[2J" not in screen.raw
    assert len(site.heard()) == 1
    assert site.heard()[0].endswith("after")


def test_a_paste_of_a_megabyte_arrives_whole(site: ChatSite) -> None:
    text = "".join(f"line {number} of many\n" for number in range(10_000))
    with site.on_terminal() as screen:
        screen.paste(text)
        screen.wait_for("line 9999 of many")
        screen.type("\r")
        screen.wait_for("Hello there.")
        leave(screen)
    assert site.heard() == [text]


def test_tab_completes_commands(site: ChatSite) -> None:
    with site.on_terminal() as screen:
        screen.type("/who" + TAB)
        screen.wait_for_line("> /whoami")
        screen.type("\r")
        screen.wait_for("ann")
        screen.wait_for_line(PROMPT)
        screen.type("/" + TAB)
        screen.wait_for("/facts", "Show and change facts.")
        screen.type(ctrl("c"))
        screen.wait_for_line(PROMPT)
        leave(screen)


def test_on_a_narrow_terminal_everything_can_still_be_read(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    provider.script(chat("word " * 30 + "end"))
    with site.on_terminal(columns=20, lines=40) as screen:
        say(screen, "a question that is longer than the terminal is wide")
        shown = screen.wait_for("end")
        assert shown.replace("\n", " ").count("word") == 30
        screen.wait_for_line(PROMPT)
        command(screen, "/help")
        screen.wait_for("/exit")
        leave(screen)


def test_a_window_may_change_its_size_while_an_answer_comes(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    provider.script(openai_stream("before ", gate, "after"))
    with site.on_terminal() as screen:
        say(screen, "Hello?")
        screen.wait_for("before")
        screen.resize(30, 10)
        gate.set()
        screen.wait_for("after")
        screen.wait_for_line(PROMPT)
        screen.type("typed")
        screen.resize(100, 30)
        screen.type(" on\r")
        screen.wait_for("Hello there.")
        leave(screen)
    assert site.heard()[-1] == "typed on"


# What turns a terminal over: clear, title, clipboard, a device query, C1, direction of writing.
DRIVING = "\x1b[2J\x1b]0;owned\x07\x1b]52;c;aGFoYQ==\x07\x1bP+q\x1b\\\x9b31m\r\x08\x7f\u202ereversed"


@pytest.mark.parametrize("pieces", [(DRIVING,), tuple(DRIVING)])
def test_an_answer_cannot_drive_the_terminal(
    site: ChatSite, provider: ScriptedProvider, pieces: tuple[str, ...]
) -> None:
    provider.script(openai_stream({"reasoning_content": DRIVING}, *pieces, " seen"))
    with site.on_terminal() as screen:
        say(screen, "Hello?")
        screen.wait_for("seen")
        screen.wait_for_line(PROMPT)
        leave(screen)
        for bad in (b"\x1b]", b"\x1b[2J", b"\x07", b"\x1bP", "\x9b".encode(), "\u202e".encode(), b"\x7f"):
            assert bad not in screen.raw


def test_line_ends_of_any_kind_are_line_ends(site: ChatSite, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("one\r\ntwo\nthree\r", "\nfour"))
    with site.on_terminal() as screen:
        say(screen, "Count.")
        screen.wait_for("one\ntwo\nthree\nfour")
        leave(screen)


def test_a_tool_and_a_refusal_cannot_drive_it_either(site: ChatSite, provider: ScriptedProvider) -> None:
    site.configure(memory=True)
    call = ToolCall("1", "search_memory\x1b[2J", '{"query": "\x1b]0;owned\x07"}')
    provider.script(openai_stream(call), openai_error(400, "no \x1b]0;owned\x07 way"))
    with site.on_terminal("--memtools") as screen:
        say(screen, "Hello?")
        screen.wait_for("no", "way")
        screen.wait_for_line(PROMPT)
        leave(screen)
        assert b"\x1b]0" not in screen.raw
        assert b"\x1b[2J" not in screen.raw


def test_the_model_uses_the_memory_tools_if_it_may(site: ChatSite, provider: ScriptedProvider) -> None:
    site.configure(memory=True)
    call = ToolCall("1", "set_fact", '{"key": "home_city", "value": "Lisbon"}')
    provider.script(openai_stream("Noting. ", call), chat("It is noted."))
    with site.on_terminal("--memtools") as screen:
        say(screen, "I live in Lisbon.")
        screen.wait_for("set_fact", "It is noted.")
        screen.wait_for_line(PROMPT)
        command(screen, "/facts")
        assert any(line.startswith("home_city") and "Lisbon" in line for line in screen.lines())
        leave(screen)


def test_ctrl_c_stops_an_answer_and_the_prompt_is_back(site: ChatSite, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("begun ", threading.Event(), "never"))
    with site.on_terminal() as screen:
        say(screen, "Hello?")
        screen.wait_for("begun")
        screen.type(ctrl("c"))
        screen.wait_for("(cancelled)")
        screen.wait_for_line(PROMPT)
        provider.wait_until_left()
        say(screen, "Still there?")
        screen.wait_for("Hello there.")
        leave(screen)


@pytest.mark.parametrize("step", [hang(), hang(after_headers=True), gated(threading.Event(), chat("never"))])
def test_ctrl_c_stops_the_wait_for_a_provider_that_hangs(
    site: ChatSite, provider: ScriptedProvider, step: object
) -> None:
    provider.script(step)  # type: ignore[arg-type]
    with site.on_terminal() as screen:
        say(screen, "Hello?")
        provider.wait_for(1)
        screen.type(ctrl("c"))
        screen.wait_for("(cancelled)")
        screen.wait_for_line(PROMPT)
        leave(screen)


@pytest.fixture
def full_house() -> Iterator[str]:
    """The address of a server that accepts nobody: a connection to it neither fails nor comes about."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield "http://{}:{}".format(*server.getsockname())


def test_ctrl_c_stops_the_wait_for_a_connection(site: ChatSite, full_house: str) -> None:
    site.lab["base_url"] = full_house
    site.configure()
    with site.on_terminal() as screen:
        say(screen, "Hello?")
        screen.wait_for("> Hello?")
        screen.wait_until_raw(False)
        screen.type(ctrl("c"))
        screen.wait_for("(cancelled)")
        screen.wait_for_line(PROMPT)
        leave(screen)


def test_ctrl_c_may_come_at_any_moment_of_a_line(site: ChatSite, provider: ScriptedProvider) -> None:
    def answer(body: dict[str, Any] | None) -> Step:
        if body is None:
            # It was cancelled before all of it was sent.
            return close()
        said = body["messages"][-1]["content"].splitlines()[-1]
        return hang() if said.startswith("wait") else chat(f"heard {said}.")

    provider.default = by_content(answer)
    with site.on_terminal() as screen:
        screen.wait_for_line(PROMPT)
        for number in range(20):
            screen.type(f"wait {number}")
            screen.wait_for_line(f"> wait {number}")
            screen.type("\r")
            for _ in range(number * 20):
                screen.is_raw()  # Takes a moment, so that it is another one each time.
            screen.send_signal(signal.SIGINT)
            screen.wait_for_line(PROMPT)
            say(screen, f"turn {number}")
            screen.wait_for(f"heard turn {number}.")
            screen.wait_for_line(PROMPT)
        assert b"Traceback" not in screen.raw
        leave(screen)


def test_ctrl_c_at_any_moment_of_a_command_ends_that_alone(site: ChatSite) -> None:
    # The first of each is imported meanwhile.
    lines = ("/recall soup", "/facts", "/queue", "/context", "/documents", "/whoami") * 3
    with site.on_terminal() as screen:
        for number, line in enumerate(lines):
            screen.type(line)
            screen.wait_for_line(f"> {line}")
            screen.type("\r")
            for _ in range(number * 20):
                screen.is_raw()  # Takes a moment, so that it is another one each time.
            screen.send_signal(signal.SIGINT)
            screen.wait_for_line(PROMPT)
            say(screen, f"/no{number}")
            screen.wait_for(f"there is no /no{number};")
            screen.wait_for_line(PROMPT)
        assert b"unexpected" not in screen.raw
        leave(screen)


def test_ctrl_c_is_heard_while_an_answer_rushes_by(site: ChatSite, provider: ScriptedProvider) -> None:
    provider.script(openai_stream(*("word " * 20 for _ in range(5000)), threading.Event()))
    with site.on_terminal() as screen:
        say(screen, "Hello?")
        screen.wait_for("word")
        screen.type(ctrl("c"))
        screen.wait_for("(cancelled)")
        screen.wait_for_line(PROMPT)
        leave(screen)


def test_ctrl_c_stops_an_answer_and_pressed_on_leaves(site: ChatSite, provider: ScriptedProvider) -> None:
    site.configure(memory=True)
    provider.script(openai_stream("begun ", threading.Event(), "never"))
    with site.on_terminal() as screen:
        say(screen, "Hello?")
        screen.wait_for("begun")
        screen.type(ctrl("c"))
        screen.wait_for("(cancelled)")
        screen.wait_for_line(PROMPT)
        screen.type(ctrl("c"))
        screen.wait_for("again")
        screen.type(ctrl("c"))
        assert screen.exit_code() == 0
        assert screen.settings() == screen.settings_before
        assert "Traceback" not in screen.text()
    assert site.said() == ["Hello?"]


def test_what_is_typed_while_an_answer_comes_is_the_next_line(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    provider.script(openai_stream("begun, ", gate, "done"))
    with site.on_terminal() as screen:
        say(screen, "one")
        screen.wait_for("begun")
        screen.type("two\r")
        gate.set()
        screen.wait_for("begun, done", "> two", "Hello there.")
        leave(screen)
    assert site.heard() == ["one", "two"]


def test_it_is_so_again_after_a_shell_has_set_the_terminal(
    site: ChatSite, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    provider.script(openai_stream("first ", threading.Event()), openai_stream("second ", gate, "over"))
    with site.on_terminal() as screen:
        say(screen, "Hello?")
        screen.wait_for("first")
        # Stopped with Ctrl-Z, and brought back.
        screen.set(screen.settings_before)
        screen.type(ctrl("c"))
        screen.wait_for("(cancelled)")
        screen.wait_for_line(PROMPT)
        say(screen, "Once more?")
        screen.wait_for("second")
        screen.type("typed ahead\r")
        gate.set()
        screen.wait_for("second over", "> typed ahead", "Hello there.")
        leave(screen)
    assert site.heard()[-1] == "typed ahead"


def test_ctrl_c_empties_the_line_and_twice_leaves(site: ChatSite) -> None:
    with site.on_terminal() as screen:
        screen.type("not this" + ctrl("c"))
        screen.wait_until(lambda lines: lines.count(">") == 1, "a new prompt")
        screen.type(ctrl("c"))
        screen.wait_for("again")
        screen.wait_until(lambda lines: lines.count(">") == 2, "a new prompt")
        screen.type(ctrl("c"))
        assert screen.exit_code() == 0
        assert screen.settings() == screen.settings_before
    assert site.heard() == []


@pytest.mark.parametrize("keys", [ctrl("d"), "exit\r", " EXIT \r", "/exit\r", "quit\r"])
def test_a_chat_is_left_in_the_usual_ways(site: ChatSite, keys: str) -> None:
    with site.on_terminal() as screen:
        screen.type(keys)
        assert screen.exit_code() == 0
        assert screen.settings() == screen.settings_before
        assert screen.left_behind() == []


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (openai_error(401), "lab"),
        (openai_error(404), "lab"),
        (openai_error(500), "lab"),
        (openai_stream("some words ", RESET), "broke off"),
        (openai_stream("some words ", CUT), "broke off"),
    ],
)
def test_a_provider_that_fails_is_named_and_the_chat_goes_on(
    site: ChatSite, provider: ScriptedProvider, step: object, problem: str
) -> None:
    provider.script(step)  # type: ignore[arg-type]
    with site.on_terminal() as screen:
        say(screen, "Hello?")
        screen.wait_for(problem)
        screen.wait_for_line(PROMPT)
        say(screen, "And now?")
        screen.wait_for("Hello there.")
        leave(screen)


def test_a_provider_that_is_not_there_is_said_with_what_to_do(site: ChatSite) -> None:
    site.lab["base_url"] = "http://127.0.0.1:1"
    site.configure()
    with site.on_terminal() as screen:
        say(screen, "Hello?")
        screen.wait_for("lab: cannot reach", "is the server")
        screen.wait_for_line(PROMPT)
        leave(screen)


def test_a_provider_is_added_inside_the_chat(site: ChatSite, provider: ScriptedProvider) -> None:
    site.path.write_text(f'user_id = "ann"\nmemory_database = "{site.database}"\n')
    with site.on_terminal(columns=120) as screen:
        screen.wait_for("no provider is in use yet")
        say(screen, "Hello?")
        screen.wait_for("no provider is in use:")
        screen.wait_for_line(PROMPT)
        command(screen, f"/provider add lab --base-url {provider.url} --model scripted-1 --memory")
        command(screen, "/provider lab use")
        say(screen, "Hello now?")
        screen.wait_for("Hello there.")
        leave(screen)
    assert site.said() == ["Hello now?"]


def test_a_command_changes_what_the_command_line_changes(site: ChatSite) -> None:
    with site.on_terminal() as screen:
        command(screen, "/facts set home_city Lisbon")
        command(screen, "/nonsense")
        screen.wait_for("there is no /nonsense")
        command(screen, '/recall "unclosed')
        screen.wait_for("a quote is not closed")
        leave(screen)
    with site.service() as service:
        assert [(fact.key, fact.value) for fact in service.facts("ann")] == [("home_city", "Lisbon")]


def test_without_colour_where_none_is_wanted(site: ChatSite, provider: ScriptedProvider) -> None:
    provider.script(openai_stream({"reasoning_content": "hm"}, "yes"), openai_error(400, "never"))
    with site.on_terminal(environment={"NO_COLOR": "1"}) as screen:
        say(screen, "Hello?")
        screen.wait_for("yes")
        screen.wait_for_line(PROMPT)
        say(screen, "Hello?")
        screen.wait_for("never")
        screen.wait_for_line(PROMPT)
        leave(screen)
        assert screen.colours() == set()
        assert b"\x1b[31m" not in screen.raw
        assert b"\x1b[2m" not in screen.raw


@pytest.fixture
def extracting(site: ChatSite) -> Iterator[ScriptedEndpoint]:
    """A memory, and the endpoint that extracts for it."""
    with ScriptedEndpoint() as endpoint:
        endpoint.default = echo()
        site.configure(
            memory=True,
            memory_extraction_endpoint=endpoint.url,
            memory_extraction_model="m",
            memory_extraction_retry_interval=60,
            chat_flush_timeout=120,
        )
        yield endpoint


def test_what_was_said_is_extracted_before_the_chat_ends(
    site: ChatSite, extracting: ScriptedEndpoint
) -> None:
    with site.on_terminal() as screen:
        say(screen, "my home city is Lisbon")
        screen.wait_for("Hello there.")
        leave(screen)
    with site.service() as service:
        assert [fact.value for fact in service.facts("ann")] == ["Lisbon"]


def test_the_wait_at_the_end_is_visible_and_has_a_bound(site: ChatSite, extracting: ScriptedEndpoint) -> None:
    site.configure(chat_flush_timeout=2)
    gate = threading.Event()
    extracting.default = held(gate, reply())
    with site.on_terminal() as screen:
        say(screen, "my home city is Lisbon")
        screen.wait_for("Hello there.")
        screen.type("exit\r")
        screen.wait_for("1 item waits for extraction; it goes on at the next start")
        assert screen.exit_code() == 0
        assert (
            "remembering … extracting 1 item, 2 s at most (Ctrl-C leaves it for later)".encode() in screen.raw
        )
    assert site.said() == ["my home city is Lisbon"]


def test_ctrl_c_ends_the_wait_at_the_end(site: ChatSite, extracting: ScriptedEndpoint) -> None:
    site.configure(chat_flush_timeout=600)
    extracting.default = held(threading.Event(), reply())
    with site.on_terminal() as screen:
        say(screen, "my home city is Lisbon")
        screen.wait_for("Hello there.")
        screen.type("exit\r")
        screen.wait_for("remembering …")
        screen.type(ctrl("c"))
        assert screen.exit_code() == 0
        screen.wait_for("it goes on at the next start")
    with site.service() as service:
        assert len(service.items("ann")) == 1


def test_the_wait_after_one_question_is_said_in_a_pipe_too_and_ctrl_c_ends_it(
    site: ChatSite, extracting: ScriptedEndpoint
) -> None:
    site.configure(chat_flush_timeout=600)
    extracting.default = held(threading.Event(), reply())
    with site.open_pipes("my home city is Lisbon", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None and process.stderr is not None  # noqa: PT018
        waiting = process.stderr.readline().decode()
        assert waiting.startswith("remembering … extracting 1 item, ")
        assert waiting.endswith(" s at most (Ctrl-C leaves it for later)\n")
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"not everything is extracted yet; it goes on at the next start\n"
        assert process.stdout.read() == b"Hello there.\n"
    assert process.returncode == 0
    with site.service() as service:
        assert len(service.items("ann")) == 1


def test_nobody_waits_for_an_endpoint_that_is_not_there(site: ChatSite) -> None:
    site.configure(
        memory=True,
        memory_extraction_endpoint="http://127.0.0.1:1",
        memory_extraction_model="m",
        chat_flush_timeout=600,
    )
    with site.on_terminal() as screen:
        say(screen, "my home city is Lisbon")
        screen.wait_for("Hello there.")
        leave(screen)
        screen.wait_for("endpoint is unavailable", "1 item waits", "it goes on")
    with site.service() as service:
        assert len(service.items("ann")) == 1


def test_where_answers_go_into_a_file_the_line_stays_on_the_terminal(site: ChatSite, tmp_path: Path) -> None:
    command = f"{' '.join(CHAT)} > {tmp_path}/answers"
    with terminal("sh", "-c", command, environment=site.environment()) as screen:
        screen.wait_for_line(PROMPT)
        say(screen, "Hello?")
        screen.wait_until(lambda lines: lines.count(">") == 1 and "> Hello?" in lines, "the next prompt")
        leave(screen)
    assert (tmp_path / "answers").read_text() == "Hello there.\n"


def test_clear_begins_anew_and_what_was_said_is_kept(site: ChatSite, provider: ScriptedProvider) -> None:
    site.configure(memory=True)
    provider.default = by_content(lambda body: chat(f"{len(body['messages'])} messages"))
    with site.on_terminal() as screen:
        say(screen, "one")
        screen.wait_for("1 messages")
        screen.wait_for_line(PROMPT)
        say(screen, "/clear")
        screen.wait_for("Start a new conversation? What you talked about is remembered. [y/N]:")
        screen.type("n\r")
        screen.wait_for_line(PROMPT)
        say(screen, "/clear")
        screen.wait_until(lambda lines: sum("[y/N]" in line for line in lines) == 2, "the question again")
        screen.type("y\r")
        screen.wait_for("a new session begins")
        say(screen, "two")
        screen.wait_until(lambda lines: lines.count("1 messages") == 2, "second answer")
        leave(screen)
    assert site.said() == ["one", "two"]
