"""Who watches a shared session sees everything in its order, at its own pace, and holds up nobody."""

import socket
import threading
from urllib.parse import urlsplit

import pytest

from tests.acceptance.processes import wait_until
from tests.provider import ScriptedProvider, ToolCall, chat, gated, openai_stream
from tests.server.calling import call
from tests.server.shared_session import PATIENCE_SECONDS, StartSharing, watching


def test_an_observer_sees_everything_in_its_order(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("Look:\n", "```py\npri", "nt(1)\n```", "\nDone."), openai_stream("Yes."))
    shared = share()
    with watching(shared.url) as observer:
        observer.wait_for("connected")
        shared.ask("Show me")
        shared.ask("And?")
        shared.post("/clear")
        observer.wait_for("session_cleared")
    assert observer.names() == [
        "connected",
        "message_added",
        "memory",
        "delta",
        "delta",
        "delta",
        "delta",
        "codeblock",
        "message_added",
        "response_complete",
        "message_added",
        "memory",
        "delta",
        "message_added",
        "response_complete",
        "session_cleared",
    ]
    assert observer.wait_for("codeblock").fields["code"] == "print(1)\n"
    assert observer.wait_for("codeblock").fields["language"] == "py"
    numbers = [int(one.id.partition("-")[2]) for one in observer.told]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert observer.told[0].fields["session_id"] != observer.told[-1].fields["session_id"]


def test_an_observer_sees_tools_and_errors(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.script(
        openai_stream(ToolCall("1", "get_fact", '{"key": "dog"}')), openai_stream("I do not know.")
    )
    shared = share(memtools=True)
    with watching(shared.url) as observer:
        shared.ask("Who is my dog?")
        provider.default = openai_stream(b"data: [DONE]\n\n", done=False)
        called = observer.wait_for("tool_call")
        assert called.fields["name"] == "get_fact"
        assert observer.wait_for("tool_result").fields["result"]
        assert observer.names().index("tool_call") < observer.names().index("tool_result")


def test_two_observers_see_the_same(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.default = openai_stream("Hello ", "Steve.")
    shared = share()
    with watching(shared.url) as first, watching(shared.url) as second:
        shared.ask("Hi")
        shared.ask("Hi again")
        for observer in (first, second):
            observer.wait_for("response_complete", 2)
    assert first.told[1:] == second.told[1:]


def test_an_observer_goes_on_where_it_left(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.default = openai_stream("Hello ", "Steve.")
    shared = share()
    with watching(shared.url) as whole:
        with watching(shared.url) as first:
            shared.ask("Hi")
            first.wait_for("response_complete")
        seen = first.told[-3]
        shared.ask("Said meanwhile")
        with watching(shared.url, headers={"Last-Event-ID": seen.id}) as second:
            assert second.wait_for("connected").fields["resumed"] is True
            second.wait_for("response_complete", 2)
        whole.wait_for("response_complete", 2)
    at = [one.id for one in whole.told].index(seen.id)
    assert second.told[1:] == whole.told[at + 1 :]


@pytest.mark.parametrize("last_id", ["", "12345678-3", "nonsense", "ÿ"])
def test_an_id_of_another_run_begins_now_and_says_so(share: StartSharing, last_id: str) -> None:
    shared = share()
    shared.ask("Before")
    with watching(shared.url, headers={"Last-Event-ID": last_id}) as observer:
        assert observer.wait_for("connected").fields["resumed"] is False
        shared.ask("After")
        added = observer.wait_for("message_added").fields["message"]
        assert added["content"] == "After"


def test_the_page_of_the_session_says_from_where_to_watch(
    share: StartSharing, provider: ScriptedProvider
) -> None:
    shared = share()
    shared.ask("Before")
    shown = shared.show()
    shared.ask("After")
    with watching(shared.url, headers={"Last-Event-ID": shown["last_event_id"]}) as observer:
        observer.wait_for("response_complete")
    added = [one.fields["message"]["content"] for one in observer.told if one.name == "message_added"]
    assert [message["content"] for message in shown["messages"]] + added == shared.contents()


def test_a_slow_observer_holds_up_nobody_and_is_told_what_it_missed(
    share: StartSharing, provider: ScriptedProvider
) -> None:
    piece = "x" * 500_000
    shared = share()
    with lazy_observer(shared.url) as slow, watching(shared.url) as quick:
        for number in range(3):
            provider.script(openai_stream(*[piece] * 7))
            assert shared.ask(f"Much, please {number}", memory=False).status == 200
            shared.post("/clear")
        quick.wait_for("response_complete", 3)
        provider.script(chat("The last word."))
        shared.ask("Enough", memory=False)
        read = read_until(slow, b"The last word.")
    assert b"event: connected" in read
    assert b"event: skipped" in read


def lazy_observer(url: str) -> socket.socket:
    """A client that connects and reads nothing yet."""
    where = urlsplit(url)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(PATIENCE_SECONDS)
    client.connect((where.hostname, where.port))
    client.sendall(b"GET /updates HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return client


def read_until(client: socket.socket, text: bytes) -> bytes:
    read = bytearray()
    while text not in read[-1_000_000:]:
        part = client.recv(1_000_000)
        assert part, "it ended"
        read += part
    return bytes(read)


def test_observers_who_leave_cancel_nothing(share: StartSharing, provider: ScriptedProvider) -> None:
    gate = threading.Event()
    provider.script(gated(gate, chat("late")))
    shared = share()
    with watching(shared.url) as observer:
        shared.ask("Hello", **{"async": True})
        observer.wait_for("message_added")
    gate.set()
    shared.wait_until_idle()
    assert shared.contents() == ["Hello", "late"]


def test_a_quiet_stream_gives_signs_of_life(share: StartSharing) -> None:
    with watching(share().url) as observer:
        wait_until(lambda: observer.comments, "a comment comes")


def test_the_head_alone_of_the_updates_ends(share: StartSharing) -> None:
    reply = call(share().url, "HEAD", "/updates")
    assert (reply.status, reply.body) == (200, b"")
    assert (reply.header("content-type") or "").startswith("text/event-stream")


def test_at_the_end_of_the_server_the_running_answer_is_finished_before_the_streams_end(
    share: StartSharing, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    provider.script(openai_stream("Hello ", gate, "Steve."), openai_stream("Also answered."))
    shared = share(server_shutdown_timeout=PATIENCE_SECONDS)
    with (
        watching(shared.url) as observer,
        watching(shared.url, "/request", {"prompt": "Hi", "stream": True}) as asking,
    ):
        asking.wait_for("delta")
        shared.ask("Waits", **{"async": True})
        shared.stop()
        wait_until(lambda: refuses_connections(shared.url), "it takes no more requests")
        gate.set()
        for watcher in (asking, observer):
            watcher.wait_until_over()
    assert asking.text() == "Hello Steve."
    assert observer.text() == "Hello Steve.Also answered."
    assert observer.told[-1].name == "response_complete"


def refuses_connections(url: str) -> bool:
    try:
        call(url, "GET", "/session")
    except OSError:
        return True
    return False
