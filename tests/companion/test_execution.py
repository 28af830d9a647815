"""Running a notebook: accepted whole or not at all, and the same whoever runs it."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from companion.build import cache_keys, execution
from companion.figures import store
from companion.io.errors import UserError
from companion.project.notebooks import Notebook
from companion.project.parameters import resolve
from companion.project.paths import CACHE

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"
SET = {f"{FIGURE}{suffix}" for suffix in store.SUFFIXES}


def test_run_leaves_figures_notebook_provenance_and_stamps(ran):
    """Each where it belongs, whole; the command says what it did."""
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
    assert sorted(path.name.split(".")[0] for path in build.stamps.glob("*.json")) == ["toy", f"toy-{FIGURE}"]
    assert "toy: 1 figure, 1 claim holds" in ran.said
    assert f"replaced in figures/toy: {FIGURE}" in ran.said


def test_run_writes_nowhere_else(pristine, ran):
    """Every file outside `_build/` and `figures/` is as it was, and none came."""
    after = {path: digest for path, digest in ran.tree().items() if not path.startswith(("_build/", "figures/"))}
    assert after == pristine.tree()


def test_run_leaves_no_staging(ran):
    """Hidden folders of a run end with it."""
    assert list(ran.project.build("laptop").staging.iterdir()) == []


def test_record_names_profile_and_sources(ran):
    """The default profile, the steps of the notebook, and the science it was computed with, not the machine."""
    record = store.read_record(ran.project.published / "toy", FIGURE)
    assert record.profile == "laptop"
    assert list(record.sources) == ["clone/toy/parameters.py", CODE]
    assert list(record.steps[-2:]) == [
        "errors = toy_error.simulate(p.lengths, p.repeats, seed=p.seed)",
        "publish(toy_error, errors)",
    ]
    own = [name.removeprefix("clone.toy.figures.toy_error.") for name in record.functions]
    assert own == ["simulate", "numbers", "_claim", "draw"]


@pytest.fixture(scope="module")
def killed(pristine, ran, tmp_path_factory):
    """A clone in which `companion run toy` was killed with its group at 3 random moments, then run to the end."""
    clone, moments = pristine.copy_to(tmp_path_factory.mktemp("killed") / "clone"), random.Random(3)
    clone.faults = []
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-m", "companion", "run", "toy"],
            cwd=clone.root,
            env=clone.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        time.sleep(moments.uniform(0.3, 0.9) * min(ran.seconds, 15))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        files = {path.relative_to(clone.project.published).as_posix() for path in clone.project.published.rglob("*")}
        if files:
            clone.faults += sorted(files ^ {"toy", *(f"toy/{name}" for name in SET)})
            clone.faults += store.faults(clone.project.published / "toy", FIGURE)
    clone.finished = clone.companion("run", "toy")
    return clone


def test_kill_leaves_no_partial_figure(killed):
    """After each kill `figures/` is empty or holds whole sets."""
    assert killed.faults == []


def test_run_after_a_kill_completes_and_cleans_up(killed):
    """Nothing has to be unlocked; what the killed runs left is gone."""
    assert killed.finished.returncode == 0, killed.finished.stderr
    assert list(killed.project.build("laptop").staging.iterdir()) == []


def test_two_runs_from_scratch_are_the_same_bytes(ran, killed):
    """In two clones, all five files and the unrounded numbers."""
    for folder in ("figures", "_build/laptop/figures", "_build/laptop/tables"):
        first = ran.tree(folder)
        assert first
        assert killed.tree(folder) == first


@pytest.fixture(scope="module")
def varied(ran, tmp_path_factory):
    """A clone in which `companion run toy -p seed=1` followed `companion run toy`."""
    clone = ran.copy_to(tmp_path_factory.mktemp("varied") / "clone")
    clone.finished = clone.companion("run", "toy", "-p", "seed=1")
    return clone


def test_run_with_own_parameters_goes_to_its_own_folder(varied):
    """`_build/runs/toy-…`, with a record of the parameter."""
    assert varied.finished.returncode == 0, varied.finished.stderr
    (folder,) = (varied.project.generated / "runs").iterdir()
    assert folder.name.startswith("toy-")
    assert str(folder) in varied.finished.stdout
    assert store.faults(folder / "figures/toy", FIGURE) == []
    assert store.read_record(folder / "figures/toy", FIGURE).parameters["seed"] == 1


def test_run_with_own_parameters_changes_nothing_else(ran, varied):
    """Published figures, the profile's results and its freshness stay."""
    after = {path: digest for path, digest in varied.tree().items() if not path.startswith("_build/runs/")}
    assert after == ran.tree()


@pytest.fixture(scope="module")
def disproved(ran, tmp_path_factory):
    """A clone whose notebook was run well, and again after its claim was made to expect what is not true."""
    clone = ran.copy_to(tmp_path_factory.mktemp("disproved") / "clone")
    clone.replace(CODE, "expected=1.0", "expected=2.0")
    clone.finished = clone.companion("run", "toy")
    return clone


