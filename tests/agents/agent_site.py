"""`shepherd serve` before a scripted provider, and what it remembers of those who talk through it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.agents.recorder import Recorder, recording
from tests.endpoint import Body, Received, Step, by_content
from tests.provider import ScriptedProvider, chat
from tests.server.serving import ANTHROPIC, PROVIDER_KEY, ServeCommand
from tests.terminal.shell import data, good

TOLD, ASKED = "My bicycle is a green Brompton.", "Which bicycle do I have?"
NOTED, KNOWN = "I will remember that.", "A green Brompton."
CONFIGURED = "steve"
"""The user of the server's configuration."""


@dataclass(frozen=True)
class AgentSite:
    """A server, with a recorder before it that hears what agents send, and its provider."""

    recorder: Recorder
    provider: ScriptedProvider

    @property
    def url(self) -> str:
        return self.recorder.url

    def answer(self, *steps: Step) -> None:
        """What the model says to an agent, turn by turn."""
        left = iter(steps)

        def choose(body: Body) -> Step:
            # What an agent asks without its tools is no turn: a title, a summary.
            return next(left) if body.get("tools") else chat("A title")

        self.provider.default = by_content(choose)

    @property
    def sent(self) -> list[Received]:
        """The chats that reached the provider."""
        return [request for request in self.provider.requests if request.method == "POST"]

    def documents(self, user: str) -> list[tuple[str, str]]:
        """What is remembered of a user's chats: role and text, oldest first."""
        return [(row["role"], row["text"]) for row in data("documents", "list", "--user", user)]

    def new_key(self, user: str) -> str:
        return good("apikey", "create", user).stdout.strip()


OpenSite = Callable[..., AgentSite]


@contextmanager
def agent_site(served: ServeCommand, provider: ScriptedProvider, **settings: object) -> Iterator[AgentSite]:
    """A server before a provider that speaks every wire; recall is by keyword unless `settings` differ."""
    claude = {"type": "anthropic", "base_url": provider.url, "api_key": PROVIDER_KEY, "memory": True}
    usual = {"user_id": CONFIGURED, "embedding_engine": "none"}
    server = served(others={ANTHROPIC: claude}, **{**usual, **settings})
    with recording(server.url) as recorder:
        yield AgentSite(recorder, provider)
