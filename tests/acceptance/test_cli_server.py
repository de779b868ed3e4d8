"""`shepherd cli-server` as a process: told to stop, killed, gone on with; `shepherd chat` as its client."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from shepherd_memory.work.jobs import DONE
from tests.acceptance.combinations import BACKENDS, every_value, first_backend, one_backend
from tests.acceptance.processes import ROOT, kill, wait_until
from tests.acceptance.server_site import BROKEN, Conversation, Server, Site
from tests.acceptance.statements import answering, answers_of, drain
from tests.endpoint import ScriptedEndpoint, hang
from tests.fork_server import run
from tests.provider import chat, gated, openai_stream
from tests.terminal.pty_screen import terminal

SAID = "My code_1 is zebra_1."
SIGNALS = (signal.SIGTERM, signal.SIGINT)
STOP_SECONDS = 60


@pytest.fixture
def gate() -> threading.Event:
    """What a provider waits for."""
    return threading.Event()


@pytest.fixture
def site(site: Site) -> Site:
    """What is scripted is for the chat: the provider is not asked how much it takes."""
    site.set_provider(base_url=site.provider.url, context_window=32_000)
    return site


def share(site: Site, *options: object) -> Server:
    return site.serve("--user", "steve", *options, command="cli-server")


def begin(server: Server, text: str = SAID, **fields: object) -> Conversation:
    """A request of which the first words have come."""
    with ExitStack() as stack:
        body = {"prompt": text, "stream": True, **fields}
        conversation = stack.enter_context(server.open("POST", "/request", body))
        conversation.read_until(b"Hello ")
        stack.pop_all()
    return conversation


def contents(server: Server) -> list[str]:
    return [message["content"] for message in server.ask("GET", "/session").json["messages"]]


def refuses_connections(server: Server) -> bool:
    try:
        server.ask("GET", "/session")
    except BROKEN:
        return True
    return False


@every_value(number=SIGNALS, database_url=BACKENDS)
def test_the_running_answer_is_finished_and_the_session_can_be_gone_on_with(
    number: int, site: Site, gate: threading.Event
) -> None:
    site.settings.set(server_shutdown_timeout=STOP_SECONDS)
    site.provider.script(openai_stream("Hello ", gate, "Steve."), openai_stream("Also this."))
    server = share(site)
    before = server.ask("GET", "/session").json["session_id"]
    with begin(server) as conversation:
        assert server.ask("POST", "/request", {"prompt": "And this.", "async": True}).status == 202
        server.process.send_signal(number)
        wait_until(lambda: refuses_connections(server), "it takes no more requests")
        gate.set()
        assert b"Steve." in conversation.response().read()
    assert server.process.wait(STOP_SECONDS) == 0
    said = [SAID, "Hello Steve.", "And this.", "Also this."]
    assert [text for _, text in site.said("steve")] == said

    again = share(site, "--continue")
    assert contents(again) == said
    assert again.ask("GET", "/session").json["session_id"] == before
    site.provider.script(chat("Still here."))
    assert again.ask("POST", "/request", {"prompt": "Are you there?"}).json["response"] == "Still here."
    sent = [message["content"] for message in site.provider.requests[-1].json["messages"]]
    assert sent[:4] == said
    # What was said before the restart is stored once all the same.
    assert [text for _, text in site.said("steve")] == [*said, "Are you there?", "Still here."]
    fresh = share(site)
    assert contents(fresh) == []


@first_backend
def test_a_provider_that_says_nothing_more_is_given_up_when_the_time_is_over(
    site: Site, gate: threading.Event
) -> None:
    site.settings.set(server_shutdown_timeout=1)
    site.provider.script(openai_stream("Hello ", gate, "Steve."))
    server = share(site)
    with begin(server) as conversation:
        server.ask("POST", "/request", {"prompt": "Never begun.", "async": True})
        server.process.terminate()
        assert server.process.wait(STOP_SECONDS) == 0
        with pytest.raises(BROKEN):
            conversation.response().read()
    site.provider.wait_until_left()
    assert site.said("steve") == [("user", SAID), ("assistant", "Hello ")]
    assert contents(share(site, "--continue")) == [SAID, "Hello "]


@every_value(second=SIGNALS, database_url=BACKENDS)
def test_a_second_signal_ends_it_at_once(second: int, site: Site, gate: threading.Event) -> None:
    site.settings.set(server_shutdown_timeout=10 * STOP_SECONDS)
    site.provider.script(openai_stream("Hello ", gate, "Steve."))
    server = share(site)
    with begin(server) as conversation:
        server.process.terminate()
        wait_until(lambda: refuses_connections(server), "it takes no more requests")
        server.process.send_signal(second)
        server.process.wait(STOP_SECONDS)
        with pytest.raises(BROKEN):
            conversation.response().read()
    assert site.said("steve")[0] == ("user", SAID)


@first_backend
def test_an_async_request_is_finished_though_nobody_waits_for_it(site: Site, gate: threading.Event) -> None:
    site.settings.set(server_shutdown_timeout=STOP_SECONDS)
    site.provider.script(gated(gate, chat("Hello Steve.")))
    server = share(site)
    server.ask("POST", "/request", {"prompt": SAID, "async": True})
    site.provider.wait_for(1)
    server.process.terminate()
    wait_until(lambda: refuses_connections(server), "it takes no more requests")
    gate.set()
    assert server.process.wait(STOP_SECONDS) == 0
    assert site.said("steve") == [("user", SAID), ("assistant", "Hello Steve.")]


@one_backend
def test_an_idle_observer_keeps_nobody_waiting(site: Site) -> None:
    site.settings.set(server_shutdown_timeout=10 * STOP_SECONDS)
    server = share(site)
    with server.open("GET", "/updates") as observer:
        observer.read_until(b"event: connected")
        server.process.terminate()
        assert server.process.wait(STOP_SECONDS) == 0


def test_what_was_said_survives_a_kill(site: Site, gate: threading.Event) -> None:
    site.provider.script(chat("Noted."), openai_stream("Hello ", gate, "Steve."))
    server = share(site)
    server.ask("POST", "/request", {"prompt": "My dog is Rex."})
    with begin(server):
        kill(server.process)
    assert site.said("steve")[:3] == [("user", "My dog is Rex."), ("assistant", "Noted."), ("user", SAID)]


@first_backend
def test_killed_while_the_provider_hangs_what_was_said_is_stored(site: Site) -> None:
    site.provider.default = hang()
    server = share(site)
    server.ask("POST", "/request", {"prompt": SAID, "async": True})
    site.provider.wait_for(1)
    kill(server.process)
    assert site.said("steve") == [("user", SAID)]


@first_backend
def test_each_answer_is_queued_and_extracted_once_for_the_servers_user(
    site: Site, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = answering()
    site.provider.default = chat("I see.")
    server = share(site)
    with site.settings.service() as service:
        for number in (1, 2, 3):
            asked = {"prompt": f"My code_{number} is zebra_{number}.", "user": "mallory"}
            assert server.ask("POST", "/request", asked, {"X-Shepherd-User": "mallory"}).status == 200
            drain(service)
            assert len(service.facts("steve")) == number
        server.process.terminate()
        assert server.process.wait(STOP_SECONDS) == 0
        share(site, "--continue")
        drain(service)
        assert service.status().items[DONE] >= 1
        assert {fact.key: fact.value for fact in service.facts("steve")} == {
            f"code_{number}": f"zebra_{number}" for number in (1, 2, 3)
        }
        assert sorted(answers_of(service, "steve").elements()) == ["zebra_1", "zebra_2", "zebra_3"]
        assert service.status().users == 1


@one_backend
def test_the_greeting_says_how_to_try_it_and_json_leaves_it_out(site: Site) -> None:
    share(site)
    greeting = site.processes.logs()
    assert "user        steve" in greeting
    assert "chat --server http://127.0.0.1:" in greeting
    share(site, "--json").ask("GET", "/session")
    *_, log = sorted(site.processes.folder.glob("*.log"))
    assert "To try it" not in log.read_text()


@one_backend
@pytest.mark.parametrize("is_kept", [True, False])
def test_the_end_says_that_it_can_be_gone_on_with_if_it_can(site: Site, is_kept: bool) -> None:
    site.settings.set(memory_documents=is_kept)
    site.provider.default = chat("Hello Steve.")
    server = share(site)
    server.ask("POST", "/request", {"prompt": SAID})
    server.process.terminate()
    assert server.process.wait(STOP_SECONDS) == 0
    assert "stopped" in site.processes.logs()
    assert ("--continue" in site.processes.logs()) is is_kept


def client(
    site: Site, tmp_path: Path, server: Server, *arguments: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """`shepherd chat --server` of somebody whose own configuration is empty."""
    command = ["--config", str(tmp_path / "of-the-client.toml"), "chat", "--server", server.url, *arguments]
    return run(
        [sys.executable, "-m", "shepherd_memory", *command],
        input=stdin,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


@one_backend
def test_a_client_asks_and_keeps_nothing_itself(site: Site, tmp_path: Path) -> None:
    site.provider.default = chat("Hello Steve.")
    server = share(site)
    done = client(site, tmp_path, server, SAID)
    assert (done.returncode, done.stdout) == (0, "Hello Steve.\n"), done.stderr
    piped = client(site, tmp_path, server, "--json", stdin='{"prompt": "Again"}\n')
    assert piped.returncode == 0, piped.stderr
    lines = [json.loads(line) for line in piped.stdout.splitlines()]
    assert lines[-1]["event"] == "response_complete"
    assert contents(server) == [SAID, "Hello Steve.", "Again", "Hello Steve."]
    assert [text for _, text in site.said("steve")] == contents(server)
    with site.settings.service() as service:
        assert service.status().users == 1


@one_backend
def test_a_client_whose_server_dies_says_so(site: Site, tmp_path: Path, gate: threading.Event) -> None:
    site.provider.script(openai_stream("Hello ", gate))
    server = share(site)
    killer = threading.Thread(target=lambda: (site.provider.wait_for(1), kill(server.process)))
    killer.start()
    done = client(site, tmp_path, server, SAID)
    killer.join()
    assert done.returncode == 5
    assert server.url in done.stderr


@one_backend
def test_a_client_shows_no_password(site: Site, tmp_path: Path) -> None:
    server = share(site)
    url = server.url.replace("://", "://me:geheim@")
    environment = {"SHEPHERD_CONFIG": str(tmp_path / "of-the-client.toml")}
    command = (sys.executable, "-m", "shepherd_memory", "chat", "--server", url)
    with terminal(*command, environment=environment) as screen:
        screen.wait_for(f"in the shared session at {server.url}")
        assert b"geheim" not in screen.raw


@one_backend
def test_ctrl_c_in_a_client_stops_the_answer_at_the_server(
    site: Site, tmp_path: Path, gate: threading.Event
) -> None:
    site.provider.script(openai_stream("Hello ", gate))
    server = share(site)
    asking = site.processes.shepherd(tmp_path / "of-the-client.toml", "chat", "--server", server.url, SAID)
    wait_until(lambda: "Hello " in site.processes.logs(), "the first words are shown")
    asking.send_signal(signal.SIGINT)
    assert asking.wait(STOP_SECONDS) != 0
    site.provider.wait_until_left()
    wait_until(lambda: contents(server) == [SAID, "Hello "], "what was said until then is kept")
    wait_until(lambda: server.ask("GET", "/session").json["running"] is None, "nothing is answered any more")
