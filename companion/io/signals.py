"""Ctrl-C and SIGTERM end a command at once: first what works for it, then the command, with a sentence."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SENTENCE = "Stopped. What had ended is kept; the same line goes on."
# After so many seconds a command that was stopped is ended, whatever it is at.
PATIENCE = 10.0

_actions: list[Callable[[], Any]] = []


class Stopped(KeyboardInterrupt):
    """A signal asked for an end."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


def listen() -> None:
    """From here on SIGINT and SIGTERM raise `Stopped`, once; what comes after that ends the process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)


def exit_code(stop: KeyboardInterrupt) -> int:
    """What a shell is told of a process that a signal ended."""
    return 128 + (stop.number if isinstance(stop, Stopped) else signal.SIGINT)


@contextmanager
def at_once(action: Callable[[], Any]) -> Iterator[None]:
    """Inside, a signal does `action` before anything else."""
    _actions.append(action)
    try:
        yield
    finally:
        _actions.remove(action)


def _stop(number: int, _frame: FrameType | None) -> None:
    def end(*_: Any) -> None:
        os._exit(128 + number)

    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, end)
    last = threading.Timer(PATIENCE, end)
    last.daemon = True
    last.start()
    for action in list(_actions):
        action()
    raise Stopped(number)
