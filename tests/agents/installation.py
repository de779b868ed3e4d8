"""Installs the agents and clients that the tests run, once for each lock, in a cache outside of the checkout.

    python -m tests.agents.installation

With `SHEPHERD_TEST_AGENTS=newest` it is the newest version of each instead, and run as a program it looks for
newer ones.
"""

import fcntl
import functools
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
NODE, CLIENTS = FOLDER / "node", FOLDER / "clients"
NEWEST = os.environ.get("SHEPHERD_TEST_AGENTS") == "newest"
ENVIRONMENT = dict(os.environ)
"""As it was at the start: tests have homes of their own, and package managers keep their settings here."""

CACHE = Path(ENVIRONMENT.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shepherd-memory-tests"
COMPLETE = ".complete"
INSTALL_SECONDS = 280
"""Less than a test may take, which is who installs if `make` did not."""

NPM_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
NODE_PLATFORM = f"node-{sys.platform}-{'x64' if platform.machine() == 'x86_64' else 'arm64'}"
"""The npm package that is a `node` for this machine: the newest agents want a newer one than may be here."""


class NodeUnavailable(Exception):
    """There is no node or npm here."""


def node_packages() -> Path:
    """The `node_modules` folder with Claude Code, Codex and the client of Vercel."""
    if not (shutil.which("node") and shutil.which("npm")):
        raise NodeUnavailable("node and npm are not installed")
    fill = _fill_newest_node if NEWEST else _fill_node
    return _installed("node", [NODE / "package.json", NODE / "package-lock.json"], fill) / "node_modules"


def node() -> str:
    """The `node` that runs them."""
    return str(node_packages() / NODE_PLATFORM / "bin" / "node") if NEWEST else "node"


def python_of(client: str) -> Path:
    """The Python of an environment with nothing but this client of `clients`."""
    folder = CLIENTS / client
    requirements = folder / ("requirements.in" if NEWEST else "requirements.txt")

    def fill(environment: Path) -> None:
        _fill_python(environment, requirements)

    return _installed(f"{client}-{platform.python_version()}", [requirements], fill) / "bin" / "python"


def python_clients() -> list[str]:
    """The clients that are Python packages."""
    return sorted(path.parent.name for path in CLIENTS.glob("*/requirements.in"))


def _installed(name: str, locks: Sequence[Path], fill: Callable[[Path], None]) -> Path:
    """The folder that `fill` has filled: one process does it, and others that want it wait."""
    folder = CACHE / f"{name}-{'newest' if NEWEST else _digest(locks)}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / COMPLETE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            fill(folder)
            (folder / COMPLETE).touch()
    return folder


def _digest(files: Sequence[Path]) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _fill_node(folder: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(NODE / name, folder)
    _run(["npm", "ci", *NPM_OPTIONS], folder)
    _link_claude(folder)


def _fill_newest_node(folder: Path) -> None:
    pinned: Mapping[str, str] = json.loads((NODE / "package.json").read_text())["dependencies"]
    (folder / "package.json").write_text("{}")
    packages = [f"{name}@latest" for name in (*pinned, NODE_PLATFORM)]
    _run(["npm", "install", *NPM_OPTIONS, "--engine-strict=false", *packages], folder)
    _link_claude(folder)


def _link_claude(folder: Path) -> None:
    """What the package does after its installation: it puts the program for this platform where npm looks."""
    _run(["node", "node_modules/@anthropic-ai/claude-code/install.cjs"], folder)


def _fill_python(environment: Path, requirements: Path) -> None:
    _run([sys.executable, "-m", "venv", "--without-pip", str(environment)], environment)
    # Nothing is compiled before it is imported: most of these packages never are.
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "--quiet"]
    options = ["--no-compile", "--disable-pip-version-check", *([] if NEWEST else ["--require-hashes"])]
    _run([*pip, "install", *options, "--requirement", str(requirements)], environment)


def _run(command: Sequence[str], cwd: Path) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=INSTALL_SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")


def _forget_newest() -> None:
    for complete in CACHE.glob(f"*-newest/{COMPLETE}"):
        complete.unlink()


def _report(name: str, install: Callable[[], object]) -> None:
    began = time.monotonic()
    try:
        install()
    except NodeUnavailable as error:
        sys.stdout.write(f"{name}: skipped, {error}\n")
        return
    sys.stdout.write(f"{name}: installed, {time.monotonic() - began:.0f} s\n")


def main() -> None:
    if NEWEST:
        _forget_newest()
    _report("node", node_packages)
    for client in python_clients():
        _report(client, functools.partial(python_of, client))


if __name__ == "__main__":
    main()
