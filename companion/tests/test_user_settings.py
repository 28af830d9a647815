"""Settings and folders of a user change neither numbers nor pictures, and do not stop a run."""

import getpass
import json
import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from companion.cli import environment

RC = """\
text.usetex: True
lines.linewidth: 9
axes.linewidth: 4
savefig.transparent: True
"""
KERNEL = {"argv": ["false"], "display_name": "Another Python", "language": "python"}


def matplotlibrc(clone, folder):
    """Name a file with other line widths, and with LaTeX, which may not be installed."""
    (folder / "matplotlibrc").write_text(RC, encoding="utf-8")
    clone.environment["MATPLOTLIBRC"] = str(folder / "matplotlibrc")


def kernel_of_another_python(clone, folder):
    """Install a kernel `python3` that cannot start."""
    spec = folder / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps(KERNEL), encoding="utf-8")
    clone.environment["JUPYTER_PATH"] = str(folder)


def long_temporary_folder(clone, folder):
    """Name a folder as batch systems do; a socket below it would have too long a path."""
    temporary = folder / ("scratch-of-a-job-" + "0" * 90)
    temporary.mkdir()
    clone.environment["TMPDIR"] = str(temporary)


def unwritable_home(clone, folder):
    """Matplotlib finds no folder for its cache there, and says so on standard error."""
    (folder / "home").write_text("", encoding="utf-8")
    clone.environment["HOME"] = str(folder / "home")


def safe_path(clone, _folder):
    """Leave the working folder out of Python's search path."""
    clone.environment["PYTHONSAFEPATH"] = "1"


# Settings that do not concern the same files or variables, so that one run has several of them.
SETTINGS = {
    "settings": (matplotlibrc, kernel_of_another_python, safe_path),
    "folders": (long_temporary_folder, unwritable_home),
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_run_gives_the_same_bytes(ran, tmp_path, settings):
    """Numbers and pictures are computed again, because nothing of the first run is there."""
    clone = ran.copy_to(tmp_path / "clone")
    for folder in (clone.project.published, clone.project.root / "_build"):
        shutil.rmtree(folder)
    (tmp_path / "user").mkdir()
    for change in settings:
        change(clone, tmp_path / "user")
    finished = clone.companion("run", "toy")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "Warning" not in finished.stdout
    before, after = (folder / "toy" for folder in (ran.project.published, clone.project.published))
    assert {path.name: path.read_bytes() for path in after.iterdir()} == {
        path.name: path.read_bytes() for path in before.iterdir()
    }


def test_the_commit_of_a_repository_above_is_not_that_of_the_book(ran, tmp_path):
    """A book that was extracted below another repository has no commit."""
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "Start"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, env=environment, check=True)
    clone = ran.copy_to(tmp_path / "clone")
    finished = clone.companion("run", "toy")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    provenance = json.loads((clone.project.build("laptop").provenance / "toy.json").read_text(encoding="utf-8"))
    assert provenance["git"] is None


def repository(folder, environment, *paths):
    """Make `folder` a git repository with one commit of `paths`, and return the commit."""
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    commands = (["init", "-q"], ["add", *paths], [*who, "commit", "-q", "--allow-empty", "-m", "Start"])
    for arguments in commands if paths else (commands[0], commands[2]):
        subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)
    shown = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, env=environment, check=True, capture_output=True)
    return shown.stdout.decode().strip()


@pytest.fixture
def versioned(ran_clone, tmp_path):
    """Return a clone with a commit, `clone.commit`, in which git reads its settings only from `clone.settings`."""
    ran_clone.settings = tmp_path / "gitconfig"
    ran_clone.settings.write_text("", encoding="utf-8")
    settings = {"GIT_CONFIG_GLOBAL": str(ran_clone.settings), "GIT_CONFIG_SYSTEM": os.devnull}
    ran_clone.environment = ran_clone.environment | settings
    ran_clone.commit = repository(ran_clone.root, ran_clone.environment, ".")
    return ran_clone


