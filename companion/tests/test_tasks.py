"""Tasks: results are computed beforehand, read by the notebook, and no longer used when their key changes."""

import numpy as np
import pytest

from companion import gather
from companion.authoring.tasks import FOLDER
from companion.build import task_cache
from companion.build.run_spec import RunSpec
from companion.figures import store
from companion.io.errors import UserError

NOTEBOOK, FIGURE, CODE = "book/toy.ipynb", "clone/toy/figures/toy_error.py", "clone/toy/tasks.py"


def cached(clone):
    """Return whether the result of each task is cached."""
    return {name: file.is_file() for name, file in task_cache.files(clone.project, RunSpec("toy")).items()}


def write_results(clone):
    """Write a file for every task, as if all had been computed."""
    for file in task_cache.files(clone.project, RunSpec("toy")).values():
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, errors=np.zeros(3))
    assert all(cached(clone).values())


@pytest.fixture(scope="module")
def built(in_tasks, tmp_path_factory):
    """A clone after `companion build --tasks`, for reading only; its kernel refuses to compute a task."""
    clone = in_tasks.copy_to(tmp_path_factory.mktemp("built") / "clone")
    finished = clone.companion("build", "--target", "figures", "--tasks")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    clone.output = finished.stdout
    return clone


@pytest.fixture
def precomputed(built, tmp_path):
    """A copy of it, to change."""
    return built.copy_to(tmp_path / "clone")


def test_a_build_computes_tasks_first_and_the_notebook_reads_them(built):
    """Each task is computed by a separate process, which reports it."""
    assert set(cached(built)) == {"length-10", "length-100", "length-1000"}
    assert all(cached(built).values())
    assert all(f"✓ toy/{name}" in built.output for name in cached(built))
    listed = built.companion("run", "toy", "--tasks").stdout
    assert listed.splitlines() == [*(f"✓ {name}" for name in cached(built)), "3 of 3 tasks are cached."]


def test_tasks_do_not_change_numbers_and_pictures(built, ran):
    """Only the names of functions in the records differ."""
    for folder in ("figures", "_build/laptop/figures", "_build/laptop/tables"):
        first, second = ran.tree(folder), built.tree(folder)
        assert [path for path in first if path.endswith(store.DATA)]
        assert set(first) == set(second)
        assert {path for path in first if first[path] != second[path] and not path.endswith(".json")} == set()


def test_edits_that_cannot_change_a_result_keep_it(precomputed):
    """Prose, a caption, a claim, a colour, code of the figure and parameters of other parts are edited."""
    before = precomputed.tree("_build/laptop/tasks")
    precomputed.replace(NOTEBOOK, "measures the", "is about the")
    precomputed.replace(NOTEBOOK, "repeats = 500", "repeats = 400")
    precomputed.replace(FIGURE, "Points are means", "Points are averages")
    precomputed.replace(FIGURE, "the ratio at the worst", "their ratio at the worst")
    precomputed.replace(FIGURE, 'fmt="o"', 'fmt="s"')
    precomputed.replace(FIGURE, "values.mean()", "1.0 * values.mean()")
    precomputed.replace(CODE, "Return the squared errors at one length", "Squared errors at one length")
    assert all(cached(precomputed).values())
    finished = precomputed.companion("run", "toy")  # its kernel computes no task
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert precomputed.tree("_build/laptop/tasks") == before


def test_the_notebook_computes_a_missing_result(split_clone):
    """The task refuses to be computed in this kernel, so the run stops with its message."""
    write_results(split_clone)
    task_cache.files(split_clone.project, RunSpec("toy"))["length-100"].unlink()
    finished = split_clone.companion("run", "toy")
    assert finished.returncode == 2
    assert "length 100 is not cached" in finished.stderr


def test_one_task_is_computed_alone(split_clone):
    """Its file is complete, and the other tasks are not computed."""
    computed = split_clone.companion("run", "toy", "--task", "length-100")
    assert computed.returncode == 0, computed.stderr
    assert "✓ toy/length-100" in computed.stdout
    assert cached(split_clone) == {"length-10": False, "length-100": True, "length-1000": False}
    (file,) = [path for path in split_clone.project.build("laptop").tasks.rglob("*") if path.is_file()]
    with np.load(file) as arrays:
        assert arrays["errors"].shape == (500,)


def test_an_unknown_task_is_refused_with_a_suggestion(split_clone):
    with pytest.raises(UserError, match=r"has no task 'length-'.*Did you mean"):
        task_cache.compute(split_clone.project, RunSpec("toy"), "length-")


def test_a_notebook_without_tasks(clone):
    """The list is empty, and the message for a named task says where tasks are defined."""
    assert clone.companion("run", "toy", "--tasks").stdout == "0 of 0 tasks are cached.\n"
    with pytest.raises(UserError, match=r"'toy' has no tasks: there is no .*clone/toy/tasks\.py"):
        task_cache.compute(clone.project, RunSpec("toy"), "length-10")


def test_gather_reads_cached_results_and_computes_the_others(tmp_path, monkeypatch):
    """The order is that of the tasks; without a folder all are computed."""
    np.savez(tmp_path / "b.npz", x=np.arange(3))
    tasks = {name: lambda name=name: {"x": np.array(name)} for name in "abc"}
    assert [str(value["x"]) for value in gather(tasks)] == ["a", "b", "c"]
    monkeypatch.setenv(FOLDER, str(tmp_path))
    a, b, c = gather(tasks)
    assert (str(a["x"]), str(c["x"])) == ("a", "c")
    np.testing.assert_array_equal(b["x"], np.arange(3))
