"""A provider that is a shepherd too: it is told whose chat it is, and of the two only one remembers it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from shepherd_memory import Config, open_service
from shepherd_memory.chat import events
from shepherd_memory.chat.events import Event
from shepherd_memory.chat.session import ChatSession, Options, open_chat
from shepherd_memory.config import Provider, load_config
from shepherd_memory.llm.client import check_provider
from tests.acceptance.processes import wait_until
from tests.provider import ScriptedProvider, chat, gated, openai_error
from tests.server.calling import call_json, error_of, new_key, say
from tests.server.serving import Running, StartServer, serving
from tests.server.shared_session import StartSharing

SECRET, OWN = "indigo", "crimson"
WORDS = "What colour is my lantern?"
REMOTE_USER = "steve"

OpenLocal = Callable[..., ChatSession]


@pytest.fixture
def remote(start: StartServer) -> Running:
    """The server elsewhere: whoever names nobody is steve there, whose lantern is indigo."""
    server = start(user_id=REMOTE_USER)
    server.service.set_fact(REMOTE_USER, "lantern_colour", SECRET)
    server.service.set_fact("me", "lantern_colour", OWN)
    return server


@pytest.fixture
def local(tmp_path: Path) -> Iterator[OpenLocal]:
    """Chats of this machine, with a memory of its own, through a provider of the type shepherd."""
    with ExitStack() as stack:

        def opened(
            url: str, user_id: str = "me", options: Options | None = None, **fields: Any
        ) -> ChatSession:
            far = Provider("far", type="shepherd", base_url=url, **fields)
            config = Config(
                memory_database=f"sqlite:///{tmp_path}/local.db",
                memory_extraction=True,
                rag_context_injection=True,
                embedding_engine="none",
                provider="far",
                providers={"far": far},
            )
            service = stack.enter_context(open_service(config, worker=False))
            return stack.enter_context(open_chat(service, user_id, options or Options()))

        yield opened


def asked(chat: ChatSession, text: str = WORDS, **options: Any) -> Event:
    """How it ended."""
    told: list[Event] = []
    chat.ask(text, told.append, **options)
    return told[-1]


def remembered_here(chat: ChatSession) -> int:
    return len(chat.service.documents(chat.user_id))


@pytest.mark.parametrize("user_id", ["me", "Zoë 東京"])
def test_the_user_is_named_to_a_server_that_takes_one(
    remote: Running, provider: ScriptedProvider, local: OpenLocal, user_id: str
) -> None:
    remote.service.set_fact(user_id, "lantern_colour", OWN)
    chat = local(remote.url, user_id)
    assert isinstance(asked(chat), events.TurnCompleted)
    sent = provider.requests[-1].body.decode()
    assert OWN in sent
    assert SECRET not in sent
    assert [role for role, _ in remote.said(user_id)] == ["user", "assistant"]
    assert remote.said(REMOTE_USER) == []
    assert (remembered_here(chat), chat.memory_word()) == (0, "remote")


def test_a_key_for_any_user_takes_the_user_too(remote: Running, local: OpenLocal) -> None:
    key = new_key(remote.service, "operator", any_user=True)
    assert isinstance(asked(local(remote.url, api_key=key)), events.TurnCompleted)
    assert len(remote.said("me")) == 2
    assert remote.said("operator") == remote.said(REMOTE_USER) == []


def test_a_key_of_another_user_is_refused_with_what_to_do(
    remote: Running, provider: ScriptedProvider, local: OpenLocal
) -> None:
    key = new_key(remote.service, "ana")
    last = asked(local(remote.url, api_key=key))
    assert isinstance(last, events.TurnFailed)
    assert "this API key acts for the user 'ana' only" in last.problem
    assert "here the user is 'me': `shepherd config set user_id NAME`" in last.problem
    assert [received.path for received in provider.requests if received.method == "POST"] == []
    assert remote.said("me") == remote.said("ana") == []


def test_a_personal_key_is_good_for_its_own_user(remote: Running, local: OpenLocal) -> None:
    key = new_key(remote.service, "me")
    assert isinstance(asked(local(remote.url, api_key=key)), events.TurnCompleted)
    assert len(remote.said("me")) == 2


@pytest.mark.parametrize(
    ("user_id", "options", "more"),
    [
        ("me", Options(memory=False), {}),
        ("me", Options(), {"memory": False}),
        ("unknown", Options(), {}),
    ],
)
def test_a_chat_without_memory_is_without_it_there_too(
    remote: Running,
    provider: ScriptedProvider,
    local: OpenLocal,
    user_id: str,
    options: Options,
    more: dict[str, Any],
) -> None:
    chat = local(remote.url, user_id, options)
    assert isinstance(asked(chat, **more), events.TurnCompleted)
    sent = provider.requests[-1].body.decode()
    assert SECRET not in sent
    assert OWN not in sent
    assert remote.said("me") == remote.said(REMOTE_USER) == remote.said("unknown") == []


def test_with_memory_set_it_is_this_machine_that_remembers_and_not_the_other(
    remote: Running, provider: ScriptedProvider, local: OpenLocal
) -> None:
    chat = local(remote.url, memory=True)
    chat.service.set_fact("me", "lantern_colour", "turquoise")
    assert isinstance(asked(chat), events.TurnCompleted)
    sent = provider.requests[-1].body.decode()
    assert "turquoise" in sent
    assert OWN not in sent
    assert remembered_here(chat) == 2
    assert remote.said("me") == []


def test_a_user_whom_no_header_can_name_is_refused_and_nobody_else_is_named(
    remote: Running, provider: ScriptedProvider, local: OpenLocal
) -> None:
    last = asked(local(remote.url, "a\nb"))
    assert isinstance(last, events.TurnFailed)
    assert "control characters" in last.problem
    assert [received.path for received in provider.requests if received.method == "POST"] == []


@pytest.fixture
def chained(remote: Running, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Another server of ours before the remote one."""
    with ExitStack() as stack:

        def started(url: str = "", **fields: Any) -> Running:
            near = tmp_path / "near"
            near.mkdir()
            far = {"type": "shepherd", "base_url": url or remote.url, **fields}
            settings = {
                "memory_database": f"sqlite:///{near}/near.db",
                "embedding_engine": "none",
                "memory_extraction": True,
                "rag_context_injection": True,
                "server_memory_timeout": 30.0,
                "provider": "far",
            }
            (near / "config.toml").write_text(tomli_w.dumps({**settings, "providers": {"far": far}}))
            return stack.enter_context(serving(near / "config.toml"))

        yield started


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_server_before_another_names_its_user_and_leaves_the_memory_to_it(
    remote: Running, provider: ScriptedProvider, chained: Callable[..., Running], wire: str
) -> None:
    near = chained()
    named = {"metadata": {"user_id": "me"}} if wire == "anthropic" else {"user": "me"}
    reply = say(near.url, WORDS, {"X-Shepherd-Session": "one"}, wire=wire, **named)
    assert reply.status == 200
    sent = provider.requests[-1].body.decode()
    assert OWN in sent
    assert SECRET not in sent
    assert remote.said("me")[0] == ("user", WORDS)
    assert {document.session_id for document in remote.service.documents("me")} == {"one"}
    assert near.said("me") == []
    assert [value for name, value in reply.headers if name == "x-shepherd-memory"] == ["on"]


