"""What is stale: `companion list`, Snakemake and the keys themselves say the same; an edit costs what it changes."""

import json
import os
import shutil

import pytest

from companion.analysis import dependencies
from companion.build import cache_keys
from companion.io.errors import UserError
from companion.project.paths import Project

FIGURE, NOTEBOOK = "clone/toy/figures/toy_error.py", "book/toy.ipynb"


def listed(clone, *arguments):
    """What the list says of `toy_error`, and of the site."""
    finished = clone.companion("list", "--json", *arguments)
    assert finished.returncode == 0, finished.stderr
    said = json.loads(finished.stdout)
    (row,) = said["figures"]
    assert (row["notebook"], row["figure"]) == ("toy", "toy_error")
    return {**row, "site": said["site"]}


def verdicts(clone):
    """Is `toy` fresh, to be redrawn or stale, as the keys, the list and the build graph say?"""
    planned = clone.python(
        *("-m", "snakemake", "figures", "--dry-run", "--cores", "1", "--nolock", "--rerun-incomplete"),
        *("--rerun-triggers", "mtime"),
    )
    assert planned.returncode == 0, planned.stderr
    rules = planned.stdout + planned.stderr
    numbers, picture = (cache_keys.is_fresh(clone.project, name, "laptop") for name in ("toy", "toy-toy_error"))
    return {
        "keys": "fresh" if numbers and picture else "redraw" if numbers else "stale",
        "list": listed(clone)["state"],
        "graph": "stale" if "rule notebook_toy:" in rules else "redraw" if "rule pictures_toy:" in rules else "fresh",
    }


def nothing(clone):
    pass


def touched(clone):
    for path in clone.root.rglob("*"):
        if path.is_file():
            os.utime(path)


def reworded(clone):
    """Prose, comments and docstrings."""
    clone.replace(NOTEBOOK, "measures the", "is about the")
    clone.replace(NOTEBOOK, "# means of", "# averages of")
    clone.replace(FIGURE, "# the 99.9 %", "# a 99.9 %")
    clone.replace(FIGURE, "A row a length", "Each length has a row")


def recaptioned(clone):
    clone.replace(FIGURE, "Points are means", "Points are averages")


def edited_parameter(clone):
    clone.replace(NOTEBOOK, "repeats = 500", "repeats = 501")


def edited_claim(clone):
    clone.replace(FIGURE, "expected=1.0", "expected=1.00001")


def removed_picture(clone):
    (clone.project.build("laptop").figures / "toy/toy_error.png").unlink()


def altered_data(clone):
    path = clone.project.build("laptop").figures / "toy/toy_error.csv"
    path.write_text(path.read_text().replace("10,", "11,", 1))


def altered_numbers(clone):
    path = clone.project.build("laptop").tables / "toy/toy_error.csv"
    path.write_text(path.read_text().replace("10,", "11,", 1))


STATES = {
    nothing: "fresh",
    touched: "fresh",
    reworded: "fresh",
    recaptioned: "redraw",
    removed_picture: "redraw",
    altered_data: "redraw",
    edited_parameter: "stale",
    edited_claim: "stale",
    altered_numbers: "stale",
}


@pytest.mark.parametrize(("change", "state"), STATES.items(), ids=lambda value: getattr(value, "__name__", value))
def test_all_agree_on_what_is_fresh(ran_clone, change, state):
    """After each change: content counts, times do not; what the notebook uses counts, the rest does not."""
    change(ran_clone)
    assert verdicts(ran_clone) == {"keys": state, "list": state, "graph": state}


@pytest.fixture
def fresh_clone(ran_clone):
    """A clone with published figures, in which nothing was computed."""
    shutil.rmtree(ran_clone.project.generated)
    return ran_clone


def test_a_fresh_clone_shows_what_is_published(fresh_clone):
    """With its claims, and no word of seconds that nobody measured here; another profile has nothing to show."""
    assert listed(fresh_clone) == {
        "notebook": "toy",
        "figure": "toy_error",
        "state": "published",
        "seconds": None,
        "claims": 1,
        "holding": 1,
        "site": "not built",
    }
    smoke = listed(fresh_clone, "--profile", "smoke")
    assert (smoke["state"], smoke["claims"]) == ("stale", None)


