"""Cache keys: `companion list`, Snakemake and the keys agree, and an edit makes only what depends on it stale."""

import json
import os
import shutil

import pytest

from companion.analysis import dependencies
from companion.build import cache_keys
from companion.build.run_spec import Target
from companion.project.notebooks import Notebook
from companion.project.parameters import resolve
from companion.project.paths import Project

FIGURE, NOTEBOOK, TASKS = "clone/toy/figures/toy_error.py", "book/toy.ipynb", "clone/toy/tasks.py"
TARGETS = (Target("toy"), Target("toy", "toy_error"))


def listed(clone, *arguments):
    """Return the row of `toy_error` in `companion list`, and the state of the site."""
    listing = json.loads(clone.succeed("list", "--json", *arguments))
    (row,) = listing["figures"]
    assert (row["notebook"], row["figure"]) == ("toy", "toy_error")
    return {**row, "site": listing["site"]}


def reworded(clone):
    """Edit prose, comments and docstrings, and touch every file."""
    clone.replace(NOTEBOOK, "measures the", "is about the")
    clone.replace(NOTEBOOK, "# means of", "# averages of")
    clone.replace(FIGURE, "is the 99.9 %", "is a 99.9 %")
    clone.replace(FIGURE, "one row per length", "a row for each length")
    for path in clone.root.rglob("*"):
        if path.is_file():
            os.utime(path)


def edit(path, old, new):
    return lambda clone: clone.replace(path, old, new)


def alter(path):
    """Return a change of a generated or published file; a picture is removed."""

    def change(clone):
        file = clone.root / path
        file.unlink() if path.endswith(".png") else file.write_text(file.read_text().replace("10,", "11,", 1))

    return change


# A change, the state of a figure that was computed here, and its state in a fresh clone with published figures, where
# functions that the notebook calls are not compared.
STATES = {
    "reworded": (reworded, "fresh", "published"),
    "caption": (edit(FIGURE, "Points are means", "Points are averages"), "redraw", "stale"),
    "parameter": (edit(NOTEBOOK, "repeats = 500", "repeats = 501"), "stale", "stale"),
    "step": (edit(NOTEBOOK, "p.lengths, p.repeats", "p.lengths[:2], p.repeats"), "stale", "stale"),
    "function": (edit(FIGURE, "values.mean()", "values.max()"), "stale", "published"),
    "no picture": (alter("_build/laptop/figures/toy/toy_error.png"), "redraw", "published"),
    "built data": (alter("_build/laptop/figures/toy/toy_error.csv"), "redraw", "published"),
    "built numbers": (alter("_build/laptop/tables/toy/toy_error.csv"), "stale", "published"),
    "published picture": (alter("figures/toy/toy_error.png"), "fresh", "stale"),
}


@pytest.mark.parametrize(("change", "here", "fresh_clone"), STATES.values(), ids=STATES)
def test_the_list_names_the_state_of_a_figure(ran_clone, change, here, fresh_clone):
    """Contents count and times do not; only what the notebook uses counts."""
    change(ran_clone)
    assert listed(ran_clone)["state"] == here
    shutil.rmtree(ran_clone.project.generated)
    assert listed(ran_clone)["state"] == fresh_clone


def test_snakemake_agrees_with_the_list(ran_clone):
    """It plans nothing if only prose, comments and docstrings changed, although all files are newer than results."""
    reworded(ran_clone)
    command = ("snakemake", "figures", "--dry-run", "--cores", "1", "--nolock", "--rerun-incomplete")
    planned = ran_clone.python("-m", *command, "--rerun-triggers", "mtime")
    assert planned.returncode == 0, planned.stderr
    assert "_toy:" not in planned.stdout + planned.stderr
    assert "Nothing to be done" in planned.stdout + planned.stderr


def test_the_list_counts_claims(ran_clone):
    """The run time is that of the profile; in a fresh clone it is unknown, and other profiles have no figures."""
    row = listed(ran_clone)
    assert row["seconds"] > 0
    assert (row["claims"], row["holding"], row["site"]) == (1, 1, "not built")
    shutil.rmtree(ran_clone.project.generated)
    row, smoke = listed(ran_clone), listed(ran_clone, "--profile", "smoke")
    assert (row["seconds"], row["claims"], row["holding"]) == (None, 1, 1)
    assert (smoke["state"], smoke["claims"]) == ("stale", None)


def test_the_list_is_not_folded_in_a_pipe(ran_clone):
    """The width of the terminal does not matter."""
    ran_clone.environment |= {"COLUMNS": "20"}
    lines = ran_clone.companion("list").stdout.splitlines()
    rows = [line.split("│")[1:-1] for line in lines if line.startswith("│")]
    assert [row[1].strip() for row in rows] == ["toy_error", "the site"]
    assert {len(row) for row in rows} == {5}