def recorded_commit(clone):
    """Run the notebook; return what its provenance says about git, and the output of the run."""
    finished = clone.companion("run", "toy", "--isolated")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    (record,) = clone.project.runs.glob("*/provenance/toy.json")
    return json.loads(record.read_text(encoding="utf-8"))["git"], finished.stdout


def test_variables_of_a_hook_name_no_other_repository(versioned, tmp_path):
    """Git sets them for hooks, also for one of another repository that runs a command in the book."""
    (tmp_path / "other").mkdir()
    other = repository(tmp_path / "other", versioned.environment)
    versioned.environment["GIT_DIR"] = str(tmp_path / "other/.git")
    git, output = recorded_commit(versioned)
    assert git == {"commit": versioned.commit, "modified": False}
    assert versioned.commit != other
    assert "Warning" not in output


def test_new_files_count_as_changes_whatever_git_shows(versioned):
    versioned.settings.write_text("[status]\n\tshowUntrackedFiles = no\n", encoding="utf-8")
    versioned.write("book/new.md", "# New\n")
    assert recorded_commit(versioned)[0] == {"commit": versioned.commit, "modified": True}


def test_a_repository_that_git_refuses_is_reported(versioned):
    """For example that of another user, as in a container. No commit is recorded then."""
    versioned.environment["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
    git, output = recorded_commit(versioned)
    assert git is None
    assert "Warning: Git does not read this repository, so no commit is recorded: fatal: detected dubious" in output


def test_a_profile_of_snakemake_does_not_govern_a_build(ran, tmp_path):
    """A user who works with a cluster has one; this one runs nothing."""
    clone = ran.copy_to(tmp_path / "clone")
    profile = tmp_path / "profile" / "config.yaml"
    profile.parent.mkdir()
    profile.write_text("dry-run: true\n", encoding="utf-8")
    clone.environment["SNAKEMAKE_PROFILE"] = str(profile.parent)
    clone.replace("clone/toy/figures/toy_error.py", "Points are means", "Points are averages")
    finished = clone.companion("build", "--target", "figures")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "toy/toy_error redrawn; replaced" in finished.stdout


def test_a_build_without_a_result_is_an_error(clone):
    """For example after an edit of the Snakefile; the exit code of Snakemake is 0."""
    clone.write("Snakefile", 'rule site:\n    shell: "true"\n')
    finished = clone.companion("build")
    assert finished.returncode == 2
    assert "without a result" in finished.stderr


def test_a_backend_that_is_not_installed_stops_no_drawing(ran_clone):
    """A terminal in Jupyter has such a variable."""
    ran_clone.environment["MPLBACKEND"] = "module://backend_of_another_environment"
    finished = ran_clone.companion("redraw", "toy_error")
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_a_date_that_is_no_number_is_refused(ran_clone, date):
    """The kernel would not start, and Jupyter waits a minute for it."""
    ran_clone.environment["SOURCE_DATE_EPOCH"] = date
    finished = ran_clone.companion("run", "toy", "--isolated")
    assert finished.returncode == 2
    assert finished.stderr.startswith("Error: SOURCE_DATE_EPOCH must be a number of seconds")
    assert f"Got {date!r}." in finished.stderr


def test_a_user_without_a_home_folder_can_run_notebooks(clone, monkeypatch):
    """For example a user of a container that has no name: neither HOME nor the list of users names a folder."""
    monkeypatch.chdir(clone.root)
    for name in ("HOME", "MPLCONFIGDIR", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "")  # so that the variable is as before when the test ends
        monkeypatch.delenv(name)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: {}[f"uid not found: {number}"])
    monkeypatch.setenv("MPLBACKEND", "agg")
    environment.prepare()
    assert Path(os.environ["HOME"]) == clone.project.cache / "home"
    assert Path.home().is_dir()
    assert getpass.getuser() == f"user-{os.getuid()}"
    assert "MPLCONFIGDIR" not in os.environ