def lost_picture(clone):
    (clone.project.published / "toy/toy_error.png").unlink()


def another_step(clone):
    clone.replace(NOTEBOOK, "p.lengths, p.repeats", "p.lengths[:2], p.repeats")


def another_colour(clone):
    clone.replace(FIGURE, 'fmt="o"', 'fmt="s"')


@pytest.mark.parametrize("change", [lost_picture, edited_parameter, another_step, another_colour, recaptioned])
def test_a_published_figure_of_something_else_is_stale(fresh_clone, change):
    """Or one that is not whole."""
    change(fresh_clone)
    assert listed(fresh_clone)["state"] == "stale"


@pytest.mark.parametrize("change", [nothing, touched, reworded])
def test_a_published_figure_stays_that_under_other_words(fresh_clone, change):
    """Of prose, comments and docstrings."""
    change(fresh_clone)
    assert listed(fresh_clone)["state"] == "published"


def test_what_was_computed_here_is_not_called_published(ran_clone):
    """It was made of something else, and the published figure is of the same."""
    ran_clone.replace(FIGURE, "these.mean()", "these.max()")
    assert listed(ran_clone)["state"] == "stale"


def test_the_list_says_seconds_and_claims_of_a_run(ran_clone):
    """Of the profile that was run; the site was not built."""
    row = listed(ran_clone)
    assert row["seconds"] > 0
    assert (row["state"], row["claims"], row["holding"], row["site"]) == ("fresh", 1, 1, "not built")


def test_the_list_is_whole_where_it_is_piped(ran_clone):
    """However narrow the terminal is said to be; and a long name is one word."""
    long = "a_figure_whose_name_is_longer_than_anybody_would_ever_want_to_type_into_a_terminal_of_eighty_columns"
    shutil.copyfile(ran_clone.root / FIGURE, ran_clone.root / f"clone/toy/figures/{long}.py")
    ran_clone.replace(NOTEBOOK, "import toy_error", f"import {long}, toy_error")
    ran_clone.replace(
        NOTEBOOK, '"publish(toy_error, errors)"', f'"publish({long}, errors)\\n", "publish(toy_error, errors)"'
    )
    ran_clone.environment |= {"COLUMNS": "40"}
    said = ran_clone.companion("list").stdout.splitlines()
    rows = [line.split("│")[1:-1] for line in said if line.startswith("│")]
    assert [row[1].strip() for row in rows] == [long, "toy_error", "the site"]
    assert {len(row) for row in rows} == {5}


def keys(project: Project, profile="laptop") -> dict[str, str | None]:
    return {
        "numbers": cache_keys.numbers_key(project, "toy", profile),
        "picture": cache_keys.picture_key(project, "toy", "toy_error", profile),
        "task": cache_keys.task_key(project, "toy", profile),
        "book": cache_keys.book_key(project, profile),
    }


def changed(project: Project, before: dict[str, str | None], profile="laptop") -> set[str]:
    return {name for name, key in keys(project, profile).items() if key != before[name]}


BOOK = {"book"}
PICTURE = {"picture", "book"}
NUMBERS = {"numbers", "picture", "book"}
EVERYTHING = {"numbers", "picture", "book", "task"}

