"""Where servers and workers watch for transcripts, in words and as JSON."""

from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.frontends.cli.advice import program
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.transcripts.folders import watched


def watching_as_json(config: Config) -> dict[str, Any]:
    """Whether they watch, and the folders that are there."""
    folders = [str(path) for path in watched(config.transcripts_watch_path)]
    return {"enabled": config.transcripts_enabled, "folders": folders}


def watching_line(invocation: Invocation, config: Config) -> str:
    """The same for a person, with how to switch it on."""
    if not config.transcripts_enabled:
        return f"not watched for; `{program(invocation)} config set transcripts_enabled true` switches it on"
    return f"watching {folders_line(config)}"


def folders_line(config: Config) -> str:
    """The folders, or what is waited for."""
    folders = [str(path) for path in watched(config.transcripts_watch_path)]
    missing = config.transcripts_watch_path or "a folder of an agent"
    return ", ".join(folders) or f"for {missing} to appear"
