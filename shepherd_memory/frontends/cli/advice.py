"""What to do about extraction that is off or in trouble, as commands that can be copied."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from shepherd_memory.config import SETTINGS, Config
from shepherd_memory.config.providers import current_provider, is_remembered_there, memory_use, memory_words
from shepherd_memory.extraction.extractor import extraction_endpoint
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.work import endpoint_state, jobs

if TYPE_CHECKING:
    from shepherd_memory.maintenance.status import Status

ENDPOINT, MODEL, API_KEY = (f"memory_extraction_{name}" for name in ("endpoint", "model", "api_key"))
EXAMPLES = {ENDPOINT: "http://localhost:11434", MODEL: "NAME", API_KEY: "-"}

PROMPT_SECONDS = 30
"""An item that waits longer may be waiting for a worker that is not there."""

_KEYS_NAMED = re.compile(r"\bmemory_\w+")


def program(invocation: Invocation) -> str:
    """How to call this program again, with the configuration that it uses now."""
    options = ["--config", str(invocation.given_path)] if invocation.given_path else []
    return " ".join([_executable(), *map(shlex.quote, options)])


def _executable() -> str:
    if shutil.which("shepherd"):
        return "shepherd"
    called = Path(sys.argv[0])
    if called.name == "shepherd":
        return shlex.quote(os.path.relpath(called))
    return f"{shlex.quote(sys.executable)} -m shepherd_memory"


def extraction_line(config: Config) -> str:
    """Whether extraction is configured, and with what."""
    if extraction_endpoint(config) is None:
        return "off"
    where = SETTINGS[ENDPOINT].show(config.memory_extraction_endpoint)
    return f"on, {config.memory_extraction_model} at {where}"


def provider_line(invocation: Invocation, config: Config) -> str:
    """Where chats go, and whether they are remembered; or how to say so."""
    provider = current_provider(config)
    call = f"{program(invocation)} provider"
    if provider is None:
        how = f"{call} NAME use" if config.providers else f"{call} add NAME --base-url URL --memory"
        return f"none: chats get a 503 until `{how}`"
    is_off = not memory_use(config, provider) and not is_remembered_there(provider)
    advice = f"; `{call} {provider.name} set memory true`" if is_off else ""
    return f"{provider.name} ({provider.type}), {memory_words(config, provider)}{advice}"


def how_to_configure(invocation: Invocation, config: Config) -> list[str]:
    """The commands that switch extraction on."""
    missing = [key for key in (ENDPOINT, MODEL) if not getattr(config, key)]
    key = [] if config.memory_extraction_api_key else [f"{_set(invocation, API_KEY)}  # if it wants a key"]
    return [*(_set(invocation, key) for key in missing), *key]


def what_to_do(invocation: Invocation, config: Config, status: "Status") -> list[str]:
    """What helps in the state that `status` describes; nothing if all is well."""
    if extraction_endpoint(config) is None:
        return how_to_configure(invocation, config)
    found = [*_about_endpoint(invocation, config, status)]
    if status.items[jobs.FAILED]:
        found.append(f"{program(invocation)} queue list --status failed  # then queue retry or drop")
    if status.oldest_waiting_seconds > PROMPT_SECONDS and not status.items[jobs.RUNNING]:
        found.append(f"{program(invocation)} worker  # if none is running")
    return found


def _about_endpoint(invocation: Invocation, config: Config, status: "Status") -> list[str]:
    state = status.endpoint.state
    if state == endpoint_state.PAUSED:
        named = [key for key in _KEYS_NAMED.findall(status.endpoint.reason) if key in SETTINGS]
        return [_set(invocation, key) for key in dict.fromkeys(named or [ENDPOINT, MODEL, API_KEY])]
    if state == endpoint_state.UNAVAILABLE:
        seconds = SETTINGS["memory_extraction_retry_interval"].show(config.memory_extraction_retry_interval)
        return [f"nothing: it is tried again every {seconds} s; or {_set(invocation, ENDPOINT)}"]
    return []


def _set(invocation: Invocation, key: str) -> str:
    return f"{program(invocation)} config set {key} {EXAMPLES.get(key, 'VALUE')}"
