"""Edits while a run waits: it uses the sources and parameters of the moment when it starts."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from companion.build import cache_keys
from companion.build.run_spec import RunSpec, Target
from companion.figures import store
from companion.io import atomic

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"
NUMBERS = Target("toy")
TARGETS = {NUMBERS, Target("toy", FIGURE)}


@contextmanager
def waiting(clone, lock, *command):
    """Start a command that waits for `lock` while the block runs, and require that it succeeds afterwards."""
    with atomic.locked(lock, "not expected"):
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "companion", *command],
            cwd=clone.root,
            env=clone.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        while "aiting for another" not in (line := process.stdout.readline()):
            assert line, "it ended without waiting"
        yield
    output = process.communicate()[0]
    assert process.returncode == 0, output


def parameters(build) -> dict:
    return store.read_record(build.figures / "toy", FIGURE).parameters


def test_parameters_are_read_after_the_wait(clone):
    """The stamp contains the key of these parameters."""
    build = clone.project.build("smoke")
    with waiting(clone, build.locks / "toy", "run", "toy", "--profile", "smoke"):
        clone.write("profiles/smoke.yml", "toy: {seed: 5}\n")
    assert parameters(build)["seed"] == 5
    assert cache_keys.remembered(build, NUMBERS)["parameters"]["seed"] == 5
    assert cache_keys.is_fresh(clone.project, NUMBERS, "smoke")


def test_the_folder_of_a_custom_run_is_decided_after_the_wait(clone):
    """A profile that is edited during the wait changes the values and so the folder."""
    spec = RunSpec("toy", "smoke", {"seed": 1})
    before = spec.check(clone.project).build(clone.project)
    with waiting(clone, before.locks / "toy", "run", "toy", "-p", "seed=1", "--profile", "smoke"):
        clone.write("profiles/smoke.yml", "toy: {repeats: 77}\n")
    after = spec.check(clone.project).build(clone.project)
    assert after != before
    assert not before.figures.exists()
    assert parameters(after) == {**parameters(after), "seed": 1, "repeats": 77}


def test_a_picture_is_redrawn_after_the_wait(ran_clone):
    """Redrawing waits for a run of the notebook, because it reads the results of that run."""
    with waiting(ran_clone, ran_clone.project.build("laptop").locks / "toy", "redraw", "toy/toy_error"):
        ran_clone.replace(CODE, "Points are means", "Points are averages")
    assert "Points are averages" in store.read_record(ran_clone.project.published / "toy", FIGURE).caption
    assert all(cache_keys.is_fresh(ran_clone.project, target, "laptop") for target in TARGETS)


def test_a_task_whose_source_is_edited_during_its_computation_is_discarded(split_clone):
    """Its file would be stored under the key of the other source."""
    edits = "with open(__file__, 'a') as source:\n        source.write('EDITED = 1\\n')"
    split_clone.replace("clone/toy/tasks.py", '"""Return the squared errors at one length."""', edits)
    finished = split_clone.companion("run", "toy", "--task", "length-10")
    assert finished.returncode == 2
    assert "toy was edited while length-10 was computed" in finished.stderr
    assert list(split_clone.project.generated.rglob("*.npz")) == []


@pytest.mark.parametrize(("lock", "command"), [(".build.lock", "build"), (".verify.lock", "verify")])
def test_only_one_build_and_one_verification_run_at_a_time(ran_clone, lock, command):
    """A second one waits."""
    with pytest.raises(InterruptedError), waiting(ran_clone, ran_clone.project.generated / lock, command):
        raise InterruptedError
