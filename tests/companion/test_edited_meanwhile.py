"""What is edited while a run waits, or while it runs, is not called fresh with other numbers than its own."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from companion.build import cache_keys, execution
from companion.figures import store
from companion.io import atomic
from companion.project.paths import Project

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"
TARGETS = {"toy", f"toy-{FIGURE}"}


@contextmanager
def waiting(clone, lock, *command):
    """A command that waits for the lock inside, and must have ended well after it."""
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
        try:
            yield
        except InterruptedError:
            process.kill()
            process.communicate()
            raise
    said = process.communicate()[0]
    assert process.returncode == 0, said


def parameters(build) -> dict:
    return store.read_record(build.figures / "toy", FIGURE).parameters


def test_parameters_are_those_of_when_the_wait_is_over(clone):
    """And the key under which the results are fresh is theirs."""
    build = clone.project.build("smoke")
    with waiting(clone, build.locks / "toy", "run", "toy", "--profile", "smoke"):
        clone.write("profiles/smoke.yml", "toy: {seed: 5}\n")
    assert parameters(build)["seed"] == 5
    assert cache_keys.remembered(build, "toy")["parameters"]["seed"] == 5
    assert cache_keys.is_fresh(clone.project, "toy", "smoke")


def test_sources_are_those_of_when_the_wait_is_over(clone):
    with waiting(clone, clone.project.build("laptop").locks / "toy", "run", "toy"):
        clone.replace(CODE, "uniform(-1, 1, (", "uniform(-1, 1.0, (")
    assert all(cache_keys.is_fresh(clone.project, target, "laptop") for target in TARGETS)


def test_a_run_of_ones_own_belongs_where_its_values_say(clone):
    """A profile that is edited while it waits gives it other values, so another folder."""
    before = execution.own_build(clone.project, "toy", "smoke", {"seed": 1})
    with waiting(clone, before.locks / "toy", "run", "toy", "-p", "seed=1", "--profile", "smoke"):
        clone.write("profiles/smoke.yml", "toy: {repeats: 77}\n")
    after = execution.own_build(clone.project, "toy", "smoke", {"seed": 1})
    assert after != before
    assert not before.figures.exists()
    assert parameters(after) == {**parameters(after), "seed": 1, "repeats": 77}


def test_a_picture_is_that_of_when_the_wait_is_over(ran_clone):
    """A drawing waits for a run, or it would draw half of what that leaves."""
    with waiting(ran_clone, ran_clone.project.build("laptop").locks / "toy", "redraw", "toy/toy_error"):
        ran_clone.replace(CODE, "Points are means", "Points are averages")
    assert "Points are averages" in store.read_record(ran_clone.project.published / "toy", FIGURE).caption
    assert all(cache_keys.is_fresh(ran_clone.project, target, "laptop") for target in TARGETS)


@pytest.mark.parametrize(("lock", "command"), [(".build.lock", "build"), (".verify.lock", "verify")])
def test_one_build_and_one_verification_at_a_time(ran_clone, lock, command):
    """The other waits."""
    with pytest.raises(InterruptedError), waiting(ran_clone, ran_clone.project.generated / lock, command):
        raise InterruptedError


# A kernel that finds a file other than it was when the run began, and leaves it as it was.
SETUP = """# setup
from pathlib import Path

file = Path({path!r})
text = file.read_text()
file.write_text(text.replace({old!r}, {new!r}))
assert file.read_text() != text
from clone.toy.figures import toy_error
from clone.toy.parameters import Parameters

from companion import begin

p, publish = begin(Parameters, globals())
"""
PUT_BACK = """# means
errors = toy_error.simulate(p.lengths, p.repeats, seed=p.seed)
shown = publish(toy_error, errors)
file.write_text(text)
shown
"""


@pytest.mark.parametrize(
    ("old", "new", "fresh"),
    [
        ("# the 99.9", "# a 99.9", TARGETS),
        ("figsize=(7, 4)", "figsize=(7, 5)", {"toy"}),
        ("uniform(-1, 1, (", "uniform(-1, 1.001, (", set()),
    ],
    ids=["comment", "picture", "numbers"],
)
def test_what_is_put_back_during_a_run_is_not_fresh(clone, old, new, fresh):
    """The source is at the end what it was at the beginning; what the kernel imported was another."""
    clone.rewrite_cell("# setup", SETUP.format(path=CODE, old=old, new=new))
    clone.rewrite_cell("# means", PUT_BACK)
    finished = clone.companion("run", "toy")
    assert finished.returncode == 0, finished.stderr
    assert {target for target in TARGETS if cache_keys.is_fresh(clone.project, target, "laptop")} == fresh
    assert ("was edited while it ran" in finished.stdout) == (fresh != TARGETS)
    assert clone.project.published.is_dir() == (fresh == TARGETS), "what is not fresh is not published"


def test_data_that_are_put_back_during_a_run_are_not_fresh(clone):
    clone.write("clone/toy/data/law.csv", "power\n1\n")
    clone.rewrite_cell("# setup", SETUP.format(path="clone/toy/data/law.csv", old="1", new="2"))
    clone.rewrite_cell("# means", PUT_BACK)
    assert clone.companion("run", "toy").returncode == 0
    assert not cache_keys.is_fresh(clone.project, "toy", "laptop")


def test_a_run_of_ones_own_is_not_kept_as_what_it_was_not(clone):
    """The next one computes it again."""
    clone.rewrite_cell("# setup", SETUP.format(path=CODE, old="uniform(-1, 1, (", new="uniform(-1, 1.001, ("))
    clone.rewrite_cell("# means", PUT_BACK)
    assert clone.companion("run", "toy", "-p", "seed=1").returncode == 0
    (folder,) = clone.project.runs.iterdir()
    assert list(Project(clone.root).own_build(folder.name).stamps.glob("*.json")) == []


def test_a_task_whose_source_is_edited_meanwhile_is_not_kept(split_clone):
    """It would lie under the key of the other source."""
    edits = "with open(__file__, 'a') as source:\n        source.write('EDITED = 1\\n')"
    split_clone.replace("clone/toy/tasks.py", '"""Return the squared errors at one length."""', edits)
    finished = split_clone.companion("task", "toy", "length-10")
    assert finished.returncode == 2
    assert "toy was edited while length-10 was computed" in finished.stderr
    assert list(split_clone.project.generated.rglob("*.npz")) == []
