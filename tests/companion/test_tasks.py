"""Tasks of heavy computations: computed beforehand, found by the notebook, forgotten when they no longer apply."""

import numpy as np
import pandas as pd
import pytest

from companion import gather
from companion.authoring.tasks import FOLDER
from companion.build import task_cache
from companion.figures import store
from companion.io.errors import UserError

NOTEBOOK, FIGURE, CODE = "book/toy.ipynb", "clone/toy/figures/toy_error.py", "clone/toy/tasks.py"


def there(clone):
    """Of each task, whether it is there."""
    return {name: file.is_file() for name, file in task_cache.files(clone.project, "toy", "laptop").items()}


def leave(clone):
    """Files in place of every task, as if all had been computed."""
    for file in task_cache.files(clone.project, "toy", "laptop").values():
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, errors=np.zeros(3))
    assert all(there(clone).values())


@pytest.fixture(scope="module")
def built(in_tasks, tmp_path_factory):
    """A clone in which `companion build --tasks` ended well, for reading only; its kernel may compute no task."""
    clone = in_tasks.copy_to(tmp_path_factory.mktemp("built") / "clone")
    finished = clone.companion("build", "--target", "figures", "--tasks")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    clone.said = finished.stdout
    return clone


@pytest.fixture
def precomputed(built, tmp_path):
    """A copy of it, to change."""
    return built.copy_to(tmp_path / "clone")


def test_build_computes_tasks_first_and_the_notebook_takes_them(built):
    """A process each, which says so; the kernel, which may compute none, found them all."""
    assert set(there(built)) == {"length-10", "length-100", "length-1000"}
    assert all(there(built).values())
    assert all(f"✓ toy/{name}" in built.said for name in there(built))
    listed = built.companion("task", "toy").stdout
    assert listed.splitlines() == [*(f"✓ {name}" for name in there(built)), "3 of 3 tasks are cached."]


def test_numbers_are_the_same_with_and_without(built, ran):
    """To the byte, and so are the pictures; the records differ in what the code is called."""
    for folder in ("figures", "_build/laptop/figures", "_build/laptop/tables"):
        first, second = ran.tree(folder), built.tree(folder)
        assert [path for path in first if path.endswith(store.DATA)]
        assert set(first) == set(second)
        assert {path for path in first if first[path] != second[path] and not path.endswith(".json")} == set()


def test_tasks_outlive_what_does_not_decide_them(precomputed):
    """Prose, a caption, a claim, a colour, code of the figure, a parameter that is not theirs: nothing is lost."""
    before = precomputed.tree("_build/laptop/tasks")
    precomputed.replace(NOTEBOOK, "measures the", "is about the")
    precomputed.replace(NOTEBOOK, "repeats = 500", "repeats = 400")
    precomputed.replace(FIGURE, "Points are means", "Points are averages")
    precomputed.replace(FIGURE, "the ratio at the worst length", "the worst ratio")
    precomputed.replace(FIGURE, 'fmt="o"', 'fmt="s"')
    precomputed.replace(FIGURE, "these.mean()", "1.0 * these.mean()")
    precomputed.replace(CODE, "Return the squared errors at one length", "Squared errors at one length")
    assert all(there(precomputed).values())
    finished = precomputed.companion("build", "--target", "figures", "--tasks")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "✓ toy/length" not in finished.stdout
    assert precomputed.tree("_build/laptop/tasks") == before


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (NOTEBOOK, "seed = 0", "seed = 1"),
        (CODE, "uniform(-1, 1", "uniform(-2, 2"),
        (CODE, "of repeats is fixed", "of repeats is set"),
        ("requirements.lock", "# Pin", "numpy==2.4\n# Pin"),
    ],
    ids=["parameter", "source", "comment", "lock"],
)
def test_tasks_die_with_what_decides_them(split_clone, path, old, new):
    """And are there again when that is undone; words about them decide nothing."""
    leave(split_clone)
    split_clone.replace(path, old, new)
    assert any(there(split_clone).values()) == (old == "of repeats is fixed")
    split_clone.replace(path, new, old)
    assert all(there(split_clone).values())


def test_a_missing_task_is_computed_by_the_notebook(split_clone):
    """Here it may not: the run stops, and says which was wanted."""
    leave(split_clone)
    task_cache.files(split_clone.project, "toy", "laptop")["length-100"].unlink()
    finished = split_clone.companion("run", "toy")
    assert finished.returncode == 2
    assert "length 100 is not cached" in finished.stderr


def test_run_with_own_parameters_takes_no_tasks_of_the_profile(precomputed):
    """They were computed from others, whatever they are called: each is computed in place."""
    finished = precomputed.companion("run", "toy", "-p", "seed=1")
    assert finished.returncode == 0, finished.stderr
    (folder,) = (precomputed.project.generated / "runs").iterdir()
    own, profile = (
        pd.read_csv(build / "tables/toy/toy_error.csv")
        for build in (folder, precomputed.project.build("laptop").folder)
    )
    assert (own["squared_error"] != profile["squared_error"]).all()


def test_one_task_is_computed_whole_or_not_at_all(split_clone):
    """In a process of its own, which says how long it took; the others stay away."""
    computed = split_clone.companion("task", "toy", "length-100")
    assert computed.returncode == 0, computed.stderr
    assert "✓ toy/length-100" in computed.stdout
    assert there(split_clone) == {"length-10": False, "length-100": True, "length-1000": False}
    (file,) = [path for path in split_clone.project.build("laptop").tasks.rglob("*") if path.is_file()]
    with np.load(file) as arrays:
        assert arrays["errors"].shape == (500,)


def test_unknown_task_names_those_there_are(split_clone):
    """As everywhere: what was meant, perhaps."""
    with pytest.raises(UserError, match=r"has no task 'length-'.*Did you mean"):
        task_cache.compute(split_clone.project, "toy", "length-", "laptop")


def test_most_notebooks_have_none(clone):
    """The scaffolded one, as it is laid out; asked for one, the answer says where they would be listed."""
    assert clone.companion("task", "toy").stdout == "0 of 0 tasks are cached.\n"
    with pytest.raises(UserError, match=r"'toy' has no tasks: there is no .*clone/toy/tasks\.py"):
        task_cache.compute(clone.project, "toy", "length-10", "laptop")


def test_gathering_reads_what_was_left_and_computes_the_rest(tmp_path, monkeypatch):
    """In the order asked for; without a folder everything is computed."""
    np.savez(tmp_path / "b.npz", x=np.arange(3))
    tasks = {name: lambda name=name: {"x": np.array(name)} for name in "abc"}
    assert [str(value["x"]) for value in gather(tasks)] == ["a", "b", "c"]
    monkeypatch.setenv(FOLDER, str(tmp_path))
    a, b, c = gather(tasks)
    assert (str(a["x"]), str(c["x"])) == ("a", "c")
    np.testing.assert_array_equal(b["x"], np.arange(3))
