"""Ctrl-C, SIGTERM and SIGKILL: what was begun ends, and leaves nothing behind but what had ended.

No test waits for a computation that is to be stopped: it would take ten minutes.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from companion.build import execution, fork_server
from companion.io import processes, signals

FOREVER = """# means, for ever
import os
import time
from pathlib import Path

Path("began").write_text(str(os.getpid()))
time.sleep(600)
Path("ended").write_text("")
publish(toy_error, toy_error.simulate(p.lengths, p.repeats, seed=p.seed))
"""


@pytest.fixture
def endless(clone):
    """A clone whose notebook does not end, and a folder of temporary files of its own, with a short name."""
    clone.rewrite_cell("# means", FOREVER)
    folder = Path(tempfile.mkdtemp(prefix="stop-", dir="/tmp"))
    clone.environment["TMPDIR"] = str(folder)
    clone.temporary = folder
    yield clone
    shutil.rmtree(folder, ignore_errors=True)


def begin(clone, *arguments: str) -> subprocess.Popen[str]:
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
    """Until `condition` gives something true, while `process` works."""
    while not (found := condition()):
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)
    return found


def kernel_of(clone, process) -> int:
    """The process that computes, when it does."""
    text = wait_for(lambda: (clone.root / "began").is_file() and (clone.root / "began").read_text(), process)
    return int(text)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/stat")
    return status.is_file() and status.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_ends_with_its_kernel(endless, number):
    """With a sentence, and what a shell says of the signal; its folders are gone."""
    process = begin(endless, "run", "toy")
    kernel = kernel_of(endless, process)
    process.send_signal(number)
    said, complained = process.communicate()
    assert process.returncode == 128 + number
    assert signals.SENTENCE in complained
    assert "Traceback" not in said + complained
    wait_for(lambda: is_gone(kernel))
    assert not (endless.root / "ended").exists()
    assert list(endless.temporary.iterdir()) == []
    assert list(endless.project.build("laptop").staging.iterdir()) == []


# What is there at moments of the first seconds of a run, one after the other: imports, staging, sockets, a kernel.
MOMENTS = {
    "imports": lambda clone, said: True,
    "said to run": lambda clone, said: said,
    "staging": lambda clone, said: any(clone.project.build("laptop").staging.glob("*")),
    "sockets": lambda clone, said: any(clone.temporary.glob(f"{execution.SOCKETS}*")),
    "kernel": lambda clone, said: any(clone.temporary.glob(f"{execution.SOCKETS}*/kernel.json")),
}


# The command, which says when it begins to import what is slow.
TELLING = """
import sys

class Telling:
    def find_spec(name, *_):
        if name == "companion.cli":
            print("importing")

sys.meta_path.insert(0, Telling)
sys.argv = ["companion", "run", "toy"]
from companion.__main__ import main
main()
"""


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_in_the_first_seconds_ends_at_once(endless, moment):
    """Whatever is being imported or started."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", TELLING],
        cwd=endless.root,
        env=endless.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "importing\n"
    said = process.stdout.readline() if moment == "said to run" else ""
    wait_for(lambda: MOMENTS[moment](endless, said), process)
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate()
    assert process.returncode == 130, complained
    assert "Traceback" not in said + complained
    assert signals.SENTENCE in complained
    assert not (endless.root / "ended").exists()
    assert list(endless.temporary.iterdir()) == []


def test_a_build_ends_with_all_that_works_for_it(endless):
    """Snakemake, the run that it started, and the kernel."""
    process = begin(endless, "build", "--target", "figures")
    kernel = kernel_of(endless, process)
    working = [*descendants(process.pid), kernel]
    assert len(working) > 3
    process.terminate()
    said, complained = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert signals.SENTENCE in complained
    assert "Traceback" not in said + complained
    wait_for(lambda: all(map(is_gone, working)))
    assert list(endless.temporary.glob(f"{execution.SOCKETS}*")) == []
    assert list(endless.project.build("laptop").staging.iterdir()) == []


