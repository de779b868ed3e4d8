"""What `shepherd mcp` costs before an agent has its first answer: `python -m tests.bench.report_mcp`."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from tests.bench.figures import ratio, write_line, write_table

RUNS = 15
MAX_RATIO = 1.15
"""Of a bare server: what we import of our own, and the configuration."""

BARE = """
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def serve():
    server = Server("bare", version="1")
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

anyio.run(serve)
"""
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "report", "version": "1"},
    },
}
SERVERS = {
    "a bare server of the SDK": [sys.executable, "-c", BARE],
    "shepherd mcp": [str(Path(sys.executable).with_name("shepherd")), "mcp", "--user", "ana"],
}


def cpu_milliseconds(command: list[str], home: str) -> float:
    """User and system time of one server, from its start to the answer to `initialize`."""
    environment = {"PATH": os.defpath, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        spent = psutil.Process(process.pid).cpu_times()
        process.stdin.close()
    assert "serverInfo" in answer["result"]
    return 1000 * (spent.user + spent.system)


def main() -> None:
    spent: dict[str, list[float]] = {name: [] for name in SERVERS}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(RUNS):
            for name, command in SERVERS.items():
                spent[name].append(cpu_milliseconds(command, home))
    bare, ours = (statistics.median(runs) for runs in spent.values())
    rows = [
        (
            name,
            f"{min(runs):.0f} ms",
            f"{statistics.median(runs):.0f} ms",
            ratio(statistics.median(runs), bare),
        )
        for name, runs in spent.items()
    ]
    write_table(
        f"until `initialize` is answered, CPU, {RUNS} starts of each by turns",
        ("server", "least", "median", "of a bare one"),
        rows,
    )
    write_line(f"the aim is {MAX_RATIO} at most: {'met' if ours <= MAX_RATIO * bare else 'MISSED'}")


if __name__ == "__main__":
    main()
