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


def test_a_run_writes_figures_notebook_provenance_and_stamps(ran):
    """All files are complete, and the command reports them."""
    build = ran.project.build("laptop")
    for folder in (ran.project.published / "toy", build.figures / "toy"):
        assert {path.name for path in folder.iterdir()} == SET
        assert store.faults(folder, FIGURE) == []
    assert {path.name for path in (build.tables / "toy").iterdir()} == {f"{FIGURE}.csv", f"{FIGURE}.json"}
    executed = json.loads((build.executed / "toy.ipynb").read_text())
    assert any(cell.get("outputs") for cell in executed["cells"])
    assert {"started", "seconds", "device", "versions", "git"} <= set(
        json.loads((build.provenance / "toy.json").read_text())
    )
    stamps = {path for path in build.stamps.rglob("*") if path.is_file()}
    assert stamps == {cache_keys.stamp(ran.project, target, "laptop") for target in TARGETS}
    assert "toy: 1 figure, 1 claim holds" in ran.output
    assert f"replaced in figures/toy: {FIGURE}" in ran.output


def test_a_run_writes_nowhere_else(pristine, ran):
    """No file outside `_build/` and `figures/` is changed or created."""
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


@pytest.fixture(scope="module")
def disproved(ran, tmp_path_factory):
    """A clone whose notebook was run again after its claim was changed to a false one."""
    clone = ran.copy_to(tmp_path_factory.mktemp("disproved") / "clone")
    clone.replace(CODE, "expected=1.0", "expected=2.0")
    clone.finished = clone.companion("run", "toy")
    return clone


def test_a_failing_claim_ends_the_run_with_code_3(disproved):
    """The message has the statement, the measured number and the path of the executed notebook."""
    assert disproved.finished.returncode == 3
    message = disproved.finished.stderr
    assert "✗ toy-rate derived here: The squared error" in message
    assert "does not hold: measured" in message
    assert "failed/toy.ipynb" in message


def test_a_failing_claim_publishes_nothing(ran, disproved):
    """Published and built files stay the same; the executed notebook is stored in another folder."""
    for folder in ("figures", "_build/laptop/figures", "_build/laptop/tables", "_build/laptop/executed"):
        assert ran.tree(folder)
        assert disproved.tree(folder) == ran.tree(folder)
    executed = json.loads((disproved.project.build("laptop").failed / "toy.ipynb").read_text())
    assert "✗" in json.dumps(executed, ensure_ascii=False)


@pytest.fixture(scope="module")
def by_hand(disproved, tmp_path_factory):
    """An unrelated folder in which papermill alone ran that notebook with a parameter."""
    folder, before = tmp_path_factory.mktemp("elsewhere"), disproved.tree()
    finished = disproved.python(
        *("-m", "papermill", str(disproved.project.notebook("toy")), "out.ipynb", "-p", "seed", "1"), cwd=folder
    )
    assert finished.returncode == 0, finished.stderr
    assert disproved.tree() == before
    return folder


def test_a_notebook_runs_with_papermill_alone_from_any_folder(by_hand):
    """The four files are written below the working folder."""
    assert {path.name for path in (by_hand / "figures-scratch/toy").iterdir()} == SET
    assert store.faults(by_hand / "figures-scratch/toy", FIGURE) == []
    record = store.read_record(by_hand / "figures-scratch/toy", FIGURE)
    assert record.profile == "by hand"
    assert record.parameters["seed"] == 1


def test_a_failing_claim_is_shown_as_a_cross_by_hand(by_hand):
    """The notebook still runs to its last cell."""
    (output,) = json.loads((by_hand / "out.ipynb").read_text())["cells"][-1]["outputs"]
    assert "✗ toy-rate" in "".join(output["data"]["text/plain"])
    (claim,) = store.read_record(by_hand / "figures-scratch/toy", FIGURE).claims
    assert not claim.holds


def test_a_claim_that_its_alternative_would_pass_ends_the_run(ran_clone):
    """The exit code is 3, and the message names the alternative."""
    ran_clone.replace(CODE, ", 3 * ratios[worst]", ", ratios[worst]")
    before = ran_clone.tree("figures")
    finished = ran_clone.companion("run", "toy")
    assert finished.returncode == 3
    assert "does not catch its alternative, numbers of mean square 1" in finished.stderr
    assert ran_clone.tree("figures") == before


def test_a_failing_cell_is_named(ran_clone):
    """The exit code is 2; the message has the cell, the error and the path of the partly executed notebook."""
    ran_clone.rewrite_cell("# setup", "# setup\nundefined_name\n")
    code = [cell["source"] for cell in Notebook.named(ran_clone.project, "toy").cells if cell["cell_type"] == "code"]
    number = 1 + [source.startswith("# setup") for source in code].index(True)
    before = ran_clone.tree("figures")
    finished = ran_clone.companion("run", "toy")
    assert finished.returncode == 2
    assert f"toy: cell {number} failed" in finished.stderr
    assert "NameError: name 'undefined_name' is not defined" in finished.stderr
    assert "Traceback" not in finished.stderr
    assert (ran_clone.project.build("laptop").failed / "toy.ipynb").is_file()
    assert ran_clone.tree("figures") == before


# What XLA does with an unknown flag: it writes to the file descriptor, not to `sys.stderr`, and ends the process.
LAST_WORDS = """import os
os.write(2, b"Unknown flag in XLA_FLAGS: --xla_nonsense=1\\n")
os._exit(1)
"""