EDITS = {
    "prose": (NOTEBOOK, "measures the", "is about the", BOOK),
    "comment in a cell": (NOTEBOOK, "# means of", "# averages of", BOOK),
    "code in a cell": (NOTEBOOK, "p.lengths, p.repeats", "p.lengths[:2], p.repeats", NUMBERS),
    "parameter of a task": (NOTEBOOK, "seed = 0", "seed = 1", EVERYTHING),
    "parameter of none": (NOTEBOOK, "repeats = 500", "repeats = 501", NUMBERS),
    "comment in the code": (FIGURE, "# the 99.9 %", "# a 99.9 %", BOOK),
    "docstring": (FIGURE, "A row a length", "Each length has a row", BOOK),
    "caption": (FIGURE, "Points are means", "Points are averages", PICTURE),
    "alt text": (FIGURE, "Log-log plot", "Plot", PICTURE),
    "drawing": (FIGURE, 'fmt="o"', 'fmt="s"', PICTURE),
    "claim": (FIGURE, "expected=1.0", "expected=2.0", NUMBERS),
    "wording of a claim": (FIGURE, "the ratio at the worst length", "the worst ratio", NUMBERS),
    "numbers": (FIGURE, "these.mean()", "these.max()", NUMBERS),
    "task": ("clone/toy/tasks.py", "uniform(-1, 1", "uniform(-2, 2", EVERYTHING),
    "comment on a task": (
        "clone/toy/tasks.py",
        "Return the squared errors at one length",
        "Squared errors at one length",
        BOOK,
    ),
    "range of a parameter": ("clone/toy/parameters.py", "ge=2", "ge=3", NUMBERS),
    "lock": ("requirements.lock", "# Pin", "numpy==2.4\n# Pin", EVERYTHING),
    "configuration": ("_config.yml", "Its authors", "Nobody", BOOK),
    "contents": ("_toc.yml", "caption: Figures", "caption: Pictures", BOOK),
    "page": ("book/index.md", "Every figure", "Each figure", BOOK),
    "reference": ("book/references.bib", "2026", "2027", BOOK),
    "README": ("README.md", "whose figures", "where figures", set()),
    "other profile": ("profiles/full.yml", "repeats: 5000", "repeats: 6000", set()),
    "comment of the package": ("clone/__init__.py", "a folder a notebook", "one folder a notebook", BOOK),
}


@pytest.mark.parametrize(("path", "old", "new", "expected"), EDITS.values(), ids=EDITS)
def test_an_edit_costs_what_it_changes(split_clone, path, old, new, expected):
    """And is forgotten when it is undone."""
    before = keys(split_clone.project)
    split_clone.replace(path, old, new)
    assert changed(split_clone.project, before) == expected
    split_clone.replace(path, new, old)
    assert keys(split_clone.project) == before


ADDED = {
    "clone/toy/data/long.csv": EVERYTHING,
    "clone/toy/data/README.md": BOOK,
    "clone/toy/data/make.py": BOOK,
    "clone/toy/spare.py": BOOK,
    "book/added.md": BOOK,
    "book/.ipynb_checkpoints/toy.ipynb": set(),
    "clone/toy/__pycache__/toy_error.pyc": set(),
    "tests/test_x.py": set(),
    "notes.md": set(),
}


@pytest.mark.parametrize(("path", "expected"), ADDED.items())
def test_a_new_file_costs_what_it_changes(split_clone, path, expected):
    """Data count, what made them and tells of them does not; what an editor or Python leaves behind is no page."""
    before = keys(split_clone.project)
    split_clone.write(path, "x = 1\n")
    assert changed(split_clone.project, before) == expected


def test_a_science_package_counts_as_far_as_it_is_used(split_clone):
    """One function is imported, by way of a re-export: its file counts, its neighbour's does not."""
    split_clone.replace("pyproject.toml", "science = []", 'science = ["laws"]')
    split_clone.write("laws/__init__.py", "from laws.falling import rate as rate\nfrom laws.rising import more\n")
    split_clone.write("laws/falling.py", "def rate(): return 1\n")
    split_clone.write("laws/rising.py", "def more(): return 1\n")
    split_clone.replace(FIGURE, "import numpy as np\n", "import numpy as np\nfrom laws import rate\n")
    split_clone.replace(FIGURE, "these.mean()", "rate() * these.mean()")
    before = keys(split_clone.project)
    split_clone.replace("laws/rising.py", "1", "2")
    assert changed(split_clone.project, before) == BOOK
    before = keys(split_clone.project)
    split_clone.replace("laws/falling.py", "1", "2")
    assert changed(split_clone.project, before) == NUMBERS


