"""A scripted provider in use, and `shepherd chat` before it: on a terminal, in a pipe, seen from outside."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import tomli_w

from shepherd_memory.config import load_config
from shepherd_memory.service import Service, open_service
from tests.fork_server import Popen, run
from tests.provider import ScriptedProvider
from tests.terminal.pty_screen import PATIENCE_SECONDS, Terminal, terminal

CHAT = (sys.executable, "-m", "shepherd_memory", "chat")
PROMPT = "> "
ANN = "ann"


class ChatSite:
    """A configuration file with one provider, and the chats that use it."""

    def __init__(self, folder: Path, provider: ScriptedProvider) -> None:
        self.path = folder / "config.toml"
        self.home = folder / "home"
        self.database = folder / "memory.db"
        self.provider = provider
        self.home.mkdir()
        self.settings: dict[str, Any] = {"user_id": ANN, "memory_database": str(self.database)}
        self.lab: dict[str, Any] = {
            "base_url": provider.url,
            "model": "scripted-1",
            "context_window": 100_000,
        }
        self.configure()

    def configure(self, **settings: Any) -> None:
        """Write the file anew; `memory` is the provider's own flag."""
        if "memory" in settings:
            self.lab["memory"] = settings.pop("memory")
        self.settings |= settings
        table = {**self.settings, "provider": "lab", "providers": {"lab": self.lab}}
        self.path.write_text(tomli_w.dumps(table))

    def environment(self) -> dict[str, str]:
        """Where a chat finds its configuration, and leaves its files."""
        return {"SHEPHERD_CONFIG": str(self.path), "XDG_STATE_HOME": str(self.home), "HOME": str(self.home)}

    def on_terminal(self, *options: str, **more: Any) -> AbstractContextManager[Terminal]:
        """`shepherd chat` on a terminal, from the prompt on."""
        environment = {**self.environment(), **more.pop("environment", {})}
        return _prompting(terminal(*CHAT, *options, environment=environment, **more))

    def piped(
        self, *options: str, stdin: bytes | str = b"", **more: Any
    ) -> subprocess.CompletedProcess[bytes]:
        """`shepherd chat` between two pipes, to its end."""
        given = stdin if isinstance(stdin, bytes) else stdin.encode()
        return run(
            [*CHAT, *options],
            input=given,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            env=self.variables(),
            **more,
        )

    def open_pipes(
        self, *options: str, variables: Mapping[str, str] | None = None, **more: Any
    ) -> "subprocess.Popen[bytes]":
        """The same while it runs."""
        pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
        environment = {**self.variables(), **(variables or {})}
        return Popen[bytes]([*CHAT, *options], **{**pipes, **more}, env=environment)

    def variables(self) -> dict[str, str]:
        root = str(Path(__file__).parents[2])
        return {**os.environ, "PYTHONPATH": root, **self.environment()}

    def heard(self) -> list[str]:
        """The last thing that the user says, of each request to the provider."""
        bodies = [one.json for one in self.provider.requests if one.method == "POST"]
        return [body["messages"][-1]["content"] for body in bodies]

    def said(self) -> list[str]:
        """What the user said, as it is stored."""
        with self.service() as service:
            return [one.text for one in service.documents(ANN) if one.role == "user"]

    @contextmanager
    def service(self) -> Iterator[Service]:
        with open_service(load_config(self.path, {}), worker=False) as service:
            yield service

    def files_with(self, *words: str) -> list[str]:
        """The files below the home and beside the database in which one of these words stands."""
        places = [path for path in self.path.parent.rglob("*") if path.is_file()]
        return [str(path) for path in places if any(word.encode() in path.read_bytes() for word in words)]


@contextmanager
def _prompting(opened: AbstractContextManager[Terminal]) -> Iterator[Terminal]:
    with opened as screen:
        screen.wait_for_line(PROMPT)
        yield screen


def say(screen: Terminal, text: str) -> None:
    """Type something and send it; also ahead, while an answer comes in."""
    screen.type(text + "\r")


def json_lines(output: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]
