"""Tasks: results are computed beforehand, read by the notebook, and no longer used when their key changes."""

import numpy as np
import pytest

from companion import gather
from companion.authoring.tasks import FOLDER
from companion.build import task_cache
from companion.build.run_spec import RunSpec
from companion.figures import store
from companion.io.errors import UserError


def cached(clone):
    """Return whether the result of each task is cached."""
    return {name: file.is_file() for name, file in task_cache.files(clone.project, RunSpec("toy")).items()}


def test_a_build_computes_tasks_first_and_the_notebook_reads_them(split_clone, ran):
    """Each task is computed by a separate process, which reports it. Only names of functions in the records differ."""
    output = split_clone.succeed("build", "--target", "figures", "--tasks")
    names = ("length-10", "length-100", "length-1000")
    assert cached(split_clone) == dict.fromkeys(names, True)
    assert all(f"✓ toy/{name}" in output for name in names)
    listed = split_clone.companion("run", "toy", "--tasks").stdout
    assert listed.splitlines() == [*(f"✓ {name}" for name in names), "3 of 3 tasks are cached."]
    for folder in ("figures", "_build/laptop/figures", "_build/laptop/tables"):
        first, second = ran.tree(folder), split_clone.tree(folder)
        assert [path for path in first if path.endswith(store.DATA)]
        assert set(first) == set(second)
        assert {path for path in first if first[path] != second[path] and not path.endswith(".json")} == set()


def test_the_notebook_computes_a_missing_result(split_clone):
    """The task refuses to be computed in this kernel, so the run stops with its message."""
    finished = split_clone.companion("run", "toy")
    assert finished.returncode == 2
    assert "length 10 is not cached" in finished.stderr


def test_one_task_is_computed_alone(split_clone):
    """Its file is complete, and the other tasks are not computed."""
    assert "✓ toy/length-100" in split_clone.succeed("run", "toy", "--task", "length-100")
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
