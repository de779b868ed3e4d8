"""The API server of a test: its configuration file, and the server in this process or in one of its own."""

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.service import Service
from tests.acceptance.processes import Processes, wait_until

OPENAI, ANTHROPIC = "open", "claude"
"""What the provider of a test is called; its type follows."""

TYPES = {OPENAI: "openai", ANTHROPIC: "anthropic"}
PROVIDER_KEY = "sk-of-the-provider"
START_SECONDS = 120.0


@dataclass(frozen=True)
class Running:
    """A server that listens, and the service it works on."""

    url: str
    service: Service
    config_path: Path

    def said(self, user_id: str) -> list[tuple[str, str]]:
        """What is remembered of a user's chats: role and text, oldest first."""
        return [(document.role, document.text) for document in self.service.documents(user_id)]


@dataclass(frozen=True)
class Served:
    """A `shepherd serve` that listens."""

    url: str
    process: subprocess.Popen[bytes]


# Both take what `write_config` takes after the provider's URL.
StartServer = Callable[..., Running]
ServeCommand = Callable[..., Served]


def write_config(
    path: Path,
    provider_url: str,
    current: str = OPENAI,
    *,
    memory: bool = True,
    api_key: str = PROVIDER_KEY,
    others: Mapping[str, Mapping[str, Any]] | None = None,
    **settings: Any,
) -> None:
    """A configuration with one provider, in use, and the tables of `others`; `settings` are general keys."""
    fields = {"type": TYPES[current], "base_url": provider_url, "api_key": api_key, "memory": memory}
    general = {
        "memory_database": f"sqlite:///{path.parent}/memory.db",
        "server_shutdown_timeout": 5.0,
        # A busy machine is no reason for a test to see a chat without its memory.
        "server_memory_timeout": 30.0,
        "provider": current,
        **settings,
    }
    path.write_text(tomli_w.dumps({**general, "providers": {current: fields, **(others or {})}}))


@contextmanager
def serving(config_path: Path) -> Iterator[Running]:
    """The server in a thread of this process, on a port of its own."""
    # Late: the tests of the server's pure parts share this folder, and need none of it.
    from shepherd_memory.frontends.api.app import api_application
    from shepherd_memory.frontends.web.process import running

    config = load_config(config_path, {})
    with (
        open_service(config, config_path=config_path) as service,
        running(service, api_application(service, "127.0.0.1")) as server,
    ):
        yield Running(server.url, service, config_path)


def serve(processes: Processes, config_path: Path) -> Served:
    """`shepherd serve` on a port of its own, once it listens."""
    process = processes.shepherd(config_path, "serve", "--port", 0)
    log = max(processes.folder.glob("*.log"))

    def announced() -> re.Match[str] | None:
        written = log.read_text()
        assert process.poll() is None, f"it ended with {process.returncode}: {written}"
        return re.search(r"listening on (http://\S+)", written)

    return Served(wait_until(announced, "the server says where it listens", START_SECONDS)[1], process)


def described_path(path: str) -> str:
    """A route's path as the description of the server has it."""
    return re.sub(r":\w+}", "}", path)
