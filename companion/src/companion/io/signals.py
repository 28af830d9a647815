"""Ctrl-C, SIGTERM and the end of a terminal stop a command at once: first its child processes, then the command."""

import signal
from types import FrameType

SENTENCE = "Stopped. Finished work is kept; run the same command to continue."


class Stopped(KeyboardInterrupt):
    """The process received SIGINT, SIGTERM or SIGHUP."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


def listen() -> None:
    """Let SIGINT, SIGTERM and SIGHUP raise `Stopped` once; a second signal ends the process.

    A terminal that is closed sends SIGHUP to this process, and not to its children, which have process groups of their
    own. SIGHUP stays ignored under `nohup`.
    """
    for number in _stopping():
        signal.signal(number, _stop)


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return the exit code of a process that a signal ended, by the shell's convention."""
    return 128 + (stop.number if isinstance(stop, Stopped) else signal.SIGINT)


def _stopping() -> list[signal.Signals]:
    """Return the signals that stop a command."""
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if ignored else [signal.SIGHUP])]


def _stop(number: int, _frame: FrameType | None) -> None:
    for stopping in _stopping():
        signal.signal(stopping, signal.SIG_DFL)
    raise Stopped(number)