def test_what_a_client_switches_off_is_off_at_both(remote: Running, chained: Callable[..., Running]) -> None:
    near = chained()
    for headers, fields in (({"X-Shepherd-Memory": "off"}, {}), ({}, {"memory": False})):
        reply = say(near.url, WORDS, headers, user="me", **fields)
        assert (reply.status, reply.header("x-shepherd-memory")) == (200, "off")
    assert remote.said("me") == near.said("me") == []


def test_of_a_chain_with_memory_set_the_first_remembers(
    remote: Running, chained: Callable[..., Running]
) -> None:
    near = chained(memory=True)
    reply = say(near.url, WORDS, user="me")
    assert (reply.status, reply.header("x-shepherd-memory")) == (200, "on")
    assert len(near.said("me")) == 2
    assert remote.said("me") == []


def test_a_chained_user_whom_the_key_there_does_not_allow_is_refused_in_words(
    remote: Running, chained: Callable[..., Running]
) -> None:
    near = chained(api_key=new_key(remote.service, "ana"))
    reply = say(near.url, WORDS, user="me")
    assert (reply.status, error_of(reply)["code"]) == (403, "user_not_allowed_for_key")
    assert "--any-user" in error_of(reply)["message"]
    assert remote.said("ana") == remote.said("me") == []


