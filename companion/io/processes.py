"""Processes that end with this one: whatever ends it, but SIGKILL, nothing goes on working behind it."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

# How long a process may take to end by itself, in seconds, before it is killed.
GRACE = 5.0


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that leads a group of its own, ended with the whole group on leaving if it is still at work."""
    process = subprocess.Popen(command, start_new_session=True, text=True, **options)
    try:
        yield process
    finally:
        end([process])


def end(processes: Sequence[subprocess.Popen[str]]) -> None:
    """End these, each the leader of a group, and all of their groups: asked first, killed if they do not."""
    working = [process for process in processes if process.poll() is None]
    for process in working:
        _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and any(map(_is_at_work, working)):
        time.sleep(0.02)
    for process in working:
        _signal(process, signal.SIGKILL)
        process.wait()


def _signal(process: subprocess.Popen[str], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # macOS refuses where only zombies are left
        os.killpg(process.pid, number)


def _is_at_work(process: subprocess.Popen[str]) -> bool:
    """Whether the process or another of its group is."""
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def run_all(
    commands: Mapping[str, Sequence[str]], cores: int, folder: Path, begun: Callable[[str], None] = lambda _: None
) -> Generator[tuple[str, subprocess.CompletedProcess[str]], None, None]:
    """Run these in `folder`, `cores` at a time; each, by its name, as it ends, with what it said.

    `begun` is told the name of each that starts. Who stops asking ends those that run, and the others do not begin.
    """
    running: list[subprocess.Popen[str]] = []
    lock, stopped = Lock(), False

    def run(name: str) -> subprocess.CompletedProcess[str]:
        with lock:
            if stopped:
                raise InterruptedError(name)
            begun(name)
            process = subprocess.Popen(
                commands[name],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            running.append(process)
        said, complained = process.communicate()
        return subprocess.CompletedProcess(commands[name], process.returncode, said, complained)

    with ThreadPoolExecutor(cores) as pool:
        jobs = {pool.submit(run, name): name for name in commands}
        try:
            for job in as_completed(jobs):
                yield jobs[job], job.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            with lock:
                stopped = True
            end(running)