def test_failing_claim_stops_the_run(disproved):
    """Exit code 3; the sentence, the number and the notebook to look at are named."""
    assert disproved.finished.returncode == 3
    said = disproved.finished.stderr
    assert "✗ toy-rate derived here: The squared error" in said
    assert "does not hold: measured" in said
    assert "failed/toy.ipynb" in said


def test_failing_claim_publishes_nothing(ran, disproved):
    """Neither `figures/` nor what was built before is touched; the executed notebook is kept beside."""
    for folder in ("figures", "_build/laptop/figures", "_build/laptop/tables", "_build/laptop/executed"):
        assert ran.tree(folder)
        assert disproved.tree(folder) == ran.tree(folder)
    kept = json.loads((disproved.project.build("laptop").failed / "toy.ipynb").read_text())
    assert "✗" in json.dumps(kept, ensure_ascii=False)


@pytest.fixture(scope="module")
def by_hand(disproved, tmp_path_factory):
    """An unrelated folder in which plain papermill ran that notebook with a parameter."""
    folder, before = tmp_path_factory.mktemp("elsewhere"), disproved.tree()
    finished = disproved.python(
        *("-m", "papermill", str(disproved.project.notebook("toy")), "out.ipynb", "-p", "seed", "1"), cwd=folder
    )
    assert finished.returncode == 0, finished.stderr
    assert disproved.tree() == before
    return folder


def test_notebook_runs_with_plain_papermill_from_any_folder(by_hand):
    """With a parameter; the five files go to the working folder."""
    assert {path.name for path in (by_hand / "figures-scratch/toy").iterdir()} == SET
    assert store.faults(by_hand / "figures-scratch/toy", FIGURE) == []
    record = store.read_record(by_hand / "figures-scratch/toy", FIGURE)
    assert record.profile == "by hand"
    assert record.parameters["seed"] == 1


def test_failing_claim_is_a_cross_by_hand(by_hand):
    """The notebook goes to its end all the same, and shows it."""
    (output,) = json.loads((by_hand / "out.ipynb").read_text())["cells"][-1]["outputs"]
    assert "✗ toy-rate" in "".join(output["data"]["text/plain"])
    (claim,) = store.read_record(by_hand / "figures-scratch/toy", FIGURE).claims
    assert not claim.holds


def test_claim_that_its_alternative_would_pass_stops_the_run(ran_clone):
    """A claim that cannot fail claims nothing: exit code 3, and the alternative is named."""
    ran_clone.replace(CODE, ", 3 * ratios[worst]", ", ratios[worst]")
    before = ran_clone.tree("figures")
    finished = ran_clone.companion("run", "toy")
    assert finished.returncode == 3
    assert "does not catch its alternative, numbers of mean square 1" in finished.stderr
    assert ran_clone.tree("figures") == before


def test_cell_that_fails_is_named(ran_clone):
    """Exit code 2, which cell, which error, and the notebook as far as it came."""
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


def test_kernel_that_dies_is_told_in_a_sentence(ran_clone):
    """Exit code 2; what was published and built stays."""
    ran_clone.rewrite_cell("# setup", "# setup\nimport os\n\nos._exit(1)\n")
    before = ran_clone.tree("figures", "_build/laptop/figures")
    finished = ran_clone.companion("run", "toy")
    assert finished.returncode == 2
    assert "toy: its kernel died" in finished.stderr
    assert "Traceback" not in finished.stdout + finished.stderr
    assert ran_clone.tree("figures", "_build/laptop/figures") == before


def test_notebook_that_hangs_is_ended_in_a_sentence(ran_clone):
    """After as long as the book allows a step; what was published and built stays."""
    ran_clone.replace("pyproject.toml", "[tool.companion]", "[tool.companion]\nhours_a_step = 0.0003")
    ran_clone.rewrite_cell("# means", "# means\nimport time\n\ntime.sleep(600)\npublish(toy_error, 1)\n")
    before = ran_clone.tree("figures", "_build/laptop/figures")
    finished = ran_clone.companion("run", "toy")
    assert finished.returncode == 2
    assert "toy: a step took longer than 0.0003 hours, and was ended." in finished.stderr
    assert "`hours_a_step`" in finished.stderr
    assert "failed/toy.ipynb" in finished.stderr
    assert "Traceback" not in finished.stdout + finished.stderr
    assert ran_clone.tree("figures", "_build/laptop/figures") == before


def test_other_profile_leaves_published_figures_alone(ran_clone):
    """What `companion new` lays out runs in the small profile too, and only the default profile publishes."""
    before = ran_clone.tree("figures", "_build/laptop")
    finished = ran_clone.companion("run", "toy", "--profile", "smoke")
    assert finished.returncode == 0, finished.stderr
    assert ran_clone.tree("figures", "_build/laptop") == before
    record = store.read_record(ran_clone.project.build("smoke").figures / "toy", FIGURE)
    assert record.profile == "smoke"
    assert record.parameters == resolve(ran_clone.project, Notebook.named(ran_clone.project, "toy"), "smoke")