def descendants(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def test_what_a_killed_run_left_is_gone_after_the_next(endless):
    """Its sockets, and what it had half done; one of one's own too. What is at work is left alone."""
    at_work = begin(endless, "run", "toy", "-p", "seed=2")
    kernel_of(endless, at_work)
    (endless.root / "began").unlink()
    killed = begin(endless, "run", "toy", "-p", "seed=1")
    kernel_of(endless, killed)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    sockets, staging = (set(folders(endless, kind)) for kind in ("sockets", "staging"))
    assert len(sockets) == len(staging) == 2
    endless.rewrite_cell(
        "# means", "# means\npublish(toy_error, toy_error.simulate(p.lengths, p.repeats, seed=p.seed))"
    )
    finished = endless.companion("run", "toy")
    assert finished.returncode == 0, finished.stderr
    assert at_work.poll() is None
    for kind, before in (("sockets", sockets), ("staging", staging)):
        left = set(folders(endless, kind))
        assert len(left) == 1
        assert left < before
    processes.end([at_work])
    at_work.communicate()
    assert folders(endless, "sockets") == folders(endless, "staging") == []


def folders(clone, kind: str) -> list[Path]:
    if kind == "sockets":
        return list(clone.temporary.glob(f"{execution.SOCKETS}*"))
    return [path for path in clone.project.generated.rglob(".staging/*") if path.is_dir()]


def test_a_sweep_that_is_stopped_ends_its_runs(endless):
    """And begins no other."""
    process = begin(endless, "sweep", "toy", "-p", "seed=1:5", "--cores", "1")
    kernel = kernel_of(endless, process)
    (endless.root / "began").unlink()
    process.terminate()
    process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    wait_for(lambda: is_gone(kernel))
    assert not (endless.root / "began").exists()
    assert len(list(endless.project.runs.iterdir())) == 1


def test_a_process_that_will_not_end_is_killed(monkeypatch):
    """With its children, also where their parent ended at once."""
    monkeypatch.setattr(processes, "GRACE", 0.5)
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )
    parent = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {deaf!r}]); time.sleep(600)"
    with processes.started([sys.executable, "-c", parent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "deaf\n"
        children = descendants(process.pid)
    assert process.poll() == -signal.SIGTERM
    wait_for(lambda: all(map(is_gone, children)))
    process.stdout.close()


# --- forked kernels ---------------------------------------------------------------------------------------


@pytest.fixture
def building(endless):
    """A build of two notebooks, of which one does not end in its forked kernel, and the processes that work for it."""
    if not fork_server.can_be():
        pytest.skip("forked on Linux only")
    assert endless.companion("new", "second").returncode == 0
    endless.replace("pyproject.toml", "[tool.companion]\n", '[tool.companion]\npreload = ["json"]\n')
    process = begin(endless, "build", "--target", "figures")
    kernel = kernel_of(endless, process)
    working = [*psutil.Process(process.pid).children(recursive=True)]
    assert kernel in [one.pid for one in working]
    yield process, kernel, working
    for one in working:
        if one.is_running():
            one.kill()
    process.kill()
    process.communicate()


def one_that(working: list[psutil.Process], *words: str) -> psutil.Process:
    return next(one for one in working if one.is_running() and all(word in one.cmdline() for word in words))


def test_a_kernel_ends_with_the_run_that_asked_for_it(building):
    """Killed, so that it can tell nobody."""
    _, kernel, working = building
    one_that(working, "-m", "run", "toy").kill()
    wait_for(lambda: is_gone(kernel))


def test_a_kernel_ends_with_its_nursery(building):
    """The run says that its kernel died."""
    process, kernel, working = building
    one_that(working, "-P").kill()
    os.kill(kernel, signal.SIGKILL)
    said, _ = process.communicate()
    assert process.returncode == 2
    assert "its kernel died" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_nursery_ends_with_the_build(building, number):
    process, _, working = building
    process.send_signal(number)
    nursed = one_that(working, "-P")
    process.wait()
    wait_for(lambda: is_gone(nursed.pid))
