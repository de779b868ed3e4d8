"""Texts that take long to read: they delay neither the memory of others nor the end of the server."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from tests.acceptance.combinations import one_backend
from tests.acceptance.processes import wait_until
from tests.acceptance.server_site import BROKEN, Server, Site
from tests.provider import chat

SENTENCE = "The key to the door of flat 12 is with Anna, and the token for bus 3 costs 2.50. "
LONG_TEXT = SENTENCE * (20_000_000 // len(SENTENCE))
READERS = 8
"""As many as there are memory threads."""

LARGE_THREADS = 2
STOP_SECONDS = 60


@contextmanager
def reading_long_texts(server: Server) -> Iterator[None]:
    """So many clients have a long text remembered while the block runs, each for a user of its own."""

    def remember(number: int) -> None:
        said = [{"role": "user", "content": LONG_TEXT}]
        with suppress(*BROKEN):
            server.ask("POST", "/v1/memory/remember", {"user": f"reader-{number}", "messages": said})

    with ThreadPoolExecutor(READERS) as pool:
        for number in range(READERS):
            pool.submit(remember, number)
        requests = lambda: server.metric("shepherd_requests_now")  # noqa: E731
        wait_until(lambda: requests() > LARGE_THREADS, "more are at it than have a thread")
        yield


@one_backend
def test_long_texts_leave_memory_threads_to_others(site: Site) -> None:
    site.provider.default = chat("Hello.")
    server = site.serve()
    with site.settings.service() as service:
        service.set_fact("bystander", "favourite_animal", "quokka")
    with reading_long_texts(server):
        assert server.chat("What is my favourite animal?", "bystander").memory == "on"
        server.process.kill()


@one_backend
def test_the_server_ends_in_its_time_whatever_it_reads(site: Site) -> None:
    site.settings.set(server_shutdown_timeout=1)
    server = site.serve()
    with reading_long_texts(server):
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(STOP_SECONDS) == 0


def test_threads_that_never_end_do_not_keep_the_process() -> None:
    code = (
        "import threading; from shepherd_memory.frontends.web.process import ForcedEnd;"
        "threading.Thread(target=threading.Event().wait, name='stuck').start();"
        "ForcedEnd().within(0.1)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=STOP_SECONDS, check=True
    )
    assert b"ends without waiting for stuck" in ended.stderr
