"""Agents and clients as processes: each in a home of its own, with nothing of the developer's environment."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.agents.installation import CLIENTS, node, node_packages, python_of

MAX_SECONDS = 240
"""For one run of an agent, on a machine that does other things too."""

KEPT = ("PATH", "LANG", "TMPDIR")
"""What an agent sees of our environment; no proxy, and no key or base URL of the developer's."""

INSTRUCTIONS = "Always use tabs. The mascot of this repository is a heron.\n"
"""What stands in the project's CLAUDE.md and AGENTS.md: boilerplate of every conversation."""

QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""litellm would look for prices on the web each time that it is imported."""

RUNNERS = {".py": "python", ".sh": "sh"}

CODEX_CONFIG = """\
model = "scripted-1"
check_for_update_on_startup = false
sandbox_mode = "danger-full-access"
{more}

[analytics]
enabled = false

[model_providers.shepherd]
name = "Shepherd"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""


@dataclass(frozen=True)
class Program:
    """A command that is run again and again in one home."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path

    def run(self, *arguments: str) -> str:
        """What it prints; whatever it says is shown if it fails."""
        kept = {name: value for name, value in os.environ.items() if name in KEPT}
        with subprocess.Popen(
            [*self.command, *arguments],
            cwd=self.folder,
            env={**kept, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, errors = process.communicate(timeout=MAX_SECONDS)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        assert process.returncode == 0, f"{process.args} ended with {process.returncode}:\n{output}\n{errors}"
        return output.strip()


def claude_code(home: Path, url: str, key: str) -> Program:
    """Claude Code in a project with a CLAUDE.md."""
    own = {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    command = (str(node_packages() / ".bin" / "claude"), "--print", "--allowedTools=Bash")
    return Program(command, {**own, **claude_environment(url, key)}, _project(home, "CLAUDE.md"))


def claude_environment(url: str, key: str) -> dict[str, str]:
    """What a person sets to have Claude Code use our server."""
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key}


def codex(home: Path, url: str, key: str, *more: str, provider: str = "shepherd") -> Program:
    """Codex in a project with an AGENTS.md; `more` are further lines of its configuration."""
    folder = home / ".codex"
    folder.mkdir()
    lines = "\n".join([f'model_provider = "{provider}"', *more])
    (folder / "config.toml").write_text(CODEX_CONFIG.format(url=url, more=lines))
    keys = {"OPENAI_API_KEY": key, "CODEX_API_KEY": key}
    command = (node(), str(node_packages() / ".bin" / "codex"), "exec", "--skip-git-repo-check")
    environment = {"HOME": str(home), "CODEX_HOME": str(folder), **keys}
    return Program(command, environment, _project(home, "AGENTS.md"))


def client(name: str, home: Path, url: str, key: str) -> Program:
    """A client of `clients`: it takes what to ask, and the user if it has a field for one."""
    (script,) = (CLIENTS / name).glob("ask.*")
    # A module of node looks for packages in the folders above it, and nowhere else.
    shutil.copy(script, home)
    environment = {"HOME": str(home), "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": key}
    if script.suffix == ".mjs":
        (home / "node_modules").symlink_to(node_packages())
        return Program((node(), script.name), environment, home)
    python = python_of(name)
    environment |= {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", **QUIET}
    return Program((RUNNERS[script.suffix], script.name), environment, home)


def _project(home: Path, instructions: str) -> Path:
    folder = home / "project"
    folder.mkdir()
    (folder / instructions).write_text(INSTRUCTIONS)
    return folder
