"""Child processes that end with this process, unless it is killed by SIGKILL."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Seconds between SIGTERM and SIGKILL.
GRACE = 5.0


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start `command` in a new process group; terminate the group on exit if it still runs."""
    process = subprocess.Popen(command, start_new_session=True, text=True, errors="replace", **options)
    try:
        yield process
    finally:
        end([process])


def end(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Terminate these group leaders with their groups: SIGTERM first, SIGKILL after `GRACE` seconds."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and any(map(_is_running, running)):
        time.sleep(0.02)
    for process in running:
        _signal(process, signal.SIGKILL)
        process.wait()


def how_it_ended(code: int) -> str:
    """Return how a process with this exit code ended, as the end of a sentence about it."""
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was ended by the signal {signal.Signals(-code).name}"


def error_of(finished: subprocess.CompletedProcess[str]) -> str:
    """Return the error message of a failed process: its standard error, or how it ended if it wrote nothing."""
    return finished.stderr.strip() or f"The process {how_it_ended(finished.returncode)}"


def _signal(process: subprocess.Popen[str], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS refuses where only zombies are left
        os.killpg(process.pid, number)


def _is_running(process: subprocess.Popen[str]) -> bool:
    """Return whether any process of the group still runs."""
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def run_all(
    commands: Mapping[str, Sequence[str]], cores: int, folder: Path, begun: Callable[[str], None] = lambda _: None
) -> Generator[tuple[str, subprocess.CompletedProcess[str]], None, None]:
    """Run `commands` in `folder`, `cores` at a time.

    Args:
      commands: command lines by name.
      cores: how many processes run at once.
      folder: their working folder.
      begun: called with the name of each process that starts.

    Yields:
      Name and completed process, with its output, as each one ends. Closing the generator terminates the running
      processes and cancels the rest.
    """
    running: list[subprocess.Popen[str]] = []

    def run(name: str) -> subprocess.CompletedProcess[str]:
        begun(name)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
        process = subprocess.Popen(commands[name], cwd=folder, start_new_session=True, **pipes)
        running.append(process)
        output, errors = process.communicate()
        return subprocess.CompletedProcess(commands[name], process.returncode, output, errors)

    with ThreadPoolExecutor(cores) as pool:
        jobs = {pool.submit(run, name): name for name in commands}
        try:
            for job in as_completed(jobs):
                yield jobs[job], job.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            while any(job.running() for job in jobs):  # also one that has not started its process yet
                end(running)
