"""Running a notebook: its results are accepted completely or not at all, and two runs give the same bytes."""

import json
import shutil

import pytest

from companion.build import cache_keys, execution
from companion.build.run_spec import RunSpec, Target
from companion.figures import store
from companion.io.errors import UserError
from companion.project.notebooks import Notebook
from companion.project.parameters import resolve

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"
SET = {f"{FIGURE}{suffix}" for suffix in store.SUFFIXES}
TARGETS = {Target("toy"), Target("toy", FIGURE)}


def test_a_run_writes_figures_notebook_provenance_and_stamps(pristine, ran):
    """All files are complete, the command reports them, and no file outside `_build/` and `figures/` is changed."""
    build = ran.project.build("laptop")
    for folder in (ran.project.published / "toy", build.figures / "toy"):
        assert {path.name for path in folder.iterdir()} == SET
        assert store.faults(folder, FIGURE) == []
    assert {path.name for path in (build.tables / "toy").iterdir()} == {f"{FIGURE}.csv", f"{FIGURE}.json"}
    executed = json.loads((build.executed / "toy.ipynb").read_text())
    assert any(cell.get("outputs") for cell in executed["cells"])
    origin = json.loads((build.provenance / "toy.json").read_text())
    assert {"started", "seconds", "device", "versions", "git"} <= set(origin)
    stamps = {path for path in build.stamps.rglob("*") if path.is_file()}
    assert stamps == {cache_keys.stamp(ran.project, target, "laptop") for target in TARGETS}
    assert "toy: 1 figure, 1 claim holds" in ran.output
    assert f"replaced in figures/toy: {FIGURE}" in ran.output
    after = {path: digest for path, digest in ran.tree().items() if not path.startswith(("_build/", "figures/"))}
    assert after == pristine.tree()


def test_the_record_has_profile_steps_functions_and_sources(ran):
    """The sources are those of the science, not of `companion`."""
    record = store.read_record(ran.project.published / "toy", FIGURE)
    assert record.profile == "laptop"
    assert list(record.sources) == [CODE, "clone/toy/parameters.py"]
    assert list(record.steps[-2:]) == [
        "errors = toy_error.simulate_squared_errors(p.lengths, p.repeats, seed=p.seed)",
        "publish(toy_error, errors)",
    ]
    functions = [name.removeprefix("clone.toy.figures.toy_error.") for name in record.functions]
    assert functions == ["simulate_squared_errors", "numbers", "_claims", "draw"]


def code(old, new):
    return lambda clone: clone.replace(CODE, old, new)


def cell(first_line, *lines):
    return lambda clone: clone.rewrite_cell(first_line, "\n".join([first_line, *lines]))


def at_start(program, *lines):
    """Let Python do this when it starts `program`."""
    source = "\n    ".join([f"import os, sys\nif {program!r} in sys.orig_argv:", *lines])
    return lambda clone: clone.write("sitecustomize.py", source)


def hang(clone):
    clone.replace("pyproject.toml", "[tool.companion]", "[tool.companion]\nhours_a_step = 0.0003")
    cell("# means", "import time", "time.sleep(600)", "publish(toy_error, 1)")(clone)


# What XLA does with an unknown flag: it writes to the file descriptor, not to `sys.stderr`, and ends the process.
LAST_WORDS = ('os.write(2, b"Unknown flag in XLA_FLAGS: --xla_nonsense=1\\n")', "os._exit(1)")
WROTE_LAST = "It wrote last:\n  Unknown flag in XLA_FLAGS: --xla_nonsense=1\n  The kernel ended with exit code 1."
KILLED = "The kernel was ended by the signal SIGKILL.\n  Did the machine run out of memory?"
# What is changed, the exit code of the run, and its message.
FAILURES = {
    "a false claim": (
        code("expected=1.0", "expected=2.0"),
        *(3, ["✗ toy-rate derived here: The squared error", "does not hold: measured", "failed/toy.ipynb"]),
    ),
    "a claim that its alternative would pass": (
        code(", 3 * ratios[worst]", ", ratios[worst]"),
        *(3, ["does not catch its alternative, numbers of mean square 1"]),
    ),
    "a failing cell": (
        cell("# setup", "undefined_name"),
        *(2, ["toy: cell 3 failed", "NameError: name 'undefined_name' is not defined", "failed/toy.ipynb"]),
    ),
    "a hanging cell": (
        hang,
        *(2, ["a step took longer than 0.0003 hours and was stopped.", "`hours_a_step`", "failed/toy.ipynb"]),
    ),
    "a killed kernel": (cell("# setup", "import os", "os.kill(os.getpid(), 9)"), 2, ["toy: Kernel died.", KILLED]),
    "a kernel that ends": (cell("# setup", "import os", *LAST_WORDS), 2, ["toy: Kernel died.", WROTE_LAST]),
    "a kernel that ends before the first cell": (at_start("ipykernel_launcher", *LAST_WORDS), 2, [WROTE_LAST]),
}


