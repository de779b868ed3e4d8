"""Whether the holder of a lease still runs, told from its name."""

import os
import signal
import sys
from pathlib import Path

import pytest

from shepherd_memory.storage.lease_owner import is_gone, new_owner
from tests.fork_server import Popen
from tests.lease_owners import (
    PRINTED,
    ended_owner,
    owner_before_reboot,
    owner_elsewhere,
    owner_with_our_number,
)


def test_we_are_not_gone_and_have_a_new_name_each_time() -> None:
    first, second = new_owner(), new_owner()
    assert first != second
    assert not is_gone(first)
    assert not is_gone(second)


def test_a_process_of_this_machine_that_ended_is_gone() -> None:
    assert is_gone(ended_owner())


def test_a_process_with_the_number_of_one_that_ended_is_not_taken_for_it() -> None:
    assert is_gone(owner_with_our_number())


def test_nothing_is_known_of_another_machine_or_from_before_a_reboot() -> None:
    assert not is_gone(owner_elsewhere())
    assert not is_gone(owner_before_reboot())


@pytest.mark.parametrize("name", ["", "worker", "host:1", "a:b:c:d:e", ":::::", "host:7:8:9", "x:-1:2:3:4"])
def test_a_name_that_says_less_is_never_gone(name: str) -> None:
    assert not is_gone(name)


def test_a_killed_process_is_gone_before_anybody_has_waited_for_it() -> None:
    waiting = f"{PRINTED}; import sys; sys.stdout.flush(); sys.stdin.read()"
    process = Popen(
        [sys.executable, "-c", waiting],
        cwd=Path(__file__).parents[2],
        stdin=-1,
        stdout=-1,
        text=True,
    )
    with process:
        assert process.stdout is not None
        owner = process.stdout.readline().strip()
        assert owner.split(":")[1] == str(process.pid)
        assert not is_gone(owner)
        process.send_signal(signal.SIGKILL)
        # Left as it is, with its number taken: only its end is waited for.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(owner)
