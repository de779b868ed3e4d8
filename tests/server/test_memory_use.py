"""Remembering and injecting, each for itself: what a provider's `memory` says, else the two general keys."""

from pathlib import Path
from typing import Any

import pytest
import tomli_w

from shepherd_memory import Config, open_service
from shepherd_memory.chat import events
from shepherd_memory.chat.events import Event
from shepherd_memory.chat.session import Options, open_chat
from shepherd_memory.config import Provider
from tests.provider import ScriptedProvider, chat, openai_stream
from tests.server.calling import CHATS, say
from tests.server.serving import Running, serving

SECRET = "indigo"
WORDS = "What colour is my lantern?"

USES = [
    # The flag of the provider, the two keys; whether it is remembered, whether injected, and the word for it.
    (None, False, False, False, False, "off"),
    (None, True, False, True, False, "remember-only"),
    (None, False, True, False, True, "inject-only"),
    (None, True, True, True, True, "on"),
    (True, False, False, True, True, "on"),
    (False, True, True, False, False, "off"),
]
every_use = pytest.mark.parametrize(
    ("memory", "extraction", "injection", "remembered", "injected", "word"), USES
)


def table(provider: ScriptedProvider, memory: bool | None, kind: str) -> dict[str, Any]:
    flag = {} if memory is None else {"memory": memory}
    return {"type": kind, "base_url": provider.url, **flag}


def write(path: Path, provider: ScriptedProvider, memory: bool | None, **settings: Any) -> None:
    tables = {kind: table(provider, memory, kind) for kind in ("openai", "anthropic")}
    general = {
        "memory_database": f"sqlite:///{path.parent}/memory.db",
        "embedding_engine": "none",
        "server_memory_timeout": 30.0,
        "provider": "openai",
        **settings,
    }
    path.write_text(tomli_w.dumps({**general, "providers": tables}))


def chatted(server: Running, provider: ScriptedProvider, wire: str, stream: bool) -> tuple[str, bool, bool]:
    """What is said of the memory, whether it was told to the model, whether the exchange is remembered."""
    named = {"metadata": {"user_id": "ann"}} if wire == "anthropic" else {"user": "ann"}
    before = len(server.said("ann"))
    # Words of its own each time: what was said before would not be remembered twice.
    asked = f"{WORDS} {len(provider.requests)}"
    reply = say(server.url, asked, wire=wire, stream=stream, **named)
    assert reply.status == 200
    injected = reply.header("x-shepherd-injected")
    is_told = SECRET in provider.requests[-1].body.decode()
    assert is_told == (injected not in (None, "0"))
    word = reply.header("x-shepherd-memory")
    assert word is not None
    return word, len(server.said("ann")) > before, is_told


@every_use
def test_the_server_does_for_a_chat_what_is_switched_on_and_says_which(
    tmp_path: Path,
    provider: ScriptedProvider,
    memory: bool | None,
    extraction: bool,
    injection: bool,
    remembered: bool,
    injected: bool,
    word: str,
) -> None:
    provider.default = chat("I do not know.")
    path = tmp_path / "config.toml"
    write(path, provider, memory, memory_extraction=extraction, rag_context_injection=injection)
    with serving(path) as server:
        server.service.set_fact("ann", "lantern_colour", SECRET)
        for wire in CHATS:
            for stream in (False, True):
                assert chatted(server, provider, wire, stream) == (word, remembered, injected)


def test_both_keys_take_effect_while_the_server_runs(tmp_path: Path, provider: ScriptedProvider) -> None:
    provider.default = chat("I do not know.")
    path = tmp_path / "config.toml"
    write(path, provider, None)
    with serving(path) as server:
        server.service.set_fact("ann", "lantern_colour", SECRET)
        assert chatted(server, provider, "openai", False) == ("off", False, False)
        write(path, provider, None, rag_context_injection=True)
        assert chatted(server, provider, "openai", False) == ("inject-only", False, True)
        write(path, provider, None, memory_extraction=True)
        assert chatted(server, provider, "openai", False) == ("remember-only", True, False)


def test_the_user_of_the_configuration_takes_effect_while_the_server_runs(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    provider.default = chat("I do not know.")
    path = tmp_path / "config.toml"
    write(path, provider, True, user_id="ann")
    with serving(path) as server:
        assert say(server.url, "I am ann.").status == 200
        write(path, provider, True, user_id="bob")
        assert say(server.url, "I am bob.").status == 200
        assert [server.said(user)[0][1] for user in ("ann", "bob")] == ["I am ann.", "I am bob."]


@every_use
def test_a_chat_of_this_machine_does_the_same(
    tmp_path: Path,
    provider: ScriptedProvider,
    memory: bool | None,
    extraction: bool,
    injection: bool,
    remembered: bool,
    injected: bool,
    word: str,
) -> None:
    provider.default = openai_stream("I do not know.")
    config = Config(
        memory_database=f"sqlite:///{tmp_path}/memory.db",
        embedding_engine="none",
        memory_extraction=extraction,
        rag_context_injection=injection,
        provider="lab",
        providers={"lab": Provider("lab", base_url=provider.url, memory=memory, context_window=32_000)},
    )
    told: list[Event] = []
    with open_service(config, worker=False) as service:
        service.set_fact("ann", "lantern_colour", SECRET)
        with open_chat(service, "ann", Options(memtools=True)) as session:
            session.ask(WORDS, told.append)
            assert session.memory_word() == word
        assert (len(service.documents("ann")) == 2) == remembered
    assert any(isinstance(event, events.MemoryInjected) for event in told) == injected
    sent = provider.requests[-1].json
    assert (SECRET in str(sent["messages"])) == injected
    # What the model could store by a tool would be remembered too.
    assert ("tools" in sent) == remembered
