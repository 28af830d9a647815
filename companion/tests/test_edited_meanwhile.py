"""Edits while a run waits: it uses the sources and parameters of the moment when it starts."""

from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from companion.build import cache_keys
from companion.build.run_spec import RunSpec, Target
from companion.figures import store
from companion.io import atomic
from companion.io.errors import UserError

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"
NUMBERS = Target("toy")
TARGETS = {NUMBERS, Target("toy", FIGURE)}


@pytest.fixture
def run_after_a_wait(monkeypatch):
    """Return a function that runs a command, which waits for `lock` while somebody edits the book."""
    locked = atomic.locked

    def run(clone, lock: Path, edit: Callable[[], None], *command: str) -> None:
        edits = [edit]

        @contextmanager
        def waited(path, waiting):
            with locked(path, waiting):
                if path == lock and edits:
                    edits.pop()()
                yield

        monkeypatch.setattr(atomic, "locked", waited)
        clone.succeed(*command)
        assert edits == []

    return run


def parameters(build) -> dict:
    return store.read_record(build.figures / "toy", FIGURE).parameters


def test_parameters_are_read_after_the_wait(clone, run_after_a_wait):
    """The stamp contains the key of these parameters."""
    build = clone.project.build("smoke")
    edit = partial(clone.write, "profiles/smoke.yml", "toy: {seed: 5}\n")
    run_after_a_wait(clone, build.locks / "toy", edit, "run", "toy", "--profile", "smoke")
    assert parameters(build)["seed"] == 5
    assert cache_keys.remembered(build, NUMBERS)["parameters"]["seed"] == 5
    assert cache_keys.is_fresh(clone.project, NUMBERS, "smoke")


def test_the_folder_of_a_custom_run_is_decided_after_the_wait(clone, run_after_a_wait):
    """A profile that is edited during the wait changes the values and so the folder."""
    spec = RunSpec("toy", "smoke", {"seed": 1})
    before = spec.check(clone.project).build(clone.project)
    edit = partial(clone.write, "profiles/smoke.yml", "toy: {repeats: 77}\n")
    run_after_a_wait(clone, before.locks / "toy", edit, "run", "toy", "-p", "seed=1", "--profile", "smoke")
    after = spec.check(clone.project).build(clone.project)
    assert after != before
    assert not before.figures.exists()
    assert parameters(after) == {**parameters(after), "seed": 1, "repeats": 77}


def test_a_picture_is_redrawn_after_the_wait(ran_clone, run_after_a_wait):
    """Redrawing waits for a run of the notebook, because it reads the results of that run."""
    edit = partial(ran_clone.replace, CODE, "Points are means", "Points are averages")
    run_after_a_wait(ran_clone, ran_clone.project.build("laptop").locks / "toy", edit, "redraw", "toy/toy_error")
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
def test_only_one_build_and_one_verification_run_at_a_time(ran_clone, monkeypatch, lock, command):
    """A second one waits for the lock of the first."""

    def wait(path, waiting):
        raise UserError(f"{path}: {waiting}")

    monkeypatch.setattr(atomic, "locked", wait)
    finished = ran_clone.companion(command)
    assert finished.returncode == 2
    assert f"{ran_clone.project.generated / lock}: Waiting for another" in finished.stderr