def test_the_context_counts(split_clone):
    """Which function it is, and what that does: in it all numbers are computed."""
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


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A copy of this machine to edit, in place of the one that runs."""
    copy = tmp_path / "machine" / "companion"
    shutil.copytree(dependencies.MACHINE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(dependencies, "MACHINE", copy)
    return copy


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("authoring/tasks.py", EVERYTHING),
        ("figures/schema.py", NUMBERS),
        ("figures/table_io.py", NUMBERS),
        ("authoring/publish.py", NUMBERS),
        ("authoring/display.py", BOOK),
        ("figures/rendering.py", PICTURE),
        ("figures/style.py", PICTURE),
        ("site/sphinx/figure_directive.py", BOOK),
        ("site/sphinx/assets/companion.css", BOOK),
        ("site/templates/404.html.txt", BOOK),
    ],
)
def test_the_machine_costs_what_it_decides(split_clone, machine, path, expected):
    """What writes numbers, what draws, what shows."""
    before = keys(split_clone.project)
    (machine / path).write_text((machine / path).read_text(encoding="utf-8") + "\nx = 1\n", encoding="utf-8")
    assert changed(split_clone.project, before) == expected


def test_most_notebooks_have_no_tasks(clone):
    """And so no key for them."""
    assert cache_keys.task_key(clone.project, "toy", "laptop") is None


def test_profile_changes_its_own_keys_alone(split_clone):
    """Editing smoke.yml leaves the default profile and the full one fresh, and what is no parameter of the tasks."""
    before = {profile: keys(split_clone.project, profile) for profile in ("laptop", "smoke", "full")}
    split_clone.replace("profiles/smoke.yml", "repeats: ", "repeats: 1")
    after = {profile: changed(split_clone.project, before[profile], profile) for profile in before}
    assert after == {"laptop": set(), "smoke": NUMBERS, "full": set()}


def test_comment_in_a_profile_changes_no_key(split_clone):
    """Nor does what it overrides elsewhere: the values count."""
    before = keys(split_clone.project, "smoke")
    split_clone.replace("profiles/smoke.yml", "toy:", "# why\ntoy:")
    assert keys(split_clone.project, "smoke") == before


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
    """A new package for documentation reruns nothing; a new version of a solver, or of what it needs, everything."""
    split_clone.replace("pyproject.toml", "dependencies = [", 'dependencies = ["solver>=1", ')
    split_clone.write("requirements.lock", LOCK)
    before = keys(split_clone.project)
    split_clone.write("requirements.lock", LOCK.replace(old, new))
    assert changed(split_clone.project, before) == expected


def test_lock_that_is_not_there_is_missed(clone):
    """In a sentence: what the numbers depend on is pinned nowhere."""
    clone.project.lock.unlink()
    with pytest.raises(UserError, match=r"requirements\.lock, which pins what the numbers depend on"):
        cache_keys.numbers_key(clone.project, "toy", "laptop")


def test_stamp_of_a_file_that_changed_is_none(ran_clone):
    """Nor one that is no stamp; what is discarded is only what is damaged."""
    project, build = ran_clone.project, ran_clone.project.build("laptop")
    numbers, picture = (cache_keys.stamp(project, name, "laptop") for name in ("toy", "toy-toy_error"))
    removed_picture(ran_clone)
    (build.stamps / "other.0123.json").write_text("[1]")
    cache_keys.discard_damaged(project, "laptop")
    assert list(build.stamps.glob("*.json")) == [numbers]
    assert cache_keys.is_fresh(project, "toy", "laptop")
    assert not picture.exists()


def test_forgetting_one_target_keeps_the_others(clone):
    """Also one whose name begins alike, and the pictures."""
    build = clone.project.build("laptop")
    for stamp in ("toy.0123.json", "toy-toy_error.0123.json", "toy_two.0123.json", "book.0123.json"):
        cache_keys.leave_stamp(clone.project, build.stamps / stamp, [])
    cache_keys.forget(build, "toy")
    kept = ["book.0123.json", "toy-toy_error.0123.json", "toy_two.0123.json"]
    assert sorted(path.name for path in build.stamps.iterdir()) == kept