@pytest.fixture
def rerun(ran, ran_clone, monkeypatch):
    """Run the notebook again, without a kernel: it leaves what the first run left, after something else happened."""

    def run(meanwhile=lambda: None, overrides=None):
        def execute(project, notebook, changed, staging, *, environment, failed):
            build = ran.project.build("laptop")
            for kind, folder in (("figures", build.figures), ("tables", build.tables)):
                shutil.copytree(folder, staging / kind)
            shutil.copyfile(build.executed / "toy.ipynb", staging / "toy.ipynb")
            (staging / "device.json").write_text("null")
            meanwhile()

        monkeypatch.setattr(execution, "_execute", execute)
        return execution.run(ran_clone.project, "toy", overrides=overrides)

    return run


def test_run_offers_a_place_for_what_is_slow_to_make_again(ran_clone, monkeypatch):
    """The same for every run, with the profile's parameters or one's own."""
    offered = []

    def execute(project, notebook, changed, staging, *, environment, failed):
        offered.append(environment[CACHE])
        raise UserError("enough")

    monkeypatch.setattr(execution, "_execute", execute)
    for overrides in ({}, {"seed": 1}):
        with pytest.raises(UserError, match="enough"):
            execution.run(ran_clone.project, "toy", overrides=overrides)
    assert offered == [str(ran_clone.root / "_build/cache")] * 2


def test_run_that_changes_nothing_replaces_nothing(ran_clone, rerun):
    """And all is fresh."""
    before = ran_clone.tree("figures")
    assert rerun().replaced == []
    assert ran_clone.tree("figures") == before
    assert all(cache_keys.is_fresh(ran_clone.project, target, "laptop") for target in ("toy", f"toy-{FIGURE}"))


@pytest.mark.parametrize(
    ("old", "new", "fresh"),
    [
        ("# the 99.9", "# a 99.9", {"toy", f"toy-{FIGURE}"}),
        ("Points are means", "Points are averages", {"toy"}),
        ("expected=1.0", "expected=1", set()),
    ],
)
def test_what_is_edited_during_a_run_is_stale_after_it(ran_clone, rerun, old, new, fresh):
    """What was computed is not what stands there now: a comment does not matter, a caption does, a number more so."""
    rerun(meanwhile=lambda: ran_clone.replace(CODE, old, new))
    assert {
        name for name in ("toy", f"toy-{FIGURE}") if cache_keys.is_fresh(ran_clone.project, name, "laptop")
    } == fresh


@pytest.mark.parametrize(
    ("edit", "kept"),
    [
        ((CODE, "# the 99.9", "# a 99.9"), 1),
        ((CODE, "Points are means", "Points are averages"), 0),
        (("requirements.lock", "# Pin", "numpy==2.4\n# Pin"), 0),
    ],
)
def test_a_run_of_ones_own_edited_meanwhile_is_not_kept(ran_clone, rerun, edit, kept):
    """As what its values come to today: asked for again, it is computed again."""
    rerun(meanwhile=lambda: ran_clone.replace(*edit), overrides={"seed": 1})
    (folder,) = ran_clone.project.runs.iterdir()
    assert len(list(ran_clone.project.own_build(folder.name).stamps.glob("*.json"))) == kept


EDITS_ITSELF = f"""# means, while somebody edits the chapter
from pathlib import Path

source = Path("{CODE}")
source.write_text(source.read_text() + "\\n\\ndef edited():\\n    return 1\\n")
errors = toy_error.simulate(p.lengths, p.repeats, seed=p.seed)
publish(toy_error, errors)
"""


def test_build_says_that_what_it_builds_was_edited(clone):
    """Nothing went wrong, and yet the figure is stale; the next build makes it fresh."""
    clone.rewrite_cell("# means", EDITS_ITSELF)
    stopped = clone.companion("build", "--target", "figures")
    assert stopped.returncode == 2
    assert "The build failed: its sources were edited while it ran." in stopped.stderr
    clone.replace("book/toy.ipynb", "source.write_text", "source.read_text; str")
    assert clone.companion("build", "--target", "figures").returncode == 0


def test_run_that_does_not_publish_what_it_should_is_not_accepted(ran_clone, rerun):
    """The figures named in the notebook, all of them and no others; what was there stays."""
    before = ran_clone.tree("figures", "_build/laptop/figures")
    shutil.copyfile(ran_clone.root / CODE, ran_clone.root / "clone/toy/figures/another.py")
    ran_clone.rewrite_cell(
        "# means", "from clone.toy.figures import another\npublish(another, 1)\npublish(toy_error, 1)\n"
    )
    with pytest.raises(UserError, match=r"should publish \['another', 'toy_error'\] and published \['toy_error'\]"):
        rerun()
    assert ran_clone.tree("figures", "_build/laptop/figures") == before
