"""An endpoint that answers at once, in a process of its own, so that its cost is not the worker's.

It knows no HTTP but where a request ends, and gives everybody the same answer, but for who consolidates.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.bench.scripted_agent import answer_round
from tests.bench.workload import CONTEXT, FACTS

MEMORIES, NOTE, AGENT = "memories", "note", "agent"
"""What is asked for: facts and context of what was said, a note of a conversation, or a consolidation."""

CONTENTS = {
    MEMORIES: {"facts": FACTS, "context": CONTEXT},
    NOTE: {
        "raw_memory": "---\ntask_outcome: success\n---\n" + "- The parser is tested with make test.\n" * 40,
        "rollout_summary": "They mended the parser. " * 8,
        "rollout_slug": "mended_parser",
    },
}


@contextmanager
def instant_endpoint(asked: str = MEMORIES) -> Iterator[str]:
    """The URL of an endpoint that lives as long as the block."""
    command = [sys.executable, "-m", "tests.bench.instant_endpoint", asked]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def answer(asked: str) -> bytes:
    """One completion, head and body."""
    content = json.dumps(CONTENTS[asked])
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": 900, "completion_tokens": 60}
    choice = {"message": message, "finish_reason": "stop"}
    return _reply(json.dumps({"choices": [choice], "usage": usage}).encode())


def _reply(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _agent_reply(request: bytes) -> bytes:
    body = request.partition(b"\r\n\r\n")[2]
    # One without a body asks for the model's context window.
    return _reply(answer_round(json.loads(body)) if body else b"{}")


def serve(asked: str) -> None:
    """One connection after another: there is one worker, and it makes one call at a time."""
    given = b"" if asked == AGENT else answer(asked)
    reply = _agent_reply if asked == AGENT else lambda request: given
    with socket.create_server(("127.0.0.1", 0)) as server:
        sys.stdout.write(f"{server.getsockname()[1]}\n")
        sys.stdout.flush()
        while True:
            connection, _ = server.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection:
                _answer_all(connection, reply)


def _answer_all(connection: socket.socket, reply: Callable[[bytes], bytes]) -> None:
    received = b""
    while chunk := connection.recv(1 << 20):
        received += chunk
        if _is_whole(received):
            connection.sendall(reply(received))
            received = b""


def _is_whole(request: bytes) -> bool:
    head, separator, body = request.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return bool(separator) and len(body) >= int(length or 0)


if __name__ == "__main__":
    serve(sys.argv[1])