def test_a_kernel_that_dies_before_the_first_cell_is_reported(ran_clone):
    condition = 'if "ipykernel_launcher" in sys.orig_argv:\n    '
    ran_clone.write("sitecustomize.py", f"import sys\n{condition}{LAST_WORDS.replace(chr(10), chr(10) + '    ')}")
    finished = ran_clone.companion("run", "toy")
    assert finished.returncode == 2
    assert "It wrote last:\n  Unknown flag in XLA_FLAGS: --xla_nonsense=1\n" in finished.stderr
    assert "memory" not in finished.stderr
    assert "Traceback" not in finished.stdout + finished.stderr


def test_a_killed_run_of_a_sweep_is_an_error(ran_clone):
    """A process that is killed writes no message."""
    ran_clone.write("sitecustomize.py", "import os, sys\nif 'run' in sys.orig_argv:\n    os.kill(os.getpid(), 9)\n")
    finished = ran_clone.companion("sweep", "toy", "-p", "seed=5,6")
    assert finished.returncode == 2
    assert "The process was ended by the signal SIGKILL" in finished.stdout
    assert "2 runs failed" in finished.stderr


def test_a_hanging_cell_is_stopped_and_reported(ran_clone):
    """The book sets the longest duration of a cell; published and built files stay the same."""
    ran_clone.replace("pyproject.toml", "[tool.companion]", "[tool.companion]\nhours_a_step = 0.0003")
    ran_clone.rewrite_cell("# means", "# means\nimport time\n\ntime.sleep(600)\npublish(toy_error, 1)\n")
    before = ran_clone.tree("figures", "_build/laptop/figures")
    finished = ran_clone.companion("run", "toy")
    assert finished.returncode == 2
    assert "toy: a step took longer than 0.0003 hours and was stopped." in finished.stderr
    assert "`hours_a_step`" in finished.stderr
    assert "failed/toy.ipynb" in finished.stderr
    assert "Traceback" not in finished.stdout + finished.stderr
    assert ran_clone.tree("figures", "_build/laptop/figures") == before


def test_only_the_default_profile_publishes(ran_clone):
    """The notebook of `companion new` runs in the smoke profile, too."""
    before = ran_clone.tree("figures", "_build/laptop")
    finished = ran_clone.companion("run", "toy", "--profile", "smoke")
    assert finished.returncode == 0, finished.stderr
    assert ran_clone.tree("figures", "_build/laptop") == before
    record = store.read_record(ran_clone.project.build("smoke").figures / "toy", FIGURE)
    assert record.profile == "smoke"
    assert record.parameters == resolve(ran_clone.project, Notebook.named(ran_clone.project, "toy"), "smoke")


@pytest.fixture
def rerun(ran, ran_clone, monkeypatch):
    """Run the notebook again without a kernel, with the results of the first run, after `meanwhile` was called."""

    def run(meanwhile=lambda: None, overrides=None):
        def execute(project, notebook, changed, staging, *, environment, failed):
            build = ran.project.build("laptop")
            for kind, folder in (("figures", build.figures), ("tables", build.tables)):
                shutil.copytree(folder, staging / kind)
            shutil.copyfile(build.executed / "toy.ipynb", staging / "toy.ipynb")
            (staging / "device.json").write_text("null")
            meanwhile()

        monkeypatch.setattr(execution, "_execute", execute)
        return execution.run(ran_clone.project, RunSpec("toy", parameters=overrides or {}))

    return run


def test_a_run_with_the_same_results_replaces_nothing(ran_clone, rerun):
    """All targets are fresh afterwards."""
    before = ran_clone.tree("figures")
    assert not rerun().published
    assert ran_clone.tree("figures") == before
    assert all(cache_keys.is_fresh(ran_clone.project, target, "laptop") for target in TARGETS)


@pytest.mark.parametrize(
    ("old", "new", "fresh"),
    [
        ("is the 99.9", "is a 99.9", TARGETS),
        ("Points are means", "Points are averages", {Target("toy")}),
        ("expected=1.0", "expected=1", set()),
    ],
)
def test_a_source_edited_during_a_run_makes_the_result_stale(ran_clone, rerun, old, new, fresh):
    """An edited comment makes nothing stale, a caption the picture, and a number everything."""
    rerun(meanwhile=lambda: ran_clone.replace(CODE, old, new))
    assert {target for target in TARGETS if cache_keys.is_fresh(ran_clone.project, target, "laptop")} == fresh


EDITS_ITSELF = f"""# means, while somebody edits the chapter
from pathlib import Path

source = Path("{CODE}")
source.write_text(source.read_text() + "\\n\\ndef edited():\\n    return 1\\n")
errors = toy_error.simulate_squared_errors(p.lengths, p.repeats, seed=p.seed)
publish(toy_error, errors)
"""


def test_a_build_reports_that_its_sources_were_edited(clone):
    """The figure is stale although nothing failed."""
    clone.rewrite_cell("# means", EDITS_ITSELF)
    stopped = clone.companion("build", "--target", "figures")
    assert stopped.returncode == 2
    assert "The build failed: its sources were edited while it ran." in stopped.stderr
    assert not cache_keys.is_fresh(clone.project, Target("toy"), "laptop")


def test_a_run_must_publish_exactly_the_figures_of_its_notebook(ran_clone, rerun):
    """Otherwise published and built files stay the same."""
    before = ran_clone.tree("figures", "_build/laptop/figures")
    shutil.copyfile(ran_clone.root / CODE, ran_clone.root / "clone/toy/figures/another.py")
    ran_clone.rewrite_cell(
        "# means", "from clone.toy.figures import another\npublish(another, 1)\npublish(toy_error, 1)\n"
    )
    with pytest.raises(UserError, match=r"should publish \['another', 'toy_error'\] and published \['toy_error'\]"):
        rerun()
    assert ran_clone.tree("figures", "_build/laptop/figures") == before
