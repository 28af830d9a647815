"""Ctrl-C, SIGTERM, SIGHUP and SIGKILL end a command with its child processes; only finished results remain.

The computation that the tests stop would take ten minutes.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from companion.build import execution, fork_server
from companion.io import processes, signals
from companion.project.notebooks import Notebook

# The first lines of a cell, before its imports, which would take seconds.
FOREVER = """# setup, after ten minutes
import os
import time
from contextlib import suppress
from pathlib import Path

Path("began").write_text(str(os.getpid()))
time.sleep(600)
Path("ended").write_text("")
"""


@pytest.fixture
def endless(clone):
    """Return a clone whose notebook runs for ten minutes, with its own temporary folder (of a short name)."""
    clone.setup = next(
        cell["source"] for cell in Notebook.named(clone.project, "toy").cells if cell["source"].startswith("# setup")
    )
    clone.rewrite_cell("# setup", f"{FOREVER}{clone.setup}")
    folder = Path(tempfile.mkdtemp(prefix="stop-", dir="/tmp"))
    clone.environment["TMPDIR"] = str(folder)
    clone.temporary = folder
    yield clone
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _no_nohup():
    """Commands inherit the default action of SIGHUP, also if the tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def begin(clone, *arguments: str) -> subprocess.Popen[str]:
    """Start a command in the clone."""
    return subprocess.Popen(
        [sys.executable, "-m", "companion", *arguments],
        cwd=clone.root,
        env=clone.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition, process=None):
    """Wait until `condition` returns a true value and return it; fail if `process` ends before."""
    while not (value := condition()):
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)
    return value


def kernel_of(clone, process) -> int:
    """Wait until the kernel computes; return its process id."""
    text = wait_for(lambda: (clone.root / "began").is_file() and (clone.root / "began").read_text(), process)
    return int(text)


def is_gone(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def descendants(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


@pytest.mark.parametrize(
    ("command", "number", "processes"),
    [
        (("run", "toy"), signal.SIGHUP, 1),
        (("build", "--target", "figures"), signal.SIGINT, 3),  # Snakemake, the run that it starts, and the kernel
    ],
)
def test_a_command_ends_with_all_its_processes(endless, command, number, processes):
    """With a message and the exit code that a shell gives to the signal; its temporary folders are removed."""
    process = begin(endless, *command)
    kernel = kernel_of(endless, process)
    pids = {*descendants(process.pid), kernel}
    assert len(pids) >= processes
    process.send_signal(number)
    output, errors = process.communicate()
    assert process.returncode == 128 + number
    assert signals.SENTENCE in errors
    assert "Traceback" not in output + errors
    wait_for(lambda: all(map(is_gone, pids)))
    assert not (endless.root / "ended").exists()
    assert list(endless.temporary.glob(f"{execution.SOCKETS}*")) == []
    assert list(endless.project.build("laptop").staging.iterdir()) == []


def test_a_run_that_ignores_the_end_of_its_terminal_goes_on(monkeypatch):
    """`nohup` makes a process ignore SIGHUP."""
    handled = {}
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)
    monkeypatch.setattr(signal, "signal", handled.__setitem__)
    signals.listen()
    assert handled.keys() == {signal.SIGINT, signal.SIGTERM}


def test_a_stopped_sweep_ends_its_runs_and_starts_no_other(endless):
    process = begin(endless, "sweep", "toy", "-p", "seed=1:5", "--cores", "1")
    kernel = kernel_of(endless, process)
    (endless.root / "began").unlink()
    process.terminate()
    process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    wait_for(lambda: is_gone(kernel))
    assert not (endless.root / "began").exists()
    assert len(list(endless.project.runs.iterdir())) == 1


def test_a_process_that_ignores_sigterm_is_killed(monkeypatch):
    """So are children that ignore it, also if their parent has ended."""
    monkeypatch.setattr(processes, "GRACE", 0.5)
    ignore = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    child = f"{ignore}; print('ignoring', flush=True); time.sleep(600)"
    parent = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(600)"
    with processes.started([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ignoring\n"
        children = descendants(process.pid)
    assert process.poll() == -signal.SIGTERM
    wait_for(lambda: all(map(is_gone, children)))
    process.stdout.close()


# --- forked kernels ---------------------------------------------------------------------------------------


@pytest.fixture
def building(endless):
    """Start a build of two notebooks, one of which runs for ten minutes; yield it, that kernel, all processes."""
    if not fork_server.can_be():
        pytest.skip("kernels are forked on Linux only")
    endless.add_page("second")
    endless.replace("pyproject.toml", "[tool.companion]\n", '[tool.companion]\npreload = ["json"]\n')
    process = begin(endless, "build", "--target", "figures")
    kernel = kernel_of(endless, process)
    children = psutil.Process(process.pid).children(recursive=True)
    assert kernel in [child.pid for child in children]
    yield process, kernel, children
    for started in (*children, process):
        with suppress(psutil.NoSuchProcess):
            started.kill()
    process.communicate()


def with_words(candidates: list[psutil.Process], *words: str) -> psutil.Process:
    """Return the running process whose command line has all `words`."""
    running = (process for process in candidates if process.is_running())
    return next(process for process in running if all(word in process.cmdline() for word in words))


def test_a_run_reports_that_its_kernel_died_with_the_fork_server(building):
    process, kernel, children = building
    with_words(children, "-P").kill()
    os.kill(kernel, signal.SIGKILL)
    output, _ = process.communicate()
    assert process.returncode == 2
    assert "Kernel died" in output


def test_a_fork_server_ends_with_its_build_and_a_kernel_with_its_run(building):
    """Both are killed, so that they cannot end the other process themselves."""
    process, kernel, children = building
    server, run = with_words(children, "-P"), with_words(children, "-m", "run", "toy")
    process.kill()
    process.wait()
    wait_for(lambda: is_gone(server.pid))
    assert not is_gone(kernel)
    run.kill()
    wait_for(lambda: is_gone(kernel))