def test_a_shared_session_is_a_provider_too(share: StartSharing, local: OpenLocal) -> None:
    shared = share()
    check_provider(Provider("far", type="shepherd", base_url=shared.url))
    chat = local(shared.url)
    last = asked(chat, "Hello?")
    assert isinstance(last, events.TurnCompleted)
    assert last.text == "Hello there."
    assert isinstance(asked(chat, "And again?"), events.TurnCompleted)
    assert shared.contents() == ["Hello?", "Hello there.", "And again?", "Hello there."]
    assert len(shared.said(REMOTE_USER)) == 4
    assert remembered_here(chat) == 0
    assert chat.context_window() == 32_000


def test_cancelling_it_here_cancels_it_there(
    share: StartSharing, provider: ScriptedProvider, local: OpenLocal
) -> None:
    gate = threading.Event()
    shared, told = share(), []
    provider.script(gated(gate, chat("too late")))
    talk = local(shared.url)
    asking = threading.Thread(target=talk.ask, args=("Hello?", told.append), name="test-asking")
    asking.start()
    try:
        shared.wait_until_running()
        talk.cancel()
        asking.join()
        assert isinstance(told[-1], events.TurnCancelled)
        shared.wait_until_idle()
        provider.wait_until_left()
    finally:
        gate.set()
        asking.join()


def test_what_fails_in_the_shared_session_is_told_in_its_words(
    share: StartSharing, provider: ScriptedProvider, local: OpenLocal
) -> None:
    shared = share()
    provider.script(openai_error(400, "the model is out to lunch"))
    last = asked(local(shared.url))
    assert isinstance(last, events.TurnFailed)
    assert "out to lunch" in last.problem


def test_any_client_of_the_wire_format_can_ask_it(share: StartSharing) -> None:
    shared = share()
    reply = say(shared.url, "Hello?", memory=False)
    assert reply.json["choices"][0]["message"] == {"role": "assistant", "content": "Hello there."}
    assert reply.json["usage"]["total_tokens"] > 0
    assert shared.said(REMOTE_USER) == []
    streamed = say(shared.url, "Hello?", stream=True)
    assert streamed.body.endswith(b"data: [DONE]\n\n")
    for messages in ([], [{"role": "assistant", "content": "x"}], [{"role": "user", "content": " "}]):
        refused = call_json(shared.url, "POST", "/v1/chat/completions", {"messages": messages})
        assert refused.status == 400
        assert "the last of the messages" in error_of(refused)["message"]


def test_a_server_may_stand_before_a_shared_session(
    share: StartSharing, chained: Callable[..., Running]
) -> None:
    shared = share()
    near = chained(shared.url)
    assert say(near.url, "Hello?", user="me").json["choices"][0]["message"]["content"] == "Hello there."
    wait_until(lambda: len(shared.said(REMOTE_USER)) == 2, "the session remembers it")
    assert near.said("me") == []


def test_a_provider_that_is_none_of_ours_is_told_nothing_of_users(
    start: StartServer, provider: ScriptedProvider
) -> None:
    server = start()
    assert say(server.url, WORDS, {"X-Shepherd-User": "me"}).status == 200
    assert not [name for name in provider.requests[-1].headers if name.lower().startswith("x-shepherd")]
    assert load_config(server.config_path).providers["open"].type == "openai"
