"""Signals reach whoever can act on them, and what is being closed is not broken by one."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import click
import pytest

from shepherd_memory.frontends.terminal.interrupts import Interrupt, InterruptRouter, exit_code
from shepherd_memory.frontends.terminal.signals import INTERRUPTED, interrupted


@pytest.fixture
def signals() -> Iterator[InterruptRouter]:
    signals = InterruptRouter()
    with signals.handled():
        yield signals


def press(number: int = signal.SIGINT) -> None:
    """As a terminal does it; the handler has run when this returns."""
    os.kill(os.getpid(), number)


def test_one_that_nobody_takes_is_raised(signals: InterruptRouter) -> None:
    with pytest.raises(KeyboardInterrupt):
        press()
    with pytest.raises(SystemExit) as left:
        press(signal.SIGTERM)
    assert exit_code(left.value) == 128 + signal.SIGTERM


def test_one_goes_to_whoever_takes_it_now(signals: InterruptRouter) -> None:
    taken: list[tuple[str, Interrupt]] = []

    def taker(name: str, told: Interrupt) -> bool:
        taken.append((name, told))
        return True

    with signals.taken_by(lambda told: taker("outer", told)):
        with signals.taken_by(lambda told: taker("inner", told)):
            press()
        press(signal.SIGHUP)
    assert [(name, exit_code(told)) for name, told in taken] == [("inner", 130), ("outer", 129)]


def test_one_that_comes_between_two_is_for_the_second(signals: InterruptRouter) -> None:
    taken: list[Interrupt] = []
    with signals.kept():
        with signals.taken_by(lambda told: False):
            press()
        with signals.taken_by(lambda told: taken.append(told) or True):
            assert [exit_code(told) for told in taken] == [130]


def test_one_that_waits_is_offered_again_on_demand(signals: InterruptRouter) -> None:
    is_ready = False
    taken: list[Interrupt] = []
    with signals.taken_by(lambda told: is_ready and not taken.append(told)):
        press()
        assert not taken
        is_ready = True
        signals.hand_on()
        assert [exit_code(told) for told in taken] == [130]


def test_what_is_being_closed_is_closed_before_one_is_raised(signals: InterruptRouter) -> None:
    steps: list[str] = []

    @contextmanager
    def opened() -> Iterator[str]:
        yield "open"
        press(signal.SIGHUP)
        steps.append("closed")

    with pytest.raises(SystemExit), signals.opened(opened()) as what:
        steps.append(what)
    assert steps == ["open", "closed"]


def test_while_it_is_used_one_is_raised_at_once(signals: InterruptRouter) -> None:
    steps: list[str] = []

    @contextmanager
    def opened() -> Iterator[None]:
        try:
            yield
        finally:
            steps.append("closed")

    def use() -> None:
        with signals.opened(opened()):
            press()
            steps.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        use()
    assert steps == ["closed"]


def test_a_second_ctrl_c_does_not_wait(signals: InterruptRouter) -> None:
    steps: list[str] = []

    def close() -> None:
        with signals.kept():
            press()
            steps.append("after the first")
            press()
            steps.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        close()
    assert steps == ["after the first"]


def test_only_the_first_that_tells_us_to_leave_counts(signals: InterruptRouter) -> None:
    with pytest.raises(SystemExit):
        press(signal.SIGHUP)
    press(signal.SIGHUP)
    press(signal.SIGTERM)


def test_one_that_is_raised_where_it_was_kept_leaves_the_others_as_they_were(
    signals: InterruptRouter,
) -> None:
    with signals.kept():
        press()
        with pytest.raises(KeyboardInterrupt), signals.raised():
            raise AssertionError("not reached")
        press()
        with pytest.raises(KeyboardInterrupt), signals.raised():
            raise AssertionError("not reached")


def test_ctrl_c_that_leaves_is_an_exit_code_without_a_word(signals: InterruptRouter) -> None:
    with pytest.raises(click.exceptions.Exit) as left, interrupted():
        press()
    assert left.value.exit_code == INTERRUPTED