@pytest.mark.parametrize(("change", "exit_code", "words"), FAILURES.values(), ids=FAILURES)
def test_a_failed_run_is_reported_and_changes_no_result(ran_clone, change, exit_code, words):
    """Published and built files stay the same."""
    change(ran_clone)
    folders = ("figures", "_build/laptop/figures", "_build/laptop/tables", "_build/laptop/executed")
    before = ran_clone.tree(*folders)
    finished = ran_clone.companion("run", "toy")
    assert finished.returncode == exit_code, finished.stderr
    assert [part for part in words if part not in finished.stderr] == []
    assert "Traceback" not in finished.stdout + finished.stderr
    assert ("memory" in finished.stderr) == (KILLED in words)
    assert ran_clone.tree(*folders) == before


def test_a_notebook_runs_with_papermill_alone_from_any_folder(clone, tmp_path):
    """Files are written only below the working folder. A failing claim is shown as a cross; the run does not stop."""
    code("expected=1.0", "expected=2.0")(clone)
    before, notebook = clone.tree(), str(clone.project.notebook("toy"))
    (tmp_path / "desk").mkdir()
    finished = clone.python("-m", "papermill", notebook, "out.ipynb", "-p", "seed", "1", cwd=tmp_path / "desk")
    assert finished.returncode == 0, finished.stderr
    assert clone.tree() == before
    folder = tmp_path / "desk/figures-scratch/toy"
    assert {path.name for path in folder.iterdir()} == SET
    assert store.faults(folder, FIGURE) == []
    record = store.read_record(folder, FIGURE)
    assert record.profile == "by hand"
    assert record.parameters["seed"] == 1
    assert not record.claims[0].holds
    (output,) = json.loads((tmp_path / "desk/out.ipynb").read_text())["cells"][-1]["outputs"]
    assert "✗ toy-rate" in "".join(output["data"]["text/plain"])


def test_a_killed_run_of_a_sweep_is_an_error(ran_clone):
    """A process that is killed writes no message."""
    at_start("run", "os.kill(os.getpid(), 9)")(ran_clone)
    finished = ran_clone.companion("sweep", "toy", "-p", "seed=5,6")
    assert finished.returncode == 2
    assert "The process was ended by the signal SIGKILL" in finished.stdout
    assert "2 runs failed" in finished.stderr


def test_only_the_default_profile_publishes(ran_clone):
    """The notebook of `companion new` runs in the smoke profile, too."""
    before = ran_clone.tree("figures", "_build/laptop")
    ran_clone.succeed("run", "toy", "--profile", "smoke")
    assert ran_clone.tree("figures", "_build/laptop") == before
    record = store.read_record(ran_clone.project.build("smoke").figures / "toy", FIGURE)
    assert record.profile == "smoke"
    assert record.parameters == resolve(ran_clone.project, Notebook.named(ran_clone.project, "toy"), "smoke")


@pytest.mark.parametrize(
    ("old", "new", "fresh"),
    [
        ("is the 99.9", "is a 99.9", TARGETS),
        ("Points are means", "Points are averages", {Target("toy")}),
        ("expected=1.0", "expected=1", set()),
    ],
)
def test_a_source_edited_during_a_run_makes_the_result_stale(ran_clone, copied_run, old, new, fresh):
    """An edited comment makes nothing stale, a caption the picture, and a number everything; nothing is replaced."""
    before = ran_clone.tree("figures")
    copied_run(lambda: ran_clone.replace(CODE, old, new))
    assert not execution.run(ran_clone.project, RunSpec("toy")).published
    assert ran_clone.tree("figures") == before
    assert {target for target in TARGETS if cache_keys.is_fresh(ran_clone.project, target, "laptop")} == fresh


EDITS_ITSELF = (
    "# means",
    "from pathlib import Path",
    f"source = Path('{CODE}')",
    "source.write_text(source.read_text() + '\\n\\ndef edited():\\n    return 1\\n')",
    "publish(toy_error, toy_error.simulate_squared_errors(p.lengths, p.repeats, seed=p.seed))",
)


def test_a_build_reports_that_its_sources_were_edited(clone):
    """The figure is stale although nothing failed."""
    cell(*EDITS_ITSELF)(clone)
    stopped = clone.companion("build", "--target", "figures")
    assert stopped.returncode == 2
    assert "The build failed: its sources were edited while it ran." in stopped.stderr
    assert not cache_keys.is_fresh(clone.project, Target("toy"), "laptop")


@pytest.mark.usefixtures("copied_run")
def test_a_run_must_publish_exactly_the_figures_of_its_notebook(ran_clone):
    """Otherwise published and built files stay the same."""
    before = ran_clone.tree("figures", "_build/laptop/figures")
    shutil.copyfile(ran_clone.root / CODE, ran_clone.root / "clone/toy/figures/another.py")
    cell("# means", "from clone.toy.figures import another", "publish(another, 1)", "publish(toy_error, 1)")(ran_clone)
    with pytest.raises(UserError, match=r"should publish \['another', 'toy_error'\] and published \['toy_error'\]"):
        execution.run(ran_clone.project, RunSpec("toy"))
    assert ran_clone.tree("figures", "_build/laptop/figures") == before