def keys(project: Project, profile="laptop") -> dict[str, str | None]:
    resolved = resolve(project, Notebook.named(project, "toy"), profile)
    targets = dict(zip(("numbers", "picture", "site"), (*TARGETS, cache_keys.Site.BUILT), strict=True))
    contents = {name: cache_keys.made_of(project, target, profile) for name, target in targets.items()}
    task = cache_keys.task_key(project, "toy", resolved)
    return {"task": task, **{name: cache_keys.key_of(content) for name, content in contents.items()}}


def changed(project: Project, before: dict[str, str | None], profile="laptop") -> set[str]:
    return {name for name, key in keys(project, profile).items() if key != before[name]}


@pytest.fixture(scope="module")
def before(in_tasks) -> dict[str, str | None]:
    """The keys before any edit, which are the same in every folder."""
    return keys(in_tasks.project)


SITE = {"site"}
PICTURE = {"picture", "site"}
NUMBERS = {"numbers", "picture", "site"}
EVERYTHING = {"numbers", "picture", "site", "task"}

EDITS = {
    "prose": (NOTEBOOK, "measures the", "is about the", SITE),
    "comment in a cell": (NOTEBOOK, "# means of", "# averages of", SITE),
    "code in a cell": (NOTEBOOK, "p.lengths, p.repeats", "p.lengths[:2], p.repeats", NUMBERS),
    "parameter of a task": (NOTEBOOK, "seed = 0", "seed = 1", EVERYTHING),
    "parameter of none": (NOTEBOOK, "repeats = 500", "repeats = 501", NUMBERS),
    "comment in the code": (FIGURE, "is the 99.9 %", "is a 99.9 %", SITE),
    "docstring": (FIGURE, "one row per length", "a row for each length", SITE),
    "caption": (FIGURE, "Points are means", "Points are averages", PICTURE),
    "alt text": (FIGURE, "Log-log plot", "Plot", PICTURE),
    "drawing": (FIGURE, 'fmt="o"', 'fmt="s"', PICTURE),
    "claim": (FIGURE, "expected=1.0", "expected=2.0", NUMBERS),
    "wording of a claim": (FIGURE, "the ratio at the worst", "their ratio at the worst", NUMBERS),
    "numbers": (FIGURE, "values.mean()", "values.max()", NUMBERS),
    "task": (TASKS, "uniform(-1, 1", "uniform(-2, 2", EVERYTHING),
    "comment on a task": (TASKS, "Return the squared errors at", "Squared errors at", SITE),
    "range of a parameter": ("clone/toy/parameters.py", "ge=2", "ge=3", NUMBERS),
    "lock": ("requirements.lock", "# Pin", "numpy==2.4\n# Pin", EVERYTHING),
    "configuration": ("_config.yml", "Its authors", "Nobody", SITE),
    "contents": ("_toc.yml", "caption: Figures", "caption: Pictures", SITE),
    "page": ("book/index.md", "Every figure", "Each figure", SITE),
    "reference": ("book/references.bib", "1949", "1950", SITE),
    "README": ("README.md", "whose figures", "where figures", set()),
    "other profile": ("profiles/full.yml", "repeats: 5000", "repeats: 6000", set()),
    "comment of the package": ("clone/__init__.py", "one folder per notebook", "a folder for each notebook", SITE),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_changes_the_keys_of_what_depends_on_it(split_clone, before, edit):
    """Undoing the edit restores the keys."""
    path, old, new, expected = edit
    split_clone.replace(path, old, new)
    assert changed(split_clone.project, before) == expected
    split_clone.replace(path, new, old)
    assert keys(split_clone.project) == before


ADDED = {
    "clone/toy/data/long.csv": EVERYTHING,
    "clone/toy/data/README.md": SITE,
    "clone/toy/data/make.py": SITE,
    "clone/toy/spare.py": SITE,
    "book/added.md": SITE,
    "book/Untitled.ipynb": set(),
    "book/.ipynb_checkpoints/toy.ipynb": set(),
    "clone/toy/__pycache__/toy_error.pyc": set(),
    "tests/test_x.py": set(),
    "notes.md": set(),
}


@pytest.mark.parametrize(("path", "expected"), ADDED.items())
def test_a_new_file_changes_the_keys_of_what_depends_on_it(split_clone, before, path, expected):
    """Data count, but not the scripts and texts next to them; files of editors and of Python are ignored."""
    split_clone.write(path, "x = 1\n")
    assert changed(split_clone.project, before) == expected


def test_only_imported_modules_of_a_package_count(split_clone):
    """A function is imported from a package that re-exports it: its module counts, the other module does not."""
    split_clone.replace("pyproject.toml", "science = []", 'science = ["laws"]')
    split_clone.write("laws/__init__.py", "from laws.falling import rate as rate\nfrom laws.rising import more\n")
    split_clone.write("laws/falling.py", "def rate(): return 1\n")
    split_clone.write("laws/rising.py", "def more(): return 1\n")
    split_clone.replace(FIGURE, "import numpy as np\n", "import numpy as np\nfrom laws import rate\n")
    split_clone.replace(FIGURE, "values.mean()", "rate() * values.mean()")
    for name, expected in {"rising": SITE, "falling": NUMBERS}.items():
        before = keys(split_clone.project)
        split_clone.replace(f"laws/{name}.py", "1", "2")
        assert changed(split_clone.project, before) == expected


def test_the_context_counts(split_clone):
    """The choice of the context function and its code decide all numbers."""
    split_clone.write("clone/__init__.py", "def single(): ...\ndef double(): ...\n")
    before = keys(split_clone.project)
    for edit in (
        ("pyproject.toml", "# context = ", "context = "),
        ("pyproject.toml", '"clone:prepare"', '"clone:single"'),
        ("pyproject.toml", '"clone:single"', '"clone:double"'),
        ("clone/__init__.py", "def double(): ...", "def double(): return 2"),
    ):
        split_clone.replace(*edit)
        assert changed(split_clone.project, before) == EVERYTHING
        before = keys(split_clone.project)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("authoring/tasks.py", EVERYTHING),
        ("figures/schema.py", NUMBERS),
        ("figures/table_io.py", NUMBERS),
        ("authoring/publish.py", NUMBERS),
        ("authoring/display.py", SITE),
        ("figures/rendering.py", PICTURE),
        ("figures/style.py", PICTURE),
        ("site/sphinx/figure_directive.py", SITE),
        ("site/sphinx/assets/companion.css", SITE),
        ("site/templates/404.html.txt", SITE),
    ],
)
def test_an_edit_of_companion_changes_the_keys_of_what_depends_on_it(
    split_clone, tmp_path, monkeypatch, path, expected
):
    """Modules that write numbers, draw, or show are in different keys."""
    machine = tmp_path / "machine" / "companion"
    shutil.copytree(dependencies.MACHINE, machine, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(dependencies, "MACHINE", machine)
    before = keys(split_clone.project)
    (machine / path).write_text((machine / path).read_text(encoding="utf-8") + "\nx = 1\n", encoding="utf-8")
    assert changed(split_clone.project, before) == expected


def test_a_profile_changes_only_its_own_keys(split_clone):
    """Only the resolved values count: the other profiles stay fresh, and tasks that do not use the parameter."""
    before = {profile: keys(split_clone.project, profile) for profile in ("laptop", "smoke", "full")}
    for old, new, expected in ("toy:", "# why\ntoy:", set()), ("repeats: ", "repeats: 1", NUMBERS):
        split_clone.replace("profiles/smoke.yml", old, new)
        after = {profile: changed(split_clone.project, before[profile], profile) for profile in before}
        assert after == {"laptop": set(), "smoke": expected, "full": set()}


LOCK = """\
documenter==1.0 \\
    --hash=sha256:00
    # via clone (pyproject.toml)
linear-algebra==2.0 ; python_version < '4' \\
    --hash=sha256:00
    # via
    #   documenter
    #   solver
matplotlib==3.0
    # via clone (pyproject.toml)
pandas==1.0
    # via clone (pyproject.toml)
solver==1.0
    # via clone (pyproject.toml)
solver-of-old==1.0 ; python_version < '3'
    # via solver
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("documenter==1.0", "documenter==1.1", set()),
        ("pandas==1.0", "theme==1.0\n    # via documenter\npandas==1.0", set()),
        ("sha256:00", "sha256:01", set()),
        ("solver-of-old==1.0", "solver-of-old==1.1", set()),
        ("solver==1.0", "solver==1.1", EVERYTHING),
        ("linear-algebra==2.0", "linear-algebra==2.1", EVERYTHING),
        ("pandas==1.0", "pandas==1.1", EVERYTHING),
        ("matplotlib==3.0", "matplotlib==3.1", PICTURE),
    ],
)
def test_only_packages_that_compute_or_draw_count(split_clone, old, new, expected):
    """A new documentation package reruns nothing; a new version of a solver, or dependency, reruns everything."""
    split_clone.replace("pyproject.toml", "dependencies = [", 'dependencies = ["solver>=1", ')
    split_clone.write("requirements.lock", LOCK)
    before = keys(split_clone.project)
    split_clone.write("requirements.lock", LOCK.replace(old, new))
    assert changed(split_clone.project, before) == expected


def test_damaged_stamps_are_discarded(ran_clone):
    """A stamp is damaged if it is not valid or a file that it lists has changed; the others are kept."""
    project, build = ran_clone.project, ran_clone.project.build("laptop")
    numbers = cache_keys.stamp(project, Target("toy"), "laptop")
    (build.figures / "toy/toy_error.png").unlink()
    (build.stamps / f"other.{'0' * 16}.json").write_text("[1]")
    cache_keys.discard_damaged(project, "laptop")
    assert [path for path in build.stamps.rglob("*") if path.is_file()] == [numbers]
    assert cache_keys.is_fresh(project, Target("toy"), "laptop")
